//! Records grouped for evaluation: by system, task and instance, and in pairs. An instance is the
//! unit; its repeats are averaged. Runs that were not measured count only in `not_measured`.

mod accuracy;
mod own_spec;
mod pairs;
mod run_label;
mod system;

pub use accuracy::{Accuracy, over_instances, over_tasks};
pub(crate) use accuracy::{BOOTSTRAP_SEED, clamped};
pub(crate) use pairs::pair;
pub use pairs::{PairResults, PairedTask, PairingError};
pub use run_label::{STUDY_LABEL, study_label};
pub use system::{Instance, SystemResults, TaskResults, TaskValues};

use std::collections::BTreeMap;

use prime_bench::tasks::Category;

use crate::records::Record;

/// The categories that results may have, those of the benchmark first.
pub(crate) fn all_categories() -> impl Iterator<Item = Category> {
    Category::ALL.into_iter().chain([Category::Own])
}

/// Results of a study.
#[derive(Debug)]
pub struct Results<'r> {
    /// Systems in the order in which they first appear. A system whose verifier looked at kinds of
    /// different worth becomes several.
    pub systems: Vec<SystemResults<'r>>,
    /// Comparisons in the order in which they were requested.
    pub pairs: Vec<PairResults>,
    /// The address of the daemon that carried out the runs.
    pub daemon: Option<String>,
}

impl<'r> Results<'r> {
    /// Groups records. `pairs` names systems to compare, left and right; without any, the first
    /// system is compared with each other one.
    ///
    /// # Errors
    /// If a named system does not exist, or two systems have no instance in common.
    pub fn new(records: &'r [Record], pairs: &[(String, String)]) -> Result<Self, PairingError> {
        let mut systems = system::group(records);
        let slots = Slots::of(&systems);
        systems.iter_mut().for_each(|system| system.slot = slots.get(&system.name));

        let pairs = if pairs.is_empty() {
            pairs::with_the_first(&systems)
        } else {
            pairs::named(&systems, pairs)?
        };

        Ok(Self { systems, pairs, daemon: None })
    }

    /// The address of the studio's list of a system's runs, of one task if it is given. `None`
    /// unless the daemon is known.
    pub(crate) fn runs_of(&self, system: &SystemResults<'_>, task: Option<&str>) -> Option<String> {
        let (daemon, record) = (self.daemon.as_deref()?, system.runs.first()?);
        let label = format!("{STUDY_LABEL}:{}", study_label(&record.study, &system.name));
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("label", &label);
        if let Some(task) = task {
            query.append_pair("task", task);
        }
        Some(format!("{}/studio/runs?{}", daemon.trim_end_matches('/'), query.finish()))
    }

    /// The slots of these systems' names.
    pub(crate) fn slots(&self) -> Slots {
        Slots::of(&self.systems)
    }

    /// Gives systems the slots that they have in all results of a report, of which these are a
    /// part.
    pub(crate) fn paint(&mut self, slots: &Slots) {
        self.systems.iter_mut().for_each(|system| system.slot = slots.get(&system.name));
    }

    /// The slot of the system with this label.
    pub(crate) fn slot_of(&self, label: &str) -> usize {
        let system = self.systems.iter().find(|system| system.label == label);
        system.map_or(0, |system| system.slot)
    }
}

/// Slots of colours and markers by the names of systems.
pub(crate) struct Slots(BTreeMap<String, usize>);

impl Slots {
    fn of(systems: &[SystemResults<'_>]) -> Self {
        let mut names: Vec<&str> = Vec::new();
        for system in systems {
            if !names.contains(&system.name.as_str()) {
                names.push(&system.name);
            }
        }
        let slots = prime_page::palette::slots(&names);
        Self(names.into_iter().map(str::to_owned).zip(slots).collect())
    }

    fn get(&self, name: &str) -> usize {
        self.0.get(name).copied().unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::records::Status;
    use crate::testing::{checked_by, record, wrong};
    use prime_bench::tasks::{Kind, Kinds, find};

    #[test]
    fn repeats_are_averaged_and_unmeasured_runs_count_nowhere() {
        let mut records = vec![
            record("a", "n-queens", 0),
            record("a", "n-queens", 0),
            record("a", "n-queens", 1),
        ];

        records[1] = wrong(records[1].clone(), "index");
        records[1].repeat = 1;
        records[2].status = Status::NotMeasured;
        records[2].right = false;

        let results = Results::new(&records, &[]).unwrap();

        let system = &results.systems[0];
        assert_eq!((system.runs.len(), system.not_measured), (2, 1));
        assert_eq!(system.values(|_, _| true), [TaskValues::from(vec![0.5])]);
    }

    #[test]
    fn a_verifier_that_saw_transition_makes_another_system() {
        let mut records = vec![record("a", "n-queens", 0), record("a", "n-queens", 1)];
        let sound = find("n-queens").unwrap().spec().sound;
        records[1].set_kinds(Kinds::from_iter([Kind::Format, Kind::Transition]), sound);

        let results = Results::new(&records, &[]).unwrap();
        let labels: Vec<&str> =
            results.systems.iter().map(|system| system.label.as_str()).collect();
        assert_eq!(labels, ["a", "a (verifier saw transition)"]);
        // They share no instance.
        assert!(results.pairs.is_empty());
    }

    #[test]
    fn systems_whose_verdicts_differ_in_worth_are_not_paired() {
        let kinds = |system: &str, kinds: &str| checked_by(kinds, record(system, "n-queens", 0));
        let records = [
            kinds("none", ""),
            kinds("sound", "format,invariant,terminal"),
            kinds("form", "format"),
        ];

        let results = Results::new(&records, &[]).unwrap();
        let labels: Vec<_> = results.systems.iter().map(|system| &*system.label).collect();
        assert_eq!(labels, ["none", "sound", "form (kinds not sound)"]);
        let titles: Vec<_> = results.pairs.iter().map(PairResults::title).collect();
        assert_eq!(titles, ["none → sound", "none → form (kinds not sound)"]);

        let pair = [("sound".to_owned(), "form".to_owned())];
        let error = Results::new(&records, &pair).unwrap_err().to_string();
        let expected = "`sound` and `form` are not compared: the verifier of one looked at kinds \
                        that are sound for the task, that of the other at kinds that are not sound \
                        for the task";
        assert_eq!(error, expected);
    }

    #[test]
    fn pairs_are_of_the_same_instances() {
        let mut records: Vec<_> = (0..4).map(|index| record("base", "n-queens", index)).collect();
        records.extend((1..6).map(|index| record("prime", "n-queens", index)));
        records[1] = wrong(records[1].clone(), "index");
        records[2].status = Status::NotMeasured;

        let results = Results::new(&records, &[]).unwrap();
        let [pair] = &results.pairs[..] else { panic!("one pair") };
        let [task] = &pair.tasks[..] else { panic!("one task") };

        // Instances 1 to 3 are in both; of instance 2 one side was not measured.
        assert_eq!(
            (task.left.clone(), task.right.clone(), pair.dropped),
            (vec![0.0, 1.0], vec![1.0, 1.0], 1)
        );
        assert_eq!((task.only_left, task.only_right), (0, 1));
    }

    #[test]
    fn an_input_that_repeats_is_compared_once() {
        let mut records: Vec<_> = ["base", "prime"]
            .iter()
            .flat_map(|system| (0..4).map(|index| record(system, "tower-of-hanoi", index)))
            .collect();
        // Instances 0, 1 and 3 have one input, and the left system is right on none of them.
        for of in records.chunks_exact_mut(4) {
            for (index, digest) in [(0, "one"), (1, "one"), (2, "two"), (3, "one")] {
                of[index].input_digest = Some(digest.to_owned());
            }
        }
        for index in [0, 1, 3] {
            records[index] = wrong(records[index].clone(), "index");
        }

        let results = Results::new(&records, &[]).unwrap();
        let task = &results.pairs[0].tasks[0];
        let indexes: Vec<u32> = task.instances.iter().map(|instance| instance.index).collect();

        assert_eq!(indexes, [0, 2]);
        assert_eq!((task.left.clone(), task.right.clone()), (vec![0.0, 1.0], vec![1.0, 1.0]));
        assert_eq!((task.only_left, task.only_right), (0, 1));
        assert_eq!((results.pairs[0].n(), results.pairs[0].dropped), (2, 0));
    }

    #[test]
    fn systems_that_cannot_be_paired_are_named() {
        let records = vec![record("base", "n-queens", 0), record("prime", "n-queens", 1)];
        let pair = |left: &str, right: &str| [(left.to_owned(), right.to_owned())];
        let error = Results::new(&records, &pair("base", "prime")).unwrap_err().to_string();

        assert!(error.contains("`base` and `prime` have no instance in common"), "{error}");

        let error = Results::new(&records, &pair("base", "prme")).unwrap_err().to_string();
        assert!(
            error.contains("no system `prme`") && error.contains("did you mean `prime`"),
            "{error}"
        );
    }
}
