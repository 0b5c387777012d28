//! Turns that an actor has finished and has not passed on yet.

use actix::{Message, Recipient};

use super::cooperative_yield::TURNS_MAX;
use super::turn::{Turn, Turns};

/// Gathers turns for the next actor, so that they share the cost of a message.
pub struct Outbox<M: Message<Result = ()> + Send> {
    to: Recipient<M>,
    turns: Turns,
    /// Turns per message.
    capacity: usize,
    /// An emptied vector, kept for its allocation.
    spare: Turns,
}

impl<M: Message<Result = ()> + From<Turns> + Send> Outbox<M> {
    /// For an actor on the same thread as the next one, which cannot run before this one yields.
    pub fn batching(to: Recipient<M>) -> Self {
        Self { to, turns: Turns::new(), capacity: TURNS_MAX, spare: Turns::new() }
    }

    /// For an actor on its own thread, whose next turn may block it.
    pub fn unbuffered(to: Recipient<M>) -> Self {
        Self { capacity: 1, ..Self::batching(to) }
    }

    /// Sends a full message at once; [`Outbox::flush`] sends the rest.
    pub fn push(&mut self, turn: Turn) {
        self.turns.push(turn);
        if self.turns.len() >= self.capacity {
            self.flush();
        }
    }

    pub fn flush(&mut self) {
        if !self.turns.is_empty() {
            let turns = std::mem::replace(&mut self.turns, std::mem::take(&mut self.spare));
            // If the recipient has died, the turns are dropped and return to their Supervisor.
            self.to.do_send(M::from(turns));
        }
    }

    /// Reuses the allocation of a message that was emptied.
    // The larger allocation is worth keeping.
    pub fn recycle(&mut self, emptied: Turns) {
        if emptied.capacity() > self.spare.capacity() {
            self.spare = emptied;
        }
    }

    pub fn redirect(&mut self, to: Recipient<M>) {
        self.to = to;
    }
}
