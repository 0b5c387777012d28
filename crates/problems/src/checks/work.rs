//! A static bound on the work of evaluating an expression. CEL loops only over the elements of a
//! value, so shapes bound every loop.

use cel::common::ast::{
    CallExpr, ComprehensionExpr, EntryExpr, Expr, IdedExpr, LiteralValue, operators,
};
use serde_json::Value;

use super::exact;
use super::expression::{Expression, MATCHES};
use super::functions::{DISTINCT, RANGE, SORT, SPLIT, SUM};
use super::interval::Interval;
use super::shape::Shape;
use crate::limits::RANGE_MAX;
use crate::pattern::Pattern;

/// The shapes of an expression's variables.
#[derive(Clone, Copy)]
pub struct Scene<'a> {
    /// The problem's input.
    pub input: &'a Shape,
    /// What an expression sees as `state`: the steps and the answer so far.
    pub state: &'a Shape,
    /// The answer.
    pub answer: &'a Shape,
    /// The step that is judged.
    pub step: &'a Shape,
    /// The step before it.
    pub previous: &'a Shape,
    /// All steps so far.
    pub steps: &'a Shape,
    /// The input itself, whose numbers bound ranges.
    pub given: &'a Value,
}

/// Upper bound on the work, in units of 20 to 150 ns: one per node evaluated and one per part of a
/// value copied, compared or formatted into an error.
pub fn bound(expression: &Expression, scene: &Scene<'_>) -> u64 {
    let mut bounds = Bounds { scene, patterns: &expression.patterns, bound: Vec::new() };
    bounds.of(&expression.tree).work
}

/// Parts of a number as text: an integer takes up to 20 digits, a double up to 330.
const DIGITS_PARTS: [u64; 2] = [2, 24];

/// Work of starting a match, which takes memory from a pool.
const MATCH_WORK: u64 = 10;

/// The work of an expression and the shape of its result.
struct Cost {
    work: u64,
    shape: Shape,
}

impl Cost {
    fn small(work: u64) -> Self {
        Self { work, shape: Shape::SMALL }
    }
}

pub(super) struct Bounds<'a> {
    scene: &'a Scene<'a>,
    patterns: &'a [Pattern],
    /// Bindings of the enclosing comprehensions, innermost last.
    bound: Vec<(&'a str, Shape)>,
}

fn sum(work: &[u64]) -> u64 {
    work.iter().fold(0, |sum, more| sum.saturating_add(*more))
}

impl<'a> Bounds<'a> {
    /// Work of a look-up, which goes through the enclosing scopes.
    fn look_up(&self) -> u64 {
        // Each scope binds two names.
        1 + self.bound.len() as u64 / 2
    }

    fn of(&mut self, tree: &'a IdedExpr) -> Cost {
        match &tree.expr {
            Expr::Literal(LiteralValue::String(text)) => {
                Cost { work: 1, shape: Shape::text(text.inner().len() as u64) }
            }
            Expr::Literal(LiteralValue::Bytes(bytes)) => {
                Cost { work: 1, shape: Shape::text(bytes.inner().len() as u64) }
            }
            Expr::Literal(LiteralValue::Double(_)) => {
                Cost { work: 1, shape: Shape::Atom { parts: 1, fraction: true } }
            }
            Expr::Literal(_) => Cost::small(1),
            Expr::Ident(name) => Cost { work: self.look_up(), shape: self.named(name) },
            Expr::Select(select) => {
                let operand = self.of(&select.operand);
                let shape =
                    if select.test { Shape::SMALL } else { operand.shape.field(&select.field) };
                Cost { work: sum(&[operand.work, self.look_up()]), shape }
            }
            Expr::List(list) => {
                let (mut work, mut parts, mut item) = (1, 1, None::<Shape>);
                for element in &list.elements {
                    let cost = self.of(element);
                    work = sum(&[work, cost.work, cost.shape.parts()]);
                    parts = sum(&[parts, cost.shape.parts()]);
                    match &mut item {
                        Some(item) => item.widen(&cost.shape),
                        None => item = Some(cost.shape),
                    }
                }

                Cost {
                    work,
                    shape: Shape::list(
                        list.elements.len() as u64,
                        item.unwrap_or(Shape::SMALL),
                        parts,
                    ),
                }
            }
            Expr::Map(map) => {
                let (mut work, mut parts) = (1, 1);
                for entry in &map.entries {
                    if let EntryExpr::MapEntry(entry) = &entry.expr {
                        for tree in [&entry.key, &entry.value] {
                            let cost = self.of(tree);
                            work = sum(&[work, cost.work, cost.shape.parts()]);
                            parts = sum(&[parts, cost.shape.parts()]);
                        }
                    }
                }

                Cost { work, shape: Shape::Any { parts } }
            }
            Expr::Call(call) => self.call(call),
            Expr::Comprehension(comprehension) => self.comprehension(comprehension),
            // Never reached: such expressions are refused when they are read.
            Expr::Struct(_) | Expr::Unspecified => Cost::small(u64::MAX),
        }
    }

    fn named(&self, name: &str) -> Shape {
        if let Some((_, shape)) = self.bound.iter().rev().find(|(bound, _)| *bound == name) {
            return shape.clone();
        }

        match name {
            "input" => self.scene.input.clone(),
            "state" => self.scene.state.clone(),
            "answer" => self.scene.answer.clone(),
            "step" => self.scene.step.clone(),
            "previous" => self.scene.previous.clone(),
            "steps" => self.scene.steps.clone(),
            _ => Shape::SMALL,
        }
    }

    fn call(&mut self, call: &'a CallExpr) -> Cost {
        let of_target = call.target.as_deref().map(|target| self.of(target));
        let mut costs: Vec<Cost> = of_target.into_iter().collect();
        for argument in &call.args {
            costs.push(self.of(argument));
        }

        let work = costs.iter().fold(1, |work, cost| sum(&[work, cost.work]));
        let parts = costs.iter().fold(0, |parts, cost| sum(&[parts, cost.shape.parts()]));
        let is_fraction = costs.iter().any(|cost| cost.shape.is_fraction());
        let shapes: Vec<Shape> = costs.into_iter().map(|cost| cost.shape).collect();

        match (call.func_name.as_str(), shapes.as_slice()) {
            (
                operators::LOGICAL_AND
                | operators::LOGICAL_OR
                | operators::LOGICAL_NOT
                | operators::NOT_STRICTLY_FALSE,
                _,
            )
            | ("size", [Shape::List { .. } | Shape::Map { .. }]) => Cost::small(work),
            (operators::CONDITIONAL, [_, yes, no]) => {
                let mut shape = yes.clone();
                shape.widen(no);
                Cost { work, shape }
            }
            (operators::ADD, [one, other]) => {
                Cost { work: sum(&[work, parts]), shape: one.joined(other) }
            }
            (operators::INDEX, [list, index]) => {
                // A literal key leads to the bound of its own field.
                if let Some(name) = call.args.last().and_then(text_of) {
                    return Cost { work: sum(&[work, index.parts()]), shape: list.field(name) };
                }
                // A fractional index is an error that quotes the list.
                let quoted = if index.is_fraction() { list.parts() } else { 0 };
                Cost { work: sum(&[work, index.parts(), quoted]), shape: list.indexed() }
            }
            // Each element is compared, and a comparison may write the value into an error.
            (exact::IN, [value, list]) => {
                Cost::small(sum(&[work, parts, list.len().saturating_mul(value.parts())]))
            }
            (SPLIT, [text, separator]) => {
                let bytes = text.bytes();
                // A piece is a part, and its text is no longer than the whole.
                let parts = sum(&[bytes, text.parts(), 2]);
                Cost {
                    work: sum(&[work, parts, separator.parts()]),
                    shape: Shape::list(sum(&[bytes, 1]), Shape::text(bytes), parts),
                }
            }
            // Its elements are all compared, and written out or copied.
            (SORT, [list]) => {
                let comparisons = list.len().saturating_mul(log2(list.len()));
                let compared = comparisons.saturating_mul(list.element().parts());
                Cost { work: sum(&[work, parts, parts, compared]), shape: list.clone() }
            }
            (DISTINCT, [list]) => {
                Cost { work: sum(&[work, parts.saturating_mul(8)]), shape: list.clone() }
            }
            (SUM, [list]) => Cost {
                work: sum(&[work, parts]),
                shape: Shape::Atom { parts: 1, fraction: list.element().is_fraction() },
            },
            (RANGE, _) => {
                let len = self.range_len(call);
                Cost { work: sum(&[work, len]), shape: Shape::list(len, Shape::SMALL, len + 1) }
            }
            ("dyn", [value]) => Cost { work, shape: value.clone() },
            ("double", _) => {
                Cost { work: sum(&[work, parts]), shape: Shape::Atom { parts: 1, fraction: true } }
            }
            ("string" | "bytes", _) => {
                let parts = sum(&[parts, DIGITS_PARTS[usize::from(is_fraction)]]);
                Cost { work: sum(&[work, parts]), shape: Shape::Atom { parts, fraction: false } }
            }
            (MATCHES, [text, _]) => {
                // A part is 16 bytes.
                let per_part = self
                    .pattern(call)
                    .map_or(u64::MAX, |pattern| pattern.work_per_byte().saturating_mul(16));
                Cost::small(sum(&[work, MATCH_WORK, text.parts().saturating_mul(per_part)]))
            }
            // Comparisons, arithmetic, and the rest of the functions.
            _ => Cost {
                work: sum(&[work, parts]),
                shape: Shape::Atom { parts: 1, fraction: is_fraction },
            },
        }
    }

    /// The value of `input` or of a field below it; `None` where a loop has taken the name.
    pub(super) fn given(&self, tree: &IdedExpr) -> Option<&'a Value> {
        match &tree.expr {
            Expr::Ident(name) if name == "input" => {
                let is_free = self.bound.iter().all(|(bound, _)| bound != name);
                is_free.then_some(self.scene.given)
            }
            Expr::Select(select) if !select.test => self.given(&select.operand)?.get(&select.field),
            _ => None,
        }
    }

    /// A bound on the `size` of a value: its elements, or its characters.
    pub(super) fn size_of(&mut self, tree: &'a IdedExpr) -> u64 {
        let shape = self.of(tree).shape;
        shape.len().max(shape.bytes())
    }

    /// A bound on the numbers of a `range`.
    fn range_len(&mut self, call: &'a CallExpr) -> u64 {
        let bounds: Vec<Interval> = call.args.iter().map(|tree| self.interval(tree)).collect();
        let count = match bounds.as_slice() {
            [to] => to.most,
            [from, to] => to.most.saturating_sub(from.least),
            _ => i128::MAX,
        };
        u64::try_from(count.max(0)).unwrap_or(u64::MAX).min(RANGE_MAX)
    }

    fn pattern(&self, call: &CallExpr) -> Option<&'a Pattern> {
        let Expr::Literal(LiteralValue::Int(number)) = &call.args.first()?.expr else {
            return None;
        };
        self.patterns.get(usize::try_from(*number.inner()).ok()?)
    }

    /// A macro's loop: its accumulator is a boolean, a count, or the list that `map` and `filter`
    /// append to.
    fn comprehension(&mut self, comprehension: &'a ComprehensionExpr) -> Cost {
        let range = self.of(&comprehension.iter_range);
        let init = self.of(&comprehension.accu_init);
        let scopes = self.bound.len();

        // Enough for a boolean or a count; a list gets its shape below.
        self.bound.push((&comprehension.accu_var, Shape::SMALL));
        self.bound.push((&comprehension.iter_var, range.shape.element()));

        let condition = self.of(&comprehension.loop_cond);
        let step = self.of(&comprehension.loop_step);
        let item = appended(comprehension)
            .map(|tree| (self.of(tree).shape, is_name(tree, &comprehension.iter_var)));
        let result = self.of(&comprehension.result);
        self.bound.truncate(scopes);

        let len = range.shape.len();
        let (of_list, shape) = match item {
            // The elements together are no larger than the value they come from.
            Some((item, true)) => {
                (range.shape.parts(), Shape::list(len, item, range.shape.parts()))
            }
            Some((item, false)) => {
                let parts = len.saturating_mul(item.parts()).saturating_add(1);
                (parts, Shape::list(len, item, parts))
            }
            None => (0, Shape::SMALL),
        };

        let loops = len.saturating_mul(sum(&[condition.work, step.work, 2]));
        // Each element is copied once.
        let copies = range.shape.parts();
        Cost { work: sum(&[range.work, init.work, copies, loops, of_list, result.work, 1]), shape }
    }
}

/// Most comparisons of one element while a list of this length is sorted.
fn log2(len: u64) -> u64 {
    u64::from(u64::BITS - len.leading_zeros())
}

/// The text of a literal.
fn text_of(tree: &IdedExpr) -> Option<&str> {
    let Expr::Literal(LiteralValue::String(text)) = &tree.expr else { return None };
    Some(text.inner())
}

fn is_name(tree: &IdedExpr, name: &str) -> bool {
    matches!(&tree.expr, Expr::Ident(found) if found == name)
}

/// What `map` or `filter` appends: the `x` of `@result + [x]`, or of
/// `guard ? @result + [x] : @result`.
fn appended(comprehension: &ComprehensionExpr) -> Option<&IdedExpr> {
    let Expr::List(start) = &comprehension.accu_init.expr else { return None };
    let Expr::Call(step) = &comprehension.loop_step.expr else { return None };
    let step = match (step.func_name.as_str(), step.args.as_slice()) {
        (operators::CONDITIONAL, [_, IdedExpr { expr: Expr::Call(step), .. }, _]) => step,
        _ => step,
    };

    match (start.elements.as_slice(), step.func_name.as_str(), step.args.as_slice()) {
        ([], operators::ADD, [_, IdedExpr { expr: Expr::List(list), .. }]) => list.elements.first(),
        _ => None,
    }
}
