//! Tree search by UCT: simulations walk down the tree by UCB1, then on with new steps until one is
//! rejected or the trace ends. A step is worth 1 / (1 + V) if it is accepted, a state is in the
//! tree once, and the first answer without violations ends the search.

use std::collections::HashSet;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twox_hash::XxHash64;

use super::batch::{Sample, Step, commit, give_up};
use super::limits::Limits;
use super::rejection::Rejection;
use super::replay_error::ReplayError;
use super::score::Score;
use super::search_counts::SearchCounts;
use super::stack::Frame;
use super::strategy::Uct;
use super::trajectory::{Counts, End, Next, Summary, Trajectory};
use super::tree::{Arms, Node, Tree};
use super::turn::TurnId;
use prime_bench::tasks::Machine;

/// Trajectories at some nodes, from which those at the others are made. In memory alone.
#[derive(Clone, Default)]
struct Kept(Vec<Option<Arc<Trajectory>>>);

impl fmt::Debug for Kept {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} trajectories", self.0.iter().flatten().count())
    }
}

#[derive(Clone, Debug, Serialize, Deserialize)]
struct Found {
    id: TurnId,
    answer: Value,
    summary: Summary,
}

/// The search between two batches.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct TreeSearch {
    tree: Tree,
    /// By slot: the node at which its simulation proposes.
    walks: Vec<Option<usize>>,
    begun: u64,
    proposals: u64,
    applicable: u64,
    merged: u64,
    /// The least violating answer so far, if none is clean.
    found: Option<Found>,
    #[serde(skip)]
    kept: Kept,
    /// The states of the tree, hashed.
    #[serde(skip)]
    known: HashSet<u64>,
}

fn key(machine: &dyn Machine) -> u64 {
    let mut text = Vec::new();
    machine.write_state(&mut text);
    XxHash64::oneshot(0, &text)
}

/// What an accepted step is worth, in thousandths.
fn worth(score: Score) -> u64 {
    1_000_000 / (1_000 + u64::from(score.thousandths()))
}

/// True if the trajectory at a node is kept. A program must not be asked again for a step.
fn is_kept(depth: usize, is_asked: bool, limits: &Limits) -> bool {
    is_asked || depth.is_multiple_of(limits.snapshot_every_frames.max(1))
}

fn slot(index: usize) -> u32 {
    u32::try_from(index).expect("invariant: at most 256 slots")
}

impl TreeSearch {
    /// A search at its root, where the first `opened` of `slots` turns propose.
    pub fn new(root: Trajectory, slots: u32, opened: u32) -> Self {
        let key = key(root.machine.as_ref());
        Self {
            tree: Tree::new(key, opened),
            walks: (0..slots).map(|slot| (slot < opened).then_some(0)).collect(),
            begun: u64::from(opened),
            proposals: 0,
            applicable: 0,
            merged: 0,
            found: None,
            kept: Kept(vec![Some(Arc::new(root))]),
            known: HashSet::from([key]),
        }
    }

    pub fn counts(&self) -> SearchCounts {
        SearchCounts {
            simulations: self.tree.simulations,
            states: self.tree.nodes.len() as u64,
            merged: self.merged,
            ..SearchCounts::default()
        }
    }

    /// Ends the search with its least violating answer, if it has one.
    pub fn best(&self) -> Option<Step> {
        let Found { id, answer, summary } = self.found.clone()?;
        Some(Step::Ended(id, summary, End::Answered(answer)))
    }

    /// Makes again what a snapshot does not have. `root` is at the first state.
    pub fn rebuild(&mut self, root: Trajectory, limits: &Limits) -> Result<(), ReplayError> {
        let is_asked = root.machine.problem().is_asked();
        self.known = self.tree.nodes.iter().map(|node| node.key).collect();
        self.kept = Kept(vec![Some(Arc::new(root))]);

        // A parent comes before its children.
        for index in 1..self.tree.nodes.len() {
            let mut kept = None;
            if is_kept(self.tree.nodes[index].depth, is_asked, limits) {
                let (above, mut trajectory) = self.nearest(index);
                for at in self.tree.path(above, index) {
                    let Node { line, score, basis, .. } = &self.tree.nodes[at];
                    trajectory.retake(line, *score, *basis)?;
                    trajectory.push(line, *score, *basis);
                }
                kept = Some(Arc::new(trajectory));
            }
            self.kept.0.push(kept);
        }
        Ok(())
    }

    /// The nearest node at or above one that has a trajectory, with a copy of it.
    fn nearest(&self, index: usize) -> (usize, Trajectory) {
        let mut at = index;
        loop {
            if let Some(kept) = self.kept.0.get(at).and_then(Option::as_ref) {
                return (at, kept.fork());
            }
            at = self.tree.nodes[at].parent.expect("invariant: the root has a trajectory");
        }
    }

    /// A trajectory at a node, ready to propose there.
    fn trajectory(&self, index: usize, slot: u32) -> Box<Trajectory> {
        let (above, mut trajectory) = self.nearest(index);
        for at in self.tree.path(above, index) {
            let Node { line, score, basis, .. } = &self.tree.nodes[at];
            commit(&mut trajectory, line, *score, *basis);
        }

        let node = &self.tree.nodes[index];
        let mut top = Frame {
            excluded: node.rejected.clone(),
            // Without the one that is about to be made.
            proposals: node.proposals + node.pending - 1,
            ..Frame::default()
        };
        // Another line is asked for first.
        let taken = node.children.iter().map(|child| &self.tree.nodes[*child].line);
        for line in taken.chain(&node.closed_lines) {
            top.abandon(line.clone(), Vec::new());
        }
        trajectory.stack.set_notes(Vec::new(), top);

        trajectory.index = slot;
        trajectory.feedback = node
            .rejected
            .last()
            .and_then(|rejection| rejection.reason.as_deref())
            .map(str::to_owned);
        // A slot's seeds follow from this count, so that it must grow.
        trajectory.counts =
            Counts { proposals: self.proposals, applicable: self.applicable, ..trajectory.counts };
        Box::new(trajectory)
    }

    /// Continues with a complete batch, sorted by slot.
    pub fn advance(&mut self, rule: &Uct, limits: &Limits, samples: Vec<Sample>) -> Step {
        let arms = Arms {
            width: rule.width as usize,
            attempts_max: limits.attempts_max,
            exploration: rule.exploration,
        };
        let first = samples.first().expect("invariant: a batch has a slot");
        let round = first.id.round;
        let without_answer = give_up(&samples, End::Stuck);

        let mut moving = Vec::new();
        for sample in samples {
            let slot = sample.id.trajectory;
            if let Some(trajectory) = self.settle(arms, limits, sample) {
                moving.push((TurnId { round, trajectory: slot }, trajectory));
            }
        }

        let is_clean = |found: &Found| found.summary.score == Score::ZERO;
        if self.found.as_ref().is_some_and(is_clean) {
            return self.best().unwrap_or(without_answer);
        }

        for index in 0..self.walks.len() {
            if self.walks[index].is_none() && self.begun < u64::from(rule.simulations) {
                let Some(at) = self.tree.select(0, arms) else { break };
                self.begun += 1;
                let trajectory = self.send(None, at, index);
                moving.push((TurnId { round, trajectory: slot(index) }, trajectory));
            }
        }

        if moving.is_empty() {
            return self.best().unwrap_or(without_answer);
        }
        moving.sort_by_key(|(id, _)| id.trajectory);
        Step::Propose(moving)
    }

    /// Sends the simulation of a slot, which is at `from`, to a node.
    fn send(&mut self, from: Option<usize>, to: usize, index: usize) -> Box<Trajectory> {
        self.tree.visit(from, to);
        self.walks[index] = Some(to);
        self.trajectory(to, slot(index))
    }

    /// Takes a slot's sample. Returns its trajectory if its simulation continues.
    fn settle(&mut self, arms: Arms, limits: &Limits, sample: Sample) -> Option<Box<Trajectory>> {
        let slot = sample.id.trajectory as usize;
        let at = self.walks[slot].take().expect("invariant: the slot was asked");
        self.proposals += 1;
        self.applicable += u64::from(sample.applicable);

        let node = &mut self.tree.nodes[at];
        node.answered(sample.exhausted);
        let credit = node.credit;

        if !sample.passes {
            let is_new = !node.rejected.iter().any(|rejection| *rejection.line == *sample.line);
            if is_new && !sample.line.is_empty() {
                node.rejected.push(Rejection::new(&sample.line, sample.feedback.as_deref()));
            }
            self.tree.end(at, credit, arms);
            return None;
        }

        let children = &self.tree.nodes[at].children;
        let known = children.iter().find(|child| *self.tree.nodes[**child].line == *sample.line);
        if let Some(child) = known.copied() {
            // This step was taken before: the simulation continues below it.
            let below = self.tree.select_open(child, arms);
            if below.is_none() {
                self.tree.end(at, credit, arms);
            }
            return below.map(|below| self.send(Some(at), below, slot));
        }
        self.take(arms, limits, at, sample)
    }

    /// Takes a step that is new at its node.
    fn take(
        &mut self,
        arms: Arms,
        limits: &Limits,
        at: usize,
        sample: Sample,
    ) -> Option<Box<Trajectory>> {
        let Sample { id, mut trajectory, line, score, basis, .. } = sample;
        let credit = self.tree.nodes[at].credit + worth(score);

        // What was rejected at the state is the node's to know.
        *trajectory.stack.top_mut() = Frame::default();
        trajectory.feedback = None;
        let next = commit(&mut trajectory, &line, score, basis);

        if next == Next::Propose {
            let key = key(trajectory.machine.as_ref());
            if self.known.insert(key) {
                let step = Node::reached(&line, (score, basis), key, credit);
                let index = self.tree.add(at, step);
                let is_asked = trajectory.machine.problem().is_asked();
                let kept = is_kept(trajectory.stack.depth(), is_asked, limits);
                self.kept.0.push(kept.then(|| Arc::new(trajectory.fork())));
                self.walks[id.trajectory as usize] = Some(index);
                return Some(trajectory);
            }
            self.merged += 1;
        }

        if let Next::Ended(End::Answered(answer)) = next {
            let counts = (self.proposals, self.applicable);
            (trajectory.counts.proposals, trajectory.counts.applicable) = counts;
            let summary = Summary::of(&trajectory);
            let is_better =
                self.found.as_ref().is_none_or(|found| summary.score < found.summary.score);
            if is_better {
                self.found = Some(Found { id, answer, summary });
            }
        }

        let closed = &mut self.tree.nodes[at].closed_lines;
        if !closed.iter().any(|known| **known == *line) {
            closed.push(line.into());
        }
        self.tree.end(at, credit, arms);
        None
    }
}
