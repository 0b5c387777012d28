//! The typing rules of a program's nodes, as relations between types that are there: nothing is
//! inferred or unified.

use super::scheme::{Scheme, number};
use super::simple_type::{Substitution, Symbol, Type, Variable, arrow, base, renamed};
use super::type_program::Kind;

/// The facts that are known when a node is finished.
#[derive(Clone, Copy)]
pub struct Known<'a> {
    pub substitution: &'a Substitution,
    /// Type variables created, the node's own, which are the latest, included.
    pub fresh: u32,
}

/// Returns whether a node has this type, given its children's and the scheme of its variable (for a
/// lam, of its binder). Where a child's type is too long to be resolved, nothing can be said
/// against it.
pub fn fits(
    kind: Kind,
    scheme: Option<&Scheme>,
    children: &[Type],
    claimed: &Type,
    known: Known<'_>,
) -> bool {
    rule(kind, scheme, children, claimed, known).unwrap_or(true)
}

/// Like [`fits`]; `None` where a type cannot be resolved.
fn rule(
    kind: Kind,
    scheme: Option<&Scheme>,
    children: &[Type],
    claimed: &Type,
    known: Known<'_>,
) -> Option<bool> {
    let resolved = |symbols: &[Symbol]| known.substitution.resolve(symbols).ok();
    Some(match (kind, children) {
        (Kind::Variable(_), _) => resolved(&instance(scheme?, known.fresh)?)? == *claimed,
        (Kind::Lam(_), [body]) => *claimed == arrow(&resolved(&scheme?.body)?, &resolved(body)?),
        (Kind::App, [function, argument]) => {
            // The function's type may be too long, its result is not.
            let result = Symbol::Variable(Variable(known.fresh.checked_sub(1)?));
            resolved(&[result])? == *claimed
                && resolved(function)? == arrow(&resolved(argument)?, claimed)
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

/// The scheme's body with the latest type variables in place of the quantified ones, in order of
/// first appearance: a type that is narrower, or shares variables with others, would not be
/// principal.
fn instance(scheme: &Scheme, fresh: u32) -> Option<Type> {
    let first = fresh.checked_sub(number(scheme.quantified.len()))?;
    let (body, _) = renamed(
        &scheme.body,
        |variable| scheme.quantified.contains(&variable),
        |place| Symbol::Variable(Variable(first.saturating_add(number(place)))),
    );
    Some(body)
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
        let children = [read("(t0 -> Int) -> Bool"), read("t0 -> Int")];
        let swapped = [children[1].clone(), children[0].clone()];
        let fits = |children: &[Type], claimed: &str| {
            // The result of the application, t1, has been unified.
            let mut substitution = Substitution::default();
            substitution.0.insert(Variable(1), read(claimed));
            let known = Known { substitution: &substitution, fresh: 2 };
            fits(Kind::App, None, children, &read(claimed), known)
        };
        assert!(fits(&children, "Bool"));
        assert!(!fits(&children, "Int"));
        assert!(!fits(&swapped, "Int"));
    }

    #[test]
    fn a_quantified_variable_becomes_a_fresh_one() {
        let scheme = Scheme::read("forall a b. a -> b -> a -> t0").expect("a scheme");
        let substitution = Substitution::default();
        let fits = |claimed: &str| {
            let known = Known { substitution: &substitution, fresh: 7 };
            fits(Kind::Variable(0), Some(&scheme), &[], &read(claimed), known)
        };
        assert!(fits("t5 -> t6 -> t5 -> t0"));
        for wrong in [
            "t6 -> t5 -> t6 -> t0",
            "t5 -> t6 -> t6 -> t0",
            "t5 -> t6 -> t5 -> t1",
            "t4 -> t6 -> t4 -> t0",
            "Int -> t6 -> Int -> t0",
            "Int",
            "t5 -> t6 -> t5",
        ] {
            assert!(!fits(wrong), "{wrong}");
        }
    }
}
