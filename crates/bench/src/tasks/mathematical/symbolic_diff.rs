//! Symbolic Differentiation: the derivative of an expression, from the leaves up, by the rules of
//! calculus.
//!
//! A step is one node of the expression; its line is the template of the node's derivative.

use std::fmt;

use serde::ser::SerializeSeq;
use serde::{Deserializer, Serializer};

use super::expression::{self, Expression, Symbol};
use super::numeric;
use super::template_value::{NoValue, evaluate};
use crate::output::value::equal;
use crate::tasks::pages::symbolic_diff as page;
use crate::tasks::pattern::{Fields, NUMBER_LIMIT};
use crate::tasks::prefix_term::{self, Symbol as _, Term};
use crate::tasks::prelude::*;

/// The task `symbolic-diff`.
pub struct SymbolicDiff;

/// Nodes of a user's expression.
const NODES_MAX: usize = 1_000;
/// Symbols of a line.
const LINE_MAX: usize = 1_000;
/// The most nodes of the derivative of a drawn instance.
const DERIVATIVE_MAX: usize = 600;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    expression: Given,
}

/// The input expression with its nodes in post-order.
#[derive(Clone, Deserialize)]
#[serde(try_from = "String")]
struct Given {
    expression: Expression,
    nodes: Vec<Node>,
}

/// A node: where its subexpression lies, and the numbers of its children.
#[derive(Clone)]
struct Node {
    start: usize,
    end: usize,
    children: Vec<usize>,
}

impl From<Expression> for Given {
    fn from(expression: Expression) -> Self {
        let mut nodes: Vec<Node> = Vec::new();
        // Starts of the nodes whose children are being numbered, with the children so far.
        let mut open: Vec<(usize, Vec<usize>)> = Vec::new();

        for (place, symbol) in expression.iter().enumerate() {
            open.push((place, Vec::new()));
            if symbol.arity() > 0 {
                continue;
            }

            while let Some((start, children)) =
                open.pop_if(|(start, children)| children.len() == expression[*start].arity())
            {
                nodes.push(Node { start, end: place + 1, children });
                if let Some((_, siblings)) = open.last_mut() {
                    siblings.push(nodes.len() - 1);
                }
            }
        }
        Self { expression, nodes }
    }
}

impl TryFrom<String> for Given {
    type Error = &'static str;

    fn try_from(text: String) -> Result<Self, Self::Error> {
        let expression = expression::read(&text, NODES_MAX)
            .ok_or("is not a prefix expression of at most 1000 nodes")?;
        if expression.iter().any(|symbol| symbol.is_reference()) {
            return Err("d<k> and e<k> stand in action lines only");
        }
        Ok(Self::from(expression))
    }
}

impl Instance {
    /// The symbol of a node, and its children's nodes.
    pub fn node(&self, node: usize) -> Option<(Symbol, &[usize])> {
        let Node { start, children, .. } = self.expression.nodes.get(node)?;
        Some((self.expression.expression[*start], children))
    }
}

impl Serialize for Given {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.expression.serialize(serializer)
    }
}

impl Given {
    fn subexpression(&self, node: usize) -> &[Symbol] {
        let node = &self.nodes[node];
        &self.expression[node.start..node.end]
    }

    /// The template of the node's derivative.
    fn template(&self, node: usize) -> Vec<Symbol> {
        use Symbol::{Add, Cos, Derivative, Div, Exp, Integer, Mul, Power, Sin, Sub};

        let Node { start, children, .. } = &self.nodes[node];
        let child = |place: usize| {
            children
                .get(place)
                .map_or((Integer(0), Integer(0)), |k| (Derivative(*k), Symbol::Given(*k)))
        };

        let ((da, ea), (db, eb)) = (child(0), child(1));

        match self.expression[*start] {
            Symbol::X => vec![Integer(1)],
            Add => vec![Add, da, db],
            Sub => vec![Sub, da, db],
            Mul => vec![Add, Mul, da, eb, Mul, ea, db],
            Div => vec![Div, Sub, Mul, da, eb, Mul, ea, db, Power(2), eb],
            // n - 1 does not leave 2^53 where an input is valid.
            Power(n) => vec![Mul, Mul, Integer(n), Power(n - 1), ea, da],
            Sin => vec![Mul, Cos, ea, da],
            Cos => vec![Mul, Sub, Integer(0), Sin, ea, da],
            Exp => vec![Mul, Exp, ea, da],
            Symbol::Ln => vec![Div, da, ea],
            Integer(_) | Derivative(_) | Symbol::Given(_) => vec![Integer(0)],
        }
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of nodes visited, in post-order.
    pub done: usize,
    derivatives: Vec<Known>,
    last: Last<Action>,
}

/// The derivative of a node.
#[derive(Clone)]
struct Known {
    node: usize,
    derivative: Expression,
}

impl Serialize for Known {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut pair = serializer.serialize_seq(Some(2))?;
        pair.serialize_element(&self.node)?;
        pair.serialize_element(&self.derivative)?;
        pair.end()
    }
}

impl<'de> Deserialize<'de> for Known {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (node, derivative) = Deserialize::deserialize(deserializer)?;
        Ok(Self { node, derivative })
    }
}

impl State {
    fn derivative(&self, node: usize) -> Option<&Expression> {
        // The children's derivatives are the latest.
        self.derivatives
            .iter()
            .rev()
            .find(|known| known.node == node)
            .map(|known| &known.derivative)
    }

    /// The derivative that a template gives the next node.
    fn value(&self, given: &Given, template: &[Symbol]) -> Result<Expression, NoValue> {
        evaluate(template, |symbol| match symbol {
            Symbol::Given(node) => given.subexpression(node),
            Symbol::Derivative(node) => self.derivative(node).map_or(&[], |derivative| derivative),
            _ => &[],
        })
    }
}

/// A template.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Action(Term<Symbol>);

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["<[-+*/^()a-z0-9 ]+>"];

    fn read(_: usize, fields: &Fields<'_>) -> Option<Self> {
        let template = expression::read(fields.text(0)?, LINE_MAX)?;
        (!template.contains(&Symbol::X)).then_some(Action(template))
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// A random tree with leaves x, in prefix order.
fn grow(depth: usize, nodes: usize, rng: &mut TaskRng, tree: &mut Vec<Symbol>) {
    if depth == 0 || nodes <= 1 {
        tree.push(Symbol::X);
    } else if nodes == 2 || rng.chance(1, 3) {
        tree.push(match rng.index(5) {
            0 => Symbol::Sin,
            1 => Symbol::Cos,
            2 => Symbol::Exp,
            3 => Symbol::Ln,
            _ => Symbol::Power(rng.between(2, 5)),
        });
        grow(depth - 1, nodes - 1, rng, tree);
    } else {
        use Symbol::{Add, Div, Mul, Sub};
        tree.push(rng.one_of(&[Add, Add, Sub, Mul, Mul, Div]));
        let left = rng.size(1, nodes - 2);
        grow(depth - 1, left, rng, tree);
        grow(depth - 1, nodes - 1 - left, rng, tree);
    }
}

/// Replaces, with probability 1/2 for each binary node, one child by a constant if it is a bare x.
fn plant_constants(tree: &mut [Symbol], rng: &mut TaskRng) {
    for place in 0..tree.len() {
        if tree[place].arity() == 2 && rng.chance(1, 2) {
            let child =
                if rng.chance(1, 2) { place + 1 } else { prefix_term::end_of(tree, place + 1) };
            if tree[child] == Symbol::X {
                tree[child] = Symbol::Integer(rng.between(2, 9));
            }
        }
    }
}

impl Task for SymbolicDiff {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let depth = page::size::DEPTH.draw(difficulty, rng);
            let nodes = page::size::NODES.draw(difficulty, rng);
            let mut tree = Vec::new();
            grow(depth, nodes, rng, &mut tree);

            // Every binary node keeps an x below it, so that constants are the only subtrees
            // without one.
            plant_constants(&mut tree, rng);

            let fits = page::size::DEPTH.accepts(difficulty, prefix_term::depth(&tree) as u64)
                && page::size::NODES.accepts(difficulty, tree.len() as u64);
            if !fits {
                continue;
            }

            let instance = Instance { expression: Expression::from(tree).into() };
            if let Some((end, _)) = reference_end::<Self>(&instance, u64::MAX)
                && Self::ended(&instance, &end)
                && end.derivatives.iter().all(|root| root.derivative.len() <= DERIVATIVE_MAX)
            {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let exponents = instance.expression.expression.iter().all(|symbol| match symbol {
            Symbol::Power(n) => (n - 1).unsigned_abs() < NUMBER_LIMIT,
            _ => true,
        });
        InvalidInput::unless(
            exponents,
            "expression",
            "an exponent leaves 2^53 when it is lowered by 1",
        )?;

        // Where a reference step would be illegal, none is prescribed: the trace then does not end.
        let end = reference_end::<Self>(instance, u64::MAX);
        let legal = end.is_some_and(|(end, _)| Self::ended(instance, &end));
        InvalidInput::unless(
            legal,
            "expression",
            "its derivative has more than 10000 nodes, or integers beyond 2^53",
        )
    }

    fn start(_: &Instance) -> State {
        State { done: 0, derivatives: Vec::new(), last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let nodes = &instance.expression.nodes;
        limits::at_most("done", state.done, nodes.len())?;

        // The nodes that wait for their parents, in the order in which they were done.
        let mut waiting: Vec<usize> = Vec::new();
        for (number, node) in nodes.iter().enumerate().take(state.done) {
            waiting.truncate(waiting.len() - node.children.len());
            waiting.push(number);
        }

        let held = state.derivatives.iter().map(|known| known.node).eq(waiting.iter().copied());
        InvalidInput::unless(
            held,
            "derivatives",
            format!("must be those of the nodes {waiting:?}"),
        )?;

        let plain = |known: &Known| !known.derivative.iter().any(|symbol| symbol.is_reference());
        InvalidInput::unless(
            state.derivatives.iter().all(plain),
            "derivatives",
            "must have no d<k> and e<k>",
        )
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let given = &instance.expression;
        let node = given.nodes.get(state.done).ok_or(Illegal("every node has its derivative"))?;

        let own = |symbol: &Symbol| match symbol {
            Symbol::Derivative(k) | Symbol::Given(k) => node.children.contains(k),
            _ => true,
        };

        if !action.0.iter().all(own) {
            return Err(Illegal("a line refers to children of its node only"));
        }

        let derivative = state.value(given, &action.0).map_err(|why| match why {
            NoValue::TooLong => Illegal("the derivative has more than 10000 nodes"),
            NoValue::TooLarge => Illegal("an integer of the derivative leaves 2^53"),
        })?;
        // The children's derivatives are the latest ones; the node's own takes their place.
        state.derivatives.truncate(state.derivatives.len() - node.children.len());
        state.derivatives.push(Known { node: state.done, derivative });
        state.done += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if Self::ended(instance, state) {
            return None;
        }
        let template = Term::from(instance.expression.template(state.done));
        // After wrong lines the derivatives may be too long for a legal line.
        state.value(&instance.expression, &template).is_ok().then_some(Action(template))
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // `references` holds for every legal line. By `rule` every derivative is the algorithm's
        // but for the order of the sides of sums and products, which simplification treats alike.
        // `numeric` could not do that: an expression may have no value where it is evaluated.
        let given = &instance.expression;
        let is_leaf = given.nodes[before.done].children.is_empty();
        found.require(page::LINEAR, is_leaf || expression::degree(&action.0) == Some(1));

        let template = given.template(before.done);
        found.require(page::RULE, expression::are_rearranged(&action.0, &template));

        let constants_vanish = after.derivatives.iter().all(|known| {
            *known.derivative == [Symbol::Integer(0)]
                || given.subexpression(known.node).contains(&Symbol::X)
        });
        found.require(page::CONSTANT_ZERO, constants_vanish);

        if Self::ended(instance, after) {
            let agrees = after
                .derivatives
                .last()
                .is_some_and(|root| numeric::agrees(&root.derivative, &given.expression));
            found.require(page::NUMERIC, agrees);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.done == instance.expression.nodes.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        instance.expression.nodes.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let derivative = state.derivatives.last().map(|root| &root.derivative);
        json!({ "derivative": derivative, "nodes": derivative.map_or(0, |derivative| derivative.len()) })
    }

    /// The order of the sides of sums and products does not decide.
    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        let Ok(given) = serde_json::from_value::<Expression>(answer["derivative"].clone()) else {
            return Some(false);
        };
        let (end, _) = reference_end::<Self>(instance, Self::steps_max(instance))?;
        let right = &end.derivatives.last()?.derivative;
        Some(
            expression::are_rearranged(&given, right)
                && equal(&answer["nodes"], &json!(right.len())),
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_numeric_check_passes_right_derivatives_and_sees_wrong_ones() {
        let mut rng = TaskRng::new(11);
        let (mut wrong, mut unseen) = (0, 0);
        for difficulty in Difficulty::ALL {
            for _ in 0..300 {
                let instance = SymbolicDiff::generate(difficulty, &mut rng);
                let (end, _) =
                    reference_end::<SymbolicDiff>(&instance, u64::MAX).expect("the reference ends");
                let derivative = &end.derivatives[0].derivative;

                let expression = &instance.expression.expression;
                assert!(numeric::agrees(derivative, expression), "{expression}: {derivative}");

                let more = [&[Symbol::Add, Symbol::Integer(1)], &derivative[..]].concat();
                wrong += 1;
                unseen += u32::from(numeric::agrees(&more, expression));
            }
        }

        // Some expressions are defined nowhere, or have values near which 1 is lost.
        assert!(unseen * 15 < wrong, "{unseen} of {wrong} wrong derivatives are not seen");
    }
}
