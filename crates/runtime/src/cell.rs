//! What a runtime and its cells are made from, and how the actors of a cell share threads.

use std::sync::Arc;
use std::time::Duration;

use actix::{Actor, Addr, ArbiterHandle, Message, Recipient};

use super::heartbeat::Heartbeat;
use super::outbox::Outbox;
use super::restart_limit::RestartLimit;
use super::run_table::RunTable;
use super::turn::Turns;
use prime_protocol::Role;
use prime_roles::AgentSetId;

/// How the actors of a cell share threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All four on the cell's arbiter: a hop costs a queue operation.
    Shared,
    /// Each agent on its own arbiter: a hop wakes a thread, and agents compute in parallel.
    Own,
}

/// What a runtime is made from.
#[derive(Clone, PartialEq, Eq)]
pub struct RuntimePlan {
    /// Number of cells, at least 1.
    pub cells: usize,
    /// How the actors of a cell share threads.
    pub placement: Placement,
    /// The restarts that one actor may have.
    pub restart_limit: RestartLimit,
    /// Upper limit on the turns of live runs in a cell; a run that does not fit waits.
    pub in_flight_max: u32,
    /// How long an agent may block its thread before it is replaced; with `None`, no watchdog runs.
    pub hang_after: Option<Duration>,
}

/// Where an agent runs.
#[derive(Clone)]
pub struct AgentThread {
    pub arbiter: ArbiterHandle,
    pub heartbeat: Arc<Heartbeat>,
}

/// What a cell is made from.
pub struct CellPlan {
    /// The set of the runtime's default agents, which the cell keeps while no run uses them.
    pub kept: AgentSetId,
    pub runtime: RuntimePlan,
    pub threads: [AgentThread; 3],
    pub table: Arc<RunTable>,
}

impl CellPlan {
    /// Starts an agent's actor.
    pub fn start<A>(&self, role: Role, actor: impl FnOnce() -> A + Send + 'static) -> Addr<A>
    where
        A: Actor<Context = actix::Context<A>>,
    {
        match self.runtime.placement {
            Placement::Shared => actor().start(),
            Placement::Own => {
                A::start_in_arbiter(&self.threads[role as usize].arbiter, move |_| actor())
            }
        }
    }

    /// The outbox of an agent.
    pub fn outbox<M>(&self, to: Recipient<M>) -> Outbox<M>
    where
        M: Message<Result = ()> + From<Turns> + Send,
    {
        match self.runtime.placement {
            Placement::Shared => Outbox::batching(to),
            Placement::Own => Outbox::unbuffered(to),
        }
    }
}
