//! Every mistake gets a message that names the field or file and the mend, exit code 2, and never a panic.

use crate::binary::{REFERENCE, done, file, prime, run, shown};

#[test]
fn arguments_that_name_nothing() {
    run(&[&["tower-of-hano"], &REFERENCE]).refused(&[
        "tower-of-hano\"",
        "did you mean `tower-of-hanoi`?",
        "bench list",
    ]);
    run(&[&["n-queens", "--index", "200"], &REFERENCE]).refused(&["index 200", "0 to 199"]);
    run(&[&["n-queens", "--index", "-1"], &REFERENCE]).refused(&["-1"]);
    run(&[&["n-queens", "--index", "five"], &REFERENCE]).refused(&["five", "--index"]);
    run(&[&["n-queens", "--difficulty", "extreme"], &REFERENCE]).refused(&["extreme", "easy, medium or hard"]);
    done(&["run", "n-queens", "--output", "xml"]).refused(&["xml", "text, json"]);
    run(&[&["n-queens", "--colour"], &REFERENCE]).refused(&["--colour"]);
    run(&[&REFERENCE]).refused(&["<TASK>"]);
    done(&["solve"]).refused(&["solve", "--help"]);
    assert_eq!(done(&[]).code, 2);
}

#[test]
fn inputs_that_are_none() {
    let (folder, path) = file("broken.json", r#"{"a": [1, 2"#);
    run(&[&["bubble-sort", "--input", shown(&path)], &REFERENCE]).refused(&[shown(&path), "JSON", "line 1"]);
    let missing = folder.path().join("missing.json");
    run(&[&["bubble-sort", "--input", shown(&missing)], &REFERENCE]).refused(&[shown(&missing), "cannot be read"]);
    run(&[&["bubble-sort", "--input", shown(folder.path())], &REFERENCE]).refused(&[shown(folder.path())]);
    run(&[&["bubble-sort", "--input", shown(&path), "--index", "1"], &REFERENCE]).refused(&["--input", "--index"]);

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
        ("n-queens", r#"{"task": "bubble-sort", "input": {"a": [1]}}"#, &["`task`", "bubble-sort", "n-queens"]),
    ];
    for (task, text, parts) in cases {
        let (_folder, path) = file("input.json", text);
        run(&[&[task, "--input", shown(&path)], &REFERENCE]).refused(&[&[shown(&path), task], parts].concat());
    }
}

#[test]
fn settings_out_of_range_or_misspelt() {
    for fanout in ["0", "-1", "1e9", "1000000000", "many"] {
        let set = format!("run.fanout={fanout}");
        run(&[&["n-queens", "--set", &set], &REFERENCE]).refused(&["--set", "`run.fanout`", "from 1 to 256"]);
    }
    run(&[&["n-queens", "--set", "run.fan_out=2"], &REFERENCE]).refused(&["run.fan_out", "did you mean `run.fanout`?"]);
    run(&[&["n-queens", "--set", "fanout"], &REFERENCE]).refused(&["fanout", "--set run.fanout=4"]);
    run(&[&["n-queens", "--set", "agents.executor.implementation=lama"]]).refused(&["lama", "did you mean `llama`?"]);

    let in_environment =
        prime(&[&["run", "n-queens"][..], &REFERENCE].concat()).env("PRIME__RUN__FANUOT", "2").output();
    let in_environment: crate::binary::Done = in_environment.unwrap().into();
    in_environment.refused(&["PRIME__RUN__FANUOT", "did you mean `run.fanout`?"]);

    let (folder, path) = file("my.toml", "[run]\nseed = 1\nfanuot = 2\n");
    run(&[&["n-queens", "--config", shown(&path)], &REFERENCE]).refused(&[
        &format!("{}:3", shown(&path)),
        "run.fanuot",
        "did you mean `run.fanout`?",
    ]);
    let missing = folder.path().join("missing.toml");
    run(&[&["n-queens", "--config", shown(&missing)], &REFERENCE]).refused(&[shown(&missing), "--config"]);
    for command in [&["config", "check"][..], &["config", "show"], &["serve"], &["loadtest"], &["doctor"]] {
        done(&[command, &["--config", shown(&path)]].concat()).refused(&["run.fanuot"]);
    }
}

#[test]
fn files_that_cannot_be_written() {
    let (_folder, path) = file("not-a-folder", "");
    let trace = path.join("trace.jsonl");
    run(&[&["n-queens", "--trace", shown(&trace)], &REFERENCE]).refused(&["--trace", shown(&trace)]);
}

#[test]
fn models_that_are_none() {
    let model = |path: &str| format!("engines.tiny.model={path}");
    run(&[&["n-queens", "--set", &model("/nowhere/model.gguf")]]).refused(&["tiny", "/nowhere/model.gguf", "model"]);
    if cfg!(feature = "llama") {
        let (_folder, path) = file("model.gguf", "This is a letter, not a model.");
        for isolation in ["process", "thread"] {
            let isolation = format!("engines.tiny.isolation={isolation}");
            run(&[&["n-queens", "--set", &model(shown(&path)), "--set", &isolation]]).refused(&[
                "tiny",
                shown(&path),
                "GGUF",
            ]);
        }
        let (_folder, path) = file("model.gguf", "GGUF\u{3}\0\0\0");
        run(&[&["n-queens", "--set", &model(shown(&path))]]).refused(&["tiny", shown(&path)]);
    }
}
