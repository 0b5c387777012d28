//! The messages of the ring and round it, one type each. Those of the ring carry all turns that an actor has done since
//! it last passed some on: what a message costs is shared by them.

use actix::Message;

use super::submission::{RunId, Submitted};
use super::turn::{TurnBody, Turns};
use prime_protocol::Role;

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

/// A turn that nobody holds any more: its holder died, or gave it up with an error.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Returned(pub Box<TurnBody>);

/// An agent's actor has died.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Died {
    pub role: Role,
    /// Which of the role's successive actors.
    pub generation: u32,
    pub reason: String,
}

/// The next actor of the ring was replaced.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Rewire<M: Message<Result = ()> + Send>(pub actix::Recipient<M>);

/// A run to carry out.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Submit(pub Box<Submitted>);

/// A run to end with what is known.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Cancel(pub RunId);

/// A run that was held may go on.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Release(pub RunId);

/// All runs, waiting ones too, are to end with what is known.
#[derive(Message)]
#[rtype(result = "()")]
pub struct Halt;
