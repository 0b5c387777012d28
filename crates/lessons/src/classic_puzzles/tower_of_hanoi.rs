//! Tower of Hanoi: the smallest disk makes every other move, always round the pegs the same way;
//! between its moves the smaller of the two other tops goes onto the larger.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::classic_puzzles::tower_of_hanoi::{Action, Instance, State, TowerOfHanoi};

use crate::Lesson;
use crate::numbers::{pairwise, place};

pub struct TowerOfHanoiLesson;

/// Stands for the ground below an empty peg, which every disk may lie on.
const GROUND: usize = 99;

impl Lesson for TowerOfHanoiLesson {
    type Task = TowerOfHanoi;

    fn view(instance: &Instance, state: &State) -> String {
        let last = state.last.0.map_or(0, |action| action.disk);

        let [a, b, c] = [0, 1, 2].map(|peg| place(Some(top(state, peg)), 2));
        format!(
            "n={:02} {}>{} last {last:02} tops {a} {b} {c}",
            instance.n, instance.from, instance.to
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let Action { from, to, .. } = TowerOfHanoi::reference(instance, state)?;

        // The smallest disk has just moved, so it is another's turn: the smaller of the two tops.
        if state.last.0.is_some_and(|action| action.disk == 1) {
            let others = [0, 1, 2].into_iter().filter(|peg| top(state, *peg) != 1);
            let named: Vec<_> =
                others.clone().map(|peg| format!("{peg}:{:02}", top(state, peg))).collect();
            let tops: Vec<_> = others.map(|peg| format!("{:02}", top(state, peg))).collect();
            let [first, second] = tops.as_slice() else { return None };

            return Some(format!("{} {} {from}>{to}", named.join(" "), pairwise(first, second)));
        }

        // With an odd number of disks the smallest goes to `to` first.
        let third = 3 - instance.from - instance.to;
        let (parity, second) =
            if instance.n.is_multiple_of(2) { ("even", third) } else { ("odd", instance.to) };

        let round = format!("{0}{second}{1}{0}", instance.from, 3 - instance.from - second);
        Some(format!("{parity} {round} {from}>{to}"))
    }
}

/// The disk on top of a peg.
fn top(state: &State, peg: usize) -> usize {
    state.top(peg).map_or(GROUND, usize::from)
}
