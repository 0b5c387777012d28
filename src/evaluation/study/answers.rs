//! Outputs that were made elsewhere, as records of a system.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use prime_bench::judge::{Body, judge, read_submission};
use prime_bench::tasks::Kinds;
use prime_study::definition::{AskedRun, Study};
use prime_study::records::{Key, Provenance, Record, Status};

/// Why outputs cannot be taken.
#[derive(Debug, thiserror::Error)]
pub enum AnswersError {
    /// The file cannot be read.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file of outputs.
        path: PathBuf,
        /// The system's error.
        reason: io::Error,
    },
    /// A line is not an output.
    #[error("{}, line {line}: {reason}", path.display())]
    Line {
        /// The file of outputs.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with it.
        reason: String,
    },
    /// A line is for an instance, or a repeat of one, that the study does not ask for.
    #[error(
        "{}, line {line}: {id} was not asked (or more often than `ask.repeats`); remove the line, \
         or ask for more in the study", path.display()
    )]
    NotAsked {
        /// The file of outputs.
        path: PathBuf,
        /// Number of the line, from 1.
        line: usize,
        /// The id of the instance.
        id: String,
    },
}

/// Judges a file of outputs of one system, as `bench check` does. Further lines of an instance are
/// repeats. Runs without a line are not recorded; to count them, add them to the file.
///
/// # Errors
/// If the file cannot be read, or a line is not an output or is for an instance that the study does
/// not ask for.
pub fn records_of_answers(
    path: &Path,
    study: &Study,
    system: usize,
    provenance: &Provenance,
) -> Result<Vec<Record>, AnswersError> {
    let text = fs::read_to_string(path)
        .map_err(|reason| AnswersError::File { path: path.to_owned(), reason })?;

    let asked: BTreeMap<Key, AskedRun> =
        study.runs().filter(|run| run.system == system).map(|run| (run.key(study), run)).collect();
    // Outputs name no base seed; the study's first one is meant.
    let base_seed = study.ask.base_seeds.first().copied().unwrap_or_default();
    let mut repeats: BTreeMap<String, u32> = BTreeMap::new();

    let mut records = Vec::new();

    for (line, text) in (1..).zip(text.lines()).filter(|(_, text)| !text.trim().is_empty()) {
        let failed = |reason| AnswersError::Line { path: path.to_owned(), line, reason };
        let submission = read_submission(text, base_seed).map_err(failed)?;

        let id = submission.id.to_string();
        let repeat = repeats.entry(id.clone()).or_default();
        let key = Key {
            system: study.systems[system].name.clone(),
            task: submission.id.task.spec().slug.to_owned(),
            difficulty: submission.id.difficulty.name().to_owned(),
            index: submission.id.index,
            base_seed,
            repeat: *repeat,
        };

        *repeat += 1;

        let Some(run) = asked.get(&key) else {
            return Err(AnswersError::NotAsked { path: path.to_owned(), line, id });
        };

        let mut record = run.record(study, provenance, jiff::Timestamp::now().to_string());
        let judgement = judge(&submission, Kinds::ALL);
        record.set_problem(submission.id.problem().as_ref());
        record.status = Status::Measured;
        // An answer-only output has no steps.
        record.steps = judgement.steps.unwrap_or_default();
        if let Body::Structured { answer: Some(answer), .. } = &submission.body {
            record.answer = Some(answer.to_string());
        }

        record.set_judgement(&judgement);
        records.push(record);
    }
    Ok(records)
}
