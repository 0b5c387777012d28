//! What the models of a run are writing at the moment, for watchers. Nothing of it is kept.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde::Serialize;
use tokio::sync::watch;
use utoipa::ToSchema;

use prime_printable::printable;
use prime_protocol::{Role, TurnId};
use prime_runtime::Writing;

/// Maximum characters of a text that are shown, from its end.
const TEXT_CHARS_MAX: usize = 2_000;
/// Maximum number of turns that are shown, those that were written last.
const TURNS_MAX: usize = 16;

/// What a model has written of one turn so far.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct TurnWriting {
    /// The round, from 1.
    pub round: u32,
    /// The trajectory in the round, from 0.
    pub trajectory: u32,
    /// The role whose answer it is.
    pub role: Role,
    /// The last 2,000 characters, printable.
    pub text: String,
    /// Tokens of the prompt; left out if they are not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub prompt_tokens: Option<u32>,
    /// Number of prompt tokens that the model has read; left out if it is not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub prompt_read: Option<u32>,
}

/// What is written, by round and trajectory, with the number of the change that wrote it.
type Turns = BTreeMap<(u32, u32), (u64, Role, Writing)>;

/// The turns that models are writing at the moment.
pub struct Writings {
    turns: Mutex<Turns>,
    /// Number of turns, so that a step takes no lock if no model is writing.
    count: AtomicUsize,
    /// The number of the last change.
    changes: watch::Sender<u64>,
    /// The turns that wait for an agent, by [`Role::ALL`].
    asked: [AtomicUsize; 3],
}

impl Default for Writings {
    fn default() -> Self {
        Self {
            turns: Mutex::default(),
            count: AtomicUsize::new(0),
            changes: watch::Sender::new(0),
            asked: Default::default(),
        }
    }
}

impl Writings {
    fn turns(&self) -> MutexGuard<'_, Turns> {
        self.turns.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn asked_of(&self, role: Role) -> &AtomicUsize {
        let at = Role::ALL.iter().position(|known| *known == role);
        &self.asked[at.expect("invariant: all roles are listed")]
    }

    /// A turn waits for the agent of a role.
    pub(in crate::runs) fn ask(&self, role: Role) {
        self.asked_of(role).fetch_add(1, Ordering::Relaxed);
    }

    /// A turn waits for it no longer.
    pub(in crate::runs) fn answered(&self, role: Role) {
        self.asked_of(role).fetch_sub(1, Ordering::Relaxed);
    }

    /// The roles whose agents turns wait for, with the number of turns.
    pub(in crate::runs) fn waits_for(&self) -> Vec<(Role, usize)> {
        let counts = Role::ALL.map(|role| (role, self.asked_of(role).load(Ordering::Relaxed)));
        counts.into_iter().filter(|(_, turns)| *turns > 0).collect()
    }

    /// Notes what is written for a turn.
    pub(in crate::runs) fn write(&self, id: TurnId, role: Role, writing: Writing) {
        let mut turns = self.turns();
        let change = self.changes.borrow().wrapping_add(1);
        turns.insert((id.round, id.trajectory), (change, role, writing));
        self.count.store(turns.len(), Ordering::Relaxed);
        self.changes.send_replace(change);
    }

    /// Forgets a turn that is over.
    pub(in crate::runs) fn end(&self, id: TurnId) {
        if self.count.load(Ordering::Relaxed) == 0 {
            return;
        }
        let mut turns = self.turns();
        if turns.remove(&(id.round, id.trajectory)).is_some() {
            self.count.store(turns.len(), Ordering::Relaxed);
            self.changes.send_modify(|change| *change = change.wrapping_add(1));
        }
    }

    /// The number of the last change, and what is written now.
    pub fn now(&self) -> (u64, Vec<TurnWriting>) {
        let turns = self.turns();
        let change = *self.changes.borrow();
        let mut numbers: Vec<u64> = turns.values().map(|(number, ..)| *number).collect();
        numbers.sort_unstable();
        let oldest = numbers.len().checked_sub(TURNS_MAX).map_or(0, |at| numbers[at]);

        let shown = turns.iter().filter(|(_, (number, ..))| *number >= oldest);
        let shown = shown.map(|(&(round, trajectory), (_, role, writing))| {
            let start = writing.text.char_indices().rev().nth(TEXT_CHARS_MAX - 1);
            let end = &writing.text[start.map_or(0, |(at, _)| at)..];
            TurnWriting {
                round,
                trajectory,
                role: *role,
                text: printable(end).into_owned(),
                prompt_tokens: writing.prompt.map(|prompt| prompt.tokens),
                prompt_read: writing.prompt.map(|prompt| prompt.read),
            }
        });
        (change, shown.collect())
    }

    /// Waits until something has changed after the change of this number.
    pub async fn changed(&self, after: u64) {
        // The sender lives as long as `self`.
        drop(self.changes.subscribe().wait_for(|change| *change != after).await);
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;
    use prime_runtime::PromptRead;

    use super::*;

    fn writing(text: &str) -> Writing {
        Writing { text: text.to_owned(), prompt: Some(PromptRead { read: 3, tokens: 8 }) }
    }

    #[test]
    fn a_turn_is_shown_until_it_is_over_and_its_text_is_printable() {
        let writings = Writings::default();
        let id = TurnId { round: 1, trajectory: 2 };
        let (none, shown) = writings.now();
        assert_eq!((none, shown), (0, Vec::new()));

        writings.write(id, Role::Executor, writing("pla\u{1b}[2Jce"));
        let (change, shown) = writings.now();
        assert_eq!(
            shown,
            [TurnWriting {
                round: 1,
                trajectory: 2,
                role: Role::Executor,
                text: "pla\\u001b[2Jce".to_owned(),
                prompt_tokens: Some(8),
                prompt_read: Some(3),
            }]
        );
        assert!(writings.changed(none).now_or_never().is_some());
        assert!(writings.changed(change).now_or_never().is_none());

        writings.end(TurnId { round: 1, trajectory: 0 });
        assert!(writings.changed(change).now_or_never().is_none(), "another turn is over");
        writings.end(id);
        assert!(writings.changed(change).now_or_never().is_some());
        assert_eq!(writings.now().1, []);
    }

    #[test]
    fn of_many_long_texts_the_ends_of_the_newest_are_shown() {
        let writings = Writings::default();
        for trajectory in (0..20).rev() {
            let id = TurnId { round: 1, trajectory };
            let text = "a".repeat(10) + &"\u{e9}".repeat(1_995);
            writings.write(id, Role::Verifier, writing(&text));
        }
        let (_, shown) = writings.now();
        let trajectories: Vec<u32> = shown.iter().map(|turn| turn.trajectory).collect();
        assert_eq!(trajectories, (0..16).collect::<Vec<_>>());
        assert_eq!(shown[0].text, "a".repeat(5) + &"\u{e9}".repeat(1_995));
    }
}
