use futures::executor::block_on;
use serde_json::{Value, json};

use super::*;
use crate::llm::fake_model::{FakeModel, USAGE, advanced, completion, started};
use prime_bench::prompts;
use prime_bench::tasks::Severity;
use prime_problems::Custom;

/// A task; what the verifiers here look at is the same for all.
fn task() -> &'static Spec {
    prime_bench::tasks::find("bubble-sort").expect("listed").spec()
}

fn verifier(model: &Arc<FakeModel>, options: VerifierOptions) -> LlmVerifier {
    let model: Arc<dyn Model> = model.clone();
    LlmVerifier::new(model, &Templates::default(), options).expect("built-in templates")
}

fn judge(
    model: &Arc<FakeModel>,
    options: VerifierOptions,
    mut trajectory: Trajectory,
    line: &str,
) -> Result<Verdict, AgentError> {
    // A rejected line leaves no candidate; verifiers must handle that.
    let _ = trajectory.machine.propose(line);
    block_on(verifier(model, options).judge(&trajectory, line))
}

/// A report on bubble sort's constraints in which the given ones fail.
fn report(failed: &[usize], score: &str) -> String {
    let count = advanced("bubble-sort", 0).machine.spec().constraints.len() - 1;
    let line = |n| {
        format!(
            "Constraint {n}: {} - reason {n}\n",
            if failed.contains(&n) { "FAIL" } else { "PASS" }
        )
    };
    let overall = if failed.is_empty() { "VALID" } else { "INVALID" };
    (1..=count).map(line).collect::<String>()
        + &format!("Overall: {overall}\nViolation Score: {score}")
}

#[test]
fn a_report_becomes_a_verdict() {
    let trajectory = advanced("bubble-sort", 1);
    let constraints = trajectory.machine.spec().constraints;
    let line = trajectory.machine.reference().expect("a next step");
    let prompt = prompts::verifier(trajectory.machine.as_ref(), &line).expect("legal");

    let text = report(&[1, 3], "0.7");
    let model = FakeModel::new(move |_| Ok(completion(&text)));

    let verdict =
        judge(&model, VerifierOptions::report("judge", 500), trajectory, &line).expect("a verdict");
    assert_eq!(verdict.score, Score::from_value(0.7).expect("a score"));
    assert_eq!(verdict.violations, [constraints[1].name, constraints[3].name]);
    let feedback = format!("{}: reason 1; {}: reason 3", constraints[1].name, constraints[3].name);
    assert_eq!((verdict.feedback, verdict.usage, verdict.logprob), (Some(feedback), USAGE, None));

    let request = model.last();
    assert_eq!(request.prompt, prompt, "the paper's prompt, as `bench prompt` prints it");
    assert_eq!(request.grammar.as_deref(), Some(report_grammar(constraints.len() - 1).as_str()));
    assert_eq!(
        (request.sampling.temperature, request.max_tokens, request.logprobs),
        (0.0, 500, false)
    );
}

#[test]
fn a_clean_report_is_a_clean_verdict() {
    let text = report(&[], "0.0");
    let model = FakeModel::new(move |_| Ok(completion(&text)));
    let free = VerifierOptions {
        format: VerdictFormat::Report { grammar: false, max_tokens: 9 },
        ..VerifierOptions::report("judge", 9)
    };

    let verdict = judge(&model, free, advanced("bubble-sort", 0), "cmp 0 1").expect("a verdict");
    assert_eq!(verdict, Verdict { usage: USAGE, ..Verdict::default() });
    assert_eq!(model.last().grammar, None);
}

#[test]
fn invalid_reports_are_malformed() {
    for (text, is_truncated, failure, part) in [
        (String::new(), false, Failure::Malformed, "ends before constraint 1"),
        (report(&[], "0.0")[..60].to_owned(), true, Failure::TooLong, "truncated after 500 tokens"),
        (report(&[], "0.0").to_lowercase(), false, Failure::Malformed, "should begin with"),
        (report(&[], "0.4"), false, Failure::Malformed, "VALID, but the violation score is 0.4"),
        (report(&[2], "0.0"), false, Failure::Malformed, "INVALID, but the violation score is 0"),
        ("é".repeat(9_000), false, Failure::Malformed, "should begin with"),
    ] {
        let said = text.clone();
        let model = FakeModel::new(move |_| Ok(Completion { is_truncated, ..completion(&said) }));

        let error = judge(
            &model,
            VerifierOptions::report("judge", 500),
            advanced("bubble-sort", 0),
            "cmp 0 1",
        )
        .expect_err(&text);
        assert_eq!((error.failure, error.agent.as_str()), (failure, "verifier `judge`"), "{error}");
        assert!(error.reason.contains(part), "{part:?} is missing in {error}");
    }

    // A report truncated after its last required line is complete.
    let whole = report(&[], "0.0");
    let model =
        FakeModel::new(move |_| Ok(Completion { is_truncated: true, ..completion(&whole) }));
    assert!(
        judge(&model, VerifierOptions::report("judge", 500), advanced("bubble-sort", 0), "cmp 0 1")
            .is_ok()
    );
}

#[test]
fn a_rejected_line_is_judged_without_the_model() {
    let model = FakeModel::saying("1");
    for options in [VerifierOptions::report("judge", 500), VerifierOptions::token("judge", None)] {
        for line in ["nonsense", "cmp 0 99", ""] {
            let verdict = judge(&model, options.clone(), advanced("bubble-sort", 0), line)
                .expect("a verdict");
            assert_eq!(
                (verdict.score, verdict.violations),
                (Score::from_tenths(10), vec!["format".into()]),
                "{line:?}"
            );
            assert_eq!(verdict.usage.total(), 0);
        }
    }
    assert_eq!(model.count(), 0);
}

#[test]
fn a_model_is_asked_about_the_configured_kinds() {
    let model = FakeModel::saying("Constraint 1: PASS - x\nOverall: VALID\nViolation Score: 0");
    let kinds = Kinds::from_iter([Kind::Transition]);
    let options = VerifierOptions { kinds: kinds.into(), ..VerifierOptions::report("judge", 9) };
    assert_eq!(
        verifier(&model, options.clone()).basis(task()),
        Basis::model(Method::Report),
        "asked about is not checked"
    );
    judge(&model, options, advanced("bubble-sort", 0), "cmp 0 1").expect("one constraint");

    let prompt = model.last().prompt;
    assert!(prompt.contains("1. next-step (") && !prompt.contains("\n2. "), "{prompt}");
}

#[test]
fn a_token_is_the_verdict_and_its_probability_the_confidence() {
    let ln = |p: f32| p.ln();
    let trajectory = || advanced("bubble-sort", 0);
    for (text, logprob, least, score, is_told) in [
        ("1", ln(0.6), None, 0, false),
        ("1", ln(0.95), Some(0.9), 0, false),
        ("1", 0.0, Some(1.0), 0, false),
        ("1", ln(0.6), Some(0.9), 2, true),
        ("0", ln(0.6), Some(0.9), 10, true),
        ("0", ln(0.99), None, 10, true),
        (" 1\n", ln(0.99), None, 0, false),
    ] {
        let model = FakeModel::new(move |_| {
            Ok(Completion { logprobs: vec![logprob], is_truncated: true, ..completion(text) })
        });

        let verdict =
            judge(&model, VerifierOptions::token("judge", least), trajectory(), "cmp 0 1")
                .expect("a verdict");
        assert_eq!(verdict.score, Score::from_tenths(score), "{text:?} {logprob} {least:?}");
        assert_eq!(
            (verdict.feedback.is_some(), verdict.logprob),
            (is_told, Some(logprob)),
            "{text:?} {logprob}"
        );
        assert_eq!((verdict.violations.len(), verdict.usage), (0, USAGE));

        let request = model.last();
        assert_eq!(
            request.prompt,
            format!(
                "check bubble-sort {}\ncmp 0 1\n",
                prime_lessons::view(trajectory().machine.as_ref())
            )
        );
        assert_eq!(
            (request.grammar.as_deref(), request.max_tokens, request.logprobs),
            (Some("root ::= [01]"), 1, true)
        );
    }
}

#[test]
fn the_token_prompt_is_the_one_used_in_training() {
    for task in ["bubble-sort", "tower-of-hanoi", "n-queens"] {
        let trajectory = advanced(task, 2);
        let line = trajectory.machine.reference().expect("a step");
        let trained = prime_lessons::token_check(trajectory.machine.as_ref(), &line);
        assert_eq!(
            trained,
            format!("check {task} {}\n{line}\n", prime_lessons::view(trajectory.machine.as_ref()))
        );

        let model = FakeModel::saying("1");
        judge(&model, VerifierOptions::token("judge", None), trajectory, &line).expect("a verdict");

        let request = model.last();
        assert_eq!((request.system, request.prompt), (None, trained), "{task}");
    }
}

#[test]
fn invalid_tokens_and_missing_probabilities_are_errors() {
    for (text, least, failure, part) in [
        ("", None, Failure::Malformed, "neither `0` nor `1`"),
        ("2", None, Failure::Malformed, "neither `0` nor `1`"),
        ("10", Some(0.5), Failure::Malformed, "neither `0` nor `1`"),
        ("yes", None, Failure::Malformed, "\"yes\""),
        ("１", None, Failure::Malformed, "neither `0` nor `1`"),
        ("1", Some(0.5), Failure::Unsupported, "remove `confidence_min`"),
    ] {
        let model = FakeModel::saying(text);

        let error = judge(
            &model,
            VerifierOptions::token("judge", least),
            advanced("bubble-sort", 0),
            "cmp 0 1",
        )
        .expect_err(text);
        assert_eq!(error.failure, failure, "{error}");
        assert!(error.reason.contains(part), "{error}");
    }

    let model = FakeModel::saying("1");
    let verdict =
        judge(&model, VerifierOptions::token("judge", None), advanced("bubble-sort", 0), "cmp 0 1");
    assert_eq!(verdict.expect("no probability is needed").logprob, None);
}

fn letter() -> Value {
    json!({
        "statement": "Write a greeting.",
        "input": {"name": "Ada"},
        "steps": "stepwise",
        "constraints": [
            {
                "name": "short",
                "severity": "minor",
                "check": "state.steps.all(step, size(step) <= 12)",
            },
            {"name": "polite", "severity": "major", "text": "The steps are polite."},
            {"name": "named", "severity": "critical", "text": "Ada is addressed by her name."},
        ],
    })
}

#[test]
fn natural_language_constraints_go_to_the_model_and_checks_are_evaluated() {
    let problem = Custom::read(&letter()).expect("a problem").problem();
    let model = FakeModel::saying(
        "Constraint 1: PASS - yes\nConstraint 2: FAIL - Ada is missing\n\
         Overall: INVALID\nViolation Score: 0.9\n",
    );

    let options = || VerifierOptions::report("judge", 99);
    assert!(verifier(&model, options()).reads_words());

    let verdict =
        judge(&model, options(), started(problem.as_ref()), "Good day!").expect("a verdict");
    assert_eq!((verdict.violations, verdict.score.value()), (vec!["named".into()], 0.9));
    assert_eq!(verdict.feedback.as_deref(), Some("named: Ada is missing"));

    let prompt = model.last().prompt;
    for part in [
        "Write a greeting.",
        "Input: {\"name\":\"Ada\"}",
        "1. polite (major): The steps are polite.",
        "2. named (critical)",
        "Action: Good day!",
    ] {
        assert!(prompt.contains(part), "{part:?} is missing in:\n{prompt}");
    }
    assert!(
        !prompt.contains("\n3. ") && !prompt.contains("Actions:") && !prompt.contains("\n\n\n"),
        "{prompt}"
    );

    let verdict = judge(&model, options(), started(problem.as_ref()), "Good day, dear Ada!")
        .expect("a verdict");
    assert_eq!(verdict.violations, ["short"]);
    assert_eq!(verdict.score, Score::from_tenths(Severity::Minor.tenths()));
    assert_eq!(model.count(), 1, "a broken check needs no reader");

    let verdict = judge(&model, options(), started(problem.as_ref()), "").expect("a verdict");
    assert_eq!(verdict.violations, ["format"]);
}

#[test]
fn an_improbable_line_is_wrong() {
    let judged = |text: &str, logprobs: &[f32], is_truncated: bool| {
        let completion = Completion {
            text: text.to_owned(),
            logprobs: logprobs.to_vec(),
            is_truncated,
            ..Completion::default()
        };

        let fake = FakeModel::new(move |_| Ok(completion.clone()));
        let options = VerifierOptions::likelihood("judge", 0.1, 99);
        let verifier =
            LlmVerifier::new(fake.clone(), &Templates::default(), options).expect("a template");

        let mut trajectory = advanced("tower-of-hanoi", 0);
        let line = trajectory.machine.reference().expect("a step");
        trajectory.machine.propose(&line).expect("legal");
        let verdict = block_on(verifier.judge(&trajectory, &line));

        let request = fake.last();
        assert_eq!(
            request.prompt,
            format!("tower-of-hanoi {}\n", prime_lessons::view(trajectory.machine.as_ref())),
            "as executors are asked"
        );
        assert_eq!(
            request.grammar.as_deref(),
            Some(&*format!("root ::= ([^\\n]* \"\\n\")? \"{line}\""))
        );
        assert!(request.logprobs && request.max_tokens == 99);
        verdict
    };
    let line = advanced("tower-of-hanoi", 0).machine.reference().expect("a step");

    let derived = format!("because\n{line}");

    let sure = judged(&derived, &[-0.1, -0.01], false).expect("a verdict");
    assert_eq!((sure.score, sure.logprob), (Score::ZERO, Some(-0.1)));

    let unsure = judged(&derived, &[-0.1, -4.0, -0.2], false).expect("a verdict");
    assert_eq!((unsure.score, unsure.logprob), (Score::from_tenths(10), Some(-4.0)));
    assert!(unsure.feedback.expect("why").contains("p = 0.018"));

    // A server without grammars and log-probabilities.
    assert_eq!(judged(&line, &[], false).expect("a verdict").score, Score::ZERO);
    assert_eq!(judged("move 9 9 9", &[], false).expect("a verdict").score, Score::from_tenths(10));
    assert_eq!(judged("because", &[-0.1], true).expect_err("cut").failure, Failure::TooLong);
}

fn of_format(format: VerdictFormat, template: &str) -> VerifierOptions {
    VerifierOptions {
        format,
        template: template.to_owned(),
        ..VerifierOptions::token("judge", None)
    }
}

/// The verdict on the reference's first step of a task.
fn on_first_step(model: &Arc<FakeModel>, options: VerifierOptions) -> Result<Verdict, AgentError> {
    let trajectory = advanced("tower-of-hanoi", 0);
    let line = trajectory.machine.reference().expect("a step");
    judge(model, options, trajectory, &line)
}

#[test]
fn the_expected_rating_decides() {
    let rated = |alternatives: &[(&str, f32)]| {
        let alternatives = alternatives.iter().map(|(token, p)| ((*token).to_owned(), p.ln()));
        let answer = Completion {
            text: "9".to_owned(),
            alternatives: alternatives.collect(),
            ..Completion::default()
        };
        let model = FakeModel::new(move |_| Ok(answer.clone()));
        let format = VerdictFormat::Rating { best: 9, threshold: 0.5 };
        let said = on_first_step(&model, of_format(format, "verifier/rating.j2"));

        let request = model.last();
        assert_eq!(request.grammar.as_deref(), Some("root ::= [0-9]"));
        assert_eq!((request.logprobs, request.alternatives, request.max_tokens), (true, 20, 1));
        assert!(request.prompt.contains("Answer with one digit"), "{}", request.prompt);
        said
    };

    // 9 · 0.6 / 9 and 9 · 0.4 / 9: the most likely digit is not what counts.
    let right = rated(&[("9", 0.6), ("0", 0.4)]).expect("a verdict");
    assert_eq!(right, Verdict { usage: right.usage, ..Verdict::default() });
    let wrong = rated(&[("0", 0.35), ("9", 0.4), ("1", 0.25)]).expect("a verdict");
    assert_eq!(wrong.score, WRONG);
    let why = wrong.feedback.expect("why");
    assert_eq!(why, "a model's expected rating gives this step 0.428, and 0.500 is asked for");

    let without = rated(&[]).expect_err("no alternatives");
    assert_eq!(without.failure, Failure::Unsupported);
    assert!(without.to_string().contains("top_logprobs"), "{without}");
    assert_eq!(rated(&[("I", 0.9)]).expect_err("prose").failure, Failure::Malformed);
}

#[test]
fn a_reward_models_score_is_compared_with_the_threshold() {
    let scored = |score: Option<f64>, threshold: f64| {
        let model = FakeModel::new(move |_| {
            Ok(Completion { score, usage: USAGE, ..Completion::default() })
        });
        let format = VerdictFormat::Reward { threshold };
        let said = on_first_step(&model, of_format(format, "verifier/reward.j2"));

        let line = advanced("tower-of-hanoi", 0).machine.reference().expect("a step");
        let request = model.last();
        assert_eq!((request.scored.as_deref(), request.grammar), (Some(line.as_str()), None));
        assert!(request.prompt.ends_with("Next step:\n"), "{}", request.prompt);
        said
    };

    for (score, threshold, expected) in [
        (0.5, 0.5, Score::ZERO),
        (0.499, 0.5, WRONG),
        (-3.0, -3.5, Score::ZERO),
        (-4.0, -3.5, WRONG),
    ] {
        let verdict = scored(Some(score), threshold).expect("a verdict");
        assert_eq!((verdict.score, verdict.usage), (expected, USAGE), "{score}");
    }
    assert_eq!(scored(None, 0.5).expect_err("no score").failure, Failure::Unsupported);
}

#[test]
fn a_model_says_how_it_judges() {
    let model = FakeModel::saying("1");
    for (options, method) in [
        (VerifierOptions::report("judge", 9), Method::Report),
        (VerifierOptions::token("judge", None), Method::Token),
        (VerifierOptions::likelihood("judge", 0.1, 9), Method::Likelihood),
        (
            of_format(VerdictFormat::Rating { best: 9, threshold: 0.5 }, "verifier/rating.j2"),
            Method::Rating,
        ),
        (of_format(VerdictFormat::Reward { threshold: 0.5 }, "verifier/reward.j2"), Method::Reward),
    ] {
        let basis = verifier(&model, options).basis(task());
        assert_eq!(basis.methods().collect::<Vec<_>>(), [method]);
        assert_eq!(
            basis.kinds(),
            Kinds::from_iter([Kind::Format]),
            "the machine refuses lines, the model evaluates nothing"
        );
    }
}
