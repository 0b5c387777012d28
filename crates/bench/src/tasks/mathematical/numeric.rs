//! Decides if a derivative agrees numerically with that of an expression. Both are evaluated at
//! fixed complex points (where ln has no gaps), with a bound on the rounding errors of each value.

use super::expression::Symbol;

/// Fixed points without a pattern; near 0, so that towers of exp stay small at some of them, and
/// none on an axis.
const POINTS: [(f64, f64); 8] = [
    (0.71, 0.33),
    (-0.42, 0.87),
    (1.37, -0.24),
    (0.18, -0.59),
    (-1.13, -0.46),
    (0.53, 1.21),
    (2.09, 0.15),
    (-0.09, 0.05),
];

/// A complex number that is known up to an error.
#[derive(Clone, Copy)]
struct Number {
    re: f64,
    im: f64,
    error: f64,
}

impl Number {
    const ZERO: Self = Self::exact(0.0);

    const fn exact(re: f64) -> Self {
        Self { re, im: 0.0, error: 0.0 }
    }

    /// A result whose arguments' errors make `error`, with the rounding of the operation itself.
    fn rounded(re: f64, im: f64, error: f64) -> Self {
        Self { re, im, error: error + 8.0 * f64::EPSILON * re.hypot(im) + f64::MIN_POSITIVE }
    }

    fn abs(self) -> f64 {
        self.re.hypot(self.im)
    }

    fn plus(self, other: Self) -> Self {
        Self::rounded(self.re + other.re, self.im + other.im, self.error + other.error)
    }

    fn minus(self, other: Self) -> Self {
        Self::rounded(self.re - other.re, self.im - other.im, self.error + other.error)
    }

    fn times(self, other: Self) -> Self {
        let error = self.abs() * other.error + other.abs() * self.error + self.error * other.error;
        Self::rounded(
            self.re * other.re - self.im * other.im,
            self.re * other.im + self.im * other.re,
            error,
        )
    }

    fn over(self, other: Self) -> Self {
        let (abs, norm) = (other.abs(), other.re * other.re + other.im * other.im);
        let (re, im) = (
            (self.re * other.re + self.im * other.im) / norm,
            (self.im * other.re - self.re * other.im) / norm,
        );

        // If the square overflows or vanishes, nothing is known about the quotient.
        let room = if norm.is_normal() { (abs - other.error).max(0.0) } else { 0.0 };
        Self::rounded(re, im, (self.error + re.hypot(im) * other.error) / room)
    }

    fn exp(self) -> Self {
        let size = self.re.exp();
        Self::rounded(
            size * self.im.cos(),
            size * self.im.sin(),
            size * (self.error.exp_m1() + 4.0 * f64::EPSILON * self.abs()),
        )
    }

    fn ln(self) -> Self {
        let room = (self.abs() - self.error).max(0.0);
        Self::rounded(
            self.abs().ln(),
            self.im.atan2(self.re),
            self.error / room + 8.0 * f64::EPSILON,
        )
    }

    /// A bound on how much sin and cos move within the error.
    fn wave_error(self) -> f64 {
        (self.im.abs() + self.error).cosh() * (self.error + 4.0 * f64::EPSILON * self.abs())
    }

    fn sin(self) -> Self {
        Self::rounded(
            self.re.sin() * self.im.cosh(),
            self.re.cos() * self.im.sinh(),
            self.wave_error(),
        )
    }

    fn cos(self) -> Self {
        Self::rounded(
            self.re.cos() * self.im.cosh(),
            -self.re.sin() * self.im.sinh(),
            self.wave_error(),
        )
    }

    fn power(self, exponent: i64) -> Self {
        let (mut result, mut square, mut left) = (Self::exact(1.0), self, exponent.unsigned_abs());
        while left > 0 {
            if left % 2 == 1 {
                result = result.times(square);
            }
            square = square.times(square);
            left /= 2;
        }

        if exponent < 0 { Self::exact(1.0).over(result) } else { result }
    }

    /// Returns whether two values may be the same; a value that overflows or is undefined may be
    /// any.
    fn may_equal(self, other: Self) -> bool {
        let (distance, error) = (self.minus(other).abs(), 4.0 * (self.error + other.error));
        distance <= error || distance.is_nan() || error.is_nan()
    }
}

/// A value with its derivative.
#[derive(Clone, Copy)]
struct Dual {
    value: Number,
    slope: Number,
}

#[expect(clippy::cast_precision_loss, reason = "integers of expressions lie below 2^53")]
fn integer(value: i64) -> Number {
    Number::exact(value as f64)
}

fn at_point(expression: &[Symbol], x: Number) -> Option<Dual> {
    // Read from the right, so that a symbol finds its arguments on the stack, the first on top.
    let mut stack: Vec<Dual> = Vec::new();

    for symbol in expression.iter().rev() {
        let dual = match symbol {
            Symbol::X => Dual { value: x, slope: Number::exact(1.0) },
            Symbol::Integer(value) => Dual { value: integer(*value), slope: Number::ZERO },
            Symbol::Derivative(_) | Symbol::Given(_) => return None,
            _ => {
                let u = stack.pop()?;
                let chain =
                    |value: Number, outer: Number| Dual { value, slope: outer.times(u.slope) };

                match symbol {
                    Symbol::Sin => chain(u.value.sin(), u.value.cos()),
                    Symbol::Cos => chain(u.value.cos(), Number::ZERO.minus(u.value.sin())),
                    Symbol::Exp => chain(u.value.exp(), u.value.exp()),
                    Symbol::Ln => chain(u.value.ln(), Number::exact(1.0).over(u.value)),
                    // The general rule would take 0 times a power of -1, which is undefined at 0.
                    Symbol::Power(0) => Dual { value: Number::exact(1.0), slope: Number::ZERO },
                    Symbol::Power(n) => {
                        chain(u.value.power(*n), integer(*n).times(u.value.power(*n - 1)))
                    }
                    _ => binary(*symbol, u, stack.pop()?),
                }
            }
        };
        stack.push(dual);
    }

    stack.pop()
}

fn binary(symbol: Symbol, u: Dual, v: Dual) -> Dual {
    match symbol {
        Symbol::Add => Dual { value: u.value.plus(v.value), slope: u.slope.plus(v.slope) },
        Symbol::Sub => Dual { value: u.value.minus(v.value), slope: u.slope.minus(v.slope) },
        Symbol::Mul => Dual {
            value: u.value.times(v.value),
            slope: u.slope.times(v.value).plus(u.value.times(v.slope)),
        },
        _ => {
            let value = u.value.over(v.value);
            Dual { value, slope: u.slope.minus(value.times(v.slope)).over(v.value) }
        }
    }
}

/// Returns whether `derivative` has the value of the expression's derivative at every point.
pub fn agrees(derivative: &[Symbol], expression: &[Symbol]) -> bool {
    POINTS.iter().all(|(re, im)| {
        let x = Number { re: *re, im: *im, error: 0.0 };
        match (at_point(derivative, x), at_point(expression, x)) {
            (Some(claimed), Some(right)) => claimed.value.may_equal(right.slope),
            _ => false,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::super::expression::read;
    use super::*;

    fn agree(derivative: &str, expression: &str) -> bool {
        let read = |text| read(text, 1_000).expect("an expression");
        agrees(&read(derivative), &read(expression))
    }

    #[test]
    fn right_derivatives_agree_however_they_are_written_and_wrong_ones_do_not() {
        assert!(agree("(+ x x)", "(^ x 2)"));
        assert!(agree("(/ 1 x)", "(ln x)"));
        assert!(agree("(/ 1 (* x (ln (* 3 x))))", "(ln (ln (* 3 x)))"));
        assert!(agree("(+ (^ (sin x) 2) (^ (cos x) 2))", "x"));
        assert!(agree("(* (* 3 (exp (* 3 x))) (cos (exp (* 3 x))))", "(sin (exp (* 3 x)))"));
        assert!(agree("(/ -2 (^ x 3))", "(^ x -2)"));
        assert!(!agree("(* 2 x)", "(^ x 3)"));
        assert!(!agree("(sin x)", "(cos x)"));
        assert!(!agree("0", "(exp (sin (^ x 5)))"));
    }
}
