//! Decides if + - * / on exact rationals can reach a target from some numbers, each used once.
//!
//! All values that the smaller subsets can take are listed, and a larger set is cut in two in every
//! way. That decides in microseconds what a search over all orders of calculation decides in
//! minutes.

use num_rational::Ratio;
use num_traits::Zero;

use crate::tasks::action_macros::words;

/// Exact: 10 numbers up to 13 make numerators and denominators below 2^9 · 13^10 < 2^47.
pub type Value = Ratio<i64>;

words!(
    /// The four operations.
    pub enum Operator {
        /// Addition.
        Plus = "+",
        /// Subtraction, the left value minus the right one.
        Minus = "-",
        /// Multiplication.
        Times = "*",
        /// Exact division of the left value by the right one.
        Over = "/",
    }
);

impl Operator {
    /// The operation of a symbol.
    pub fn of(symbol: u8) -> Option<Self> {
        match symbol {
            b'+' => Some(Self::Plus),
            b'-' => Some(Self::Minus),
            b'*' => Some(Self::Times),
            b'/' => Some(Self::Over),
            _ => None,
        }
    }

    /// `None` for a division by 0.
    pub fn apply(self, left: Value, right: Value) -> Option<Value> {
        match self {
            Self::Plus => Some(left + right),
            Self::Minus => Some(left - right),
            Self::Times => Some(left * right),
            Self::Over => (!right.is_zero()).then(|| left / right),
        }
    }
}

/// The operations on two places i < j in the page's order: the operator, and true if the operands
/// are swapped.
pub const CALCS: [(Operator, bool); 6] = [
    (Operator::Plus, false),
    (Operator::Minus, false),
    (Operator::Minus, true),
    (Operator::Times, false),
    (Operator::Over, false),
    (Operator::Over, true),
];

/// The values after an operation: both operands are removed and the result is appended.
pub fn calculated(
    values: &[Value],
    left: usize,
    operator: Operator,
    right: usize,
) -> Option<Vec<Value>> {
    let result = operator.apply(values[left], values[right])?;
    let kept = values
        .iter()
        .enumerate()
        .filter(|(place, _)| *place != left && *place != right)
        .map(|(_, x)| *x);
    Some(kept.chain([result]).collect())
}

/// All calcs of these values, in the page's order, as (left place, operator, right place).
pub fn calcs(count: usize) -> impl Iterator<Item = (usize, Operator, usize)> {
    let pairs = (0..count).flat_map(move |i| (i + 1..count).map(move |j| (i, j)));
    pairs.flat_map(|(i, j)| {
        CALCS.into_iter().map(
            move |(operator, exchanged)| {
                if exchanged { (j, operator, i) } else { (i, operator, j) }
            },
        )
    })
}

/// The calc that the depth-first search finds: the first one, in the page's order, that leaves
/// values which make the target.
pub fn first_calc(values: &[Value], target: Value) -> Option<(usize, Operator, usize)> {
    // Otherwise values that cannot make the target would be searched once for each operation.
    if !makes(values, target) {
        return None;
    }

    calcs(values.len()).find(|(left, operator, right)| {
        calculated(values, *left, *operator, *right).is_some_and(|rest| makes(&rest, target))
    })
}

/// Returns whether the values make the target.
pub fn makes(values: &[Value], target: Value) -> bool {
    // Most sets of seven or more still make the target after a few additions, which is quick to
    // see; the search below is thorough but slow.
    if values.len() > QUICK
        && calculated(values, 0, Operator::Plus, 1).is_some_and(|rest| makes(&rest, target))
    {
        return true;
    }

    let mut subsets = Subsets { values, reach: vec![None; 1 << values.len()] };
    subsets.make((1 << values.len()) - 1, target)
}

/// Sets up to this size are cut into parts whose values can all be listed.
const QUICK: usize = 6;
/// Sets up to this size have their values listed: five numbers take up to 27,142 values, six up to
/// 793,002.
const LISTED: u32 = 5;

/// Subsets of the values as bit sets, with the values that they can take, sorted, once these are
/// needed.
struct Subsets<'a> {
    values: &'a [Value],
    reach: Vec<Option<Vec<Value>>>,
}

/// The cuts of a set in two, each once: the part without the lowest member comes first.
fn cuts(set: usize) -> impl Iterator<Item = (usize, usize)> {
    // The lowest member stays in the second part, so that no cut comes twice.
    let rest = set & (set - 1);
    let mut part = rest;
    std::iter::from_fn(move || {
        if part == 0 {
            return None;
        }
        let cut = (part, set & !part);
        // The next smaller subset of `rest`.
        part = (part - 1) & rest;
        Some(cut)
    })
}

impl Subsets<'_> {
    /// Lists the values of a set and of all that it is made of.
    fn list(&mut self, set: usize) {
        if self.reach[set].is_some() {
            return;
        }

        let mut found = Vec::new();
        if set.is_power_of_two() {
            found.push(self.values[set.trailing_zeros() as usize]);
        }

        for (a, b) in cuts(set) {
            self.list(a);
            self.list(b);
            for x in self.listed(a) {
                for y in self.listed(b) {
                    found.extend(CALCS.into_iter().filter_map(|(operator, exchanged)| {
                        if exchanged { operator.apply(*y, *x) } else { operator.apply(*x, *y) }
                    }));
                }
            }
        }

        found.sort_unstable();
        found.dedup();
        self.reach[set] = Some(found);
    }

    fn listed(&self, set: usize) -> &[Value] {
        self.reach[set].as_deref().unwrap_or_default()
    }

    fn make(&mut self, set: usize, target: Value) -> bool {
        if set.is_power_of_two() {
            return self.values[set.trailing_zeros() as usize] == target;
        }

        let mut cuts: Vec<_> = cuts(set)
            .map(|(a, b)| if a.count_ones() <= b.count_ones() { (a, b) } else { (b, a) })
            .collect();

        // Balanced cuts first: their parts have the fewest values.
        cuts.sort_by_key(|(_, larger)| larger.count_ones());

        cuts.into_iter().any(|(smaller, larger)| {
            self.list(smaller);
            // Both parts are small enough to list: look for a pair of values.
            if larger.count_ones() <= LISTED {
                self.list(larger);
                let values = self.listed(larger);
                return self.listed(smaller).iter().any(|x| {
                    partners(*x, target).any(|y| values.binary_search(&y).is_ok())
                        || (x.is_zero() && target.is_zero())
                });
            }

            // Too many values to list: the larger part must make a partner of one of the smaller
            // part. The values are copied since `make` lists further subsets.
            self.listed(smaller).to_vec().into_iter().any(|x| {
                (x.is_zero() && target.is_zero())
                    || partners(x, target).any(|y| self.make(larger, y))
            })
        })
    }
}

/// The values y for which x + y, x - y, y - x, x * y, x / y or y / x is the target. If x and target
/// are 0, any y will do; the caller handles that.
fn partners(x: Value, target: Value) -> impl Iterator<Item = Value> {
    let by_factor = !x.is_zero();
    let by_divisor = by_factor && !target.is_zero();
    [
        Some(target - x),
        Some(x - target),
        Some(x + target),
        by_factor.then(|| target / x),
        by_divisor.then(|| x / target),
        by_factor.then(|| target * x),
    ]
    .into_iter()
    .flatten()
}
