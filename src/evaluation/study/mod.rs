//! Runs of a study in this process: each becomes a record, judged by the benchmark in four stages.

mod answers;
mod daemons;
mod one_shot;
mod places;
mod run;
mod run_trace;

pub use answers::{AnswersError, records_of_answers};
pub use daemons::{DaemonSystem, Daemons};
pub use one_shot::OneShotSystem;
pub use places::Places;
pub use run::RunSystem;

use futures::stream::{self, StreamExt as _};
use prime_bench::judge::{ActionList, Body, Submission, judge};
use prime_bench::tasks::Kinds;
use prime_protocol::Ending;
use prime_study::definition::{AskedRun, Study};
use prime_study::records::{Provenance, Record, Status};
use serde_json::Value;

pub use crate::evaluation::running_system::RuntimeEnded;
use run_trace::RunTrace;

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

/// Completes the record of a run that ended with or without an answer: the benchmark judges it.
fn judged(run: &AskedRun, answer: Option<Value>, trace: &RunTrace, mut record: Record) -> Record {
    record.status = Status::Measured;

    record.answer = answer.as_ref().map(ToString::to_string);
    let lines = trace.lines_for(answer.as_ref());
    let actions: Option<ActionList> = lines.map(|lines| lines.iter().map(|line| &**line).collect());
    let body = Body::Structured { actions, answer };

    record.set_judgement(&judge(&Submission { id: run.instance(), body }, Kinds::ALL));
    record
}

#[cfg(test)]
mod tests;
