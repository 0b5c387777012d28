//! SAT DPLL: decide whether clauses can be satisfied, by units, pure literals, decisions and
//! backtracking.
//!
//! A step is one rule applied: a literal made true for one of four reasons, or the verdict.

use std::fmt;
use std::sync::OnceLock;

use super::clause_counts::{ClauseCounts, ClausesOf};
use super::literals::{Literals, Occurrences, VARIABLES_MAX};
use super::random_clauses;
use crate::output::value::exact;
use crate::tasks::pages::sat_dpll as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `sat-dpll`.
pub struct SatDpll;

const CLAUSES_MAX: usize = 2_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    variables: usize,
    /// The clauses, numbered from 0.
    pub clauses: Vec<Literals>,
    /// Built from the clauses when first needed.
    #[serde(skip)]
    clauses_of: OnceLock<ClausesOf>,
}

impl Instance {
    fn clauses_of(&self) -> &ClausesOf {
        self.clauses_of.get_or_init(|| ClausesOf::new(self.variables, &self.clauses))
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum Satisfiability {
    #[serde(rename = "")]
    Open,
    #[serde(rename = "sat")]
    Sat,
    #[serde(rename = "unsat")]
    Unsat,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// The literals made true, in order; a negative one negates its variable.
    pub trail: Vec<i64>,
    /// Places in the trail of the decisions that have not been flipped, ascending.
    pub open: Vec<usize>,
    decisions: u64,
    units: u64,
    pures: u64,
    conflicts: u64,
    result: Satisfiability,
    /// The last action; none at the start.
    pub last: Last<Action>,
    /// The literals of the trail as a set.
    #[serde(skip)]
    assigned: Literals,
    /// The state of the clauses under the trail.
    #[serde(skip)]
    counts: ClauseCounts,
}

impl State {
    fn assign(&mut self, instance: &Instance, literal: i64) {
        self.trail.push(literal);
        self.assigned.insert(literal);
        self.counts.assign(instance.clauses_of(), literal);
    }

    /// Cuts the trail before this place.
    fn undo(&mut self, instance: &Instance, place: usize) {
        for literal in self.trail.drain(place..) {
            self.assigned.remove(literal);
            self.counts.undo(instance.clauses_of(), literal);
        }
    }

    /// The place in the trail and the literal of the latest decision that is not flipped yet.
    fn decision(&self) -> Option<(usize, i64)> {
        self.open.last().map(|place| (*place, self.trail[*place]))
    }
}

/// An action line; the page explains its forms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// A literal, and the clause in which it is the only one left.
    Unit(i64, usize),
    /// A literal whose variable occurs in open clauses with this sign only.
    Pure(i64),
    /// A literal made true without a reason.
    Decide(i64),
    /// The negation of the latest open decision, which a conflict has refuted.
    Flip(i64),
    /// Every clause has a true literal.
    Sat,
    /// A conflict with no decision left to flip.
    Unsat,
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] =
        &["unit <int> <nat>", "pure <int>", "decide <nat>", "flip -<nat>", "<sat|unsat>"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        Some(match form {
            0 => Action::Unit(fields.int(0)?, fields.nat(1)?),
            1 => Action::Pure(fields.int(0)?),
            2 => Action::Decide(fields.nat(0)?),
            3 => Action::Flip(-fields.nat::<i64>(0)?),
            _ if fields.text(0)? == "sat" => Action::Sat,
            _ => Action::Unsat,
        })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unit(literal, clause) => write!(f, "unit {literal} {clause}"),
            Self::Pure(literal) => write!(f, "pure {literal}"),
            Self::Decide(literal) => write!(f, "decide {literal}"),
            Self::Flip(literal) => write!(f, "flip {literal}"),
            Self::Sat => f.write_str("sat"),
            Self::Unsat => f.write_str("unsat"),
        }
    }
}

impl SatDpll {
    /// Returns whether a rule may be applied, whichever of its clauses or variables it is applied
    /// to.
    fn rule_violations(
        instance: &Instance,
        before: &State,
        action: Action,
        found: &mut Violations,
    ) {
        let unassigned_min = before.counts.unassigned_min();
        let backtracks = matches!(action, Action::Flip(_) | Action::Unsat);
        found.require(page::CONFLICTS_FIRST, backtracks == (unassigned_min == Some(0)));

        if matches!(action, Action::Pure(_) | Action::Decide(_) | Action::Sat) {
            found.require(page::UNITS_FIRST, unassigned_min != Some(1));
        }

        if let Action::Pure(literal) | Action::Decide(literal) = action {
            let mut occurring = Occurrences::default();
            for clause in instance.clauses.iter().filter(|clause| !clause.meets(before.assigned)) {
                occurring.add(clause.unmentioned_by(before.assigned));
            }

            if matches!(action, Action::Pure(_)) {
                let pure = occurring.contains(literal) && !occurring.contains(-literal);
                found.require(page::PURE_LITERAL, pure);
            } else {
                let occurs = occurring.contains(literal) || occurring.contains(-literal);
                found.require(page::OPEN_DECISION, occurs && !occurring.any_pure());
            }
        }
    }

    /// The consequences of the order of consecutive lines of one rule.
    fn order_violations(
        instance: &Instance,
        before: &State,
        action: Action,
        found: &mut Violations,
    ) {
        match (action, &before.last.0) {
            (Action::Unit(_, clause), Some(Action::Unit(previous, lower))) if clause <= *lower => {
                let shortened =
                    instance.clauses.get(clause).is_some_and(|clause| clause.contains(-previous));
                found.require(page::UNIT_ORDER, shortened);
            }
            (Action::Pure(literal), Some(Action::Pure(previous)))
                if literal.unsigned_abs() < previous.unsigned_abs() =>
            {
                let satisfied =
                    |clause: &Literals| clause.contains(-literal) && clause.contains(*previous);
                found.require(page::PURE_ORDER, instance.clauses.iter().any(satisfied));
            }
            (Action::Decide(literal), last) => {
                let open = before.decision().map_or(0, |(_, decision)| decision);
                let flipped = if let Some(Action::Flip(flipped)) = last { -flipped } else { 0 };
                found.require(page::DECISION_ORDER, literal > open.max(flipped));
            }
            _ => {}
        }
    }
}

impl Task for SatDpll {
    task_items!(
        Instance,
        State,
        Action,
        Spec { decisive: &["satisfiable", "assignment"], ..page::SPEC }
    );

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let variables = page::size::VARIABLES.draw(difficulty, rng);
            let count = variables * rng.size(28, 43) / 10;
            if !page::size::CLAUSES.accepts(difficulty, count as u64) {
                continue;
            }

            let mut clauses = Vec::new();
            random_clauses::fill_up(&mut clauses, count, variables, rng);
            let instance = Instance { variables, clauses, clauses_of: OnceLock::new() };

            let (_, longest) = page::size::STEPS.range(difficulty);
            let Some((end, steps)) = reference_end::<Self>(&instance, longest.unsigned_abs())
            else {
                continue;
            };

            if page::size::STEPS.accepts(difficulty, steps) && end.decisions >= 2 {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let variables = instance.variables;
        let range = format!("is {variables}; give 1 to {VARIABLES_MAX}");
        InvalidInput::unless((1..=VARIABLES_MAX).contains(&variables), "variables", range)?;

        let count = instance.clauses.len();
        let range = format!("are {count}; give 1 to {CLAUSES_MAX}");
        InvalidInput::unless((1..=CLAUSES_MAX).contains(&count), "clauses", range)?;

        let known =
            instance.clauses.iter().all(|clause| !clause.is_empty() && clause.are_among(variables));
        InvalidInput::unless(
            known,
            "clauses",
            format!("each needs literals of variables 1 to {variables}"),
        )?;
        // Last, because the reference relies on the checks above.
        let longest = Self::steps_max(instance);
        let ends = reference_steps::<Self>(instance, longest).is_some();
        InvalidInput::unless(ends, "clauses", format!("take more than {longest} steps"))
    }

    fn start(instance: &Instance) -> State {
        State {
            trail: Vec::new(),
            open: Vec::new(),
            decisions: 0,
            units: 0,
            pures: 0,
            conflicts: 0,
            result: Satisfiability::Open,
            last: Last(None),
            assigned: Literals::default(),
            counts: ClauseCounts::new(&instance.clauses),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let trail = &state.trail;
        let known =
            |literal: &i64| *literal != 0 && literal.unsigned_abs() <= instance.variables as u64;
        InvalidInput::unless(
            trail.iter().all(known),
            "trail",
            format!("must be of variables 1 to {}", instance.variables),
        )?;

        let assigned: Literals = trail.iter().copied().collect();
        InvalidInput::unless(
            assigned.len() as usize == trail.len(),
            "trail",
            "must assign a variable once",
        )?;

        let decisions =
            state.open.iter().all(|place| trail.get(*place).is_some_and(|literal| *literal > 0));
        let open = decisions && state.open.is_sorted_by(|a, b| a < b);
        InvalidInput::unless(
            open,
            "open",
            "must be ascending places of the trail, each of a variable that is set to true",
        )
    }

    fn complete(instance: &Instance, state: &mut State) {
        state.assigned = state.trail.iter().copied().collect();
        state.counts = ClauseCounts::new(&instance.clauses);
        for literal in &state.trail {
            state.counts.assign(instance.clauses_of(), *literal);
        }
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if state.result != Satisfiability::Open {
            return Err(Illegal("the verdict has been given"));
        }

        if let Action::Unit(literal, _) | Action::Pure(literal) | Action::Decide(literal) = *action
        {
            if literal == 0 || literal.unsigned_abs() > instance.variables as u64 {
                return Err(Illegal("there is no such variable"));
            }
            if state.assigned.mentions(literal) {
                return Err(Illegal("the variable is assigned"));
            }
        }

        match *action {
            Action::Unit(literal, clause) => {
                if clause >= instance.clauses.len() {
                    return Err(Illegal("there is no such clause"));
                }
                state.assign(instance, literal);
                state.units += 1;
            }
            Action::Pure(literal) => {
                state.assign(instance, literal);
                state.pures += 1;
            }
            Action::Decide(literal) => {
                state.open.push(state.trail.len());
                state.assign(instance, literal);
                state.decisions += 1;
            }
            Action::Flip(literal) => {
                let (place, decision) = state.decision().ok_or(Illegal("no decision is open"))?;
                if literal != -decision {
                    return Err(Illegal("the literal is not the negation of the latest decision"));
                }

                // The flipped literal follows from the conflict: it is not an open decision.
                state.open.pop();
                state.undo(instance, place);
                state.assign(instance, literal);
                state.conflicts += 1;
            }
            Action::Sat => state.result = Satisfiability::Sat,
            Action::Unsat => {
                state.result = Satisfiability::Unsat;
                state.conflicts += 1;
            }
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        if state.result != Satisfiability::Open {
            return None;
        }

        // The first rule that applies: conflict, unit, pure literal, decision.
        if state.counts.has_false() {
            return Some(
                state.decision().map_or(Action::Unsat, |(_, decision)| Action::Flip(-decision)),
            );
        }

        if let Some(number) = state.counts.first_unit() {
            let free = instance.clauses[number].unmentioned_by(state.assigned);
            return free.iter().next().map(|literal| Action::Unit(literal, number));
        }

        // Without a literal that occurs, every clause is true.
        let occurring = state.counts.occurring(&instance.clauses, state.assigned);
        let pure = occurring.first_pure().map(Action::Pure);
        pure.or_else(|| occurring.first_variable().map(Action::Decide)).or(Some(Action::Sat))
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // `sat` comes with a model. For `unsat`: with a prefix of the open decisions the clauses
        // have a model only if they have one that agrees with the whole trail up to the next open
        // decision. Units and pure literals keep that, and so does a flip, which needs a conflict.
        // At the last conflict no decision is open, so there is no model at all.
        let assigns_anew = match *action {
            Action::Unit(literal, _) | Action::Pure(literal) | Action::Decide(literal) => {
                !before.assigned.mentions(literal)
            }
            Action::Flip(_) | Action::Sat | Action::Unsat => true,
        };

        // As many variables as entries: none is assigned twice.
        found.require(
            page::CONSISTENT,
            assigns_anew && after.assigned.len() as usize == after.trail.len(),
        );

        if let Action::Unit(literal, clause) = *action {
            let justified = instance.clauses.get(clause).is_some_and(|clause| {
                clause.contains(literal)
                    && clause.without(literal).negated().is_subset_of(before.assigned)
            });
            found.require(page::JUSTIFIED, justified);
        }

        Self::rule_violations(instance, before, *action, found);
        Self::order_violations(instance, before, *action, found);

        let mut decided = after
            .open
            .iter()
            .all(|place| after.trail.get(*place).is_some_and(|literal| *literal > 0));

        if let Action::Flip(literal) = *action {
            let undone = before.decision().is_some_and(|(place, decision)| {
                literal == -decision
                    && after.trail.split_last() == Some((&literal, &before.trail[..place]))
            });
            decided &= undone;
        }

        found.require(page::DECISION_TRUE, decided);
        // Every conflict has flipped one decision, and the other decisions are open.
        let counted = after.decisions == after.conflicts + after.open.len() as u64;
        found.require(page::COUNTERS, counted || after.result == Satisfiability::Unsat);

        let holds = match after.result {
            Satisfiability::Open => true,
            Satisfiability::Sat => {
                instance.clauses.iter().all(|clause| clause.meets(after.assigned))
            }
            Satisfiability::Unsat => {
                let is_false = |clause: &Literals| clause.negated().is_subset_of(after.assigned);
                after.open.is_empty() && instance.clauses.iter().any(is_false)
            }
        };

        found.require(page::MODEL, holds);
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.result != Satisfiability::Open
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let satisfiable = state.result == Satisfiability::Sat;
        json!({
            "satisfiable": satisfiable,
            "assignment": if satisfiable { state.assigned } else { Literals::default() },
            "decisions": state.decisions,
            "units": state.units,
            "pures": state.pures,
            "conflicts": state.conflicts,
        })
    }

    /// Any model is right, however many rules it took.
    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        #[derive(Deserialize)]
        struct Answer {
            satisfiable: bool,
            assignment: Literals,
        }

        let Ok(given) = serde_json::from_value::<Answer>(exact(answer).into_owned()) else {
            return Some(false);
        };
        if given.satisfiable {
            let is_model = given.assignment.are_among(instance.variables)
                && instance.clauses.iter().all(|clause| clause.meets(given.assignment));
            return Some(is_model);
        }

        let (end, _) = reference_end::<Self>(instance, Self::steps_max(instance))?;
        Some(given.assignment.is_empty() && end.result == Satisfiability::Unsat)
    }

    /// With v variables unassigned, at most f(v) lines lead to a verdict or the flip of an earlier
    /// decision: f(0) = 1, and a decision with both its sides makes f(v) = 1 + 2 f(v-1), that is
    /// 2^(v+1) - 1. Inputs that take longer than the benchmark's longest traces are refused.
    fn steps_max(instance: &Instance) -> u64 {
        let (_, longest) = page::size::STEPS.range(Difficulty::Hard);
        let lines = 2u64.checked_pow(u32::try_from(instance.variables + 1).unwrap_or(u32::MAX));
        lines.map_or(u64::MAX, |lines| lines - 1).min(longest.unsigned_abs())
    }
}
