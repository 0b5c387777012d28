use std::collections::BTreeMap;

use futures::executor::block_on;
use serde_json::json;

use super::*;
use crate::Failure;
use crate::llm::fake_model::{FakeModel, LIMITS, USAGE, advanced, completion, started};
use crate::model::Completion;
use crate::prompt::History;
use prime_bench::tasks::{self, Difficulty};
use prime_problems::Custom;
use prime_protocol::{Decision, Score, Verdict};
use prime_settings::DeriveName;

const SAMPLING: Sampling = Sampling { temperature: 0.7, top_p: 0.9, seed: 11 };

fn executor(model: &Arc<FakeModel>, options: ExecutorOptions) -> LlmExecutor {
    let model: Arc<dyn Model> = model.clone();
    LlmExecutor::new(model, &Templates::default(), options).expect("built-in templates")
}

fn propose(model: &Arc<FakeModel>, options: ExecutorOptions, trajectory: &Trajectory) -> Proposal {
    block_on(executor(model, options).propose(trajectory, SAMPLING)).expect("a proposal")
}

#[test]
fn the_compact_executor_prompts_as_in_training() {
    let trajectory = advanced("tower-of-hanoi", 2);
    let model = FakeModel::new(|_| {
        Ok(Completion {
            tokens: vec![4, 5],
            logprobs: vec![-0.1, -0.2],
            source: Some("a".into()),
            ..completion("12 so 3\nmove 1 0 2")
        })
    });

    let proposal = propose(&model, ExecutorOptions::compact("llama", 64), &trajectory);
    let expected = Proposal {
        line: "move 1 0 2".to_owned(),
        derivation: "12 so 3".to_owned(),
        reasoning: String::new(),
        usage: USAGE,
        tokens: vec![4, 5],
        logprobs: vec![-0.1, -0.2],
        source: Some("a".into()),
        is_exhausted: false,
        unfinished: None,
    };
    assert_eq!(proposal, expected);

    assert!(model.last().excluded.is_empty());
    let request = model.last();
    assert_eq!(
        request.prompt,
        format!("tower-of-hanoi {}\n", prime_lessons::view(trajectory.machine.as_ref()))
    );
    assert_eq!(
        request.prompt,
        prime_lessons::compact(trajectory.machine.as_ref()),
        "what training uses"
    );
    assert_eq!(
        (request.system, request.sampling, request.max_tokens, request.logprobs),
        (None, SAMPLING, 64, true)
    );
    assert_eq!(
        request.grammar.as_deref(),
        Some(prompt::grammar(trajectory.machine.spec(), FreeLine::Allowed, None).as_str())
    );
}

#[test]
fn affinity_is_per_instance() {
    let model = FakeModel::saying("x");
    let mut seen = Vec::new();
    for trajectory in
        [advanced("bubble-sort", 0), advanced("bubble-sort", 3), advanced("selection-sort", 0)]
    {
        propose(&model, ExecutorOptions::compact("llama", 8), &trajectory);
        seen.push(model.last().affinity);
    }
    assert_eq!(seen[0], seen[1]);
    assert_ne!(seen[0], seen[2]);
}

#[test]
fn a_free_answer_has_its_action_in_the_last_line() {
    let trajectory = advanced("bubble-sort", 0);
    for (text, line, derivation) in [
        ("swap 0 1", "swap 0 1", ""),
        ("I compare.\n\nThen:\n`cmp 0 1`\n\n", "cmp 0 1", "I compare.\n\nThen:"),
        ("```\ncmp 0 1\n```\n", "cmp 0 1", "```"),
        ("  cmp 0 1  \r\n", "cmp 0 1", ""),
        ("", "", ""),
        (" \n ``` \n", "", "\n ```"),
        ("größer als 1 🙂", "größer als 1 🙂", ""),
        ("cmp 0 1\nAction: cmp 0 1.", "cmp 0 1", "cmp 0 1"),
        ("I compare.\n**cmp 0 1**", "cmp 0 1", "I compare."),
        ("1. cmp  0 1", "cmp 0 1", ""),
    ] {
        let model = FakeModel::saying(text);
        let proposal = propose(&model, ExecutorOptions::step("big", 100), &trajectory);
        assert_eq!(proposal.line, line, "{text:?}");
        assert_eq!(proposal.derivation.trim(), derivation.trim(), "{text:?}");
        assert_eq!(model.last().grammar, None);
    }
}

#[test]
fn a_grammar_constrained_answer_is_taken_verbatim() {
    let options = ExecutorOptions { grammar: true, ..ExecutorOptions::step("big", 100) };
    let model = FakeModel::saying("1 is less\ncmp 0 1 ");
    let proposal = propose(&model, options, &advanced("bubble-sort", 0));
    assert_eq!((proposal.line.as_str(), proposal.derivation.as_str()), ("cmp 0 1 ", "1 is less"));
    assert!(model.last().prompt.contains("reason in one line before it"));
}

#[test]
fn the_step_prompt_has_the_task_and_the_feedback() {
    let mut trajectory = advanced("bubble-sort", 3);
    let model = FakeModel::saying("x");
    propose(&model, ExecutorOptions::step("big", 100), &trajectory);
    let fresh = model.last().prompt;
    assert!(!fresh.contains("REJECTED") && !fresh.contains("WAS WRONG"), "{fresh}");

    let verdict = Verdict {
        score: Score::from_tenths(6),
        feedback: Some("no neighbours".into()),
        ..Verdict::default()
    };
    trajectory.settle("swap 0 5", true, &verdict, Decision::Backtrack, &LIMITS);
    propose(&model, ExecutorOptions::step("big", 100), &trajectory);

    let prompt = model.last().prompt;
    let spec = trajectory.machine.spec();
    let input = trajectory.machine.problem().input().to_string();
    let state = trajectory.machine.state().to_string();
    let lines: Vec<String> = trajectory.stack.lines().map(str::to_owned).collect();
    let steps = format!("STEPS SO FAR:\n1. {}\n2. {}\n3. {}\n", lines[0], lines[1], lines[2]);

    let mut at = 0;
    for part in [
        spec.title,
        spec.page.algorithm.trim(),
        spec.page.step,
        spec.page.actions[0].line,
        spec.constraints[1].meaning,
        "The last line is the action",
        &input,
        &steps,
        &format!("AFTER 3 STEPS:\n{state}"),
        "- swap 0 5: no neighbours\n",
        "WRONG: no neighbours",
        "\n\nNEXT STEP:\n",
    ] {
        at += prompt[at..]
            .find(part)
            .unwrap_or_else(|| panic!("{part:?} is missing after {at} in:\n{prompt}"));
    }
    assert!(!prompt.contains("\n\n\n"), "{prompt}");
}

#[test]
fn history_has_the_configured_length() {
    let trajectory = advanced("bubble-sort", 5);
    for (history, shown, offset) in [
        (History::None, 0, None),
        (History::Window(2), 2, Some(3)),
        (History::Window(5), 5, None),
        (History::Window(9), 5, None),
        (History::Window(0), 0, None),
        (History::Full, 5, None),
    ] {
        let model = FakeModel::saying("x");
        propose(
            &model,
            ExecutorOptions { history, ..ExecutorOptions::step("big", 9) },
            &trajectory,
        );

        let prompt = model.last().prompt;
        let lines: Vec<_> = trajectory.stack.lines().collect();
        for (place, line) in lines.iter().enumerate() {
            let is_shown = prompt.contains(&format!("\n{}. {line}\n", place + 1));
            assert_eq!(is_shown, place + shown >= lines.len(), "{history:?}: {place} in\n{prompt}");
        }
        assert_eq!(prompt.contains("left out"), offset.is_some(), "{history:?}");
        assert!(offset.is_none_or(|offset: usize| {
            prompt.contains(&format!("(the first {offset} left out)"))
        }));
    }
}

#[test]
fn hidden_fields_stay_hidden() {
    let model = FakeModel::saying("go N");
    propose(&model, ExecutorOptions::step("big", 9), &advanced("blind-maze", 2));
    let prompt = model.last().prompt;
    assert!(!prompt.contains("passages\"") && prompt.contains("\"goal\""), "{prompt}");
}

#[test]
fn a_clients_problem_is_shown_with_the_feedback() {
    let definition = json!({"statement": "Find a factor of 15.", "steps": "stepwise"});
    let problem = Custom::read(&definition).expect("a problem").problem();
    let mut trajectory = started(problem.as_ref());
    let machine = trajectory.machine.as_ref();
    assert_eq!(prime_lessons::view(machine), machine.view(), "there is no lesson");
    assert_eq!(prime_lessons::derivation(machine), None);

    let verdict = Verdict {
        score: Score::from_tenths(6),
        feedback: Some("too vague".into()),
        ..Verdict::default()
    };
    trajectory.settle("hm", true, &verdict, Decision::Backtrack, &LIMITS);

    let model = FakeModel::saying("answer: 3");
    let proposal = propose(&model, ExecutorOptions::step("big", 9), &trajectory);
    assert_eq!(proposal.line, "answer: 3");
    let prompt = model.last().prompt;
    assert!(prompt.starts_with("Find a factor of 15.\n"), "{prompt}");
    assert!(
        prompt.contains("- hm: too vague\n") && prompt.contains("WRONG: too vague"),
        "{prompt}"
    );
    assert!(!prompt.contains("TASK:") && !prompt.contains("\n\n\n"), "{prompt}");
}

#[test]
fn sampling_system_prompt_and_variables_can_be_overridden() {
    let texts = [
        ("system.j2", "You are {{ variables.who }}."),
        ("mine.j2", "{{ variables.who }}: {{ task.title }}"),
    ];
    let templates = Templates::with(texts.map(|(name, text)| (name.to_owned(), text.to_owned())))
        .expect("templates");

    let model = FakeModel::saying("x");

    let options = ExecutorOptions {
        template: "mine.j2".to_owned(),
        system: Some("system.j2".to_owned()),
        temperature: Some(0.0),
        top_p: Some(0.5),
        variables: BTreeMap::from([("who".to_owned(), "a clerk".to_owned())]),
        ..ExecutorOptions::step("big", 9)
    };
    let asked = LlmExecutor::new(model.clone(), &templates, options).expect("templates");
    block_on(asked.propose(&advanced("bubble-sort", 0), SAMPLING)).expect("a proposal");

    let request = model.last();
    assert_eq!(
        (request.system.as_deref(), request.prompt.as_str()),
        (Some("You are a clerk."), "a clerk: Bubble Sort")
    );
    assert_eq!(request.sampling, Sampling { temperature: 0.0, top_p: 0.5, seed: 11 });
}

#[test]
fn failures_carry_the_executors_name() {
    let model = FakeModel::new(|_| Err(AgentError::new("model", Failure::Overloaded, "busy")));
    let executor = executor(&model, ExecutorOptions::step("big", 9));
    let error =
        block_on(executor.propose(&advanced("bubble-sort", 0), SAMPLING)).expect_err("busy");
    assert_eq!(error, AgentError::new("executor `big`", Failure::Overloaded, "busy"));

    let texts = [("mine.j2".to_owned(), "\n{{ task.colour }}".to_owned())];
    let templates = Templates::with(texts).expect("templates");
    let options =
        ExecutorOptions { template: "mine.j2".to_owned(), ..ExecutorOptions::step("big", 9) };
    let coloured = LlmExecutor::new(model, &templates, options).expect("its variables exist");

    let error = block_on(coloured.propose(&advanced("bubble-sort", 0), SAMPLING))
        .expect_err("no such field");
    assert_eq!((error.failure, error.is_transient), (Failure::Unsupported, false));
    assert!(
        error.reason.contains("template `mine.j2`, line 2: there is no `task.colour`"),
        "{error}"
    );
}

#[test]
fn every_task_has_a_step_prompt() {
    let model = FakeModel::saying("x");
    let executor = executor(&model, ExecutorOptions::step("big", 9));
    for task in tasks::all().chain(tasks::variants()) {
        let trajectory = started(task.generate(Difficulty::Easy, 3).as_ref());
        block_on(executor.propose(&trajectory, SAMPLING)).expect("a proposal");

        let prompt = model.last().prompt;
        assert!(prompt.contains(task.spec().title) && !prompt.contains("\n\n\n"), "{prompt}");
    }
}

#[test]
fn lines_rejected_at_the_state_are_excluded_where_a_grammar_holds() {
    let mut trajectory = advanced("bubble-sort", 3);
    let model = FakeModel::saying("x");
    for line in ["swap 0 5", "cmp 9 9", "swap 0 5"] {
        trajectory.settle(line, false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    }

    propose(&model, ExecutorOptions::compact("llama", 8), &trajectory);
    assert_eq!(model.last().excluded, ["swap 0 5".into(), "cmp 9 9".into()]);
    assert_eq!(model.last().excluded_prefixes, ["cmp 9 9".into(), "swap 0 5".into()]);

    propose(&model, ExecutorOptions::step("big", 8), &trajectory);
    assert!(model.last().excluded.is_empty(), "without a grammar the prompt says it");

    // At the next state nothing is rejected yet.
    propose(&model, ExecutorOptions::compact("llama", 8), &advanced("bubble-sort", 4));
    assert!(model.last().excluded.is_empty());
}

#[test]
fn exclusion_and_derivations_after_a_rejection_can_be_turned_off() {
    let mut trajectory = advanced("bubble-sort", 3);
    let model = FakeModel::saying("x");

    let grammar = |options: ExecutorOptions, trajectory: &Trajectory| {
        propose(&model, options, trajectory);
        model.last().grammar.expect("a grammar")
    };

    let bare =
        || ExecutorOptions { derive: DeriveName::Once, ..ExecutorOptions::compact("llama", 8) };

    assert!(
        !grammar(bare(), &trajectory).starts_with("root ::= action"),
        "nothing is rejected yet"
    );

    trajectory.settle("swap 0 5", false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    assert!(grammar(bare(), &trajectory).starts_with("root ::= action"));

    let all = ExecutorOptions { exclude_rejected: false, ..ExecutorOptions::compact("llama", 8) };
    assert!(!grammar(all, &trajectory).starts_with("root ::= action"));
    assert!(model.last().excluded.is_empty() && model.last().excluded_prefixes.is_empty());
}

#[test]
fn where_choices_are_finite_a_model_that_misses_them_is_given_the_list() {
    let mut trajectory = advanced("24-game", 0);
    let choices = trajectory.machine.choices().expect("finite");
    let model = FakeModel::saying("x");
    let grammar = |trajectory: &Trajectory| {
        propose(&model, ExecutorOptions::compact("llama", 8), trajectory);
        model.last().grammar.expect("a grammar")
    };

    let forms = grammar(&trajectory);
    for line in ["calc 0 + 0", choices[0].as_str()] {
        trajectory.settle(line, false, &Verdict::default(), Decision::Backtrack, &LIMITS);
        assert_eq!(grammar(&trajectory), forms, "one miss is not a habit, and a choice is none");
    }

    trajectory.settle("calc 0 + 77", false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    let listed = grammar(&trajectory);
    let contains = |choice: &String| listed.contains(&format!("\"{choice}\""));
    assert!(
        choices[1..].iter().all(contains) && !contains(&choices[0]) && !listed.contains("nat"),
        "{listed}"
    );
    assert!(listed.starts_with("root ::= ([^\\n]*"), "it may derive still");

    // Where the choices are not known, the forms remain.
    let mut other = advanced("bubble-sort", 3);
    for line in ["cmp 9 9", "swap 9 9", "swap 8 8"] {
        other.settle(line, false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    }
    assert!(grammar(&other).contains("nat"));
}

#[test]
fn a_repeated_rejected_line_raises_the_temperature() {
    let mut trajectory = advanced("bubble-sort", 0);
    let model = FakeModel::saying("x");

    let options = |temperature| ExecutorOptions {
        temperature: Some(temperature),
        ..ExecutorOptions::step("big", 9)
    };
    let temperature = |trajectory: &Trajectory, base| {
        propose(&model, options(base), trajectory);
        model.last().sampling.temperature
    };
    let reject = |trajectory: &mut Trajectory, line, decision| {
        let limits = prime_protocol::Limits { attempts_max: 1000, ..LIMITS };
        trajectory.settle(line, false, &Verdict::default(), decision, &limits);
    };

    reject(&mut trajectory, "a", Decision::Backtrack);
    reject(&mut trajectory, "b", Decision::Backtrack);
    reject(&mut trajectory, "c", Decision::Retry);
    assert!(temperature(&trajectory, 0.0) < 1e-6, "different lines are not a repetition");

    reject(&mut trajectory, "a", Decision::Backtrack);
    assert!((temperature(&trajectory, 0.0) - 0.2).abs() < 1e-6);
    assert!((temperature(&trajectory, 0.4) - 0.6).abs() < 1e-6);

    (0..300).for_each(|_| reject(&mut trajectory, "a", Decision::Backtrack));
    assert!((temperature(&trajectory, 0.0) - 1.0).abs() < 1e-6, "it has a bound");
    assert!((temperature(&trajectory, 1.5) - 1.5).abs() < 1e-6, "it is never lowered");
}

#[test]
fn what_resembles_rejected_lines_is_tried_last() {
    let mut trajectory = advanced("bubble-sort", 0);
    trajectory.settle("cmp 4 5", false, &Verdict::default(), Decision::Backtrack, &LIMITS);

    // Nothing is left without the prefixes; then they are permitted.
    let model = FakeModel::new(|request| {
        let is_exhausted = !request.excluded_prefixes.is_empty();
        Ok(Completion { is_exhausted, ..completion(if is_exhausted { "" } else { "cmp 4 56" }) })
    });

    let proposal = propose(&model, ExecutorOptions::compact("llama", 8), &trajectory);
    assert_eq!((proposal.line.as_str(), proposal.is_exhausted), ("cmp 4 56", false));
    assert_eq!(proposal.usage.total(), 2 * USAGE.total(), "both requests are counted");
}

#[test]
fn trajectories_take_prompt_variants_in_turn() {
    let texts = ["a", "b"].map(|name| (format!("{name}.j2"), name.to_owned()));
    let templates = Templates::with(texts).expect("templates");
    let options = ExecutorOptions {
        template: "a.j2".to_owned(),
        variants: vec!["b.j2".to_owned()],
        ..ExecutorOptions::compact("llama", 8)
    };

    let model = FakeModel::saying("x");
    let shared: Arc<dyn Model> = model.clone();
    let executor = LlmExecutor::new(shared, &templates, options).expect("templates");

    let mut trajectory = advanced("bubble-sort", 0);
    let prompts = [0, 1, 2, 3].map(|index| {
        trajectory.index = index;
        block_on(executor.propose(&trajectory, SAMPLING)).expect("a proposal");
        model.last().prompt
    });
    assert_eq!(prompts, ["a", "b", "a", "b"]);
}

#[test]
fn a_grammar_with_nothing_left_is_a_proposal_that_says_so() {
    let model = FakeModel::new(|_| Ok(Completion { is_exhausted: true, ..completion("") }));
    let proposal =
        propose(&model, ExecutorOptions::compact("llama", 8), &advanced("bubble-sort", 0));
    assert_eq!(proposal, Proposal { usage: USAGE, is_exhausted: true, ..Proposal::default() });
}

#[test]
fn a_text_that_was_cut_off_says_so() {
    let model = FakeModel::new(|_| Ok(Completion { is_truncated: true, ..completion("12 so") }));
    let proposal =
        propose(&model, ExecutorOptions::compact("llama", 8), &advanced("tower-of-hanoi", 2));
    let reason = proposal.unfinished.expect("a reason");
    assert!(reason.starts_with(&format!("cut off after {} tokens", USAGE.completion)), "{reason}");
    assert!(reason.contains("max_tokens"), "what to raise: {reason}");
}
