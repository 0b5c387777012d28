//! The messages of the ring. A message that carries turns carries all that its sender has finished
//! since the last one, so that the turns share its cost.

use actix::{Message, Recipient};

use super::cell::AgentThread;
use super::submission::RunId;
use super::turn::Turns;
use prime_protocol::{Ending, Resolution, Role};
use prime_roles::AgentSetId;

macro_rules! ring_messages {
    ($($(#[$doc:meta])* $name:ident;)*) => { $(
        $(#[$doc])*
        #[derive(Message)]
        #[rtype(result = "()")]
        pub struct $name(pub Turns);

        impl From<Turns> for $name {
            fn from(turns: Turns) -> Self {
                Self(turns)
            }
        }
    )* };
}

ring_messages! {
    /// Supervisor to Executor.
    Propose;
    /// Executor to Verifier.
    Judge;
    /// Verifier to Coordinator.
    Decide;
    /// Coordinator to Supervisor.
    Decided;
}

/// An agent's actor has died.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Died {
    pub role: Role,
    /// Index of the actor among those of its role in this cell, from 0.
    pub generation: u32,
    /// The set of the agent at work, if there was one.
    pub agents: Option<AgentSetId>,
    pub reason: String,
}

/// This set's agents are now the default ones.
#[derive(Message)]
#[rtype(result = "()")]
pub struct KeepAgents(pub AgentSetId);

/// No run of the cell uses this set's agents any more.
#[derive(Clone, Copy, Message)]
#[rtype(result = "()")]
pub struct DropAgents(pub AgentSetId);

/// The role's agent blocks its thread: start another on this one.
#[derive(Message)]
#[rtype(result = "()")]
pub struct ReplaceThread {
    pub role: Role,
    pub thread: AgentThread,
}

/// The next actor of the ring was replaced.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Rewire<M: Message<Result = ()> + Send>(pub Recipient<M>);

/// Start a run of the cell's table.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Submit {
    pub run: RunId,
    pub fanout: u32,
}

/// End a run with the best answer so far.
#[derive(Message)]
#[rtype(result = "()")]
pub struct End {
    pub run: RunId,
    pub ending: Ending,
}

/// Carry out what was decided about a step of a run that waits for approval.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Approve(pub RunId, pub Box<Resolution>);

/// Resume a run that waited for its observer.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Release(pub RunId);

/// End all runs, queued ones too, with the best answer so far.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Halt;
