//! Problems from their JSON to their answers, by hand.

use serde_json::{Value, json};

use super::*;
use prime_bench::tasks::{Broken, Kind, Kinds, Machine, Problem, Refusal, Severity};

fn custom(json: &Value) -> Custom {
    Custom::read(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

/// The problem of finding two factors of a number, in steps.
fn factors() -> Value {
    json!({
        "statement": "Write the number n as a product of two factors above 1.",
        "input": {"n": 15},
        "steps": "stepwise",
        "answer": {
            "schema": {
                "type": "object",
                "required": ["x", "y"],
                "properties": {"x": {"type": "integer"}, "y": {"type": "integer"}},
            },
        },
        "constraints": [
            {"name": "product", "severity": "critical", "check": "answer.x * answer.y == input.n"},
            {
                "name": "short",
                "severity": "minor",
                "check": "state.steps.all(step, size(step) <= 20)",
            },
            {"name": "polite", "severity": "major", "text": "The steps are polite."},
            {"name": "fine", "severity": "major", "check": "15 / int(answer.x - 3) != 0"},
        ],
    })
}

fn names(machine: &dyn Machine, kinds: Kinds) -> Vec<String> {
    machine
        .broken(machine.violations(kinds))
        .into_iter()
        .map(|broken| broken.name.into_owned())
        .collect()
}

fn broken(machine: &dyn Machine) -> Vec<Broken> {
    machine.broken(machine.violations(Kinds::ALL))
}

#[test]
fn steps_lead_to_an_answer_and_checks_judge_them() {
    let problem = custom(&factors());
    let mut machine = problem.problem().start();

    machine.propose("try 2").expect("a step");
    assert_eq!(
        (names(machine.as_ref(), Kinds::ALL), machine.candidate_ends()),
        (Vec::new(), false)
    );
    assert_eq!(
        machine.state(),
        json!({"steps": [], "answer": null}),
        "a proposal does not touch the state"
    );
    machine.commit();

    machine.propose("this is a step that is too long").expect("a step");
    let found = broken(machine.as_ref());
    assert_eq!(found.len(), 1);
    assert_eq!((found[0].name.as_ref(), found[0].severity), ("short", Severity::Minor));
    assert_eq!(found[0].meaning, "state.steps.all(step, size(step) <= 20)");

    machine.propose(r#"answer: {"x": 2, "y": 7}"#).expect("an answer");
    assert!(machine.candidate_ends());
    assert_eq!(names(machine.as_ref(), Kinds::ALL), ["product"]);
    let said = &broken(machine.as_ref())[0].meaning;
    assert!(said.ends_with(": answer.x is 2, answer.y is 7, input.n is 15"), "{said}");
    assert_eq!(
        names(machine.as_ref(), [Kind::Invariant].into_iter().collect()),
        Vec::<String>::new()
    );

    machine.propose(r#"answer: {"x": 3, "y": 5}"#).expect("an answer");
    let found = broken(machine.as_ref());
    let meaning =
        "15 / int(answer.x - 3) != 0 (it could not be evaluated: Division by zero of Int(15))";
    assert_eq!(found.iter().map(|broken| broken.meaning.as_ref()).collect::<Vec<_>>(), [meaning]);

    machine.propose(r#"answer: {"y": 3, "x": 5}"#).expect("an answer");
    assert_eq!(names(machine.as_ref(), Kinds::ALL), Vec::<String>::new());
    machine.commit();
    assert!(machine.ended());
    assert_eq!(machine.answer(), Some(json!({"x": 5, "y": 3})));
    assert_eq!(machine.state(), json!({"steps": ["try 2"], "answer": {"y": 3, "x": 5}}));
    assert_eq!(machine.propose("more"), Err(Refusal::Illegal("the trace has ended")));
}

#[test]
fn lines_of_the_wrong_form_are_refused_and_the_verdict_says_why() {
    let mut machine = custom(&factors()).problem().start();
    for (line, refusal, detail) in [
        ("", Refusal::Unparsable, "the line is empty"),
        (" ", Refusal::Unparsable, "the line is empty"),
        ("a\tb", Refusal::Unparsable, "control character"),
        ("a\nb", Refusal::Unparsable, "control character"),
        (&"x".repeat(4_097), Refusal::Unparsable, "4097 bytes"),
        ("answer:", Refusal::Unparsable, "the answer is empty"),
        ("answer: three", Refusal::Unparsable, "not JSON"),
        (
            "answer: {\"x\": 3}",
            Refusal::Illegal("the answer is not valid under the schema"),
            "required property",
        ),
    ] {
        assert_eq!(machine.propose(line), Err(refusal), "{line:?}");
        assert!(!machine.candidate_ends());

        let found = broken(machine.as_ref());
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_ref(), found[0].severity), ("format", Severity::Critical));
        assert!(found[0].meaning.contains(detail), "{line:?}: {}", found[0].meaning);
        assert!(
            machine.violations([Kind::Terminal, Kind::Invariant].into_iter().collect()).is_empty()
        );

        machine.commit();
        assert_eq!(machine.state(), json!({"steps": [], "answer": null}));
    }
}

#[test]
fn a_single_line_is_the_answer() {
    let problem = custom(&json!({
        "statement": "Name a colour.",
        "steps": "single",
        "answer": {"pattern": "[a-z]+"},
        "constraints": [
            {"name": "warm", "severity": "major", "check": "answer in ['red', 'orange']"},
        ],
    }));
    assert_eq!(problem.problem().steps_max(), 1);

    let mut machine = problem.problem().start();
    assert_eq!(
        machine.propose("Red"),
        Err(Refusal::Illegal("the answer does not match the pattern"))
    );

    machine.propose("blue").expect("a colour");
    assert!(machine.candidate_ends());
    assert_eq!(names(machine.as_ref(), Kinds::ALL), ["warm"]);

    machine.propose("red").expect("a colour");
    assert!(broken(machine.as_ref()).is_empty());

    machine.commit();
    assert_eq!(machine.answer(), Some(json!("red")));
    assert_eq!(machine.state(), json!({"steps": [], "answer": "red"}));
}

#[test]
fn snapshots_forks_and_replays_agree() {
    let mut machine = custom(&factors()).problem().start();
    machine.replay("one").expect("a step");

    let (saved, mut fork) = (machine.snapshot(), machine.fork());
    machine.replay("two").expect("a step");
    machine.propose("three").expect("a step");

    machine.restore(&saved);
    assert!(!machine.candidate_ends());
    assert_eq!(machine.state(), fork.state());
    assert!(machine.violations(Kinds::ALL).contains(0), "the candidate is gone");

    fork.replay("answer: {\"x\": 3, \"y\": 5}").expect("an answer");
    assert_eq!((fork.ended(), machine.ended()), (true, false));

    assert_eq!(machine.problem().input(), fork.problem().input());
    assert_eq!((machine.reference(), machine.choices()), (None, None));
}

#[test]
fn a_trace_has_limits() {
    let mut machine = custom(&factors()).problem().start();
    let line = "x".repeat(4_096);
    for _ in 0..256 {
        machine.replay(&line).expect("a step");
    }

    assert_eq!(
        machine.replay("x"),
        Err(Refusal::Illegal("the steps are too long together; write the answer"))
    );

    assert_eq!(machine.replay("answer: {\"x\": 3, \"y\": 5}"), Ok(()));
    assert_eq!(custom(&factors()).problem().steps_max(), 10_000);
}

#[test]
fn a_definition_is_written_as_it_was_read() {
    for json in [
        factors(),
        json!({
            "statement": "s",
            "input": [1, {"b": 1.5, "a": null}],
            "steps": "single",
            "constraints": [],
        }),
    ] {
        let problem = custom(&json);
        assert_eq!(problem.definition(), json);
        assert_eq!(problem.problem().input(), json);
        assert_eq!(custom(&problem.definition()).definition(), json);
    }

    assert_eq!(
        custom(&json!({"statement": "s", "steps": "single"})).definition()["input"],
        json!(null)
    );
}

#[test]
fn constraints_in_words_are_offered_and_not_judged() {
    let problem = custom(&factors());
    assert!(problem.needs_reader());

    let textual: Vec<_> = problem.textual().collect();
    let polite = Textual {
        index: 3,
        name: "polite",
        severity: Severity::Major,
        text: "The steps are polite.",
    };
    assert_eq!(textual, [polite]);

    let kinds = [Some(Kind::Terminal), Some(Kind::Invariant), None, Some(Kind::Terminal)];
    assert_eq!(problem.kinds().collect::<Vec<_>>(), kinds);
    assert!(!custom(&json!({"statement": "s", "steps": "single"})).needs_reader());

    let rules: Vec<_> =
        problem.rules().into_iter().map(|rule| (rule.name, rule.kind, rule.meaning)).collect();
    assert_eq!(rules.len(), 5, "format and its own");
    assert_eq!(rules[3], ("polite".into(), None, "The steps are polite.".into()));
    assert_eq!(
        rules[1],
        ("product".into(), Some(Kind::Terminal), "answer.x * answer.y == input.n".into())
    );

    assert_eq!(problem.statement(), "Write the number n as a product of two factors above 1.");
    assert_eq!(problem.data(), json!({"n": 15}));
}

#[test]
fn an_executor_is_shown_the_problem_and_what_to_write() {
    let mut machine = custom(&factors()).problem().start();
    let view = machine.view();

    for part in [
        "Write the number n as a product",
        "Input: {\"n\":15}",
        "- product (critical): answer.x * answer.y == input.n",
        "- polite (major): The steps are polite.",
        "valid under this JSON Schema: {\"type\":\"object\"",
        "Steps so far: none",
        "the line `answer: `",
    ] {
        assert!(view.contains(part), "{part:?} is missing in:\n{view}");
    }

    machine.replay("try 2").expect("a step");
    machine.replay("try {{ 3 }}").expect("a step");
    assert!(
        machine.view().contains("Steps so far:\n1. try 2\n2. try {{ 3 }}\n"),
        "{}",
        machine.view()
    );

    let single =
        json!({"statement": "Name a colour.", "steps": "single", "answer": {"pattern": "[a-z]+"}});
    let view = custom(&single).problem().start().view();
    assert_eq!(
        view,
        "Name a colour.\n\nInput: null\n\nThe answer matches this regular expression from its beginning to its end: \
         [a-z]+\n\nWrite the answer as one line, and nothing else.\n"
    );
}

#[test]
fn only_a_check_that_reads_the_work_counts_as_one() {
    for (check, expected) in
        [("input.a == 2", false), ("answer == '4'", true), ("state.steps.size() < 9", true)]
    {
        let problem = custom(&json!({
            "statement": "What is 2 + 2?",
            "input": {"a": 2},
            "constraints": [{"name": "c", "severity": "minor", "check": check}],
        }));
        assert_eq!(problem.has_checks(), expected, "{check}");
    }
}

#[test]
fn mistakes_name_their_path() {
    let with = |path: &str, value: Value| {
        let mut json = factors();
        *json.pointer_mut(path).expect("a field") = value;
        json
    };
    let named = |name: &str| with("/constraints/1/name", json!(name));

    let mut unknown = factors();
    unknown["extra"] = json!(1);
    let mut both = factors();
    both["constraints"][2]["check"] = json!("true");
    let mut neither = factors();
    neither["constraints"][2].as_object_mut().expect("an object").remove("text");
    let mut deep = json!(1);
    for _ in 0..33 {
        deep = json!([deep]);
    }

    let many: Vec<_> = (0..32)
        .map(|i| json!({"name": format!("c{i}"), "severity": "minor", "check": "true"}))
        .collect();

    for (json, path, part) in [
        (json!(1), "problem", "invalid type"),
        (json!({"steps": "single"}), "problem", "missing field `statement`"),
        (unknown, "problem.extra", "unknown field `extra`"),
        (with("/steps", json!("many")), "problem.steps", "unknown variant `many`"),
        (
            with("/constraints/0/severity", json!("fatal")),
            "problem.constraints[0].severity",
            "unknown variant",
        ),
        (with("/statement", json!(" ")), "problem.statement", "is empty"),
        (with("/statement", json!("x".repeat(40_000))), "problem.statement", "40000 bytes"),
        (with("/input", json!("x".repeat(300_000))), "problem.input", "300002 bytes"),
        (with("/input", deep), "problem.input", "nested more than 32 deep"),
        (
            with("/input", json!({"a": [1e15, -9_007_199_254_740_992.0]})),
            "problem.input.a[1]",
            "the float -9007199254740992.0 is not below 2^53",
        ),
        (with("/input", json!([1e16])), "problem.input[0]", "is not below 2^53"),
        (
            with("/answer", json!({"schema": {"const": 1e16}})),
            "problem.answer.schema.const",
            "the float 1e+16 is not below 2^53",
        ),
        (with("/answer", json!({"pattern": "("})), "problem.answer", "not a regular expression"),
        (
            with("/answer", json!({"schema": {"$ref": "http://x"}})),
            "problem.answer",
            "leads nowhere",
        ),
        (with("/answer", json!({"format": "x"})), "problem.answer", "unknown variant `format`"),
        (with("/constraints", json!(many)), "problem.constraints", "there are 32 constraints"),
        (named("product"), "problem.constraints[1].name", "is taken"),
        (named("format"), "problem.constraints[1].name", "`format`"),
        (named(""), "problem.constraints[1].name", "is not a name"),
        (named(&"x".repeat(65)), "problem.constraints[1].name", "65 bytes"),
        (both, "problem.constraints[2]", "both `check` and `text`"),
        (neither, "problem.constraints[2]", "neither `check` nor `text`"),
        (with("/constraints/2/text", json!("")), "problem.constraints[2].text", "is empty"),
        (
            with("/constraints/3/check", json!("answr == 1")),
            "problem.constraints[3].check",
            "unknown name `answr`",
        ),
        (
            with("/constraints/3/check", json!("1 +")),
            "problem.constraints[3].check",
            "not a CEL expression",
        ),
    ] {
        let error = Custom::read(&json).expect_err(path);
        assert_eq!(error.path, path, "{error}");
        assert!(
            error.problem.contains(part) && !error.remedy.is_empty(),
            "{part:?} is missing in {error}"
        );
        assert!(error.to_string().starts_with(&format!("{path}: ")), "{error}");
    }
}

#[test]
fn the_grammar_admits_any_line_that_can_be_printed() {
    use prime_bench::tasks::pattern;
    for line in ["answer: {\"x\": [1]}", "<a> é 漢 🦀 ~"] {
        assert!(pattern::parse(SPEC.actions, line).is_some(), "{line}");
    }
    assert!(pattern::parse(SPEC.actions, "a\tb").is_none());
}

#[cfg(feature = "schema")]
#[test]
fn the_definition_has_a_schema_for_the_interface() {
    use utoipa::PartialSchema;
    let schema = serde_json::to_value(Definition::schema()).expect("JSON");
    let fields: Vec<_> = schema["properties"].as_object().expect("fields").keys().collect();
    assert_eq!(
        fields,
        [
            "statement",
            "input",
            "steps",
            "step",
            "max_steps",
            "max_proposals",
            "answer",
            "constraints"
        ]
    );
    assert_eq!(
        schema["required"],
        json!(["statement"]),
        "a problem without `steps` is a single one"
    );
    assert_eq!(schema["additionalProperties"], json!(false));
}
