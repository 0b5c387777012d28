//! Type Inference: writes what is new for the node, and the bindings of each pair of types that
//! must be equal.
// `>` opens two arrows, `=` stands for equal types.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::logic::simple_type::{
    Substitution, Symbol, Type, arrow, base, variable, variables,
};
use prime_bench::tasks::logic::type_inference::{Instance, State, TypeInference};
use prime_bench::tasks::logic::type_program::{Binder, Due, Kind};

use crate::Lesson;

pub struct TypeInferenceLesson;

/// A type under the state's substitution; unchanged where the result would be too long, as may
/// happen after wrong lines.
fn resolved(state: &State, symbols: &[Symbol]) -> Type {
    state.substitution.resolve(symbols).unwrap_or_else(|_| symbols.into())
}

/// The type of one of the latest nodes.
fn latest(state: &State, back: usize) -> Option<&Type> {
    state.types.get(state.types.len().checked_sub(back + 1)?)
}

fn text(found: Option<&Type>) -> String {
    found.map_or_else(|| "-".to_owned(), ToString::to_string)
}

/// The type scheme of a binder, with what is bound in it replaced.
fn scheme(state: &State, binder: Binder) -> String {
    let Some(mut scheme) = state.schemes.get(binder).cloned().flatten() else {
        return "-".to_owned();
    };
    scheme.body = resolved(state, &scheme.body);
    scheme.text()
}

/// The variables that stay free in the types of binders.
fn free(state: &State, binders: &[Binder]) -> Vec<String> {
    let mut free = Vec::new();
    for scheme in binders.iter().filter_map(|binder| state.schemes.get(*binder)?.as_ref()) {
        let own = variables(&scheme.body).filter(|variable| !scheme.quantified.contains(variable));
        for variable in own.flat_map(|variable| {
            variables(&resolved(state, &[Symbol::Variable(variable)])).collect::<Vec<_>>()
        }) {
            if !free.contains(&variable.to_string()) {
                free.push(variable.to_string());
            }
        }
    }
    free
}

impl Lesson for TypeInferenceLesson {
    type Task = TypeInference;

    fn view(instance: &Instance, state: &State) -> String {
        let program = &instance.expression;
        let Some(node) =
            program.nodes.get(state.done).filter(|_| !TypeInference::ended(instance, state))
        else {
            return "-".to_owned();
        };

        let mut line = format!("fresh t{}", state.fresh);
        let mut of_node = None;

        for due in &node.due {
            match due {
                Due::Enter(binder) => {
                    line += &format!(" enter {}", program.names[*binder]);
                    if node.kind == Kind::Variable(*binder) {
                        of_node = Some(format!("var {}", program.names[*binder]));
                    }
                }
                Due::Condition => line += &format!(" condition {}", text(latest(state, 0))),
                // Nothing else depends on the type scheme yet.
                Due::Generalise(binder, visible) => {
                    if node.kind == Kind::Variable(*binder) {
                        let free = free(state, visible).join(" ");
                        of_node = Some(format!("let {} free {free}.", text(latest(state, 0))));
                    }
                }
            }
        }

        let (first, second) = (text(latest(state, 1)), text(latest(state, 0)));
        let of_node = of_node.unwrap_or_else(|| match node.kind {
            Kind::Variable(binder) => format!("var {}", scheme(state, binder)),
            Kind::Digit => "digit".to_owned(),
            Kind::Truth => "truth".to_owned(),
            Kind::Add => "add".to_owned(),
            Kind::Eq => "eq".to_owned(),
            Kind::Not => "not".to_owned(),
            Kind::Lam(binder) => format!("lam {} to {second}", scheme(state, binder)),
            Kind::App => format!("app {first} to {second}"),
            Kind::If => format!("if {first} else {second}"),
            Kind::Let(_) => format!("in {second}"),
        });

        format!("{line} {of_node}")
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        TypeInference::reference(instance, state)?;
        let program = &instance.expression;
        let node = program.nodes.get(state.done)?;

        let mut steps = Vec::new();
        let mut substitution = state.substitution.clone();
        let mut fresh = state.fresh;
        let mut next = || {
            fresh += 1;
            fresh - 1
        };

        let mut quantified = None;

        for due in &node.due {
            match due {
                Due::Enter(binder) => steps.push(format!("{}:t{}", program.names[*binder], next())),
                Due::Condition => {
                    if !unified(
                        &mut substitution,
                        latest(state, 0)?,
                        &base(Symbol::Bool),
                        &mut steps,
                    ) {
                        return Some(steps.join(" "));
                    }
                }
                Due::Generalise(binder, visible) if node.kind == Kind::Variable(*binder) => {
                    let (free, mut ours) = (free(state, visible), Vec::new());
                    for variable in
                        variables(latest(state, 0)?).map(|variable| variable.to_string())
                    {
                        if !ours.contains(&variable) && !free.contains(&variable) {
                            ours.push(variable);
                        }
                    }
                    quantified = Some(ours);
                }
                Due::Generalise(..) => {}
            }
        }

        match node.kind {
            Kind::Variable(binder) => {
                let known = state.schemes.get(binder).and_then(|scheme| scheme.as_ref());
                let named = || known.map_or(0, |scheme| scheme.quantified.len());
                let letters = || ('a'..='z').take(named()).map(String::from).collect();
                // A binder that this node enters has nothing quantified yet.
                let entered = node
                    .due
                    .iter()
                    .any(|due| matches!(due, Due::Enter(entered) if *entered == binder));
                let names: Vec<String> =
                    quantified.unwrap_or_else(|| if entered { Vec::new() } else { letters() });
                steps.extend(names.into_iter().map(|name| format!("{name}:t{}", next())));
            }
            Kind::App => {
                let result = next();
                steps.push(format!("t{result}"));

                let wanted = arrow(latest(state, 0)?, &variable(result));
                unified(&mut substitution, latest(state, 1)?, &wanted, &mut steps);
            }
            Kind::If => {
                unified(&mut substitution, latest(state, 1)?, latest(state, 0)?, &mut steps);
            }
            _ => {}
        }

        Some(steps.join(" "))
    }
}

/// Unifies as the task does, a word for each pair; false if a pair has no unifier, which then is
/// the last one.
fn unified(
    substitution: &mut Substitution,
    left: &[Symbol],
    right: &[Symbol],
    steps: &mut Vec<String>,
) -> bool {
    let mut pairs: Vec<(Type, Type)> = vec![(left.into(), right.into())];

    while let Some((left, right)) = pairs.pop() {
        let (Ok(left), Ok(right)) = (substitution.resolve(&left), substitution.resolve(&right))
        else {
            return false;
        };

        let bound = match (left[0], right[0]) {
            _ if left == right => {
                steps.push("=".to_owned());
                continue;
            }
            (Symbol::Arrow, Symbol::Arrow) => {
                steps.push(">".to_owned());
                let (ours, theirs) = (end_of(&left), end_of(&right));
                // A stack: the pair of the left sides is taken first.
                pairs.push((left[ours..].into(), right[theirs..].into()));
                pairs.push((left[1..ours].into(), right[1..theirs].into()));
                continue;
            }
            (Symbol::Variable(variable), _) => Some((variable, right.clone())),
            (_, Symbol::Variable(variable)) => Some((variable, left.clone())),
            _ => None,
        };

        let Some((variable, to)) = bound else {
            steps.push(format!("{left}/{right}"));
            return false;
        };

        steps.push(format!("{variable}={to}"));
        // The occurs check: no finite type contains itself.
        if variables(&to).any(|other| other == variable) {
            return false;
        }

        substitution.0.insert(variable, to);
    }

    true
}

/// The end of an arrow's left side.
fn end_of(symbols: &[Symbol]) -> usize {
    let mut missing = 1;

    for (place, symbol) in symbols.iter().enumerate().skip(1) {
        if *symbol == Symbol::Arrow {
            missing += 1;
        } else {
            missing -= 1;
        }

        if missing == 0 {
            return place + 1;
        }
    }

    symbols.len()
}
