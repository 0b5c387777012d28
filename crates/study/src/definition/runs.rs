//! The runs that a study asks for.

use prime_bench::tasks::{AnyTask, Difficulty, InstanceId};

use super::check::Study;
use super::null::has_choices;
use super::system::System;
use crate::records::{GIVEN, Key, Provenance, Record};

/// One run: a system on an instance, for the nth time.
#[derive(Clone, Copy)]
pub struct AskedRun {
    /// Index into the study's systems.
    pub system: usize,
    /// The task to solve.
    pub task: &'static dyn AnyTask,
    /// Level of the instance; the first of the study's levels where the inputs are given.
    pub difficulty: Difficulty,
    /// Base seed of the instance.
    pub base_seed: u64,
    /// Index of the instance within task, level and base seed, or place of the given input; from 0.
    pub index: u32,
    /// Number of the repeat, from 0.
    pub repeat: u32,
}

impl AskedRun {
    /// The key under which the run is recorded.
    pub fn key(&self, study: &Study) -> Key {
        Key {
            system: study.systems[self.system].name.clone(),
            task: self.task.spec().slug.to_owned(),
            difficulty: self.level().to_owned(),
            index: self.index,
            base_seed: self.base_seed,
            repeat: self.repeat,
        }
    }

    /// A record of this run without results: `not_measured`. `started_at` is RFC 3339 in UTC.
    pub fn record(&self, study: &Study, provenance: &Provenance, started_at: String) -> Record {
        let record = Record::not_measured(self.key(study), self.task.spec(), provenance);

        let System { parameters, factors, .. } = study.systems[self.system].clone();
        Record {
            parameters,
            factors,
            study: study.name.clone(),
            task_digest: provenance.task_digests.get(self.task.spec().slug).cloned(),
            sampling_seed: self.sampling_seed(study),
            started_at,
            ..record
        }
    }

    /// The level as records name it: [`GIVEN`] for given inputs.
    pub fn level(&self) -> &'static str {
        if self.task.given().is_some() { GIVEN } else { self.difficulty.name() }
    }

    /// The benchmark's instance, or the given one.
    pub fn instance(&self) -> InstanceId {
        let Self { task, difficulty, index, base_seed, .. } = *self;
        InstanceId { task, difficulty, index, base_seed }
    }

    /// Sampling seed: the same for all systems, different for each instance and repeat, and
    /// independent of what else the study asks.
    pub fn sampling_seed(&self, study: &Study) -> u64 {
        let text = format!("{}/{}/{}", self.instance(), self.base_seed, self.repeat);
        study.ask.sampling_seed.wrapping_add(prime_bench::fnv1a(text.bytes()))
    }
}

impl Study {
    /// All runs. The systems take turns on each instance, so that an interrupted study has pairs.
    /// The first instances of all tasks come before the second ones, so that it also has runs of
    /// every task.
    pub fn runs(&self) -> impl Iterator<Item = AskedRun> + '_ {
        let ask = &self.ask;

        let cells: Vec<_> = ask
            .tasks
            .iter()
            .flat_map(|task| {
                // Given inputs have no levels: the first one stands in.
                let levels = task.given().map_or(ask.difficulties.len(), |_| 1);
                let systems = self.systems_of(*task);
                ask.difficulties
                    .iter()
                    .take(levels)
                    .map(move |level| (*task, *level, systems.clone()))
            })
            .collect();
        let first_seed = ask.base_seeds.first().copied();

        let rounds = ask
            .base_seeds
            .iter()
            .flat_map(|seed| (0..ask.instances).map(move |index| (*seed, index)));
        let rounds = (0..ask.repeats)
            .flat_map(move |repeat| rounds.clone().map(move |(seed, index)| (repeat, seed, index)));

        rounds.flat_map(move |(repeat, base_seed, index)| {
            let cells = cells.clone().into_iter().filter(move |(task, ..)| {
                task.given().is_none_or(|count| index < count && Some(base_seed) == first_seed)
            });
            cells.flat_map(move |(task, difficulty, systems)| {
                let base_seed = if task.given().is_some() { 0 } else { base_seed };
                systems.into_iter().map(move |system| AskedRun {
                    system,
                    task,
                    difficulty,
                    base_seed,
                    index,
                    repeat,
                })
            })
        })
    }

    /// Number of runs.
    pub fn runs_count(&self) -> u64 {
        let ask = &self.ask;
        let drawn =
            ask.difficulties.len() as u64 * ask.base_seeds.len() as u64 * u64::from(ask.instances);
        let of = |task: &&'static dyn AnyTask| {
            task.given().map_or(drawn, |count| u64::from(count.min(ask.instances)))
        };
        let runs = |task| of(task) * self.systems_of(*task).len() as u64;
        ask.tasks.iter().map(runs).sum::<u64>() * u64::from(ask.repeats)
    }

    /// Indexes of the systems that are asked a task: the null executor only where choices can be
    /// listed.
    fn systems_of(&self, task: &'static dyn AnyTask) -> Vec<usize> {
        let knows = self.systems.iter().any(|system| system.is_null) && has_choices(task);
        let is_asked = |place: &usize| knows || !self.systems[*place].is_null;
        let mut systems: Vec<usize> = (0..self.systems.len()).filter(is_asked).collect();
        // The others wait for the spending of this one.
        if let Some(matched) = &self.matched {
            systems.sort_by_key(|place| self.systems[*place].name != matched.to);
        }
        systems
    }
}
