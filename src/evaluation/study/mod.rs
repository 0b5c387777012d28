//! Runs of a study in this process: each becomes a record, judged by the benchmark in four stages.

mod answers;
mod daemons;
mod one_shot;
mod places;
mod run;
mod sampling;
mod spending;

pub use answers::{AnswersError, records_of_answers};
pub use daemons::{DaemonSystem, Daemons};
pub use one_shot::OneShotSystem;
pub use places::Places;
pub use run::RunSystem;
pub use sampling::{Sampled, SamplingSystem};
pub use spending::Spendings;

use futures::stream::{self, StreamExt as _};
use prime_bench::judge::{ActionList, Body, Submission, judge};
use prime_bench::tasks::{Kinds, Problem, Severity};
use prime_protocol::Ending;
use prime_study::definition::{AskedRun, Study, Unit};
use prime_study::records::{Provenance, Record, StageOutcome, Status};
use serde_json::Value;

use super::own_task::verdict_of_run;
use super::run_trace::RunTrace;
pub use crate::evaluation::running_system::RuntimeEnded;

/// A system that answers, in this process or elsewhere.
pub enum StudySystem {
    /// Runs of the runtime in this process.
    Run(Box<RunSystem>),
    /// One completion of a model for each prompt.
    OneShot(OneShotSystem),
    /// Draws samples of one of those.
    Sampling(SamplingSystem),
    /// Daemons carry out its runs.
    Daemon(DaemonSystem),
}

/// A system with what its records say about it.
pub struct Contestant {
    /// The system itself.
    pub system: StudySystem,
    /// What the records say about the system and the machine.
    pub provenance: Provenance,
}

/// The record of a run, and what samples of it are chosen by.
pub struct Answered {
    /// The record of the run.
    pub record: Record,
    /// What the system said, for answers to prompts.
    pub text: String,
    /// The answer in the output; `None` if none can be read.
    pub answer: Option<Value>,
    /// The mean ln p of the tokens, where it is known.
    pub mean_logprob: Option<f64>,
}

impl From<Record> for Answered {
    fn from(record: Record) -> Self {
        let answer = record.answer.as_deref();
        let answer = answer.and_then(|answer| serde_json::from_str(answer).ok());
        Self { record, text: String::new(), answer, mean_logprob: None }
    }
}

/// Executes runs, at most `concurrent` at a time, and passes each record to `on_record` as its run
/// ends. The runs' system numbers are indexes into `contestants`. A run whose agents failed
/// permanently, or whose time was up before the first completion, is recorded as not measured.
/// `spendings` has the budgets of those that draw samples or are matched. When `may_start` says no,
/// the runs under way end, and no other is started.
///
/// # Errors
/// The first error of `on_record`, after which no other run is started; [`RuntimeEnded`] if the
/// runtime ends before the runs.
pub async fn run_study<E>(
    study: &Study,
    contestants: &[Option<Contestant>],
    runs: &[AskedRun],
    spendings: &Spendings,
    concurrent: usize,
    may_start: impl Fn() -> bool,
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

            let seed = run.sampling_seed(study);
            let made = match system {
                StudySystem::Run(system) if study.systems[run.system].is_matched => {
                    let budget = spendings.budget(study, &run).await;
                    system.run_within(&run, study, seed, budget, record).await?
                }
                StudySystem::Run(system) => {
                    system.run(&run, study, seed, None, record).await?.record
                }
                StudySystem::OneShot(system) => {
                    system.answer(&run, study, seed, None, record).await.record
                }
                StudySystem::Sampling(system) => {
                    let budget = spendings.budget(study, &run).await;
                    system.run(&run, study, budget, record).await?
                }
                StudySystem::Daemon(system) => system.run(&run, study, record).await,
            };
            spendings.note(study, &run, &made);
            Ok::<Record, RuntimeEnded>(made)
        }
    };

    // A slow run must not hold up the records of the others. Those that others wait for come first:
    // a study that makes spending equal begins each instance with them.
    let started = runs.iter().take_while(|_| may_start()).map(one);
    let mut records = stream::iter(started).buffer_unordered(concurrent.max(1));
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

/// Why a run without an answer that the clock ended says nothing about its system in a study that
/// makes tokens equal: the clock is the machine's, and no limit of the comparison.
fn out_of_time(study: &Study, ending: &Ending, has_answer: bool) -> Option<String> {
    let are_tokens = study.matched.as_ref().is_some_and(|matched| matched.unit == Unit::Tokens);
    let is_late = are_tokens && *ending == Ending::WallMsSpent && !has_answer;
    is_late.then(|| format!("{}, which is not a limit where tokens are equal", ending.name()))
}

/// Adds the curve of a measured run: what the answers were worth that it would have given while it
/// spent its tokens.
async fn with_curve(
    study: &Study,
    problem: &dyn Problem,
    trace: &RunTrace,
    mut record: Record,
) -> Record {
    if !record.is_measured() {
        return record;
    }

    let (mut points, mut known) = (Vec::new(), Vec::<(Value, bool)>::new());
    for (usage, answer) in trace.leaders() {
        let tokens = study.prompts.tokens(usage.prompt, usage.cached, usage.completion);
        let before = known.iter().find(|(other, _)| *other == answer).map(|(_, right)| *right);
        let is_right = match before {
            Some(is_right) => is_right,
            None if problem.is_asked() => {
                match verdict_of_run(problem, Some(&answer), trace).await {
                    Ok(verdict) => verdict.proves(&answer),
                    // Its end was judged, the way there cannot be: no curve rather than a wrong
                    // one.
                    Err(_) => return record,
                }
            }
            None => problem.accepts(&answer),
        };
        known.push((answer, is_right));
        points.push((tokens, is_right));
    }
    record.set_curve(points);
    record
}

/// Completes the record of a run that ended with or without an answer: the benchmark judges it, or
/// the program of a task that the user defines. Where that gives no answer, the run is not
/// measured.
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
mod sampling_tests;
#[cfg(test)]
mod tests;
