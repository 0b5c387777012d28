//! Hash Table: the key's home slot digit by digit of the key, then what the slot holds beside the
//! key.
// A slot's letter, `A` for 0, is its key in the table of a first probe. Numbers of the computation
// have their lowest digit first.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::data_structures::hash_slots::{Content, Slot};
use prime_bench::tasks::data_structures::hash_table::{HashTable, Instance, State};

use crate::Lesson;
use crate::numbers::{compared, incremented, low_first, pairwise, sum};

pub struct HashTableLesson;

/// Digits of a key, and of the numbers that are reduced modulo the slots.
const KEY: usize = 3;
const WIDTH: usize = 4;

/// Multiples of the slots that are tried, and their names.
const MULTIPLES: [(char, usize); 5] = [('e', 16), ('d', 8), ('c', 4), ('b', 2), ('a', 1)];

impl Lesson for HashTableLesson {
    type Task = HashTable;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(operation) = instance.operations.get(state.done) else { return "-".to_owned() };
        let slots = instance.slots;
        let (text, key) = (operation.to_string(), operation.key());
        let operation = format!("{} {key:0KEY$}", text.split(' ').next().unwrap_or_default());

        match state.latest_probe() {
            Some((slot, content)) => {
                let tomb = state.tomb.get().map_or_else(|| "-".to_owned(), |slot| slot.to_string());
                // The slots are a ring.
                let next = state.table.0.get(slot + 1).or(state.table.0.first());
                let next = next.map_or_else(|| "-".to_owned(), |next| held(*next));

                format!(
                    "{operation} at {slot:02} {content} of {slots:02} probed {:02} tomb {tomb} next {next}",
                    state.probing
                )
            }
            None => {
                let table: Vec<_> = state
                    .table
                    .0
                    .iter()
                    .enumerate()
                    .map(|(slot, held_by)| format!("{}{}", letter(slot), held(*held_by)))
                    .collect();
                format!(
                    "{operation} times {:02} plus {:02} of {slots:02} {}",
                    instance.multiplier,
                    instance.offset,
                    table.concat()
                )
            }
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        HashTable::reference(instance, state)?;
        let (key, slots) = (instance.operations.get(state.done)?.key(), instance.slots);

        let met = |slot: usize| {
            let held = held(state.table.0[slot]);
            // Only keys are compared; an empty slot and a tombstone are single signs.
            let compared =
                if held.len() == 1 { held } else { pairwise(&format!("{key:0KEY$}"), &held) };
            format!("{slot:02}{} {compared}", letter(slot))
        };

        match state.latest_probe() {
            Some((_, Content::Hit | Content::Empty)) => Some(String::new()),
            Some(_) if state.probing >= slots => Some(compared(state.probing, slots, 2)),
            Some((slot, _)) => {
                let wrap = compared(slot + 1, slots, 2);
                let next = (slot + 1) % slots;
                Some(format!(
                    "{} {} {wrap} {}",
                    compared(state.probing, slots, 2),
                    incremented(slot, 2),
                    met(next)
                ))
            }
            None => Some(format!("{} {}", reduction(instance, key), met(instance.home(key)))),
        }
    }
}

/// The slot's letter; tables of the benchmark have at most 53.
fn letter(slot: usize) -> char {
    u8::try_from(slot).ok().filter(|slot| *slot < 53).map_or('~', |slot| char::from(b'A' + slot))
}

fn held(slot: Slot) -> String {
    match slot {
        Slot::Empty => ".".to_owned(),
        Slot::Tombstone => "x".to_owned(),
        Slot::Key(key) => format!("{key:0KEY$}"),
    }
}

/// The home of a key: for each of its digits ten times the rest before, plus the multiplier times
/// the digit, in the end plus the offset; the rest is taken modulo the slots by trying to subtract
/// multiples of them. A result below 0 means that the multiple is not subtracted.
fn reduction(instance: &Instance, key: usize) -> String {
    let slots = instance.slots;
    let multiples: Vec<_> = MULTIPLES
        .iter()
        .rev()
        .map(|(name, times)| format!("{name}{}", low_first(slots * times, WIDTH)))
        .collect();
    let mut line = multiples.join(" ");
    let digits = format!("{key:0KEY$}");
    let mut rest = 0;

    for (place, digit) in digits.chars().enumerate() {
        let mut addend = instance.multiplier * digit.to_digit(10).unwrap_or(0) as usize;
        line += &format!(";{digit}:{}", low_first(addend, KEY));
        // The offset belongs to the whole key, so it comes with the last digit.
        if place + 1 == digits.len() {
            line += &format!("+{}", sum(addend, instance.offset, KEY));
            addend += instance.offset;
        }
        if place > 0 {
            line += &format!("+{}", sum(addend, 10 * rest, WIDTH));
        }
        // The multiples below take away up to 31 times the slots.
        rest = (addend + 10 * rest) % (slots * 32);
        line.push(' ');
        // The first digit's product is always below the greatest multiple.
        for (name, times) in MULTIPLES.into_iter().skip(usize::from(place == 0)) {
            let (left, sign) = match rest.checked_sub(slots * times) {
                Some(left) => (left, '+'),
                // Below zero: the ten's complement.
                None => (10_000 + rest - slots * times, '-'),
            };
            line += &format!("{name}{}{sign}", low_first(left, WIDTH));
            if sign == '+' {
                rest = left;
            }
        }
    }

    line
}
