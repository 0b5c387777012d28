//! The tree of the lines that were judged again: a node for each line in each state.

use std::collections::HashMap;
use std::sync::Arc;

use serde::Deserialize;
use serde_json::Value;

use super::ballots::Answered;
use prime_bench::tasks::Problem;
use prime_protocol::{
    Basis, Decision, End, Limits, Next, RunPlan, Score, Strategy, Trajectory, TurnId,
};
use prime_report::StepLine;

/// What the new verifier says about a line.
#[derive(Clone, Copy)]
pub(super) struct New {
    pub score: Score,
    pub basis: Basis,
    /// True if the line would be committed.
    pub proceeds: bool,
}

struct Node {
    /// The node that led to its state; `None` at the first state.
    parent: Option<usize>,
    new: New,
    /// The answer, if its line ends the trace.
    answer: Option<Value>,
}

/// Where a trajectory is known to be.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
enum Place {
    Turn(u32, u32),
    /// The only state of a round whose steps are voted on.
    Round(u32),
}

pub(super) struct Steps {
    nodes: Vec<Node>,
    /// Children by the node that led to the state, and the line.
    children: HashMap<(Option<usize>, String), usize>,
    /// The committed nodes of each place, from the first step.
    paths: HashMap<Place, Vec<usize>>,
    /// The node of each state of a strategy that branches, by the digest of its lines.
    branches: HashMap<u64, Option<usize>>,
}

impl Steps {
    pub fn new(problem: &Arc<dyn Problem>) -> Self {
        let first = Trajectory::new(problem.start(), &Limits::DEFAULT).stack.digest();
        Self {
            nodes: Vec::new(),
            children: HashMap::new(),
            paths: HashMap::new(),
            branches: HashMap::from([(first, None)]),
        }
    }

    /// The node that led to the state of a step.
    fn parent(&mut self, plan: &RunPlan, step: &StepLine<'_>, copy: &Trajectory) -> Option<usize> {
        let TurnId { round, trajectory } = step.id();
        let place = match plan.strategy {
            Strategy::Beam(_) | Strategy::ParticleFilter(_) | Strategy::Uct(_) => {
                return self.branches.get(&copy.stack.digest()).copied().flatten();
            }
            Strategy::Ahead(_) => Place::Round(round),
            Strategy::Iterative | Strategy::Greedy | Strategy::BestOfN => {
                Place::Turn(round, trajectory)
            }
        };
        let path = self.paths.entry(place).or_default();
        path.truncate(step.depth);
        path.last().copied()
    }

    /// Enters a line that was judged; returns the trajectory's answer if the step ended it.
    pub fn judged(
        &mut self,
        plan: &RunPlan,
        step: &StepLine<'_>,
        copy: &mut Trajectory,
        applicable: bool,
        new: New,
    ) -> Option<Answered> {
        let parent = self.parent(plan, step, copy);
        let at = self.enter(parent, &step.action, new);

        let is_committed = applicable && step.decision == Decision::Proceed;
        if !is_committed {
            return None;
        }

        let branches = plan.strategy.branches();
        if branches || copy.machine.candidate_ends() {
            copy.machine.commit();
            let judged = &mut self.nodes[at].new;
            judged.basis = judged.basis.of_step_to(copy.machine.as_ref());
            if let Next::Ended(End::Answered(answer)) =
                copy.push(&step.action, Score::ZERO, Basis::NONE)
            {
                self.nodes[at].answer = Some(answer);
            }
            if branches {
                self.branches.entry(copy.stack.digest()).or_insert(Some(at));
            }
        }

        match plan.strategy {
            // A vote decides what is committed.
            Strategy::Ahead(_) => None,
            Strategy::Beam(_) | Strategy::ParticleFilter(_) | Strategy::Uct(_) => self.answered(at),
            Strategy::Iterative | Strategy::Greedy | Strategy::BestOfN => {
                let place = Place::Turn(step.round, step.trajectory);
                self.paths.entry(place).or_default().push(at);
                self.answered(at)
            }
        }
    }

    /// Enters a line without a new verdict: nothing vouches for it, and its decision stays.
    pub fn unjudged(
        &mut self,
        plan: &RunPlan,
        step: &StepLine<'_>,
        copy: &mut Trajectory,
        applicable: bool,
    ) -> Option<Answered> {
        let proceeds = applicable && step.decision == Decision::Proceed;
        let new = New { score: Score::ZERO, basis: Basis::NONE, proceeds };
        self.judged(plan, step, copy, applicable, new)
    }

    fn enter(&mut self, parent: Option<usize>, line: &str, new: New) -> usize {
        if let Some(at) = self.children.get(&(parent, line.to_owned())) {
            let node = &mut self.nodes[*at];
            // If one line in one state has two verdicts, only what both say holds.
            node.new = New { basis: node.new.basis.weakest(new.basis), ..new };
            return *at;
        }
        self.nodes.push(Node { parent, new, answer: None });
        let at = self.nodes.len() - 1;
        self.children.insert((parent, line.to_owned()), at);
        at
    }

    /// The round and the answer, if this event is a step chosen by vote that ended the search.
    pub fn chosen(&mut self, event: &[u8]) -> Option<(u32, Answered)> {
        #[derive(Deserialize)]
        struct Chosen {
            round: u32,
            depth: usize,
            action: String,
        }

        if !event.starts_with(br#"{"event":"chosen""#) {
            return None;
        }
        let Chosen { round, depth, action } = serde_json::from_slice(event).ok()?;

        let path = self.paths.entry(Place::Round(round)).or_default();
        path.truncate(depth);
        let at = *self.children.get(&(path.last().copied(), action))?;
        path.push(at);
        self.answered(at).map(|answer| (round, answer))
    }

    /// The answer of the trace that ends with this node, with the combined result of its steps.
    fn answered(&self, at: usize) -> Option<Answered> {
        let answer = self.nodes[at].answer.clone()?;
        let mut whole = Answered {
            answer,
            trace: at as u64,
            score: Score::ZERO,
            basis: self.nodes[at].new.basis,
            stands: true,
        };

        let mut next = Some(at);
        while let Some(at) = next {
            let Node { parent, new, .. } = &self.nodes[at];
            whole.score = whole.score.plus(new.score);
            whole.basis = whole.basis.weakest(new.basis);
            whole.stands &= new.proceeds;
            next = *parent;
        }
        Some(whole)
    }
}
