//! The places of runs that are executed, and the runs that wait for one: the highest priority comes
//! first, and waiting raises it, so that none waits forever.

use std::collections::{BTreeMap, HashMap};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll};

use tokio::sync::oneshot;
use tokio::time::Instant;

use super::limits::QueueLimits;

/// A run that wants to be executed.
#[derive(Clone, Debug)]
pub struct Wanted {
    /// Its owner, the name of a key.
    pub owner: String,
    /// The slug of its task.
    pub task: String,
    /// Its turns at a time.
    pub turns: u32,
    /// Higher ones come first.
    pub priority: i32,
    /// For how long it has been waiting already, in milliseconds.
    pub waited_ms: u64,
    /// True if an earlier process began it: such runs come before all others.
    pub has_begun: bool,
}

/// The place in the order: runs that have begun, then by the time since which a run would have
/// waited if each level of its priority were waiting time, then by arrival. Fixed on arrival,
/// because all runs age alike, and on the process's own clock, which never jumps.
type Rank = (bool, i64, u64);

/// How many runs have a place.
#[derive(Default)]
struct InUse {
    turns: u64,
    runs: u32,
    of_keys: HashMap<String, u32>,
    of_tasks: HashMap<String, u32>,
}

struct Waiter {
    wanted: Wanted,
    ready: oneshot::Sender<Place>,
}

#[derive(Default)]
struct State {
    limits: QueueLimits,
    in_use: InUse,
    waiting: BTreeMap<Rank, Waiter>,
    arrivals: u64,
}

/// The places of this node.
pub struct Places {
    state: Mutex<State>,
    started: Instant,
}

/// A run's place, until it is dropped.
pub struct Place {
    places: Arc<Places>,
    wanted: Wanted,
}

/// A run's turn: resolves to its place. A run that does not want it any more drops this.
pub struct Turn {
    places: Arc<Places>,
    rank: Rank,
    ready: oneshot::Receiver<Place>,
}

/// True if a limit, where 0 is none, admits one more.
fn admits(limit: u32, in_use: u32) -> bool {
    limit == 0 || in_use < limit
}

fn count(counts: &HashMap<String, u32>, name: &str) -> u32 {
    counts.get(name).copied().unwrap_or_default()
}

fn subtract(counts: &mut HashMap<String, u32>, name: &str) {
    if let Some(count) = counts.get_mut(name) {
        *count -= 1;
        // Keys come and go: the map holds only those with runs.
        if *count == 0 {
            counts.remove(name);
        }
    }
}

impl InUse {
    /// True if there is room for any run. A run wider than the limit goes alone.
    fn has_room(&self, limits: &QueueLimits, turns: u32) -> bool {
        let fits = self.turns == 0 || self.turns + u64::from(turns) <= limits.turns_max;
        fits && admits(limits.running_max, self.runs)
    }

    /// True if its key and its task may have one more.
    fn may_have(&self, limits: &QueueLimits, wanted: &Wanted) -> bool {
        admits(limits.of_key(&wanted.owner), count(&self.of_keys, &wanted.owner))
            && admits(limits.of_task(&wanted.task), count(&self.of_tasks, &wanted.task))
    }

    fn add(&mut self, wanted: &Wanted) {
        self.turns += u64::from(wanted.turns);
        self.runs += 1;
        *self.of_keys.entry(wanted.owner.clone()).or_default() += 1;
        *self.of_tasks.entry(wanted.task.clone()).or_default() += 1;
    }

    fn remove(&mut self, wanted: &Wanted) {
        self.turns -= u64::from(wanted.turns);
        self.runs -= 1;
        subtract(&mut self.of_keys, &wanted.owner);
        subtract(&mut self.of_tasks, &wanted.task);
    }
}

impl State {
    /// Gives the free places to those that wait, in their order.
    fn serve(&mut self) -> Vec<Waiter> {
        let mut served = Vec::new();
        for (rank, Waiter { wanted, .. }) in &self.waiting {
            // None passes a run that waits for room, or a wide one would wait forever.
            if !self.in_use.has_room(&self.limits, wanted.turns) {
                break;
            }
            // Others pass a run that waits for one of its own kind.
            if self.in_use.may_have(&self.limits, wanted) {
                self.in_use.add(wanted);
                served.push(*rank);
            }
        }
        served.iter().filter_map(|rank| self.waiting.remove(rank)).collect()
    }
}

impl Default for Places {
    fn default() -> Self {
        Self { state: Mutex::default(), started: Instant::now() }
    }
}

impl Places {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Sets the limits. Runs that are executed keep their places.
    pub fn limit(self: &Arc<Self>, limits: QueueLimits) {
        self.state().limits = limits;
        self.serve();
    }

    /// The turn of a run, which begins to wait for it now.
    pub fn enter(self: &Arc<Self>, wanted: Wanted) -> Turn {
        let (sender, ready) = oneshot::channel();
        let now_ms = signed(self.started.elapsed().as_millis());

        let mut state = self.state();
        state.arrivals += 1;
        let aging_ms = signed(u128::from(state.limits.aging_ms));
        let since_ms = now_ms
            .saturating_sub(signed(u128::from(wanted.waited_ms)))
            .saturating_sub(aging_ms.saturating_mul(wanted.priority.into()));
        let rank = (!wanted.has_begun, since_ms, state.arrivals);
        state.waiting.insert(rank, Waiter { wanted, ready: sender });
        drop(state);

        self.serve();
        Turn { places: Arc::clone(self), rank, ready }
    }

    fn serve(self: &Arc<Self>) {
        let served = self.state().serve();
        // Unlocked first: a place that nobody takes is given back here.
        for Waiter { wanted, ready } in served {
            drop(ready.send(Place { places: Arc::clone(self), wanted }));
        }
    }

    /// Runs that wait.
    #[cfg(test)]
    fn waiting(&self) -> usize {
        self.state().waiting.len()
    }
}

fn signed(number: u128) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

impl Future for Turn {
    type Output = Place;

    fn poll(mut self: Pin<&mut Self>, task: &mut Context<'_>) -> Poll<Place> {
        match Pin::new(&mut self.ready).poll(task) {
            Poll::Ready(Ok(place)) => Poll::Ready(place),
            // Its waiter is removed only with a place, or by this turn itself.
            Poll::Ready(Err(_)) | Poll::Pending => Poll::Pending,
        }
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        // A run that others waited behind may be gone now.
        if self.places.state().waiting.remove(&self.rank).is_some() {
            self.places.serve();
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.places.state().in_use.remove(&self.wanted);
        self.places.serve();
    }
}

#[cfg(test)]
#[path = "places_tests.rs"]
mod tests;
