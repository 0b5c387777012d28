//! The method section and the remarks, derived from the records.

use std::collections::BTreeSet;

use crate::records::{Evidence, Record};
use crate::results::{BOOTSTRAP_SEED, Results};
use crate::statistics::RESAMPLES;

fn count(number: usize) -> String {
    prime_page::number::count(number as u64)
}

/// Values of a column, each once.
fn distinct<'r>(records: &'r [Record], value: impl Fn(&'r Record) -> Option<&'r str>) -> String {
    let values: BTreeSet<&str> = records.iter().filter_map(value).collect();
    if values.is_empty() {
        "unknown".to_owned()
    } else {
        values.into_iter().collect::<Vec<_>>().join(", ")
    }
}

fn numbers<T: Ord + ToString>(records: &[Record], value: impl Fn(&Record) -> T) -> String {
    let values: BTreeSet<T> = records.iter().map(value).collect();
    values.iter().map(T::to_string).collect::<Vec<_>>().join(", ")
}

/// The values if there are few, else their number.
fn counted(records: &[Record], value: impl Fn(&Record) -> u64) -> String {
    let values: BTreeSet<u64> = records.iter().map(value).collect();
    if values.len() <= 5 {
        values.iter().map(u64::to_string).collect::<Vec<_>>().join(", ")
    } else {
        format!("{} different", values.len())
    }
}

/// The sets of kinds that verifiers looked at, each once.
fn kinds_seen(records: &[Record]) -> String {
    let sets: BTreeSet<String> = records
        .iter()
        .map(|record| record.checked_kinds.replace(',', ", "))
        .map(|kinds| if kinds.is_empty() { "none".to_owned() } else { kinds })
        .collect();
    sets.into_iter().collect::<Vec<_>>().join("; ")
}

pub(super) fn method(records: &[Record], results: &Results<'_>) -> Vec<String> {
    let started = || records.iter().map(|record| record.started_at.as_str());
    let (first, last) = (started().min().unwrap_or("never"), started().max().unwrap_or("never"));

    let tasks: BTreeSet<&str> = records.iter().map(|record| record.task.as_str()).collect();
    let repeats: BTreeSet<u32> = records.iter().map(|record| record.repeat).collect();

    let systems = results.systems.iter().map(|system| {
        let of: Vec<&&Record> = system.runs.iter().collect();
        let hashes: BTreeSet<&str> = of.iter().map(|run| run.config_hash.as_str()).collect();
        let models: BTreeSet<&str> =
            of.iter().filter_map(|run| run.model_digest.as_deref()).collect();
        let join = |set: BTreeSet<&str>| set.into_iter().collect::<Vec<_>>().join(", ");
        format!("{}: configuration {}, model {}", system.label, join(hashes), join(models))
    });

    let unknown = records.iter().filter(|run| run.evidence() == Evidence::Unknown).count();
    let of_old = match unknown {
        0 => String::new(),
        count => format!(
            " {count} runs are of a version that did not record whether its kinds were sound: an \
             accepted answer of theirs may be wrong."
        ),
    };

    vec![
        format!(
            "{} runs of {} systems on {} tasks of PRIME-Bench; base seeds {}; sampling seeds {}; {} of each instance. \
             From {first} to {last}, by prime-agents {} (commit {}), on {}.",
            count(records.len()),
            results.systems.len(),
            tasks.len(),
            numbers(records, |record| record.base_seed),
            counted(records, |record| record.sampling_seed),
            if repeats.len() == 1 { "one run".to_owned() } else { format!("up to {} runs", repeats.len()) },
            distinct(records, |record| Some(&record.version)),
            distinct(records, |record| record.commit.as_deref()),
            distinct(records, |record| Some(&record.machine)),
        ),
        format!("Systems. {}.", systems.collect::<Vec<_>>().join("; ")),
        "The unit is the instance (task, difficulty, base seed, index). Repeats with other sampling seeds are \
         averaged first; they are no new instances. Where systems are compared, instances with the same input count \
         once, by the first of them. Runs that could not be made are `not measured`: they are counted \
         and never wrong."
            .to_owned(),
        format!(
            "Intervals are at 95 %: Wilson's for one proportion; clustered by task for means over instances (Miller \
             2024, with the factor C/(C − 1) and Student's t of C − 1 degrees of freedom); a BCa bootstrap (Efron \
             1987) over tasks, then instances, with {RESAMPLES} resamples and seed {BOOTSTRAP_SEED}, for means over \
             tasks; Clopper-Pearson's where all are right or all wrong; Tango's (1998) for the difference of paired \
             proportions."
        ),
        "Tests are two-sided at 5 %: McNemar's exact test within a task; paired t and Wilcoxon's signed-rank test, \
         with its exact permutation distribution, over tasks. Several tests at once are adjusted by Holm; `n.s.` is \
         not significant. A test that has too little data is left out, and the reason stands below its table; so is \
         one of which more than 5 % of the pairs were not measured."
            .to_owned(),
        format!(
            "Verifiers looked at these kinds of constraints: {}. Results whose kinds are sound for the task, those \
             whose kinds are not, and those whose verifier checked `transition` (it runs the algorithm beside the \
             trace and knows every next step) stand under names of their own and are never in one table.{of_old}",
            kinds_seen(records)
        ),
    ]
}

pub(super) fn remarks(results: &Results<'_>, torn_bytes: usize) -> Vec<String> {
    let mut remarks = Vec::new();
    if torn_bytes > 0 {
        remarks.push(format!(
            "The last record was not written whole ({torn_bytes} bytes) and is ignored."
        ));
    }

    for system in &results.systems {
        if system.not_measured > 0 {
            remarks
                .push(format!("{}: {} runs were not measured.", system.label, system.not_measured));
        }
    }

    for system in &results.systems {
        let idle = system.runs.iter().filter(|run| run.matched_budget == Some(0.0)).count();
        if idle > 0 {
            remarks.push(format!(
                "{}: {idle} of {} runs had a budget of 0 and drew one sample, because the system \
                 whose spending was their budget spent nothing there: an executor that asks no \
                 model spends no tokens. Name a system that does in `budget.match_to`.",
                system.label,
                system.runs.len()
            ));
        }
    }

    for pair in &results.pairs {
        if pair.unpaired > 0 {
            remarks.push(format!(
                "{}: {} instances were asked of one system only.",
                pair.title(),
                count(pair.unpaired)
            ));
        }
        if let Err(reason) = pair.testable() {
            remarks.push(format!("{}: no tests: {reason}.", pair.title()));
        }
    }

    let machines: BTreeSet<&str> = results
        .systems
        .iter()
        .flat_map(|system| &system.runs)
        .map(|run| run.machine.as_str())
        .collect();

    if machines.len() > 1 {
        remarks.push("The runs are from several machines: compare no times.".to_owned());
    }

    remarks
}
