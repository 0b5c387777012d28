//! The runs of one cell as seen from outside its thread: enough to end a run, or to move it, while
//! an agent blocks the thread.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Duration;

use futures::FutureExt;
use futures::channel::oneshot as signal;
use futures::future::Shared;
use rustc_hash::FxHashMap;
use tokio::sync::oneshot;
use tokio::time::Instant;
use tracing::Span;

use super::observer::{Event, Observer};
use super::run_span;
use super::submission::{Load, RunId, Submission};
use prime_protocol::{Ending, Outcome, Role, TurnId};
use prime_roles::live::Listener;
use prime_roles::{AgentError, AgentSetId, Agents};

/// A run that has not ended.
pub struct Entry {
    /// `None` once its Supervisor has started it.
    submission: Option<Box<Submission>>,
    agents: Arc<dyn Agents>,
    /// `None` until it has started.
    clock: Option<RunClock>,
    /// How the run is to end, if its owner has asked for that.
    asked_to_end: Option<Ending>,
    /// `None` once it has started, or if nobody listens to spans.
    span: Option<Arc<Span>>,
    observer: Arc<dyn Observer>,
    /// The last round that is over; 0 before the first one ends.
    rounds_over: u32,
    /// Tells the turns of the open round that wait for an agent when it is over. `None` until one
    /// waits.
    waiters: Option<Waiters>,
    /// What a turn that waits for an agent has met last.
    setback: Option<String>,
    reply: oneshot::Sender<Outcome>,
    load: Load,
}

/// Resolves when nobody needs the turns of a round any more, however that came about.
pub type RoundOver = Shared<signal::Receiver<()>>;

/// Nothing is ever sent: dropping this, on purpose or with the run's entry, ends the waiting.
struct Waiters {
    _sender: signal::Sender<()>,
    over: RoundOver,
}

#[derive(Clone, Copy)]
struct RunClock {
    started: Instant,
    elapsed_before_ms: u64,
    deadline: Option<Instant>,
}

/// An agent that blocks its thread.
#[derive(Clone, Debug)]
pub struct Hang {
    pub role: Role,
    /// The name of its implementation.
    pub agent: String,
    pub since: Instant,
    /// When the watchdog found it: runs that started later use another agent.
    pub found: Instant,
}

#[derive(Default)]
struct Runs {
    by_id: FxHashMap<RunId, Entry>,
    hang: Option<Hang>,
    is_closed: bool,
}

#[derive(Default)]
pub struct RunTable {
    runs: Mutex<Runs>,
    /// Held by the Supervisor or the watchdog while it lets the runs' observers see events.
    /// Contains the runs that the watchdog has ended and the Supervisor has not forgotten yet.
    gate: Mutex<Vec<RunId>>,
}

impl Entry {
    pub fn new(
        submission: Submission,
        agents: Arc<dyn Agents>,
        reply: oneshot::Sender<Outcome>,
        load: Load,
    ) -> Self {
        let (observer, span) = (Arc::clone(&submission.observer), run_span::of_run(&submission));
        let submission = Some(Box::new(submission));
        Self {
            submission,
            agents,
            clock: None,
            asked_to_end: None,
            span,
            observer,
            rounds_over: 0,
            waiters: None,
            setback: None,
            reply,
            load,
        }
    }

    /// Turns of the run that has not started.
    pub fn fanout(&self) -> u32 {
        self.submission.as_ref().map_or(0, |submission| submission.plan.fanout)
    }

    /// Counts the run towards another cell.
    pub fn move_to(&mut self, load: Load) {
        self.load = load;
    }

    /// Sends the outcome to the run's owner.
    pub fn reply(self, outcome: Outcome) {
        // Its turns are dropped whether or not anybody listens.
        drop(self.waiters);
        // Before the outcome: the owner of the outcome must find room for its next run.
        drop(self.load);
        // The handle may have been dropped.
        drop(self.reply.send(outcome));
    }

    /// Ends a run whose Supervisor cannot.
    fn end(self, ending: Ending, now: Instant) {
        let elapsed_ms = self.clock.map_or(0, |clock| {
            let here = now.saturating_duration_since(clock.started).as_millis();
            u64::try_from(here).unwrap_or(u64::MAX).saturating_add(clock.elapsed_before_ms)
        });

        self.observer.observe(&Event::Stopped { ending: &ending, elapsed_ms });

        let outcome = Outcome::without_answer(ending);
        self.observer.observe(&Event::Finished(&outcome));
        self.reply(outcome);
    }
}

impl Waiters {
    fn new() -> Self {
        let (sender, over) = signal::channel();
        Self { _sender: sender, over: over.shared() }
    }
}

impl Hang {
    pub fn new(role: Role, agents: &dyn Agents, since: Instant, found: Instant) -> Self {
        Self { role, agent: agents.name(role).to_owned(), since, found }
    }

    pub fn lasts(&self, now: Instant) -> Duration {
        now.saturating_duration_since(self.since)
    }

    /// The end of a run that the agent holds up.
    pub fn ending(&self, now: Instant) -> Ending {
        let Self { role, agent, .. } = self;
        Ending::AgentFailed(format!(
            "the {role} `{agent}` has blocked its thread for {} s",
            self.lasts(now).as_secs()
        ))
    }
}

/// A failure as the result of a run that a limit ends tells it.
pub fn last_failure(role: Role, error: &AgentError) -> String {
    format!("the {role} failed last: {error}")
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl RunTable {
    /// Adds a run that is sent to the cell. A closed table drops it, so that its owner gets no
    /// outcome.
    pub fn insert(&self, id: RunId, entry: Entry) {
        let mut runs = locked(&self.runs);
        if !runs.is_closed {
            runs.by_id.insert(id, entry);
        }
    }

    /// Takes the submission out when the run starts; `None` if it was moved or ended meanwhile.
    pub fn start(
        &self,
        id: RunId,
        now: Instant,
    ) -> Option<(Submission, AgentSetId, Option<Arc<Span>>)> {
        let mut runs = locked(&self.runs);
        let entry = runs.by_id.get_mut(&id)?;
        let submission = *entry.submission.take()?;

        let elapsed_before_ms =
            submission.suspended.as_ref().map_or(0, |suspended| suspended.elapsed_ms);
        let wall =
            Duration::from_millis(submission.plan.budget.wall_ms.saturating_sub(elapsed_before_ms));
        // `None` on overflow: an unlimited budget is `u64::MAX` ms.
        entry.clock =
            Some(RunClock { started: now, elapsed_before_ms, deadline: now.checked_add(wall) });

        Some((submission, entry.agents.id(), entry.span.take()))
    }

    /// The agents of a run that has not ended.
    pub fn agents_of(&self, id: RunId) -> Option<Arc<dyn Agents>> {
        locked(&self.runs).by_id.get(&id).map(|entry| Arc::clone(&entry.agents))
    }

    /// The set of this id, if a run has its agents.
    pub fn agent_set(&self, id: AgentSetId) -> Option<Arc<dyn Agents>> {
        locked(&self.runs)
            .by_id
            .values()
            .find(|entry| entry.agents.id() == id)
            .map(|entry| Arc::clone(&entry.agents))
    }

    /// What a turn that has to wait for its agent waits for as well; `None` if its round is over.
    pub fn round_over(&self, id: RunId, round: u32) -> Option<RoundOver> {
        let mut runs = locked(&self.runs);
        let entry = runs.by_id.get_mut(&id).filter(|entry| round > entry.rounds_over)?;
        Some(entry.waiters.get_or_insert_with(Waiters::new).over.clone())
    }

    /// Ends the waiting of a round's turns; the run continues without them.
    pub fn close_round(&self, id: RunId, round: u32) {
        let waiters = locked(&self.runs).by_id.get_mut(&id).and_then(|entry| {
            (entry.rounds_over, entry.setback) = (round, None);
            entry.waiters.take()
        });
        // Unlocked first: it wakes their agents.
        drop(waiters);
    }

    /// Keeps what a waiting turn of the run has met; `None` once it has overcome it.
    pub fn set_setback(&self, id: RunId, setback: Option<String>) {
        if let Some(entry) = locked(&self.runs).by_id.get_mut(&id) {
            entry.setback = setback;
        }
    }

    pub fn setback(&self, id: RunId) -> Option<String> {
        locked(&self.runs).by_id.get(&id)?.setback.clone()
    }

    /// The listener for what a model writes for a turn, if there is one.
    pub fn listener(&self, id: RunId, turn: TurnId, role: Role) -> Option<Listener> {
        // Observers may call back, so that the runs must not be locked then.
        let observer = locked(&self.runs).by_id.get(&id).map(|entry| Arc::clone(&entry.observer));
        observer?.listener(turn, role)
    }

    /// Removes a run that has ended.
    pub fn finish(&self, id: RunId) -> Option<Entry> {
        locked(&self.runs).by_id.remove(&id)
    }

    /// Notes that a run is to end, and how; the first ending stands. False if it is not here.
    pub fn end(&self, id: RunId, ending: &Ending) -> bool {
        let mut runs = locked(&self.runs);
        let entry = runs.by_id.get_mut(&id);
        entry.map(|entry| entry.asked_to_end.get_or_insert_with(|| ending.clone())).is_some()
    }

    pub fn contains(&self, id: RunId) -> bool {
        locked(&self.runs).by_id.contains_key(&id)
    }

    /// Notes that all runs are cancelled.
    pub fn end_all(&self) {
        locked(&self.runs).by_id.values_mut().for_each(|entry| {
            entry.asked_to_end.get_or_insert(Ending::Cancelled);
        });
    }

    pub fn is_empty(&self) -> bool {
        locked(&self.runs).by_id.is_empty()
    }

    /// Drops all runs: their owners get no outcome.
    pub fn close(&self) {
        let mut runs = locked(&self.runs);
        runs.is_closed = true;
        runs.by_id.clear();
    }

    /// Lets the Supervisor observe events; the guard contains runs that it must forget first.
    pub fn enter(&self) -> MutexGuard<'_, Vec<RunId>> {
        locked(&self.gate)
    }

    pub fn set_hang(&self, hang: Option<Hang>) {
        locked(&self.runs).hang = hang;
    }

    /// How a run that started at `started` ends if its time is up while an agent hangs.
    pub fn hang_ending(&self, started: Instant, now: Instant) -> Option<Ending> {
        let runs = locked(&self.runs);
        runs.hang.as_ref().filter(|hang| started <= hang.found).map(|hang| hang.ending(now))
    }

    /// Removes the runs that have not started, sorted by id.
    pub fn take_queued(&self) -> Vec<(RunId, Entry)> {
        let mut runs = locked(&self.runs);
        let mut queued: Vec<_> = runs
            .by_id
            .extract_if(|_, entry| entry.submission.is_some() && entry.asked_to_end.is_none())
            .collect();
        // In the order of submission, which ids follow.
        queued.sort_unstable_by_key(|(id, _)| *id);
        queued
    }

    /// Ends the runs that the hanging agent holds up and whose time is up, and those that are to
    /// end. Does nothing while the Supervisor works: then it does so itself.
    pub fn end_due(&self, now: Instant) {
        // The Supervisor holds the gate while it works. Waiting for it would delay the watchdog.
        let mut ended = match self.gate.try_lock() {
            Ok(ended) => ended,
            Err(TryLockError::Poisoned(ended)) => ended.into_inner(),
            Err(TryLockError::WouldBlock) => return,
        };

        let mut due: Vec<_> = {
            // Taken out first: observers may call back, so that the runs must not be locked then.
            let mut runs = locked(&self.runs);
            let Some(hang) = runs.hang.clone() else { return };
            let is_due = |entry: &Entry| {
                entry.asked_to_end.is_some()
                    || entry.clock.is_some_and(|clock| {
                        clock.started <= hang.found
                            && clock.deadline.is_some_and(|deadline| deadline <= now)
                    })
            };
            let ending =
                |entry: &Entry| entry.asked_to_end.clone().unwrap_or_else(|| hang.ending(now));
            let due = runs.by_id.extract_if(|_, entry| is_due(entry));
            due.map(|(id, entry)| (id, ending(&entry), entry)).collect()
        };

        due.sort_unstable_by_key(|(id, ..)| *id);
        for (id, ending, entry) in due {
            ended.push(id);
            entry.end(ending, now);
        }
    }
}
