//! Sets of literals with at most one of each variable: clauses, and assignments as the literals
//! that are true. A literal is a DIMACS integer: variable v >= 1, `v` or `-v`.

use serde::{Deserialize, Serialize};

/// A set is two machine words a sign.
pub const VARIABLES_MAX: usize = 128;

/// A set of literals v or -v, in which no variable has both signs: a clause or an assignment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Vec<i64>", into = "Vec<i64>")]
pub struct Literals {
    positive: u128,
    negative: u128,
}

/// A list that is not a set of literals.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "must be literals v or -v of variables 1 to {VARIABLES_MAX}, variables ascending, each once"
)]
pub struct NotLiterals;

fn bit_of(literal: i64) -> Option<u128> {
    let variable = usize::try_from(literal.unsigned_abs()).ok()?;
    (1..=VARIABLES_MAX).contains(&variable).then(|| 1 << (variable - 1))
}

/// The variables of a bit set, ascending.
fn variables_of(mut set: u128) -> impl Iterator<Item = i64> {
    std::iter::from_fn(move || {
        let place = (set != 0).then(|| set.trailing_zeros())?;
        // Clears the lowest bit, the one just found.
        set &= set - 1;
        Some(i64::from(place) + 1)
    })
}

impl TryFrom<Vec<i64>> for Literals {
    type Error = NotLiterals;

    fn try_from(literals: Vec<i64>) -> Result<Self, NotLiterals> {
        let ascending = literals.is_sorted_by(|a, b| a.unsigned_abs() < b.unsigned_abs());
        let known = literals.iter().all(|literal| bit_of(*literal).is_some());
        if ascending && known { Ok(literals.into_iter().collect()) } else { Err(NotLiterals) }
    }
}

impl From<Literals> for Vec<i64> {
    fn from(literals: Literals) -> Self {
        literals.iter().collect()
    }
}

impl FromIterator<i64> for Literals {
    fn from_iter<I: IntoIterator<Item = i64>>(literals: I) -> Self {
        let mut set = Self::default();
        literals.into_iter().for_each(|literal| set.insert(literal));
        set
    }
}

impl Literals {
    /// The literals, by ascending variable.
    pub fn iter(self) -> impl Iterator<Item = i64> {
        let sign = move |variable: i64| if self.contains(-variable) { -variable } else { variable };
        variables_of(self.variables()).map(sign)
    }

    /// Number of literals.
    pub fn len(self) -> u32 {
        self.variables().count_ones()
    }

    /// Returns whether the set has no literal.
    pub fn is_empty(self) -> bool {
        self.variables() == 0
    }

    fn variables(self) -> u128 {
        self.positive | self.negative
    }

    /// Returns whether all variables are among the first `count`.
    pub fn are_among(self, count: usize) -> bool {
        // A shift by all 128 bits overflows: every variable is among the first 128.
        self.variables().checked_shr(u32::try_from(count).unwrap_or(u32::MAX)).unwrap_or(0) == 0
    }

    /// Returns whether the literal is in the set.
    pub fn contains(self, literal: i64) -> bool {
        let signed = if literal < 0 { self.negative } else { self.positive };
        bit_of(literal).is_some_and(|bit| signed & bit != 0)
    }

    /// Returns whether the literal or its negation is in the set.
    pub fn mentions(self, literal: i64) -> bool {
        bit_of(literal).is_some_and(|bit| self.variables() & bit != 0)
    }

    /// Adds a literal whose variable is not in the set.
    pub fn insert(&mut self, literal: i64) {
        let bit = bit_of(literal).expect("invariant: literals are checked where they are read");
        *(if literal < 0 { &mut self.negative } else { &mut self.positive }) |= bit;
    }

    /// Removes a literal, if it is in the set.
    pub fn remove(&mut self, literal: i64) {
        let bit = bit_of(literal).unwrap_or(0);
        *(if literal < 0 { &mut self.negative } else { &mut self.positive }) &= !bit;
    }

    /// The set without a literal.
    #[must_use]
    pub fn without(mut self, literal: i64) -> Self {
        self.remove(literal);
        self
    }

    /// Returns whether the sets share a literal: a clause is true under an assignment.
    pub fn meets(self, other: Self) -> bool {
        self.positive & other.positive | self.negative & other.negative != 0
    }

    /// Returns whether the other set has all literals of this one.
    pub fn is_subset_of(self, other: Self) -> bool {
        self.positive & !other.positive | self.negative & !other.negative == 0
    }

    /// The negations of these literals.
    #[must_use]
    pub fn negated(self) -> Self {
        Self { positive: self.negative, negative: self.positive }
    }

    /// The literals whose variables the other set does not mention.
    #[must_use]
    pub fn unmentioned_by(self, other: Self) -> Self {
        let kept = !other.variables();
        Self { positive: self.positive & kept, negative: self.negative & kept }
    }

    /// The resolvent of two clauses, if exactly one variable occurs in them with opposite signs.
    pub fn resolvent(self, other: Self) -> Option<Self> {
        let clash = self.positive & other.negative | self.negative & other.positive;
        // With two clashing variables every resolvent would be a tautology.
        clash.is_power_of_two().then_some(Self {
            positive: (self.positive | other.positive) & !clash,
            negative: (self.negative | other.negative) & !clash,
        })
    }
}

/// The literals that occur in some clauses, of both signs.
#[derive(Clone, Copy, Debug, Default)]
pub struct Occurrences {
    positive: u128,
    negative: u128,
}

impl Occurrences {
    /// Adds the literals of a clause.
    pub fn add(&mut self, clause: Literals) {
        self.positive |= clause.positive;
        self.negative |= clause.negative;
    }

    /// Returns whether the literal occurs in a clause.
    pub fn contains(self, literal: i64) -> bool {
        let signed = if literal < 0 { self.negative } else { self.positive };
        bit_of(literal).is_some_and(|bit| signed & bit != 0)
    }

    /// Returns whether some variable occurs with one sign only.
    pub fn any_pure(self) -> bool {
        // A variable that occurs with both signs has its bit in both.
        self.positive != self.negative
    }

    /// The literal of the lowest variable that occurs with one sign only.
    pub fn first_pure(self) -> Option<i64> {
        let variable = variables_of(self.positive ^ self.negative).next()?;
        let negative = bit_of(variable).is_some_and(|bit| self.negative & bit != 0);
        Some(if negative { -variable } else { variable })
    }

    /// The lowest variable that occurs.
    pub fn first_variable(self) -> Option<i64> {
        variables_of(self.positive | self.negative).next()
    }
}

#[cfg(test)]
mod tests {
    use super::Literals;

    fn set(literals: &[i64]) -> Literals {
        Literals::try_from(literals.to_vec()).expect("literals")
    }

    #[test]
    fn only_ascending_variables_are_read() {
        assert_eq!(Vec::from(set(&[-1, 2, -128])), [-1, 2, -128]);
        for wrong in [vec![0], vec![1, -1], vec![2, 1], vec![129], vec![1, 1], vec![i64::MIN]] {
            assert!(Literals::try_from(wrong.clone()).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn one_clash_makes_a_resolvent() {
        assert_eq!(set(&[1, -2]).resolvent(set(&[2, 3])), Some(set(&[1, 3])));
        assert_eq!(set(&[1]).resolvent(set(&[-1])), Some(set(&[])));
        assert_eq!(set(&[1, 2]).resolvent(set(&[-1, -2])), None);
        assert_eq!(set(&[1, 2]).resolvent(set(&[1, 3])), None);
    }
}
