//! The runtime: its cells, and which of them takes a run.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use actix::{Actor, Addr, Arbiter};
use tokio::sync::oneshot;

use super::cell::{CellPlan, Placement, arbiters, of_agents};
use super::messages::{Halt, Submit};
use super::submission::{Load, RunHandle, Submission, Submitted};
use super::supervision::RestartLimit;
use super::supervisor::Supervisor;
use crate::agents::AgentSet;

/// What a runtime is made from.
#[derive(Clone)]
pub struct RuntimePlan {
    pub cells: usize,
    pub placement: Placement,
    pub restart_limit: RestartLimit,
    /// Turns of live runs in a cell at most.
    pub in_flight_max: u32,
}

struct Cell {
    supervisor: Addr<Supervisor>,
    /// Runs handed in and not over.
    load: Arc<AtomicUsize>,
    /// The Supervisor's, then those that agents have for themselves.
    arbiters: Vec<Arbiter>,
}

/// The cells of a process. Lives within an actix system.
pub struct Runtime {
    cells: Vec<Cell>,
    next_id: AtomicU64,
    agents: Arc<AgentSet>,
}

impl Runtime {
    /// Starts the cells. Must be called within an actix system.
    pub fn start(plan: &RuntimePlan, agents: AgentSet) -> Self {
        let agents = Arc::new(agents);
        let cells = (0..plan.cells.max(1))
            .map(|_| {
                let arbiters = arbiters(plan.placement);
                let cell = CellPlan {
                    agents: Arc::clone(&agents),
                    placement: plan.placement,
                    restart_limit: plan.restart_limit,
                    in_flight_max: plan.in_flight_max,
                    arbiters: of_agents(&arbiters),
                };
                let handle = arbiters[0].handle();
                let supervisor = Supervisor::start_in_arbiter(&handle, move |_| Supervisor::new(cell));
                Cell { supervisor, load: Arc::default(), arbiters }
            })
            .collect();
        Self { cells, next_id: AtomicU64::new(1), agents }
    }

    pub fn agents(&self) -> &AgentSet {
        &self.agents
    }

    /// Runs handed in and not over.
    pub fn load(&self) -> usize {
        self.cells.iter().map(|cell| cell.load.load(Ordering::Relaxed)).sum()
    }

    /// Hands a run to the cell with the fewest. Admission is the caller's business: nothing is refused here.
    pub fn submit(&self, submission: Submission) -> RunHandle {
        let cell = self
            .cells
            .iter()
            .min_by_key(|cell| cell.load.load(Ordering::Relaxed))
            .expect("invariant: a runtime has at least one cell");
        let id = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, outcome) = oneshot::channel();
        let submitted = Submitted { id, submission, reply, load: Load::on(&cell.load) };
        cell.supervisor.do_send(Submit(Box::new(submitted)));
        RunHandle { id, supervisor: cell.supervisor.clone(), outcome }
    }

    /// Ends every live run with what is known.
    pub fn halt(&self) {
        self.cells.iter().for_each(|cell| cell.supervisor.do_send(Halt));
    }
}

impl Runtime {
    /// Ends the cells' threads and waits for them: what they held is given back when this returns. An agent that blocks
    /// its thread holds it up.
    pub fn close(mut self) {
        for arbiter in std::mem::take(&mut self.cells).into_iter().flat_map(|cell| cell.arbiters) {
            arbiter.stop();
            // A panic of the thread was printed.
            drop(arbiter.join());
        }
    }
}

impl Drop for Runtime {
    /// Ends the cells' threads. Whoever waits for a run holds the runtime.
    fn drop(&mut self) {
        for arbiter in self.cells.iter().flat_map(|cell| &cell.arbiters) {
            arbiter.stop();
        }
    }
}
