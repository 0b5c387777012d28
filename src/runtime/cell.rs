//! A cell: one Supervisor with its ring of three agents, and how the four share threads.

use std::sync::Arc;

use actix::{Actor, Addr, Arbiter, ArbiterHandle};

use super::agent::{Agent, Coordinate, Execute, Verify};
use super::batch::Outbox;
use super::messages::{Decide, Decided, Judge, Rewire};
use super::supervision::{RestartLimit, Watch};
use super::supervisor::Supervisor;
use crate::agents::AgentSet;
use prime_protocol::Role;

/// How the actors of a cell share threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Placement {
    /// All four on the cell's arbiter: a hop costs a queue operation.
    Shared,
    /// Each agent on an arbiter of its own: a hop wakes a thread, agents compute side by side.
    Own,
}

impl Placement {
    /// Of an agent that is placed so.
    fn outbox(self) -> Outbox {
        match self {
            Self::Shared => Outbox::that_gathers(),
            Self::Own => Outbox::at_once(),
        }
    }
}

/// What a cell is made from.
#[derive(Clone)]
pub struct CellPlan {
    pub agents: Arc<AgentSet>,
    pub placement: Placement,
    pub restart_limit: RestartLimit,
    /// Turns of live runs at most; a run that does not fit waits.
    pub in_flight_max: u32,
    /// The arbiters of the three agents; the Supervisor has the cell's own.
    pub(super) arbiters: [ArbiterHandle; 3],
}

impl CellPlan {
    fn start<A>(&self, role: Role, actor: impl FnOnce() -> A + Send + 'static) -> Addr<A>
    where
        A: Actor<Context = actix::Context<A>>,
    {
        match self.placement {
            Placement::Shared => actor().start(),
            Placement::Own => A::start_in_arbiter(&self.arbiters[role as usize], move |_| actor()),
        }
    }
}

/// The arbiters of one cell: the first is the Supervisor's, and everybody's where there is no other.
pub(super) fn arbiters(placement: Placement) -> Vec<Arbiter> {
    let count = match placement {
        Placement::Shared => 1,
        Placement::Own => 1 + Role::ALL.len(),
    };
    (0..count).map(|_| Arbiter::new()).collect()
}

/// Of these, the agents'.
pub(super) fn of_agents(arbiters: &[Arbiter]) -> [ArbiterHandle; 3] {
    Role::ALL.map(|role| arbiters[(1 + role as usize) % arbiters.len()].handle())
}

/// The three agents of a cell, wired from the sink up.
pub struct Ring {
    pub executor: Addr<Agent<Execute>>,
    pub verifier: Addr<Agent<Verify>>,
    pub coordinator: Addr<Agent<Coordinate>>,
    generations: [u32; 3],
}

fn coordinator(plan: &CellPlan, home: &Addr<Supervisor>, generation: u32) -> Addr<Agent<Coordinate>> {
    let (agents, placement, home) = (Arc::clone(&plan.agents), plan.placement, home.clone());
    plan.start(Role::Coordinator, move || {
        let decided = home.clone().recipient::<Decided>();
        let watch = Watch::new(home, Role::Coordinator, generation);
        Agent::new(move || Coordinate(agents.coordinator()), decided, watch, placement.outbox())
    })
}

fn verifier(
    plan: &CellPlan,
    home: &Addr<Supervisor>,
    generation: u32,
    coordinator: &Addr<Agent<Coordinate>>,
) -> Addr<Agent<Verify>> {
    let (agents, placement, home) = (Arc::clone(&plan.agents), plan.placement, home.clone());
    let decide = coordinator.clone().recipient::<Decide>();
    plan.start(Role::Verifier, move || {
        let watch = Watch::new(home, Role::Verifier, generation);
        Agent::new(move || Verify(agents.verifier()), decide, watch, placement.outbox())
    })
}

fn executor(
    plan: &CellPlan,
    home: &Addr<Supervisor>,
    generation: u32,
    verifier: &Addr<Agent<Verify>>,
) -> Addr<Agent<Execute>> {
    let (agents, placement, home) = (Arc::clone(&plan.agents), plan.placement, home.clone());
    let judge = verifier.clone().recipient::<Judge>();
    plan.start(Role::Executor, move || {
        let watch = Watch::new(home, Role::Executor, generation);
        Agent::new(move || Execute(agents.executor()), judge, watch, placement.outbox())
    })
}

impl Ring {
    pub fn build(plan: &CellPlan, home: &Addr<Supervisor>) -> Self {
        let coordinator = coordinator(plan, home, 0);
        let verifier = verifier(plan, home, 0, &coordinator);
        let executor = executor(plan, home, 0, &verifier);
        Self { executor, verifier, coordinator, generations: [0; 3] }
    }

    pub fn generation(&self, role: Role) -> u32 {
        self.generations[role as usize]
    }

    pub fn is_connected(&self, role: Role) -> bool {
        match role {
            Role::Executor => self.executor.connected(),
            Role::Verifier => self.verifier.connected(),
            Role::Coordinator => self.coordinator.connected(),
        }
    }

    /// Starts a new actor for a role, with a new agent, and tells the one before it in the ring.
    pub fn replace(&mut self, role: Role, plan: &CellPlan, home: &Addr<Supervisor>) {
        self.generations[role as usize] += 1;
        let generation = self.generation(role);
        match role {
            Role::Executor => self.executor = executor(plan, home, generation, &self.verifier),
            Role::Verifier => {
                self.verifier = verifier(plan, home, generation, &self.coordinator);
                self.executor.do_send(Rewire(self.verifier.clone().recipient::<Judge>()));
            }
            Role::Coordinator => {
                self.coordinator = coordinator(plan, home, generation);
                self.verifier.do_send(Rewire(self.coordinator.clone().recipient::<Decide>()));
            }
        }
    }
}
