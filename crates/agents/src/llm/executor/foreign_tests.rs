//! Prompts for models that were not trained for this program, and how their answers are read.

use std::sync::Arc;

use futures::executor::block_on;

use super::*;
use crate::llm::fake_model::{FakeModel, LIMITS, advanced};
use crate::prompt::Shown;
use prime_protocol::{Decision, Verdict};
use prime_settings::{FeedbackName, ViewName};

const SAMPLING: Sampling = Sampling { temperature: 0.0, top_p: 1.0, seed: 1 };

fn propose(model: &Arc<FakeModel>, options: ExecutorOptions, trajectory: &Trajectory) -> Proposal {
    let asked: Arc<dyn Model> = model.clone();
    let executor = LlmExecutor::new(asked, &Templates::default(), options).unwrap();
    block_on(executor.propose(trajectory, SAMPLING)).unwrap()
}

/// The line of a free answer.
fn line(answer: &'static str) -> Box<str> {
    let model = FakeModel::saying(answer);
    let trajectory = advanced("tower-of-hanoi", 0);
    propose(&model, ExecutorOptions::step("big", 64), &trajectory).line.into()
}

#[test]
fn the_last_line_that_is_an_action_counts_whatever_is_around_or_after_it() {
    for answer in [
        "move 1 0 2",
        "I would move the smallest disk.\n**move 1 0 2**",
        "1. move 1 0 2.",
        "Action: move 1 0 2\n\nThis moves the smallest disk, which is always possible.",
        "</think>\n\nmove 1 0 2",
        "move 1 0 1\nNo, better:\n```\nmove 1 0 2\n```\nIt is done.",
        "\\boxed{move 1 0 2}",
    ] {
        assert_eq!(&*line(answer), "move 1 0 2", "{answer:?}");
    }
    // Where nothing is an action, the last line is judged.
    assert_eq!(&*line("First this.\nThen I am lost"), "Then I am lost");
}

fn asked(options: ExecutorOptions, trajectory: &Trajectory) -> (String, bool) {
    let model = FakeModel::saying("x");
    propose(&model, options, trajectory);
    let request = model.last();
    (request.grammar.expect("a grammar").to_string(), request.newline_ends)
}

fn held() -> ExecutorOptions {
    ExecutorOptions { grammar: true, ..ExecutorOptions::step("big", 64) }
}

#[test]
fn a_foreign_models_lines_end_and_its_numbers_are_bounded() {
    let trajectory = advanced("tower-of-hanoi", 0);
    let (grammar, newline_ends) = asked(held(), &trajectory);
    assert!(newline_ends);
    // Easy instances have numbers of one digit: 2 * 1 + 1 is rounded up to 4.
    assert!(grammar.contains("nat ::= \"0\" | [1-9] [0-9]{0,3}\n"), "{grammar}");

    let (own, newline_ends) = asked(ExecutorOptions::compact("llama", 8), &trajectory);
    assert!(!newline_ends && own.contains("[0-9]{0,15}"), "{own}");
}

#[test]
fn the_free_line_can_be_forbidden_and_bounded() {
    let mut trajectory = advanced("bubble-sort", 3);
    let with = |derive, derive_characters| ExecutorOptions { derive, derive_characters, ..held() };
    let never = asked(with(DeriveName::Never, 0), &trajectory).0;
    assert!(never.starts_with("root ::= action\n"), "{never}");
    let short = asked(with(DeriveName::Always, 80), &trajectory).0;
    assert!(short.starts_with("root ::= ([^\\n]{0,80} \"\\n\")? action\n"), "{short}");

    trajectory.settle("swap 0 5", false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    let once = asked(with(DeriveName::Once, 80), &trajectory).0;
    assert!(once.starts_with("root ::= action\n"), "{once}");
}

#[test]
fn choices_are_listed_always_or_never_as_configured() {
    let mut trajectory = advanced("24-game", 0);
    let with = |choices| ExecutorOptions { choices, ..held() };
    let choices = trajectory.machine.choices().expect("finite choices");
    let all = asked(with(ChoicesName::Always), &trajectory).0;
    for choice in &choices {
        assert!(all.contains(&format!("\"{choice}\"")), "{choice}: {all}");
    }

    trajectory.settle(&choices[0], false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    let left = asked(with(ChoicesName::Always), &trajectory).0;
    assert!(!left.contains(&format!("\"{}\"", choices[0])), "{left}");

    for line in ["nonsense", "more nonsense"] {
        trajectory.settle(line, false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    }
    let never = asked(with(ChoicesName::Never), &trajectory).0;
    assert!(!never.contains(&format!("\"{}\"", choices[1])), "{never}");
}

#[test]
fn thinking_is_no_part_of_a_step_and_is_asked_for_as_configured() {
    let model = FakeModel::new(|_| {
        Ok(Completion {
            text: "so\nmove 1 0 2".to_owned(),
            reasoning: "the smallest disk moves".to_owned(),
            ..Completion::default()
        })
    });
    let trajectory = advanced("tower-of-hanoi", 0);
    let thinking = prime_settings::Thinking::AtMost(600);
    let options = ExecutorOptions { thinking, ..ExecutorOptions::step("big", 64) };
    let proposal = propose(&model, options, &trajectory);
    let Proposal { line, derivation, reasoning, .. } = &proposal;
    assert_eq!(
        (line.as_str(), derivation.as_str(), reasoning.as_str()),
        ("move 1 0 2", "so", "the smallest disk moves")
    );
    let asked = model.last();
    assert_eq!((asked.thinking, asked.max_tokens), (thinking, 64), "they add up later");

    // Servers that know JSON Schema are told the form of a line, without groups that they lack.
    let form = asked.line_form.expect("a free answer has a form");
    assert!(form.starts_with("^(") && form.ends_with(")$") && !form.contains("(?"), "{form}");
    propose(&model, held(), &trajectory);
    assert_eq!(model.last().line_form, None, "the grammar says it");
}

#[test]
fn a_budget_for_thinking_is_a_part_of_what_the_run_has_left() {
    use prime_settings::Thinking::{AsModel, AtMost, Off};

    for (thinking, left, expected) in [
        (AtMost(600), None, (64, AtMost(600))),
        (AtMost(600), Some(1_000), (64, AtMost(600))),
        (AtMost(600), Some(100), (64, AtMost(36))),
        (AtMost(600), Some(64), (64, Off)),
        (AtMost(600), Some(9), (9, Off)),
        (AsModel, Some(9), (9, AsModel)),
    ] {
        let options = ExecutorOptions { thinking, ..ExecutorOptions::step("big", 64) };
        assert_eq!(shared(&options, left), expected, "{thinking:?}, {left:?}");
    }
}

#[test]
fn a_prompt_shows_examples_a_readable_state_and_what_is_wrong_with_a_line() {
    let mut trajectory = advanced("n-queens", 0);
    let verdict =
        Verdict { feedback: Some("format: of no use here".to_owned()), ..Verdict::default() };
    trajectory.settle("place 9 0", false, &verdict, Decision::Backtrack, &LIMITS);

    for template in ["executor/step.j2", "executor/complete.j2"] {
        let prompt = |shown| {
            let model = FakeModel::saying("x");
            let options = ExecutorOptions { template: template.to_owned(), shown, ..held() };
            propose(&model, options, &trajectory);
            model.last().prompt
        };

        let shown = Shown {
            examples: 1,
            view: ViewName::Readable,
            feedback: FeedbackName::Explained,
            ..Shown::default()
        };
        let helped = prompt(shown);
        for part in [
            "n: 6\norder: [0]=2 [1]=0 [2]=5 [3]=3 [4]=1 [5]=4\n",
            "queens: (empty)\nnext: 0\nbacktracks: 0\nlast: (empty)\n",
            "place 0 2\n",
            "<r> is 9, but here it can be 0",
        ] {
            assert!(helped.contains(part), "{part:?} is missing in\n{helped}");
        }
        assert!(!helped.contains("of no use") && !helped.contains("\n\n\n"), "{helped}");
        assert!(!helped.contains("{\""), "no JSON: {helped}");

        let plain = prompt(Shown::default());
        assert!(plain.contains("of no use here") && plain.contains("\"queens\":[]"), "{plain}");
        assert!(!plain.contains("order: ["), "no example: {plain}");

        let short = prompt(Shown { constraints: false, ..Shown::default() });
        assert!(!short.contains("CONSTRAINTS") && short.contains("place <r> <c>"), "{short}");
        assert_eq!(plain.contains("CONSTRAINTS"), template.contains("step"), "{plain}");

        let silent = prompt(Shown { feedback: FeedbackName::None, ..Shown::default() });
        assert!(silent.contains("place 9 0") && !silent.contains("of no use"), "{silent}");
    }
}

#[test]
fn what_stays_the_same_from_step_to_step_comes_first() {
    let first = {
        let model = FakeModel::saying("x");
        propose(&model, held(), &advanced("bubble-sort", 1));
        model.last().prompt
    };
    let second = {
        let model = FakeModel::saying("x");
        propose(&model, held(), &advanced("bubble-sort", 2));
        model.last().prompt
    };
    let common = first.bytes().zip(second.bytes()).take_while(|(one, two)| one == two).count();
    let task_and_input = first.find("STEPS SO FAR").expect("steps");
    assert!(common > task_and_input, "{common} of {}", first.len());
}
