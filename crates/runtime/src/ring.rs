//! The three agents of a cell, wired against the direction of the ring, and their replacement.

use std::sync::Arc;

use actix::{Addr, Recipient};

use super::agent::Agent;
use super::cell::CellPlan;
use super::death_watch::DeathWatch;
use super::messages::{Decide, Decided, Died, DropAgents, Judge, Propose, Rewire};
use super::outbox::Outbox;
use super::turn::Turn;
use super::work::{Coordinate, Execute, Verify, Work};
use prime_protocol::Role;
use prime_roles::AgentSetId;

/// How the agents reach their Supervisor.
#[derive(Clone)]
pub struct SupervisorLink {
    pub decided: Recipient<Decided>,
    pub died: Recipient<Died>,
}

pub struct Ring {
    link: SupervisorLink,
    executor: Addr<Agent<Execute>>,
    verifier: Addr<Agent<Verify>>,
    coordinator: Addr<Agent<Coordinate>>,
    /// Turns for the Executor that were not sent yet.
    proposals: Outbox<Propose>,
    generations: [u32; 3],
}

fn start<W: Work>(
    plan: &CellPlan,
    link: &SupervisorLink,
    generation: u32,
    downstream: Recipient<W::Out>,
) -> Addr<Agent<W>> {
    let (table, died, out) = (Arc::clone(&plan.table), link.died.clone(), plan.outbox(downstream));

    let heartbeat = Arc::clone(&plan.threads[W::ROLE as usize].heartbeat);
    plan.start(W::ROLE, move || {
        // Made on the actor's own thread.
        let death_watch = DeathWatch::new(died, W::ROLE, generation);
        Agent::new(table, death_watch, heartbeat, out)
    })
}

impl Ring {
    pub fn start(plan: &CellPlan, link: SupervisorLink) -> Self {
        // Each actor needs the address of the next one in the ring.
        let coordinator = start::<Coordinate>(plan, &link, 0, link.decided.clone());
        let verifier = start::<Verify>(plan, &link, 0, coordinator.clone().recipient());
        let executor = start::<Execute>(plan, &link, 0, verifier.clone().recipient());

        let proposals = Outbox::batching(executor.clone().recipient());
        Self { link, executor, verifier, coordinator, proposals, generations: [0; 3] }
    }

    pub fn generation(&self, role: Role) -> u32 {
        self.generations[role as usize]
    }

    /// True if the role's actor is alive.
    pub fn is_connected(&self, role: Role) -> bool {
        match role {
            Role::Executor => self.executor.connected(),
            Role::Verifier => self.verifier.connected(),
            Role::Coordinator => self.coordinator.connected(),
        }
    }

    /// Sends a turn to the role. Turns for the Executor, which are most, are gathered until
    /// [`Ring::flush`].
    pub fn send(&mut self, role: Role, turn: Turn) {
        match role {
            Role::Executor => self.proposals.push(turn),
            Role::Verifier => self.verifier.do_send(Judge(vec![turn])),
            Role::Coordinator => self.coordinator.do_send(Decide(vec![turn])),
        }
    }

    pub fn flush(&mut self) {
        self.proposals.flush();
    }

    /// Tells the actors that no run uses the agents of this set.
    pub fn drop_agents(&self, set: AgentSetId) {
        self.executor.do_send(DropAgents(set));
        self.verifier.do_send(DropAgents(set));
        self.coordinator.do_send(DropAgents(set));
    }

    /// Reuses the allocation of a message that was emptied.
    pub fn recycle(&mut self, emptied: Vec<Turn>) {
        self.proposals.recycle(emptied);
    }

    /// Starts a new actor with a new agent for a role, and tells the preceding actor of the ring.
    pub fn replace(&mut self, role: Role, plan: &CellPlan) {
        // From now on the old actor's death is ignored.
        self.generations[role as usize] += 1;
        let generation = self.generation(role);

        match role {
            Role::Executor => {
                self.executor = start::<Execute>(
                    plan,
                    &self.link,
                    generation,
                    self.verifier.clone().recipient(),
                );
                self.proposals.redirect(self.executor.clone().recipient());
            }
            Role::Verifier => {
                self.verifier = start::<Verify>(
                    plan,
                    &self.link,
                    generation,
                    self.coordinator.clone().recipient(),
                );
                self.executor.do_send(Rewire(self.verifier.clone().recipient::<Judge>()));
            }
            Role::Coordinator => {
                self.coordinator =
                    start::<Coordinate>(plan, &self.link, generation, self.link.decided.clone());
                self.verifier.do_send(Rewire(self.coordinator.clone().recipient::<Decide>()));
            }
        }
    }
}
