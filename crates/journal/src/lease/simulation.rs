//! The protocol under simulated schedules: nodes that sleep, die and restart, requests and answers
//! that are lost or late, a store whose clock jumps. A schedule is a function of its seed.

use std::collections::{BTreeMap, BTreeSet};

use super::model::{Append, Commit, Mistake, Run, Table, Token};
use super::{Answer, Claim, Effect, Found, Node, Request, Timing, Verdict, judge};

pub(super) const TIMING: Timing = Timing { lease_ms: 10_000, heartbeat_ms: 2_000 };
pub(super) const NODES: usize = 3;
pub(super) const RUNS: u32 = 6;
const EVENTS: u64 = 6;
const CAPACITY: usize = 3;
/// Steps with faults, and the most without.
pub(super) const FAULTY_STEPS: usize = 250;
pub(super) const CALM_STEPS: usize = 4_000;

/// SplitMix64.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() % limit as u64).expect("invariant: it is below the limit")
    }

    fn one_in(&mut self, n: usize) -> bool {
        self.below(n) == 0
    }
}

/// A message between a node and the store.
enum Message {
    Request(Request<Run>),
    Answer(Answer<Run>),
    Commit(Commit),
    Committed(Result<(), (Option<u64>, Vec<Option<Found>>)>),
}

/// A message on its way. `life` is that of its connection: the answer is ignored in a later life of
/// the place.
struct InFlight {
    place: usize,
    life: u64,
    message: Message,
}

/// A daemon.
pub(super) struct Daemon {
    node: Node<Run>,
    /// Grows with each start and each lost connection.
    control_life: u64,
    commit_life: u64,
    /// Runs being executed, with the last committed event that the daemon knows of.
    running: BTreeMap<Run, u64>,
    number: u64,
    /// The commit that was sent and not answered yet.
    commit: Option<Commit>,
    /// True if the connection was lost since the commit was sent: then it is sent again.
    is_in_doubt: bool,
    pub(super) is_paused: bool,
    submitted: Vec<Run>,
}

impl Daemon {
    fn new(life: u64) -> Self {
        Self {
            node: Node::new(TIMING, CAPACITY),
            control_life: life,
            commit_life: life,
            running: BTreeMap::new(),
            number: 0,
            commit: None,
            is_in_doubt: false,
            is_paused: false,
            submitted: Vec::new(),
        }
    }
}

pub(super) struct World {
    random: Random,
    pub(super) table: Table,
    pub(super) daemons: Vec<Daemon>,
    network: Vec<InFlight>,
    now_ms: u64,
    /// Deviation of the store's clock.
    skew_ms: i64,
    lives: u64,
    tokens: Token,
    /// What readers were shown: the event at each number of each run.
    shown: BTreeMap<(Run, u64), Token>,
    /// Runs whose acceptance was confirmed.
    pub(super) confirmed: BTreeSet<Run>,
    pub(super) next_run: Run,
    pub(super) is_calm: bool,
}

impl World {
    pub(super) fn new(seed: u64, mistake: Mistake) -> Self {
        let daemons = (0..NODES as u64).map(Daemon::new).collect();
        Self {
            random: Random(seed),
            table: Table::new(mistake, TIMING),
            daemons,
            network: Vec::new(),
            now_ms: 0,
            skew_ms: 0,
            lives: NODES as u64,
            tokens: 0,
            shown: BTreeMap::new(),
            confirmed: BTreeSet::new(),
            next_run: 0,
            is_calm: false,
        }
    }

    fn life(&mut self) -> u64 {
        self.lives += 1;
        self.lives
    }

    pub(super) fn step(&mut self) -> Result<(), String> {
        let place = self.random.below(NODES);

        match self.random.below(100) {
            0..25 => self.deliver()?,
            25..50 => self.poll(place),
            50..70 => self.work(place),
            70..80 => self.now_ms += self.random.next() % 1_500,
            80..85 if self.next_run < RUNS => {
                self.daemons[place].submitted.push(self.next_run);
                // A client without an answer tries another node, sometimes at once.
                if self.random.one_in(3) {
                    self.daemons[(place + 1) % NODES].submitted.push(self.next_run);
                }
                self.next_run += 1;
            }
            _ if self.is_calm => self.deliver()?,
            85..87 => self.lose(),
            87..91 => self.disconnect(place),
            91 if self.random.one_in(2) => {
                let life = self.life();
                self.daemons[place] = Daemon::new(life);
            }
            92..94 => self.daemons[place].is_paused = true,
            94..96 => self.daemons[place].is_paused = false,
            96 => self.now_ms += TIMING.lease_ms + self.random.next() % 5_000,
            97 if self.random.one_in(4) => {
                let hours =
                    i64::try_from(self.random.below(5)).expect("invariant: it is small") - 2;
                self.skew_ms += hours * 3_600_000;
            }
            _ => self.deliver()?,
        }
        Ok(())
    }

    fn send(&mut self, place: usize, life: u64, message: Message) {
        self.network.push(InFlight { place, life, message });
    }

    /// Delivers a message, in any order.
    fn deliver(&mut self) -> Result<(), String> {
        if self.network.is_empty() {
            return Ok(());
        }

        let at = self.random.below(self.network.len());
        let InFlight { place, life, message } = self.network.swap_remove(at);
        match message {
            Message::Request(request) => {
                let now_ms = self.skew_ms
                    + i64::try_from(self.now_ms).expect("invariant: schedules are short");
                let answer = self.table.execute(now_ms, &request);
                self.send(place, life, Message::Answer(answer));
            }
            Message::Commit(commit) => {
                let answer = self.table.commit(&commit);
                let answer = answer.map_err(|()| self.table.found(&commit));
                self.check_store()?;
                self.send(place, life, Message::Committed(answer));
            }
            Message::Answer(answer) => {
                let daemon = &mut self.daemons[place];
                if daemon.is_paused {
                    self.send(place, life, Message::Answer(answer));
                } else if daemon.control_life == life {
                    let effects = daemon.node.answered(answer);
                    self.carry_out(place, effects);
                }
            }
            Message::Committed(answer) => {
                if self.daemons[place].is_paused {
                    self.send(place, life, Message::Committed(answer));
                } else if self.daemons[place].commit_life == life {
                    self.answered(place, answer)?;
                }
            }
        }
        Ok(())
    }

    /// Loses a message with its connection; the node does not know whether it arrived.
    fn lose(&mut self) {
        if !self.network.is_empty() {
            let at = self.random.below(self.network.len());
            let InFlight { place, life, .. } = self.network.swap_remove(at);
            self.cut(place, life);
        }
    }

    /// The node's connections end; what was sent may still arrive, but no answer will.
    fn disconnect(&mut self, place: usize) {
        let (control, commit) = (self.daemons[place].control_life, self.daemons[place].commit_life);
        self.cut(place, control);
        self.cut(place, commit);
    }

    fn cut(&mut self, place: usize, life: u64) {
        let next = self.life();

        let daemon = &mut self.daemons[place];
        if daemon.control_life == life {
            daemon.control_life = next;
            daemon.node.unanswered();
        }
        if daemon.commit_life == life {
            daemon.commit_life = next;
            daemon.is_in_doubt = daemon.commit.is_some();
        }
    }

    fn poll(&mut self, place: usize) {
        let daemon = &mut self.daemons[place];
        if daemon.is_paused {
            return;
        }

        if let Some(request) = daemon.node.next(self.now_ms) {
            let life = daemon.control_life;
            self.send(place, life, Message::Request(request));
        }
    }

    fn carry_out(&mut self, place: usize, effects: Vec<Effect<Run>>) {
        for effect in effects {
            match effect {
                Effect::Start(run) => {
                    let last_seq = self.table.last_seq(run);
                    self.daemons[place].running.insert(run, last_seq);
                }
                Effect::Stop(run) => drop(self.daemons[place].running.remove(&run)),
            }
        }
    }

    /// Lets the node accept and execute runs. It commits what there is, one commit at a time.
    fn work(&mut self, place: usize) {
        let is_calm = self.is_calm;
        let daemon = &mut self.daemons[place];
        if daemon.is_paused {
            return;
        }

        if let Some(commit) = &daemon.commit {
            if std::mem::take(&mut daemon.is_in_doubt) {
                let (life, commit) = (daemon.commit_life, commit.clone());
                self.send(place, life, Message::Commit(commit));
            }
            return;
        }

        let Some(node) = daemon.node.id() else { return };
        if !is_calm && self.random.one_in(12) {
            // Gives a run back, as a drain does.
            let run = daemon.running.keys().nth(self.random.below(CAPACITY)).copied();
            if let Some(run) = run {
                daemon.running.remove(&run);
                daemon.node.release(&run);
            }
        }

        let mut appends = Vec::new();
        for run in daemon.submitted.drain(..) {
            if daemon.node.epoch(&run).is_none() {
                appends.push(Append {
                    claim: Claim { run, epoch: None, base: 0 },
                    events: Vec::new(),
                    ends: false,
                });
            }
        }

        daemon.node.accepting(appends.iter().map(|append| append.claim.run));

        for (run, base) in &daemon.running {
            let Some(epoch) = daemon.node.epoch(run) else { continue };
            if self.random.one_in(3) {
                continue;
            }
            let count = (1 + self.random.next() % 2).min(EVENTS.saturating_sub(*base));
            let events = (0..count).map(|at| self.tokens + at + 1).collect();
            self.tokens += count;
            let claim = Claim { run: *run, epoch: Some(epoch), base: *base };
            appends.push(Append { claim, events, ends: base + count >= EVENTS });
        }

        if !appends.is_empty() {
            daemon.number += 1;
            let commit = Commit { node, number: daemon.number, appends };
            daemon.commit = Some(commit.clone());
            let life = daemon.commit_life;
            self.send(place, life, Message::Commit(commit));
        }
    }

    fn answered(
        &mut self,
        place: usize,
        answer: Result<(), (Option<u64>, Vec<Option<Found>>)>,
    ) -> Result<(), String> {
        let daemon = &mut self.daemons[place];
        let Some(commit) = daemon.commit.take() else { return Ok(()) };
        daemon.is_in_doubt = false;

        let claims: Vec<_> = commit.appends.iter().map(|append| append.claim.clone()).collect();
        let verdict = match answer {
            Ok(()) => Verdict::Committed,
            Err((stored, found)) => judge(commit.node, commit.number, stored, &claims, &found),
        };

        let accepted =
            || claims.iter().filter(|claim| claim.epoch.is_none()).map(|claim| claim.run);
        let is_committed = verdict == Verdict::Committed;
        daemon.node.accepted(commit.node, accepted(), is_committed);

        match verdict {
            Verdict::Committed => self.publish(place, &commit)?,
            Verdict::Refused { lost, exists } => {
                self.confirmed.extend(&exists);
                let daemon = &mut self.daemons[place];
                let effects: Vec<_> = claims
                    .iter()
                    .filter(|claim| lost.contains(&claim.run))
                    .filter_map(|claim| Some(daemon.node.lost(&claim.run, claim.epoch?)))
                    .flatten()
                    .collect();
                // Runs that could not be accepted in the refused commit are submitted again.
                daemon.submitted.extend(accepted().filter(|run| !exists.contains(run)));
                self.carry_out(place, effects);
            }
            Verdict::Forgotten => {
                let effects = daemon.node.forgotten(commit.node);
                self.carry_out(place, effects);
            }
            Verdict::StoreLostEvents(run) => {
                return Err(format!("run {run}: the store has lost events"));
            }
        }
        Ok(())
    }

    fn publish(&mut self, place: usize, commit: &Commit) -> Result<(), String> {
        for Append { claim, events, ends } in &commit.appends {
            let run = claim.run;
            for (seq, token) in (claim.base + 1..).zip(events) {
                let shown = *self.shown.entry((run, seq)).or_insert(*token);
                let stored = self.table.heads[&run]
                    .log
                    .get(usize::try_from(seq - 1).expect("invariant: it is small"));
                if shown != *token || stored.map(|stored| stored.1) != Some(*token) {
                    return Err(format!(
                        "run {run}, event {seq}: shown {token}, but {shown} before, stored {stored:?}"
                    ));
                }
            }

            let daemon = &mut self.daemons[place];
            if claim.epoch.is_none() {
                self.confirmed.insert(run);
                if daemon.node.epoch(&run).is_some() {
                    daemon.running.insert(run, 0);
                }
            } else if daemon.node.epoch(&run) == claim.epoch {
                if *ends {
                    daemon.running.remove(&run);
                    daemon.node.finished(&run);
                } else if let Some(last) = daemon.running.get_mut(&run) {
                    *last = claim.base + events.len() as u64;
                }
            }
        }
        Ok(())
    }

    /// Invariants of what is stored.
    pub(super) fn check_store(&self) -> Result<(), String> {
        let mut tokens = BTreeSet::new();
        for (run, head) in &self.table.heads {
            if head.log.len() as u64 > EVENTS {
                return Err(format!("run {run}: events after its end"));
            }
            if !head.log.is_sorted_by_key(|(epoch, _)| *epoch) {
                return Err(format!(
                    "run {run}: an event of an older epoch after one of a newer: {:?}",
                    head.log
                ));
            }
            if let Some((_, twice)) = head.log.iter().find(|(_, token)| !tokens.insert(*token)) {
                return Err(format!("run {run}: event {twice} is stored twice"));
            }
        }

        for ((run, seq), token) in &self.shown {
            let log = self.table.heads.get(run).map(|head| &head.log[..]).unwrap_or_default();
            let stored = log.get(usize::try_from(seq - 1).expect("invariant: it is small"));
            if stored.map(|stored| stored.1) != Some(*token) {
                return Err(format!(
                    "run {run}, event {seq}: {token} was shown, but {stored:?} is stored"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn is_done(&self) -> bool {
        self.table.heads.values().all(|head| !head.is_open)
            && self.daemons.iter().all(|it| it.submitted.is_empty())
    }
}
