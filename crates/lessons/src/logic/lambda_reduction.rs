//! Lambda Reduction: the argument of the first redex, then the term with it in place of the bound variable.
// View and derivation write abstractions without brackets: `LL(1 0)` for `(L (L (1 0)))`.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::logic::lambda_reduction::{Instance, LambdaReduction, State};
use prime_bench::tasks::logic::lambda_term::{Symbol, redexes};

use crate::Lesson;

pub struct Of;

impl Lesson for Of {
    type Task = LambdaReduction;

    fn view(_: &Instance, state: &State) -> String {
        shown(&state.term)
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        LambdaReduction::reference(instance, state)?;
        let term = &state.term;
        let argument = end_of(term, redexes(term).next()? + 2);
        term.get(argument..end_of(term, argument)).map(shown)
    }
}

fn shown(term: &[Symbol]) -> String {
    let mut line = String::new();
    // The arguments that open applications still miss.
    let mut missing: Vec<usize> = Vec::new();
    for symbol in term {
        match symbol {
            Symbol::Lambda => line.push('L'),
            Symbol::Apply => {
                line.push('(');
                missing.push(2);
            }
            Symbol::Index(index) => {
                line += &index.to_string();
                while let Some(arguments) = missing.last_mut() {
                    *arguments -= 1;
                    if *arguments > 0 {
                        line.push(' ');
                        break;
                    }
                    missing.pop();
                    line.push(')');
                }
            }
        }
    }
    line
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
