//! Type Inference: the principal type of a program with let-polymorphism, by Algorithm J.
//!
//! A step is one node finished, in post-order, with its type; or the error that ends the run.

use std::fmt;
use std::str::FromStr;

use super::random_program::random_program;
use super::scheme::{Scheme, entered, number};
use super::simple_type::{
    self, Failure, Substitution, Symbol, Type, Variable, arrow, base, renamed, variable, variables,
};
use super::type_program::{Binder, Due, Kind, Program};
use super::typing_rules::{self, Known};
use crate::tasks::optional_text::OptionalText;
use crate::tasks::pages::type_inference as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `type-inference`.
pub struct TypeInference;

/// The most characters of a reference line of a drawn instance.
const LINE_MAX: usize = 200;
const STEPS_MIN: usize = 5;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The program.
    pub expression: Program,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of nodes finished, in post-order.
    pub done: usize,
    /// Types of the finished nodes whose parents are not finished, resolved, in order.
    pub types: Vec<Type>,
    /// Number of type variables created; they are t0, t1, …
    pub fresh: u32,
    /// The bound type variables with their types, by ascending number.
    pub substitution: Substitution,
    /// Name and scheme of each let generalised, in order.
    pub lets: Vec<(String, String)>,
    /// Unifications for applications and conditionals so far.
    pub unifications: u64,
    /// Why the program has no type, once that is known.
    pub error: OptionalText<Error>,
    /// The last action; none at the start.
    pub last: Last<Action>,
    /// Schemes by binder; `None` until it is entered or generalised.
    #[serde(skip)]
    pub schemes: Vec<Option<Scheme>>,
}

/// Why there is no type.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// Two types differ in a constructor.
    Mismatch,
    /// A variable occurs in the type that it would have to be.
    Occurs,
}

impl FromStr for Error {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let errors = [Self::Mismatch, Self::Occurs];
        let known = errors.into_iter().find(|error| error.to_string() == text);
        known.ok_or_else(|| format!("{text:?} is not an error: mismatch or occurs"))
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Mismatch { "mismatch" } else { "occurs" })
    }
}

/// An action line; the page explains its forms.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Action {
    /// Type of the next node.
    Type(Type),
    /// The program has no type.
    Error(Error),
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["error <mismatch|occurs>", "<[A-Za-z0-9() >-]+>"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        let text = fields.text(0)?;
        Some(match (form, text) {
            (0, "mismatch") => Action::Error(Error::Mismatch),
            (0, _) => Action::Error(Error::Occurs),
            _ => Action::Type(simple_type::read(text)?),
        })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Type(found) => found.fmt(f),
            Self::Error(error) => write!(f, "error {error}"),
        }
    }
}

impl State {
    fn fresh(&mut self) -> Type {
        self.fresh += 1;
        variable(self.fresh - 1)
    }

    fn unify(&mut self, left: &[Symbol], right: &[Symbol]) -> Result<(), Failure> {
        self.unifications += 1;
        self.substitution.unify(left, right)
    }

    /// The type of the node `back` places before the latest.
    fn latest(&self, back: usize) -> Type {
        self.types[self.types.len() - 1 - back].clone()
    }

    fn scheme(&self, binder: Binder) -> &Scheme {
        self.schemes[binder].as_ref().expect("invariant: a binder is entered before its body")
    }

    /// The variables in the types of these binders that are not quantified there, resolved.
    fn free_in(&self, binders: &[Binder]) -> Result<Vec<Variable>, Failure> {
        let mut free = Vec::new();
        for binder in binders {
            let Scheme { quantified, body } = self.scheme(*binder);
            for variable in variables(body).filter(|variable| !quantified.contains(variable)) {
                free.extend(variables(&self.substitution.resolve(&[Symbol::Variable(variable)])?));
            }
        }
        Ok(free)
    }

    fn generalise(
        &mut self,
        program: &Program,
        binder: Binder,
        visible: &[Binder],
    ) -> Result<(), Failure> {
        let body = self.substitution.resolve(&self.latest(0))?;
        let free = self.free_in(visible)?;

        let mut quantified: Vec<Variable> = Vec::new();
        for variable in variables(&body).filter(|variable| !free.contains(variable)) {
            // In order of first appearance, as the letters of the scheme's text are.
            if !quantified.contains(&variable) {
                quantified.push(variable);
            }
        }

        let scheme = Scheme { quantified, body };
        self.lets.push((program.names[binder].clone(), scheme.text()));
        self.schemes[binder] = Some(scheme);
        Ok(())
    }

    fn instance_of(&mut self, binder: Binder) -> Result<Type, Failure> {
        let Scheme { quantified, body } = self.scheme(binder).clone();
        let first = self.fresh;

        let (found, count) = renamed(
            &body,
            |variable| quantified.contains(&variable),
            |place| Symbol::Variable(Variable(first + number(place))),
        );

        self.fresh += number(count);
        self.substitution.resolve(&found)
    }

    /// Does what is due before the next node and the node's own unification, and returns the node's
    /// type.
    fn infer(&mut self, program: &Program) -> Result<Type, Failure> {
        let node = &program.nodes[self.done];
        for due in &node.due {
            match due {
                Due::Enter(binder) => {
                    let body = self.fresh();
                    self.schemes[*binder] = Some(Scheme::of(body));
                }
                Due::Condition => self.unify(&self.latest(0), &base(Symbol::Bool))?,
                Due::Generalise(binder, visible) => self.generalise(program, *binder, visible)?,
            }
        }

        if let Some(declared) = node.kind.declared() {
            return Ok(declared);
        }

        let found = match node.kind {
            Kind::Variable(binder) => return self.instance_of(binder),
            Kind::Lam(binder) => arrow(&self.scheme(binder).body, &self.latest(0)),
            Kind::App => {
                let result = self.fresh();
                self.unify(&self.latest(1), &arrow(&self.latest(0), &result))?;
                result
            }
            Kind::If => {
                self.unify(&self.latest(1), &self.latest(0))?;
                self.latest(1)
            }

            // A let has the type of its body.
            _ => self.latest(0),
        };

        self.substitution.resolve(&found)
    }

    /// Records the node's type in place of its children's.
    fn finish(&mut self, program: &Program, found: Type) -> Result<(), Failure> {
        self.types.truncate(self.types.len() - program.nodes[self.done].kind.arguments());
        self.types.push(found);

        // Types are shown with every variable replaced that has been bound since.
        for known in &mut self.types {
            if variables(known).any(|variable| self.substitution.0.contains_key(&variable)) {
                *known = self.substitution.resolve(known)?;
            }
        }

        self.done += 1;
        Ok(())
    }
}

/// The next node's type, and the state after its inference but before it is recorded: a copy,
/// because inference can fail halfway.
fn inferred(instance: &Instance, state: &State) -> Result<(State, Type), Failure> {
    let mut next = state.clone();
    let found = next.infer(&instance.expression)?;
    Ok((next, found))
}

/// Returns whether the reference ends after at least as many steps as an instance must have, with
/// no line too long.
fn is_presentable(instance: &Instance) -> bool {
    let mut state = TypeInference::start(instance);
    let mut steps = 0;

    while let Some(action) = TypeInference::reference(instance, &state) {
        let fits = action.to_string().len() <= LINE_MAX;
        if TypeInference::step(instance, &mut state, action).is_err() || !fits {
            return false;
        }

        steps += 1;
    }

    steps >= STEPS_MIN && TypeInference::ended(instance, &state)
}

impl Task for TypeInference {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let nodes = page::size::NODES.draw(difficulty, rng);
            let text = random_program(nodes, rng);

            let Ok(expression) = Program::try_from(text) else { continue };
            let instance = Instance { expression };
            let nodes = instance.expression.nodes.len() as u64;

            if page::size::NODES.accepts(difficulty, nodes) && is_presentable(&instance) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let mut state = Self::start(instance);
        while let Some(action) = Self::reference(instance, &state) {
            if Self::step(instance, &mut state, action).is_err() {
                break;
            }
        }

        let long = format!("a type of it has more than {} symbols", simple_type::TYPE_MAX);
        InvalidInput::unless(Self::ended(instance, &state), "expression", long)
    }

    fn start(instance: &Instance) -> State {
        State {
            done: 0,
            types: Vec::new(),
            fresh: 0,
            substitution: Substitution::default(),
            lets: Vec::new(),
            unifications: 0,
            error: OptionalText(None),
            last: Last(None),
            schemes: vec![None; instance.expression.names.len()],
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let nodes = instance.expression.nodes.len();
        InvalidInput::unless(state.done <= nodes, "done", format!("must be at most {nodes}"))?;

        let Some((schemes, fresh, types)) = entered(&instance.expression, state.done, &state.lets)
        else {
            let reason = "must be those of the nodes that are done".to_owned();
            return Err(InvalidInput { field: "lets", reason });
        };

        InvalidInput::unless(
            state.fresh == fresh,
            "fresh",
            format!("must be {fresh} after {} nodes", state.done),
        )?;

        limits::length("types", state.types.len(), types)?;

        let known = |found: &Type| variables(found).all(|variable| variable.0 < fresh);
        InvalidInput::unless(
            state.types.iter().all(known),
            "types",
            format!("must have variables below t{fresh}"),
        )?;

        let bound =
            state.substitution.0.iter().all(|(variable, to)| variable.0 < fresh && known(to));
        InvalidInput::unless(bound, "substitution", format!("must have variables below t{fresh}"))?;

        InvalidInput::unless(
            state.substitution.is_acyclic(),
            "substitution",
            "must not lead from a variable to itself",
        )?;

        let free = |scheme: &Scheme| {
            variables(&scheme.body)
                .all(|variable| variable.0 < fresh || scheme.quantified.contains(&variable))
        };
        InvalidInput::unless(
            schemes.iter().flatten().all(free),
            "lets",
            format!("must have variables below t{fresh}"),
        )
    }

    fn complete(instance: &Instance, state: &mut State) {
        if let Some((schemes, ..)) = entered(&instance.expression, state.done, &state.lets) {
            state.schemes = schemes;
        }
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if Self::ended(instance, state) {
            return Err(Illegal("the run is over"));
        }

        match action {
            Action::Type(found) => {
                let failed =
                    |_| Illegal("a unification that is due fails, or a type becomes too long");
                let (mut next, _) = inferred(instance, state).map_err(failed)?;

                if variables(found).any(|variable| variable.0 >= next.fresh) {
                    return Err(Illegal("a type variable does not exist yet"));
                }
                next.finish(&instance.expression, found.clone()).map_err(failed)?;

                *state = next;
            }
            Action::Error(error) => {
                state.error = OptionalText(Some(*error));
                // The unification that fails counts as well.
                state.unifications += 1;
            }
        }
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if Self::ended(instance, state) {
            return None;
        }

        match inferred(instance, state) {
            // After wrong lines types may become too long for a legal line.
            Ok((mut next, found)) => {
                next.finish(&instance.expression, found.clone()).ok().map(|()| Action::Type(found))
            }
            Err(failure) => error_of(failure).map(Action::Error),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // The rules and the numbers of fresh variables leave a node one type, and unifications and
        // generalisations are carried out by the machine: a clean trace with a type is the
        // algorithm's. `root` checks an error where it is claimed.
        if let Action::Type(claimed) = action {
            let kind = instance.expression.nodes[before.done].kind;

            found.require(
                page::LITERALS,
                kind.declared().is_none_or(|declared| *claimed == declared),
            );

            let scheme = match kind {
                Kind::Variable(binder) | Kind::Lam(binder) => {
                    after.schemes.get(binder).and_then(Option::as_ref)
                }
                _ => None,
            };

            let children = before.types.len().saturating_sub(kind.arguments());
            let fits = typing_rules::fits(
                kind,
                scheme,
                &before.types[children..],
                claimed,
                Known { substitution: &after.substitution, fresh: after.fresh },
            );
            found.require(page::SHAPE, fits);

            let bound = |variable: Variable| after.substitution.0.contains_key(&variable);
            found.require(page::FRESH_RANGE, !variables(claimed).any(bound));
        }

        let acyclic = after
            .substitution
            .0
            .iter()
            .all(|(variable, to)| !to.contains(&Symbol::Variable(*variable)));
        found.require(page::ACYCLIC, acyclic);

        if Self::ended(instance, after) {
            let settled = match after.error.0 {
                Some(error) => inferred(instance, before)
                    .is_err_and(|failure| error_of(failure) == Some(error)),
                None => after.types.len() == 1,
            };
            found.require(page::ROOT, settled);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.error.0.is_some() || state.done == instance.expression.nodes.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A line for each node; an error takes the place of a node's.
        instance.expression.nodes.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let typed = state.error.0.is_none();
        let root = state.types.last().filter(|_| typed);
        let renamed =
            root.map(|root| renamed(root, |_| true, |place| Symbol::Renamed(number(place))).0);

        json!({
            "typed": typed,
            "type": renamed.map_or_else(String::new, |root| root.to_string()),
            "error": state.error,
            "lets": state.lets,
            "unifications": state.unifications,
        })
    }
}

fn error_of(failure: Failure) -> Option<Error> {
    match failure {
        Failure::Mismatch => Some(Error::Mismatch),
        Failure::Occurs => Some(Error::Occurs),
        Failure::TooLong => None,
    }
}
