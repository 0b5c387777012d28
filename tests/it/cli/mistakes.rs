//! Every mistake gets a message that names the field or file and says what to do, exit code 2, and
//! never a panic.

use std::ffi::OsString;
use std::net::TcpListener;
use std::os::unix::ffi::OsStringExt as _;

use crate::binary::{Done, REFERENCE, done, file, prime, run, shown};

#[test]
fn wrong_arguments() {
    run(&[&["tower-of-hano"], &REFERENCE]).refused(&[
        "tower-of-hano\"",
        "did you mean `tower-of-hanoi`?",
        "bench list",
    ]);
    run(&[&["n-queens", "--index", "1000"], &REFERENCE]).refused(&["index 1000", "0 to 999"]);
    for command in [&["run"][..], &["runs", "submit"], &["bench", "prompt"]] {
        let refused = done(&[command, &["n-queens", "--index", "-1"]].concat());
        refused.refused(&["invalid value '-1' for '--index <INDEX>'", "integer"]);
    }
    run(&[&["n-queens", "--index", "five"], &REFERENCE]).refused(&["five", "--index"]);
    run(&[&["n-queens", "--difficulty", "extreme"], &REFERENCE])
        .refused(&["extreme", "easy, medium, hard"]);
    done(&["run", "n-queens", "--output", "xml"]).refused(&["xml", "text, json"]);
    run(&[&["n-queens", "--colour"], &REFERENCE]).refused(&["--colour"]);
    run(&[&REFERENCE]).refused(&["<TASK>"]);
    done(&["solve"]).refused(&["solve", "--help"]);
    assert_eq!(done(&[]).code, 2);
}

#[test]
fn numbers_that_are_none_are_refused_in_words() {
    let whole = "give a whole number of 0 or more, in digits";
    for (arguments, parts) in [
        (&["run", "n-queens", "--base-seed", "-1"][..], ["'-1' for '--base-seed", whole]),
        (&["bench", "solve", "--instances", "-1"], ["'-1' for '--instances", whole]),
        (
            &["runs", "gc", "--older-than-days", "-1"],
            ["'-1' for '--older-than-days", "-1 is not in 0..="],
        ),
        (&["loadtest", "--trajectories", "1e3"], ["'1e3' for '--trajectories", whole]),
        (
            &["run", "n-queens", "--base-seed", "18446744073709551616"],
            ["--base-seed", "the number is too large"],
        ),
    ] {
        done(arguments).refused(&parts);
    }
}

/// An input without a step, and numbers as JSON writes them.
#[test]
fn inputs_are_read_as_answers_are() {
    let still = r#"{"marking":[0,0],"transitions":[{"in":[[0,1]],"out":[[1,1]]}],"firings":3}"#;
    run(&[&["petri-net", "--input", still], &REFERENCE])
        .refused(&["petri-net", "there is nothing to do"]);

    let input = r#"{"a":[2.0,1]}"#;
    let sorted = run(&[&["bubble-sort", "--input", input], &REFERENCE]).json(0);
    assert_eq!(sorted["answer"]["sorted"], serde_json::json!([1, 2]));
    run(&[&["bubble-sort", "--input", r#"{"a":[2.5,1]}"#], &REFERENCE])
        .refused(&["`a[0]`", "expected an integer"]);
}

#[test]
fn tasks_that_the_built_in_model_has_not_learnt() {
    run(&[&["sudoku", "--set", "agents.executor.engine=tiny"]]).refused(&[
        "have not learnt `sudoku`",
        "tower-of-hanoi",
        "--force",
    ]);
    done(&["run", "logic"]).refused(&["is a category", "bench list --category logic"]);
    done(&["bench", "generate", "--task", "all", "--out", "-"])
        .refused(&["--task all", "use --all"]);
}

#[test]
fn servers_that_do_not_answer_are_named_before_a_run() {
    // Nobody listens on the first; nobody accepts on the second.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    for (address, reason) in
        [(free, "cannot connect"), (silent.local_addr().unwrap(), "no response within 200 ms")]
    {
        let upstreams = format!(
            "pools.gpu.upstreams=[{{url=\"http://{address}/v1\", model=\"m\", concurrent_max=1}}]"
        );
        let sets = [
            "agents.executor.implementation=openai",
            "agents.executor.pool=gpu",
            "pools.gpu.timeout_ms=200",
        ];
        let sets: Vec<&str> =
            sets.into_iter().chain([upstreams.as_str()]).flat_map(|set| ["--set", set]).collect();

        let server = format!("{address} m: {reason}");
        for command in [&["run", "sudoku"][..], &["bench", "steps", "--task", "sudoku"]] {
            done(&[command, &sets].concat()).refused(&["pool `gpu`: no server answers", &server]);
        }

        let tried = done(&[&["agents", "try", "executor", "openai"], &sets[..]].concat());
        assert_eq!(tried.code, 1, "{}", tried.stderr);
        assert!(tried.stderr.contains(&server), "{}", tried.stderr);

        let doctor = done(&[&["doctor", "--no-load"], &sets[..]].concat());
        assert_eq!(doctor.code, 1, "{}", doctor.stderr);
        assert!(doctor.stdout.contains(&format!("FAIL  pool gpu, {server}")), "{}", doctor.stdout);
    }
}

#[test]
fn wrong_inputs() {
    let (folder, path) = file("broken.json", r#"{"a": [1, 2"#);
    run(&[&["bubble-sort", "--input", shown(&path)], &REFERENCE]).refused(&[
        shown(&path),
        "JSON",
        "line 1",
    ]);

    let missing = folder.path().join("missing.json");
    run(&[&["bubble-sort", "--input", shown(&missing)], &REFERENCE])
        .refused(&[shown(&missing), "cannot be read"]);
    run(&[&["bubble-sort", "--input", shown(folder.path())], &REFERENCE])
        .refused(&[shown(folder.path())]);
    run(&[&["bubble-sort", "--input", "{\"a\": [1, 2"], &REFERENCE])
        .refused(&["--input", "JSON", "line 1"]);
    run(&[&["bubble-sort", "--input", shown(&path), "--index", "1"], &REFERENCE])
        .refused(&["--input", "--index"]);

    let cases = [
        ("bubble-sort", "[1, 2]", &["input"][..]),
        ("bubble-sort", "{}", &["`a`"]),
        ("bubble-sort", r#"{"a": [1, "two"]}"#, &["a[1]"]),
        ("bubble-sort", r#"{"a": [1], "b": 2}"#, &["`b`"]),
        ("tower-of-hanoi", r#"{"n": 3, "from": 0, "to": 7}"#, &["`to`"]),
        ("tower-of-hanoi", r#"{"n": 1000000000, "from": 0, "to": 2}"#, &["`n`"]),
        ("tower-of-hanoi", r#"{"n": -3, "from": 0, "to": 2}"#, &["`n`"]),
        ("n-queens", r#"{"n": 4, "order": [0, 0, 1, 2]}"#, &["`order`"]),
        ("long-division", r#"{"dividend": "12", "divisor": "0"}"#, &["`divisor`"]),
        ("long-division", r#"{"dividend": "1e5", "divisor": "3"}"#, &["`dividend`"]),
        (
            "n-queens",
            r#"{"task": "bubble-sort", "input": {"a": [1]}}"#,
            &["`task`", "bubble-sort", "n-queens"],
        ),
    ];
    for (task, text, parts) in cases {
        let (_folder, path) = file("input.json", text);
        run(&[&[task, "--input", shown(&path)], &REFERENCE])
            .refused(&[&[shown(&path), task], parts].concat());
    }
}

#[test]
fn settings_that_are_out_of_range_or_misspelt() {
    for fanout in ["0", "-1", "1e9", "1000000000", "many"] {
        let set = format!("run.fanout={fanout}");
        run(&[&["n-queens", "--set", &set], &REFERENCE]).refused(&[
            "--set",
            "`run.fanout`",
            "from 1 to 256",
        ]);
    }

    run(&[&["n-queens", "--set", "run.fan_out=2"], &REFERENCE])
        .refused(&["run.fan_out", "did you mean `run.fanout`?"]);
    run(&[&["n-queens", "--set", "fanout"], &REFERENCE]).refused(&["fanout", "--set run.fanout=4"]);
    run(&[&["n-queens", "--set", "agents.executor.implementation=lama"]])
        .refused(&["lama", "did you mean `llama`?"]);

    let in_environment = prime(&[&["run", "n-queens"][..], &REFERENCE].concat())
        .env("PRIME__RUN__FANUOT", "2")
        .output();
    let in_environment: Done = in_environment.unwrap().into();
    in_environment.refused(&["PRIME__RUN__FANUOT", "did you mean `run.fanout`?"]);

    let (folder, path) = file("my.toml", "[run]\nseed = 1\nfanuot = 2\n");
    run(&[&["n-queens", "--config", shown(&path)], &REFERENCE]).refused(&[
        &format!("{}:3", shown(&path)),
        "run.fanuot",
        "did you mean `run.fanout`?",
    ]);

    let missing = folder.path().join("missing.toml");
    run(&[&["n-queens", "--config", shown(&missing)], &REFERENCE])
        .refused(&[shown(&missing), "--config"]);
    for command in
        [&["config", "check"][..], &["config", "show"], &["serve"], &["loadtest"], &["doctor"]]
    {
        done(&[command, &["--config", shown(&path)]].concat()).refused(&["run.fanuot"]);
    }
}

#[test]
fn variables_of_the_environment_that_would_be_ignored() {
    let checked = |name: &str, value: OsString| -> Done {
        prime(&["config", "check"]).env(name, value).output().unwrap().into()
    };
    checked("PRIME_RUN_FANOUT", "4".into())
        .refused(&["PRIME_RUN_FANOUT", "did you mean PRIME__RUN__FANOUT?"]);
    checked("PRIME__LOG__LEVEL", OsString::from_vec(vec![b'x', 0xff]))
        .refused(&["PRIME__LOG__LEVEL", "not UTF-8"]);
    assert_eq!(checked("PRIME_OF_OTHERS", "4".into()).code, 0);
    assert_eq!(checked("LANG", OsString::from_vec(vec![0xff])).code, 0);
}

#[test]
fn files_that_never_end() {
    done(&["config", "check", "--config", "/dev/zero"]).refused(&[
        "/dev/zero",
        "longer than",
        "--config",
    ]);
}

#[test]
fn files_that_cannot_be_written() {
    let (_folder, path) = file("not-a-folder", "");
    let trace = path.join("trace.jsonl");
    run(&[&["n-queens", "--trace", shown(&trace)], &REFERENCE])
        .refused(&["--trace", shown(&trace)]);
}

#[test]
fn files_that_are_no_models() {
    let model = |path: &str| format!("engines.tiny.model={path}");
    run(&[&["tower-of-hanoi", "--set", &model("/nowhere/model.gguf")]]).refused(&[
        "tiny",
        "/nowhere/model.gguf",
        "model",
    ]);
    if cfg!(feature = "llama") {
        let (_folder, path) = file("model.gguf", "This is a letter, not a model.");
        for isolation in ["process", "thread"] {
            let isolation = format!("engines.tiny.isolation={isolation}");
            run(&[&["tower-of-hanoi", "--set", &model(shown(&path)), "--set", &isolation]])
                .refused(&["tiny", shown(&path), "GGUF"]);
        }
        let (_folder, path) = file("model.gguf", "GGUF\u{3}\0\0\0");
        run(&[&["tower-of-hanoi", "--set", &model(shown(&path))]]).refused(&["tiny", shown(&path)]);
    }
}
