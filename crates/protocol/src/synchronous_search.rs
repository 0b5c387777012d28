//! Step-synchronous search: beam search, voting on each step, particle filtering, tree search. A
//! search continues only when the samples of all its slots are in. The slots of one group of a beam
//! are at the same state.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::basis::Basis;
use super::batch::{Sample, Step, again, commit, give_up};
use super::limits::Limits;
use super::particle_filter::Particles;
use super::plan::RunPlan;
use super::reliability::{Ahead, StepVotes};
use super::replay_error::ReplayError;
use super::score::Score;
use super::search_counts::SearchCounts;
use super::strategy::{Beam, Strategy};
use super::trajectory::{End, Next, Summary, Trajectory};
use super::tree_search::TreeSearch;
use super::turn::TurnId;
use prime_bench::tasks::Machine;

/// A step that was chosen by vote.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Chosen {
    /// Committed steps before it.
    pub depth: usize,
    /// The chosen line.
    pub action: String,
    /// Votes for it.
    pub votes: u32,
    /// Votes ahead of the second action.
    pub lead: u32,
    /// Proposals at this state, and how many were discarded.
    pub samples: u32,
    /// Proposals at this state that were discarded before the vote.
    pub discarded: u32,
}

/// A beam's trajectory that has an answer.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Finished {
    id: TurnId,
    answer: Value,
    logprob: f64,
    summary: Summary,
}

/// The state of a search, except for its slots.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SynchronousSearch {
    /// Votes for each action at the current state.
    tally: Vec<Action>,
    samples_here: u32,
    discarded_here: u32,
    /// The votes on the steps so far.
    pub votes: StepVotes,
    /// ln p of the partial trajectory of each group.
    logprobs: Vec<f64>,
    finished: Vec<Finished>,
    /// Consecutive batches without a usable sample.
    misses: u32,
    /// The state of particle filtering.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    particles: Option<Particles>,
    /// The state of a tree search.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tree: Option<Box<TreeSearch>>,
}

/// An action that samples voted for.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Action {
    line: String,
    votes: u32,
    /// The lowest of its samples.
    score: Score,
    /// The weakest of its samples.
    #[serde(default)]
    basis: Basis,
}

/// The action with most votes.
struct Leader {
    action: Action,
    lead: u32,
}

/// An extension of a group's trajectory.
struct Candidate {
    /// Index of the sample that proposed it first.
    sample: usize,
    logprob: f64,
}

/// The first failure, if every sample failed.
fn failure_of_all(samples: &[Sample]) -> Option<String> {
    let all = samples.iter().all(|sample| sample.failure.is_some());
    samples.first().filter(|_| all)?.failure.clone()
}

impl SynchronousSearch {
    /// The search at its first state, where `start` makes machines.
    pub fn new(plan: &RunPlan, start: impl FnOnce() -> Box<dyn Machine>) -> Self {
        let mut new = Self { logprobs: vec![0.0], ..Self::default() };

        match &plan.strategy {
            Strategy::Ahead(rule) => new.votes.k = rule.k,
            Strategy::ParticleFilter(filter) => new.particles = Some(Particles::new(filter)),
            Strategy::Uct(_) => {
                let root = Trajectory::new(start(), &plan.limits);
                new.tree = Some(Box::new(TreeSearch::new(root, plan.fanout, plan.slots())));
            }
            Strategy::Iterative | Strategy::Greedy | Strategy::BestOfN | Strategy::Beam(_) => {}
        }
        new
    }

    /// Prepares the first turn of a slot.
    pub fn open(&self, trajectory: &mut Trajectory) {
        if self.tree.is_some() {
            // The slots before it propose at the same state.
            trajectory.stack.top_mut().proposals = trajectory.index;
        }
    }

    /// Like [`super::run::RunState::rebuild`].
    pub(super) fn rebuild(
        &mut self,
        start: impl FnOnce() -> Trajectory,
        limits: &Limits,
    ) -> Result<(), ReplayError> {
        self.tree.as_mut().map_or(Ok(()), |tree| tree.rebuild(start(), limits))
    }

    /// What the search did so far, where results say it.
    pub fn counts(&self) -> Option<SearchCounts> {
        let particles = self.particles.as_ref().map(Particles::counts);
        particles.or_else(|| self.tree.as_ref().map(|tree| tree.counts()))
    }

    /// The lines that samples of earlier batches voted for at the present state.
    pub(super) fn voted(&self) -> impl Iterator<Item = (&str, Score, Basis)> {
        self.tally.iter().map(|action| (action.line.as_str(), action.score, action.basis))
    }

    /// Continues with a complete batch.
    pub fn advance(
        &mut self,
        plan: &RunPlan,
        mut samples: Vec<Sample>,
        chosen: &mut Vec<Chosen>,
    ) -> Step {
        // Turns finish in any order; the result must not depend on it.
        samples.sort_by_key(|sample| sample.id.trajectory);

        if let Some(reason) = failure_of_all(&samples) {
            return self.best().unwrap_or_else(|| give_up(&samples, End::Failed(reason)));
        }

        let limits = &plan.limits;
        match (&plan.strategy, &mut self.particles, &mut self.tree) {
            (Strategy::Beam(beam), ..) => self.extend(*beam, samples, limits.attempts_max),
            (Strategy::Ahead(rule), ..) => self.vote(rule, samples, chosen),
            (Strategy::ParticleFilter(filter), Some(particles), _) => {
                particles.advance(filter, samples, limits.attempts_max)
            }
            (Strategy::Uct(rule), _, Some(tree)) => tree.advance(rule, limits, samples),
            _ => again(samples),
        }
    }

    fn leader(&self) -> Option<Leader> {
        // Ties go to the earliest action; `max_by_key` returns the last.
        let (at, action) =
            self.tally.iter().enumerate().rev().max_by_key(|(_, action)| action.votes)?;

        let others = self.tally.iter().enumerate().filter(|(other, _)| *other != at);
        let second = others.map(|(_, action)| action.votes).max().unwrap_or(0);

        Some(Leader { action: action.clone(), lead: action.votes - second })
    }

    fn vote(&mut self, rule: &Ahead, mut samples: Vec<Sample>, chosen: &mut Vec<Chosen>) -> Step {
        for sample in &samples {
            self.samples_here += 1;
            self.votes.samples += 1;
            if !sample.passes || sample.characters > rule.characters_max as usize {
                self.discarded_here += 1;
                self.votes.discarded += 1;
                continue;
            }

            let (score, basis) = (sample.score, sample.basis);
            match self.tally.iter_mut().find(|action| action.line == sample.line) {
                Some(action) => {
                    action.votes += 1;
                    action.score = action.score.min(score);
                    action.basis = action.basis.weakest(basis);
                }
                None => {
                    let line = sample.line.clone();
                    self.tally.push(Action { line, votes: 1, score, basis });
                }
            }
        }

        let is_spent = self.samples_here >= rule.samples_max;

        let Some(Leader { action, lead }) = self.leader() else {
            return if is_spent { give_up(&samples, End::Stuck) } else { again(samples) };
        };

        if lead < rule.k && !is_spent {
            return again(samples);
        }

        let Action { line, votes, score, basis } = action;
        self.votes.taken(rule, lead, votes);

        self.tally.clear();

        chosen.push(Chosen {
            depth: samples[0].trajectory.stack.depth(),
            action: line.clone(),
            votes,
            lead,
            samples: std::mem::take(&mut self.samples_here),
            discarded: std::mem::take(&mut self.discarded_here),
        });
        // All slots are at the same state and take the same step. The first slot comes last, so
        // that its result is the one that counts.
        let mut next = Next::Propose;
        for sample in samples.iter_mut().rev() {
            next = commit(&mut sample.trajectory, &line, score, basis);
        }

        match next {
            Next::Propose => again(samples),
            Next::Ended(end) => give_up(&samples, end),
        }
    }

    /// Ends the search with its best answer, if it has one: the likeliest, that of most weight or
    /// the least violating.
    pub fn best(&self) -> Option<Step> {
        if let Some(particles) = &self.particles {
            return particles.best();
        }
        if let Some(tree) = &self.tree {
            return tree.best();
        }
        let best = self.finished.first()?;
        Some(Step::Ended(best.id, best.summary.clone(), End::Answered(best.answer.clone())))
    }

    /// The extensions of all groups, likeliest first.
    fn candidates(&self, beam: Beam, samples: &[Sample]) -> Result<Vec<Candidate>, String> {
        let mut candidates: Vec<Candidate> = Vec::new();
        for (at, sample) in samples.iter().enumerate().filter(|(_, sample)| sample.passes) {
            let group = sample.id.trajectory / beam.actions;
            let is_known = candidates.iter().any(|known| {
                samples[known.sample].id.trajectory / beam.actions == group
                    && samples[known.sample].line == sample.line
            });

            if is_known {
                continue;
            }

            let Some(own) = sample.logprob else {
                let reason = "beam search ranks by log-probabilities, and the executor gives none: choose another \
                              strategy (`run.strategy`), or an executor whose model gives them";
                return Err(reason.to_owned());
            };

            candidates.push(Candidate { sample: at, logprob: self.logprobs[group as usize] + own });
        }
        // Stable, so that ties go to the earlier sample.
        candidates.sort_by(|a, b| b.logprob.total_cmp(&a.logprob));

        Ok(candidates)
    }

    fn extend(&mut self, beam: Beam, samples: Vec<Sample>, attempts_max: u32) -> Step {
        let mut candidates = match self.candidates(beam, &samples) {
            Ok(candidates) => candidates,
            Err(reason) => return give_up(&samples, End::Failed(reason)),
        };

        if candidates.is_empty() && self.finished.is_empty() {
            self.misses += 1;
            return if self.misses >= attempts_max {
                give_up(&samples, End::Stuck)
            } else {
                again(samples)
            };
        }

        self.misses = 0;
        // Trajectories with an answer compete for the same places as partial ones.
        let ahead = |candidate: &Candidate| {
            self.finished.iter().filter(|f| f.logprob >= candidate.logprob).count()
        };

        let places = beam.width as usize;

        let mut rank = 0;

        candidates.retain(|candidate| {
            rank += 1;
            rank - 1 + ahead(candidate) < places
        });

        let mut live: Vec<(f64, Box<Trajectory>)> = Vec::new();
        let mut last_end = None;

        for Candidate { sample, logprob } in candidates {
            let Sample { id, trajectory, line, score, basis, .. } = &samples[sample];

            let mut trajectory = Box::new(trajectory.fork());
            match commit(&mut trajectory, line, *score, *basis) {
                Next::Propose => live.push((logprob, trajectory)),
                Next::Ended(End::Answered(answer)) => {
                    self.finished.push(Finished {
                        id: *id,
                        answer,
                        logprob,
                        summary: Summary::of(&trajectory),
                    });
                }
                Next::Ended(end) => last_end = Some(end),
            }
        }

        // Stable, so that ties go to the answer found first.
        self.finished.sort_by(|a, b| b.logprob.total_cmp(&a.logprob));
        self.finished.truncate(places);

        // A partial trajectory can only become less likely.
        let is_settled = self
            .finished
            .first()
            .is_some_and(|best| live.iter().all(|(lnp, _)| best.logprob >= *lnp));

        if is_settled && let Some(ended) = self.best() {
            return ended;
        }

        if live.is_empty() {
            return give_up(&samples, last_end.unwrap_or(End::Stuck));
        }

        self.logprobs = live.iter().map(|(logprob, _)| *logprob).collect();

        let round = samples[0].id.round;
        let mut slots = Vec::new();

        for (group, (_, trajectory)) in (0u32..).zip(live) {
            // The first slot gets the trajectory itself, the others a copy.
            for slot in 1..beam.actions {
                let id = TurnId { round, trajectory: group * beam.actions + slot };
                slots.push((id, Box::new(trajectory.fork())));
            }

            slots.push((TurnId { round, trajectory: group * beam.actions }, trajectory));
        }

        slots.sort_by_key(|(id, _)| id.trajectory);

        Step::Propose(slots)
    }
}
