//! `run`: the fields of a result, what its notes say, and inputs of one's own.

use prime_stub_server::StubServer;
use serde_json::{Value, json};

use crate::binary::{REFERENCE, SCRIPTED, file, run, shown};

const TASKS: [&str; 5] =
    ["bubble-sort", "tower-of-hanoi", "n-queens", "dfa-simulation", "long-division"];

/// The fields that every result has, each of its type.
fn check_fields(result: &Value) {
    for name in ["task", "instance", "verifier", "outcome"] {
        assert!(result[name].is_string(), "{name}: {result}");
    }
    for name in ["verified", "correct"] {
        assert!(result[name].is_boolean(), "{name}: {result}");
    }
    for name in ["steps", "retries", "backtracks", "rounds", "trajectories", "wall_ms"] {
        assert!(result[name].is_u64(), "{name}: {result}");
    }
    for name in ["checked_kinds", "votes"] {
        assert!(result[name].is_array(), "{name}: {result}");
    }
    assert!(result.as_object().unwrap().contains_key("answer"));
    assert!((0.0..=1.0).contains(&result["agreement"].as_f64().unwrap()));
    for name in ["prompt", "completion"] {
        assert!(result["tokens"][name].is_u64(), "{name}: {result}");
    }
    for name in ["executor", "verifier", "coordinator"] {
        assert!(result["agents"][name].is_string(), "{name}: {result}");
    }
}

fn label_of<'a>(result: &'a Value, part: &str) -> Option<&'a str> {
    result["notes"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(Value::as_str)
        .find(|label| label.contains(part))
}

#[test]
fn every_task_is_solved_and_the_result_has_every_field() {
    for task in TASKS {
        let result = run(&[&[task], &REFERENCE]).json(0);
        check_fields(&result);
        assert_eq!(
            (&result["task"], &result["instance"]),
            (&json!(task), &json!(format!("{task}/easy/000")))
        );
        assert_eq!((&result["verified"], &result["correct"]), (&json!(true), &json!(true)));
        assert_eq!(result["outcome"], "agreed");
        assert_eq!(result["checked_kinds"], json!(["format", "invariant", "terminal"]));
        assert_eq!(result["tokens"], json!({"prompt": 0, "completion": 0}));
        assert_eq!(
            result["agents"],
            json!({"executor": "reference", "verifier": "rules", "coordinator": "threshold"})
        );
        assert!(
            label_of(&result, "reference").is_some_and(|label| label.contains("not a model")),
            "{result}"
        );
    }
}

#[test]
fn errors_are_drawn_caught_and_labelled() {
    let arguments: [&[&str]; 3] = [
        &["bubble-sort", "--index", "3", "--set", "agents.executor.error_rate=0.3"],
        &SCRIPTED,
        &["--set", "run.seed=5"],
    ];

    let result = run(&arguments).json(0);
    check_fields(&result);
    assert_eq!(result["instance"], "bubble-sort/easy/003");
    assert!(result["backtracks"].as_u64().unwrap() > 0, "{result}");
    assert_eq!(result["agents"]["executor"], "scripted");
    assert!(
        label_of(&result, "scripted").is_some_and(|label| label.contains("not a model")),
        "{result}"
    );
}

#[test]
fn an_answer_that_nobody_checked_is_not_verified() {
    let none = ["--set", "agents.verifier.implementation=none"];
    let result = run(&[&["long-division"], &REFERENCE, &none]).json(1);
    check_fields(&result);
    assert_eq!((&result["verified"], &result["correct"]), (&json!(false), &json!(true)));
    assert_eq!((&result["verifier"], &result["checked_kinds"]), (&json!("none"), &json!([])));
    assert_eq!(result.get("verification"), None);

    let text =
        crate::binary::done(&[&["run", "long-division"][..], &REFERENCE, &none].concat()).stdout;
    assert!(
        text.contains("unchecked (none: nothing): nobody looked at some of its steps"),
        "{text}"
    );
}

#[test]
fn a_verifier_that_checks_transitions_is_labelled() {
    let kinds = ["--set", r#"agents.verifier.kinds=["format", "transition"]"#];
    let result = run(&[&["n-queens"], &REFERENCE, &kinds]).json(1);
    assert_eq!(result["checked_kinds"], json!(["format", "transition"]));
    assert_eq!(result["assurance"], "unrefuted", "the end was not looked at");
    assert!(label_of(&result, "transitions").is_some(), "{result}");

    let result = run(&[&["n-queens"], &REFERENCE]).json(0);
    assert!(label_of(&result, "transitions").is_none(), "{result}");
}

/// The object of a result that is verified (exit code 0) or unrefuted (1), and its `misses`.
fn verification(arguments: &[&[&str]], code: i32) -> (Value, Value) {
    let result = run(arguments).json(code);
    let mut verification = result["verification"].clone();
    assert_eq!(verification["steps"], result["steps"], "{result}");
    assert_eq!(
        (&verification["verifier"], &verification["kinds"]),
        (&result["verifier"], &result["checked_kinds"])
    );
    let misses =
        verification.as_object_mut().expect("verified").remove("misses").unwrap_or_default();
    (verification, misses)
}

#[test]
fn a_verified_result_says_what_its_verifier_looked_at_and_misses() {
    let steps = run(&[&["n-queens"], &REFERENCE]).json(0)["steps"].clone();

    let (mut rules, missed) = verification(&[&["n-queens"], &REFERENCE], 0);
    let attacks = rules.as_object_mut().expect("verified").remove("attacks").expect("attacked");
    assert_eq!((&attacks["tried"], &attacks["wrong"]), (&json!(2000), &json!(0)));
    let kinds = json!(["format", "invariant", "terminal"]);
    assert_eq!(
        rules,
        json!({
            "assurance": "verified", "verifier": "rules", "methods": ["rules"], "kinds": kinds,
            "steps": steps,
        })
    );

    let count = |misses: &Value, name: &str| misses[name].as_u64().expect("a count");
    assert!(
        count(&missed, "found") <= count(&missed, "tried") && count(&missed, "tried") > 0,
        "{missed}"
    );
    let bound = missed["rate_bound"].as_f64().expect("a rate");
    assert!(bound > 0.0 && missed["rate"].as_f64() < Some(bound), "{missed}");
    assert!(missed["table"].is_string(), "{missed}");

    let format = ["--set", r#"agents.verifier.kinds=["format"]"#];
    let of_format = run(&[&["n-queens"], &REFERENCE, &format]).json(1);
    assert_eq!(
        (&of_format["assurance"], of_format.get("verification")),
        (&json!("unchecked"), None),
        "the form of lines says nothing"
    );

    let (reference, missed) = verification(
        &[&["n-queens"], &REFERENCE, &["--set", "agents.verifier.implementation=reference"]],
        0,
    );
    assert_eq!(reference["methods"], json!(["reference"]));
    assert_eq!(missed["found"], missed["tried"], "the algorithm finds every wrong step");

    let both = ["--set", r#"agents.verifier.ensemble.members=["rules", "reference"]"#];
    let ensemble = ["--set", "agents.verifier.implementation=ensemble"];
    let (ensemble, _) = verification(&[&["n-queens"], &REFERENCE, &ensemble, &both], 0);
    assert_eq!(ensemble["methods"], json!(["rules", "reference"]));
    assert_eq!(ensemble["kinds"], json!(["format", "invariant", "transition", "terminal"]));
}

#[test]
fn a_likelihood_is_not_called_transition_and_was_not_measured() {
    // A server without grammars writes a line of its own, which must be the proposed one.
    let stub = StubServer::start(|_| "move 1 0 2".to_owned()).expect("a server");
    let pool =
        format!("pools.stub.upstreams=[{{url=\"{}\", model=\"m\", concurrent_max=4}}]", stub.url);
    let sets = [
        "agents.verifier.implementation=openai",
        "agents.verifier.pool=stub",
        "agents.verifier.verdict=likelihood",
        &pool,
    ];

    let mut arguments: Vec<&str> = sets.iter().flat_map(|set| ["--set", *set]).collect();
    let (_folder, path) = file("input.json", r#"{"n": 1, "from": 0, "to": 2}"#);
    arguments.extend(["--input", shown(&path)]);

    let (model, misses) = verification(&[&["tower-of-hanoi"], &REFERENCE, &arguments], 1);
    assert_eq!((&model["methods"], &model["kinds"]), (&json!(["likelihood"]), &json!(["format"])));
    assert_eq!((&model["steps"], misses), (&json!(1), Value::Null));

    let text =
        crate::binary::done(&[&["run", "tower-of-hanoi"][..], &REFERENCE, &arguments].concat())
            .stdout;
    let verdict = "unrefuted (openai: format, likelihood; 1 step): no fault was found";
    assert!(text.contains(verdict), "{verdict:?} is missing in {text}");
}

#[test]
fn another_base_seed_gives_another_instance_and_its_name_says_so() {
    let result =
        run(&[&["long-division", "--base-seed", "7", "--difficulty", "medium"], &REFERENCE])
            .json(0);
    assert_eq!(result["instance"], "long-division/medium/000@7");
    assert_ne!(
        result["answer"],
        run(&[&["long-division", "--difficulty", "medium"], &REFERENCE]).json(0)["answer"]
    );
}

#[test]
fn an_input_of_ones_own_is_an_input_object_or_an_instance_line() {
    let input = json!({"a": [3, 1, 2]});
    let line = json!({
        "id": "x", "task": "bubble-sort", "difficulty": "easy", "input": input, "answer": null,
    });
    for value in [input, line] {
        let (_folder, path) = file("input.json", &value.to_string());
        for given in [shown(&path), &value.to_string()] {
            let result = run(&[&["bubble-sort", "--input", given], &REFERENCE]).json(0);
            assert_eq!((&result["instance"], &result["correct"]), (&json!("input"), &json!(true)));
            assert_eq!(result["answer"]["sorted"], json!([1, 2, 3]), "{result}");
        }
    }
}

#[test]
fn a_trace_has_every_proposal_and_the_end() {
    let (_folder, path) = file("trace.jsonl", "an old trace");
    let arguments =
        ["bubble-sort", "--trace", shown(&path), "--set", "agents.executor.error_rate=0.2"];
    let result = run(&[&arguments, &SCRIPTED]).json(0);

    let text = std::fs::read_to_string(&path).unwrap();
    let lines: Vec<Value> =
        text.lines().map(|line| serde_json::from_str(line).expect("each line is JSON")).collect();
    let count = |event: &str| lines.iter().filter(|line| line["event"] == event).count() as u64;
    let decided =
        |decision: &str| lines.iter().filter(|line| line["decision"] == decision).count() as u64;

    assert_eq!(count("step"), result["proposals"]);
    assert_eq!(decided("backtrack"), result["backtracks"]);
    assert_eq!(count("voted"), result["rounds"]);
    let end = json!({
        "event": "finished", "outcome": "agreed", "verified": true, "assurance": "verified",
        "answer": result["answer"],
    });
    assert_eq!(lines.last().unwrap(), &end);
    assert_eq!(
        (&lines[0]["event"], &lines[0]["basis"]["methods"]),
        (&json!("started"), &json!(["rules"]))
    );
    assert!(lines[1]["action"].is_string() && lines[1]["score"].is_number(), "{}", lines[1]);
}

#[test]
fn the_same_seed_gives_the_same_result_and_the_budget_ends_a_run_by_name() {
    let arguments: [&[&str]; 2] =
        [&["dfa-simulation", "--set", "agents.executor.error_rate=0.3"], &SCRIPTED];
    let results = [(); 2].map(|()| {
        let mut result = run(&arguments).json(0);
        result["wall_ms"] = json!(0);
        result
    });
    assert_eq!(results[0], results[1]);

    let spent = run(&[
        &["tower-of-hanoi", "--set", "run.budget.steps=10", "--set", "run.fanout=2"],
        &REFERENCE,
    ])
    .json(1);
    assert_eq!((&spent["outcome"], &spent["proposals"]), (&json!("steps_spent"), &json!(10)));
}

#[test]
fn text_for_people_says_what_was_checked_and_that_this_was_no_model() {
    let done = crate::binary::done(&[&["run", "n-queens"][..], &REFERENCE].concat());
    assert_eq!(done.code, 0);
    for part in [
        "n-queens/easy/000",
        "verified (rules: format, invariant, terminal; 9 steps; 1359 clean traces off the algorithm's path ended right)",
        "not a model",
    ] {
        assert!(done.stdout.contains(part), "{part:?} is missing in {}", done.stdout);
    }
}
