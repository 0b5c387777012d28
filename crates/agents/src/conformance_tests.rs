//! All built-in agents and the Python examples conform.

use std::path::Path;
use std::sync::Arc;

use super::conformance::{Finding, coordinator, executor, verifier};
use super::process::{ProcessCoordinator, ProcessExecutor, ProcessVerifier};
use super::{
    AgentSet, Agents as _, Coordinator, Executor, ReferenceExecutor, ReplayExecutor, Resources,
    RulesVerifier, ScriptedExecutor, ScriptedVerifier, ThresholdCoordinator, UniformExecutor,
    Verifier,
};
use prime_bench::tasks::{CheckedKinds, Kind, Kinds};
use prime_protocol::{Score, Thresholds};
use prime_settings::{Api, Program, Settings, Upstream, UpstreamPool, VerdictName};
use prime_stub_server::StubServer;

const THRESHOLDS: Thresholds =
    Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(8), retries_max: 2 };

fn nothing(name: &str, findings: &[Finding]) {
    let lines: Vec<_> = findings.iter().map(ToString::to_string).collect();
    assert!(lines.is_empty(), "{name}:\n{}", lines.join("\n"));
}

#[tokio::test]
async fn the_built_in_executors() {
    nothing("reference", &executor(|| Arc::new(ReferenceExecutor)).await);
    nothing("scripted", &executor(|| Arc::new(ScriptedExecutor::new(0.3))).await);
    nothing("uniform", &executor(|| Arc::new(UniformExecutor)).await);
    let lines = || vec!["done".to_owned(), String::new(), "cmp 0 1".to_owned()];
    nothing("replay", &executor(|| Arc::new(ReplayExecutor::new(lines()))).await);
}

#[tokio::test]
async fn the_built_in_verifiers() {
    let kinds = [Kinds::NONE, Kinds::ALL, [Kind::Format, Kind::Terminal].into_iter().collect()];
    for kinds in kinds {
        nothing("rules", &verifier(|| Arc::new(RulesVerifier::new(kinds))).await);
    }
    nothing("scripted", &verifier(|| Arc::new(ScriptedVerifier::new(0.0, 0.0))).await);
}

#[tokio::test]
async fn a_reward_model_behind_a_server() {
    for api in [Api::Score, Api::Pooling] {
        let stub = StubServer::start(|_| "0.75".to_owned()).expect("a port");
        let mut settings = Settings::built_in();
        let upstream = Upstream {
            url: stub.url.clone(),
            model: "m".to_owned(),
            api_key_env: None,
            concurrent_max: 8,
            weight: 1.0,
        };
        let pool = UpstreamPool { api, upstreams: vec![upstream], ..UpstreamPool::default() };
        settings.pools.insert("scores".to_owned(), pool);
        "reference".clone_into(&mut settings.agents.executor.implementation);
        settings.agents.verifier.choose("reward");
        "scores".clone_into(&mut settings.agents.verifier.pool);

        let agents = AgentSet::from_settings(&settings, &Resources::default()).expect("agents");
        nothing("reward", &verifier(|| agents.verifier()).await);
    }
}

#[test]
fn agents_ask_for_what_their_servers_return() {
    let refused = |implementation: &str, api, verdict| {
        let mut settings = Settings::built_in();
        settings.pools.insert("p".to_owned(), UpstreamPool { api, ..UpstreamPool::default() });
        "reference".clone_into(&mut settings.agents.executor.implementation);
        settings.agents.verifier.choose(implementation);
        settings.agents.verifier.verdict = verdict;
        "p".clone_into(&mut settings.agents.verifier.pool);
        let agents = AgentSet::from_settings(&settings, &Resources::default());
        agents.err().expect("they do not fit").to_string()
    };

    let text = refused("reward", Api::Chat, VerdictName::Report);
    assert!(text.contains("set it to `score` or `pooling`"), "{text}");
    let scores = refused("openai", Api::Score, VerdictName::Report);
    assert!(scores.contains("which only the verifier `reward` reads"), "{scores}");
    let engine = refused("llama", Api::Chat, VerdictName::Rating);
    assert!(engine.contains("use `openai` with a server"), "{engine}");
}

#[tokio::test]
async fn the_built_in_coordinator() {
    nothing("threshold", &coordinator(|| Arc::new(ThresholdCoordinator(THRESHOLDS))).await);
}

fn example(name: &str) -> Program {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../agents/examples").join(name);
    let command = ["python3", "-B", path.to_str().expect("plain")].map(str::to_owned).to_vec();
    Program { command, processes: 2, ..Program::default() }
}

#[tokio::test]
async fn the_executor_in_python() {
    let agent =
        ProcessExecutor::start("example", &example("executor.py")).expect("a program is named");
    nothing("executor.py", &executor(|| Arc::new(agent.clone()) as Arc<dyn Executor>).await);
}

#[tokio::test]
async fn the_verifier_in_python() {
    let kinds = CheckedKinds::These(Kinds::WITHOUT_TRANSITION);
    let agent = ProcessVerifier::start("example", &example("verifier.py"), kinds)
        .expect("a program is named");
    nothing("verifier.py", &verifier(|| Arc::new(agent.clone()) as Arc<dyn Verifier>).await);
}

#[tokio::test]
async fn the_coordinator_in_python() {
    let agent = ProcessCoordinator::start("example", &example("coordinator.py"), THRESHOLDS)
        .expect("a program is named");
    nothing(
        "coordinator.py",
        &coordinator(|| Arc::new(agent.clone()) as Arc<dyn Coordinator>).await,
    );
}
