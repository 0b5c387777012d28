//! `bench check`: outputs with known faults, and invalid files.

use serde_json::{Value, json};

use crate::binary::{done, file, shown};

/// Generated lines with traces: answers that are right.
fn right(task: &str, instances: &str) -> Vec<Value> {
    let arguments = [
        "bench",
        "generate",
        "--traces",
        "--difficulty",
        "easy",
        "--task",
        task,
        "--instances",
        instances,
        "--out",
        "-",
    ];

    let printed = done(&arguments);
    assert_eq!(printed.code, 0, "{}", printed.stderr);
    printed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

#[test]
fn an_accuracy_of_nothing_is_no_figure() {
    for text in ["", "\n\n"] {
        let (_folder, empty) = file("outputs.jsonl", text);
        done(&["bench", "check", shown(&empty)])
            .refused(&["outputs.jsonl", "there are no outputs"]);
    }
}

fn lines(values: &[Value]) -> String {
    values.iter().fold(String::new(), |text, value| text + &value.to_string() + "\n")
}

/// The report and the judgements of each line.
fn judged(text: &str, more: &[&str]) -> (Value, Vec<Value>) {
    let (folder, path) = file("outputs.jsonl", text);
    let details = folder.path().join("details.jsonl");
    let arguments =
        ["bench", "check", shown(&path), "--output", "json", "--details", shown(&details)];

    let checked = done(&[&arguments[..], more].concat());
    let report: Value =
        serde_json::from_str(&checked.stdout).unwrap_or_else(|_| panic!("{}", checked.stderr));

    let findings = report["findings"].as_array().unwrap().len();
    assert_eq!(checked.code, i32::from(findings > 0), "{}", checked.stderr);

    let details = std::fs::read_to_string(details).unwrap();
    (report, details.lines().map(|line| serde_json::from_str(line).unwrap()).collect())
}

#[test]
fn generated_traces_are_right_in_every_respect() {
    let (report, verdicts) = judged(&lines(&right("heap-sort", "5")), &[]);
    let overall = &report["overall"];
    assert_eq!(
        (overall["submissions"].as_u64(), overall["accuracy"].as_f64()),
        (Some(5), Some(1.0))
    );
    assert_eq!(
        overall["stages"],
        json!({"format": 1.0, "result": 1.0, "semantic": 1.0, "syntax": 1.0})
    );
    for name in ["partial_credit", "efficiency", "faithfulness"] {
        assert_eq!(overall[name], 1.0, "{name}");
    }
    assert!(verdicts.iter().all(|verdict| verdict["first_error"].is_null()));
}

#[test]
fn each_fault_is_found_at_its_step_with_its_type() {
    // One instance per output, each with another fault.
    let outputs = right("bubble-sort", "9");
    let actions = |place: usize| outputs[place]["actions"].as_array().unwrap().clone();
    let put = |place: usize, actions: Vec<Value>| {
        json!({
            "id": outputs[place]["id"], "actions": actions, "answer": outputs[place]["answer"],
        })
    };
    let changed = |place: usize, at: usize, line: &str| {
        let mut actions = actions(place);
        actions[at] = line.into();
        put(place, actions)
    };

    let mut early = actions(1);
    let cut = early.len() - 4;
    early.truncate(cut);

    let mut late = actions(2);
    late.push("done".into());
    let end = late.len() - 1;

    let mut repeated = actions(3);
    repeated.insert(1, repeated[0].clone());

    let mut wrong_answer = outputs[8].clone();
    wrong_answer["answer"]["swaps"] = (outputs[8]["answer"]["swaps"].as_u64().unwrap() + 1).into();

    let cases = [
        (changed(0, 2, "compare 1 2"), 2, "format"),
        (put(1, early), cut, "termination"),
        (put(2, late), end, "termination"),
        (put(3, repeated), 1, "ordering"),
        (changed(4, 2, "swap 0 99"), 2, "boundary"),
        (changed(5, 0, "cmp 0 2"), 0, "index"),
        (changed(6, 3, "done"), 3, "termination"),
        (changed(7, 0, "swap 2 6"), 0, "invariant"),
        (wrong_answer.clone(), outputs[8]["actions"].as_array().unwrap().len(), "carryover"),
    ];

    let text = lines(&cases.iter().map(|(output, ..)| output.clone()).collect::<Vec<_>>());
    let (report, verdicts) = judged(&text, &[]);

    for ((output, step, error), verdict) in cases.iter().zip(&verdicts) {
        assert_eq!(verdict["id"], output["id"]);
        let first = &verdict["first_error"];
        assert_eq!(
            (first["step"].as_u64(), first["type"].as_str()),
            (Some(*step as u64), Some(*error)),
            "{verdict}"
        );
    }

    assert_eq!(
        report["overall"]["stages"]["semantic"],
        0.0 + 1.0 / 9.0,
        "only the last trace is right"
    );
    assert_eq!(report["overall"]["correct"], 8, "and only its answer is wrong");

    // The share of right states: all but the last four, of the second output.
    let steps = outputs[1]["steps"].as_f64().unwrap();
    let partial = verdicts[1]["partial_credit"].as_f64().unwrap();
    assert!((partial - (steps - 4.0) / steps).abs() < 1e-12, "{partial}");
}

#[test]
fn free_text_is_read_and_stages_fail_in_order() {
    let outputs = right("bubble-sort", "5");
    let trace = |place: usize| {
        let actions = outputs[place]["actions"].as_array().unwrap();
        actions.iter().fold(String::new(), |text, line| text + line.as_str().unwrap() + "\n")
    };
    let said = |place: usize, text: String| json!({"id": outputs[place]["id"], "output": text});
    let answer = |place: usize| outputs[place]["answer"].to_string();

    let text = lines(&[
        said(
            0,
            format!("Sure.\n<actions>\n{}</actions>\n<answer>{}</answer>", trace(0), answer(0)),
        ),
        said(1, format!("The result is {}.", answer(1))),
        said(2, "I cannot do that.".to_owned()),
        said(3, format!("<actions>\nfirst compare\n</actions><answer>{}</answer>", answer(3))),
        said(4, "<answer>{\"sorted\": [1, 2]}</answer>".to_owned()),
    ]);

    let (report, verdicts) = judged(&text, &[]);
    let stages = |verdict: &Value| {
        ["format", "syntax", "semantic", "result"]
            .map(|stage| verdict[stage].as_str().unwrap().to_owned())
    };

    let wanted = [
        ["passed", "passed", "passed", "passed"],
        ["passed", "passed", "not-judged", "passed"],
        ["failed", "failed", "not-judged", "failed"],
        ["passed", "failed", "failed", "passed"],
        ["passed", "failed", "not-judged", "failed"],
    ];

    for (verdict, wanted) in verdicts.iter().zip(wanted) {
        assert_eq!(stages(verdict), wanted.map(str::to_owned), "{verdict}");
    }

    let rate = |stage: &str| report["overall"]["stages"][stage].as_f64().unwrap();
    assert_eq!(
        [rate("format"), rate("syntax"), rate("semantic"), rate("result")],
        [0.8, 0.4, 0.4, 0.4]
    );

    let faithful: Vec<_> =
        verdicts.iter().map(|verdict| verdict["faithful"].as_bool().unwrap()).collect();
    assert_eq!(faithful, [true, true, false, true, false]);
}

#[test]
fn what_cannot_be_read_is_wrong_and_what_cannot_be_attributed_is_named() {
    let good = right("bubble-sort", "2");
    let huge =
        format!(r#"{{"id":"bubble-sort/easy/005","answer":{{"swaps":1{}}}}}"#, "0".repeat(400));
    let text = [
        format!("\u{feff}{}", good[0]),
        "{\"id\":\"bubble-sort/easy/002\",\"outp".to_owned(),
        String::new(),
        r#"{"id":"sort/easy/001","output":"x"}"#.to_owned(),
        r#"{"id":"bubble-sort/easy/003","actions":[1]}"#.to_owned(),
        r#"{"id":"bubble-sort/easy/004","answer":NaN}"#.to_owned(),
        huge,
        good[0].to_string(),
        good[1].to_string(),
        r#"{"id":"bubble-sort/easy/007","output":null}"#.to_owned(),
        r#"{"id":"bubble-sort/easy/008","output":"\ud800"}"#.to_owned(),
        r#"{"output":"x"}"#.to_owned(),
    ]
    .join("\n");

    let mut bytes = text.into_bytes();
    bytes.extend_from_slice(b"\n{\"id\":\"bubble-sort/easy/006\",\"output\":\"\xff\"}\n");

    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outputs.jsonl");
    std::fs::write(&path, bytes).unwrap();

    let checked = done(&["bench", "check", shown(&path), "--output", "json"]);
    let report = checked.json(1);
    let findings: Vec<(u64, &str)> = report["findings"]
        .as_array()
        .unwrap()
        .iter()
        .map(|finding| (finding["line"].as_u64().unwrap(), finding["problem"].as_str().unwrap()))
        .collect();

    let wanted = [(4, "unknown task"), (8, "judged before"), (12, "`id` is missing")];
    assert_eq!(findings.len(), wanted.len(), "{findings:?}");
    for ((line, problem), (wanted_line, part)) in findings.iter().zip(wanted) {
        assert!(
            *line == wanted_line && problem.contains(part),
            "{line} {problem}: {wanted_line} {part}"
        );
    }

    let overall = &report["overall"];
    let counts = ["submissions", "correct", "unreadable"].map(|name| overall[name].as_u64());
    assert_eq!(counts, [Some(9), Some(2), Some(5)], "{overall}");
    assert!(checked.stderr.contains("line 4: "), "{}", checked.stderr);
    assert!(checked.stderr.contains("bubble-sort/easy/002 counts as wrong"), "{}", checked.stderr);

    let printed = done(&["bench", "check", shown(&path)]).stdout;
    let reservations =
        "22.2 % of the outputs (5 outputs unreadable and so wrong, 3 lines not counted)";
    assert!(printed.contains(reservations), "{printed}");

    done(&["bench", "check", "/nowhere.jsonl"]).refused(&["/nowhere.jsonl"]);
    done(&["bench", "check", shown(&path), "--kinds", "colour"]).refused(&["colour", "invariant"]);
}

#[test]
fn lines_of_another_base_seed_are_not_judged() {
    let (report, _) = judged(&lines(&right("bubble-sort", "3")), &["--base-seed", "43"]);
    assert_eq!(
        (&report["overall"]["submissions"], report["findings"].as_array().map(Vec::len)),
        (&json!(0), Some(3))
    );
    assert_eq!(report["accuracy_of_tasks"].to_string(), "0.0", "of no tasks");

    let problem = report["findings"][0]["problem"].as_str().unwrap();
    assert!(
        problem.contains("base seed 42, not 43") && problem.contains("--base-seed 42"),
        "{problem}"
    );
}

#[test]
fn a_trace_beyond_the_limit_is_cut_off_there() {
    let mut output = right("bubble-sort", "1").remove(0);
    let steps = output["steps"].as_u64().unwrap();
    let n = output["input"]["a"].as_array().unwrap().len() as u64;

    let actions = output["actions"].as_array_mut().unwrap();
    let last = actions.pop().unwrap();
    actions.extend((0..200_000).map(|_| Value::from("cmp 0 1")));
    actions.push(last);

    let (_, verdicts) = judged(&lines(&[output]), &["--kinds", "format,terminal"]);
    let verdict = &verdicts[0];

    // A trace of n values has at most n² lines; what comes after is not looked at.
    let first = &verdict["first_error"];
    assert_eq!(
        (first["type"].as_str(), first["step"].as_u64()),
        (Some("termination"), Some(n * n)),
        "{verdict}"
    );
    assert_eq!(verdict["steps"], steps + 200_000);
    assert_eq!(verdict["semantic"], "failed");
}
