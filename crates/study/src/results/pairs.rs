//! Two systems on the same instances.

use std::collections::BTreeSet;

use prime_bench::tasks::Spec;

use super::system::{Instance, SystemResults, TaskResults};
use crate::nearest::did_you_mean;
use crate::records::Evidence;
use crate::statistics::{Computed, LeftOut, UNMEASURED_SHARE_MAX, mean};

/// Why systems cannot be compared.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PairingError {
    /// No system has this name.
    #[error("no system `{name}` in the records{suggestion}; there are {known}")]
    NoSystem {
        /// The name, as given.
        name: String,
        /// A suggestion, ready to follow the name; or empty.
        suggestion: String,
        /// The names of the systems in the records.
        known: String,
    },
    /// No instance was asked of both systems.
    #[error(
        "`{left}` and `{right}` have no instance in common (task, difficulty, index and base seed); run both on the \
         same instances"
    )]
    NothingInCommon {
        /// Name of the left system.
        left: String,
        /// Name of the right system.
        right: String,
    },
    /// The verifiers looked at kinds of different worth.
    #[error(
        "`{left}` and `{right}` are not compared: the verifier of one looked at {}, that of the other at {}",
        .evidence.0.heading(), .evidence.1.heading()
    )]
    OtherEvidence {
        /// Name of the left system.
        left: String,
        /// Name of the right system.
        right: String,
        /// What the verifiers of the left and right system looked at.
        evidence: (Evidence, Evidence),
    },
}

/// The instances of one task on which both systems were measured. Each input is there once, with
/// its first instance: further instances of the same input would repeat one observation.
#[derive(Clone, Debug)]
pub struct PairedTask {
    /// The task.
    pub spec: &'static Spec,
    /// The instances, in the order of `left` and `right`.
    pub instances: Vec<Instance>,
    /// The left system's share of right answers to each instance, 0 to 1.
    pub left: Vec<f64>,
    /// The right system's share of right answers to each instance, 0 to 1.
    pub right: Vec<f64>,
    /// Number of measured pairs, including those whose input an earlier pair has.
    pub measured: usize,
    /// Number of instances that only the left system gets right.
    pub only_left: u64,
    /// Number of instances that only the right system gets right.
    pub only_right: u64,
    /// True if each instance was run once by each system, so that right and wrong can be counted.
    pub is_counted: bool,
}

impl PairedTask {
    /// Mean gain of the right system, in percentage points.
    pub fn gain(&self) -> f64 {
        100.0 * (mean(&self.right) - mean(&self.left))
    }

    /// Differences `right − left` of the shares, instance by instance, −1 to 1.
    pub fn differences(&self) -> Vec<f64> {
        self.left.iter().zip(&self.right).map(|(left, right)| right - left).collect()
    }
}

/// A comparison: what the right system gains over the left.
#[derive(Clone, Debug)]
pub struct PairResults {
    /// Label of the left system.
    pub left: String,
    /// Label of the right system.
    pub right: String,
    /// Tasks on which both were measured, in the paper's order.
    pub tasks: Vec<PairedTask>,
    /// Number of pairs of which one side was not measured.
    pub dropped: usize,
    /// Number of instances that only one of the systems was asked.
    pub unpaired: usize,
}

impl PairResults {
    /// Number of pairs that are compared, one for each input.
    pub fn n(&self) -> usize {
        self.tasks.iter().map(|task| task.left.len()).sum()
    }

    fn measured(&self) -> usize {
        self.tasks.iter().map(|task| task.measured).sum()
    }

    /// Refuses tests if too many pairs were dropped.
    pub fn testable(&self) -> Computed<()> {
        let of = self.measured() + self.dropped;
        let limit = UNMEASURED_SHARE_MAX * of as f64;
        if self.dropped as f64 > limit {
            Err(LeftOut::Unmeasured { dropped: self.dropped, of })
        } else {
            Ok(())
        }
    }

    /// Mean accuracy on each task, 0 to 1, of the left and of the right system.
    pub fn task_means(&self) -> (Vec<f64>, Vec<f64>) {
        self.tasks.iter().map(|task| (mean(&task.left), mean(&task.right))).unzip()
    }

    /// The heading of the comparison: `left → right`.
    pub fn title(&self) -> String {
        format!("{} → {}", self.left, self.right)
    }
}

/// The first system paired with each other one with which it shares instances.
pub(super) fn with_the_first(systems: &[SystemResults<'_>]) -> Vec<PairResults> {
    let Some((first, others)) = systems.split_first() else { return Vec::new() };
    let comparable = others.iter().filter(|other| first.evidence.is_comparable(other.evidence));
    comparable.filter_map(|other| pair(first, other)).collect()
}

fn named_system<'s, 'r>(
    systems: &'s [SystemResults<'r>],
    name: &str,
) -> Result<Vec<&'s SystemResults<'r>>, PairingError> {
    // Several systems may have one name, if the verifier looked at other kinds in some of the runs.
    let found: Vec<_> =
        systems.iter().filter(|system| system.name == name || system.label == name).collect();

    if !found.is_empty() {
        return Ok(found);
    }

    let known = || systems.iter().map(|system| system.name.as_str());
    Err(PairingError::NoSystem {
        name: name.to_owned(),
        suggestion: did_you_mean(name, known()),
        known: known().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "),
    })
}

/// The pairs with these names. If the verifier looked at kinds of different worth in some of the
/// runs, these runs form a pair of their own.
pub(super) fn named(
    systems: &[SystemResults<'_>],
    pairs: &[(String, String)],
) -> Result<Vec<PairResults>, PairingError> {
    let mut all = Vec::new();
    for (left, right) in pairs {
        let (lefts, rights) = (named_system(systems, left)?, named_system(systems, right)?);
        let both = lefts.iter().flat_map(|left| rights.iter().map(move |right| (left, right)));
        let (comparable, others): (Vec<_>, Vec<_>) =
            both.partition(|(left, right)| left.evidence.is_comparable(right.evidence));
        let found: Vec<_> =
            comparable.iter().filter_map(|(left, right)| pair(left, right)).collect();
        let other = others.iter().find(|(left, right)| pair(left, right).is_some());
        if let (true, Some((one, another))) = (found.is_empty(), other) {
            return Err(PairingError::OtherEvidence {
                left: left.clone(),
                right: right.clone(),
                evidence: (one.evidence, another.evidence),
            });
        }
        if found.is_empty() {
            return Err(PairingError::NothingInCommon { left: left.clone(), right: right.clone() });
        }
        all.extend(found);
    }
    Ok(all)
}

/// Pairs two systems on the instances that both were asked; `None` if there are none.
pub(crate) fn pair(left: &SystemResults<'_>, right: &SystemResults<'_>) -> Option<PairResults> {
    let mut tasks = Vec::new();

    let (mut dropped, mut common) = (0, 0);
    for left in &left.tasks {
        let Some(right) = right.tasks.iter().find(|task| task.spec.slug == left.spec.slug) else {
            continue;
        };

        let both: Vec<Instance> = left.asked.intersection(&right.asked).copied().collect();
        common += both.len();
        let task = paired_task(left, right, &both);
        dropped += both.len() - task.measured;
        if !task.left.is_empty() {
            tasks.push(task);
        }
    }

    let asked = |system: &SystemResults<'_>| {
        system.tasks.iter().map(|task| task.asked.len()).sum::<usize>()
    };

    let unpaired = asked(left) + asked(right) - 2 * common;
    let (left, right) = (left.label.clone(), right.label.clone());
    (common > 0).then_some(PairResults { left, right, tasks, dropped, unpaired })
}

fn paired_task(left: &TaskResults<'_>, right: &TaskResults<'_>, both: &[Instance]) -> PairedTask {
    let measured = |instance: &Instance| {
        Some((*instance, (*left.instances.get(instance)?, *right.instances.get(instance)?)))
    };
    let measured: Vec<(Instance, (f64, f64))> = both.iter().filter_map(measured).collect();

    let mut known = BTreeSet::new();
    let first = |(instance, _): &&(Instance, (f64, f64))| {
        left.input(instance).is_none_or(|input| known.insert(input))
    };
    let (instances, values): (Vec<Instance>, Vec<(f64, f64)>) =
        measured.iter().filter(first).copied().unzip();
    let (left_values, right_values): (Vec<f64>, Vec<f64>) = values.into_iter().unzip();

    let count = |wanted: fn(f64, f64) -> bool| {
        left_values
            .iter()
            .zip(&right_values)
            .filter(|(left, right)| wanted(**left, **right))
            .count() as u64
    };

    PairedTask {
        spec: left.spec,
        measured: measured.len(),
        only_left: count(|left, right| left == 1.0 && right == 0.0),
        only_right: count(|left, right| left == 0.0 && right == 1.0),
        is_counted: left.runs.len() == left.instances.len()
            && right.runs.len() == right.instances.len(),
        instances,
        left: left_values,
        right: right_values,
    }
}
