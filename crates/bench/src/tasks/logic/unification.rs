//! Unification: the most general unifier of two terms, by Martelli's and Montanari's rules on a
//! list of equations.
//!
//! A step treats the first equation: it is deleted, decomposed, bound to a variable, or shows that
//! there is no unifier.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use super::first_order::{
    self, FirstOrder, SYMBOLS_MAX, Symbol, Variable, occurs, substituted, variables,
};
use crate::tasks::pages::unification as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prefix_term::{self, Symbol as _};
use crate::tasks::prelude::*;

/// The task `unification`.
pub struct Unification;

/// Symbols of a user's term.
const INPUT_MAX: usize = 1_000;
/// Symbols of a whole state: substitution makes terms grow exponentially.
const STATE_MAX: usize = SYMBOLS_MAX;
/// Symbols of a term on the way of a drawn instance.
const TERM_MAX: usize = 200;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Left side of the equation.
    #[serde(deserialize_with = "term_of")]
    pub left: FirstOrder,
    /// Right side of the equation.
    #[serde(deserialize_with = "term_of")]
    pub right: FirstOrder,
}

fn term_of<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<FirstOrder, D::Error> {
    let refuse = || {
        serde::de::Error::custom(format!(
            "is not a term of at most {INPUT_MAX} symbols f/2, g/1, h/3, k/2, a, b, c, X0, X1, … without blanks"
        ))
    };
    first_order::read(&String::deserialize(deserializer)?, INPUT_MAX).ok_or_else(refuse)
}

impl Instance {
    fn variables(&self) -> BTreeSet<Variable> {
        variables(&self.left).chain(variables(&self.right)).collect()
    }

    fn has(&self, variable: Variable) -> bool {
        occurs(variable, &self.left) || occurs(variable, &self.right)
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The equations left, as (left, right), the first one to be treated next.
    pub equations: Vec<(FirstOrder, FirstOrder)>,
    /// The bound variables with their terms, by ascending number; idempotent.
    pub substitution: BTreeMap<Variable, FirstOrder>,
    /// Whether an equation has been found that has no solution.
    pub reason: Reason,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

/// Why there is no unifier; `ok` as long as there may be one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Reason {
    /// No such equation so far.
    Ok,
    /// Two terms have different symbols.
    Clash,
    /// A variable occurs in the term that it would have to be.
    Occurs,
}

/// An action line; the page explains its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// The first equation has equal sides and is deleted.
    Delete,
    /// The first equation is replaced by those of the arguments.
    Decompose,
    /// The first equation binds this variable to this term.
    Bind(Variable, FirstOrder),
    /// The first equation has sides with different symbols.
    Clash,
    /// The first equation has a variable and a term that contains it.
    Occurs,
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] =
        &["delete", "decompose", "bind X<nat> = <[a-z0-9X(),]+>", "<clash|occurs>"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        Some(match form {
            0 => Action::Delete,
            1 => Action::Decompose,
            2 => Action::Bind(
                Variable(fields.nat(0)?),
                first_order::read(fields.text(1)?, STATE_MAX)?,
            ),
            _ if fields.text(0) == Some("clash") => Action::Clash,
            _ => Action::Occurs,
        })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Delete => f.write_str("delete"),
            Self::Decompose => f.write_str("decompose"),
            Self::Bind(variable, term) => write!(f, "bind {variable} = {term}"),
            Self::Clash => f.write_str("clash"),
            Self::Occurs => f.write_str("occurs"),
        }
    }
}

impl State {
    fn terms(&self) -> impl Iterator<Item = &FirstOrder> {
        self.equations
            .iter()
            .flat_map(|(left, right)| [left, right])
            .chain(self.substitution.values())
    }

    /// Returns whether the state stays small enough when the variable is bound to the term.
    fn has_room_for(&self, variable: Variable, term: &[Symbol]) -> bool {
        let grown = |ours: &FirstOrder| {
            let places =
                ours.iter().filter(|symbol| **symbol == Symbol::Variable(variable)).count();
            ours.len() + places * (term.len() - 1)
        };
        self.terms().map(grown).sum::<usize>() + term.len() <= STATE_MAX
    }
}

/// The action that an equation calls for.
fn rule(left: &FirstOrder, right: &FirstOrder) -> Action {
    match (left[0], right[0]) {
        _ if left == right => Action::Delete,
        (Symbol::Variable(variable), _) if occurs(variable, right) => Action::Occurs,
        (Symbol::Variable(variable), _) => Action::Bind(variable, right.clone()),
        (_, Symbol::Variable(variable)) if occurs(variable, left) => Action::Occurs,
        (_, Symbol::Variable(variable)) => Action::Bind(variable, left.clone()),
        (ours, theirs) if ours != theirs => Action::Clash,
        _ => Action::Decompose,
    }
}

/// A skeleton that both terms of an instance share; its ends (`None`) are filled for each term
/// independently.
fn skeleton(depth: usize, root: bool, rng: &mut TaskRng, shape: &mut Vec<Option<Symbol>>) {
    if depth == 0 || !root && rng.chance(1, 4) {
        shape.push(None);
        return;
    }
    let symbol = Symbol::Letter(rng.one_of(&['f', 'g', 'h', 'k']));
    shape.push(Some(symbol));
    for _ in 0..symbol.arity() {
        skeleton(depth - 1, false, rng, shape);
    }
}

fn filled(shape: &[Option<Symbol>], variables: usize, rng: &mut TaskRng) -> FirstOrder {
    let mut term = Vec::new();
    for place in shape {
        let Some(symbol) = place else {
            let kind = rng.index(10);
            if kind == 7 {
                term.push(Symbol::Letter(rng.one_of(&['a', 'b', 'c'])));
                continue;
            }
            if kind > 7 {
                term.push(Symbol::Letter('g'));
            }

            let number = u32::try_from(rng.index(variables)).expect("invariant: few variables");
            term.push(Symbol::Variable(Variable(number)));
            continue;
        };
        term.push(*symbol);
    }
    term.into()
}

/// Outcome and steps of the reference, if no term on the way is longer than `longest` and the trace
/// ends within `max`.
fn outcome(instance: &Instance, longest: usize, max: u64) -> Option<(Reason, u64)> {
    let mut state = Unification::start(instance);
    let mut steps = 0;
    while let Some(action) = Unification::reference(instance, &state) {
        Unification::step(instance, &mut state, action).ok()?;
        steps += 1;

        if steps > max || state.terms().any(|term| term.len() > longest) {
            return None;
        }
    }

    Unification::ended(instance, &state).then_some((state.reason, steps))
}

impl Task for Unification {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        // Drawn first, so that rejection does not change the shares of the outcomes.
        let wanted = match rng.index(5) {
            0..=2 => Reason::Ok,
            3 => Reason::Clash,
            _ => Reason::Occurs,
        };

        loop {
            let depth = page::size::DEPTH.draw(difficulty, rng);
            let count = page::size::VARIABLES.draw(difficulty, rng);
            let mut shape = Vec::new();
            // One level less than drawn: an end may become `g` of a variable.
            skeleton(depth - 1, true, rng, &mut shape);
            let instance =
                Instance { left: filled(&shape, count, rng), right: filled(&shape, count, rng) };

            let depth = prefix_term::depth(&instance.left).max(prefix_term::depth(&instance.right));
            let fits = page::size::DEPTH.accepts(difficulty, depth as u64)
                && page::size::VARIABLES.accepts(difficulty, instance.variables().len() as u64)
                && instance.left.len().max(instance.right.len()) <= TERM_MAX;

            if fits
                && let Some((reason, steps)) =
                    outcome(&instance, TERM_MAX, Self::steps_max(&instance))
                && reason == wanted
                && page::size::STEPS.accepts(difficulty, steps)
            {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let max = Self::steps_max(instance);
        let ends = outcome(instance, STATE_MAX, max).is_some();
        let range = format!(
            "with it unification takes more than {max} steps, or more than {STATE_MAX} symbols"
        );
        InvalidInput::unless(ends, "right", range)
    }

    fn start(instance: &Instance) -> State {
        State {
            equations: vec![(instance.left.clone(), instance.right.clone())],
            substitution: BTreeMap::new(),
            reason: Reason::Ok,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let symbols: usize = state.terms().map(|term| term.len()).sum();
        let range = format!("and `substitution` have {symbols} symbols; give up to {STATE_MAX}");
        InvalidInput::unless(symbols <= STATE_MAX, "equations", range)?;

        let ours = instance.variables();
        let known =
            state.terms().all(|term| variables(term).all(|variable| ours.contains(&variable)));
        InvalidInput::unless(
            known,
            "equations",
            "and `substitution` must have variables of the input alone",
        )
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let (left, right) = state.equations.first().ok_or(Illegal("no equation is left"))?;
        match action {
            Action::Delete => drop(state.equations.remove(0)),
            Action::Decompose => {
                if left[0] != right[0] || left[0].arity() == 0 {
                    return Err(Illegal("the sides differ in symbol, or have no arguments"));
                }

                let (left, right) = state.equations.remove(0);
                let arguments = prefix_term::arguments(&left).zip(prefix_term::arguments(&right));
                state
                    .equations
                    .splice(0..0, arguments.map(|(left, right)| (left.into(), right.into())));
            }
            Action::Bind(variable, term) => {
                // All refusals come before the first change: a refused line leaves the state as it
                // is.
                if state.substitution.contains_key(variable) || occurs(*variable, term) {
                    return Err(Illegal("the variable is bound, or occurs in the term"));
                }
                if !instance.has(*variable)
                    || !variables(term).all(|variable| instance.has(variable))
                {
                    return Err(Illegal("a variable does not occur in the input"));
                }
                if !state.has_room_for(*variable, term) {
                    return Err(Illegal("the terms would become too long"));
                }

                state.equations.remove(0);
                for (left, right) in &mut state.equations {
                    *left = substituted(left, *variable, term);
                    *right = substituted(right, *variable, term);
                }

                for bound in state.substitution.values_mut() {
                    *bound = substituted(bound, *variable, term);
                }

                state.substitution.insert(*variable, term.clone());
            }
            Action::Clash => state.reason = Reason::Clash,
            Action::Occurs => state.reason = Reason::Occurs,
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if Self::ended(instance, state) {
            return None;
        }

        let (left, right) = state.equations.first()?;
        let action = rule(left, right);

        // After wrong lines the variable may be bound already, and terms may grow without end.
        let legal = match &action {
            Action::Bind(variable, term) => {
                !state.substitution.contains_key(variable) && state.has_room_for(*variable, term)
            }
            _ => true,
        };
        legal.then_some(action)
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let bound = |variable: &Variable| after.substitution.contains_key(variable);
        let idempotent =
            !after.terms().any(|term| variables(term).any(|variable| bound(&variable)));
        found.require(page::IDEMPOTENT, idempotent);

        found.require(
            page::OCCURS_FREE,
            after.substitution.iter().all(|(variable, term)| !occurs(*variable, term)),
        );

        // A clean trace carries out Martelli's and Montanari's rules, each of which keeps the set
        // of unifiers: what it binds is a most general unifier, and its clash or occurs the one
        // that the first equations lead to. Only the names of variables depend on the order.
        if let Some((left, right)) = before.equations.first() {
            if let Action::Bind(variable, term) = action {
                let is_variable = |side: &FirstOrder| **side == [Symbol::Variable(*variable)];
                let solved =
                    is_variable(left) && term == right || is_variable(right) && term == left;
                found.require(page::SUBTERM, solved);
            }

            found.require(page::EQUAL_SIDES, *action != Action::Delete || left == right);
        }

        let left: BTreeSet<_> =
            after.equations.iter().flat_map(|(l, r)| variables(l).chain(variables(r))).collect();
        // A variable that is bound leaves the equations, so the sum does not grow.
        let count = after.substitution.len() + left.len();
        found.require(page::VARIABLES_FALL, count <= instance.variables().len());

        if Self::ended(instance, after) {
            found.require(page::UNIFIES, is_settled(instance, after));
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.equations.is_empty() || state.reason != Reason::Ok
    }

    fn steps_max(instance: &Instance) -> u64 {
        // No bound follows from the size without being exponential: inputs that take longer are
        // refused, and the benchmark's own end within its first part.
        240 + 8 * (instance.left.len() + instance.right.len()) as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let unifiable = state.reason == Reason::Ok;
        let nothing = BTreeMap::new();
        let mgu = if unifiable { &state.substitution } else { &nothing };
        json!({ "unifiable": unifiable, "reason": state.reason, "mgu": mgu })
    }

    /// All most general unifiers over the input's variables are right; they differ in the names of
    /// variables alone.
    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        let Ok(given) = serde_json::from_value::<Answer>(answer.clone()) else {
            return Some(false);
        };
        let (end, _) = reference_end::<Self>(instance, Self::steps_max(instance))?;
        let is_right = if end.reason == Reason::Ok {
            is_renamed(instance, &end.substitution, &given.mgu)
        } else {
            given.mgu.is_empty()
        };

        let unifiable = end.reason == Reason::Ok;
        Some(is_right && given.reason == end.reason && given.unifiable == unifiable)
    }
}

#[derive(Deserialize)]
struct Answer {
    unifiable: bool,
    reason: Reason,
    mgu: BTreeMap<Variable, FirstOrder>,
}

/// Returns whether a substitution is idempotent, over the input's variables, and another one with
/// the variables renamed one to one.
fn is_renamed(
    instance: &Instance,
    known: &BTreeMap<Variable, FirstOrder>,
    given: &BTreeMap<Variable, FirstOrder>,
) -> bool {
    let ours = instance.variables();
    let free = |term: &FirstOrder| {
        variables(term).all(|variable| ours.contains(&variable) && !given.contains_key(&variable))
    };
    if !given.keys().all(|variable| ours.contains(variable)) || !given.values().all(free) {
        return false;
    }

    let (mut there, mut back) = (BTreeMap::new(), BTreeMap::new());
    ours.into_iter().all(|variable| {
        let itself = FirstOrder::from(vec![Symbol::Variable(variable)]);
        let (known, given) =
            (known.get(&variable).unwrap_or(&itself), given.get(&variable).unwrap_or(&itself));

        known.len() == given.len()
            && known.iter().zip(given.iter()).all(|pair| match pair {
                (Symbol::Variable(x), Symbol::Variable(y)) => {
                    *there.entry(*x).or_insert(*y) == *y && *back.entry(*y).or_insert(*x) == *x
                }
                (x, y) => x == y,
            })
    })
}

/// Returns whether the substitution makes both terms equal, or the first equation is what the
/// reason says.
fn is_settled(instance: &Instance, state: &State) -> bool {
    if state.reason == Reason::Ok {
        // Symbol by symbol: after wrong lines the unified terms may be too long to build.
        let same = unified(&instance.left, state).eq(unified(&instance.right, state));
        return state.equations.is_empty() && same;
    }

    let wanted = if state.reason == Reason::Clash { Action::Clash } else { Action::Occurs };
    state.equations.first().is_some_and(|(left, right)| rule(left, right) == wanted)
}

/// The symbols of a term under the substitution.
fn unified<'a>(term: &'a [Symbol], state: &'a State) -> impl Iterator<Item = &'a Symbol> {
    term.iter().flat_map(|symbol| match symbol {
        Symbol::Variable(variable) => {
            state.substitution.get(variable).map_or(std::slice::from_ref(symbol), |term| term)
        }
        Symbol::Letter(_) => std::slice::from_ref(symbol),
    })
}
