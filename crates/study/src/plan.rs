//! What a study will cost: its runs; and proposals, tokens, time and price, estimated from a short
//! trial.

use std::collections::{BTreeMap, BTreeSet};

use prime_bench::tasks::{AnyTask, Difficulty, InstanceId};
use prime_protocol::Price;
use serde::Serialize;

use crate::definition::Study;
use crate::records::{Key, Record};

/// Number of a cell's instances whose reference steps are counted: they vary little within a level.
const REFERENCES: u32 = 3;

/// What a run cost, in whole units of the currency: by the price of its tokens that the caller
/// chose, else as it was recorded.
pub fn cost_of(run: &Record, price: Option<Price>) -> f64 {
    price.map_or_else(|| run.cost.unwrap_or_default(), |price| price.of(run.usage()).units())
}

/// An estimate: sums over runs. A trial of few runs makes it rough.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Cost {
    /// Proposed steps of all trajectories.
    pub proposals: f64,
    /// Tokens of all prompts.
    pub prompt_tokens: f64,
    /// Generated tokens.
    pub completion_tokens: f64,
    /// Wall time with the given number of concurrent runs, if they share the machine as the trial's
    /// runs did.
    pub seconds: f64,
    /// What these tokens cost, in whole units of the currency of the prices.
    pub price: f64,
}

/// The plan of one system.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct SystemPlan {
    /// Name of the system.
    pub system: String,
    /// Runs that the study asks of it.
    pub runs: u64,
    /// Runs that have a record already.
    pub finished: u64,
    /// Runs of the trial from which the estimate is made.
    pub trial_runs: usize,
    /// Cost of the runs that are still to do; `None` without a trial.
    pub estimate: Option<Cost>,
}

/// The plan of a study.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// Name of the study.
    pub study: String,
    /// Plans of the systems, in the order of the study.
    pub systems: Vec<SystemPlan>,
}

impl Plan {
    /// Total cost of the runs that are still to do; `None` if a system with such runs has no
    /// estimate.
    pub fn total(&self) -> Option<Cost> {
        // A finished system costs nothing more, even without a trial.
        let mut parts = self.systems.iter().map(|system| {
            if system.finished >= system.runs { Some(Cost::default()) } else { system.estimate }
        });
        parts.try_fold(Cost::default(), |sum, part| part.map(|part| sum.plus(part)))
    }

    /// Number of runs that are still to do.
    pub fn to_do(&self) -> u64 {
        self.systems.iter().map(|system| system.runs.saturating_sub(system.finished)).sum()
    }
}

impl Cost {
    fn plus(self, other: Self) -> Self {
        Self {
            proposals: self.proposals + other.proposals,
            prompt_tokens: self.prompt_tokens + other.prompt_tokens,
            completion_tokens: self.completion_tokens + other.completion_tokens,
            seconds: self.seconds + other.seconds,
            price: self.price + other.price,
        }
    }

    fn times(self, factor: f64) -> Self {
        Self {
            proposals: self.proposals * factor,
            prompt_tokens: self.prompt_tokens * factor,
            completion_tokens: self.completion_tokens * factor,
            seconds: self.seconds * factor,
            price: self.price * factor,
        }
    }
}

/// Mean cost of these runs for each step of the reference; `None` without runs.
fn rate(runs: &[&Record], concurrent: usize, price: Option<Price>) -> Option<Cost> {
    let sum = |figure: fn(&Record) -> f64| runs.iter().map(|run| figure(run)).sum::<f64>();
    let steps = sum(|run| run.reference_steps.max(1) as f64);

    let whole = Cost {
        proposals: sum(|run| run.proposals as f64),
        prompt_tokens: sum(|run| run.prompt_tokens as f64),
        completion_tokens: sum(|run| run.completion_tokens as f64),
        seconds: sum(|run| run.wall_ms) / 1e3 / concurrent.max(1) as f64,
        price: runs.iter().map(|run| cost_of(run, price)).sum(),
    };
    (!runs.is_empty()).then(|| whole.times(1.0 / steps))
}

/// Mean number of reference steps of a cell.
fn reference_steps(
    task: &'static dyn AnyTask,
    difficulty: Difficulty,
    base_seed: u64,
    instances: u32,
) -> f64 {
    let count = instances.clamp(1, REFERENCES);
    let steps = |index| {
        InstanceId { task, difficulty, index, base_seed }.problem().reference().steps.max(1) as f64
    };
    (0..count).map(steps).sum::<f64>() / f64::from(count)
}

/// Plans a study. `finished` are the keys of runs that have a record. `trial` are measured runs of
/// any of its systems, from which the cost of a step of the reference is estimated: from runs of
/// the same task and level if there are any, else of the task, else of the system. `concurrent`
/// runs are made at a time. Without a price, what runs cost is as it was recorded.
pub fn plan(
    study: &Study,
    finished: &BTreeSet<Key>,
    trial: &[Record],
    concurrent: usize,
    price: Option<Price>,
) -> Plan {
    let ask = &study.ask;

    // Runs to do, by system and cell.
    let mut to_do: BTreeMap<(usize, &str, Difficulty), u64> = BTreeMap::new();
    let mut done = vec![0; study.systems.len()];
    let mut asked = vec![0; study.systems.len()];

    for run in study.runs() {
        asked[run.system] += 1;
        if finished.contains(&run.key(study)) {
            done[run.system] += 1;
        } else {
            *to_do.entry((run.system, run.task.spec().slug, run.difficulty)).or_default() += 1;
        }
    }

    // Computed once, because all systems share the references.
    let mut lengths: BTreeMap<(&str, Difficulty), f64> = BTreeMap::new();
    let mut plans = Vec::new();
    for (place, system) in study.systems.iter().enumerate() {
        let tried: Vec<&Record> = trial
            .iter()
            .filter(|record| record.system == system.name && record.is_measured())
            .collect();

        let mut estimate = (!tried.is_empty()).then(Cost::default);
        for task in &ask.tasks {
            for level in &ask.difficulties {
                let slug = task.spec().slug;
                let runs = to_do.get(&(place, slug, *level)).copied().unwrap_or_default();
                let Some(sum) = estimate.as_mut().filter(|_| runs > 0) else { continue };

                let select = |wanted: &dyn Fn(&Record) -> bool| -> Option<Cost> {
                    let runs: Vec<&Record> =
                        tried.iter().copied().filter(|run| wanted(run)).collect();
                    rate(&runs, concurrent, price)
                };
                // From the most similar runs of the trial.
                let a_step = select(&|run| run.task == slug && run.difficulty == level.name())
                    .or_else(|| select(&|run| run.task == slug))
                    .or_else(|| select(&|_| true));

                let steps = *lengths.entry((slug, *level)).or_insert_with(|| {
                    reference_steps(*task, *level, ask.base_seeds[0], ask.instances)
                });

                let a_step = a_step.expect("invariant: the system was tried");
                *sum = sum.plus(a_step.times(steps * runs as f64));
            }
        }

        plans.push(SystemPlan {
            system: system.name.clone(),
            runs: asked[place],
            finished: done[place],
            trial_runs: tried.len(),
            estimate,
        });
    }

    Plan { study: study.name.clone(), systems: plans }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;
    use crate::testing::record;

    fn study(systems: &str) -> Study {
        let text = format!(
            "[study]\nname = \"x\"\nnull = false\n[ask]\ntasks = [\"bubble-sort\", \"n-queens\"]\ndifficulties = [\"easy\"]\ninstances = 10\n{systems}"
        );
        parse(&text, "x").unwrap()
    }

    #[test]
    fn without_a_trial_there_are_runs_and_no_estimate() {
        let study = study("[[system]]\nname = \"a\"\n[[system]]\nname = \"b\"\n");
        let finished: BTreeSet<Key> = study.runs().take(3).map(|run| run.key(&study)).collect();

        let plan = plan(&study, &finished, &[], 2, None);

        let runs: Vec<_> =
            plan.systems.iter().map(|system| (system.runs, system.finished)).collect();
        assert_eq!(runs, [(20, 2), (20, 1)]);
        assert_eq!((plan.to_do(), plan.total()), (37, None));
    }

    #[test]
    fn estimates_follow_the_reference() {
        let study = study("[[system]]\nname = \"a\"\n");
        // 100 ms, 9 prompt tokens and 2 proposals for each step of the reference.
        let trial = |task: &str| {
            let steps =
                reference_steps(prime_bench::tasks::find(task).unwrap(), Difficulty::Easy, 7, 10);
            let mut run = record("a", task, 0);
            (run.reference_steps, run.wall_ms) = (30, 3_000.0);
            (run.prompt_tokens, run.proposals) = (9 * run.reference_steps, 2 * run.reference_steps);
            run.completion_tokens = 0;
            (run, steps)
        };
        let ((sort, sort_steps), (queens, queens_steps)) =
            (trial("bubble-sort"), trial("n-queens"));

        let price = Price::per_million(1e6, 1e6, 0.0);
        let steps = 10.0 * (sort_steps + queens_steps);

        for trial in [vec![sort.clone(), queens], vec![sort]] {
            let cost = plan(&study, &BTreeSet::new(), &trial, 4, price).total().unwrap();
            assert!((cost.seconds - 0.1 * steps / 4.0).abs() < 1e-6 * steps, "{cost:?}");
            assert!((cost.proposals - 2.0 * steps).abs() < 1e-6 * steps);
            assert!((cost.price - 9.0 * steps).abs() < 1e-6 * steps);
        }

        let all: BTreeSet<Key> = study.runs().map(|run| run.key(&study)).collect();
        assert_eq!(plan(&study, &all, &[], 4, price).total(), Some(Cost::default()));
    }
}
