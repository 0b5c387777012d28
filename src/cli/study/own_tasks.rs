//! Tasks of a study that the user defines.

use std::collections::BTreeMap;

use anyhow::{bail, ensure};

use crate::cli::output::{count, note};
use crate::cli::own_tasks::{GivenTasks, open};
use prime_bench::tasks::AnyTask as _;
use prime_bench::tasks::inputs::digest;
use prime_settings::Settings;
use prime_study::definition::{Source, Study};
use prime_study::records::{Provenance, Record};

/// Starts the programs of the study's tasks that the user defines, and gives it their inputs.
/// `None` if it has no such tasks.
///
/// # Errors
/// A task cannot be measured, or a system cannot be asked it.
pub fn give_tasks(study: &mut Study, all: &[Settings]) -> anyhow::Result<Option<GivenTasks>> {
    let names = study.ask.own.clone();
    let (Some(name), Some(settings)) = (names.first(), all.first()) else { return Ok(None) };
    for system in &study.systems {
        let what = match &system.source {
            Source::Run { .. } => continue,
            Source::OneShot(_) => "a prompt for the whole trace",
            Source::Answers(_) => "outputs made elsewhere",
        };
        bail!(
            "system `{}`: {what} cannot be judged on `{name}`, whose program knows single steps \
             only: leave out the system or the task",
            system.name
        );
    }

    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let given = open(settings, &names)?;
    for task in &given.tasks {
        let (inputs, most) = (task.given().unwrap_or_default(), study.ask.instances);
        if inputs > most {
            let slug = task.spec().slug;
            note!(
                "{slug}: the first {most} of {} (`ask.instances`)",
                count(inputs.into(), "input")
            );
        }
        study.give(*task);
    }
    Ok(Some(given))
}

/// Adds to a system's provenance what the programs of the tasks are.
pub fn add_digests(provenance: &mut Provenance, given: Option<&GivenTasks>) {
    let tasks = given.iter().flat_map(|given| &given.tasks);
    provenance.task_digests =
        tasks.map(|task| (task.spec().slug.to_owned(), task.digest.clone())).collect();
}

/// Refuses records of these tasks that another program or another file of inputs made: what is
/// added to them would not belong to them.
///
/// # Errors
/// Names the record, and what is different.
pub fn check_found(found: &[Record], given: Option<&GivenTasks>) -> anyhow::Result<()> {
    let tasks = given.iter().flat_map(|given| &given.tasks);
    let tasks: BTreeMap<&str, _> = tasks.map(|task| (task.spec().slug, task)).collect();
    for record in found {
        let Some(task) = tasks.get(record.task.as_str()) else { continue };
        ensure!(
            record.task_digest.as_deref() == Some(&task.digest),
            "{}: the records are of another program of the task `{}`: choose another file with \
             --records, or restore the program",
            record.key(),
            record.task
        );

        let problem = task.problems().get(record.index as usize);
        let now = problem.map(|problem| format!("{:016x}", digest(problem.as_ref())));
        // A run that was not measured may not have got that far.
        ensure!(
            record.input_digest.is_none() || record.input_digest == now,
            "{}: the record is of another input than the one that stands there in \
             `tasks.{}.inputs` now: add inputs at the end, or choose another file with --records",
            record.key(),
            record.task
        );
    }
    Ok(())
}
