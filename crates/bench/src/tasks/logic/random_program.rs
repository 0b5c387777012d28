//! Random programs for type inference, grown towards a type.

use super::type_program::joined;
use crate::tasks::TaskRng;

/// A type to grow towards.
#[derive(Clone, PartialEq)]
enum Goal {
    Int,
    Bool,
    Arrow(Box<Goal>, Box<Goal>),
}

/// The possible uses of a variable.
#[derive(Clone)]
enum Bound {
    As(Goal),
    /// Usable at any type t -> t.
    Identity,
}

/// Int 1/2, Bool 1/3, else an arrow; at depth 0 no arrow.
fn random_goal(depth: usize, rng: &mut TaskRng) -> Goal {
    match rng.index(if depth == 0 { 5 } else { 6 }) {
        0..=2 => Goal::Int,
        3..=4 => Goal::Bool,
        _ => arrow(random_goal(depth - 1, rng), random_goal(depth - 1, rng)),
    }
}

fn arrow(left: Goal, right: Goal) -> Goal {
    Goal::Arrow(Box::new(left), Box::new(right))
}

#[derive(Default)]
struct Growth {
    pieces: Vec<String>,
    /// Places of the leaves among the pieces.
    leaves: Vec<usize>,
    binders: usize,
    scope: Vec<(String, Bound)>,
}

impl Growth {
    fn put(&mut self, piece: &str) {
        self.pieces.push(piece.to_owned());
    }

    fn put_leaf(&mut self, piece: &str) {
        self.leaves.push(self.pieces.len());
        self.put(piece);
    }

    fn binder(&mut self) -> String {
        self.binders += 1;
        format!("x{}", self.binders)
    }

    /// Grows a body in which the name is bound.
    fn under(&mut self, name: &str, bound: Bound, goal: &Goal, nodes: usize, rng: &mut TaskRng) {
        self.scope.push((name.to_owned(), bound));
        self.grow(goal, nodes, rng);
        self.scope.pop();
    }

    fn lam(&mut self, left: &Goal, right: &Goal, nodes: usize, rng: &mut TaskRng) {
        let name = self.binder();
        for piece in ["(", "lam", &name] {
            self.put(piece);
        }
        self.under(&name, Bound::As(left.clone()), right, nodes.saturating_sub(1), rng);
        self.put(")");
    }

    fn leaf(&mut self, goal: &Goal, rng: &mut TaskRng) {
        let fits = |bound: &Bound| match (bound, goal) {
            (Bound::As(known), _) => known == goal,
            (Bound::Identity, Goal::Arrow(left, right)) => left == right,
            _ => false,
        };

        let mut fitting: Vec<String> = self
            .scope
            .iter()
            .filter(|(_, bound)| fits(bound))
            .map(|(name, _)| name.clone())
            .collect();

        let binary = |result: Goal| arrow(Goal::Int, arrow(Goal::Int, result));
        match goal {
            Goal::Int => fitting.push(rng.index(10).to_string()),
            Goal::Bool => fitting.push(rng.one_of(&["true", "false"]).to_owned()),
            _ if *goal == binary(Goal::Int) => fitting.push("add".to_owned()),
            _ if *goal == binary(Goal::Bool) => fitting.push("eq".to_owned()),
            _ if *goal == arrow(Goal::Bool, Goal::Bool) => fitting.push("not".to_owned()),
            Goal::Arrow(left, right) if fitting.is_empty() => return self.lam(left, right, 0, rng),
            Goal::Arrow(..) => {}
        }

        let chosen = rng.index(fitting.len());
        self.put_leaf(&fitting[chosen]);
    }

    /// Grows a term of about `nodes` nodes.
    fn grow(&mut self, goal: &Goal, nodes: usize, rng: &mut TaskRng) {
        if let Goal::Arrow(left, right) = goal
            && nodes >= 2
            && rng.chance(2, 3)
        {
            return self.lam(left, right, nodes, rng);
        }

        // The smallest term that is not a leaf, an application, takes three nodes.
        if nodes < 3 {
            return self.leaf(goal, rng);
        }

        // An if takes four nodes, and so does a let with an identity.
        match if nodes == 3 { 1 + rng.index(3) } else { rng.index(4) } {
            0 => {
                let condition = rng.size(1, nodes - 3);
                let then = rng.size(1, nodes - 2 - condition);
                self.put("(");
                self.put("if");
                self.grow(&Goal::Bool, condition, rng);
                self.grow(goal, then, rng);
                self.grow(goal, nodes - 1 - condition - then, rng);
                self.put(")");
            }
            1 => {
                let name = self.binder();
                for piece in ["(", "let", &name] {
                    self.put(piece);
                }
                if nodes > 3 && rng.chance(1, 3) {
                    let inner = self.binder();
                    for piece in ["(", "lam", &inner] {
                        self.put(piece);
                    }
                    self.put_leaf(&inner);
                    self.put(")");
                    self.under(&name, Bound::Identity, goal, nodes - 3, rng);
                } else {
                    let definition = random_goal(2, rng);
                    let share = rng.size(1, nodes - 2);
                    self.grow(&definition, share, rng);
                    self.under(&name, Bound::As(definition), goal, nodes - 1 - share, rng);
                }
                self.put(")");
            }
            _ => self.app(goal, nodes, rng),
        }
    }

    fn app(&mut self, goal: &Goal, nodes: usize, rng: &mut TaskRng) {
        let argument = random_goal(1, rng);
        let share = rng.size(1, nodes - 2);

        self.put("(");
        self.put("app");
        self.grow(&arrow(argument.clone(), goal.clone()), share, rng);
        self.grow(&argument, nodes - 1 - share, rng);
        self.put(")");
    }
}

/// A program of about `nodes` nodes; with probability 1/4 a leaf of it is replaced, which usually
/// breaks the typing.
pub fn random_program(nodes: usize, rng: &mut TaskRng) -> String {
    let mut growth = Growth::default();
    let goal = random_goal(2, rng);
    growth.grow(&goal, nodes, rng);

    if rng.chance(1, 4) {
        let place = growth.leaves[rng.index(growth.leaves.len())];
        rng.one_of(&["0", "true", "add", "not"]).clone_into(&mut growth.pieces[place]);
    }
    joined(growth.pieces.iter().map(String::as_str))
}
