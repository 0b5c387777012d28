//! Finds bounds on the integer value of an expression, from its text and the problem's input. They
//! bound the length of a `range`.

use cel::common::ast::{Expr, IdedExpr, LiteralValue, operators};
use serde_json::Value;

use super::work::Bounds;

/// The range of integers that a value may have. A value that is not an integer cannot bound a
/// range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Interval {
    /// Lower bound, inclusive.
    pub least: i128,
    /// Upper bound, inclusive.
    pub most: i128,
}

impl Interval {
    const ANY: Self = Self { least: -(1 << 63), most: (1 << 64) - 1 };

    fn exactly(whole: i128) -> Self {
        Self { least: whole, most: whole }
    }

    fn plus(self, other: Self) -> Self {
        Self { least: self.least + other.least, most: self.most + other.most }.within()
    }

    fn minus(self, other: Self) -> Self {
        Self { least: self.least - other.most, most: self.most - other.least }.within()
    }

    fn times(self, other: Self) -> Self {
        let products = [self.least, self.most]
            .into_iter()
            .flat_map(|one| [other.least, other.most].map(|other| one.saturating_mul(other)));
        let (least, most) = products.fold((i128::MAX, i128::MIN), |(least, most), product| {
            (least.min(product), most.max(product))
        });
        Self { least, most }.within()
    }

    /// A result beyond the integers is an error of the evaluation, not a value.
    fn within(self) -> Self {
        Self {
            least: self.least.clamp(Self::ANY.least, Self::ANY.most),
            most: self.most.clamp(Self::ANY.least, Self::ANY.most),
        }
    }
}

impl<'a> Bounds<'a> {
    pub(super) fn interval(&mut self, tree: &'a IdedExpr) -> Interval {
        match &tree.expr {
            Expr::Literal(LiteralValue::Int(whole)) => Interval::exactly((*whole.inner()).into()),
            Expr::Literal(LiteralValue::UInt(whole)) => Interval::exactly((*whole.inner()).into()),
            Expr::Select(_) => {
                let given = self.given(tree).and_then(Value::as_number);
                let whole = given.and_then(|given| match (given.as_i64(), given.as_u64()) {
                    (Some(whole), _) => Some(i128::from(whole)),
                    (None, Some(whole)) => Some(i128::from(whole)),
                    (None, None) => None,
                });
                whole.map_or(Interval::ANY, Interval::exactly)
            }
            Expr::Call(call) => {
                let operands: Vec<&IdedExpr> =
                    call.target.as_deref().into_iter().chain(&call.args).collect();
                match (call.func_name.as_str(), operands.as_slice()) {
                    // A name alone, whose bound costs nothing to find.
                    ("size", [value]) if is_path(value) => {
                        let most = self.size_of(value).into();
                        Interval { least: 0, most }
                    }
                    (operators::ADD, [one, other]) => self.interval(one).plus(self.interval(other)),
                    (operators::SUBSTRACT, [one, other]) => {
                        self.interval(one).minus(self.interval(other))
                    }
                    (operators::MULTIPLY, [one, other]) => {
                        self.interval(one).times(self.interval(other))
                    }
                    _ => Interval::ANY,
                }
            }
            _ => Interval::ANY,
        }
    }
}

/// Returns whether it is a name, or fields or elements of one.
fn is_path(tree: &IdedExpr) -> bool {
    match &tree.expr {
        Expr::Ident(_) => true,
        Expr::Select(select) => is_path(&select.operand),
        Expr::Call(call) if call.func_name == operators::INDEX => match call.args.as_slice() {
            [value, at] => is_path(value) && matches!(at.expr, Expr::Literal(_)),
            _ => false,
        },
        _ => false,
    }
}
