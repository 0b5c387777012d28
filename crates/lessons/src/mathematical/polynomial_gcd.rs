//! Polynomial GCD: the degrees, and the quotient of the leading coefficients in lowest terms.
// From the second division on the divisor is monic.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::mathematical::polynomial::Polynomial;
use prime_bench::tasks::mathematical::polynomial_gcd::{Action, Instance, PolynomialGcd, State};

use crate::Lesson;
use crate::numbers::compared;

pub struct PolynomialGcdLesson;

fn shown(polynomial: &Polynomial) -> String {
    match (polynomial.degree(), polynomial.leading()) {
        (Some(degree), Some(leading)) => format!("{degree:02} {leading}"),
        _ => "zero".to_owned(),
    }
}

impl Lesson for PolynomialGcdLesson {
    type Task = PolynomialGcd;

    fn view(_: &Instance, state: &State) -> String {
        format!("{} by {}", shown(&state.r), shown(&state.b))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = PolynomialGcd::reference(instance, state)?;
        let (Some(degree), Some(leading)) = (state.b.degree(), state.b.leading()) else {
            return Some(String::new());
        };

        let (rest, dividend) = (state.r.degree()?, state.r.leading()?);
        let order = compared(rest, degree, 2);

        Some(match action {
            Action::Monic(_) => order,
            Action::Term(..) if state.b.is_monic() => order,
            Action::Term(..) => {
                format!("{order}{}", quotient(&dividend.to_string(), &leading.to_string()))
            }
        })
    }
}

/// The dividend over the divisor, which is an integer. Each prime factor of the divisor is
/// cancelled if it divides the numerator, which the row of quotient digits, each with its
/// remainder, tells.
fn quotient(dividend: &str, divisor: &str) -> String {
    let (numerator, denominator) = dividend.split_once('/').unwrap_or((dividend, "1"));
    let negative = numerator.starts_with('-') != divisor.starts_with('-');
    let magnitude = |text: &str| text.trim_start_matches('-').parse::<u128>().ok();
    let (Some(mut numerator), Some(denominator), Some(mut divisor)) =
        (magnitude(numerator), magnitude(denominator), magnitude(divisor))
    else {
        return String::new();
    };

    let mut line = String::new();
    for prime in prime_factors(divisor) {
        let mut rest = 0;
        let digits = numerator
            .to_string()
            .chars()
            .filter_map(|c| c.to_digit(10))
            .map(u128::from)
            .collect::<Vec<_>>();

        line += &format!(";{prime}:");
        for digit in digits {
            rest = 10 * rest + digit;
            line += &format!("{}{}", rest / prime, rest % prime);
            rest %= prime;
        }

        if rest == 0 {
            numerator /= prime;
            divisor /= prime;
            line += &format!("={numerator} {divisor}");
        }
    }

    let sign = if negative { '-' } else { '+' };
    format!(
        "{line};{denominator}*{divisor}={} {sign}{numerator}",
        denominator.saturating_mul(divisor)
    )
}

fn prime_factors(mut number: u128) -> Vec<u128> {
    let mut factors = Vec::new();
    let mut prime = 2;

    while prime * prime <= number {
        while number.is_multiple_of(prime) {
            factors.push(prime);
            number /= prime;
        }
        prime += 1;
    }

    factors.extend(Some(number).filter(|number| *number > 1));
    factors
}
