//! 24-Game Extended: make 24 of four to ten numbers, each used once, by depth-first search with
//! exact rationals.
//!
//! A step is one calculation, which replaces two values by their result. Many expressions are
//! right: an answer counts if its expression passes the goal test.

use serde::{Deserializer, Serializer};
use serde_json::{Value as Json, json};

use super::arithmetic_search::{self, Operator, Value};
use super::expression;
use crate::tasks::pages::task_24_game as page;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;

/// The task `24-game`.
pub struct Game24;

/// More numbers could leave the range of [`Value`].
const NUMBERS_MAX: usize = 10;
/// Long enough for every number with its brackets and blanks; a bound on the depth of brackets.
const EXPRESSION_MAX: usize = 40 * NUMBERS_MAX;
const TARGET: i64 = 24;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The numbers to use once each, in 1..=13.
    pub numbers: Vec<i64>,
    /// Value that the expression must have: 24.
    pub target: i64,
}

impl Instance {
    fn values(&self) -> Vec<Value> {
        self.numbers.iter().map(|number| Value::from_integer(*number)).collect()
    }

    fn has_solution(&self) -> bool {
        arithmetic_search::makes(&self.values(), Value::from_integer(TARGET))
    }

    /// Returns whether the expressions use each number once.
    fn are_used<'a>(&self, expressions: impl IntoIterator<Item = &'a str>) -> bool {
        let mut used: Vec<i64> = expressions.into_iter().flat_map(expression::numbers).collect();
        let mut numbers = self.numbers.clone();
        used.sort_unstable();
        numbers.sort_unstable();
        used == numbers
    }
}

fn write_values<S: Serializer>(values: &[Value], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(values.iter().map(ToString::to_string))
}

fn read_values<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Vec<Value>, D::Error> {
    let value = |text: &String| {
        let (above, below) = text.split_once('/').unwrap_or((text, "1"));
        let part = |digits: &str| {
            digits.parse::<i64>().ok().filter(|part| part.unsigned_abs() < NUMBER_LIMIT)
        };
        let (above, below) = (part(above)?, part(below).filter(|below| *below > 0)?);
        Some(Value::new(above, below))
    };

    let texts: Vec<String> = Vec::deserialize(deserializer)?;
    let values: Option<Vec<Value>> = texts.iter().map(value).collect();
    values.ok_or_else(|| serde::de::Error::custom("must be texts of fractions in lowest terms"))
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The values left; each calculation removes two and appends its result.
    #[serde(serialize_with = "write_values", deserialize_with = "read_values")]
    pub values: Vec<Value>,
    /// For each of these values the expression that made it, fully parenthesised.
    pub exprs: Vec<String>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// Calculate with the values of two places.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action { left: usize, operator: Operator, right: usize } =
        "calc <nat> <+|-|*|/> <nat>", "calc {left} {operator} {right}"
}

impl From<(usize, Operator, usize)> for Action {
    fn from((left, operator, right): (usize, Operator, usize)) -> Self {
        Self { left, operator, right }
    }
}

impl Task for Game24 {
    task_items!(Instance, State, Action, Spec { decisive: &["expression"], ..page::SPEC });

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let n = page::size::N.draw(difficulty, rng);
            let numbers: Vec<i64> = (0..n).map(|_| rng.between(1, 13)).collect();
            let instance = Instance { numbers, target: TARGET };
            if instance.numbers.iter().sum::<i64>() != TARGET && instance.has_solution() {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let n = instance.numbers.len();
        InvalidInput::unless(
            (1..=NUMBERS_MAX).contains(&n),
            "numbers",
            format!("are {n}; give 1 to {NUMBERS_MAX}"),
        )?;

        let range = instance.numbers.iter().all(|number| (1..=13).contains(number));
        InvalidInput::unless(range, "numbers", "must lie between 1 and 13")?;
        InvalidInput::unless(instance.target == TARGET, "target", format!("must be {TARGET}"))?;

        InvalidInput::unless(
            n > 1 && instance.has_solution(),
            "numbers",
            format!("cannot make {TARGET}"),
        )
    }

    fn start(instance: &Instance) -> State {
        let exprs = instance.numbers.iter().map(ToString::to_string).collect();
        State { values: instance.values(), exprs, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        // As long as the expressions use the numbers of the input, no calculation with their values
        // overflows.
        let used = instance.are_used(state.exprs.iter().map(String::as_str));
        InvalidInput::unless(used, "exprs", "must use each number of the input once")?;

        let short = state.exprs.iter().all(|text| text.len() <= EXPRESSION_MAX);
        InvalidInput::unless(
            short,
            "exprs",
            format!("must have at most {EXPRESSION_MAX} characters each"),
        )?;

        let exact = state
            .exprs
            .iter()
            .map(|text| expression::value(text))
            .eq(state.values.iter().map(|value| Some(*value)));
        InvalidInput::unless(exact, "values", "must be the values of `exprs`")
    }

    fn apply(_: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action { left, operator, right } = *action;
        if left >= state.values.len() || right >= state.values.len() {
            return Err(Illegal("there is no such place among the values"));
        }
        if left == right {
            return Err(Illegal("a value cannot be used with itself"));
        }

        let values = arithmetic_search::calculated(&state.values, left, operator, right);
        state.values = values.ok_or(Illegal("this divides by 0"))?;

        let made = format!("({}{}{})", state.exprs[left], operator, state.exprs[right]);
        // The later place goes first: removing it does not move the other.
        state.exprs.remove(left.max(right));
        state.exprs.remove(left.min(right));
        state.exprs.push(made);
        Ok(())
    }

    fn reference(_: &Instance, state: &State) -> Option<Action> {
        arithmetic_search::first_calc(&state.values, Value::from_integer(TARGET)).map(Action::from)
    }

    fn violations(
        instance: &Instance,
        _: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let State { values, exprs, .. } = after;
        let used = instance.are_used(exprs.iter().map(String::as_str));
        found.require(page::NUMBERS, used);

        // An expression that uses other numbers could leave the range of exact values.
        let exact = used
            && values
                .iter()
                .zip(exprs)
                .all(|(value, text)| expression::value(text) == Some(*value));
        found.require(page::EXACT, exact);

        let n = instance.numbers.len();
        found.require(page::LENGTH, values.len() == exprs.len() && (1..=n).contains(&values.len()));

        if Self::ended(instance, after) {
            found.require(page::GOAL, values[..] == [Value::from_integer(TARGET)]);
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.values.len() == 1
    }

    fn answer(_: &Instance, state: &State) -> Json {
        json!({ "expression": state.exprs.last() })
    }

    /// Every calc makes one value of two.
    fn steps_max(instance: &Instance) -> u64 {
        instance.numbers.len() as u64 - 1
    }

    fn goal(instance: &Instance, answer: &Json) -> Option<bool> {
        let text = answer["expression"].as_str().unwrap_or_default();
        let right = text.len() <= EXPRESSION_MAX
            && instance.are_used([text])
            && expression::value(text) == Some(Value::from_integer(TARGET));
        Some(right)
    }

    fn choices(_: &Instance, state: &State) -> Option<Vec<Action>> {
        let possible = |(left, operator, right): &(usize, Operator, usize)| {
            operator.apply(state.values[*left], state.values[*right]).is_some()
        };
        Some(
            arithmetic_search::calcs(state.values.len())
                .filter(possible)
                .map(Action::from)
                .collect(),
        )
    }
}
