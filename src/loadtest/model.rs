//! The load with a model: the configured agents solve instances of a task, one after another, and the question is what of
//! the time is coordination.

use super::drive;
use super::error::LoadError;
use super::in_process::InProcess;
use super::plan::Plan;
use super::report::Point;
use super::watch::is_over;
use crate::agents::Names;
use crate::app::{App, run_sampling};
use crate::runtime::RunSampling;
use crate::settings::Settings;
use prime_bench::tasks::{AnyTask, Difficulty};
use prime_protocol::{RunPlan, Strategy};

/// The configured agents, at work on a task.
pub struct ModelLoad {
    app: App,
    task: &'static dyn AnyTask,
    difficulty: Difficulty,
}

impl ModelLoad {
    /// Starts the engines and the cells, for at most so many trajectories. Must be called within an actix system; blocks
    /// while a model loads.
    ///
    /// # Errors
    /// Whatever keeps an engine or an agent from being had.
    pub fn start(
        mut settings: Settings,
        task: &'static dyn AnyTask,
        difficulty: Difficulty,
        trajectories_max: u32,
    ) -> Result<Self, LoadError> {
        // All of them are to be under way, or their latency would be about admission.
        settings.runtime.in_flight_max = settings.runtime.in_flight_max.max(trajectories_max);
        Ok(Self { app: App::start(settings)?, task, difficulty })
    }

    /// What the agents are called.
    pub fn names(&self) -> Names {
        self.app.runtime().agents().names().clone()
    }

    /// Measures a load; with it goes a remark on what the models spent.
    ///
    /// # Errors
    /// When an agent fails for good, or nothing was decided in the time.
    pub async fn measure(&self, plan: &Plan, trajectories: u32) -> Result<(Point, String), LoadError> {
        let plan = Plan { has_legs: true, ..plan.clone() };
        let settings = self.app.settings();
        let next = |run| {
            let problem = self.task.generate(self.difficulty, run);
            // A trajectory of the load is one of the protocol: no others beside it, no vote.
            let plan =
                RunPlan { strategy: Strategy::Iterative, fanout: 1, max_rounds: 1, ..self.app.plan(problem.as_ref()) };
            let sampling = RunSampling { seed: settings.run.seed.wrapping_add(run), ..run_sampling(settings) };
            (problem, plan, sampling)
        };
        let launch = InProcess::new(self.app.runtime(), next);
        let measured = drive::measure(&plan, trajectories, is_over, &launch).await?;
        let share = measured.record.coordination_share();
        let usage = measured.record.usage;
        let point = Point { coordination_share: share, ..measured.point()? };
        let each = |tokens: u64| tokens as f64 / point.steps as f64;
        let remark = format!(
            "With {trajectories} trajectories the models read {:.1} tokens a step and wrote {:.1}, in the mean.",
            each(usage.prompt),
            each(usage.completion)
        );
        Ok((point, remark))
    }
}

impl Drop for ModelLoad {
    fn drop(&mut self) {
        self.app.shutdown();
    }
}
