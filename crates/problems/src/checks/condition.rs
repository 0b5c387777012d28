//! A CEL expression over one value, `step`, with bounded work: what the checks of a problem use,
//! without a problem.

use serde_json::Value;

use super::expression::Expression;
use super::shape::Shape;
use super::work::{self, Scene};
use super::{Names, evaluate, values};
use crate::error::Fault;
use crate::limits::WORK_MAX;

/// The variables that a check may read and a condition may not.
const OTHERS: [&str; 5] = ["input", "state", "answer", "previous", "steps"];

/// A condition on a step.
#[derive(Debug)]
pub struct Condition(Expression);

impl Condition {
    /// Parses a condition.
    ///
    /// # Errors
    /// It is not a CEL expression, or reads something else than `step`; with what to do.
    pub fn read(source: &str) -> Result<Self, String> {
        let text = |fault: Fault| fault.at("the condition").to_string();
        let expression = Expression::parse(source).map_err(text)?;
        match OTHERS.into_iter().find(|name| expression.mentions(name)) {
            Some(other) => Err(format!("it reads `{other}`: a condition reads `step` alone")),
            None if expression.mentions("step") => Ok(Self(expression)),
            None => Err("it does not read `step`, so it says nothing about a step".to_owned()),
        }
    }

    /// Returns whether it is true of a step.
    ///
    /// # Errors
    /// It cannot be evaluated for this step, is too expensive for it, or is neither true nor false.
    pub fn holds(&self, step: &Value) -> Result<bool, String> {
        let (shape, nothing) = (Shape::of(step), Shape::SMALL);
        let scene = Scene {
            input: &nothing,
            state: &nothing,
            answer: &nothing,
            step: &shape,
            previous: &nothing,
            steps: &nothing,
            given: &Value::Null,
        };

        let work = work::bound(&self.0, &scene);
        if work > WORK_MAX {
            return Err(format!("up to {work} units of work, which is more than {WORK_MAX}"));
        }

        let names = Names {
            input: &cel::common::types::CelNull,
            state: None,
            answer: None,
            step: Some(values::of_json(step)),
            previous: None,
            steps: None,
        };
        evaluate(&self.0, &names)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn conditions_read_a_step_and_nothing_else() {
        let step = json!({"depth": 4, "action": "DROP t", "score": 0.3, "flagged": false});
        let holds = |source: &str| Condition::read(source).unwrap().holds(&step);
        assert_eq!(holds("step.depth % 5 == 4 && step.score > 0.2"), Ok(true));
        assert_eq!(holds("step.flagged || step.action.startsWith(\"SELECT\")"), Ok(false));
        assert_eq!(holds("step.action.matches(\"^(DROP|DELETE) \")"), Ok(true));

        assert!(holds("step.nothing > 3").is_err(), "there is no such field");
        assert!(holds("step.depth").unwrap_err().contains("not true or false"));
        for (source, said) in [
            ("answer.x > 3", "answer"),
            ("1 < 2", "`step`"),
            ("step.depth >", "not a CEL expression"),
            ("", "empty"),
        ] {
            let refused = Condition::read(source).unwrap_err();
            assert!(refused.contains(said), "{source}: {refused}");
        }
    }
}
