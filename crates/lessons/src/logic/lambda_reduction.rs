//! Lambda Reduction: the argument of the first redex, then the term with it in place of the bound variable.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::logic::lambda_reduction::{Instance, LambdaReduction, State};
use prime_bench::tasks::logic::lambda_term::{LambdaTerm, Symbol, redexes};

use crate::Lesson;

pub struct Of;

impl Lesson for Of {
    type Task = LambdaReduction;

    fn view(_: &Instance, state: &State) -> String {
        state.term.to_string()
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        LambdaReduction::reference(instance, state)?;
        let term = &state.term;
        let argument = end_of(term, redexes(term).next()? + 2);
        Some(LambdaTerm::from(term.get(argument..end_of(term, argument))?).to_string())
    }
}

/// Where the subterm that begins at a place ends.
fn end_of(term: &[Symbol], start: usize) -> usize {
    let mut missing = 1;
    let mut place = start;
    while missing > 0 && place < term.len() {
        match term[place] {
            Symbol::Index(_) => missing -= 1,
            Symbol::Lambda => {}
            Symbol::Apply => missing += 1,
        }
        place += 1;
    }
    place
}
