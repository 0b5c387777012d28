//! Where training and evaluation meet: which instances have inputs that training draws, too, and how
//! systems do on them and on the others.

use std::collections::BTreeSet;

use prime_bench::interval::Proportion;
use prime_bench::tasks::inputs::digest;
use prime_bench::tasks::sampling::instance;
use prime_bench::tasks::{AnyTask, Difficulty, InstanceId, TaskRng};
use prime_study::records::Record;
use serde::Serialize;

/// What is compared with what.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The levels to compare.
    pub difficulties: Vec<Difficulty>,
    /// Instances of each level that are evaluated: the indices from 0 on.
    pub instances: u32,
    /// The base seed of the evaluated instances.
    pub base_seed: u64,
    /// First of the thousand base seeds of training.
    pub training_base_seed: u64,
    /// Instances of each level that training draws.
    pub draws: u32,
}

/// One level of a task.
#[derive(Clone, Debug, Serialize)]
pub struct OverlapRow {
    /// The task's slug.
    pub task: &'static str,
    /// The level.
    pub difficulty: Difficulty,
    /// Number of instances that are evaluated.
    pub instances: u64,
    /// Their different inputs.
    pub inputs: u64,
    /// Different inputs that training drew at this level.
    pub drawn: u64,
    /// Instances whose inputs training drew, at any of the levels.
    pub met: u64,
    /// Results of each system that has records at this level.
    pub systems: Vec<SystemOverlap>,
}

/// How a system did at a level, by its records. For the intervals an input counts once.
#[derive(Clone, Debug, Serialize)]
pub struct SystemOverlap {
    /// The system's name in the records.
    pub system: String,
    /// Right answers on instances whose inputs training drew.
    pub met: Proportion,
    /// Right answers on the other instances.
    pub rest: Proportion,
}

/// A row for each level of a task. Records are of any tasks and base seeds; those that were measured
/// on these instances count.
pub fn overlap(task: &'static dyn AnyTask, plan: &Plan, records: &[Record]) -> Vec<OverlapRow> {
    let mut rng = TaskRng::new(plan.training_base_seed);
    let mut draw = |difficulty: Difficulty| -> BTreeSet<u64> {
        (0..plan.draws)
            .map(|_| digest(instance(task, difficulty, plan.training_base_seed, &mut rng).as_ref()))
            .collect()
    };

    let drawn: Vec<BTreeSet<u64>> = plan.difficulties.iter().map(|level| draw(*level)).collect();
    let is_met = |input: &u64| drawn.iter().any(|drawn| drawn.contains(input));

    let rows = plan.difficulties.iter().zip(&drawn).map(|(difficulty, drawn)| {
        let digest_of = |index| {
            let id = InstanceId { task, difficulty: *difficulty, index, base_seed: plan.base_seed };
            digest(id.problem().as_ref())
        };
        let inputs: Vec<u64> = (0..plan.instances).map(digest_of).collect();

        OverlapRow {
            task: task.spec().slug,
            difficulty: *difficulty,
            instances: inputs.len() as u64,
            inputs: inputs.iter().collect::<BTreeSet<_>>().len() as u64,
            drawn: drawn.len() as u64,
            met: inputs.iter().filter(|input| is_met(input)).count() as u64,
            systems: systems(task.spec().slug, *difficulty, plan, records, &inputs, is_met),
        }
    });
    rows.collect()
}

fn systems(
    slug: &str,
    difficulty: Difficulty,
    plan: &Plan,
    records: &[Record],
    inputs: &[u64],
    is_met: impl Fn(&u64) -> bool,
) -> Vec<SystemOverlap> {
    let counts = |record: &&Record| {
        record.is_measured()
            && record.task == slug
            && record.difficulty == difficulty.name()
            && record.base_seed == plan.base_seed
            && record.index < plan.instances
    };
    let records: Vec<&Record> = records.iter().filter(counts).collect();

    let mut names: Vec<&str> = Vec::new();
    for record in &records {
        if !names.contains(&record.system.as_str()) {
            names.push(&record.system);
        }
    }

    let share = |system: &str, met: bool| {
        let (mut right, mut of, mut seen) = (0, 0, BTreeSet::new());
        for record in records.iter().filter(|record| record.system == system) {
            let input = inputs[record.index as usize];
            if is_met(&input) == met {
                right += u64::from(record.right);
                of += 1;
                seen.insert(input);
            }
        }
        Proportion::over_inputs(right, of, seen.len() as u64)
    };
    let of = |name: &str| SystemOverlap {
        system: name.to_owned(),
        met: share(name, true),
        rest: share(name, false),
    };
    names.into_iter().map(of).collect()
}

#[cfg(test)]
mod tests {
    use prime_bench::tasks::{BASE_SEED, find};
    use prime_study::records::{Key, Provenance, Status};

    use super::*;

    fn plan(draws: u32) -> Plan {
        Plan {
            difficulties: vec![Difficulty::Easy],
            instances: 200,
            base_seed: BASE_SEED,
            training_base_seed: 1_000_000,
            draws,
        }
    }

    fn record(index: u32, right: bool) -> Record {
        let key = Key {
            system: "model".to_owned(),
            task: "tower-of-hanoi".to_owned(),
            difficulty: "easy".to_owned(),
            index,
            base_seed: BASE_SEED,
            repeat: 0,
        };
        let record = Record::not_measured(
            key,
            find("tower-of-hanoi").expect("a task").spec(),
            &Provenance::default(),
        );
        Record { status: Status::Measured, right, ..record }
    }

    #[test]
    fn a_task_of_few_inputs_meets_its_training_everywhere() {
        let tower = find("tower-of-hanoi").expect("a task");
        // 36 easy inputs, each of which a thousand draws miss once in 10^12.
        let records = [record(0, true), record(1, false), record(2, true)];
        let rows = overlap(tower, &plan(1_000), &records);
        let [row] = &rows[..] else { panic!("one level") };
        assert_eq!((row.instances, row.inputs, row.drawn, row.met), (200, 36, 36, 200));

        let [system] = &row.systems[..] else { panic!("one system") };
        assert_eq!((system.met.count, system.met.of, system.rest.of), (2, 3, 0));
    }

    #[test]
    fn what_training_never_draws_is_the_rest() {
        let rows = overlap(find("bubble-sort").expect("a task"), &plan(100), &[record(0, true)]);
        let [row] = &rows[..] else { panic!("one level") };
        assert_eq!((row.inputs, row.drawn, row.met), (200, 100, 0));
        assert!(row.systems.is_empty(), "the record is of another task");
    }
}
