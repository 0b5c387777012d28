//! Derivations that look values up: the engine stops at the end of a query, and continues after the
//! value without computing again what precedes it.

use std::sync::{Arc, Mutex};

use prime_agent_set::llm::{EngineModel, ExecutorOptions, LlmExecutor};
use prime_agent_set::model::{Completion, CompletionRequest, Model};
use prime_agent_set::prompt::Templates;
use prime_agent_set::{AgentError, AsyncExecutor, Proposal, Sampling};
use prime_bench::tasks::{self, Difficulty};
use prime_engine::{Engine, EngineCounts, EngineSpec, Isolation, KvPool};
use prime_engine_testing::teacher_forced;
use prime_protocol::{Limits, Trajectory};

use super::{fixture, spec, wait_for};

/// Values that are looked up before the action.
const READS: usize = 4;
/// `=+0412 `
const VALUE_TOKENS: u64 = 7;
/// Largest difference of a log-probability from that of a token-by-token pass.
const TOLERANCE: f64 = 0.05;

/// A random model that a grammar forces to ask for cells that exist, and then for the action.
struct Asking {
    model: EngineModel,
    /// What follows a query in the grammar.
    after_query: &'static str,
    completed: Mutex<Vec<(String, Completion)>>,
}

#[async_trait::async_trait]
impl Model for Asking {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        let grammar = if request.prompt.matches('?').count() < READS {
            format!("root ::= \"0\" [0-5] [0-9] \"?{}\" [^\\n]* \"\\ndone\"", self.after_query)
        } else {
            "root ::= [a-z] [a-z] \"\\ndone\"".to_owned()
        };
        let prompt = request.prompt.clone();
        let completion = self
            .model
            .complete(CompletionRequest { grammar: Some(grammar.into()), ..request })
            .await?;
        self.completed.lock().expect("no panic with the lock").push((prompt, completion.clone()));
        Ok(completion)
    }
}

fn trajectory() -> Trajectory {
    let problem = tasks::find("introsort").expect("a task").generate(Difficulty::Easy, 3);
    Trajectory::new(problem.start(), &Limits::DEFAULT)
}

fn proposed(model: Arc<dyn Model>, trajectory: &Trajectory, seed: u64) -> Proposal {
    let options = ExecutorOptions::compact("test", 120);
    let executor =
        LlmExecutor::new(model, &Templates::default(), options).expect("built-in templates");
    let sampling = Sampling { temperature: 1.0, top_p: 1.0, seed };
    futures::executor::block_on(executor.propose(trajectory, sampling)).expect("a proposal")
}

/// The counts once the engine is idle.
fn counts(engine: &Engine) -> EngineCounts {
    wait_for(engine, |status| {
        status.in_flight == 0 && status.counts.live == 0 && status.counts.queued == 0
    })
    .counts
}

#[test]
fn a_model_reads_values_and_goes_on_with_the_same_prefix() {
    let fixture = fixture();
    let trajectory = trajectory();
    let cells = trajectory.machine.state()["a"].as_array().expect("an array").clone();
    for (kv, after_query) in
        [(KvPool::Shared, ""), (KvPool::Split, ""), (KvPool::Shared, "=9999 not read")]
    {
        let spec = EngineSpec { kv, ..spec(&fixture.model, Isolation::Process) };
        let engine = Engine::start(spec).expect("started");
        let asking = Arc::new(Asking {
            model: EngineModel::new(engine.clone(), false),
            after_query,
            completed: Mutex::default(),
        });

        let before = counts(&engine);
        let proposal = proposed(asking.clone(), &trajectory, 5);
        let counts = counts(&engine);
        assert_eq!((proposal.line.as_str(), proposal.unfinished.as_deref()), ("done", None));

        let mut rest = proposal.derivation.as_str();
        for _ in 0..READS {
            let (address, after) = rest.split_once('?').expect("a query");
            let (value, after) = after.split_once(' ').expect("a value");
            let cell = &cells[address.parse::<usize>().expect("a place")];
            assert_eq!(
                value,
                format!("={:+05}", cell.as_i64().expect("a number")),
                "{}",
                proposal.derivation
            );
            rest = after;
        }
        assert_eq!(rest.len(), 2, "{}", proposal.derivation);

        let completed = asking.completed.lock().expect("no panic with the lock");
        assert_eq!(completed.len(), READS + 1);
        for (prompt, completion) in completed.iter() {
            assert_eq!(completion.is_stopped, completion.text.ends_with('?'), "{completion:?}");
            let right =
                teacher_forced(&fixture.model, prompt, &completion.tokens).expect("computed");
            assert_eq!(completion.logprobs.len(), right.len());
            for (got, right) in completion.logprobs.iter().zip(right) {
                assert!(
                    (f64::from(*got) - right).abs() < TOLERANCE,
                    "{kv:?}: {got} instead of {right}"
                );
            }
        }

        let written = proposal.tokens.len() as u64;
        assert_eq!((proposal.logprobs.len() as u64, proposal.usage.completion), (written, written));
        let prompt = prime_lessons::compact(trajectory.machine.as_ref()).len() as u64 + 1;
        let read = READS as u64 * VALUE_TOKENS;
        assert_eq!(proposal.usage.prompt, prompt + read, "values are part of the prompt");

        let computed = (counts.prompt_tokens - counts.shared_tokens)
            - (before.prompt_tokens - before.shared_tokens);
        // The last token of a query is computed with its value.
        assert_eq!(computed, prompt + read + READS as u64, "{kv:?}: {counts:?}");
        engine.shutdown();
    }
}

#[test]
fn a_random_model_that_asks_for_anything_makes_proposals() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let trajectory = trajectory();
    let mut failed = 0;
    for seed in 0..60 {
        let proposal =
            proposed(Arc::new(EngineModel::new(engine.clone(), false)), &trajectory, seed);
        if let Some(reason) =
            proposal.unfinished.as_ref().filter(|reason| !reason.starts_with("cut off"))
        {
            failed += 1;
            assert!(
                proposal.line.ends_with('?')
                    && trajectory.machine.fork().propose(&proposal.line).is_err()
            );
            assert!(reason.contains(proposal.line.trim_end_matches('?')), "{reason}");
        }
    }
    assert!(failed > 0, "one in 256 random bytes is a question mark");
    engine.shutdown();
}
