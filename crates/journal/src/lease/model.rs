//! The store as the protocol needs it, in memory: each request is one transaction.

use std::collections::BTreeMap;

use super::{Answer, Claim, Epoch, Found, NodeId, Request, Timing};

pub(super) type Run = u32;

/// Identifies an event.
pub(super) type Token = u64;

/// What a commit does to one run.
#[derive(Clone, Debug)]
pub(super) struct Append {
    pub(super) claim: Claim<Run>,
    pub(super) events: Vec<Token>,
    pub(super) ends: bool,
}

#[derive(Clone, Debug)]
pub(super) struct Commit {
    pub(super) node: NodeId,
    pub(super) number: u64,
    pub(super) appends: Vec<Append>,
}

/// Mistakes that the simulation must notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Mistake {
    None,
    /// Commits are not fenced by holder and epoch.
    NoFence,
    /// The store does not remember a node's last commit.
    NoNumber,
    /// A commit applies what it can.
    NotAtomic,
    /// Runs of dead nodes are not freed.
    NoReaper,
}

struct NodeRow {
    expires_ms: i64,
    is_dead: bool,
    number: u64,
}

pub(super) struct Head {
    epoch: Epoch,
    holder: Option<NodeId>,
    pub(super) is_open: bool,
    pub(super) log: Vec<(Epoch, Token)>,
}

pub(super) struct Table {
    pub(super) mistake: Mistake,
    timing: Timing,
    nodes: BTreeMap<NodeId, NodeRow>,
    pub(super) heads: BTreeMap<Run, Head>,
}

fn signed(ms: u64) -> i64 {
    i64::try_from(ms).expect("invariant: leases are short")
}

impl Table {
    pub(super) fn new(mistake: Mistake, timing: Timing) -> Self {
        Self { mistake, timing, nodes: BTreeMap::new(), heads: BTreeMap::new() }
    }

    fn held_by(&self, node: NodeId) -> Vec<(Run, Epoch)> {
        let held = self.heads.iter().filter(|(_, head)| head.holder == Some(node));
        held.map(|(run, head)| (*run, head.epoch)).collect()
    }

    /// `now_ms` is the store's clock, which may jump.
    pub(super) fn execute(&mut self, now_ms: i64, request: &Request<Run>) -> Answer<Run> {
        let lease_ms = signed(self.timing.lease_ms);
        match request {
            Request::Register => {
                let id = NodeId(1 + i64::try_from(self.nodes.len()).expect("invariant: few nodes"));
                self.nodes.insert(
                    id,
                    NodeRow { expires_ms: now_ms + lease_ms, is_dead: false, number: 0 },
                );
                Answer::Registered(id)
            }
            Request::Heartbeat { node } => {
                match self.nodes.get_mut(node).filter(|row| !row.is_dead) {
                    Some(row) => {
                        row.expires_ms = now_ms + lease_ms;
                        Answer::Alive(self.held_by(*node))
                    }
                    None => Answer::Dead,
                }
            }
            Request::Reap => {
                for row in self.nodes.values_mut() {
                    // A clock that was set back must not keep the dead alive.
                    row.expires_ms = row.expires_ms.min(now_ms + 2 * lease_ms);
                    row.is_dead |= row.expires_ms < now_ms;
                }
                if self.mistake != Mistake::NoReaper {
                    for head in self.heads.values_mut() {
                        head.holder = head.holder.filter(|holder| !self.nodes[holder].is_dead);
                    }
                }
                Answer::Reaped
            }
            Request::Take { node, most } => {
                if self.nodes.get(node).is_none_or(|row| row.is_dead) {
                    return Answer::Dead;
                }

                let free =
                    self.heads.iter_mut().filter(|(_, head)| head.is_open && head.holder.is_none());

                let take = |(run, head): (&Run, &mut Head)| {
                    head.holder = Some(*node);
                    head.epoch.0 += 1;
                    (*run, head.epoch)
                };

                Answer::Taken(free.take(*most).map(take).collect())
            }
            Request::Release { node, runs } => {
                for (run, epoch) in runs {
                    if let Some(head) = self.heads.get_mut(run)
                        && head.holder == Some(*node)
                        && head.epoch == *epoch
                    {
                        head.holder = None;
                    }
                }
                Answer::Released
            }
        }
    }

    fn allows(&self, node: NodeId, claim: &Claim<Run>) -> bool {
        let head = self.heads.get(&claim.run);
        let Some(epoch) = claim.epoch else { return head.is_none() };
        head.is_some_and(|head| {
            let is_fenced = self.mistake == Mistake::NoFence
                || head.holder == Some(node) && head.epoch == epoch;
            // Without the fence, the base alone would not have been enough either.
            let follows = self.mistake == Mistake::NoFence || head.log.len() as u64 == claim.base;
            head.is_open && is_fenced && follows
        })
    }

    /// `Ok` when it was applied; otherwise nothing was.
    pub(super) fn commit(&mut self, commit: &Commit) -> Result<(), ()> {
        let row = self.nodes.get_mut(&commit.node).ok_or(())?;
        if row.number >= commit.number {
            return Err(());
        }

        let is_whole = commit.appends.iter().all(|append| self.allows(commit.node, &append.claim));
        if !is_whole && self.mistake != Mistake::NotAtomic {
            return Err(());
        }

        for Append { claim, events, ends } in &commit.appends {
            if !self.allows(commit.node, claim) {
                continue;
            }
            let holder = Some(commit.node);
            let head = self.heads.entry(claim.run).or_insert(Head {
                epoch: Epoch(1),
                holder,
                is_open: true,
                log: Vec::new(),
            });

            let epoch = claim.epoch.unwrap_or(Epoch(1));
            head.log.extend(events.iter().map(|token| (epoch, *token)));
            if *ends {
                (head.is_open, head.holder) = (false, None);
            }
        }

        if !is_whole {
            return Err(());
        }

        if let Some(row) =
            self.nodes.get_mut(&commit.node).filter(|_| self.mistake != Mistake::NoNumber)
        {
            row.number = commit.number;
        }
        Ok(())
    }

    /// What [`super::judge`] needs.
    pub(super) fn found(&self, commit: &Commit) -> (Option<u64>, Vec<Option<Found>>) {
        let found = |append: &Append| {
            self.heads.get(&append.claim.run).map(|head| Found {
                epoch: head.epoch,
                holder: head.holder,
                last_seq: head.log.len() as u64,
            })
        };

        let stored = self.nodes.get(&commit.node).map(|row| row.number);
        (stored, commit.appends.iter().map(found).collect())
    }

    pub(super) fn last_seq(&self, run: Run) -> u64 {
        self.heads.get(&run).map_or(0, |head| head.log.len() as u64)
    }
}
