//! Runs of a study in this process: each becomes a record, judged by the benchmark in four stages.

mod answers;
mod daemons;
mod one_shot;
mod run;
mod run_trace;

pub use answers::{AnswersError, records_of_answers};
pub use daemons::{DaemonSystem, Daemons};
pub use one_shot::OneShotSystem;
pub use run::RunSystem;

use futures::stream::{self, StreamExt as _};
use prime_study::definition::{AskedRun, Study};
use prime_study::records::{Provenance, Record};

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

/// Makes runs, so many at a time, and hands each over as it ends; `contestants` has the systems of the runs at their
/// places. A run whose agents failed for good is handed over as not measured.
///
/// # Errors
/// The first of `on_record`; no other run is started then. When the runtime ends before the runs.
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
    let mut records = stream::iter(runs.iter().map(one)).buffer_unordered(concurrent.max(1));
    while let Some(record) = records.next().await {
        on_record(record?)?;
    }
    Ok(())
}

/// The runtime ended before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the runtime ended before the runs")]
pub struct RuntimeEnded;

#[cfg(test)]
mod tests;
