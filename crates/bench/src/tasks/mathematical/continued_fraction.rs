//! Continued Fraction: the terms of a rational number by Euclid's algorithm, each with its
//! convergent.
//!
//! A step is one term with its convergent.

use std::fmt;
use std::sync::Arc;

use num_bigint::BigInt;
use num_integer::Integer;
use num_rational::BigRational;
use num_traits::{One, Signed, Zero};
use serde::{Deserializer, Serializer};

use super::decimal::Decimal;
use crate::tasks::Rational;
use crate::tasks::pages::continued_fraction as page;
use crate::tasks::pattern::Fields;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;
use crate::tasks::rational::BITS_MAX;

/// The task `continued-fraction`.
pub struct ContinuedFraction;

/// Digits of numerator and denominator. The states of a trace hold up to five convergents for each.
const DIGITS_MAX: usize = 200;
/// The most convergents of a state that a client submits, about twice those of the longest trace.
const CONVERGENTS_MAX: usize = 2_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    numerator: Decimal,
    denominator: Decimal,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Dividend of the next division; the numerator at the start.
    pub p: Decimal,
    /// Divisor of the next division; the denominator at the start, 0 at the end.
    pub q: Decimal,
    terms: Vec<u64>,
    /// Convergents so far, one for each term.
    pub convergents: Vec<Convergent>,
    last: Last<Action>,
}

/// A convergent, shared by all later states.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Convergent(Arc<Rational>);

impl Serialize for Convergent {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Convergent {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        Rational::deserialize(deserializer).map(|value| Self(Arc::new(value)))
    }
}

impl Convergent {
    /// The numerator, in lowest terms.
    pub fn numer(&self) -> &BigInt {
        self.0.0.numer()
    }

    /// The denominator, in lowest terms; positive.
    pub fn denom(&self) -> &BigInt {
        self.0.0.denom()
    }
}

impl fmt::Display for Convergent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl LineField for Convergent {
    fn read(fields: &Fields<'_>, index: usize) -> Option<Self> {
        fields.rational(index).map(|value| Self(Arc::new(value)))
    }
}

line_actions! {
    /// The next term, and the convergent with it.
    #[derive(Clone, Debug, PartialEq, Eq)]
    pub struct Action {
        /// Quotient of the next division.
        pub term: u64,
        convergent: Convergent,
    } = "<nat> <ratio>", "{term} {convergent}"
}

/// a · (the latest of the list) + (the one before), where `first` and `second` come before the
/// list.
fn continued<'a>(
    list: &'a [Convergent],
    part: impl Fn(&'a Convergent) -> &'a BigInt,
    (first, second): (u8, u8),
    a: &BigInt,
) -> BigInt {
    match list {
        [] => a * second + first,
        [only] => a * part(only) + second,
        [.., before, latest] => a * part(latest) + part(before),
    }
}

/// h_i·k_{i-1} - h_{i-1}·k_i = (-1)^(i-1) for every i; before the first convergent stands 1/0.
fn are_neighbours(convergents: &[Convergent]) -> bool {
    let pairs = convergents.windows(2).enumerate().all(|(i, pair)| {
        let determinant = pair[1].numer() * pair[0].denom() - pair[0].numer() * pair[1].denom();
        if i % 2 == 0 { determinant.is_one() } else { (-determinant).is_one() }
    });
    pairs && convergents.first().is_none_or(|first| first.denom().is_one())
}

impl Task for ContinuedFraction {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let count = page::size::TERMS.draw(difficulty, rng);
        let mut terms = vec![rng.below(10)];
        terms.extend((2..count).map(|_| 1 + rng.below(9)));

        // The last term is at least 2: a fraction that ends in 1 has a shorter form.
        let mut value = BigRational::from_integer((2 + rng.below(8)).into());
        for term in terms.iter().rev() {
            value = BigRational::from_integer((*term).into()) + value.recip();
        }

        let (numerator, denominator) = value.into();
        Instance { numerator: Decimal(numerator), denominator: Decimal(denominator) }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let (mut p, mut q) = (instance.numerator.0.clone(), instance.denominator.0.clone());
        let short = |number: &BigInt| number.to_string().len() <= DIGITS_MAX;
        let digits = format!("must have at most {DIGITS_MAX} digits");
        InvalidInput::unless(!p.is_negative(), "numerator", "must not be negative")?;
        InvalidInput::unless(q.is_positive(), "denominator", "must be positive")?;
        InvalidInput::unless(short(&p), "numerator", digits.clone())?;
        InvalidInput::unless(short(&q), "denominator", digits)?;
        InvalidInput::unless(
            p.gcd(&q).is_one(),
            "denominator",
            "the fraction must be in lowest terms",
        )?;

        while !q.is_zero() {
            let (term, rest) = p.div_mod_floor(&q);
            InvalidInput::unless(
                term < NUMBER_LIMIT.into(),
                "numerator",
                "every term must lie below 2^53",
            )?;
            (p, q) = (q, rest);
        }
        Ok(())
    }

    fn start(instance: &Instance) -> State {
        let (p, q) = (instance.numerator.clone(), instance.denominator.clone());
        State { p, q, terms: Vec::new(), convergents: Vec::new(), last: Last(None) }
    }

    fn check_state(_: &Instance, state: &State) -> Result<(), InvalidInput> {
        let short = |number: &BigInt| number.bits() < BITS_MAX;
        InvalidInput::unless(
            short(&state.p.0),
            "p",
            format!("must have fewer than {BITS_MAX} bits"),
        )?;
        InvalidInput::unless(
            short(&state.q.0),
            "q",
            format!("must have fewer than {BITS_MAX} bits"),
        )?;
        limits::at_most("convergents", state.convergents.len(), CONVERGENTS_MAX)?;

        let fit = |convergent: &Convergent| {
            short(convergent.numer())
                && short(convergent.denom())
                && !convergent.numer().is_negative()
        };
        let reason = format!("must not be negative, and have fewer than {BITS_MAX} bits");
        InvalidInput::unless(state.convergents.iter().all(fit), "convergents", reason)
    }

    fn apply(_: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if state.q.0.is_zero() {
            return Err(Illegal("the fraction has no further term"));
        }

        let rest = &state.p.0 - &state.q.0 * action.term;
        if rest.bits().max(action.convergent.0.bits()) >= BITS_MAX {
            return Err(Illegal("the numbers would become too long"));
        }

        state.p = std::mem::replace(&mut state.q, Decimal(rest));
        state.terms.push(action.term);
        state.convergents.push(action.convergent.clone());
        Ok(())
    }

    fn reference(_: &Instance, state: &State) -> Option<Action> {
        let (p, q) = (&state.p.0, &state.q.0);
        if q.is_zero() {
            return None;
        }

        let (term, rest) = p.div_mod_floor(q);
        let numerator = continued(&state.convergents, Convergent::numer, (0, 1), &term);
        let denominator = continued(&state.convergents, Convergent::denom, (1, 0), &term);

        // After wrong lines: the term may be negative or too large, and the convergent not in
        // lowest terms.
        let term = u64::try_from(term).ok().filter(|term| *term < NUMBER_LIMIT)?;
        let legal = denominator.is_positive()
            && numerator.gcd(&denominator).is_one()
            && rest.bits().max(numerator.bits()).max(denominator.bits()) < BITS_MAX;
        // Called for fractions in lowest terms only, so that nothing is left to reduce.
        let convergent =
            || Convergent(Arc::new(Rational(BigRational::new_raw(numerator, denominator))));
        legal.then(|| Action { term, convergent: convergent() })
    }

    fn violations(
        instance: &Instance,
        _: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Why a clean trace answers right: where q is 0, the terms make the input, and positive
        // terms of which the last is not 1 do so in one way. As many convergents on their sides
        // make the input in one way too: terms other than these would need a line more.
        let convergents = &after.convergents;
        found.require(page::NEIGHBOURS, are_neighbours(convergents));

        let grow = convergents.windows(2).all(|pair| pair[0].denom() <= pair[1].denom());
        found.require(page::GROWTH, grow && after.terms.iter().skip(1).all(|term| *term >= 1));

        let (numerator, denominator) = (&instance.numerator.0, &instance.denominator.0);
        // Convergents lie below and above the value in turn.
        let aside = convergents.iter().enumerate().all(|(i, convergent)| {
            let (ours, value) = (convergent.numer() * denominator, convergent.denom() * numerator);
            if i % 2 == 0 { ours <= value } else { ours >= value }
        });
        found.require(page::SIDES, aside);

        if Self::ended(instance, after) {
            let exact = convergents
                .last()
                .is_some_and(|last| last.numer() == numerator && last.denom() == denominator);
            let is_shortest = after.terms.len() == 1 || after.terms.last() != Some(&1);
            found.require(page::VALUE, exact && is_shortest);
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.q.0.is_zero()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Lamé: at most five divisions for each digit of the denominator, and one more where the
        // numerator is smaller.
        5 * instance.denominator.0.to_string().len() as u64 + 1
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "terms": state.terms, "convergents": state.convergents })
    }
}

#[cfg(test)]
mod tests {
    use crate::tasks::fooled::{Fooling, assert_found};

    #[test]
    fn an_expansion_that_ends_in_1_is_found() {
        assert_found(&[Fooling {
            task: "continued-fraction",
            input: r#"{"numerator":"6449","denominator":"2"}"#,
            lines: &["3224 3224", "1 3225", "1 6449/2"],
            at: 2,
            constraint: "value",
        }]);
    }
}
