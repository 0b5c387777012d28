//! A run's trace as an off-policy trainer needs it: what the model was asked and answered, the
//! tokens with their log-probabilities, each step's reward, the model's digest.

use std::path::Path;
use std::sync::{Arc, Mutex};

use prime_stub_server::StubServer;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::binary::{done, shown};
use crate::daemon::Daemon;

fn lines(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn of_event<'l>(lines: &'l [Value], event: &str) -> Vec<&'l Value> {
    lines.iter().filter(|line| line["event"] == event).collect()
}

fn total(step: &Value) -> f64 {
    step["reward"]["total"].as_f64().unwrap()
}

#[test]
fn a_step_of_our_own_model_has_tokens_logprobs_and_its_digest() {
    let daemon = Daemon::start(&["agents.executor.implementation=llama"]);
    let run = daemon
        .submitted(&json!({"task": "tower-of-hanoi", "index": 1, "fanout": 1, "max_rounds": 1}));
    assert_eq!(daemon.finished(&run)["status"], "verified");

    let text = daemon.text(&format!("{run}/trace?prompts=true"));
    let trace = lines(&text);

    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/prime-tiny.gguf");
    let digest = format!("{:x}", Sha256::digest(std::fs::read(file).unwrap()));
    assert_eq!(trace[0]["spec"]["recorded"]["engines"], json!({ "tiny": digest }), "{}", trace[0]);

    let steps = of_event(&trace, "step");
    assert!(!steps.is_empty());
    for step in &steps {
        let count = step["tokens"].as_array().unwrap().len();
        assert_eq!(step["logprobs"].as_array().unwrap().len(), count, "{step}");
        assert!(
            step["logprobs"]
                .as_array()
                .unwrap()
                .iter()
                .all(|logprob| logprob.as_f64().unwrap() <= 0.0),
            "{step}"
        );
        assert_eq!(step["usage"]["completion"], count, "{step}");
        assert!(step["prompt"].as_str().unwrap().starts_with("tower-of-hanoi "), "{step}");
        let completion = step["completion"].as_str().unwrap();
        assert_eq!(completion.rsplit('\n').next(), step["action"].as_str(), "{step}");
        assert!(step.get("system").is_none());
    }

    // α·1 + γ·(1 − |τ| / T_max) + λ·1: the paper's weights, with a run that breaks nothing.
    let ended = of_event(&trace, "trajectory_ended")[0];
    let sum: f64 = steps.iter().map(|step| total(step)).sum();
    assert!((sum - total(ended)).abs() < 1e-9 && sum > 10.0, "{sum}, {ended}");
    assert!((total(steps[0]) - 0.1).abs() < 1e-9, "the first clean step earns λ: {}", steps[0]);

    let id = run.rsplit('/').next().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("trace.jsonl");
    let written =
        done(&["runs", "trace", id, "--prompts", "--url", &daemon.url(""), "--out", shown(&out)]);
    assert_eq!(written.code, 0, "{}", written.stderr);
    assert_eq!(std::fs::read_to_string(&out).unwrap(), text);

    // Unasked, the prompts are left out; without states, so is what follows from them.
    let step = |query: &str| {
        of_event(&lines(&daemon.text(&format!("{run}/trace{query}"))), "step")[0].clone()
    };
    assert!(
        step("").get("prompt").is_none()
            && step("")["reward"].is_object()
            && step("")["state"].is_object()
    );
    assert!(step("?states=false").get("reward").is_none());

    let prompts = step("?states=false&prompts=true");
    assert!(
        prompts.get("state").is_none()
            && prompts["prompt"].is_string()
            && prompts["reward"].is_object()
    );
}

/// Legal moves of the smallest disc, in turn: some break the rule of the algorithm, and one is no
/// action.
fn erring(asked: usize) -> String {
    ["move 1 0 1", "I give up", "move 1 0 2"][asked % 3].to_owned()
}

#[test]
fn prompts_are_those_that_a_server_was_sent() {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let heard = Arc::clone(&seen);
    let answer = move |body: &Value| {
        let mut heard = heard.lock().unwrap();
        heard.push(body["messages"].clone());
        erring(heard.len())
    };

    let stub = StubServer::start(answer).expect("a server");
    let upstreams = format!(
        "pools.local.upstreams=[{{url=\"{}\", model=\"solver\", concurrent_max=8}}]",
        stub.url
    );

    let daemon = Daemon::start(&[
        "agents.executor.implementation=openai",
        "agents.executor.pool=local",
        "run.budget.steps=40",
        &upstreams,
    ]);

    let input = json!({"n": 3, "from": 0, "to": 2});
    let run = daemon.submitted(
        &json!({"task": "tower-of-hanoi", "input": input, "fanout": 1, "max_rounds": 1}),
    );

    daemon.finished(&run);
    let trace = lines(&daemon.text(&format!("{run}/trace?prompts=true")));
    let steps = of_event(&trace, "step");
    let shown: Vec<Value> =
        steps.iter().map(|step| json!([{"role": "user", "content": step["prompt"]}])).collect();

    let sent = seen.lock().unwrap();
    assert!(shown.len() > 5 && sent.len() >= shown.len());
    assert_eq!(shown, sent[..shown.len()], "what is rendered again is what was sent");
    assert!(
        shown.iter().any(|prompt| prompt[0]["content"].as_str().unwrap().contains("I give up")),
        "rejected lines too"
    );

    for step in &steps {
        let (score, reward) = (step["score"].as_f64().unwrap(), &step["reward"]);
        assert!((reward["verify"].as_f64().unwrap() + score).abs() < 1e-9, "{step}");
    }

    assert!(
        steps.iter().any(|step| step["applicable"] == false && total(step) < -0.9),
        "a refused line costs"
    );
}

#[test]
fn an_executor_that_asks_no_model_has_no_prompts() {
    let daemon = Daemon::start(&["agents.executor.implementation=reference"]);
    let run = daemon.submitted(&json!({"task": "bubble-sort", "fanout": 1}));
    daemon.finished(&run);

    let trace = lines(&daemon.text(&format!("{run}/trace?prompts=true")));
    assert!(
        of_event(&trace, "step")
            .iter()
            .all(|step| step.get("prompt").is_none() && step["reward"].is_object())
    );

    let refused = daemon.get(&format!("{run}/trace?prompt=true"));
    refused.refused(400, Some("prompt"), &["prompt"]);
}
