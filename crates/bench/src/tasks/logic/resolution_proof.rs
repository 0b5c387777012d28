//! Resolution Proof: derive the empty clause by resolving the shortest waiting clause with all used
//! ones.
//!
//! A step is one resolvent kept. The state remembers how far the strategy has come (`Progress`):
//! running it again from the input at every step, with the clauses derived so far in place of its
//! own, would lead to the same place.

use std::fmt;

use serde::ser::SerializeTuple as _;
use serde::{Deserializer, Serializer};

use super::literals::{Literals, VARIABLES_MAX};
use super::random_clauses;
use crate::output::value::{equal, exact};
use crate::tasks::pages::resolution_proof as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `resolution-proof`.
pub struct ResolutionProof;

/// Every pair of clauses may be resolved, and every resolvent is compared with all clauses.
const CLAUSES_MAX: usize = 400;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of variables; they are 1..=variables.
    pub variables: usize,
    /// The clauses, unsatisfiable together; numbered from 0.
    pub clauses: Vec<Literals>,
}

/// The resolvent of a given and a used clause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    given: usize,
    used: usize,
    clause: Literals,
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["res <nat> <nat> <ints>", "res <nat> <nat> empty"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        let literals = if form == 0 { fields.ints(2)? } else { Vec::new() };
        Some(Action {
            given: fields.nat(0)?,
            used: fields.nat(1)?,
            clause: literals.try_into().ok()?,
        })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "res {} {}", self.given, self.used)?;
        if self.clause.is_empty() {
            return f.write_str(" empty");
        }
        self.clause.iter().try_for_each(|literal| write!(f, " {literal}"))
    }
}

impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut entry = serializer.serialize_tuple(3)?;
        entry.serialize_element(&self.given)?;
        entry.serialize_element(&self.used)?;
        entry.serialize_element(&self.clause)?;
        entry.end()
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let (given, used, clause) = Deserialize::deserialize(deserializer)?;
        Ok(Self { given, used, clause })
    }
}

/// The progress of the strategy.
#[derive(Clone, Default)]
struct Progress {
    /// By number, true if a clause has been taken from waiting.
    taken: Vec<bool>,
    /// The used clauses, ascending.
    used: Vec<usize>,
    /// The clauses that have been taken, in order.
    order: Vec<usize>,
    /// The given clause, and the number of used ones that it has met.
    given: Option<(usize, usize)>,
    /// After the last action: the number of clauses that had been taken, and the given and the used
    /// clause that met last.
    reached: (usize, Option<(usize, usize)>),
    /// The next resolvent; `None` when nothing is left to resolve, or the empty clause is there.
    next: Option<Action>,
}

impl Progress {
    /// Advances to the next resolvent that is kept.
    fn advance(&mut self, clauses: &Clauses<'_>) {
        self.reached = (self.order.len(), self.next.map(|action| (action.given, action.used)));
        loop {
            // Nothing is given: take the shortest waiting clause, of equals the lowest.
            let Some((given, met)) = self.given else {
                let waiting = (0..clauses.len()).filter(|number| !self.taken[*number]);
                let Some(number) = waiting.min_by_key(|number| clauses.get(*number).len()) else {
                    self.next = None;
                    return;
                };

                self.taken[number] = true;
                self.order.push(number);
                self.given = Some((number, 0));
                continue;
            };

            // The given clause has met all used ones and becomes one of them.
            let Some(&used) = self.used.get(met) else {
                let place = self.used.partition_point(|number| *number < given);
                self.used.insert(place, given);
                self.given = None;
                continue;
            };

            // Before the resolvent is kept: the next call continues with the next pair.
            self.given = Some((given, met + 1));
            if let Some(clause) = clauses.get(given).resolvent(clauses.get(used))
                && !clauses.subsume(clause)
            {
                self.next = Some(Action { given, used, clause });
                return;
            }
        }
    }
}

/// The clauses of the input and those derived from them, by number.
#[derive(Clone, Copy)]
pub struct Clauses<'a> {
    input: &'a [Literals],
    derived: &'a [Action],
}

impl Clauses<'_> {
    /// Number of clauses.
    #[expect(clippy::len_without_is_empty, reason = "an instance has clauses")]
    pub fn len(&self) -> usize {
        self.input.len() + self.derived.len()
    }

    /// # Panics
    /// If there is no clause of this number.
    pub fn get(&self, number: usize) -> Literals {
        match number.checked_sub(self.input.len()) {
            None => self.input[number],
            Some(place) => self.derived[place].clause,
        }
    }

    /// Returns whether some clause is a subset of this one. The given clause, which is neither
    /// waiting nor used, never is: it still has the variable that was resolved away.
    fn subsume(&self, clause: Literals) -> bool {
        self.input.iter().any(|earlier| earlier.is_subset_of(clause))
            || self.derived.iter().any(|earlier| earlier.clause.is_subset_of(clause))
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    derived: Vec<Action>,
    given: i64,
    last: Last<Action>,
    #[serde(skip)]
    progress: Progress,
}

impl State {
    /// All clauses so far.
    pub fn clauses<'a>(&'a self, instance: &'a Instance) -> Clauses<'a> {
        Clauses { input: &instance.clauses, derived: &self.derived }
    }

    /// The clauses that had been taken from waiting at the last action, in order. The given one is
    /// the last.
    pub fn taken(&self) -> &[usize] {
        &self.progress.order[..self.progress.reached.0]
    }

    /// The given and the used clause that the last action resolved; `None` at the start.
    pub fn pair(&self) -> Option<(usize, usize)> {
        self.progress.reached.1
    }

    /// Adds a clause and finds the algorithm's next step.
    fn derive(&mut self, instance: &Instance, action: Action) {
        self.derived.push(action);
        self.progress.taken.push(false);

        if action.clause.is_empty() {
            self.progress.next = None;
        // A strategy that ran out of clauses stays at its end.
        } else if self.progress.next.is_some() {
            self.progress.advance(&Clauses { input: &instance.clauses, derived: &self.derived });
        }
    }
}

/// The page's core, which has no model: some literals are forced one after the other, the last
/// contradicts.
fn core(variables: usize, rng: &mut TaskRng) -> Vec<Literals> {
    let mut literals: Vec<i64> = (1..).take(variables).collect();

    rng.shuffle(&mut literals);
    for literal in &mut literals {
        *literal *= rng.one_of(&[1, -1]);
    }

    let last = variables - 1;
    let mut clauses: Vec<Literals> = vec![
        [literals[0], literals[1]].into_iter().collect(),
        [literals[0], -literals[1]].into_iter().collect(),
    ];

    for place in 1..variables {
        let reasons = if place == 1 { 1 } else { rng.size(1, 2) };
        let mut clause = Literals::from_iter([literals[place]]);
        while clause.len() as usize <= reasons {
            let earlier = literals[rng.index(place)];
            if !clause.mentions(earlier) {
                clause.insert(-earlier);
            }
        }
        clauses.push(clause);
    }

    clauses.push([-literals[last], -literals[rng.index(last)]].into_iter().collect());
    clauses
}

impl Task for ResolutionProof {
    task_items!(Instance, State, Action, Spec { decisive: &["proof"], ..page::SPEC });

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let variables = page::size::VARIABLES.draw(difficulty, rng);
            let count = page::size::CLAUSES.draw(difficulty, rng);

            let mut clauses = core(variables, rng);
            random_clauses::fill_up(&mut clauses, count, variables, rng);
            rng.shuffle(&mut clauses);

            let instance = Instance { variables, clauses };
            let (_, longest) = page::size::STEPS.range(difficulty);
            let steps = reference_steps::<Self>(&instance, longest.unsigned_abs());

            if steps.is_some_and(|steps| page::size::STEPS.accepts(difficulty, steps)) {
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
        let refuted = reference_end::<Self>(instance, longest)
            .is_some_and(|(end, _)| Self::ended(instance, &end));
        InvalidInput::unless(
            refuted,
            "clauses",
            format!("have no refutation of up to {longest} resolvents"),
        )
    }

    fn start(instance: &Instance) -> State {
        let taken = vec![false; instance.clauses.len()];
        let mut progress = Progress { taken, ..Progress::default() };
        progress.advance(&Clauses { input: &instance.clauses, derived: &[] });
        State { derived: Vec::new(), given: -1, last: Last(None), progress }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let count = instance.clauses.len();

        limits::at_most(
            "derived",
            state.derived.len(),
            usize::try_from(Self::steps_max(instance)).unwrap_or(usize::MAX),
        )?;

        let known =
            state.derived.iter().enumerate().all(|(place, Action { given, used, clause })| {
                let earlier = count + place;
                *given < earlier
                    && *used < earlier
                    && given != used
                    && clause.are_among(instance.variables)
            });
        InvalidInput::unless(
            known,
            "derived",
            "each must come from two different clauses before it, of known variables",
        )
    }

    fn complete(instance: &Instance, state: &mut State) {
        // What the algorithm does next follows from all clauses in their order.
        let derived = std::mem::take(&mut state.derived);
        state.progress = Self::start(instance).progress;
        derived.into_iter().for_each(|action| state.derive(instance, action));
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let count = state.clauses(instance).len();
        if action.given >= count || action.used >= count {
            return Err(Illegal("there is no such clause"));
        }
        if action.given == action.used {
            return Err(Illegal("a clause is not resolved with itself"));
        }
        if !action.clause.are_among(instance.variables) {
            return Err(Illegal("there is no such variable"));
        }

        state.given =
            i64::try_from(action.given).map_err(|_| Illegal("there is no such clause"))?;
        state.derive(instance, *action);
        Ok(())
    }

    fn reference(_: &Instance, state: &State) -> Option<Action> {
        state.progress.next
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Every clause is a resolvent of clauses before it, so the part that leads to the empty
        // clause is a refutation, whatever order it was found in.
        let clauses = before.clauses(instance);
        let known = action.given < clauses.len() && action.used < clauses.len();
        let sound = known
            && clauses.get(action.given).resolvent(clauses.get(action.used)) == Some(action.clause);
        found.require(page::SOUND, sound);
        found.require(page::NOT_SUBSUMED, !clauses.subsume(action.clause));

        let previous =
            usize::try_from(before.given).ok().filter(|previous| *previous != action.given);
        // A clause is given for one run of lines only.
        let again = previous.is_some()
            && before.derived.iter().any(|earlier| earlier.given == action.given);
        found.require(page::GIVEN_ONCE, !again);

        if known {
            let key = |number: usize| (clauses.get(number).len(), number);
            let used_first = action.used < action.given || key(action.used) < key(action.given);
            // True if the clause that is given now existed when the previous one was taken from
            // waiting.
            let waited = |previous: &usize| {
                *previous < clauses.len()
                    && (action.given < *previous || action.given < clauses.input.len())
            };
            let given_later =
                previous.filter(waited).is_none_or(|previous| key(previous) < key(action.given));
            found.require(page::WAITING_ORDER, used_first && given_later);
        }

        let ascends = before.given != after.given
            || before.derived.last().is_none_or(|last| last.used < action.used);
        found.require(page::GIVEN_ORDER, ascends);

        if Self::ended(instance, after) {
            found.require(page::EMPTY_CLAUSE, action.clause.is_empty());
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.derived.last().is_some_and(|last| last.clause.is_empty())
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        let (count, derived) = (instance.clauses.len(), &state.derived);

        // Clauses come from earlier ones: from the last back, all that is needed is marked before
        // it is met.
        let mut needed = vec![false; derived.len()];

        if let Some(last) = needed.last_mut() {
            *last = true;
        }

        for place in (0..derived.len()).rev() {
            if needed[place] {
                for number in [derived[place].given, derived[place].used] {
                    if let Some(earlier) = number.checked_sub(count) {
                        needed[earlier] = true;
                    }
                }
            }
        }

        let proof: Vec<_> = (0..derived.len())
            .filter(|place| needed[*place])
            .map(|place| {
                let Action { given, used, clause } = derived[place];
                json!({ "id": count + place, "from": [given, used], "clause": clause })
            })
            .collect();

        json!({ "derived": derived.len(), "proof": proof })
    }

    /// Any refutation is right whose clauses are all needed. `derived` follows from the number of
    /// the empty clause.
    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        #[derive(Deserialize)]
        struct Entry {
            id: usize,
            from: [usize; 2],
            clause: Literals,
        }

        let Ok(proof) = serde_json::from_value::<Vec<Entry>>(exact(&answer["proof"]).into_owned())
        else {
            return Some(false);
        };
        let count = instance.clauses.len();
        let ascends = proof.is_sorted_by(|earlier, later| earlier.id < later.id);
        let Some(last) = proof.last().filter(|_| ascends) else { return Some(false) };
        if proof[0].id < count || !equal(&answer["derived"], &json!(last.id - count + 1)) {
            return Some(false);
        }

        let mut needed = vec![false; proof.len()];
        needed[proof.len() - 1] = true;
        for (place, entry) in proof.iter().enumerate().rev() {
            let [mut first, mut second] = [None; 2];
            for (parent, number) in [&mut first, &mut second].into_iter().zip(entry.from) {
                *parent = match instance.clauses.get(number) {
                    Some(clause) => Some(*clause),
                    None => {
                        let found = proof[..place].binary_search_by_key(&number, |entry| entry.id);
                        found.ok().map(|earlier| {
                            needed[earlier] = true;
                            proof[earlier].clause
                        })
                    }
                };
            }

            let resolvent = first.zip(second).and_then(|(first, second)| first.resolvent(second));
            // Later entries have been read, so it is known if one of them needs this clause.
            if !needed[place] || resolvent != Some(entry.clause) {
                return Some(false);
            }
        }
        Some(last.clause.is_empty())
    }

    /// Clauses kept differ, and there are 3^v: each variable is in a clause with one sign, the
    /// other, or not at all. Inputs that take longer than the benchmark's longest traces are
    /// refused.
    fn steps_max(instance: &Instance) -> u64 {
        let (_, longest) = page::size::STEPS.range(Difficulty::Hard);
        let clauses = 3u64.checked_pow(u32::try_from(instance.variables).unwrap_or(u32::MAX));
        clauses.unwrap_or(u64::MAX).min(longest.unsigned_abs())
    }
}
