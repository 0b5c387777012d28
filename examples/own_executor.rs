//! An executor of your own: it knows the algorithm but is careless. The verifier catches its
//! mistakes, and three trajectories vote on the answer.
//!
//! `cargo run --example own_executor`

use std::sync::Arc;

use async_trait::async_trait;
use prime_agent_set::{
    AgentError, AgentSet, AsyncExecutor, Failure, Proposal, Resources, Sampling,
};
use prime_bench::tasks::{self, Difficulty};
use prime_protocol::Trajectory;
use prime_service::app::App;
use prime_settings::Settings;

struct Careless;

#[async_trait]
impl AsyncExecutor for Careless {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        // A model would be asked here; it would see `trajectory.machine.view()`.
        let step = trajectory.machine.reference();
        let mut line = step.ok_or_else(|| {
            AgentError::new("careless", Failure::Unsupported, "the trace has ended")
        })?;
        if sampling.seed.is_multiple_of(5) {
            line.push_str(" or so");
        }
        Ok(Proposal { line, ..Proposal::default() })
    }
}

fn main() -> anyhow::Result<()> {
    // The configured verifier and coordinator stay; no engine is needed for this executor.
    let sets = ["agents.executor.implementation=reference".to_owned(), "run.fanout=3".to_owned()];
    let settings = Settings::load(&[], std::iter::empty(), &sets)?;
    let agents = AgentSet::from_settings(&settings, &Resources::default())?;
    let agents = agents.with_executor("careless", || Arc::new(Careless));
    let problem = tasks::find("bubble-sort")?.generate(Difficulty::Easy, 42);

    let outcome = actix::System::new()
        .block_on(async { anyhow::Ok(App::with_agents(settings, agents).solve(problem).await?) })?;

    println!(
        "{} steps of {} proposals; {} backtracks",
        outcome.steps, outcome.proposals, outcome.backtracks
    );
    for ballot in &outcome.votes {
        println!(
            "{} of {} trajectories answer {}",
            ballot.votes, outcome.trajectories, ballot.answer
        );
    }
    Ok(())
}
