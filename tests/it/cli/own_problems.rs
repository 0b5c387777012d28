//! Problems and inputs of one's own, without a daemon.

use std::path::Path;

use serde_json::{Value, json};

use crate::binary::{REFERENCE, done, file, run, shown};
use crate::daemon::Daemon;

/// The problem of the documentation.
fn example() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/problem.json");
    shown(&path).to_owned()
}

fn replaying(lines: &Value) -> Vec<String> {
    let lines = format!("agents.executor.lines={lines}");
    ["--set", "agents.executor.implementation=replay", "--set", "run.fanout=1", "--set", &lines]
        .map(str::to_owned)
        .to_vec()
}

fn run_problem(problem: &str, lines: &Value, more: &[&str]) -> crate::binary::Done {
    let sets = replaying(lines);
    let sets: Vec<_> = sets.iter().map(String::as_str).collect();
    run(&[&["--problem", problem], &sets, more])
}

#[test]
fn a_problem_is_solved_without_a_daemon() {
    let lines = json!(["I take 3, 5 and 13", "[8, 8, 5]", "[3, 5, 13]"]);
    let result = run_problem(&example(), &lines, &[]).json(0);
    assert_eq!(
        (&result["task"], &result["instance"], &result["answer"], &result["verified"]),
        (&json!("problem"), &json!("input"), &json!([3, 5, 13]), &json!(true))
    );
    assert_eq!((&result["proposals"], &result["backtracks"]), (&json!(3), &json!(2)));
    assert_eq!(result.get("correct"), None, "nobody knows the right answer");

    done(&["run", "n-queens", "--problem", &example()]).refused(&["--problem"]);
    done(&["run"]).refused(&["<TASK>"]);
    let broken = r#"{"statement": "s", "constraints": [{"name": "a"}]}"#;
    done(&["run", "--problem", broken]).refused(&["problem.constraints[0]"]);
}

#[test]
fn max_proposals_ends_an_executor_that_guesses() {
    // Each guess is another one, and all are wrong.
    let lines: Vec<_> = (0..50).map(|number| number.to_string()).collect();
    let problem = |most: Value| {
        json!({
            "statement": "Which number?", "max_proposals": most, "answer": {"pattern": "[0-9]+"},
            "constraints": [{"name": "no", "severity": "critical", "check": "answer == 'x'"}],
        })
        .to_string()
    };
    let rounds = ["--set", "run.max_rounds=2"];
    let result = run_problem(&problem(json!(3)), &json!(lines), &rounds).json(1);
    // Three proposals of one trajectory in two rounds.
    assert_eq!((&result["outcome"], &result["proposals"]), (&json!("steps_spent"), &json!(6)));

    for wrong in [0, 1_000_001] {
        done(&["run", "--problem", &problem(json!(wrong))])
            .refused(&["problem.max_proposals", "1 to 1000000"]);
    }
}

#[test]
fn a_problem_is_checked_and_its_lines_judged_without_a_model() {
    let two = ["--line", "[8, 8, 5]", "--line", "[3, 5, 13]"];
    let judged = done(&[&["problem", "check", &example()], &two[..]].concat());
    let text = judged.stdout;
    assert_eq!(judged.code, 1, "{text}{}", judged.stderr);
    for part in [
        "- sum (critical, with the answer): answer[0] + answer[1] + answer[2] == input.sum",
        "An answer that breaks nothing is verified, unless its checks accept any other as well.",
        "`[8, 8, 5]`, the answer: breaks different (major): answer[0] != answer[1]",
        "`[3, 5, 13]`, the answer: breaks nothing",
    ] {
        assert!(text.contains(part), "{part:?} is missing in:\n{text}");
    }

    let json =
        done(&["problem", "check", &example(), "--line", "[3, 5, 13]", "--output", "json"]).json(0);
    assert_eq!((&json["answer"], &json["lines"][0]["ends"]), (&json!([3, 5, 13]), &json!(true)));

    let words = json!({
        "statement": "s", "constraints": [{"name": "a", "severity": "minor", "text": "Be kind."}],
    });
    let text = done(&["problem", "check", &words.to_string()]).stdout;
    assert!(
        text.contains("An answer is never verified: the problem has constraints in words"),
        "{text}"
    );
    let broken =
        r#"{"statement": "s", "constraints": [{"name": "a", "severity": "minor", "check": "x"}]}"#;
    done(&["problem", "check", broken]).refused(&["problem.constraints[0].check", "`x`"]);
}

/// Steps with named groups, solved by lines of which two are wrong: the message of a check is what
/// the trace says.
#[test]
fn a_problem_with_steps_that_are_values_is_solved_without_a_daemon() {
    let problem = json!({
        "statement": "Count down to 0, by 1 or 2.",
        "input": {"from": 3},
        "steps": "stepwise",
        "step": {"pattern": "(?<from>[0-9]+) to (?<to>[0-9]+)"},
        "constraints": [
            {
                "name": "follows", "severity": "critical",
                "check": "int(step.from) == (previous == null ? input.from : int(previous.to))",
                "message": "A step begins where the one before ended.",
            },
            {
                "name": "end", "severity": "critical",
                "check": "step != null && int(step.to) == 0 && int(answer) == size(steps)",
            },
        ],
    });
    let lines = json!(["3 to 1", "2 to 0", "1 to 0", "answer: 3", "answer: 2"]);
    let (_folder, trace) = file("trace.jsonl", "");
    let result = run_problem(&problem.to_string(), &lines, &["--trace", shown(&trace)]).json(0);
    assert_eq!((&result["answer"], &result["verified"]), (&json!("2"), &json!(true)));
    assert_eq!((&result["proposals"], &result["backtracks"]), (&json!(5), &json!(2)));
    let told = std::fs::read_to_string(&trace).expect("a trace");
    assert!(told.contains("A step begins where the one before ended: step.from is"), "{told}");
}

/// A verifier in Python that finds fault with every line but one.
const VERIFIER: &str = r#"
import json, sys
sys.stdin.readline()
print(json.dumps({"prime": 1}), flush=True)
for line in sys.stdin:
    turn = json.loads(line)
    right = turn["action"] == "42"
    answer = {"id": turn["id"], "score": 0.0 if right else 1.0}
    print(json.dumps(answer if right else {**answer, "feedback": "another"}), flush=True)
"#;

#[test]
fn what_a_program_says_it_checks_counts_without_constraints() {
    let (_folder, program) = file("verifier.py", VERIFIER);
    let command = json!(["python3", "-B", shown(&program)]);
    let command = format!("agents.verifier.program.command={command}");
    let verifier = ["--set", "agents.verifier.implementation=process", "--set", command.as_str()];
    let problem = r#"{"statement": "What is it?"}"#;
    let with =
        |more: &[&str]| run_problem(problem, &json!(["41", "42"]), &[&verifier, more].concat());

    // Only its owner knows what a program checks, so nothing is promised.
    let result = with(&[]).json(1);
    assert_eq!((&result["assurance"], &result["answer"]), (&json!("unrefuted"), &json!("42")));
    assert_eq!(result["checked_kinds"], json!(["format", "invariant", "terminal"]));

    let result = with(&["--set", r#"agents.verifier.kinds=["format"]"#]).json(1);
    assert_eq!((&result["assurance"], &result["answer"]), (&json!("unrefuted"), &json!("42")));

    // Without a program nobody looks at anything but the form, and the result says so.
    let sets = replaying(&json!(["42"]));
    let sets: Vec<_> = sets.iter().map(String::as_str).collect();
    let text = done(&[&["run", "--problem", problem][..], &sets].concat()).stdout;
    assert!(
        text.contains("unchecked (rules: format): only the form of lines was checked"),
        "{text}"
    );
}

#[test]
fn one_turn_of_an_agent_is_tried_on_a_problem() {
    let tried = |role: &str, name: &str, more: &[&str]| {
        done(&[&["agents", "try", role, name, "--problem", &example()][..], more].concat())
    };
    let judged = tried("verifier", "rules", &["--action", "[8, 8, 5]"]);
    assert_eq!(judged.code, 0, "{}", judged.stderr);
    assert!(judged.stdout.contains("violations: different"), "{}", judged.stdout);

    let nothing = tried("verifier", "rules", &[]);
    assert_eq!(nothing.code, 1);
    assert!(nothing.stderr.contains("--action"), "{}", nothing.stderr);
}

#[test]
fn an_input_without_a_solution_is_refused() {
    let board = |n: usize| json!({"n": n, "order": (0..n).collect::<Vec<_>>()}).to_string();
    for n in [2, 3] {
        done(&["run", "n-queens", "--input", &board(n)]).refused(&["--input", "no solution"]);
    }
    for n in [1, 4] {
        let result = run(&[&["n-queens", "--input", &board(n)], &REFERENCE]).json(0);
        assert_eq!(result["verified"], true, "side {n}");
    }

    // A task may say it in its own words.
    let ones = r#"{"numbers": [1, 1, 1, 1], "target": 24}"#;
    done(&["run", "24-game", "--input", ones]).refused(&["cannot make 24"]);

    let daemon = Daemon::start(&[]);
    let input = json!({"n": 3, "order": [0, 1, 2]});
    let asked = json!({"task": "n-queens", "input": input});
    daemon.submit(&asked).refused(400, Some("input"), &["no solution"]);
}

#[test]
fn an_input_beyond_what_the_model_has_learnt_is_known_before_the_run() {
    let numbers = |count: i64| json!({"a": (0..count).rev().collect::<Vec<_>>()}).to_string();
    // The run ends at once: only what is said before it counts.
    let budget = ["--set", "run.budget.steps=1", "--set", "run.fanout=1"];
    let said = |count| {
        done(&[&["run", "bubble-sort", "--input", &numbers(count)][..], &budget].concat()).stderr
    };
    let note = "the length of `a` is 26, more than the model prime-tiny has learnt (25)";
    assert!(said(26).contains(note), "{}", said(26));
    assert!(!said(25).contains("has learnt"), "{}", said(25));
}

#[test]
fn an_instance_has_one_name_with_and_without_a_daemon() {
    let daemon = Daemon::start(&[]);
    let named = |base_seed: u64| {
        let asked = json!({"task": "bubble-sort", "index": 3, "base_seed": base_seed});
        let submitted = daemon.finished(&daemon.submitted(&asked))["instance"].clone();
        let seed = base_seed.to_string();
        let arguments = ["bubble-sort", "--index", "3", "--base-seed", &seed];
        let ran = run(&[&arguments, &REFERENCE]).json(0)["instance"].clone();
        assert_eq!(submitted, ran);
        ran
    };
    assert_eq!(named(42), "bubble-sort/easy/003");
    assert_eq!(named(7), "bubble-sort/easy/003@7");
}

#[test]
fn one_limit_holds_for_indices_everywhere() {
    let index = |index: &str| run(&[&["bubble-sort", "--index", index], &REFERENCE]);
    assert_eq!(index("999").json(0)["instance"], "bubble-sort/easy/999");
    index("1000").refused(&["1000", "0 to 999"]);

    let checked = |index: u32| {
        let line = json!({"id": format!("bubble-sort/easy/{index}"), "output": ""}).to_string();
        let (_folder, path) = file("outputs.jsonl", &line);
        done(&["bench", "check", shown(&path)])
    };
    assert_eq!(checked(999).code, 0);
    assert_eq!(checked(1_000).code, 1);
    assert!(checked(1_000).stderr.contains("not a number below 1000"));
}
