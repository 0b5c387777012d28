//! Outputs as real models write them, with expectations that were written by hand. The judge must
//! extract these, and judge a right trace alike in every accepted spelling.

use prime_bench::judge::{Body, StageResult, judge_body, read_output};
use prime_bench::output::Found;
use prime_bench::output::line::{action_line, propose};
use prime_bench::tasks::{self, Difficulty, InstanceId, Kinds, Problem, pattern};
use proptest::prelude::*;
use serde::Deserialize;
use serde_json::{Value, json};
use std::sync::Arc;

const TRACE: [&str; 4] = ["1 248", "1 40", "6 8", "5 0"];

fn gcd() -> Arc<dyn Problem> {
    let task = tasks::find("gcd-euclidean").expect("a task");
    InstanceId::new(task, Difficulty::Easy, 0, 42).expect("an instance").problem()
}

fn answer() -> Value {
    json!({"gcd": 8, "x": 7, "y": -13})
}

/// The text that a row of a file stands for.
fn written(row: &str) -> String {
    let signs = [
        ("⏎", "\n"),
        ("␍", "\r"),
        ("⇥", "\t"),
        ("␀", "\0"),
        ("␂", "\u{feff}"),
        ("␠", "\u{a0}"),
        ("«T»", "1 248\n1 40\n6 8\n5 0"),
        ("«A»", r#"{"gcd":8,"x":7,"y":-13}"#),
        ("«W»", r#"{"gcd":4,"x":7,"y":-13}"#),
    ];
    signs.iter().fold(row.to_owned(), |text, (sign, meant)| text.replace(sign, meant))
}

#[derive(Deserialize)]
struct Texts {
    outputs: Vec<[String; 4]>,
}

#[derive(Deserialize)]
struct Lines {
    lines: Vec<[String; 3]>,
}

fn trace_in(text: &str, problem: &dyn Problem) -> &'static str {
    match read_output(text, problem.spec()).actions {
        Found::Absent => "none",
        Found::Unreadable(_) => "unreadable",
        Found::Read(list) if list.iter().eq(TRACE) => "right",
        Found::Read(_) => "wrong",
    }
}

fn answer_in(text: &str, problem: &dyn Problem) -> &'static str {
    match read_output(text, problem.spec()).answer {
        Found::Absent => "none",
        Found::Unreadable(_) => "unreadable",
        Found::Read(answer) if problem.accepts(&answer) => "right",
        Found::Read(_) => "wrong",
    }
}

#[test]
fn outputs_say_what_a_reader_takes_them_to_say() {
    let problem = gcd();
    let texts: Texts = toml::from_str(include_str!("outputs/texts.toml")).expect("TOML");
    assert!(texts.outputs.len() >= 150, "{}", texts.outputs.len());

    let mut wrong = Vec::new();
    for [name, row, trace, answer] in &texts.outputs {
        let text = written(row);
        let found = (trace_in(&text, problem.as_ref()), answer_in(&text, problem.as_ref()));
        if found != (trace, answer) {
            wrong.push(format!("{name}: {found:?}, not {:?}", (trace, answer)));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// An answer that cannot be read is not replaced by that of the trace; an absent one is.
#[test]
fn stages_follow_from_what_was_found() {
    let problem = gcd();
    let texts: Texts = toml::from_str(include_str!("outputs/texts.toml")).expect("TOML");

    for [name, row, trace, answer] in &texts.outputs {
        let body = Body::Text(written(row));
        let judged =
            judge_body(problem.as_ref(), String::new(), Difficulty::Easy, &body, Kinds::ALL);

        // A wrong trace may still reach its end, and hold an answer there.
        if answer != "none" || trace != "wrong" {
            let is_right = answer == "right" || (answer == "none" && trace == "right");
            assert_eq!(judged.correct(), is_right, "{name}");
        }
        if answer == "unreadable" {
            let stages = (judged.format, judged.syntax, judged.result);
            let wanted = (StageResult::Passed, StageResult::Failed, StageResult::Failed);
            assert_eq!(stages, wanted, "{name}");
        }
        if trace == "none" {
            assert_eq!(judged.semantic, StageResult::NotJudged, "{name}");
        }
    }
}

#[test]
fn lines_say_one_action_or_none() {
    let lines: Lines = toml::from_str(include_str!("outputs/lines.toml")).expect("TOML");
    assert!(lines.lines.len() >= 80, "{}", lines.lines.len());

    let forms = |slug| tasks::find(slug).expect("a task").spec().actions;
    let mut wrong = Vec::new();
    for [name, row, wanted] in &lines.lines {
        let forms = forms(if row.contains("248") || row.contains("1⇥") {
            "gcd-euclidean"
        } else {
            "tower-of-hanoi"
        });
        let line = written(row);
        let (said, is_action) = action_line(&line, |line| pattern::parse(forms, line).is_some());
        if is_action == wanted.is_empty() || (is_action && said != wanted.as_str()) {
            wrong.push(format!("{name}: {said:?} {is_action}, not {wanted:?}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A line that is an action as it stands is left alone, however it looks.
#[test]
fn actions_that_look_decorated_are_taken_unchanged() {
    for (slug, line) in [
        ("assembly-line", "- scrap"),
        ("resolution-proof", "res 3 7 -2 5"),
        ("lambda-reduction", "(L 0)"),
    ] {
        let forms = tasks::find(slug).expect("a task").spec().actions;
        let said = action_line(line, |line| pattern::parse(forms, line).is_some());
        assert_eq!((&*said.0, said.1), (line, true));
    }
}

/// Spellings around an action, from the inside outwards.
fn spelt(action: &str, layers: &[usize]) -> String {
    const SPELLINGS: [(&str, &str); 14] = [
        ("**", "**"),
        ("`", "`"),
        ("\"", "\""),
        ("1. ", ""),
        ("- ", ""),
        ("> ", ""),
        ("Action: ", ""),
        ("Step 3: ", ""),
        ("", "."),
        ("\\boxed{", "}"),
        ("\\text{", "}"),
        ("$", "$"),
        (" ", "\r"),
        ("\u{feff}", "\0"),
    ];
    layers.iter().fold(action.to_owned(), |line, layer| {
        let (before, after) = SPELLINGS[layer % SPELLINGS.len()];
        format!("{before}{line}{after}")
    })
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Each line of a right trace is carried out as it is, in any spelling, so that the inputs of
    /// rewards (steps, refusals, violations) do not differ.
    #[test]
    fn every_spelling_of_a_right_trace_is_that_trace(
        layers in prop::collection::vec(prop::collection::vec(0_usize..14, 0..5), 40),
        place in 0..tasks::all().count(),
        index in 0_u32..5,
    ) {
        let task = tasks::all().nth(place).expect("a place in the list");
        let problem = InstanceId::new(task, Difficulty::Easy, index, 7).expect("one").problem();
        let forms = problem.spec().actions;

        let (mut clean, mut spelling) = (problem.start(), problem.start());
        for layers in &layers {
            let Some(line) = clean.reference() else { break };
            let spelt = spelt(&line, layers);
            // A spelling can itself be an action of the task (`- 4`), and is then taken as it
            // stands.
            let is_action = |form: String| pattern::parse(forms, form.trim()).is_some();
            let mut inner = (0..layers.len()).map(|count| self::spelt(&line, &layers[..=count]));
            if inner.any(is_action) || (0..12).any(|layer| is_action(self::spelt(&line, &[layer]))) {
                clean.follow_reference();
                spelling.follow_reference();
                continue;
            }

            let (said, proposed) = propose(spelling.as_mut(), &spelt);
            prop_assert!(proposed.is_ok(), "{spelt:?} of {line:?}: {proposed:?}");
            prop_assert_eq!(&*said, line.as_str());
            prop_assert!(spelling.violations(Kinds::ALL).is_empty(), "{spelt:?}");

            spelling.commit();
            clean.follow_reference();
            prop_assert_eq!(clean.state(), spelling.state());
        }
    }
}

#[test]
fn the_expected_answer_is_the_task_s_own() {
    assert!(gcd().accepts(&answer()));
}
