//! How long an actor works without letting the others of its thread work.

use std::pin::Pin;
use std::task::{Context as TaskContext, Poll};

use actix::{Actor, ActorFuture, AsyncContext, Context};

use super::turn::{Turn, Turns};

/// Turns that an actor takes before the others' turn comes. An actor drains its mailbox at every wake-up; with thousands
/// of turns in it, each would have left the processor's caches before the next actor gets it.
pub const TURNS_MAX: usize = 64;

/// An actor that looks after other things between two batches, as it does when its mailbox is empty: what it has done is
/// passed on then.
pub trait LooksRound: Actor<Context = Context<Self>> {
    fn look_round(&mut self, ctx: &mut Context<Self>, task: &mut TaskContext<'_>);
}

/// Counts the turns that an actor has taken since it last gave way.
#[derive(Debug, Default)]
pub struct Batch(usize);

impl Batch {
    /// So many more. After the last of a batch, which is then said, the actor takes no message until the others have had
    /// their turn.
    pub fn count<A: LooksRound>(&mut self, turns: usize, ctx: &mut Context<A>) -> bool {
        self.0 += turns;
        let is_full = self.0 >= TURNS_MAX;
        if is_full {
            self.0 = 0;
            ctx.wait(GiveWay { is_done: false });
        }
        is_full
    }
}

/// Turns that an actor has done and not passed on yet.
pub struct Outbox {
    turns: Turns,
    /// Turns in a message.
    most: usize,
    /// An empty one, whose place in memory is used again.
    spare: Turns,
}

impl Outbox {
    /// Of an actor on the same thread as those it sends to: they do nothing until it gives way.
    pub fn that_gathers() -> Self {
        Self { turns: Turns::new(), most: TURNS_MAX, spare: Turns::new() }
    }

    /// Of an actor on a thread of its own: its next turn may block it.
    pub fn at_once() -> Self {
        Self { most: 1, ..Self::that_gathers() }
    }

    pub fn push(&mut self, turn: Turn) {
        self.turns.push(turn);
    }

    /// Whether there are so many that others should have them.
    pub fn is_full(&self) -> bool {
        self.turns.len() >= self.most
    }

    /// What is to be passed on, if there is something.
    pub fn take(&mut self) -> Option<Turns> {
        if self.turns.is_empty() {
            return None;
        }
        Some(std::mem::replace(&mut self.turns, std::mem::take(&mut self.spare)))
    }

    /// The place of turns that were taken out of their message may be used for the next.
    pub fn give(&mut self, emptied: Turns) {
        if emptied.capacity() > self.spare.capacity() {
            self.spare = emptied;
        }
    }
}

/// Ready when the thread has come round to this actor again.
struct GiveWay {
    is_done: bool,
}

impl<A: LooksRound> ActorFuture<A> for GiveWay {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, actor: &mut A, ctx: &mut A::Context, task: &mut TaskContext<'_>) -> Poll<()> {
        if self.is_done {
            // With a mailbox that is never empty nothing else of the actor would be polled.
            actor.look_round(ctx, task);
            return Poll::Ready(());
        }
        self.is_done = true;
        task.waker().wake_by_ref();
        Poll::Pending
    }
}
