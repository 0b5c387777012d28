//! Adapters of agents, through the whole binary: on the command line, in the record of a run, at a
//! reload.
#![allow(clippy::disallowed_methods, reason = "these tests replace files of other processes")]

use std::path::{Path, PathBuf};
use std::sync::Arc;

use prime_engine_testing::{TinyAdapter, TinyModel};
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::binary::{done, shown};
use crate::daemon::{Daemon, Home};

const TASK: &str = "n-queens-last-queen";

/// A model, and a place for an adapter of it.
struct Files {
    home: Arc<Home>,
    model: PathBuf,
    adapter: PathBuf,
}

impl Files {
    fn new() -> Self {
        let home = Home::new();
        let place = |name: &str| home.journal().with_file_name(name);
        let files = Self { model: place("tiny.gguf"), adapter: place("mine.gguf"), home };
        TinyModel::default().write(&files.model).unwrap();
        files.exchange(1);
        files
    }

    /// Gives the adapter's file a new content and returns its SHA-256.
    fn exchange(&self, seed: u64) -> String {
        let adapter = TinyAdapter { seed, ..TinyAdapter::default() };
        // Under another name first, as a file in use is exchanged.
        let next = self.adapter.with_extension("next");
        adapter.write(&TinyModel::default(), &next).unwrap();
        std::fs::rename(&next, &self.adapter).unwrap();
        format!("{:x}", Sha256::digest(std::fs::read(&self.adapter).unwrap()))
    }

    fn sets(&self) -> Vec<String> {
        vec![
            format!("engines.mine.model={:?}", shown(&self.model)),
            "engines.mine.context_tokens=8192".to_owned(),
            "engines.mine.sequences_max=8".to_owned(),
            "agents.executor.implementation=llama".to_owned(),
            "agents.executor.engine=mine".to_owned(),
            "agents.executor.choices=always".to_owned(),
            "agents.executor.derive=never".to_owned(),
            format!("agents.executor.adapter={:?}", shown(&self.adapter)),
        ]
    }

    fn start(&self) -> Daemon {
        let sets = self.sets();
        Daemon::start_in(&self.home, &sets.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

fn request() -> Value {
    json!({"task": TASK, "index": 0, "fanout": 1, "max_rounds": 1, "budget": {"steps": 20}})
}

/// What `/v1/models` says of the configured agents' adapters.
fn listed(daemon: &Daemon) -> Value {
    daemon.get("/v1/models/prime").body["adapters"].clone()
}

/// The engines' contexts, as the metrics name them.
fn contexts(daemon: &Daemon) -> Vec<String> {
    let text = daemon.text("/metrics");
    let named = text.lines().filter(|line| line.starts_with("prime_engine_up{"));
    let name = |line: &str| line.split('"').nth(1).unwrap().to_owned();
    named.map(name).collect()
}

#[test]
fn a_run_takes_an_adapter_and_a_wrong_one_is_refused_with_what_to_do() {
    let files = Files::new();
    let run = |adapter: &Path, more: &[&str]| {
        let arguments = [
            "run",
            TASK,
            "--output",
            "json",
            "--model",
            shown(&files.model),
            "--adapter",
            shown(adapter),
            "--set",
            "agents.executor.choices=always",
            "--set",
            "run.budget.steps=20",
        ];
        done(&[&arguments, more].concat())
    };
    let ran = run(&files.adapter, &[]);
    assert!(ran.code < 2, "{}{}", ran.stdout, ran.stderr);
    let result: Value = serde_json::from_str(&ran.stdout).unwrap();
    assert!(result["tokens"]["completion"].as_u64().is_some_and(|count| count > 0), "{result}");

    let wide = files.adapter.with_file_name("wide.gguf");
    let wider = TinyModel { width: 128, ..TinyModel::default() };
    TinyAdapter::default().write(&wider, &wide).unwrap();
    run(&wide, &[])
        .refused(&["wide.gguf does not fit model", "use the model that it was trained on"]);
    run(&files.model, &[]).refused(&["tiny.gguf cannot be used", "general.type"]);
    run(&files.adapter.with_file_name("none.gguf"), &[]).refused(&["none.gguf", "No such file"]);
    run(&files.adapter, &["--set", "agents.executor.adapters.bubble-sorts=x"])
        .refused(&["bubble-sorts", "did you mean `bubble-sort`?"]);
    run(&files.adapter, &["--set", "agents.executor.adapter_scale=101"])
        .refused(&["adapter_scale", "100"]);
}

#[test]
fn an_adapter_without_a_model_of_its_own_is_refused_once_and_before_the_run() {
    let files = Files::new();
    let run = |more: &[&str]| {
        done(&[&["run", TASK, "--adapter", shown(&files.adapter)][..], more].concat())
    };
    for (executor, said) in [
        ("scripted", "the executor `scripted` asks no model"),
        ("escalation", "the executor `escalation` asks no model"),
        ("llama", "asks the built-in model of the engine `queens`"),
    ] {
        let set = format!("agents.executor.implementation={executor}");
        let refused = run(&["--set", &set]);
        refused.refused(&["--adapter", said, "name its model with --model FILE"]);
        assert_eq!(refused.stderr.lines().count(), 1, "{}", refused.stderr);
        assert!(refused.stdout.is_empty(), "{}", refused.stdout);
    }

    // An engine of the configuration with another model than a built-in one will do.
    let model = format!("engines.mine.model={:?}", shown(&files.model));
    let sets = [
        model.as_str(),
        "agents.executor.engine=mine",
        "agents.executor.choices=always",
        "engines.mine.context_tokens=8192",
        "engines.mine.sequences_max=8",
        "run.budget.steps=5",
    ];
    let ran = run(&sets.map(|set| ["--set", set]).concat());
    assert!(ran.code < 2, "{}{}", ran.stdout, ran.stderr);
}

#[test]
fn a_file_in_the_place_of_another_kind_is_named_with_the_option_it_belongs_to() {
    let files = Files::new();
    let refused = done(&["run", TASK, "--model", shown(&files.adapter)]);
    refused.refused(&["mine.gguf is an adapter, not a model", "give it with --adapter"]);
    let file = shown(&files.adapter);
    done(&["model", "show", file, "--model", file])
        .refused(&["mine.gguf is an adapter, not a model"]);

    // In a configuration the engine says so.
    let model = format!("engines.mine.model={:?}", shown(&files.adapter));
    let sets = [model.as_str(), "agents.executor.engine=mine"].map(|set| ["--set", set]).concat();
    done(&[&["run", TASK][..], &sets].concat())
        .refused(&["mine.gguf is an adapter, not a model", "`adapter` of an agent"]);
}

#[test]
fn an_adapter_with_values_that_are_not_finite_is_refused_by_its_tensor() {
    let files = Files::new();
    for value in [f32::NAN, f32::INFINITY] {
        let broken = files.adapter.with_file_name("broken.gguf");
        let mut bytes = std::fs::read(&files.adapter).unwrap();
        // Within the last tensor, a down projection's.
        let at = bytes.len() - 64;
        bytes[at..at + 4].copy_from_slice(&value.to_le_bytes());
        std::fs::write(&broken, bytes).unwrap();
        let arguments = ["--model", shown(&files.model), "--adapter", shown(&broken)];
        done(&[&["run", TASK][..], &arguments].concat()).refused(&[
            "broken.gguf cannot be used",
            ".lora_b has a value that is infinite or not a number",
        ]);
    }
}

#[test]
fn a_context_that_does_not_fit_beside_the_weights_is_refused_with_its_engine_and_numbers() {
    let files = Files::new();
    // 16 KiB of keys and values for a token: 256 GiB for the context of `wide`.
    let deep = files.model.with_file_name("deep.gguf");
    TinyModel { layers: 64, ..TinyModel::default() }.write(&deep).unwrap();
    let model = shown(&deep);
    let sets = [
        format!("engines.mine.model={model:?}"),
        "engines.mine.context_tokens=4096".to_owned(),
        "engines.mine.sequences_max=4".to_owned(),
        format!("engines.wide.model={model:?}"),
        "engines.wide.context_tokens=16777216".to_owned(),
        "agents.executor.max_tokens=64".to_owned(),
        "agents.executor.implementation=llama".to_owned(),
        "agents.executor.engine=mine".to_owned(),
        "agents.verifier.implementation=llama".to_owned(),
        "agents.verifier.engine=wide".to_owned(),
    ];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set.as_str()]).collect();
    done(&[&["run", TASK][..], &sets].concat()).refused(&[
        "wide",
        "deep.gguf does not fit",
        "KV pool of 16777216 tokens 256.0 GiB",
        "lower context_tokens to",
    ]);
}

#[test]
fn model_show_and_doctor_know_adapters() {
    let files = Files::new();
    let file = shown(&files.adapter);
    let facts = done(&["model", "show", file, "--model", shown(&files.model), "--output", "json"]);
    let facts = facts.json(0);
    assert_eq!(
        (&facts["kind"], &facts["rank_max"], &facts["matrices"]),
        (&json!("lora"), &json!(4), &json!(6))
    );
    assert_eq!(facts["fits"], true);

    let sets = files.sets();
    let mut arguments = vec!["doctor", "--no-load", "--output", "json"];
    arguments.extend(sets.iter().flat_map(|set| ["--set", set.as_str()]));
    // The verifier asks the model itself, beside the executor with its adapter.
    arguments.extend(["--set", "agents.verifier.implementation=llama"]);
    arguments.extend(["--set", "agents.verifier.engine=mine"]);
    let told: Value = serde_json::from_str(&done(&arguments).stdout).unwrap();
    let memory: Vec<&str> = told["findings"]
        .as_array()
        .into_iter()
        .flatten()
        .filter(|check| check["what"].as_str().unwrap().starts_with("memory for mine"))
        .map(|check| check["detail"].as_str().unwrap())
        .collect();
    assert_eq!(memory.len(), 2, "{told}");
    assert!(memory.iter().filter(|text| text.contains("weights shared")).count() == 1, "{told}");
}

#[test]
fn a_reload_exchanges_an_adapter_and_runs_keep_theirs() {
    let files = Files::new();
    let first = files.exchange(1);
    let daemon = files.start();
    assert_eq!(listed(&daemon), json!([{"id": "mine", "sha256": first}]));
    let before = daemon.submitted(&request());
    daemon.finished(&before);
    assert_eq!(contexts(&daemon).len(), 1, "{:?}", contexts(&daemon));

    let second = files.exchange(2);
    let taken = daemon.post("/v1/reload");
    let exchanged = format!("adapters.{}", shown(&files.adapter));
    assert_eq!((taken.status, &taken.body["taken"]), (200, &json!([exchanged])));
    assert_eq!(listed(&daemon), json!([{"id": "mine", "sha256": second}]));
    daemon.finished(&daemon.submitted(&request()));

    // A file that is not an adapter of the model changes nothing.
    std::fs::write(&files.adapter, "no adapter").unwrap();
    let refused = daemon.post("/v1/reload");
    assert_eq!(refused.status, 422, "{}", refused.body);
    assert!(refused.body.to_string().contains("it is not a GGUF file"), "{}", refused.body);
    assert_eq!(listed(&daemon), json!([{"id": "mine", "sha256": second}]));
    daemon.finished(&daemon.submitted(&request()));
}
