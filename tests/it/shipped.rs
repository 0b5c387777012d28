//! The built-in model, through the whole binary with the default configuration.

use std::io::{BufRead as _, BufReader};
use std::path::Path;

use actix_web::{App, HttpResponse, HttpServer, web};
use prime_engine::{Engine, EngineSpec, Format, Request, Sampling};
use serde_json::{Value, json};

use crate::binary::{Done, prime};
use crate::daemon::Daemon;

/// Runs a task with the defaults, as a user in a checkout does.
fn solved(task: &str, index: &str) -> Value {
    done(&["run", task, "--index", index, "--output", "json"]).json(0)
}

#[test]
fn it_solves_instances_of_the_benchmark_and_they_are_verified() {
    for (task, index) in [("n-queens", "0"), ("long-division", "1"), ("tower-of-hanoi", "2")] {
        let result = solved(task, index);
        assert_eq!(result["verified"], true, "{result}");
        assert_eq!(result["correct"], true, "{result}");
        assert_eq!(result["agents"]["executor"], "llama");
        assert!(
            result["tokens"]["completion"].as_u64().is_some_and(|tokens| tokens > 0),
            "{result}"
        );
    }
}

#[test]
fn the_other_models_solve_tasks_that_the_first_has_not_learnt() {
    for task in ["pda-execution", "kmp-pattern", "turing-machine", "insertion-sort", "stooge-sort"]
    {
        let result = solved(task, "1");
        assert_eq!(
            (&result["verified"], &result["correct"]),
            (&json!(true), &json!(true)),
            "{result}"
        );
    }
}

/// A daemon, which many runs may use at once, leaves a turn as many tokens as its model was trained
/// for.
#[test]
fn a_daemon_does_not_cut_long_derivations_off() {
    let daemon = Daemon::start(&["agents.executor.implementation=llama"]);
    let record =
        daemon.finished(&daemon.submitted(&json!({"task": "resolution-proof", "index": 0})));
    assert_eq!(record["verified"], true, "{record}");
}

/// The binary alone in an empty folder, as `cargo install` leaves it.
#[test]
fn the_binary_needs_no_other_file() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let binary = folder.path().join("prime-agents");
    let built = env!("CARGO_BIN_EXE_prime-agents");
    // A link is cheaper, but cannot be made on another file system.
    std::fs::hard_link(built, &binary)
        .or_else(|_| std::fs::copy(built, &binary).map(drop))
        .expect("a copy");

    let empty = tempfile::tempdir().expect("a temporary folder");
    let cache = folder.path().join("cache");
    let command = |arguments: &[&str]| -> Done {
        let mut command = std::process::Command::new(&binary);
        command.args(arguments).env_clear().env("XDG_CACHE_HOME", &cache).current_dir(empty.path());
        command.output().expect("the binary starts").into()
    };

    let result = command(&["run", "tower-of-hanoi", "--output", "json"]).json(0);
    assert_eq!(
        (&result["verified"], &result["agents"]["executor"]),
        (&json!(true), &json!("llama")),
        "{result}"
    );

    let journal = format!("journal.path={}", folder.path().join("runs.sqlite").display());
    let mut daemon = std::process::Command::new(&binary)
        .args(["serve", "--set", "server.bind=127.0.0.1:0", "--set", &journal])
        .env_clear()
        .env("XDG_CACHE_HOME", &cache)
        .current_dir(empty.path())
        .stderr(std::process::Stdio::piped())
        .spawn()
        .expect("the binary starts");

    let mut notes = BufReader::new(daemon.stderr.take().expect("piped"))
        .lines()
        .map(|line| line.expect("text"));
    assert!(
        notes.any(|note| note.contains("prime-agents is ready on http://")),
        "serve runs as well"
    );

    daemon.kill().expect("it runs");
    daemon.wait().expect("it ends");

    for (arguments, part) in [
        (&["agents", "check"][..], "engine tiny: prime-tiny (built in)"),
        (&["doctor"], "prime-tiny (built in) on "),
        (&["agents", "show", "verifier", "tiny"], "likelihood"),
    ] {
        let done = command(arguments);
        assert!(
            done.stdout.contains(part),
            "{part:?} is missing in {}{}",
            done.stdout,
            done.stderr
        );
    }

    let cached = std::fs::read_dir(cache.join("prime-agents")).expect("the cache");
    let cached = cached
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("a plain name"));

    let mut models: Vec<_> =
        cached.filter_map(|name| Some(name.rsplit_once('-')?.0.to_owned())).collect();
    models.sort();
    assert_eq!(
        models,
        [
            "prime-advanced",
            "prime-automata",
            "prime-hybrids",
            "prime-large",
            "prime-machines",
            "prime-numbers",
            "prime-puzzles",
            "prime-queens",
            "prime-routes",
            "prime-sorts",
            "prime-structures",
            "prime-symbols",
            "prime-tables",
            "prime-tiny"
        ],
        "each model is written once"
    );

    assert_eq!(
        std::fs::read_dir(empty.path()).expect("a folder").count(),
        0,
        "nothing else is written"
    );
}

/// A command in a checkout.
fn done(arguments: &[&str]) -> Done {
    prime(arguments)
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .expect("the binary starts")
        .into()
}

/// A server that continues prompts with the shipped model, as llama-server does: `/v1/completions`
/// with a grammar, seeds, log-probabilities and usage.
struct Served {
    url: String,
    handle: actix_web::dev::ServerHandle,
    engine: Engine,
}

#[expect(clippy::cast_possible_truncation, reason = "samplers work with single precision")]
async fn completions(engine: web::Data<Engine>, body: web::Json<Value>) -> HttpResponse {
    let number = |name: &str| body[name].as_f64().unwrap_or_default();
    let request = Request {
        prompt: body["prompt"].as_str().expect("a prompt").to_owned(),
        format: Format::Raw,
        grammar: body["grammar"].as_str().map(Into::into),
        excluded: Vec::new(),
        excluded_prefixes: Vec::new(),
        stop: None,
        newline_ends: false,
        thinking: prime_engine::Thinking::AsModel,
        sampling: Sampling {
            temperature: number("temperature") as f32,
            top_p: body["top_p"].as_f64().unwrap_or(1.0) as f32,
            seed: body["seed"].as_u64().unwrap_or_default(),
        },
        max_tokens: body["max_tokens"].as_u64().expect("a limit").try_into().expect("a small one"),
        logprobs: true,
        ignore_end: false,
        group: 0,
        space: 0,
    };

    let made = engine.generate(request).await.expect("the engine answers");
    HttpResponse::Ok().json(json!({
        "object": "text_completion",
        "model": body["model"],
        "choices": [{
            "index": 0,
            "text": made.text,
            "finish_reason": "stop",
            "logprobs": {"token_logprobs": made.logprobs},
        }],
        "usage": {"prompt_tokens": made.prompt_tokens, "completion_tokens": made.tokens.len()},
    }))
}

fn served() -> Served {
    let model = Path::new(env!("CARGO_MANIFEST_DIR")).join("models/prime-tiny.gguf");
    let worker = Some(env!("CARGO_BIN_EXE_prime-agents").into());
    let spec = EngineSpec { name: "served".to_owned(), model, worker, ..EngineSpec::default() };
    let engine = Engine::start(spec).expect("an engine");

    let (tell, told) = std::sync::mpsc::channel();
    let shared = engine.clone();
    std::thread::spawn(move || {
        actix_web::rt::System::new().block_on(async move {
            let app = move || {
                App::new()
                    .app_data(web::Data::new(shared.clone()))
                    .route("/v1/completions", web::post().to(completions))
                    .route(
                        "/v1/models",
                        web::get().to(async || HttpResponse::Ok().json(json!({"data": []}))),
                    )
            };
            let server = HttpServer::new(app).workers(1).bind("127.0.0.1:0").expect("a port");
            let address = server.addrs()[0];
            let server = server.run();
            tell.send((address, server.handle())).expect("somebody listens");
            server.await.expect("it serves");
        });
    });

    let (address, handle) = told.recv().expect("it starts");
    Served { url: format!("http://{address}/v1"), handle, engine }
}

impl Drop for Served {
    fn drop(&mut self) {
        drop(self.handle.stop(false));
        self.engine.shutdown();
    }
}

#[test]
fn the_same_model_behind_a_server_solves_the_same_and_can_be_searched_by_beam() {
    let served = served();
    let pool = format!(
        "pools.local.upstreams=[{{url=\"{}\", model=\"prime-tiny\", concurrent_max=8}}]",
        served.url
    );
    let sets = [
        "agents.executor.implementation=openai",
        "agents.executor.pool=local",
        "agents.executor.prompt=compact",
        "pools.local.api=completions",
        "pools.local.dialect=llama_server",
        &pool,
    ];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();

    for strategy in ["iterative", "beam"] {
        let strategy_set = format!("run.strategy={strategy}");
        let run = [
            "run",
            "n-queens",
            "--output",
            "json",
            "--set",
            &strategy_set,
            "--set",
            "run.beam.width=2",
        ];

        let result = done(&[&run, sets.as_slice()].concat()).json(0);
        assert_eq!(
            (&result["verified"], &result["correct"]),
            (&json!(true), &json!(true)),
            "{strategy}: {result}"
        );
        assert_eq!(
            (&result["agents"]["executor"], &result["strategy"]),
            (&json!("openai"), &json!(strategy))
        );
        assert!(result["tokens"]["completion"].as_u64() > Some(0), "{result}");
    }
}

#[test]
fn a_task_that_it_has_not_learnt_is_tried_by_force() {
    let limits =
        ["agents.executor.engine=tiny", "run.fanout=1", "run.max_rounds=1", "run.budget.steps=3"];
    let sets: Vec<&str> = limits.into_iter().flat_map(|set| ["--set", set]).collect();
    let result =
        done(&[&["run", "sudoku", "--force", "--output", "json"], &sets[..]].concat()).json(1);
    assert_eq!(
        (&result["verified"], &result["agents"]["executor"]),
        (&json!(false), &json!("llama")),
        "{result}"
    );
}

#[test]
fn a_prompt_that_exceeds_the_context_is_too_long() {
    let sets = ["agents.executor.prompt=step", "run.fanout=1", "run.max_rounds=1"];
    let sets: Vec<&str> = sets.into_iter().flat_map(|set| ["--set", set]).collect();
    let failed = done(&[&["run", "tower-of-hanoi"], &sets[..]].concat());
    assert_eq!(failed.code, 1, "{}", failed.stderr);
    let named = "the executor failed (too_long): ";
    assert!(
        failed.stderr.contains(named) && failed.stderr.contains("raise context_tokens"),
        "{}",
        failed.stderr
    );
}

#[test]
fn a_turn_shows_prompt_answer_and_verdict() {
    let tried =
        done(&["agents", "try", "executor", "llama", "--task", "tower-of-hanoi", "--after", "2"]);
    assert_eq!(tried.code, 0, "{}", tried.stderr);
    for part in [
        "prompt:\n    tower-of-hanoi",
        "answer:\n",
        "completion tokens",
        "action  move 1 ",
        "V = 0",
        "Proceed",
    ] {
        assert!(tried.stdout.contains(part), "{part:?} is missing in {}", tried.stdout);
    }
}

#[test]
fn an_escalation_asks_the_large_one_where_the_small_one_errs() {
    let sets = [
        "agents.executor.implementation=escalation",
        "agents.executor.escalation.small=scripted",
        "agents.executor.error_rate=0.4",
        "agents.executor.escalation.large=llama",
    ];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    let folder = tempfile::tempdir().expect("a temporary folder");
    let trace = folder.path().join("trace.jsonl");
    let run = ["run", "n-queens", "--output", "json", "--trace", trace.to_str().expect("plain")];
    let result = done(&[&run, sets.as_slice()].concat()).json(0);

    assert_eq!(result["correct"], true, "{result}");
    assert!(
        result["notes"].to_string().contains("scripted"),
        "a part that is not a model is named: {result}"
    );

    let trace = std::fs::read_to_string(trace).expect("a trace");
    for source in ["\"source\":\"scripted\"", "\"source\":\"llama\""] {
        assert!(trace.contains(source), "{source} is missing");
    }
}

#[test]
fn the_shipped_model_judges_by_what_it_finds_likely() {
    let tried = |action: &str| {
        let tried = done(&[
            "agents",
            "try",
            "verifier",
            "tiny",
            "--task",
            "tower-of-hanoi",
            "--action",
            action,
        ]);
        assert_eq!(tried.code, 0, "{}", tried.stderr);
        tried.stdout
    };

    // Seven discs from peg 0 to peg 2: the first move is to the target.
    let (right, wrong) = (tried("move 1 0 2"), tried("move 1 0 1"));
    assert!(right.contains("V = 0;") && right.contains("log p"), "{right}");
    assert!(wrong.contains("V = 1;") && wrong.contains("improbable"), "{wrong}");

    // A whole run with a faulty executor: it detects errors that rules on invariants accept.
    let sets = [
        "agents.verifier.implementation=tiny",
        "agents.executor.implementation=scripted",
        "agents.executor.error_rate=0.2",
        "run.fanout=1",
    ];

    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    let result =
        done(&[&["run", "tower-of-hanoi", "--output", "json"], sets.as_slice()].concat()).json(1);
    assert_eq!(
        (&result["assurance"], &result["correct"]),
        (&json!("unrefuted"), &json!(true)),
        "{result}"
    );
    assert_eq!(
        (&result["verifier"], &result["steps"]),
        (&json!("tiny"), &json!(127)),
        "no detour: {result}"
    );
    assert!(
        result["tokens"]["completion"].as_u64() > Some(0),
        "the verifier's tokens are counted: {result}"
    );
}
