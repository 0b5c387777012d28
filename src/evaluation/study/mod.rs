//! Runs of a study in this process: each becomes a record, judged by the benchmark in four stages.

mod answers;
mod daemons;
mod one_shot;
mod places;
mod run;

pub use answers::{AnswersError, records_of_answers};
pub use daemons::{DaemonSystem, Daemons};
pub use one_shot::OneShotSystem;
pub use places::Places;
pub use run::RunSystem;

use futures::stream::{self, StreamExt as _};
use prime_bench::judge::{ActionList, Body, Submission, judge};
use prime_bench::tasks::{Kinds, Problem, Severity};
use prime_protocol::Ending;
use prime_study::definition::{AskedRun, Study};
use prime_study::records::{Provenance, Record, StageOutcome, Status};
use serde_json::Value;

pub use crate::evaluation::running_system::RuntimeEnded;
use super::own_task::verdict_of_run;
use super::run_trace::RunTrace;

/// A system that answers, in this process or elsewhere.
pub enum StudySystem {
    Run(Box<RunSystem>),
    OneShot(OneShotSystem),
    /// Daemons carry out its runs.
    Daemon(DaemonSystem),
}

/// A system with what its records say of it.
pub struct Contestant {
    pub system: StudySystem,
    pub provenance: Provenance,
}

/// Executes runs, at most `concurrent` at a time, and passes each record to `on_record` as its run
/// ends. The runs' system numbers are indexes into `contestants`. A run whose agents failed
/// permanently, or whose time was up before the first completion, is recorded as not measured.
///
/// # Errors
/// The first error of `on_record`, after which no other run is started; [`RuntimeEnded`] if the
/// runtime ends before the runs.
pub async fn run_study<E>(
    study: &Study,
    contestants: &[Option<Contestant>],
    runs: &[AskedRun],
    concurrent: usize,
    mut on_record: impl FnMut(Record) -> Result<(), E>,
) -> Result<(), E>
where
    E: From<RuntimeEnded>,
{
    let one = |run: &AskedRun| {
        let run = *run;
        async move {
            let contestant = contestants.get(run.system).and_then(Option::as_ref);
            let Contestant { system, provenance } =
                contestant.expect("invariant: every system that has runs is in the list");
            let record = run.record(study, provenance, jiff::Timestamp::now().to_string());

            match system {
                StudySystem::Run(system) => system.run(&run, study, record).await,
                StudySystem::OneShot(system) => Ok(system.answer(&run, study, record).await),
                StudySystem::Daemon(system) => Ok(system.run(&run, study, record).await),
            }
        }
    };

    // A slow run must not hold up the records of the others.
    let mut records = stream::iter(runs.iter().map(one)).buffer_unordered(concurrent.max(1));
    while let Some(record) = records.next().await {
        on_record(record?)?;
    }
    Ok(())
}

/// Why a run that ended in this way says nothing about its system: time was up, or the run was
/// cancelled, before a model had completed anything. Queues and start-up took all of it.
fn never_completed(record: &Record, ending: &str, has_answer: bool) -> Option<String> {
    let is_cut = [Ending::WallMsSpent, Ending::Cancelled].iter().any(|cut| cut.name() == ending);
    let nothing = !has_answer && record.proposals == 0 && record.completion_tokens == 0;
    (is_cut && nothing).then(|| format!("{ending} before the first completion"))
}

/// Completes the record of a run that ended with or without an answer: the benchmark judges it, or
/// the program of a task that the user defines. Where that gives no answer, the run is not measured.
async fn judged(
    run: &AskedRun,
    problem: &dyn Problem,
    answer: Option<Value>,
    trace: &RunTrace,
    mut record: Record,
) -> Record {
    record.answer = answer.as_ref().map(ToString::to_string);
    if problem.is_asked() {
        return judged_by_program(problem, answer.as_ref(), trace, record).await;
    }

    record.status = Status::Measured;
    let lines = trace.lines_for(answer.as_ref());
    let actions: Option<ActionList> = lines.map(|lines| lines.iter().map(|line| &**line).collect());
    let body = Body::Structured { actions, answer };

    record.set_judgement(&judge(&Submission { id: run.instance(), body }, Kinds::ALL));
    record
}

async fn judged_by_program(
    problem: &dyn Problem,
    answer: Option<&Value>,
    trace: &RunTrace,
    mut record: Record,
) -> Record {
    let verdict = match verdict_of_run(problem, answer, trace).await {
        Ok(verdict) => verdict,
        Err(error) => {
            record.failure = Some(format!("the answer could not be judged: {error}"));
            return record;
        }
    };

    record.status = Status::Measured;
    record.right = answer.is_some_and(|answer| verdict.proves(answer));
    let stage = |passed| if passed { StageOutcome::Passed } else { StageOutcome::Failed };
    record.format = stage(answer.is_some() || record.steps > 0 || record.proposals > 0);
    record.syntax = stage(answer.is_some() && verdict.refused == 0);
    record.semantic = stage(verdict.answer.is_some() && verdict.first_error.is_none());
    record.result = stage(record.right);
    record.first_error_step = verdict.first_error;

    let worst = verdict.worst.or((!record.right).then_some(Severity::Critical));
    record.set_severity(worst);
    record
}

#[cfg(test)]
mod tests;
