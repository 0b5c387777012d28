//! Polynomial GCD: Euclid's algorithm on polynomials with rational coefficients, remainders made
//! monic.
//!
//! A step is one term of a quotient, or one normalisation to leading coefficient 1.

use std::fmt;

use num_traits::Zero;

use super::polynomial::Polynomial;
use crate::tasks::Rational;
use crate::tasks::pages::polynomial_gcd as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `polynomial-gcd`.
pub struct PolynomialGcd;

/// With these bounds no coefficient reaches the length that makes a line illegal: the monic
/// remainders are quotients of minors of Sylvester's matrix, which by Hadamard's inequality have at
/// most 48·(3 + 20) = 1,104 bits, and the rests before them have a few times that (an action was
/// seen to need room for 4,900).
const DEGREE_MAX: usize = 24;
const COEFFICIENT_MAX: u64 = 1_000_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Integer coefficients, the leading one first.
    pub p: Vec<i64>,
    /// Integer coefficients, the leading one first; of at most the degree of `p`.
    pub q: Vec<i64>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Dividend of the current division; the gcd at the end.
    pub a: Polynomial,
    /// Divisor; 0 at the end.
    pub b: Polynomial,
    /// What is left of the dividend; equal to it at the start of a division and at the end.
    pub r: Polynomial,
    /// Degrees of `p` and `q`, then of each remainder that is not 0.
    pub degrees: Vec<usize>,
    /// Divisions begun, 1 at the start.
    pub divisions: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The remainder is known: the divisor takes the dividend's place, and the remainder the
    /// divisor's.
    fn shift(&mut self, remainder: Polynomial) {
        self.a = std::mem::replace(&mut self.b, remainder);
        self.r = self.a.clone();
        if let Some(degree) = self.b.degree() {
            self.degrees.push(degree);
            self.divisions += 1;
        }
    }
}

/// An action line; the page explains its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Coefficient and exponent.
    Term(Rational, usize),
    /// Divides the remainder, or at the end the gcd, by its leading coefficient.
    Monic(Rational),
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["term <rat> <nat>", "monic <rat>"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        let c = fields.rational(0).filter(|c| !c.0.is_zero())?;
        Some(if form == 0 { Action::Term(c, fields.nat(1)?) } else { Action::Monic(c) })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Term(c, e) => write!(f, "term {c} {e}"),
            Self::Monic(c) => write!(f, "monic {c}"),
        }
    }
}

fn random(degree: usize, rng: &mut TaskRng) -> Vec<i64> {
    let leading = rng.between(1, 5) * rng.one_of(&[-1, 1]);
    let mut coefficients = vec![leading];
    coefficients.extend(array::uniform(degree, -5, 5, rng));
    coefficients
}

fn product(left: &[i64], right: &[i64]) -> Vec<i64> {
    let mut product = vec![0; left.len() + right.len() - 1];
    for (i, x) in left.iter().enumerate() {
        for (j, y) in right.iter().enumerate() {
            product[i + j] += x * y;
        }
    }

    product
}

impl Task for PolynomialGcd {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let degree = page::size::DEGREE.draw(difficulty, rng);
            let gcd_degree = page::size::GCD_DEGREE.draw(difficulty, rng);

            let g = random(gcd_degree, rng);
            let p = product(&g, &random(degree - gcd_degree, rng));
            let lower = usize::from(rng.chance(1, 2));
            let q = product(&g, &random(degree - lower - gcd_degree, rng));

            let instance = Instance { p, q };
            let end = reference_end::<Self>(&instance, u64::MAX);
            let found = end.and_then(|(end, _)| end.a.degree());

            if found.is_some_and(|found| page::size::GCD_DEGREE.accepts(difficulty, found as u64)) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        for (field, polynomial) in [("p", &instance.p), ("q", &instance.q)] {
            let n = polynomial.len();
            let range = format!("has {n} coefficients; give 1 to {}", DEGREE_MAX + 1);
            InvalidInput::unless((1..=DEGREE_MAX + 1).contains(&n), field, range)?;
            InvalidInput::unless(polynomial[0] != 0, field, "the first coefficient must not be 0")?;

            let bounded = polynomial.iter().all(|c| c.unsigned_abs() <= COEFFICIENT_MAX);
            let range =
                format!("every coefficient must lie in -{COEFFICIENT_MAX} … {COEFFICIENT_MAX}");
            InvalidInput::unless(bounded, field, range)?;
        }

        InvalidInput::unless(
            instance.q.len() <= instance.p.len(),
            "q",
            "must not have a higher degree than p",
        )
    }

    fn start(instance: &Instance) -> State {
        let (p, q) = (Polynomial::of(&instance.p), Polynomial::of(&instance.q));
        let degrees = vec![instance.p.len() - 1, instance.q.len() - 1];
        State { r: p.clone(), a: p, b: q, degrees, divisions: 1, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let most = 2 * instance.p.len();
        let reason =
            format!("must have up to {most} coefficients, the first of them not 0, none too long");
        for (field, polynomial) in [("a", &state.a), ("b", &state.b), ("r", &state.r)] {
            InvalidInput::unless(polynomial.is_at_most(most), field, reason.as_str())?;
        }
        Ok(())
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let is_remainder = state.r.degree() < state.b.degree();
        match action {
            Action::Term(c, e) => {
                if state.b.is_zero() || is_remainder || *e >= instance.p.len() {
                    return Err(Illegal(
                        "a term needs a divisor of no higher degree, and an exponent up to deg p",
                    ));
                }
                if !state.r.has_room_for(c, &state.b) {
                    return Err(Illegal("the coefficients would become too long"));
                }

                let rest = state.r.minus(c, *e, &state.b);
                // A remainder that is 0 or monic already needs no line that makes it so.
                if rest.is_zero() || rest.is_monic() && rest.degree() < state.b.degree() {
                    state.shift(rest);
                } else {
                    state.r = rest;
                }
            }
            Action::Monic(c) => {
                if !is_remainder && !state.b.is_zero() {
                    return Err(Illegal("the division is not over"));
                }
                if !state.r.has_room_over(c) {
                    return Err(Illegal("the coefficients would become too long"));
                }

                let monic = state.r.over(c);
                if state.b.is_zero() {
                    state.a = monic.clone();
                    state.r = monic;
                } else {
                    state.shift(monic);
                }
            }
        }
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let leading = state.r.leading()?;
        let shift = state.b.degree().and_then(|degree| state.r.degree()?.checked_sub(degree));
        match (shift, state.b.leading()) {
            (Some(e), Some(divisor)) => {
                let c = Rational(&leading.0 / &divisor.0);
                let legal = e < instance.p.len() && state.r.has_room_for(&c, &state.b);
                legal.then_some(Action::Term(c, e))
            }
            (None, None) if state.r.is_monic() => None,
            _ => state.r.has_room_over(leading).then(|| Action::Monic(leading.clone())),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // `common-divisor` holds by construction: gcd(R - c·t^e·B, B) = gcd(R, B), the shift
        // exchanges R and B, and constants do not count. A test checks it against its meaning.
        if let (Action::Term(c, e), Some(r), Some(b)) =
            (action, before.r.leading(), before.b.leading())
        {
            let meets = before.b.degree().map(|degree| degree + e) == before.r.degree();
            found.require(page::DEGREE_FALLS, meets && &c.0 * &b.0 == r.0);
        }

        found.require(page::MONIC, after.divisions <= 1 || after.b.is_zero() || after.b.is_monic());

        if Self::ended(instance, after) {
            found.require(
                page::DIVIDES,
                after.a.divides(&instance.p) && after.a.divides(&instance.q),
            );
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.b.is_zero() && state.a.is_monic()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Degrees fall from deg q, so that there are at most deg q + 1 divisions; each has at most
        // one normalisation. The differences of degree add up to deg p at most, and a division has
        // one term more than its difference.
        (instance.p.len() - 1 + 2 * instance.q.len()) as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "gcd": state.a, "degrees": state.degrees, "divisions": state.divisions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The monic greatest common divisor.
    fn gcd(mut a: Polynomial, mut b: Polynomial) -> Polynomial {
        while let (Some(top), Some(divisor)) = (a.leading().cloned(), b.leading().cloned()) {
            match a.degree().zip(b.degree()).and_then(|(high, low)| high.checked_sub(low)) {
                Some(shift) => a = a.minus(&Rational(&top.0 / &divisor.0), shift, &b),
                None => std::mem::swap(&mut a, &mut b),
            }
        }
        let rest = if a.is_zero() { b } else { a };
        rest.over(rest.leading().expect("one of them is not 0"))
    }

    #[test]
    fn no_legal_line_changes_the_common_divisor() {
        let mut rng = TaskRng::new(5);
        for _ in 0..40 {
            let instance = PolynomialGcd::generate(Difficulty::Easy, &mut rng);
            let mut state = PolynomialGcd::start(&instance);
            let wanted = gcd(state.a.clone(), state.b.clone());

            for _ in 0..12 {
                let c = Rational::from(rng.between(1, 5));
                let wrong =
                    if rng.chance(1, 2) { Action::Term(c, rng.index(3)) } else { Action::Monic(c) };

                let right = PolynomialGcd::reference(&instance, &state);
                let action = right.filter(|_| rng.chance(2, 3)).unwrap_or(wrong);
                let _ = PolynomialGcd::step(&instance, &mut state, action);
                assert_eq!(gcd(state.r.clone(), state.b.clone()), wanted);
            }
        }
    }
}
