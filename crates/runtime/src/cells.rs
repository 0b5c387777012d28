//! The cells of a runtime: which of them takes a run, and what replaces one whose agent hangs.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use actix::{Actor, Addr, Arbiter};
use tokio::sync::oneshot;
use tokio::time::Instant;

use super::cell::{AgentThread, CellPlan, Placement, RuntimePlan};
use super::heartbeat::Heartbeat;
use super::messages::{Approve, End, Halt, KeepAgents, ReplaceThread, Submit};
use super::run_table::{Entry, Hang, RunTable};
use super::sighting::{Change, Sighting};
use super::submission::{Load, RunId, Submission};
use super::supervisor::Supervisor;
use prime_protocol::{Ending, Outcome, Resolution, Role};
use prime_roles::{AgentSetId, Agents};

/// An arbiter and its heartbeat.
struct Thread {
    arbiter: Arbiter,
    heartbeat: Arc<Heartbeat>,
    sighting: Sighting,
}

struct Cell {
    index: usize,
    supervisor: Addr<Supervisor>,
    table: Arc<RunTable>,
    /// Submitted runs that have not ended.
    load: Arc<AtomicUsize>,
    /// The Supervisor's thread, then those of agents that do not share it.
    threads: Vec<Thread>,
    /// Threads of agents that were replaced because they hung.
    abandoned: Vec<Thread>,
}

/// Agents that block their thread: number now, and in total since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Hangs {
    /// Agents that block their thread now.
    pub now: u64,
    /// Agents that have blocked their thread since the start.
    pub total: u64,
}

impl std::iter::Sum for Hangs {
    fn sum<I: Iterator<Item = Self>>(hangs: I) -> Self {
        hangs.fold(Self::default(), |sum, hangs| Self {
            now: sum.now + hangs.now,
            total: sum.total + hangs.total,
        })
    }
}

#[derive(Default)]
struct State {
    cells: Vec<Cell>,
    /// Cells that take no more runs because an agent has blocked the Supervisor's thread.
    retired: Vec<Cell>,
    hangs_total: u64,
}

pub struct Cells {
    state: Mutex<State>,
    plan: RuntimePlan,
    /// The default agents, for runs that are submitted without agents of their own.
    agents: Mutex<Arc<dyn Agents>>,
    next_id: AtomicU64,
}

impl Thread {
    fn start() -> Self {
        Self { arbiter: Arbiter::new(), heartbeat: Arc::default(), sighting: Sighting::default() }
    }

    fn for_agents(&self) -> AgentThread {
        AgentThread { arbiter: self.arbiter.handle(), heartbeat: Arc::clone(&self.heartbeat) }
    }

    fn look(&mut self, now: Instant, limit: Duration) -> Option<Change> {
        self.sighting.update(self.heartbeat.read(), now, limit)
    }
}

impl Cell {
    fn start(index: usize, plan: &RuntimePlan, kept: AgentSetId) -> Self {
        let count = match plan.placement {
            Placement::Shared => 1,
            Placement::Own => 1 + Role::ALL.len(),
        };
        let threads: Vec<_> = (0..count).map(|_| Thread::start()).collect();

        let table = Arc::<RunTable>::default();
        let cell = CellPlan {
            kept,
            runtime: plan.clone(),
            // With one thread the index wraps to 0: the agents share the Supervisor's.
            threads: Role::ALL.map(|role| threads[(1 + role as usize) % count].for_agents()),
            table: Arc::clone(&table),
        };

        let supervisor = Supervisor::start_in_arbiter(&threads[0].arbiter.handle(), move |_| {
            Supervisor::new(cell)
        });
        Self { index, supervisor, table, load: Arc::default(), threads, abandoned: Vec::new() }
    }

    fn accept(&self, run: RunId, entry: Entry) {
        let fanout = entry.fanout();
        self.table.insert(run, entry);
        self.supervisor.do_send(Submit { run, fanout });
    }

    /// True if an agent blocks the Supervisor's thread.
    fn is_blocked(&self) -> bool {
        self.threads[0].sighting.is_hung()
    }

    fn hung_threads(&self) -> usize {
        self.threads
            .iter()
            .chain(&self.abandoned)
            .filter(|thread| thread.sighting.is_hung())
            .count()
    }

    fn stop(&self) {
        for thread in self.threads.iter().chain(&self.abandoned) {
            thread.arbiter.stop();
            if thread.sighting.is_hung() {
                // Its Supervisor may never get to close the table, and owners would wait forever.
                self.table.close();
            }
        }
    }

    /// Looks at all threads, and replaces those of hanging agents unless the Supervisor shares
    /// them. Returns how many agents were found hanging.
    fn look(&mut self, now: Instant, limit: Duration, default: &Arc<dyn Agents>) -> u64 {
        for thread in &mut self.abandoned {
            thread.look(now, limit);
        }
        self.abandoned.retain(|thread| thread.sighting.is_hung());

        // Collected first: replacing a thread changes the list.
        let threads = self.threads.iter_mut().enumerate();
        let changes: Vec<_> = threads
            .filter_map(|(index, thread)| thread.look(now, limit).map(|change| (index, change)))
            .collect();

        let mut found = 0;
        for (index, change) in changes {
            let Change::Hung { role, since } = change else { continue };

            found += 1;
            // The run whose agents hang may have ended meanwhile; then the default's name has to
            // do.
            let agents = self.table.agent_set(self.threads[index].heartbeat.agents());
            let hang = Hang::new(role, agents.as_ref().unwrap_or(default).as_ref(), since, now);
            let (agent, blocked_s) = (&hang.agent, hang.lasts(now).as_secs());
            tracing::error!(
                cell = self.index,
                %role,
                agent,
                blocked_s,
                "an agent blocks its thread and is replaced"
            );

            self.table.set_hang(Some(hang));
            // Thread 0 is the Supervisor's: `Cells::look` replaces the whole cell.
            if index > 0 {
                self.replace_thread(role);
            }
        }

        if self.hung_threads() == 0 {
            self.table.set_hang(None);
        }

        found
    }

    /// Gives the role a new thread; the hanging agent keeps the old one.
    fn replace_thread(&mut self, role: Role) {
        let thread = Thread::start();
        self.supervisor.do_send(ReplaceThread { role, thread: thread.for_agents() });
        let old = std::mem::replace(&mut self.threads[1 + role as usize], thread);

        // Once the agent returns, the turns that wait in its mailbox go back to the Supervisor.
        old.arbiter.stop();
        self.abandoned.push(old);
    }
}

impl Cells {
    /// Must be called within an actix system.
    pub fn start(plan: &RuntimePlan, agents: Arc<dyn Agents>) -> Self {
        let cells =
            (0..plan.cells.max(1)).map(|index| Cell::start(index, plan, agents.id())).collect();
        let state = Mutex::new(State { cells, ..State::default() });
        Self { state, plan: plan.clone(), agents: Mutex::new(agents), next_id: AtomicU64::new(1) }
    }

    pub fn plan(&self) -> &RuntimePlan {
        &self.plan
    }

    pub fn agents(&self) -> Arc<dyn Agents> {
        Arc::clone(&self.agents.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Replaces the default agents for runs that are submitted from now on.
    pub fn replace_agents(&self, agents: Arc<dyn Agents>) {
        let state = self.state();
        for cell in state.all() {
            cell.supervisor.do_send(KeepAgents(agents.id()));
        }

        let old = std::mem::replace(
            &mut *self.agents.lock().unwrap_or_else(PoisonError::into_inner),
            agents,
        );

        // Unlocked first: agents may end processes and engines when they are dropped.
        drop(state);
        drop(old);
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Submitted runs that have not ended.
    pub fn load(&self) -> usize {
        self.state().all().map(|cell| cell.load.load(Ordering::Relaxed)).sum()
    }

    pub fn hangs(&self) -> Hangs {
        let state = self.state();
        Hangs {
            now: state.all().map(Cell::hung_threads).sum::<usize>() as u64,
            total: state.hangs_total,
        }
    }

    pub fn submit(
        &self,
        submission: Submission,
        agents: Arc<dyn Agents>,
    ) -> (RunId, oneshot::Receiver<Outcome>) {
        let run = self.next_id.fetch_add(1, Ordering::Relaxed);
        let (reply, outcome) = oneshot::channel();

        let state = self.state();
        // Locked until the run is in the cell's table: the watchdog must not retire the cell in
        // between.
        let cell = state.least_loaded();
        cell.accept(run, Entry::new(submission, agents, reply, Load::on(&cell.load)));
        (run, outcome)
    }

    pub fn end(&self, run: RunId, ending: Ending) {
        if let Some(cell) = self.state().all().find(|cell| cell.table.end(run, &ending)) {
            cell.supervisor.do_send(End { run, ending });
        }
    }

    pub fn approve(&self, run: RunId, resolution: Resolution) {
        if let Some(cell) = self.state().all().find(|cell| cell.table.contains(run)) {
            cell.supervisor.do_send(Approve(run, Box::new(resolution)));
        }
    }

    pub fn halt(&self) {
        for cell in self.state().all() {
            cell.table.end_all();
            cell.supervisor.do_send(Halt);
        }
    }

    /// Stops all threads.
    pub fn stop(&self) {
        self.state().all().for_each(Cell::stop);
    }

    /// Stops all threads and joins those that no agent is known to block.
    pub fn close(&self) {
        self.stop();
        let state = std::mem::take(&mut *self.state());

        for thread in state.cells.into_iter().chain(state.retired).flat_map(|cell| cell.threads) {
            if !thread.sighting.is_hung() {
                // The panic hook has reported a thread that panicked.
                drop(thread.arbiter.join());
            }
        }
    }

    /// Looks for agents that have blocked their thread for `limit`, reports and replaces them, and
    /// ends the runs that they hold up and whose time is up. Must be called within an actix system.
    pub fn look(&self, now: Instant, limit: Duration) {
        let mut state = self.state();
        // Read under the lock that `replace_agents` holds: a new cell must keep the present ones.
        let agents = self.agents();

        let State { cells, retired, hangs_total } = &mut *state;
        // A retired cell lives until its agent returns and its last run has ended.
        for cell in retired.iter_mut() {
            *hangs_total += cell.look(now, limit, &agents);
            if cell.table.is_empty() && !cell.is_blocked() {
                cell.stop();
            }
        }
        retired.retain(|cell| cell.is_blocked() || !cell.table.is_empty());

        let mut queued = Vec::new();
        for cell in cells.iter_mut() {
            *hangs_total += cell.look(now, limit, &agents);
            if cell.is_blocked() {
                // Runs that have not started move to other cells; started ones are bound to the
                // blocked thread.
                let new = Cell::start(cell.index, &self.plan, agents.id());
                let old = std::mem::replace(cell, new);
                queued.extend(old.table.take_queued());
                retired.push(old);
            }
        }

        for (run, mut entry) in queued {
            let cell = state.least_loaded();
            entry.move_to(Load::on(&cell.load));
            cell.accept(run, entry);
        }

        let tables: Vec<_> = state.all().map(|cell| Arc::clone(&cell.table)).collect();
        // Unlocked first: observers may call back.
        drop(state);
        tables.iter().for_each(|table| table.end_due(now));
    }

    #[cfg(test)]
    pub fn supervisor(&self, cell: usize) -> Addr<Supervisor> {
        self.state().cells[cell].supervisor.clone()
    }
}

impl State {
    fn all(&self) -> impl Iterator<Item = &Cell> {
        self.cells.iter().chain(&self.retired)
    }

    fn least_loaded(&self) -> &Cell {
        let cells = self.cells.iter();
        cells
            .min_by_key(|cell| cell.load.load(Ordering::Relaxed))
            .expect("invariant: a runtime has at least one cell")
    }
}
