//! Character classes and their UTF-8 byte sequences.

use regex_syntax::utf8::{Utf8Sequence, Utf8Sequences};

/// All characters that a text can contain. NUL is excluded: llama.cpp ends a text there, and no
/// answer needs it.
const ALL: [(char, char); 2] = [('\u{1}', '\u{D7FF}'), ('\u{E000}', char::MAX)];

/// Inclusive ranges of code points, as a class lists them, in any order.
#[derive(Debug, Default)]
pub(super) struct CharClass {
    ranges: Vec<(u32, u32)>,
}

impl CharClass {
    pub(super) fn add(&mut self, low: u32, high: u32) {
        self.ranges.push((low, high));
    }

    /// The characters in the ranges.
    pub(super) fn sequences(&self) -> Vec<Utf8Sequence> {
        utf8(&self.merged())
    }

    /// The characters in none of the ranges.
    pub(super) fn other_sequences(&self) -> Vec<Utf8Sequence> {
        let mut others = Vec::new();
        let mut from = 0;
        for (low, high) in self.merged() {
            if from < low {
                others.push((from, low - 1));
            }
            from = high.saturating_add(1);
        }
        // `utf8` clips this range to the last character.
        others.push((from, u32::MAX));
        utf8(&others)
    }

    /// The ranges, sorted and disjoint.
    fn merged(&self) -> Vec<(u32, u32)> {
        let mut ranges = self.ranges.clone();
        ranges.sort_unstable();
        let mut merged: Vec<(u32, u32)> = Vec::with_capacity(ranges.len());
        for (low, high) in ranges {
            match merged.last_mut() {
                Some(last) if low <= last.1.saturating_add(1) => last.1 = last.1.max(high),
                _ => merged.push((low, high)),
            }
        }
        merged
    }
}

/// The byte sequences of all characters in the ranges, sorted.
fn utf8(ranges: &[(u32, u32)]) -> Vec<Utf8Sequence> {
    let clipped = ranges.iter().flat_map(|(low, high)| {
        ALL.iter().filter_map(|(first, last)| {
            let low = char::from_u32((*low).max(u32::from(*first)))?;
            let high = char::from_u32((*high).min(u32::from(*last)))?;
            (low <= high).then_some((low, high))
        })
    });
    clipped.flat_map(|(low, high)| Utf8Sequences::new(low, high)).collect()
}
