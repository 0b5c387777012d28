//! The results of one system.

use std::collections::{BTreeMap, BTreeSet};

use prime_bench::tasks::{Difficulty, Spec};

use super::own_spec::spec_of;
use crate::records::{Evidence, Record};

/// An instance of a task.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Instance {
    /// Level; `None` if the inputs are given, as for a user's own task.
    pub difficulty: Option<Difficulty>,
    /// Base seed of the instance.
    pub base_seed: u64,
    /// Index of the instance, or place of the given input; from 0.
    pub index: u32,
}

impl Instance {
    pub(crate) fn of(record: &Record) -> Self {
        let difficulty = record.difficulty.parse().ok();
        Self { difficulty, base_seed: record.base_seed, index: record.index }
    }
}

/// Runs of one system on one task.
#[derive(Debug)]
pub struct TaskResults<'r> {
    /// The task.
    pub spec: &'static Spec,
    /// Measured runs.
    pub runs: Vec<&'r Record>,
    /// Share of right answers among the measured repeats of each instance, 0 to 1.
    pub instances: BTreeMap<Instance, f64>,
    /// Digests of the inputs of measured instances, where records have them.
    inputs: BTreeMap<Instance, &'r str>,
    /// Instances that the system was asked, measured or not.
    pub asked: BTreeSet<Instance>,
}

/// The instances of one task.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct TaskValues {
    /// Share of right answers of each instance, 0 to 1.
    pub values: Vec<f64>,
    /// Number of different inputs among the instances, at most the number of values.
    pub inputs: usize,
}

impl From<Vec<f64>> for TaskValues {
    /// Instances whose inputs all differ.
    fn from(values: Vec<f64>) -> Self {
        Self { inputs: values.len(), values }
    }
}

impl TaskResults<'_> {
    /// The digest of a measured instance's input, where its record has one.
    pub fn input(&self, instance: &Instance) -> Option<&str> {
        self.inputs.get(instance).copied()
    }

    /// The shares of the instances that `wanted` accepts.
    pub fn values(&self, wanted: impl Fn(&Instance) -> bool) -> TaskValues {
        let (mut values, mut known, mut unknown) = (Vec::new(), BTreeSet::new(), 0);
        for (instance, value) in self.instances.iter().filter(|(instance, _)| wanted(instance)) {
            values.push(*value);
            match self.inputs.get(instance) {
                Some(input) => drop(known.insert(*input)),
                // An instance without a digest counts as a different input.
                None => unknown += 1,
            }
        }
        TaskValues { values, inputs: known.len() + unknown }
    }
}

/// Runs of one system.
#[derive(Debug)]
pub struct SystemResults<'r> {
    /// Name in the study file.
    pub name: String,
    /// The name, with a warning if the verifier saw `transition` or kinds that are not sound.
    pub label: String,
    /// Slot of its colour and marker in drawings, which its name fixes.
    pub slot: usize,
    /// What its verifier looked at, the same in all runs.
    pub evidence: Evidence,
    /// What sets it apart from the others: values of factors by name.
    pub factors: BTreeMap<&'r str, &'r str>,
    /// Number of parameters of its model, if known.
    pub parameters: Option<u64>,
    /// Measured runs.
    pub runs: Vec<&'r Record>,
    /// Number of runs that were not measured.
    pub not_measured: usize,
    /// Results by task, in the paper's order.
    pub tasks: Vec<TaskResults<'r>>,
}

impl<'r> SystemResults<'r> {
    /// The parts of a factor's value, which joins them by `+`; empty without the factor.
    pub fn parts(&self, factor: &str) -> BTreeSet<&'r str> {
        self.factors
            .get(factor)
            .into_iter()
            .flat_map(|value| value.split('+'))
            .filter(|it| !it.is_empty())
            .collect()
    }

    /// All factors but this one: systems that differ only in it have the same others.
    pub fn other_factors(&self, factor: &str) -> BTreeMap<&'r str, &'r str> {
        self.factors
            .iter()
            .filter(|(name, _)| **name != factor)
            .map(|(name, value)| (*name, *value))
            .collect()
    }

    /// Values of the instances of each task; tasks without any are left out.
    pub fn values(&self, wanted: impl Fn(&Spec, Option<Difficulty>) -> bool) -> Vec<TaskValues> {
        let of =
            |task: &TaskResults<'_>| task.values(|instance| wanted(task.spec, instance.difficulty));
        self.tasks.iter().map(of).filter(|task| !task.values.is_empty()).collect()
    }
}

/// Groups records by system.
pub(super) fn group(records: &[Record]) -> Vec<SystemResults<'_>> {
    let mut order: Vec<(&str, Evidence)> = Vec::new();

    let mut groups: BTreeMap<(&str, Evidence), Vec<&Record>> = BTreeMap::new();
    for record in records {
        let key = (record.system.as_str(), record.evidence());
        let group = groups.entry(key).or_insert_with(|| {
            order.push(key);
            Vec::new()
        });
        group.push(record);
    }

    let systems =
        order.into_iter().map(|key| system(key, &groups.remove(&key).unwrap_or_default()));
    systems.collect()
}

/// The factors of a record: `name=value`, separated by commas.
fn factors(text: &str) -> BTreeMap<&str, &str> {
    text.split(',').filter_map(|factor| factor.split_once('=')).collect()
}

fn system<'r>((name, evidence): (&str, Evidence), records: &[&'r Record]) -> SystemResults<'r> {
    let mut by_task: BTreeMap<(u16, &str), Vec<&'r Record>> = BTreeMap::new();
    for record in records {
        let spec = spec_of(record);
        by_task.entry((spec.id, spec.slug)).or_default().push(record);
    }

    let label = match evidence.warning() {
        "" => name.to_owned(),
        warning => format!("{name} ({warning})"),
    };
    let runs: Vec<&Record> =
        records.iter().copied().filter(|record| record.is_measured()).collect();

    SystemResults {
        name: name.to_owned(),
        label,
        slot: 0,
        evidence,
        factors: records
            .iter()
            .find_map(|record| record.factors.as_deref())
            .map(factors)
            .unwrap_or_default(),
        parameters: records.iter().find_map(|record| record.parameters),
        not_measured: records.len() - runs.len(),
        runs,
        tasks: by_task.into_values().map(task).collect(),
    }
}

fn task<'r>(records: Vec<&'r Record>) -> TaskResults<'r> {
    let spec = spec_of(records[0]);

    let asked = records.iter().map(|record| Instance::of(record)).collect();
    let runs: Vec<&Record> = records.into_iter().filter(|record| record.is_measured()).collect();

    let mut counts: BTreeMap<Instance, (u32, u32)> = BTreeMap::new();
    for run in &runs {
        let (right, of) = counts.entry(Instance::of(run)).or_default();
        *right += u32::from(run.right);
        *of += 1;
    }

    let share = |(instance, (right, of)): (Instance, (u32, u32))| {
        (instance, f64::from(right) / f64::from(of))
    };
    let input = |run: &&'r Record| Some((Instance::of(run), run.input_digest.as_deref()?));
    let inputs = runs.iter().filter_map(input).collect();

    let instances = counts.into_iter().map(share).collect();
    TaskResults { spec, runs, instances, inputs, asked }
}
