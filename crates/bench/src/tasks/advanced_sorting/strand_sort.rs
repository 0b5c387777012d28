//! Strand Sort: repeatedly pull a non-decreasing strand out of the rest and merge it with the
//! sorted output.
//!
//! A step is one action line: a strand begun, an element pulled or skipped, an element merged, the
//! end of a merge, `done`.

use crate::tasks::pages::strand_sort as page;
use crate::tasks::prelude::*;
use crate::tasks::sorting::{Input, sort_items};

/// The task `strand-sort`.
pub struct StrandSort;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// What is left of the input, in input order.
    pub rest: Vec<i64>,
    /// Next place of `rest` to pull or skip, from 0.
    pub i: usize,
    /// The strand as pulled, then what is left of it to merge; ascending.
    pub strand: Vec<i64>,
    /// The sorted output, then what is left of it to merge.
    pub out: Vec<i64>,
    merged: Vec<i64>,
    strands: Vec<usize>,
    comparisons: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

word_actions!(Action {
    /// Moves the first of the rest to a new strand.
    Start = "start",
    /// Moves element `i` of the rest to the end of the strand.
    Pull = "pull",
    /// Leaves element `i` in the rest and passes it.
    Skip = "skip",
    /// Moves the first of the output to the merged list.
    Out = "out",
    /// Moves the first of the strand to the merged list.
    Strand = "strand",
    /// Makes the merged list the output.
    End = "end",
    /// Ends the trace.
    Done = "done",
});

const NOTHING_LEFT: Illegal = Illegal("there is no element left to look at");

impl State {
    fn merge_step(&self) -> Action {
        match (self.out.first(), self.strand.first()) {
            (None, None) => Action::End,
            (Some(_), None) => Action::Out,
            (Some(out), Some(strand)) if out <= strand => Action::Out,
            _ => Action::Strand,
        }
    }
}

impl Task for StrandSort {
    sort_items!(page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Input {
        Input::uniform(&page::size::N, difficulty, rng)
    }

    fn start(input: &Input) -> State {
        State {
            rest: input.a.clone(),
            i: 0,
            strand: Vec::new(),
            out: Vec::new(),
            merged: Vec::new(),
            strands: Vec::new(),
            comparisons: 0,
            last: Last(None),
        }
    }

    fn check_state(input: &Input, state: &State) -> Result<(), InvalidInput> {
        let State { rest, strand, out, merged, strands, .. } = state;
        limits::at_most(
            "rest",
            rest.len() + strand.len() + out.len() + merged.len(),
            input.a.len(),
        )?;
        limits::counts("strands", strands.iter().copied())?;
        let begun = strand.is_empty() || !strands.is_empty();
        InvalidInput::unless(begun, "strands", "must have an entry for the strand")
    }

    fn apply(_: &Input, state: &mut State, action: &Action) -> Result<(), Illegal> {
        match *action {
            Action::Start => {
                if state.rest.is_empty() {
                    return Err(NOTHING_LEFT);
                }

                state.strand.clear();
                state.strand.push(state.rest.remove(0));
                state.i = 0;
                state.strands.push(1);
            }
            Action::Pull => {
                if state.i >= state.rest.len() {
                    return Err(NOTHING_LEFT);
                }
                // Before the first `start`, and after a merge, there is no strand to lengthen.
                let length = state.strands.last_mut().filter(|_| !state.strand.is_empty());
                *length.ok_or(Illegal("the strand is empty"))? += 1;

                state.strand.push(state.rest.remove(state.i));
                state.comparisons += 1;
            }
            Action::Skip => {
                if state.i >= state.rest.len() {
                    return Err(NOTHING_LEFT);
                }
                state.i += 1;
                state.comparisons += 1;
            }
            Action::Out | Action::Strand => {
                let (from, other) = match action {
                    Action::Out => (&mut state.out, &state.strand),
                    _ => (&mut state.strand, &state.out),
                };

                if from.is_empty() {
                    return Err(Illegal("this list is empty"));
                }

                // Nothing is compared once the other list is empty.
                state.comparisons += u64::from(!other.is_empty());
                state.merged.push(from.remove(0));
            }
            Action::End => state.out = std::mem::take(&mut state.merged),
            Action::Done => {}
        }

        Ok(())
    }

    fn reference(_: &Input, state: &State) -> Option<Action> {
        match state.last.0 {
            Some(Action::Start | Action::Pull | Action::Skip) => match state.rest.get(state.i) {
                Some(value) => {
                    Some(if value >= state.strand.last()? { Action::Pull } else { Action::Skip })
                }
                None => Some(state.merge_step()),
            },
            // A merge begins when the whole rest has been scanned.
            Some(Action::Out | Action::Strand) => {
                (state.i == state.rest.len()).then(|| state.merge_step())
            }
            None | Some(Action::End) => {
                Some(if state.rest.is_empty() { Action::Done } else { Action::Start })
            }
            Some(Action::Done) => None,
        }
    }

    fn violations(
        input: &Input,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let State { rest, strand, out, merged, .. } = after;
        let n = input.a.len();

        // Lines only move values, except that a wrong `start` or `end` drops some; so comparing the
        // numbers is enough.
        found.require(page::MULTISET, rest.len() + strand.len() + out.len() + merged.len() == n);
        found.require(page::ORDERED, strand.is_sorted() && out.is_sorted() && merged.is_sorted());

        let greatest = merged.iter().max();
        let least = greatest.is_none_or(|greatest| strand.iter().chain(out).all(|x| x >= greatest));
        found.require(page::MERGED, least);
        found.require(page::STRANDS, after.strands.iter().sum::<usize>() + rest.len() == n);

        let scanned = after.i == rest.len();

        match action {
            Action::Start => {
                found.require(page::SCAN, matches!(before.last.0, None | Some(Action::End)));
            }
            Action::Pull => found.require(page::SCAN, merged.is_empty()),
            Action::Skip => {
                let passed = after.i.checked_sub(1).and_then(|i| rest.get(i));
                found.require(page::SCAN, merged.is_empty());
                found.require(page::SKIPPED, passed < strand.last());
            }
            Action::Out => found.require(page::SCANNED, scanned),
            Action::Strand => {
                found.require(page::SCANNED, scanned);
                found.require(
                    page::STABLE,
                    out.first().is_none_or(|least| merged.last() < Some(least)),
                );
            }
            Action::End => found.require(page::SCANNED, scanned && strand.is_empty()),
            Action::Done => {}
        }

        if *action == Action::Done {
            found.require(page::SORTED, input.is_sorted_as(out));
        }
    }

    fn steps_max(input: &Input) -> u64 {
        // A strand of s elements takes a start, a look at all others that are left, a merge of all
        // that have been pulled, and an end: n + 1 + s lines. There are at most n strands.
        let n = input.a.len() as u64;
        (n + 1) * (n + 1)
    }

    fn answer(_: &Input, state: &State) -> Value {
        json!({ "sorted": state.out, "strands": state.strands, "comparisons": state.comparisons })
    }
}
