//! The load with a model: the configured agents solve instances of a task, to measure which share
//! of the time is coordination.

use super::error::LoadError;
use super::in_process::InProcess;
use super::plan::Plan;
use super::watch::is_over;
use prime_agent_set::Names;
use prime_bench::tasks::{AnyTask, Difficulty};
use prime_loadtest::report::Point;
use prime_loadtest::{Tokens, measure};
use prime_protocol::{RunPlan, Strategy};
use prime_runtime::RunSampling;
use prime_service::app::{App, run_sampling};
use prime_settings::Settings;

/// The configured agents and their task.
pub struct ModelLoad {
    app: App,
    task: &'static dyn AnyTask,
    difficulty: Difficulty,
}

impl ModelLoad {
    /// Starts the engines and the cells. Must be called within an actix system; blocks while a
    /// model loads.
    pub fn start(
        mut settings: Settings,
        task: &'static dyn AnyTask,
        difficulty: Difficulty,
        trajectories_max: u32,
    ) -> Result<Self, LoadError> {
        // All of them must be in progress, or their latency would include admission.
        settings.runtime.in_flight_max = settings.runtime.in_flight_max.max(trajectories_max);
        Ok(Self { app: App::start(settings)?, task, difficulty })
    }

    /// The names of the configured agents.
    pub fn names(&self) -> Names {
        self.app.agents().names().clone()
    }

    /// Measures a load. Also returns a remark on the models' tokens.
    pub async fn measure(
        &self,
        plan: &Plan,
        trajectories: u32,
    ) -> Result<(Point, String), LoadError> {
        let plan = Plan { has_stages: true, ..plan.clone() };

        let settings = self.app.settings();
        let next = |run| {
            let problem = self.task.generate(self.difficulty, run);

            // One trajectory of the protocol per trajectory of the load, without a vote.
            let plan = RunPlan {
                strategy: Strategy::Iterative,
                fanout: 1,
                max_rounds: 1,
                ..self.app.plan(problem.as_ref())
            };

            let sampling =
                RunSampling { seed: settings.run.seed.wrapping_add(run), ..run_sampling(settings) };

            (problem, plan, sampling)
        };

        let launch = InProcess::new(self.app.runtime(), is_over, next);
        let measured = measure(&plan.measurement(trajectories), &launch).await?;

        let coordination_share = measured.coordination_share();
        let Tokens { prompt, completion } = measured.tokens();
        let point = Point { coordination_share, ..measured.point(None)? };
        let per_step = |tokens: u64| tokens as f64 / point.steps as f64;

        let remark = format!(
            "With {trajectories} trajectories the models read {:.1} tokens per step and wrote \
             {:.1}, on average.",
            per_step(prompt),
            per_step(completion)
        );

        Ok((point, remark))
    }
}

impl Drop for ModelLoad {
    fn drop(&mut self) {
        self.app.shutdown();
    }
}
