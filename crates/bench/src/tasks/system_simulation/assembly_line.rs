//! Assembly Line: units run through stages that add, spread and repair defects or scrap the unit;
//! each scrapped unit is traced to the stage that its fatal defect came from.
//!
//! A step is one unit at one stage.

use std::fmt;

use serde::{Deserializer, Serializer};

use crate::tasks::pages::assembly_line as page;
use crate::tasks::pattern::Fields;
use crate::tasks::prelude::*;

/// The task `assembly-line`.
pub struct AssemblyLine;

const UNITS_MAX: usize = 10_000;
const STAGES_MAX: usize = 1_000;
/// The types of defects.
const TYPES: usize = 4;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of units, which are 0..units.
    pub units: usize,
    /// The stages, in the order in which each unit passes them.
    pub stages: Vec<Stage>,
}

/// What a stage does to the units that it reaches.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stage {
    /// Type that the stage adds, `A` to `D`; empty for none.
    pub adds: String,
    /// First unit to which it is added.
    pub from: usize,
    /// Last unit to which it is added, inclusive.
    pub to: usize,
    /// Two types: a unit with the first gets the second too; empty for none.
    pub spreads: String,
    /// Type that the stage removes; empty for none.
    pub repairs: String,
    /// Type with which a unit is scrapped; empty for none.
    pub scraps: String,
}

/// The number of the type at a place of a text, if there is one.
fn defect(text: &str, place: usize) -> Option<usize> {
    text.as_bytes().get(place).map(|letter| usize::from(letter - b'A'))
}

impl Stage {
    /// Returns whether this stage adds something to the unit.
    pub fn reaches(&self, unit: usize) -> bool {
        !self.adds.is_empty() && (self.from..=self.to).contains(&unit)
    }
}

/// A set of types; written in alphabetical order, `-` for none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Types(pub u8);

impl Types {
    /// Reads what the types print.
    fn read(text: &str) -> Option<Self> {
        let letters = if text == "-" { "" } else { text };
        let add = |set: u8, letter: u8| {
            (b'A'..=b'D').contains(&letter).then(|| set | 1 << (letter - b'A'))
        };
        let types = letters.bytes().try_fold(0, add).map(Self)?;
        // Refuses letters that are out of order or written twice.
        (types.to_string() == text).then_some(types)
    }

    /// Returns whether the type of this number is in the set.
    pub fn contains(self, defect: usize) -> bool {
        self.0 >> defect & 1 != 0
    }

    fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }

    fn count(self) -> u32 {
        self.0.count_ones()
    }
}

impl fmt::Display for Types {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.0 == 0 {
            return f.write_str("-");
        }
        ('A'..='D')
            .enumerate()
            .filter(|(defect, _)| self.contains(*defect))
            .try_for_each(|(_, c)| write!(f, "{c}"))
    }
}

/// The origin of each type that is present.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Defects(pub [Option<usize>; TYPES]);

impl Defects {
    /// The types that are present.
    pub fn types(&self) -> Types {
        Types(
            (0..TYPES)
                .filter(|defect| self.0[*defect].is_some())
                .fold(0, |set, defect| set | 1 << defect),
        )
    }

    /// Each type that is present, with the stage that it came from.
    pub fn present(&self) -> impl Iterator<Item = (usize, usize)> {
        self.0.iter().enumerate().filter_map(|(defect, origin)| Some((defect, (*origin)?)))
    }
}

impl<'de> Deserialize<'de> for Defects {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let mut defects = Self::default();
        for (letter, origin) in Vec::<(String, usize)>::deserialize(deserializer)? {
            let types = Types::read(&letter).filter(|types| types.count() == 1);
            let types = types.ok_or_else(|| {
                serde::de::Error::custom(format!("{letter:?} is not a type of A to D"))
            })?;
            defects.0[types.0.trailing_zeros() as usize] = Some(origin);
        }
        Ok(defects)
    }
}

impl Serialize for Defects {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_seq(
            self.present().map(|(defect, origin)| (["A", "B", "C", "D"][defect], origin)),
        )
    }
}

/// The last types of a unit, and true if it was scrapped.
#[derive(Clone, Copy)]
pub struct Finish(Types, bool);

impl<'de> Deserialize<'de> for Finish {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        let (letters, scrapped) =
            text.strip_suffix('!').map_or((text.as_str(), false), |letters| (letters, true));
        let types = Types::read(letters)
            .ok_or_else(|| serde::de::Error::custom(format!("{text:?} are not types")))?;
        Ok(Self(types, scrapped))
    }
}

impl Serialize for Finish {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{}{}", self.0, if self.1 { "!" } else { "" }))
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Current unit, from 0.
    pub unit: usize,
    /// The stage that it passes next, from 0.
    pub stage: usize,
    /// Its defect types, each with the stage of its origin.
    pub defects: Defects,
    /// Outcome of each finished unit.
    #[serde(rename = "final")]
    pub finished: Vec<Finish>,
    /// Units that have left the line without a defect.
    pub clean: usize,
    /// Units that have left the line with a defect.
    pub defective: usize,
    /// Units scrapped so far.
    pub scrapped: usize,
    /// How often each stage has added its type.
    pub introduced: Vec<usize>,
    /// Scrapped units by the stage that their fatal defect came from.
    pub blame: Vec<usize>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

/// The unit's types after a stage, and true if it is scrapped there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action {
    types: Types,
    scrap: bool,
}

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["<[A-D]+>", "<[A-D]+> scrap", "-", "- scrap"];

    fn read(form: usize, fields: &Fields<'_>) -> Option<Self> {
        let letters = if form < 2 { fields.text(0)? } else { "" };
        // A set has one form: its letters in alphabetical order, each once.
        let ascending = letters.as_bytes().is_sorted_by(|a, b| a < b);
        let types = Types(letters.bytes().fold(0, |set, letter| set | 1 << (letter - b'A')));
        ascending.then_some(Action { types, scrap: form % 2 == 1 })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", self.types, if self.scrap { " scrap" } else { "" })
    }
}

/// The defects of the current unit after rules (1) and (2), and true if (1) fires.
fn brought(stage: &Stage, state: &State) -> (Defects, bool) {
    let mut defects = state.defects;
    let added = defect(&stage.adds, 0)
        .filter(|added| stage.reaches(state.unit) && defects.0[*added].is_none());

    if let Some(added) = added {
        defects.0[added] = Some(state.stage);
    }

    if let (Some(x), Some(y)) = (defect(&stage.spreads, 0), defect(&stage.spreads, 1)) {
        defects.0[y] = defects.0[y].or(defects.0[x]);
    }

    (defects, added.is_some())
}

fn draw_stage(units: usize, rng: &mut TaskRng) -> Stage {
    let letter = |defect: usize| ["A", "B", "C", "D"][defect].to_owned();
    let (mut adds, mut from, mut to) = (String::new(), 0, 0);

    if rng.chance(2, 5) {
        adds = letter(rng.index(TYPES));
        let (one, other) = (rng.index(units), rng.index(units));
        (from, to) = (one.min(other), one.max(other));
    }

    let mut spreads = String::new();
    if rng.chance(1, 3) {
        let (x, y) = rng.pair(TYPES);
        spreads = letter(x) + &letter(y);
    }

    let repairs = if rng.chance(1, 4) { letter(rng.index(TYPES)) } else { String::new() };
    let scraps = if rng.chance(1, 5) { letter(rng.index(TYPES)) } else { String::new() };
    Stage { adds, from, to, spreads, repairs, scraps }
}

impl Task for AssemblyLine {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let stages = page::size::STAGES.draw(difficulty, rng);
            let units = page::size::UNITS.draw(difficulty, rng);
            let stages = (0..stages).map(|_| draw_stage(units, rng)).collect();
            let instance = Instance { units, stages };

            let end = reference_end::<Self>(&instance, u64::MAX);
            if end.is_some_and(|(state, _)| {
                state.clean > 0 && state.defective > 0 && state.scrapped > 0
            }) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let units = instance.units;
        InvalidInput::unless(
            (1..=UNITS_MAX).contains(&units),
            "units",
            format!("must be 1 to {UNITS_MAX}"),
        )?;

        let counted = (1..=STAGES_MAX).contains(&instance.stages.len());
        InvalidInput::unless(counted, "stages", format!("give 1 to {STAGES_MAX} of them"))?;

        let is_type = |text: &str| text.bytes().all(|letter| (b'A'..=b'D').contains(&letter));
        let optional = |text: &str| text.len() <= 1 && is_type(text);

        let valid = instance.stages.iter().all(|stage| {
            let singles =
                [&stage.adds, &stage.repairs, &stage.scraps].into_iter().all(|text| optional(text));
            let [x, y] = [0, 1].map(|place| stage.spreads.as_bytes().get(place));
            let pair = stage.spreads.len() == 2 && is_type(&stage.spreads) && x != y;
            singles
                && (pair || stage.spreads.is_empty())
                && stage.from <= stage.to
                && stage.to < units
        });

        let reason = format!(
            "`adds`, `repairs` and `scraps` are \"\" or a type of A to D, `spreads` \"\" or two distinct types, and from <= \
             to < {units}"
        );
        InvalidInput::unless(valid, "stages", reason)
    }

    fn start(instance: &Instance) -> State {
        let stages = instance.stages.len();
        State {
            unit: 0,
            stage: 0,
            defects: Defects::default(),
            finished: Vec::new(),
            clean: 0,
            defective: 0,
            scrapped: 0,
            introduced: vec![0; stages],
            blame: vec![0; stages],
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let stages = instance.stages.len();
        limits::below("stage", [state.stage], stages)?;
        limits::below("defects", state.defects.present().map(|(_, origin)| origin), stages)?;
        limits::length("introduced", state.introduced.len(), stages)?;
        limits::length("blame", state.blame.len(), stages)?;
        limits::counts("blame", state.blame.iter().copied())
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action { types, scrap } = *action;
        if Self::ended(instance, state) {
            return Err(Illegal("every unit is finished"));
        }

        let stage = &instance.stages[state.stage];
        let (mut defects, adds) = brought(stage, state);

        if types.without(defects.types()).count() > 0 {
            return Err(Illegal("the unit has a type that it cannot have"));
        }

        // The origin of the type that this stage scraps, if the unit has the type.
        let fatal = defect(&stage.scraps, 0)
            .filter(|fatal| types.contains(*fatal))
            .and_then(|fatal| defects.0[fatal]);
        if scrap && fatal.is_none() {
            return Err(Illegal("the unit has no type that this stage scraps"));
        }

        // Types that the line no longer names are repaired.
        for (defect, origin) in defects.0.iter_mut().enumerate() {
            *origin = origin.filter(|_| types.contains(defect));
        }

        state.introduced[state.stage] += usize::from(adds);
        state.defects = defects;
        state.stage += 1;

        if scrap || state.stage == instance.stages.len() {
            match fatal.filter(|_| scrap) {
                Some(origin) => {
                    state.scrapped += 1;
                    state.blame[origin] += 1;
                }
                None if types.count() == 0 => state.clean += 1,
                None => state.defective += 1,
            }
            state.finished.push(Finish(types, scrap));
            state.unit += 1;
            state.stage = 0;
            state.defects = Defects::default();
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let stage = instance.stages.get(state.stage).filter(|_| state.unit < instance.units)?;
        let (mut defects, _) = brought(stage, state);
        if let Some(repaired) = defect(&stage.repairs, 0) {
            defects.0[repaired] = None;
        }
        let types = defects.types();

        Some(Action {
            types,
            scrap: defect(&stage.scraps, 0).is_some_and(|fatal| types.contains(fatal)),
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let possible =
            |origin: usize| origin < after.stage && instance.stages[origin].reaches(after.unit);
        found.require(page::ORIGIN, after.defects.present().all(|(_, origin)| possible(origin)));

        let old = before.defects.types();
        let (new, gone) = (action.types.without(old).count(), old.without(action.types).count());
        found.require(page::AT_MOST, new <= 2 && gone <= 1);

        let counted = after.clean + after.defective + after.scrapped;
        found.require(page::UNITS, counted == after.unit && after.unit == after.finished.len());
        found.require(page::BLAME_SUM, after.blame.iter().sum::<usize>() == after.scrapped);

        // These leave one line in each state: a type that the unit cannot have, or scrap without
        // the type in `scraps`, is illegal. So a clean trace that ends is the algorithm's.
        if let Some(stage) = instance.stages.get(before.stage) {
            let (defects, _) = brought(stage, before);
            let repaired = defect(&stage.repairs, 0).map_or(0, |repaired| 1 << repaired);
            let left = defects.types().without(Types(repaired));
            found.require(page::REPAIRS, action.types == left);

            let fatal = defect(&stage.scraps, 0);
            let doomed = fatal.is_some_and(|fatal| action.types.contains(fatal));
            found.require(page::SCRAPS, action.scrap || !doomed);
        }

        if Self::ended(instance, after) {
            found.require(page::ALL_UNITS, after.finished.len() == instance.units);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.unit >= instance.units
    }

    fn steps_max(instance: &Instance) -> u64 {
        // Every unit at every stage.
        (instance.units * instance.stages.len()) as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "final": state.finished,
            "clean": state.clean,
            "defective": state.defective,
            "scrapped": state.scrapped,
            "introduced": state.introduced,
            "blame": state.blame,
        })
    }
}
