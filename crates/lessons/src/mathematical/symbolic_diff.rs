//! Symbolic Differentiation: the rule of the node's operator, with the numbers of its children.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::expression::Symbol;
use prime_bench::tasks::mathematical::symbolic_diff::{Instance, State, SymbolicDiff};

use crate::Lesson;

pub struct SymbolicDiffLesson;

impl Lesson for SymbolicDiffLesson {
    type Task = SymbolicDiff;

    fn view(instance: &Instance, state: &State) -> String {
        let Some((symbol, children)) = instance.node(state.done) else { return "-".to_owned() };
        let children =
            children.iter().fold(String::new(), |text, child| text + " " + &child.to_string());

        let name = match symbol {
            Symbol::Power(exponent) => return format!("power {exponent} of{children}"),
            Symbol::X => "x",
            Symbol::Add => "add",
            Symbol::Sub => "sub",
            Symbol::Mul => "mul",
            Symbol::Div => "div",
            Symbol::Sin => "sin",
            Symbol::Cos => "cos",
            Symbol::Exp => "exp",
            Symbol::Ln => "ln",
            Symbol::Integer(_) | Symbol::Derivative(_) | Symbol::Given(_) => "constant",
        };

        format!("{name}{children}")
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        SymbolicDiff::reference(instance, state).map(|_| String::new())
    }
}
