//! Steps that are read as values, and what checks see of them.

use serde_json::{Value, json};

use super::*;
use prime_bench::tasks::{Kind, Kinds, Machine, Problem, Refusal};

fn custom(json: &Value) -> Custom {
    Custom::read(json).unwrap_or_else(|error| panic!("{json}: {error}"))
}

fn told(machine: &dyn Machine) -> Vec<(String, String)> {
    let broken = machine.broken(machine.violations(Kinds::ALL));
    broken.into_iter().map(|one| (one.name.into_owned(), one.meaning.into_owned())).collect()
}

/// Counting down from the input, each step by one or two, to 0.
fn countdown() -> Value {
    json!({
        "statement": "Count down to 0, by 1 or 2.",
        "input": {"from": 5},
        "steps": "stepwise",
        "step": {"pattern": "(?<from>[0-9]+) to (?<to>[0-9]+)"},
        "max_steps": 4,
        "answer": {"pattern": "[0-9]+"},
        "constraints": [
            {
                "name": "follows", "severity": "critical",
                "check": "int(step.from) == (previous == null ? input.from : int(previous.to))",
                "message": "A step begins where the one before ended.",
            },
            {
                "name": "small", "severity": "major",
                "check": "int(step.from) - int(step.to) in [1, 2]",
            },
            {
                "name": "down", "severity": "minor",
                "check": "range(1, size(steps)).all(i, int(steps[i].to) < int(steps[i - 1].to))",
            },
            {
                "name": "end", "severity": "critical",
                "check": "step != null && int(step.to) == 0 && int(answer) == size(steps)",
                "message": "Answer with the number of steps when 0 is reached.",
            },
        ],
    })
}

#[test]
fn checks_see_the_step_the_one_before_and_all_of_them() {
    let problem = custom(&countdown());
    let kinds = [Kind::Invariant, Kind::Invariant, Kind::Invariant, Kind::Terminal].map(Some);
    assert_eq!(problem.kinds().collect::<Vec<_>>(), kinds);
    assert_eq!([0, 1, 2, 3].map(|place| problem.is_of_step(place)), [true, true, false, false]);
    assert!(problem.has_checks() && !problem.sound().contains(Kind::Transition));

    let mut machine = problem.problem().start();
    assert_eq!(
        machine.propose("down"),
        Err(Refusal::Illegal("the step does not match the pattern"))
    );

    machine.propose("4 to 2").expect("a step");
    assert_eq!(
        told(machine.as_ref()),
        [(
            "follows".to_owned(),
            "A step begins where the one before ended: step.from is \"4\", input.from is 5"
                .to_owned()
        )]
    );
    machine.propose("5 to 2").expect("a step");
    assert_eq!(
        told(machine.as_ref()),
        [(
            "small".to_owned(),
            "int(step.from) - int(step.to) in [1, 2]: step.from is \"5\", step.to is \"2\""
                .to_owned()
        )]
    );

    for line in ["5 to 3", "3 to 1"] {
        machine.propose(line).expect("a step");
        assert_eq!(told(machine.as_ref()), []);
        machine.commit();
    }
    machine.propose("1 to 2").expect("a step");
    let names: Vec<_> = told(machine.as_ref()).into_iter().map(|(name, _)| name).collect();
    assert_eq!(names, ["small", "down"]);

    // An answer is not a step: checks of the step say nothing about it.
    machine.propose("answer: 2").expect("an answer");
    assert_eq!(
        told(machine.as_ref()),
        [(
            "end".to_owned(),
            "Answer with the number of steps when 0 is reached: step is \
             {\"from\":\"3\",\"to\":\"1\"}, step.to is \"1\", answer is \"2\""
                .to_owned()
        )]
    );

    machine.replay("1 to 0").expect("a step");
    let refused = machine.propose("0 to 0").expect_err("the fourth line is the answer");
    assert_eq!(refused, Refusal::Illegal("only the answer may follow: no step is left"));
    assert!(machine.view().contains("Lines left, the answer included: 1"), "{}", machine.view());
    machine.propose("answer: 3").expect("an answer");
    assert_eq!(told(machine.as_ref()), []);
    machine.commit();

    assert!(machine.ended());
    assert_eq!(
        machine.state(),
        json!({"steps": ["5 to 3", "3 to 1", "1 to 0"], "answer": "3"}),
        "the state keeps the lines"
    );
    assert_eq!((problem.steps_max(), problem.proposals_max()), (4, None));
}

#[test]
fn steps_under_a_schema_are_values() {
    let problem = custom(&json!({
        "statement": "Write rising pairs.",
        "steps": "stepwise",
        "step": {
            "schema": {"type": "array", "items": {"type": "integer"}, "minItems": 2, "maxItems": 2},
        },
        "constraints": [
            {"name": "rising", "severity": "major", "check": "step[0] < step[1]"},
            {
                "name": "sum", "severity": "critical",
                "check": "steps.map(s, sum(s)).sum() == int(answer)",
            },
        ],
    }));
    let mut machine = problem.problem().start();

    assert_eq!(machine.propose("1, 2"), Err(Refusal::Unparsable));
    assert_eq!(
        machine.propose("[1]"),
        Err(Refusal::Illegal("the step is not valid under the schema"))
    );
    let told_of_format = &told(machine.as_ref())[0].1;
    assert!(
        told_of_format.contains("the step is not valid under the schema: "),
        "{told_of_format}"
    );

    machine.propose("[2, 1]").expect("a step");
    assert_eq!(told(machine.as_ref())[0].0, "rising");
    for line in ["[1, 2]", "[3, 4]"] {
        machine.replay(line).expect("a step");
    }
    machine.propose("answer: 9").expect("an answer");
    assert_eq!(told(machine.as_ref())[0].0, "sum");
    machine.propose("answer: 10").expect("an answer");
    assert_eq!(told(machine.as_ref()), []);

    // The same lines lead to the same values.
    let mut again = problem.machine_at(&machine.state()).expect("a state between steps");
    again.propose("answer: 10").expect("an answer");
    assert_eq!(told(again.as_ref()), []);
}

#[test]
fn the_values_of_steps_are_bounded() {
    let problem = custom(&json!({
        "statement": "s", "steps": "stepwise", "step": {"schema": {"type": "array"}},
    }));
    let mut machine = problem.problem().start();
    // 4,001 bytes, and 2,001 parts.
    let line = format!("[{}0]", "0,".repeat(1_999));
    let refused = (0..).find_map(|step| machine.replay(&line).err().map(|why| (step, why)));
    assert_eq!(
        refused,
        Some((49, Refusal::Illegal("the steps are too long together; write the answer")))
    );
}

#[test]
fn mistakes_about_steps_name_their_path() {
    let with = |field: &str, value: Value| {
        let mut json = countdown();
        json[field] = value;
        json
    };
    let constraint = |check: Value| with("constraints", json!([check]));

    for (json, path, part) in [
        (with("steps", json!("single")), "problem.step", "a single line has no steps"),
        (with("step", json!({"pattern": "("})), "problem.step", "not a regular expression"),
        (with("step", json!({"pattern": "(?<a>x)(?<a>y)"})), "problem.step", "not a regular"),
        (
            with("step", json!({"schema": {"const": 1e16}})),
            "problem.step.schema.const",
            "is not below 2^53",
        ),
        (with("max_steps", json!(0)), "problem.max_steps", "it is 0"),
        (with("max_steps", json!(10_001)), "problem.max_steps", "it is 10001"),
        (with("max_proposals", json!(1_000_001)), "problem.max_proposals", "it is 1000001"),
        (
            json!({"statement": "s", "max_steps": 3}),
            "problem.max_steps",
            "a single line has no steps",
        ),
        (
            json!({"statement": "s", "constraints": [
                {"name": "a", "severity": "minor", "check": "answer == 'x' && steps == []"},
            ]}),
            "problem.constraints[0].check",
            "it reads `steps`",
        ),
        (
            constraint(json!({"name": "a", "severity": "minor", "check": "true", "message": " "})),
            "problem.constraints[0].message",
            "is empty",
        ),
        (
            constraint(json!({"name": "a", "severity": "minor", "text": "t", "message": "m"})),
            "problem.constraints[0].message",
            "belongs to a check",
        ),
        (
            constraint(json!({
                "name": "a", "severity": "minor", "check": "true", "message": "m".repeat(5_000),
            })),
            "problem.constraints[0].message",
            "5000 bytes",
        ),
    ] {
        let error = Custom::read(&json).expect_err(path);
        assert_eq!(error.path, path, "{error}");
        assert!(error.problem.contains(part), "{part:?} is missing in {error}");
    }
}
