//! Particle filtering: sequential Monte Carlo over steps. Each particle is a partial trajectory
//! that proposes a step; the verifier weighs it, and particles of little weight give way to copies
//! of others.

use std::hash::Hasher as _;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use twox_hash::XxHash64;

use super::batch::{Sample, Step, again, commit, give_up};
use super::score::Score;
use super::search_counts::SearchCounts;
use super::strategy::ParticleFilter;
use super::trajectory::{End, Next, Summary, Trajectory};
use super::turn::TurnId;

/// The particles between two batches, without the trajectories of those that propose.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Particles {
    /// By slot; `None` if it has died.
    slots: Vec<Option<Particle>>,
    batches: u64,
    /// Consecutive batches in which every proposal was rejected.
    misses: u32,
    counts: SearchCounts,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Particle {
    /// Σ V over its steps since the last resampling.
    violations: Score,
    finished: Option<Finished>,
}

/// A particle that has an answer. It keeps its weight and proposes no more.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Finished {
    id: TurnId,
    answer: Value,
    summary: Summary,
}

impl Particle {
    /// 1 / (1 + ΣV), as a weighted vote has it.
    fn weight(&self) -> f64 {
        1.0 / (1.0 + self.violations.value())
    }
}

/// An answer with the weight of all particles that have it.
struct Leader<'p> {
    /// The cleanest of them.
    finished: &'p Finished,
    weight: f64,
}

/// What the steps of a batch led to.
struct Stepped {
    /// The trajectories that continue, by slot.
    moving: Vec<Option<Box<Trajectory>>>,
    /// The end of the last that does not.
    ended: (TurnId, Summary, End),
}

/// How often each particle is copied by systematic resampling: n points at equal distances, the
/// first at `uniform` (0 to 1) of the distance, in intervals as long as the weights.
fn offspring(weights: &[f64], uniform: f64) -> Vec<usize> {
    #[expect(clippy::cast_precision_loss, reason = "at most 256 particles")]
    let distance = weights.iter().sum::<f64>() / weights.len() as f64;

    let (mut end, mut point, mut left) = (0.0, uniform * distance, weights.len());
    let mut copies: Vec<usize> = Vec::with_capacity(weights.len());
    for weight in weights {
        end += weight;
        let mut here = 0;
        while left > 0 && point < end {
            (here, left) = (here + 1, left - 1);
            point += distance;
        }
        copies.push(here);
    }

    // Rounding may leave the last point outside.
    if let Some(last) = weights.iter().rposition(|weight| *weight > 0.0) {
        copies[last] += left;
    }
    copies
}

/// A number from 0 to 1 that follows from a batch, so that a replay draws it again.
fn uniform(batch: u64, samples: &[Sample]) -> f64 {
    let mut hasher = XxHash64::with_seed(batch);
    for sample in samples {
        hasher.write_u32(sample.id.round);
        hasher.write_u32(sample.id.trajectory);
        hasher.write(sample.line.as_bytes());
    }

    #[expect(clippy::cast_precision_loss, reason = "53 bits")]
    let share = (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64;
    share
}

impl Particles {
    pub fn new(filter: &ParticleFilter) -> Self {
        Self {
            slots: vec![Some(Particle::default()); filter.particles as usize],
            batches: 0,
            misses: 0,
            counts: SearchCounts::default(),
        }
    }

    pub fn counts(&self) -> SearchCounts {
        self.counts
    }

    fn living(&self) -> impl Iterator<Item = &Particle> {
        self.slots.iter().flatten()
    }

    fn weights(&self) -> Vec<f64> {
        self.slots.iter().map(|slot| slot.as_ref().map_or(0.0, Particle::weight)).collect()
    }

    /// The answer of most weight; of several, the one of the first particle.
    fn leader(&self) -> Option<Leader<'_>> {
        let mut leaders: Vec<Leader<'_>> = Vec::new();
        for particle in self.living() {
            let Some(finished) = &particle.finished else { continue };
            match leaders.iter_mut().find(|leader| leader.finished.answer == finished.answer) {
                Some(leader) => {
                    leader.weight += particle.weight();
                    if finished.summary.score < leader.finished.summary.score {
                        leader.finished = finished;
                    }
                }
                None => leaders.push(Leader { finished, weight: particle.weight() }),
            }
        }
        // Reversed, because `max_by` returns the last.
        leaders.into_iter().rev().max_by(|one, other| one.weight.total_cmp(&other.weight))
    }

    /// Ends the search with the answer of most weight, if there is one.
    pub fn best(&self) -> Option<Step> {
        let Finished { id, answer, summary } = self.leader()?.finished;
        Some(Step::Ended(*id, summary.clone(), End::Answered(answer.clone())))
    }

    /// Continues with a complete batch, sorted by slot.
    pub fn advance(
        &mut self,
        filter: &ParticleFilter,
        samples: Vec<Sample>,
        attempts_max: u32,
    ) -> Step {
        self.batches += 1;

        let passes = samples.iter().any(|sample| sample.passes);
        if !passes && self.living().all(|particle| particle.finished.is_none()) {
            return self.miss(samples, attempts_max);
        }
        self.misses = 0;

        let round = samples.first().map_or(0, |sample| sample.id.round);
        let uniform = uniform(self.batches, &samples);
        let Stepped { mut moving, ended } = self.step(samples);

        let weights = self.weights();
        let (sum, squares) = weights
            .iter()
            .fold((0.0, 0.0), |(sum, squares), weight| (sum + weight, squares + weight * weight));
        if sum > 0.0 && sum * sum / squares < filter.resample_below * f64::from(filter.particles) {
            self.resample(&offspring(&weights, uniform), &mut moving);
        }

        // The particles that still propose can only become lighter.
        let rest: f64 = self.weights().iter().sum();
        let is_settled = self.leader().is_some_and(|leader| 2.0 * leader.weight > rest);
        let slots: Vec<_> = (0_u32..)
            .zip(moving)
            .filter_map(|(slot, trajectory)| {
                Some((TurnId { round, trajectory: slot }, trajectory?))
            })
            .collect();

        if is_settled || slots.is_empty() {
            let (id, summary, end) = ended;
            return self.best().unwrap_or(Step::Ended(id, summary, end));
        }
        Step::Propose(slots)
    }

    /// Asks again where every particle's proposal was rejected, without the rejected lines: a
    /// filter whose particles have all died says nothing.
    fn miss(&mut self, mut samples: Vec<Sample>, attempts_max: u32) -> Step {
        self.misses += 1;
        if self.misses >= attempts_max {
            return give_up(&samples, End::Stuck);
        }

        for sample in &mut samples {
            sample.trajectory.feedback.clone_from(&sample.feedback);
            if !sample.line.is_empty() {
                let top = sample.trajectory.stack.top_mut();
                top.exclude(&sample.line, sample.feedback.as_deref());
            }
        }
        again(samples)
    }

    /// Takes the steps of a batch.
    fn step(&mut self, samples: Vec<Sample>) -> Stepped {
        let mut moving: Vec<_> = self.slots.iter().map(|_| None).collect();
        let first = samples.first().expect("invariant: a batch has a slot");
        let mut ended = (first.id, Summary::of(&first.trajectory), End::Stuck);

        for mut sample in samples {
            let slot = sample.id.trajectory as usize;
            let Some(particle) = self.slots[slot].as_mut().filter(|_| sample.passes) else {
                self.slots[slot] = None;
                self.counts.deaths += 1;
                continue;
            };

            particle.violations = particle.violations.plus(sample.score);
            sample.trajectory.feedback = None;
            match commit(&mut sample.trajectory, &sample.line, sample.score, sample.basis) {
                Next::Propose => moving[slot] = Some(sample.trajectory),
                Next::Ended(End::Answered(answer)) => {
                    let summary = Summary::of(&sample.trajectory);
                    particle.finished = Some(Finished { id: sample.id, answer, summary });
                }
                Next::Ended(end) => {
                    ended = (sample.id, Summary::of(&sample.trajectory), end);
                    self.slots[slot] = None;
                    self.counts.deaths += 1;
                }
            }
        }
        Stepped { moving, ended }
    }

    /// Replaces the particles that have no copies by those that have several. All weigh the same
    /// then.
    fn resample(&mut self, copies: &[usize], moving: &mut [Option<Box<Trajectory>>]) {
        self.counts.resamplings += 1;

        let mut free = (0..copies.len()).filter(|slot| copies[*slot] == 0);
        for (from, copies) in copies.iter().enumerate() {
            for _ in 1..*copies {
                let to = free.next().expect("invariant: there are as many copies as slots");
                self.slots[to] = self.slots[from].clone();
                moving[to] = moving[from].as_deref().map(|trajectory| {
                    let mut copy = trajectory.fork();
                    copy.index = u32::try_from(to).expect("invariant: at most 256 slots");
                    Box::new(copy)
                });
            }
        }

        for particle in self.slots.iter_mut().flatten() {
            particle.violations = Score::ZERO;
        }
    }

    #[cfg(test)]
    pub(super) fn offspring(weights: &[f64], uniform: f64) -> Vec<usize> {
        offspring(weights, uniform)
    }
}
