//! What was sent to the models of a run, until the step that they were asked for is recorded.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use crate::runs::live::writings::Writings;
use prime_protocol::{Role, TurnId};
use prime_report::{LastPrompts, SentExchange};
use prime_runtime::{Exchange, Kept, Listen, Writing};
use prime_settings::PromptsName;

/// The exchanges of each turn, by round and trajectory.
type Turns = BTreeMap<(u32, u32), Vec<(Role, Exchange)>>;

/// The exchanges of the turns in progress.
pub struct Sent {
    keeps: Kept,
    turns: Mutex<Turns>,
    /// How many turns there are, so that a step without a model takes no lock.
    count: AtomicUsize,
    last: Mutex<LastPrompts>,
}

impl Sent {
    pub fn new(keeps: PromptsName) -> Self {
        Self {
            keeps: match keeps {
                PromptsName::None => Kept::Nothing,
                PromptsName::Text => Kept::Text,
                PromptsName::Tokens => Kept::Tokens,
            },
            turns: Mutex::default(),
            count: AtomicUsize::new(0),
            last: Mutex::default(),
        }
    }

    fn add(&self, id: TurnId, role: Role, exchange: Exchange) {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry((id.round, id.trajectory)).or_default().push((role, exchange));
        self.count.store(turns.len(), Ordering::Relaxed);
    }

    /// What was sent for a finished turn, as the journal keeps it. Called in the order of the run's
    /// events.
    pub fn take(&self, id: TurnId) -> Vec<SentExchange> {
        if self.count.load(Ordering::Relaxed) == 0 {
            return Vec::new();
        }
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        let exchanges = turns.remove(&(id.round, id.trajectory)).unwrap_or_default();
        self.count.store(turns.len(), Ordering::Relaxed);
        drop(turns);

        let mut last = self.last.lock().unwrap_or_else(PoisonError::into_inner);
        exchanges.into_iter().map(|(role, exchange)| last.pack(role, exchange)).collect()
    }
}

/// Listens to one turn: what is written and what was sent.
pub struct Hears {
    id: TurnId,
    role: Role,
    writings: Arc<Writings>,
    sent: Arc<Sent>,
}

impl Hears {
    /// A turn waits for the agent of a role until this is dropped.
    pub fn new(id: TurnId, role: Role, writings: Arc<Writings>, sent: Arc<Sent>) -> Self {
        writings.ask(role);
        Self { id, role, writings, sent }
    }
}

impl Drop for Hears {
    fn drop(&mut self) {
        self.writings.answered(self.role);
    }
}

impl Listen for Hears {
    fn writes(&self, writing: Writing) {
        self.writings.write(self.id, self.role, writing);
    }

    fn keeps(&self) -> Kept {
        self.sent.keeps
    }

    fn exchanged(&self, exchange: Exchange) {
        self.sent.add(self.id, self.role, exchange);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(prompt: &str) -> Exchange {
        Exchange { prompt: prompt.to_owned(), ..Exchange::default() }
    }

    #[test]
    fn a_step_gets_what_was_sent_for_its_own_turn() {
        let sent = Sent::new(PromptsName::Text);
        let turn = |trajectory| TurnId { round: 1, trajectory };
        sent.add(turn(0), Role::Executor, asked("task, first"));
        sent.add(turn(1), Role::Executor, asked("task, other"));
        sent.add(turn(0), Role::Verifier, asked("judge it"));

        let prompts = |id| {
            let taken = sent.take(id).into_iter();
            taken.map(|kept| (kept.role, kept.shared, kept.prompt)).collect::<Vec<_>>()
        };
        let first = [
            (Role::Executor, 0, "task, first".to_owned()),
            (Role::Verifier, 0, "judge it".to_owned()),
        ];
        assert_eq!(prompts(turn(0)), first);
        assert_eq!(prompts(turn(0)), []);
        // In the order of events, whatever the trajectory.
        assert_eq!(prompts(turn(1)), [(Role::Executor, 6, "other".to_owned())]);
    }
}
