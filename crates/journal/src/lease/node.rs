//! A node's side of the leases: what it holds, and what it asks of the store next.

use std::collections::{BTreeMap, BTreeSet};

use super::messages::{Answer, Epoch, NodeId, Request};

/// The durations of a node's leases.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timing {
    /// How long a node lives without a heartbeat.
    pub lease_ms: u64,
    /// From one heartbeat to the next; several fit into a lease.
    pub heartbeat_ms: u64,
}

/// What the node must do now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Effect<R> {
    /// Execute the run from its last committed event.
    Start(R),
    /// Stop executing the run: its lease is lost. Nothing of it can be committed any more.
    Stop(R),
}

/// A request that waits for its answer.
struct Pending<R> {
    request: Request<R>,
    /// The node's own clock when it was sent.
    sent_ms: u64,
    /// What the node held then.
    held: BTreeMap<R, Epoch>,
}

/// A node's state. One request at a time is on its way to the store; commits are independent of
/// them.
pub struct Node<R> {
    timing: Timing,
    /// Most runs to take; runs that the node accepts are in addition to them.
    capacity: usize,
    id: Option<NodeId>,
    held: BTreeMap<R, Epoch>,
    /// Runs in a commit that has not been answered yet.
    accepting: BTreeSet<R>,
    releasing: BTreeMap<R, Epoch>,
    pending: Option<Pending<R>>,
    /// When the last answered heartbeat was sent.
    heartbeat_ms: Option<u64>,
    /// When the first heartbeat of the present unbroken series was sent.
    steady_since_ms: Option<u64>,
    /// What the round of the last heartbeat has still to do.
    round: Round,
    is_draining: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Round {
    Reap,
    Take,
    Done,
}

impl<R: Clone + Ord> Node<R> {
    /// A node that is not registered yet. `capacity` is the most runs that it takes by itself.
    pub fn new(timing: Timing, capacity: usize) -> Self {
        Self {
            timing,
            capacity,
            id: None,
            held: BTreeMap::new(),
            accepting: BTreeSet::new(),
            releasing: BTreeMap::new(),
            pending: None,
            heartbeat_ms: None,
            steady_since_ms: None,
            round: Round::Done,
            is_draining: false,
        }
    }

    /// Its id in the store; `None` until it is registered, and after it was declared dead.
    pub fn id(&self) -> Option<NodeId> {
        self.id
    }

    /// The epoch to commit this run under, if the node holds it.
    pub fn epoch(&self, run: &R) -> Option<Epoch> {
        self.held.get(run).copied()
    }

    /// The runs that it holds, each with its epoch.
    pub fn held(&self) -> impl Iterator<Item = (&R, Epoch)> {
        self.held.iter().map(|(run, epoch)| (run, *epoch))
    }

    /// Returns whether it takes no more runs.
    pub fn is_draining(&self) -> bool {
        self.is_draining
    }

    /// The next request, unless one is on its way or nothing is due. `now_ms` is any clock of the
    /// node's own that never goes back.
    pub fn next(&mut self, now_ms: u64) -> Option<Request<R>> {
        if self.pending.is_some() {
            return None;
        }
        let request = self.due(now_ms)?;

        self.pending =
            Some(Pending { request: request.clone(), sent_ms: now_ms, held: self.held.clone() });
        Some(request)
    }

    fn due(&mut self, now_ms: u64) -> Option<Request<R>> {
        let Some(node) = self.id else { return (!self.is_draining).then_some(Request::Register) };

        // A node that is not known to be alive must not ask for more runs: heartbeats come first.
        if self
            .heartbeat_ms
            .is_none_or(|last| now_ms >= last.saturating_add(self.timing.heartbeat_ms))
        {
            return Some(Request::Heartbeat { node });
        }

        if !self.releasing.is_empty() {
            let runs = self.releasing.iter().map(|(run, epoch)| (run.clone(), *epoch)).collect();
            return Some(Request::Release { node, runs });
        }

        if self.round == Round::Reap {
            self.round = Round::Take;
            // After an outage of the store all leases have ended. The first node to come back must
            // not take everything.
            let lease_ms = self.timing.lease_ms;
            if self.steady_since_ms.is_some_and(|since| now_ms.saturating_sub(since) >= lease_ms) {
                return Some(Request::Reap);
            }
        }

        if self.round == Round::Take {
            self.round = Round::Done;
            let most = self.capacity.saturating_sub(self.held.len() + self.accepting.len());
            if most > 0 && !self.is_draining {
                return Some(Request::Take { node, most });
            }
        }
        None
    }

    /// When [`Node::next`] may have something to send without further events, on the node's own
    /// clock; `u64::MAX` if only an event can change that.
    pub fn wake_ms(&self) -> u64 {
        // A node that is dead and takes no more runs has nothing to send, ever.
        if self.id.is_none() && self.is_draining {
            return u64::MAX;
        }
        // Something is due now, whatever the clock says.
        if self.id.is_none() || !self.releasing.is_empty() || self.round != Round::Done {
            return 0;
        }
        self.heartbeat_ms.map_or(0, |last| last.saturating_add(self.timing.heartbeat_ms))
    }

    /// Most runs to take.
    pub fn capacity(&self) -> usize {
        self.capacity
    }

    /// Sets the most runs to take.
    pub fn set_capacity(&mut self, capacity: usize) {
        self.capacity = capacity;
    }

    /// Looks for free runs now instead of after the next heartbeat, because there may be some.
    pub fn look_for_runs(&mut self) {
        if self.round == Round::Done {
            self.round = Round::Take;
        }
    }

    /// The request may have been executed, now or later, or not: its connection was lost.
    pub fn unanswered(&mut self) {
        if let Some(Pending { request: Request::Heartbeat { .. }, .. }) = self.pending.take() {
            self.steady_since_ms = None;
        }
    }

    /// The store's answer to what [`Node::next`] returned last.
    pub fn answered(&mut self, answer: Answer<R>) -> Vec<Effect<R>> {
        let Some(pending) = self.pending.take() else { return Vec::new() };
        match (pending.request, answer) {
            (Request::Register, Answer::Registered(id)) => {
                self.id = Some(id);
                self.heartbeat_ms = Some(pending.sent_ms);
                self.steady_since_ms = Some(pending.sent_ms);
                self.round = Round::Take;
                Vec::new()
            }
            (_, Answer::Dead) => self.die(),

            (Request::Heartbeat { .. }, Answer::Alive(listed)) => {
                let overdue =
                    |last: u64| pending.sent_ms.saturating_sub(last) > self.timing.lease_ms;
                // A gap longer than a lease, as in an outage of the store, ends the series.
                if self.heartbeat_ms.is_none_or(overdue) {
                    self.steady_since_ms = None;
                }

                self.heartbeat_ms = Some(pending.sent_ms);
                self.steady_since_ms.get_or_insert(pending.sent_ms);

                self.round = Round::Reap;
                self.reconcile(&pending.held, &listed)
            }
            (Request::Take { .. }, Answer::Taken(runs)) => {
                runs.into_iter().flat_map(|(run, epoch)| self.receive(run, epoch)).collect()
            }
            (Request::Release { runs, .. }, Answer::Released) => {
                for (run, epoch) in runs {
                    if self.releasing.get(&run) == Some(&epoch) {
                        self.releasing.remove(&run);
                    }
                }
                Vec::new()
            }
            _ => Vec::new(),
        }
    }

    /// A lease that the store granted.
    fn receive(&mut self, run: R, epoch: Epoch) -> Vec<Effect<R>> {
        match self.held.get(&run) {
            Some(known) if *known >= epoch => return Vec::new(),
            // A taken run was free, so what the node had of it was lost before.
            Some(_) => {
                self.held.remove(&run);
                self.releasing.insert(run.clone(), epoch);
                return vec![Effect::Stop(run)];
            }
            None => {}
        }
        if self.is_draining {
            self.releasing.insert(run, epoch);
            return Vec::new();
        }
        self.releasing.remove(&run);
        self.held.insert(run.clone(), epoch);
        vec![Effect::Start(run)]
    }

    /// Compares the store's list with what was held when it was requested. Runs that came or went
    /// since then stay as the node knows them.
    fn reconcile(&mut self, before: &BTreeMap<R, Epoch>, listed: &[(R, Epoch)]) -> Vec<Effect<R>> {
        let listed: BTreeMap<&R, Epoch> = listed.iter().map(|(run, epoch)| (run, *epoch)).collect();
        let mut effects = Vec::new();
        for (run, epoch) in before {
            if listed.get(run) != Some(epoch) && self.held.get(run) == Some(epoch) {
                self.held.remove(run);
                effects.push(Effect::Stop(run.clone()));
            }
        }

        let releasing = std::mem::take(&mut self.releasing);
        for (run, epoch) in releasing {
            if listed.get(&run) == Some(&epoch) {
                self.releasing.insert(run, epoch);
            }
        }

        for (run, epoch) in listed {
            // Granted by an answer that was lost. Released first, because the epoch's earlier
            // requests may still be on their way; the node that takes the run next gets a new one.
            let is_known = before.contains_key(run)
                || self.held.contains_key(run)
                || self.accepting.contains(run);
            if !is_known {
                self.releasing.insert(run.clone(), epoch);
            }
        }
        effects
    }

    fn die(&mut self) -> Vec<Effect<R>> {
        self.id = None;
        self.heartbeat_ms = None;
        self.steady_since_ms = None;
        self.releasing.clear();
        std::mem::take(&mut self.held).into_keys().map(Effect::Stop).collect()
    }

    /// A commit that accepts these runs is being sent.
    pub fn accepting(&mut self, runs: impl IntoIterator<Item = R>) {
        self.accepting.extend(runs);
    }

    /// The commit is over. `node` is the one that sent it, which may have died since.
    pub fn accepted(
        &mut self,
        node: NodeId,
        runs: impl IntoIterator<Item = R>,
        is_committed: bool,
    ) {
        for run in runs {
            self.accepting.remove(&run);
            // A node that died meanwhile holds nothing: others may have the run by now.
            if is_committed && self.id == Some(node) {
                self.held.insert(run, Epoch(1));
            }
        }
    }

    /// The store granted the lease of a run that was requested by its id, after
    /// [`Node::accepting`].
    pub fn granted(&mut self, run: R, epoch: Epoch) {
        self.accepting.remove(&run);
        self.releasing.remove(&run);
        self.held.insert(run, epoch);
    }

    /// Returns whether it is giving this run back.
    pub fn is_releasing(&self, run: &R) -> bool {
        self.releasing.contains_key(run)
    }

    /// A commit under this epoch found that the lease is lost.
    pub fn lost(&mut self, run: &R, epoch: Epoch) -> Vec<Effect<R>> {
        // The run was stopped already, or taken again since under a later epoch.
        if self.held.get(run) != Some(&epoch) {
            return Vec::new();
        }
        self.held.remove(run);
        vec![Effect::Stop(run.clone())]
    }

    /// The store has forgotten this node.
    pub fn forgotten(&mut self, node: NodeId) -> Vec<Effect<R>> {
        if self.id == Some(node) { self.die() } else { Vec::new() }
    }

    /// The run is over: its last commit freed it.
    pub fn finished(&mut self, run: &R) {
        self.held.remove(run);
    }

    /// Gives a run back. Only when no commit of it is on its way.
    pub fn release(&mut self, run: &R) {
        if let Some(epoch) = self.held.remove(run) {
            self.releasing.insert(run.clone(), epoch);
        }
    }

    /// Takes no more runs. Those that it holds are released one by one, or stay until they are
    /// over.
    pub fn drain(&mut self) {
        self.is_draining = true;
    }
}
