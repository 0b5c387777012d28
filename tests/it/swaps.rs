//! Agents swapped by configuration alone, each against a real counterpart: an OpenAI-compatible
//! server, and programs in Python.

use std::path::Path;

use prime_stub_server::StubServer;
use serde_json::{Value, json};

use crate::binary::{REFERENCE, SCRIPTED, done, file, run, shown};
use crate::daemon::Daemon;

const HANOI: &str = r#"{"n": 3, "from": 0, "to": 2}"#;

/// A command line of an example program.
pub fn example(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("agents/examples").join(name);
    json!(["python3", "-B", shown(&path)]).to_string()
}

/// The next move for three discs by the recursive rule, from the pegs in a prompt: what a good
/// model would answer.
fn next_move(prompt: &str) -> String {
    // The prompt's state is one line of JSON with the pegs from bottom to top.
    let at = prompt.rfind("\"pegs\":").expect("the state is shown");
    let rest = &prompt[at + "\"pegs\":".len()..];
    let end = rest.find("]]").expect("three pegs") + 2;
    let pegs: Vec<Vec<u32>> = serde_json::from_str(&rest[..end]).expect("pegs");

    let peg_of = |disc: u32| {
        pegs.iter().position(|peg| peg.contains(&disc)).expect("every disc lies somewhere")
    };

    // Working down from the largest disc, find the one that must move next.
    let (mut target, mut step) = (2, None);
    for disc in (1..=3).rev() {
        let peg = peg_of(disc);
        if peg != target {
            step = Some((disc, peg, target));
            target = 3 - peg - target;
        }
    }

    let (disc, from, to) = step.expect("it is not solved yet");
    format!("The tower above must make way.\nmove {disc} {from} {to}")
}

fn pool(url: &str) -> Vec<String> {
    [
        "agents.executor.implementation=openai",
        "agents.executor.pool=local",
        "agents.executor.prompt=step",
        "agents.executor.grammar=false",
        "pools.local.backoff_ms=1",
        "pools.local.backoff_max_ms=20",
        "pools.local.timeout_ms=5000",
        "pools.local.queue_timeout_ms=100",
        &format!("pools.local.upstreams=[{{url=\"{url}\", model=\"solver\", concurrent_max=8}}]"),
    ]
    .iter()
    .flat_map(|set| ["--set".to_owned(), (*set).to_owned()])
    .collect()
}

fn with<'a>(first: &[&'a str], sets: &'a [String]) -> Vec<&'a str> {
    first.iter().copied().chain(sets.iter().map(String::as_str)).collect()
}

#[test]
fn an_executor_behind_a_server_solves_a_task_and_is_named() {
    let answer =
        |body: &Value| next_move(body["messages"][0]["content"].as_str().expect("a prompt"));
    let stub = StubServer::start(answer).expect("a server");

    let sets = pool(&stub.url);
    let (_folder, input) = file("input.json", HANOI);

    let trace = input.with_file_name("trace.jsonl");
    let result = run(&[
        &["tower-of-hanoi", "--input", shown(&input), "--trace", shown(&trace)],
        &with(&["--set", "run.fanout=2"], &sets),
    ])
    .json(0);

    assert_eq!(
        (&result["verified"], &result["correct"], &result["steps"]),
        (&json!(true), &json!(true), &json!(7))
    );
    assert_eq!(result["agents"]["executor"], "openai");
    assert_eq!(result["notes"], json!([]), "it is a model as far as anybody can know");

    let host = stub.url.trim_start_matches("http://").trim_end_matches("/v1");
    let trace = std::fs::read_to_string(trace).unwrap();
    let sources: Vec<Value> = trace
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["event"] == "step")
        .map(|line| line["source"].clone())
        .collect();
    assert!(
        !sources.is_empty()
            && sources.iter().all(|source| source.as_str().is_some_and(|s| s.contains(host)))
    );
}

#[test]
fn a_server_without_grammars_needs_no_option_to_answer_freely() {
    let answer = |body: &Value| {
        let step = next_move(body["messages"][0]["content"].as_str().expect("a prompt"));
        let (reason, line) = step.split_once('\n').expect("a reason and a line");
        format!("{reason}\n```\n{line}\n```\n")
    };
    let stub = StubServer::start(answer).expect("a server");

    let sets = pool(&stub.url);
    let is_default = |set: &[String]| set[1] != "agents.executor.grammar=false";
    let sets: Vec<String> =
        sets.chunks(2).filter(|set| is_default(set)).flatten().cloned().collect();
    let (_folder, input) = file("input.json", HANOI);

    let result = run(&[
        &["tower-of-hanoi", "--input", shown(&input)],
        &with(&["--set", "run.fanout=1"], &sets),
    ])
    .json(0);
    assert_eq!(
        (&result["verified"], &result["correct"], &result["steps"]),
        (&json!(true), &json!(true), &json!(7))
    );
}

#[test]
fn a_server_that_is_gone_ends_the_run_by_name_and_not_the_daemon() {
    let gone = StubServer::start(|_| String::new()).expect("a server").url.clone();
    let sets = pool(&gone);
    let sets: Vec<&str> = sets.iter().filter(|part| *part != "--set").map(String::as_str).collect();
    let daemon =
        Daemon::start(&[&["server.allow_executors=[\"reference\"]"], sets.as_slice()].concat());

    let run = daemon.submitted(&json!({"task": "tower-of-hanoi", "fanout": 1, "max_rounds": 1}));
    let record = daemon.finished(&run);

    assert_eq!((&record["outcome"], &record["answer"]), (&json!("agent_failed"), &Value::Null));
    let failure = record["failure"].as_str().unwrap();
    assert!(failure.contains("executor `openai`") && failure.contains("solver"), "{failure}");

    let trace = daemon.text(&format!("{run}/trace"));
    let events: Vec<Value> =
        trace.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

    let mishaps: Vec<_> = events.iter().filter(|event| event["event"] == "mishap").collect();
    assert_eq!(mishaps.len(), 4, "four that were tried again, and the fifth is final: {trace}");
    assert!(
        mishaps
            .iter()
            .all(|event| event["role"] == "executor" && event["failure"] == "unreachable"),
        "{trace}"
    );

    let last =
        events.iter().find(|event| event["event"] == "turn_failed").expect("a final failure");
    assert_eq!((&last["role"], &last["failure"]), (&json!("executor"), &json!("unreachable")));

    // The daemon keeps serving agents that need no server.
    let other =
        daemon.submitted(&json!({"task": "tower-of-hanoi", "agents": {"executor": "reference"}}));
    assert_eq!(daemon.finished(&other)["status"], "verified");
}

#[test]
fn a_verifier_in_python_finds_what_is_wrong() {
    let command = format!("agents.verifier.program.command={}", example("verifier.py"));
    let sets = ["--set", "agents.verifier.implementation=process", "--set", &command];
    let erring = ["--set", "agents.executor.error_rate=0.3"];

    let result = run(&[&["tower-of-hanoi"], &SCRIPTED, &erring, &sets]).json(1);
    assert_eq!((&result["assurance"], &result["correct"]), (&json!("unrefuted"), &json!(true)));
    assert_eq!(
        (&result["verifier"], &result["agents"]["verifier"]),
        (&json!("process"), &json!("process"))
    );
    assert!(result["backtracks"].as_u64().unwrap() > 0, "it objected: {result}");
}

#[test]
fn misbehaving_programs_fail_their_runs_but_not_the_daemon() {
    let faults = [
        (
            "garbage",
            "import sys\nfor line in sys.stdin: print('certainly!', flush=True)",
            "malformed",
        ),
        (
            "dies",
            "import sys\nprint('{\"prime\":1}', flush=True)\nsys.stdin.readline()\nsys.exit(3)",
            "died",
        ),
        ("floods", "import sys\nwhile True: sys.stdout.write('x' * 65536)", "too_long"),
        ("hangs", "import time\ntime.sleep(3600)", "timeout"),
    ];

    let daemon = {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("verifier")).unwrap();
        for (name, code, _) in faults {
            let definition = format!(
                "implementation = \"process\"\n[program]\ncommand = [\"python3\", \"-c\", {}]\n\
                 timeout_ms = 300\nstart_timeout_ms = 1500\nrestarts_max = 1000\n",
                json!(code)
            );
            std::fs::write(folder.path().join(format!("verifier/{name}.toml")), definition)
                .unwrap();
        }

        let allowed = json!(faults.map(|(name, ..)| name));
        let folder_set = format!("agents.folder={}", shown(folder.path()));
        Daemon::start(&[&folder_set, &format!("server.allow_verifiers={allowed}")])
    };

    for (name, _, failure) in faults {
        let request = json!({
            "task": "tower-of-hanoi", "fanout": 1, "max_rounds": 1, "agents": {"verifier": name},
        });
        let run = daemon.submitted(&request);
        let record = daemon.finished(&run);
        assert_eq!(record["outcome"], "agent_failed", "{name}: {record}");
        let reason = record["failure"].as_str().unwrap();
        assert!(reason.contains(&format!("verifier `{name}`")), "{reason}");

        let trace = daemon.text(&format!("{run}/trace"));
        let last = trace.lines().rev().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let last =
            last.into_iter().find(|event| event["event"] == "turn_failed").expect("it failed");
        assert_eq!(
            (&last["role"], &last["failure"]),
            (&json!("verifier"), &json!(failure)),
            "{name}: {trace}"
        );
    }

    let fine = daemon.submitted(&json!({"task": "tower-of-hanoi"}));
    assert_eq!(daemon.finished(&fine)["status"], "verified");
}

#[test]
fn invalid_definitions_are_refused_with_file_and_line() {
    let check = |role: &str, name: &str, text: &str, parts: &[&str]| {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join(role)).unwrap();
        std::fs::write(folder.path().join(role).join(name), text).unwrap();
        let set = format!("agents.folder={}", shown(folder.path()));

        let checked = done(&["agents", "check", "--set", &set]);
        assert!(checked.code == 2 || checked.code == 1, "{}", checked.stdout);
        for part in parts {
            assert!(checked.stderr.contains(part), "{part:?} is missing in {:?}", checked.stderr);
        }
    };

    let mine = "mine.toml";
    check(
        "verifier",
        mine,
        "implementation = \"rules\"\nkind = [\"format\"]",
        &["mine.toml:2", "kind", "`kinds`"],
    );

    let unknown = "implementation = \"llama\"\nchat = true";
    check("executor", mine, unknown, &["mine.toml:2", "unknown key `chat`", "chat_template"]);
    check("verifier", mine, "kinds = [\"format\"]", &["mine.toml", "`implementation` is missing"]);
    check(
        "verifier",
        mine,
        "implementation = \"rulez\"",
        &["mine.toml", "rulez", "did you mean `rules`?"],
    );
    check(
        "verifier",
        mine,
        "implementation = \"rules\"\nengine = \"tiny\"",
        &["mine.toml", "`engine`", "`rules`", "kinds"],
    );
    check(
        "verifier",
        "rules.toml",
        "implementation = \"none\"",
        &["rules.toml", "name of an implementation"],
    );

    check("executor", "My Own.toml", "implementation = \"reference\"", &["lower-case letters"]);
    let ensemble = "implementation = \"ensemble\"\n[ensemble]\nmembers = [\"mine\", \"rules\"]";
    check("verifier", mine, ensemble, &["mine.toml", "contain itself"]);
    let member = "implementation = \"ensemble\"\n[ensemble]\nmembers = [\"rule\"]";
    check("verifier", mine, member, &["mine.toml", "`rule`", "did you mean `rules`?"]);
    let program = "implementation = \"process\"";
    check("executor", mine, program, &["mine.toml", "program.command", "python3"]);
    let pool = "implementation = \"openai\"\npool = \"gpu\"";
    check("executor", mine, pool, &["mine.toml", "`gpu`", "pool"]);

    check(
        "executor",
        "compact.j2",
        "{{ task.slug }}\n{{ veiw }}",
        &["executor/compact.j2", "line 2", "`veiw`"],
    );
}

#[test]
fn agents_are_listed_shown_and_tried() {
    let list = done(&["agents", "list"]).stdout;
    for part in [
        r"llama\*",
        "openai",
        "process",
        "escalation",
        "ensemble",
        "adaptive",
        "strict",
        "built in",
    ] {
        assert!(list.contains(part), "{part} is missing in {list}");
    }

    let shown = done(&["agents", "show", "verifier", "strict"]).stdout;
    assert!(
        shown.contains("kinds = [\"format\", \"invariant\", \"transition\", \"terminal\"]"),
        "{shown}"
    );
    assert!(!shown.contains("engine"), "only what rules uses: {shown}");

    let tried = done(&["agents", "try", "verifier", "panel", "--action", "move 1 0 1"]).stdout;
    for part in
        ["V = 1", "next-step", "opinion  rules: 0", "opinion  strict: 1", "review", "Backtrack"]
    {
        assert!(tried.contains(part), "{part:?} is missing in {tried}");
    }

    let command = format!("agents.executor.program.command={}", example("executor.py"));
    let tried =
        done(&["agents", "try", "executor", "process", "--after", "1", "--set", &command]).stdout;
    assert!(tried.contains("move 2 0 1") && tried.contains("Proceed"), "{tried}");
    done(&["agents", "try", "executor", "nobody"]).refused(&["no executor `nobody`", "llama"]);

    let schema = done(&["agents", "schema", "coordinator"]).json(0);
    assert_eq!(schema["required"], json!(["implementation"]));
    assert!(schema["properties"]["adaptive"]["properties"]["gain"]["description"].is_string());
}

#[test]
fn a_recorded_run_is_replayed_proposal_by_proposal() {
    let (_folder, trace) = file("trace.jsonl", "");
    let arguments = ["n-queens", "--set", "run.fanout=1", "--set", "run.max_rounds=1"];
    let erring = ["--set", "agents.executor.error_rate=0.3", "--trace", shown(&trace)];
    let first = run(&[&arguments, &SCRIPTED, &erring]).json(0);

    let recording = format!("agents.executor.recording={}", shown(&trace));
    let again = run(&[
        &arguments,
        &["--set", "agents.executor.implementation=replay", "--set", &recording],
    ])
    .json(0);

    for field in ["answer", "steps", "proposals", "retries", "backtracks", "pops", "verified"] {
        assert_eq!(again[field], first[field], "{field}");
    }
    assert_eq!(again["agents"]["executor"], "replay");

    let missing = [
        "--set",
        "agents.executor.implementation=replay",
        "--set",
        "agents.executor.recording=/nowhere.jsonl",
    ];
    run(&[&arguments, &missing]).refused(&["/nowhere.jsonl", "cannot be read"]);
}

#[test]
fn each_strategy_can_be_chosen_in_the_configuration_and_for_a_run() {
    let sets = |strategy: &str| vec!["--set".to_owned(), format!("run.strategy={strategy}")];
    for strategy in ["iterative", "greedy", "best_of_n", "ahead", "particle_filter", "uct"] {
        let result = run(&[&["tower-of-hanoi"], &REFERENCE, &with(&[], &sets(strategy))]).json(0);
        assert_eq!(
            (&result["strategy"], &result["verified"]),
            (&json!(strategy), &json!(true)),
            "{result}"
        );
        let trajectories = match strategy {
            "greedy" | "ahead" => 1,
            "particle_filter" => 8,
            _ => 4,
        };
        assert_eq!(result["trajectories"], trajectories, "{result}");
        let votes = &result["step_votes"];
        assert_eq!(votes.is_object(), strategy == "ahead", "{result}");
        let counts = ["particle_filter", "uct"].contains(&strategy);
        assert_eq!(result["search"].is_object(), counts, "{result}");
    }

    // The reference gives no log-probabilities.
    let refused = run(&[&["tower-of-hanoi"], &REFERENCE, &with(&[], &sets("beam"))]).json(1);
    assert!(refused["failure"].as_str().unwrap().contains("log-probabilities"), "{refused}");

    let daemon = Daemon::start(&["agents.executor.implementation=scripted", "run.ahead.k=2"]);
    let run =
        daemon.submitted(&json!({"task": "tower-of-hanoi", "strategy": "ahead", "fanout": 3}));
    let record = daemon.finished(&run);
    assert_eq!((&record["status"], &record["strategy"]), (&json!("verified"), &json!("ahead")));

    let votes = &record["step_votes"];
    assert_eq!(
        (&votes["k"], &votes["steps"], &votes["undecided"]),
        (&json!(2), &json!(127), &json!(0))
    );
    assert_eq!(votes["samples"], record["proposals"]);
    assert!(
        votes["margin_min"].as_u64() >= Some(2) && votes["error_bound"].as_f64() < Some(1.0),
        "{votes}"
    );

    let chosen: Vec<Value> = daemon
        .text(&format!("{run}/trace"))
        .lines()
        .map(|line| serde_json::from_str::<Value>(line).unwrap())
        .filter(|line| line["event"] == "chosen")
        .collect();
    assert_eq!(chosen.len(), 127);
    assert!(
        chosen.iter().all(|line| line["lead"].as_u64() >= Some(2) && line["action"].is_string())
    );

    daemon.submit(&json!({"task": "tower-of-hanoi", "strategy": "bream"})).refused(
        400,
        Some("strategy"),
        &["beam"],
    );
}
