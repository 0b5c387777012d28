//! Patience Sort: deal the cards to piles whose tops increase, then repeatedly take the least top.
//!
//! A step is one card dealt, one card taken, or `done`.

use crate::tasks::pages::patience_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, sort_items};

/// The task `patience-sort`.
pub struct PatienceSort;

/// A place of the input, or -1 for none: inputs are short.
type Card = i64;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Places of the input, top last.
    pub piles: Vec<Vec<usize>>,
    /// For each card dealt, the top of the pile on the left at that moment, -1 if there was none.
    pub back: Vec<Card>,
    tail: Card,
    sizes: Vec<u64>,
    /// The values taken so far, in order.
    pub out: Vec<i64>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// `deal i p`: puts card i on pile p, which is new if p is the number of piles.
    Deal(i, p) = "deal",
    /// `take p`: moves the top of pile p to the output.
    Take(p) = "take",
    /// Ends the trace.
    Done = "done",
});

fn card(place: Option<&usize>) -> Card {
    place.and_then(|place| Card::try_from(*place).ok()).unwrap_or(-1)
}

fn place(card: Card) -> Option<usize> {
    usize::try_from(card).ok()
}

impl State {
    fn cards(&self) -> impl Iterator<Item = &usize> {
        self.piles.iter().flatten()
    }

    /// Returns whether piles and output hold the cards that were dealt. Legal lines move cards and
    /// never change one, so it is enough that none is missing and that the last one moved is where
    /// it belongs.
    fn holds_what_was_dealt(&self, a: &[i64], before: &Self, action: Action) -> bool {
        let cards: usize = self.piles.iter().map(Vec::len).sum();
        let moved = match action {
            Action::Deal(i, p) => self.piles.get(p).and_then(|pile| pile.last()) == Some(&i),
            Action::Take(p) => {
                let top = before.piles.get(p).and_then(|pile| pile.last());
                top.is_some_and(|top| self.out.last() == Some(&a[*top]))
            }
            Action::Done => true,
        };
        cards + self.out.len() == self.back.len() && moved
    }
}

impl Task for PatienceSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(_: &Input) -> State {
        State {
            piles: Vec::new(),
            back: Vec::new(),
            tail: -1,
            sizes: Vec::new(),
            out: Vec::new(),
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let dealt = state.back.len();
        limits::at_most("back", dealt, input.a.len())?;
        limits::below("piles", state.cards().copied(), dealt)?;
        limits::length("sizes", state.sizes.len(), state.piles.len())?;

        let lies_before =
            |(i, card): (usize, &Card)| *card == -1 || place(*card).is_some_and(|card| card < i);
        let back = state.back.iter().enumerate().all(lies_before);
        InvalidInput::unless(back, "back", "must be cards dealt before, -1 for none")?;

        InvalidInput::unless(
            lies_before((dealt, &state.tail)),
            "tail",
            "must be a card that was dealt, -1 for none",
        )
    }

    fn apply(input: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Deal(i, p) => {
                if i != state.back.len() || i >= input.a.len() {
                    return Err(Illegal("this card is not the next one"));
                }
                if p > state.piles.len() {
                    return Err(Illegal("there is no such pile, nor is it the next new one"));
                }

                // The top on the left is now the best predecessor of this card: `back` chains a
                // longest increasing subsequence.
                state.back.push(card(p.checked_sub(1).and_then(|left| state.piles[left].last())));

                if p == state.piles.len() {
                    state.piles.push(Vec::new());
                    state.sizes.push(0);
                }
                state.piles[p].push(i);
                state.sizes[p] += 1;

                // A card on the last pile ends the longest chain so far.
                if p + 1 == state.piles.len() {
                    state.tail = card(Some(&i));
                }
            }
            Action::Take(p) => {
                let pile = state.piles.get_mut(p).ok_or(Illegal("there is no such pile"))?;
                let top = pile.pop().ok_or(Illegal("the pile is empty"))?;
                state.out.push(input.a[top]);
            }
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(input: &Input, state: &State) -> Option<Action> {
        let a = &input.a;
        if state.last.0 == Some(Action::Done) {
            return None;
        }

        let top = |pile: &Vec<usize>| pile.last().map(|top| a[*top]);
        let next = state.back.len();
        if let Some(value) = a.get(next) {
            // The algorithm takes no card before all are dealt.
            let fits = |pile: &Vec<usize>| top(pile).is_some_and(|top| top >= *value);
            let pile = state.piles.iter().position(fits).unwrap_or(state.piles.len());
            return state.out.is_empty().then_some(Action::Deal(next, pile));
        }

        let tops = state.piles.iter().enumerate().filter_map(|(p, pile)| Some((top(pile)?, p)));
        Some(tops.min().map_or(Action::Done, |(_, p)| Action::Take(p)))
    }

    fn violations(
        input: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let a = &input.a;
        found.require(page::MULTISET, after.holds_what_was_dealt(a, before, *action));

        let piles =
            after.piles.iter().all(|pile| pile.is_sorted_by(|below, above| a[*below] >= a[*above]));
        found.require(page::PILES, piles);

        let top = |pile: &Vec<usize>| pile.last().map(|top| a[*top]);
        // Taking a card uncovers a greater one, so the tops need ascend only before the first.
        let tops =
            !after.out.is_empty() || after.piles.is_sorted_by(|left, right| top(left) < top(right));
        found.require(page::TOPS, tops);

        let greatest = after.out.last();
        let out = after.out.is_sorted()
            && greatest.is_none_or(|x| after.cards().all(|card| *x <= a[*card]));
        found.require(page::OUT, out);

        let earlier =
            |(i, card): (usize, &Card)| place(*card).is_none_or(|card| card < i && a[card] < a[i]);
        found.require(page::BACK, after.back.iter().enumerate().all(earlier));

        if let Action::Take(p) = *action {
            found.require(page::DEALT_FIRST, after.back.len() == a.len());
            let left = after.piles.iter().take(p);
            let lesser =
                left.filter_map(top).all(|top| after.out.last().is_some_and(|taken| top > *taken));
            found.require(page::LEFTMOST, lesser);
        }

        if *action == Action::Done {
            found.require(page::SORTED, input.is_sorted_as(&after.out));
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // Each card is dealt and taken.
        2 * input.a.len() as u64 + 1
    }

    fn answer(input: &Input, state: &State) -> Value {
        // A card's `back` was dealt before it, so this terminates.
        let chain = std::iter::successors(place(state.tail), |card| place(state.back[*card]));
        let mut increasing: Vec<_> = chain.map(|card| input.a[card]).collect();
        increasing.reverse();

        json!({ "sorted": state.out, "pile_sizes": state.sizes, "lis": increasing })
    }
}
