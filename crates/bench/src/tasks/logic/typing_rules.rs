//! The typing rules of a program's nodes, as relations between types that are there: nothing is
//! inferred or unified.

use super::scheme::Scheme;
use super::simple_type::{Substitution, Symbol, Type, Variable, arrow, base};
use super::type_program::Kind;
use crate::tasks::prefix_term;

/// Whether a node may have this type, given its children's and the scheme of its variable (for a
/// lam, of its binder). Where a type is too long to be resolved, nothing can be said against it.
pub fn fits(
    kind: Kind,
    scheme: Option<&Scheme>,
    children: &[Type],
    claimed: &Type,
    known: &Substitution,
) -> bool {
    rule(kind, scheme, children, claimed, known).unwrap_or(true)
}

/// As [`fits`]; `None` where a type cannot be resolved.
fn rule(
    kind: Kind,
    scheme: Option<&Scheme>,
    children: &[Type],
    claimed: &Type,
    known: &Substitution,
) -> Option<bool> {
    let resolved = |symbols: &[Symbol]| known.resolve(symbols).ok();
    Some(match (kind, children) {
        (Kind::Variable(_), _) => is_instance(scheme?, &resolved(&scheme?.body)?, claimed),
        (Kind::Lam(_), [body]) => *claimed == arrow(&resolved(&scheme?.body)?, &resolved(body)?),
        (Kind::App, [function, argument]) => {
            resolved(function)? == arrow(&resolved(argument)?, claimed)
        }
        (Kind::Let(_), [_, body]) => resolved(body)? == *claimed,
        (Kind::If, [condition, yes, no]) => {
            resolved(condition)? == base(Symbol::Bool)
                && resolved(yes)? == *claimed
                && resolved(no)? == *claimed
        }
        _ => kind.declared().is_some(),
    })
}

/// Whether the type is the scheme's resolved body with each quantified variable replaced by one
/// type.
fn is_instance(scheme: &Scheme, body: &[Symbol], claimed: &[Symbol]) -> bool {
    let mut replaced: Vec<(Variable, &[Symbol])> = Vec::new();
    let mut at = 0;

    for symbol in body {
        if at >= claimed.len() {
            return false;
        }

        match symbol {
            Symbol::Variable(variable) if scheme.quantified.contains(variable) => {
                let end = prefix_term::end_of(claimed, at);
                let with = &claimed[at..end];
                match replaced.iter().find(|(known, _)| known == variable) {
                    // A quantified variable stands for the same type throughout.
                    Some((_, known)) if *known != with => return false,
                    Some(_) => {}
                    None => replaced.push((*variable, with)),
                }
                at = end;
            }
            _ if *symbol == claimed[at] => at += 1,
            _ => return false,
        }
    }

    at == claimed.len()
}

#[cfg(test)]
mod tests {
    use super::super::simple_type::{self, Substitution, Type};
    use super::*;

    fn read(text: &str) -> Type {
        simple_type::read(text).expect("a type")
    }

    #[test]
    fn an_application_takes_the_function_s_left_side() {
        let known = Substitution::default();
        let children = [read("(t0 -> Int) -> Bool"), read("t0 -> Int")];
        assert!(fits(Kind::App, None, &children, &read("Bool"), &known));
        assert!(!fits(Kind::App, None, &children, &read("Int"), &known));
        assert!(!fits(
            Kind::App,
            None,
            &[children[1].clone(), children[0].clone()],
            &read("Int"),
            &known
        ));
    }

    #[test]
    fn a_quantified_variable_stands_for_one_type() {
        let scheme = Scheme::read("forall a. a -> a -> t0").expect("a scheme");
        let fits = |claimed: &str| {
            fits(Kind::Variable(0), Some(&scheme), &[], &read(claimed), &Substitution::default())
        };
        assert!(fits("t5 -> t5 -> t0"));
        assert!(fits("(Int -> t1) -> (Int -> t1) -> t0"));
        for wrong in ["t5 -> t6 -> t0", "t5 -> t5 -> t1", "Int", "t5 -> t5", "t5 -> t5 -> t0 -> t0"]
        {
            assert!(!fits(wrong), "{wrong}");
        }
    }
}
