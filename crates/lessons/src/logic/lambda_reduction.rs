//! Lambda Reduction: the body of the first redex with a place for each copy, and its argument; then
//! the term.
// Each symbol of the view has one in the action. A binder is the letter of its depth, `p` for the
// outermost, and the capital one at its end. An application is `(` and the letter of its depth,
// that letter between its parts, and the capital one at its end. An index is followed by the letter
// of its binder. The derivation begins with the letters of the redex and its binder. In the body, a
// copy of the argument is a sign and the number that is added to those of the argument's indices
// that belong to outer binders; these have a plus.

use std::cmp::Ordering;

use prime_bench::tasks::Task as _;
use prime_bench::tasks::logic::lambda_reduction::{Instance, LambdaReduction, State};
use prime_bench::tasks::logic::lambda_term::{Symbol, redexes};

use crate::Lesson;

pub struct LambdaReductionLesson;

/// The letters of depths: terms of the benchmark are seldom deeper.
fn applied(depth: usize) -> char {
    ('a'..='o').cycle().nth(depth).unwrap_or('~')
}

fn bound(depth: usize) -> char {
    ('p'..='z').cycle().nth(depth).unwrap_or('~')
}

/// The sign of a copy of the argument: each of them has its own.
fn copy(number: usize) -> char {
    "@#$%&*=!:;".chars().cycle().nth(number).unwrap_or('~')
}

/// An index with the number of binders around it.
struct Leaf {
    index: usize,
    binders: usize,
}

impl Leaf {
    /// The depth of its binder.
    fn binder(&self) -> Option<usize> {
        self.binders.checked_sub(self.index.saturating_add(1))
    }
}

/// A part of a term that has `applications` and `binders` around it.
fn shown(
    term: &[Symbol],
    mut applications: usize,
    mut binders: usize,
    mut leaf: impl FnMut(&Leaf) -> String,
) -> String {
    let mut line = String::new();
    // Open parts: a binder, or an application with the number of its missing parts.
    let mut open: Vec<Option<usize>> = Vec::new();

    for symbol in term {
        match symbol {
            Symbol::Lambda => {
                line.push(bound(binders));
                binders += 1;
                open.push(None);
            }
            Symbol::Apply => {
                line.extend(['(', applied(applications)]);
                applications += 1;
                open.push(Some(2));
            }
            Symbol::Index(index) => {
                let index = usize::try_from(*index).unwrap_or(usize::MAX);
                line += &leaf(&Leaf { index, binders });
                // An index completes its subterm, and with it every part that ends there.
                while let Some(last) = open.last_mut() {
                    match last {
                        Some(2) => {
                            *last = Some(1);
                            line.push(applied(applications - 1));
                            break;
                        }
                        Some(_) => {
                            applications -= 1;
                            line.push(applied(applications).to_ascii_uppercase());
                        }
                        None => {
                            binders -= 1;
                            line.push(bound(binders).to_ascii_uppercase());
                        }
                    }
                    open.pop();
                }
            }
        }
    }

    line
}

/// The numbers of applications and of binders around a place.
fn around(term: &[Symbol], place: usize) -> (usize, usize) {
    let open = (0..place).filter(|start| end_of(term, *start) > place);
    open.fold((0, 0), |(applications, binders), start| match term[start] {
        Symbol::Apply => (applications + 1, binders),
        _ => (applications, binders + 1),
    })
}

impl Lesson for LambdaReductionLesson {
    type Task = LambdaReduction;

    fn view(_: &Instance, state: &State) -> String {
        shown(&state.term, 0, 0, |leaf| {
            format!("{}{}", leaf.index, leaf.binder().map_or('~', bound))
        })
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        LambdaReduction::reference(instance, state)?;
        let term = &state.term;
        let redex = redexes(term).next()?;
        let (body, argument) = (redex + 2, end_of(term, redex + 2));

        let (applications, binders) = around(term, redex);

        let argument =
            shown(term.get(argument..end_of(term, argument))?, applications + 1, binders, |leaf| {
                let is_free = leaf.binder().is_some_and(|binder| binder < binders);
                format!("{}{}", leaf.index, if is_free { "+" } else { "" })
            });

        let mut signs = 0..;
        let body =
            shown(term.get(body..end_of(term, body))?, applications + 1, binders + 1, |leaf| {
                match leaf.binder().map(|binder| binder.cmp(&binders)) {
                    Some(Ordering::Equal) => {
                        format!("{}{}", signs.next().map_or('~', copy), leaf.index)
                    }
                    // The redex's own binder disappears from around it.
                    Some(Ordering::Less) => (leaf.index - 1).to_string(),
                    _ => leaf.index.to_string(),
                }
            });

        Some(format!("{}{} {body} {argument}", applied(applications), bound(binders)))
    }
}

/// The end of the subterm that begins at a place.
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
