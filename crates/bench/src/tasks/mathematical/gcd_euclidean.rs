//! GCD Euclidean: the greatest common divisor with its Bézout coefficients, by Euclid's extended
//! algorithm.
//!
//! A step is one division; its line is quotient and remainder.

use crate::tasks::pages::gcd_euclidean as page;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;

/// The task `gcd-euclidean`.
pub struct GcdEuclidean;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The greater number.
    pub a: u64,
    /// The lesser number, at least 1.
    pub b: u64,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The last two remainders; a and b at the start.
    pub r: [u64; 2],
    /// Coefficients of a in them.
    pub s: [i64; 2],
    /// Coefficients of b in them.
    pub t: [i64; 2],
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// Quotient and remainder.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action { q: u64, r: u64 } = "<nat> <nat>", "{q} {r}"
}

/// (u0, u1) becomes (u1, u0 - q·u1), unless that leaves the exact integers of JSON.
fn shifted([u0, u1]: [i64; 2], q: u64) -> Option<[i64; 2]> {
    // A product of two numbers below 2^53 can exceed 64 bits.
    let next = i64::try_from(i128::from(u0) - i128::from(q) * i128::from(u1)).ok()?;
    (next.unsigned_abs() < NUMBER_LIMIT).then_some([u1, next])
}

impl Task for GcdEuclidean {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let (min_steps, _) = page::size::MIN_STEPS.range(difficulty);
        loop {
            let digits =
                u32::try_from(page::size::DIGITS.draw(difficulty, rng)).expect("invariant: small");
            let least = 10u64.pow(digits - 1);
            // Both numbers are multiples of g, so that they have a common divisor.
            let g = 1 + rng.below(50);
            let a = (least + rng.below(9 * least)) / g * g;
            let b = g * (1 + rng.below(a / g - 1));

            let instance = Instance { a, b };
            let steps = reference_steps::<Self>(&instance, u64::MAX).unwrap_or(0);

            if a >= least && i64::try_from(steps).is_ok_and(|steps| steps >= min_steps) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        InvalidInput::unless(instance.a < NUMBER_LIMIT, "a", "must lie below 2^53")?;
        let ordered = (1..instance.a).contains(&instance.b);
        InvalidInput::unless(ordered, "b", "must be at least 1 and less than a")
    }

    fn start(instance: &Instance) -> State {
        State { r: [instance.a, instance.b], s: [1, 0], t: [0, 1], last: Last(None) }
    }

    fn check_state(_: &Instance, state: &State) -> Result<(), InvalidInput> {
        let most = i64::try_from(NUMBER_LIMIT).unwrap_or(i64::MAX) - 1;
        limits::sayable("r", state.r)?;
        limits::within("s", state.s, -most..=most)?;
        limits::within("t", state.t, -most..=most)
    }

    fn apply(_: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if state.r[1] == 0 {
            return Err(Illegal("the remainder is 0: the division is over"));
        }
        let (Some(s), Some(t)) = (shifted(state.s, action.q), shifted(state.t, action.q)) else {
            return Err(Illegal("a coefficient would leave the integers below 2^53"));
        };
        state.r = [state.r[1], action.r];
        state.s = s;
        state.t = t;
        Ok(())
    }

    fn reference(_: &Instance, state: &State) -> Option<Action> {
        let [r0, r1] = state.r;
        let q = r0.checked_div(r1)?;
        // After wrong lines the coefficients may have become too large for a legal step.
        (shifted(state.s, q).is_some() && shifted(state.t, q).is_some())
            .then_some(Action { q, r: r0 % r1 })
    }

    fn violations(
        instance: &Instance,
        _: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // A product of two numbers below 2^53 can exceed 64 bits.
        let wide = |pair: [i64; 2]| pair.map(i128::from);
        let (s, t) = (wide(after.s), wide(after.t));
        let combines = |row: usize| {
            s[row] * i128::from(instance.a) + t[row] * i128::from(instance.b)
                == i128::from(after.r[row])
        };

        found.require(page::BEZOUT, combines(0) && combines(1));
        found.require(page::UNIMODULAR, (s[0] * t[1] - s[1] * t[0]).abs() == 1);
        found.require(page::DESCENT, after.r[1] < after.r[0]);

        if Self::ended(instance, after) {
            let divides = |number: u64| number.checked_rem(after.r[0]) == Some(0);
            found.require(page::DIVIDES, divides(instance.a) && divides(instance.b));
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.r[1] == 0
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Lamé: at most five divisions for each digit of the smaller number.
        5 * (u64::from(instance.b.ilog10()) + 1)
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "gcd": state.r[0], "x": state.s[0], "y": state.t[0] })
    }
}
