//! `bench strategies` and `bench overhead`, on agents with known figures.

use serde_json::{Value, json};

use crate::binary::{SCRIPTED, done};

/// The JSON of a measurement on a few instances of Tower of Hanoi.
fn figures(command: &str, arguments: &[&str]) -> Value {
    let fixed =
        ["bench", command, "--task", "tower-of-hanoi", "--instances", "3", "--output", "json"];
    done(&[&fixed, &SCRIPTED[..], arguments].concat()).json(0)
}

fn rows(figures: &Value) -> &[Value] {
    figures["rows"].as_array().expect("rows")
}

fn strategies(error_rate: &str, arguments: &[&str]) -> Value {
    let few = ["--set", "run.fanout=2", "--set", "run.max_rounds=1", "--set", "runtime.cells=1"];
    let rate = format!("agents.executor.error_rate={error_rate}");
    figures("strategies", &[&few[..], &["--set", rate.as_str()], arguments].concat())
}

#[test]
fn without_errors_every_strategy_is_right() {
    let escalation = ["small=scripted", "large=reference"]
        .map(|set| ["--set".to_owned(), format!("agents.executor.escalation.{set}")]);
    let escalation: Vec<&str> = escalation.iter().flatten().map(String::as_str).collect();

    let figures = strategies(
        "0",
        &[&escalation[..], &["--verifier", "strict", "--verifier", "none", "--by-task"]].concat(),
    );

    assert_eq!((&figures["tasks"], &figures["instances"]), (&json!(["tower-of-hanoi"]), &json!(3)));
    assert!(figures["notes"].to_string().contains("not a model"), "{figures}");
    let rows = rows(&figures);

    // The baseline, seven strategies with two verifiers, but for the variants; each for the task
    // and for all.
    assert_eq!(rows.len(), 2 * (1 + 7 * 2 + 4));
    assert!(rows.iter().any(|row| row["executor"] == "escalation"));
    assert_eq!((&rows[0]["is_baseline"], &rows[0]["verifier"]), (&json!(true), &json!("none")));

    for row in rows {
        assert_eq!((&row["accuracy"]["count"], &row["failed"]), (&json!(3), &json!(0)), "{row}");
        let verified = if row["verifier"] == "strict" { 3 } else { 0 };
        assert_eq!(
            (&row["verified"], &row["verified_wrong"]),
            (&json!(verified), &json!(0)),
            "{row}"
        );
        assert_eq!(row["step_votes"].is_object(), row["strategy"] == "ahead", "{row}");
    }
}

#[test]
fn at_error_rate_one_nothing_is_right() {
    let figures = strategies("1", &["--verifier", "strict", "--no-variants"]);
    assert_eq!(rows(&figures).len(), 8);
    for row in rows(&figures) {
        assert_eq!((&row["accuracy"]["count"], &row["verified"]), (&json!(0), &json!(0)), "{row}");
    }
}

#[test]
fn a_strategy_that_the_executor_cannot_do_is_a_row_with_the_reason() {
    let sets = [
        "--set",
        "agents.executor.implementation=reference",
        "--strategy",
        "beam",
        "--verifier",
        "rules",
    ];
    let failed = figures("strategies", &sets);
    let row = &rows(&failed)[1];
    assert_eq!((&row["strategy"], &row["failed"]), (&json!("beam"), &json!(3)));
    assert!(
        row["failure"].as_str().is_some_and(|reason| reason.contains("log-probabilities")),
        "{row}"
    );
    assert_eq!(rows(&failed)[0]["accuracy"]["count"], 3, "the baseline goes on");

    let text =
        [&["bench", "strategies", "--task", "tower-of-hanoi", "--instances", "2"], &sets[..]]
            .concat();
    let text = done(&text);
    assert_eq!(text.code, 0, "{}", text.stderr);
    assert!(text.stdout.contains("- beam, rules: 2 of 2 runs failed"), "{}", text.stdout);
}

#[test]
fn overhead_has_a_sequential_and_a_concurrent_row_for_each_kind() {
    let printed =
        done(&["bench", "overhead", "--turns", "20", "--side-by-side", "4", "--output", "json"])
            .json(0);

    let rows = printed.as_array().expect("rows");
    for (role, kind) in [
        ("executor", "scripted"),
        ("executor", "openai"),
        ("verifier", "rules"),
        ("verifier", "ensemble"),
    ] {
        let of: Vec<&Value> = rows
            .iter()
            .filter(|row| row["role"] == role && row["kind"].as_str().unwrap().starts_with(kind))
            .collect();
        assert_eq!(
            of.iter().map(|row| row["side_by_side"].as_u64().unwrap()).collect::<Vec<_>>(),
            [1, 4],
            "{kind}"
        );

        for row in of {
            assert_eq!(row["turns"], 20);
            let figure = |name: &str| row[name].as_f64().unwrap();
            assert!(figure("p50_us") > 0.0 && figure("p50_us") <= figure("p99_us"), "{row}");
            assert!(figure("turns_per_second") > 0.0 && row["failure"].is_null(), "{row}");
        }
    }

    // There may be no Python: then the row says why there are no figures.
    let programs = rows.iter().filter(|row| row["kind"].as_str().unwrap().starts_with("process"));
    for row in programs {
        assert_ne!(row["failure"].is_null(), row["p50_us"].is_null(), "{row}");
    }
}

#[test]
fn unknown_agents_are_refused_before_anything_is_measured() {
    let scripted = |arguments: &[&str]| done(&[arguments, &SCRIPTED[..]].concat());
    scripted(&["bench", "strategies", "--verifier", "rule"])
        .refused(&["rule", "did you mean `rules`?"]);
    scripted(&["bench", "strategies", "--strategy", "greed"]).refused(&["greed", "best_of_n"]);
    scripted(&["bench", "strategies", "--variant", "votes", "--no-variants"])
        .refused(&["--no-variants"]);
    scripted(&["bench", "strategies", "--variant", "escalation"])
        .refused(&["escalation.large", "`llama`"]);
    done(&["bench", "overhead", "--turns", "0"]).refused(&["--turns"]);
}
