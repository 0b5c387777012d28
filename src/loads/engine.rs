//! The load on engines: each of the three agents queries a process of its own, which has no model
//! and answers at once. This adds the round trip to such a process.

use std::sync::Arc;

use async_trait::async_trait;

use super::error::LoadError;
use super::null_agents;
use super::plan::Plan;
use super::ring::with_agents;
use prime_agent_set::null_line;
use prime_agent_set::{
    AgentError, AgentSet, AsyncCoordinator, AsyncExecutor, AsyncVerifier, Basis, Coordinator,
    Failure, Names, Proposal, RulesVerifier, Ruling, Sampling, ThresholdCoordinator, Verifier,
};
use prime_bench::tasks::Spec;
use prime_engine::{Engine, EngineSpec, Format, Request};
use prime_loadtest::report::Point;
use prime_protocol::{Role, Trajectory, Verdict};
use prime_runtime::RuntimePlan;

/// Sequences decoded at once; a worker holds up to twice as many requests.
const SEQUENCES_MAX: u16 = 256;

/// The engines of the load, one for each role.
pub struct EngineLoad {
    engines: [Engine; 3],
}

/// Queries an engine without a model.
#[derive(Clone)]
struct EngineClient {
    engine: Engine,
    role: Role,
    prompt: Arc<str>,
}

impl EngineClient {
    async fn ask(&self) -> Result<String, AgentError> {
        let request = Request {
            prompt: self.prompt.as_ref().to_owned(),
            format: Format::Raw,
            grammar: None,
            excluded: Vec::new(),
            excluded_prefixes: Vec::new(),
            stop: None,
            newline_ends: false,
            thinking: prime_engine::Thinking::AsModel,
            sampling: prime_engine::Sampling::GREEDY,
            max_tokens: 1,
            logprobs: false,
            ignore_end: false,
            group: 0,
            space: 0,
        };

        let failed = |error: prime_engine::EngineError| {
            AgentError::new(format!("{} `echo`", self.role), Failure::Engine, error.to_string())
        };

        Ok(self.engine.generate(request).await.map_err(failed)?.text)
    }
}

struct EngineExecutor(EngineClient);
struct EngineVerifier(EngineClient, RulesVerifier);
struct EngineCoordinator(EngineClient, ThresholdCoordinator);

#[async_trait]
impl AsyncExecutor for EngineExecutor {
    async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        Ok(Proposal { line: self.0.ask().await?, ..Proposal::default() })
    }
}

#[async_trait]
impl AsyncVerifier for EngineVerifier {
    fn basis(&self, task: &Spec) -> Basis {
        self.1.basis(task)
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        self.0.ask().await?;
        self.1.judge(trajectory, line).await
    }
}

#[async_trait]
impl AsyncCoordinator for EngineCoordinator {
    async fn decide(
        &self,
        trajectory: &Trajectory,
        line: &str,
        verdict: &Verdict,
    ) -> Result<Ruling, AgentError> {
        self.0.ask().await?;
        self.1.decide(trajectory, line, verdict).await
    }
}

impl EngineLoad {
    /// Starts the three processes.
    pub fn start() -> Result<Self, LoadError> {
        let start = |role: Role| {
            Engine::start(EngineSpec {
                name: format!("echo-{role}"),
                stub_answer: Some(null_line(0)),
                sequences_max: SEQUENCES_MAX,
                ..EngineSpec::default()
            })
        };

        // All three start before the first error is looked at.
        let [executor, verifier, coordinator] = Role::ALL.map(start);
        let engines = [executor, verifier, coordinator];
        let [executor, verifier, coordinator] =
            engines.map(|engine| engine.map_err(LoadError::Engine));

        Ok(Self { engines: [executor?, verifier?, coordinator?] })
    }

    /// The agents' names in a report.
    pub fn names() -> Names {
        null_agents::names("echo", "echo", "echo")
    }

    fn agents(&self, plan: &Plan) -> std::io::Result<AgentSet> {
        // As long as the line would be, so that a payload has the same meaning.
        let prompt: Arc<str> = null_line(plan.payload_bytes).into();

        let client = |role: Role| EngineClient {
            engine: self.engines[role as usize].clone(),
            role,
            prompt: Arc::clone(&prompt),
        };

        let [executor, verifier, coordinator] = Role::ALL.map(client);
        null_agents::agents(
            Self::names(),
            &plan.faults,
            move || Arc::new(EngineExecutor(executor.clone())),
            move || Arc::new(EngineVerifier(verifier.clone(), null_agents::verifier())),
            move || Arc::new(EngineCoordinator(coordinator.clone(), null_agents::coordinator())),
        )
    }

    /// Measures a load. Must be called within an actix system.
    pub async fn measure(
        &self,
        plan: &Plan,
        trajectories: u32,
        runtime: &RuntimePlan,
    ) -> Result<Point, LoadError> {
        with_agents(plan, trajectories, runtime, self.agents(plan)?).await
    }
}

impl Drop for EngineLoad {
    fn drop(&mut self) {
        self.engines.iter().for_each(Engine::shutdown);
    }
}
