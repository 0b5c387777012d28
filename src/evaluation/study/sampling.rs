//! Systems that draw samples of a run or an answer, one after another, and choose one of them by a
//! rule that does not know what is right.

use prime_study::definition::{AskedRun, Prompts, Samples, Select, Study, Unit};
use prime_study::records::{Point, Record, Status};
use serde_json::Value;

use super::spending::{Budget, without_budget};
use super::{Answered, OneShotSystem, RunSystem};
use crate::evaluation::running_system::RuntimeEnded;
use prime_bench::output::value::equal;

/// What samples are drawn from.
pub enum Sampled {
    /// Whole runs.
    Run(Box<RunSystem>),
    /// Completions of a whole-problem prompt.
    OneShot(OneShotSystem),
}

/// A system that draws samples.
pub struct SamplingSystem {
    /// The system that gives each sample.
    pub of: Sampled,
    /// How many samples are drawn, and which of them counts.
    pub samples: Samples,
}

/// The increment of a sequence of seeds (SplitMix64): seeds of neighbouring runs stay apart.
const SEED_STEP: u64 = 0x9e37_79b9_7f4a_7c15;

/// Most samples of a run: a system whose samples spend nothing must come to an end.
const SAMPLES_MAX: u32 = 10_000;

/// The place of the sample that counts, of those that were drawn so far.
pub(super) fn chosen(select: Select, samples: &[Answered]) -> Option<usize> {
    let answer = |place: usize| samples[place].answer.as_ref();
    let mut answered = (0..samples.len()).filter(|place| answer(*place).is_some());
    match select {
        Select::First => answered.next(),
        Select::Refine => answered.next_back(),
        Select::Majority => {
            let places: Vec<usize> = answered.collect();
            let same = |a: usize, b: usize| match (answer(a), answer(b)) {
                (Some(a), Some(b)) => equal(a, b),
                _ => false,
            };
            let votes = |of: usize| places.iter().filter(|other| same(of, **other)).count();
            // Among equals, the one that was given first wins.
            places.iter().rev().copied().max_by_key(|place| votes(*place))
        }
        Select::Likelihood => {
            let logprob = |place: usize| samples[place].mean_logprob.unwrap_or(f64::NEG_INFINITY);
            let places: Vec<usize> = answered.collect();
            places.iter().rev().copied().max_by(|a, b| logprob(*a).total_cmp(&logprob(*b)))
        }
    }
}

/// What samples spent together.
#[derive(Clone, Copy, Debug, Default)]
struct Spent {
    prompt: u64,
    cached: u64,
    completion: u64,
    cost: Option<f64>,
    proposals: u64,
    wall_ms: f64,
    queued_ms: f64,
}

impl Spent {
    fn add(&mut self, record: &Record) {
        self.prompt += record.prompt_tokens;
        self.cached += record.cached_tokens.unwrap_or_default();
        self.completion += record.completion_tokens;
        if let Some(cost) = record.cost {
            *self.cost.get_or_insert_default() += cost;
        }
        self.proposals += record.proposals;
        self.wall_ms += record.wall_ms;
        self.queued_ms += record.queued_ms.unwrap_or_default();
    }

    fn tokens(&self, prompts: Prompts) -> u64 {
        prompts.tokens(self.prompt, self.cached, self.completion)
    }

    /// What was spent, in the study's unit.
    fn amount(&self, study: &Study) -> f64 {
        match study.matched.as_ref().map(|matched| matched.unit) {
            Some(Unit::Seconds) => self.wall_ms / 1e3,
            Some(Unit::Tokens) | None => self.tokens(study.prompts) as f64,
        }
    }
}

impl SamplingSystem {
    /// The sample of this number. It has a seed of its own; the first one has the run's.
    async fn sample(
        &self,
        run: &AskedRun,
        study: &Study,
        number: u32,
        before: Option<&str>,
        record: Record,
    ) -> Result<Answered, RuntimeEnded> {
        let step = SEED_STEP.wrapping_mul(number.into());
        let seed = run.sampling_seed(study).wrapping_add(step);
        match &self.of {
            Sampled::Run(system) => system.run(run, study, seed, None, record).await,
            Sampled::OneShot(system) => Ok(system.answer(run, study, seed, before, record).await),
        }
    }

    /// Draws samples until the budget is spent: one begins while less was spent, and is finished,
    /// so that a comparison errs in favour of this system by less than a sample.
    pub(super) async fn run(
        &self,
        run: &AskedRun,
        study: &Study,
        budget: Budget,
        record: Record,
    ) -> Result<Record, RuntimeEnded> {
        let Samples { select, most } = self.samples;
        let limit = match budget {
            Budget::Unlimited => f64::INFINITY,
            Budget::Of(limit) => limit,
            Budget::Unknown => return Ok(without_budget(record)),
        };

        let mut samples: Vec<Answered> = Vec::new();
        let (mut spent, mut points) = (Spent::default(), Vec::<Point>::new());
        for number in 0..most.unwrap_or(SAMPLES_MAX) {
            if number > 0 && spent.amount(study) >= limit {
                break;
            }

            let before = samples.last().filter(|_| select == Select::Refine);
            let before = before.map(|sample| sample.text.as_str());
            let sample = self.sample(run, study, number, before, record.clone()).await?;
            if !sample.record.is_measured() {
                return Ok(sample.record);
            }
            if select == Select::Likelihood && sample.mean_logprob.is_none() {
                let reason = "the model gives no log-probabilities, by which samples are chosen";
                let record = Record { failure: Some(reason.to_owned()), ..sample.record };
                return Ok(Record { status: Status::NotMeasured, right: false, ..record });
            }

            spent.add(&sample.record);
            samples.push(sample);
            if let Some(place) = chosen(select, &samples) {
                points.push((spent.tokens(study.prompts), samples[place].record.right));
                // No later sample can change the choice.
                if select == Select::First {
                    break;
                }
            }
        }

        let place = chosen(select, &samples).unwrap_or(samples.len() - 1);
        let count = u32::try_from(samples.len()).unwrap_or(u32::MAX);
        let votes = votes(&samples, place);
        let mut record = samples.swap_remove(place).record;
        record.samples = Some(count);
        record.matched_budget = limit.is_finite().then_some(limit);
        record.set_curve(points);

        record.prompt_tokens = spent.prompt;
        record.cached_tokens = Some(spent.cached);
        record.completion_tokens = spent.completion;
        record.cost = spent.cost;
        record.proposals = spent.proposals;
        record.wall_ms = spent.wall_ms;
        record.queued_ms = Some(spent.queued_ms);
        (record.rounds, record.trajectories) = (1, count);
        record.votes = votes;
        record.agreement = votes.map(|votes| f64::from(votes) / f64::from(count));
        // These would be the times of one sample only.
        (record.verifier_ms, record.coordinator_ms) = (None, None);
        (record.executor_ms, record.coordination_share) = (None, None);
        Ok(record)
    }
}

/// How many samples gave the answer of this one; `None` if it has none.
fn votes(samples: &[Answered], place: usize) -> Option<u32> {
    let of: &Value = samples[place].answer.as_ref()?;
    let is_same = |sample: &&Answered| sample.answer.as_ref().is_some_and(|other| equal(of, other));
    u32::try_from(samples.iter().filter(is_same).count()).ok()
}
