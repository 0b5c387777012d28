//! The user's own tasks on which a command measures.

use anyhow::bail;

use super::interrupt::EndsEarly;
use crate::evaluation::own_task::GivenTask;
use prime_agent_set::AgentSet;
use prime_agent_set::programs::Programs;
use prime_bench::tasks::AnyTask;
use prime_service::app::OwnTasks;
use prime_service::requests::Reason;
use prime_settings::Settings;

/// Tasks with their inputs, whose programs end when this is dropped.
pub struct GivenTasks {
    pub tasks: Vec<&'static GivenTask>,
    programs: Programs,
}

impl Drop for GivenTasks {
    fn drop(&mut self) {
        self.programs.end();
    }
}

/// Starts the programs of configured tasks, and reads their inputs. A request to stop ends the
/// process meanwhile.
///
/// # Errors
/// A task is not configured, cannot be started, or has no inputs, or its program refuses one.
pub fn open(settings: &Settings, names: &[&str]) -> anyhow::Result<GivenTasks> {
    let own = OwnTasks::of(settings);
    // A program may take its time, and must not outlive this process.
    let starting = {
        let programs = own.programs.clone();
        EndsEarly::with(move || programs.end())?
    };

    let mut given = GivenTasks { tasks: Vec::new(), programs: own.programs.clone() };
    for name in names {
        let inputs = settings.tasks.get(*name).and_then(|task| task.inputs.as_deref());
        given.tasks.push(GivenTask::open(&own.tasks, name, inputs)?.kept());
    }
    drop(starting);
    Ok(given)
}

/// Checks that the verifier can judge these tasks.
///
/// # Errors
/// It follows a task's algorithm, and a task of the user's own is among them.
pub fn check_verifier(agents: &AgentSet, tasks: &[&'static dyn AnyTask]) -> anyhow::Result<()> {
    let Some(own) = tasks.iter().find(|task| task.given().is_some()) else { return Ok(()) };
    if agents.judge().needs_algorithm() {
        let verifier = agents.names().verifier.clone();
        bail!("task `{}`: {}", own.spec().slug, Reason::JudgesByAlgorithm { verifier });
    }
    Ok(())
}
