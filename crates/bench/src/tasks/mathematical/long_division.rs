//! Long Division: divide a long number by a shorter one, digit by digit.
//!
//! A step takes one digit of the dividend; its line is the digit of the quotient and the new
//! remainder.

use num_bigint::BigUint;

use crate::tasks::pages::long_division as page;
use crate::tasks::prelude::*;

/// The task `long-division`.
pub struct LongDivision;

/// Ten times a remainder must stay below 2^63.
const DIVISOR_DIGITS_MAX: usize = 15;
const DIVIDEND_DIGITS_MAX: usize = 10_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Decimal digits, without a leading zero.
    pub dividend: String,
    /// Decimal digits, without a leading zero.
    pub divisor: String,
}

impl Instance {
    /// The dividend's digit at a place, from the left and from 0.
    pub fn digit(&self, pos: usize) -> Option<u64> {
        self.dividend.as_bytes().get(pos).map(|c| u64::from(c - b'0'))
    }

    /// The divisor as a number.
    pub fn divisor(&self) -> u64 {
        self.divisor.parse().expect("invariant: divisors are checked to have at most 15 digits")
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of digits of the dividend used.
    pub pos: usize,
    /// The quotient's digits so far, leading zeros kept.
    pub q: String,
    /// Remainder so far, below the divisor on the trace.
    pub r: u64,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

line_actions! {
    /// The next digit of the quotient, and the remainder after it.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action {
        /// Next digit of the quotient, 0..=9, leading zeros included.
        pub digit: u8,
        /// Remainder after it.
        pub remainder: u64,
    } = "<digit> <nat>", "{digit} {remainder}"
}

fn digit_sum(digits: &str) -> u64 {
    digits.bytes().map(|c| u64::from(c - b'0')).sum()
}

fn big(digits: &str) -> BigUint {
    BigUint::parse_bytes(digits.as_bytes(), 10).unwrap_or_default()
}

/// A decimal number without leading zeros.
fn is_number(digits: &str) -> bool {
    !digits.is_empty()
        && digits.bytes().all(|c| c.is_ascii_digit())
        && (digits.len() == 1 || !digits.starts_with('0'))
}

/// A number of exactly `len` digits.
fn number_of(len: usize, rng: &mut TaskRng) -> String {
    (0..len)
        .map(|place| {
            let digit = rng.between(if place == 0 && len > 1 { 1 } else { 0 }, 9);
            char::from_digit(u32::try_from(digit).expect("invariant: a digit"), 10)
                .expect("invariant: a digit")
        })
        .collect()
}

impl Task for LongDivision {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let dividend = page::size::DIVIDEND_DIGITS.draw(difficulty, rng);
            let divisor = page::size::DIVISOR_DIGITS.draw(difficulty, rng);
            let instance =
                Instance { dividend: number_of(dividend, rng), divisor: number_of(divisor, rng) };
            if instance.divisor() >= 3 {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let dividend =
            is_number(&instance.dividend) && instance.dividend.len() <= DIVIDEND_DIGITS_MAX;
        let allowed = |max: usize| {
            format!("must be a decimal number without leading zeros, of at most {max} digits")
        };
        InvalidInput::unless(dividend, "dividend", allowed(DIVIDEND_DIGITS_MAX))?;

        let divisor = is_number(&instance.divisor) && instance.divisor.len() <= DIVISOR_DIGITS_MAX;
        InvalidInput::unless(divisor, "divisor", allowed(DIVISOR_DIGITS_MAX))?;
        InvalidInput::unless(instance.divisor != "0", "divisor", "must not be 0")
    }

    fn start(_: &Instance) -> State {
        State { pos: 0, q: String::new(), r: 0, last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::below("pos", [state.pos], instance.dividend.len() + 1)?;
        limits::letters("q", &state.q, "0123456789")?;
        limits::length("q", state.q.len(), state.pos)?;
        limits::sayable("r", [state.r])
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if state.pos >= instance.dividend.len() {
            return Err(Illegal("every digit has been used"));
        }

        state.q.push(char::from(b'0' + action.digit));
        state.r = action.remainder;
        state.pos += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let part = state.r * 10 + instance.digit(state.pos)?;
        let divisor = instance.divisor();
        // After a wrong remainder the quotient may have no single digit: no action is prescribed
        // then.
        let digit = u8::try_from(part / divisor).ok().filter(|digit| *digit < 10)?;
        Some(Action { digit, remainder: part % divisor })
    }

    fn violations(
        instance: &Instance,
        _: &State,
        _: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let divisor = instance.divisor();
        found.require(page::REMAINDER_RANGE, after.r < divisor);
        // Modulo 9 throughout: the numbers can have thousands of digits.
        let sum = digit_sum(&after.q) % 9 * (divisor % 9) + after.r % 9;
        found.require(
            page::CASTING_OUT_NINES,
            sum % 9 == digit_sum(&instance.dividend[..after.pos]) % 9,
        );

        found.require(page::LENGTH, after.q.len() == after.pos);

        if Self::ended(instance, after) {
            let exact = big(&after.q) * divisor + after.r == big(&instance.dividend);
            found.require(page::EXACT, exact && after.r < divisor);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.pos == instance.dividend.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        instance.dividend.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let quotient = state.q.trim_start_matches('0');
        json!({ "quotient": if quotient.is_empty() { "0" } else { quotient }, "remainder": state.r.to_string() })
    }
}
