//! Hash Table: open addressing with linear probing and tombstones.
//!
//! A step is one slot probed, or the result that ends an operation.

use super::hash_slots::{Content, Slot, Slots};
use crate::tasks::operation::{as_text, validate_count};
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::hash_table as page;
use crate::tasks::prelude::*;

/// The task `hash-table`.
pub struct HashTable;

/// The largest table that a user may give: every step copies it.
const SLOTS_MAX: usize = 10_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of slots, a prime.
    pub slots: usize,
    /// Factor of the key in the hash (multiplier * key + offset) mod slots; not 0.
    pub multiplier: usize,
    /// Summand of the hash.
    pub offset: usize,
    /// The operations, in order.
    pub operations: Vec<Operation>,
}

word_actions!(
    /// An operation of the input; the page explains its forms.
    Operation {
        /// `insert k`: stores key k unless it is stored.
        Insert(key) = "insert",
        /// `search k`: looks for key k.
        Search(key) = "search",
        /// `delete k`: leaves a tombstone in the slot of key k.
        Delete(key) = "delete",
    }
);
as_text!(Operation);

impl Operation {
    /// The key of the operation.
    pub fn key(self) -> usize {
        let (Self::Insert(key) | Self::Search(key) | Self::Delete(key)) = self;
        key
    }
}

impl Instance {
    /// h(k): the slot where probing for the key begins.
    pub fn home(&self, key: usize) -> usize {
        // The key is reduced first, so that the product stays small.
        (self.multiplier * (key % self.slots) + self.offset) % self.slots
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of operations finished.
    pub done: usize,
    /// Content of each slot.
    pub table: Slots,
    /// Number of slots probed by the operation in progress.
    pub probing: usize,
    /// First tombstone that it has probed; -1 where there is none.
    pub tomb: OptionalIndex,
    /// Number of probes so far.
    pub probes: usize,
    /// Number of probes that met another key.
    pub collisions: usize,
    /// Number of inserts that found no slot.
    pub full: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The latest probe of the operation in progress.
    pub fn latest_probe(&self) -> Option<(usize, Content)> {
        match self.last.0 {
            Some(Action::Probe(slot, content)) => Some((slot, content)),
            _ => None,
        }
    }

    /// Returns whether the probes of the operation in progress went as far as this line needs, and
    /// no further.
    fn has_scanned_for(&self, action: &Action, slots: usize) -> bool {
        let latest = self.latest_probe();
        match *action {
            Action::Probe(..) => !matches!(latest, Some((_, Content::Hit | Content::Empty))),
            Action::Found(slot) | Action::Del(slot) => latest == Some((slot, Content::Hit)),
            Action::Dup => matches!(latest, Some((_, Content::Hit))),
            Action::Put(_) | Action::Full | Action::Missing => match latest {
                Some((_, Content::Empty)) => true,
                Some((_, Content::Tomb | Content::Other)) => self.probing >= slots,
                Some((_, Content::Hit)) | None => false,
            },
        }
    }
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// What this slot holds.
        Probe(slot: usize, content: Content) = "<nat> <hit|empty|tomb|other>", "{slot} {content}";
        /// An insert stores its key in this slot.
        Put(slot: usize) = "put <nat>", "put {slot}";
        /// A search ends at this slot.
        Found(slot: usize) = "found <nat>", "found {slot}";
        /// A delete leaves a tombstone in this slot.
        Del(slot: usize) = "del <nat>", "del {slot}";
        /// An insert ends: its key is stored already.
        Dup = "dup", "dup";
        /// An insert ends: no slot is free.
        Full = "full", "full";
        /// A search or delete ends: its key is not stored.
        Missing = "missing", "missing";
    }
}

fn is_prime(n: usize) -> bool {
    n >= 2 && (2..n).take_while(|d| d * d <= n).all(|d| !n.is_multiple_of(d))
}

impl Task for HashTable {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let (min, max) = page::size::SLOTS.range(difficulty);
        let primes: Vec<usize> =
            (min..=max).filter_map(|n| usize::try_from(n).ok()).filter(|n| is_prime(*n)).collect();

        loop {
            let count = page::size::OPERATIONS.draw(difficulty, rng);
            let slots = rng.one_of(&primes);
            let (multiplier, offset) = (1 + rng.index(slots - 1), rng.index(slots));
            let (mut inserted, mut deletes) = (Vec::new(), false);

            let operations = (0..count).map(|_| {
                let kind = rng.below(4);
                if kind < 2 {
                    let key = rng.index(1000);
                    inserted.push(key);
                    return Operation::Insert(key);
                }
                let known = rng.chance(7, 10) && !inserted.is_empty();
                let key = if known { rng.one_of(&inserted) } else { rng.index(1000) };
                deletes |= kind == 3;
                if kind == 2 { Operation::Search(key) } else { Operation::Delete(key) }
            });
            let operations = operations.collect();

            let instance = Instance { slots, multiplier, offset, operations };
            let end = reference_end::<Self>(&instance, u64::MAX);
            if deletes && end.is_some_and(|(state, _)| state.collisions >= 5) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let slots = instance.slots;
        let prime = slots <= SLOTS_MAX && is_prime(slots);
        InvalidInput::unless(
            prime,
            "slots",
            format!("is {slots}; give a prime up to {SLOTS_MAX}"),
        )?;

        let multiplier = (1..slots).contains(&instance.multiplier);
        InvalidInput::unless(multiplier, "multiplier", format!("must be 1 to {}", slots - 1))?;
        InvalidInput::unless(instance.offset < slots, "offset", format!("must be below {slots}"))?;
        validate_count("operations", instance.operations.len())
    }

    fn start(instance: &Instance) -> State {
        State {
            done: 0,
            table: Slots::empty(instance.slots),
            probing: 0,
            tomb: OptionalIndex::NONE,
            probes: 0,
            collisions: 0,
            full: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        limits::length("table", state.table.0.len(), instance.slots)?;
        limits::below("tomb", [state.tomb], instance.slots)?;

        match state.last.0 {
            Some(Action::Probe(slot, _)) => limits::below("last", [slot], instance.slots),
            _ => InvalidInput::unless(
                state.probing == 0,
                "probing",
                "must be 0 unless the last line is a probe",
            ),
        }
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let operation =
            *instance.operations.get(state.done).ok_or(Illegal("every operation is done"))?;
        if matches!(
            *action,
            Action::Probe(slot, _) | Action::Put(slot) | Action::Found(slot) | Action::Del(slot)
                if slot >= instance.slots
        ) {
            return Err(Illegal("there is no such slot"));
        }

        match (*action, operation) {
            (Action::Probe(..), _) if state.probing >= instance.slots => {
                return Err(Illegal("as many slots as there are have been probed"));
            }
            (Action::Probe(slot, content), _) => {
                state.probing += 1;
                state.probes += 1;
                state.collisions += usize::from(content == Content::Other);
                // An insert reuses the first tombstone that it passed.
                if content == Content::Tomb && state.tomb == OptionalIndex::NONE {
                    state.tomb = OptionalIndex::some(slot);
                }
            }
            (Action::Put(slot), Operation::Insert(key)) => state.table.0[slot] = Slot::Key(key),
            (Action::Del(slot), Operation::Delete(_)) => state.table.0[slot] = Slot::Tombstone,
            (Action::Full, Operation::Insert(_)) => state.full += 1,
            (Action::Found(_), Operation::Search(_))
            | (Action::Dup, Operation::Insert(_))
            | (Action::Missing, Operation::Search(_) | Operation::Delete(_)) => {}
            _ => return Err(Illegal("the operation has no such result")),
        }

        if !matches!(action, Action::Probe(..)) {
            state.done += 1;
            state.probing = 0;
            state.tomb = OptionalIndex::NONE;
        }
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let operation = *instance.operations.get(state.done)?;
        let probe = |slot: usize| Action::Probe(slot, state.table.content(slot, operation.key()));
        let Some(Action::Probe(slot, content)) = state.last.0 else {
            return Some(probe(instance.home(operation.key())));
        };

        let over = state.probing >= instance.slots;
        Some(match (content, operation) {
            (Content::Hit, Operation::Insert(_)) => Action::Dup,
            (Content::Hit, Operation::Search(_)) => Action::Found(slot),
            (Content::Hit, Operation::Delete(_)) => Action::Del(slot),
            (Content::Empty, Operation::Insert(_)) => Action::Put(state.tomb.get().unwrap_or(slot)),
            (Content::Tomb | Content::Other, _) if !over => probe((slot + 1) % instance.slots),
            (_, Operation::Insert(_)) => state.tomb.get().map_or(Action::Full, Action::Put),
            _ => Action::Missing,
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        // Why a clean trace answers right: `home` and `consecutive` give the slot of each probe,
        // `true-probe` what is there, and `scan` when probing stops and with which of two results;
        // which of them is possible follows from the operation and `put-place`, and with it the
        // slot.
        let Some(operation) = instance.operations.get(before.done) else { return };

        let there = |slot: usize| before.table.content(slot, operation.key());
        let truth = match *action {
            Action::Probe(slot, content) => there(slot) == content,
            Action::Found(slot) | Action::Del(slot) => there(slot) == Content::Hit,
            Action::Put(slot) => !matches!(there(slot), Content::Hit | Content::Other),
            _ => true,
        };
        found.require(page::TRUE_PROBE, truth);

        if let (Action::Probe(slot, _), Some(Action::Probe(previous, _))) = (*action, before.last.0)
        {
            found.require(page::CONSECUTIVE, slot == (previous + 1) % instance.slots);
        }

        let is_home =
            |slot: usize| before.latest_probe().is_some() || slot == instance.home(operation.key());
        found.require(page::HOME, !matches!(*action, Action::Probe(slot, _) if !is_home(slot)));
        found.require(page::SCAN, before.has_scanned_for(action, instance.slots));

        let free = match (*action, before.latest_probe()) {
            (Action::Put(slot), latest) => match before.tomb.get() {
                Some(tomb) => slot == tomb,
                None => latest == Some((slot, Content::Empty)),
            },
            (Action::Full, latest) => {
                before.tomb == OptionalIndex::NONE && !matches!(latest, Some((_, Content::Empty)))
            }
            _ => true,
        };
        found.require(page::PUT_PLACE, free);

        found.require(page::REACHABLE, after.table.is_reachable(|key| instance.home(key)));
        found.require(page::DISTINCT, after.table.is_distinct());

        if Self::ended(instance, after) {
            found.require(page::ALL_DONE, after.done == instance.operations.len());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.done >= instance.operations.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // An operation passes only slots that are in use, at most one for each insert before, and
        // one more; it probes no slot twice; then comes its result.
        let mut inserts = 0;
        let mut steps = 0;
        for operation in &instance.operations {
            steps += (inserts + 1).min(instance.slots as u64) + 1;
            inserts += u64::from(matches!(operation, Operation::Insert(_)));
        }
        steps
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "table": state.table,
            "size": state.table.keys().count(),
            "tombstones": state.table.tombstones(),
            "probes": state.probes,
            "collisions": state.collisions,
            "full": state.full,
        })
    }
}
