//! Unification: the sides symbol by symbol up to the first difference, or the variables among which
//! one must not occur.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::logic::first_order::{Symbol, Variable, variables};
use prime_bench::tasks::logic::unification::{Instance, State, Unification};

use crate::Lesson;

pub struct UnificationLesson;

impl Lesson for UnificationLesson {
    type Task = Unification;

    fn view(instance: &Instance, state: &State) -> String {
        match state.equations.first().filter(|_| !Unification::ended(instance, state)) {
            Some((left, right)) => format!("{left} = {right}"),
            None => "-".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        Unification::reference(instance, state)?;
        let (left, right) = state.equations.first()?;
        Some(match (left[0], right[0]) {
            (Symbol::Variable(ours), Symbol::Variable(theirs)) => {
                format!("{ours}{}{theirs}", if ours == theirs { '=' } else { '/' })
            }
            (Symbol::Variable(variable), _) => sought(variable, right),
            (_, Symbol::Variable(variable)) => sought(variable, left),
            _ => pairs(left, right),
        })
    }
}

/// The variables of a term up to the one that is sought.
fn sought(variable: Variable, term: &[Symbol]) -> String {
    let mut line = format!("{variable} in");

    for other in variables(term) {
        line += &format!(" {other}");
        if other == variable {
            return line + "!";
        }
    }

    line
}

/// Symbols at the same places, up to the first that differ.
fn pairs(left: &[Symbol], right: &[Symbol]) -> String {
    let text = |symbol: &Symbol| match symbol {
        Symbol::Letter(letter) => letter.to_string(),
        Symbol::Variable(variable) => variable.to_string(),
    };
    let mut line = Vec::new();

    for (ours, theirs) in left.iter().zip(right) {
        line.push(format!(
            "{}{}{}",
            text(ours),
            if ours == theirs { '=' } else { '/' },
            text(theirs)
        ));
        if ours != theirs {
            break;
        }
    }

    line.join(" ")
}
