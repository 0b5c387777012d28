//! Tournament Sort: compares the two players of the next match.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::advanced_sorting::tournament_sort::{
    Action, Player, State, TournamentSort,
};
use prime_bench::tasks::comparison_sorting::Input;

use crate::Lesson;
use crate::numbers::{comparison, low_first};

pub struct TournamentSortLesson;

/// The next match: while the tree is built, of the node before; later, of the parent.
enum Match {
    Before(usize),
    At(usize),
}

impl Match {
    fn after(state: &State) -> Option<Self> {
        let inner = state.tree.len() / 2;
        match state.last.0 {
            None => Some(Self::Before(inner)),
            Some(Action::Play(node, _)) if state.order.is_empty() => Some(Self::Before(node)),
            Some(Action::Play(node, _)) => Some(Self::At(node.checked_sub(1)? / 2)),
            Some(Action::Out(winner)) => Some(Self::At((inner + winner).checked_sub(1)? / 2)),
            Some(Action::Done) => None,
        }
    }

    fn node(&self) -> Option<usize> {
        match self {
            Self::Before(node) => node.checked_sub(1),
            Self::At(node) => Some(*node),
        }
    }

    /// The winners below the node.
    fn players(&self, state: &State) -> Option<[Player; 2]> {
        let left = 2 * self.node()? + 1;
        Some([*state.tree.get(left)?, *state.tree.get(left + 1)?])
    }
}

impl Lesson for TournamentSortLesson {
    type Task = TournamentSort;

    fn view(input: &Input, state: &State) -> String {
        let player = |player: Player| match usize::try_from(player)
            .ok()
            .and_then(|i| Some((i, input.a.get(i)?)))
        {
            Some((i, value)) => format!("{i:03}{value:+05}"),
            None => "-".to_owned(),
        };

        // The winner at the root leaves without another match.
        if let Some(Action::Play(0, _)) = state.last.0 {
            let winner =
                state.tree.first().map_or_else(|| "-".to_owned(), |winner| player(*winner));
            return format!("root {winner} out {:03}/{:03}", state.order.len(), input.a.len());
        }

        let next = Match::after(state);
        let Some((next, [left, right])) =
            next.and_then(|next| next.players(state).map(|players| (next, players)))
        else {
            return "done".to_owned();
        };

        let node = match next {
            Match::Before(node) => format!("before {node:03}"),
            Match::At(node) => format!("at {node:03}"),
        };

        format!("{node} {} {}", player(left), player(right))
    }

    fn derivation(input: &Input, state: &State) -> Option<String> {
        TournamentSort::reference(input, state)?;

        if let Some(Action::Play(0, _)) = state.last.0 {
            return Some(String::new());
        }

        let next = Match::after(state)?;
        let value =
            |player: Player| usize::try_from(player).ok().and_then(|i| input.a.get(i)).copied();
        let [left, right] = next.players(state)?.map(value);

        let mut steps = Vec::new();
        if let Match::Before(node) = next {
            steps.push(low_first(node.checked_sub(1)?, 3));
        }

        steps.extend(left.zip(right).map(|(left, right)| comparison(left, right)));
        Some(steps.join(" "))
    }
}
