//! Judges a file of submissions line by line, on all cores, in constant memory.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde::Serialize;

use super::judgement::{Judgement, judge};
use super::lines::{Lines, Numbered};
use super::submission::read_submission;
use super::tally::{Report, Tally};
use crate::tasks::{Difficulty, Kinds, Spec};

/// Lines per batch.
const BATCH_LINES: usize = 512;
/// Bytes after which a batch is full; only its last line may exceed them. Bounds the memory.
const BATCH_BYTES: usize = 16 << 20;

/// A line that could not be judged.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// Counted from 1.
    pub line: u64,
    /// Why the line could not be judged.
    pub problem: String,
}

fn batch<R: BufRead>(lines: &mut Lines<R>) -> io::Result<Vec<Numbered>> {
    let mut batch = Vec::new();
    let mut bytes = 0;
    while batch.len() < BATCH_LINES && bytes < BATCH_BYTES {
        let Some(line) = lines.next()? else { break };
        bytes += line.text.as_ref().map_or(0, String::len);
        batch.push(line);
    }
    Ok(batch)
}

fn judge_batch(
    batch: &[Numbered],
    base_seed: u64,
    kinds: Kinds,
    threads: usize,
) -> Vec<Result<Judgement, String>> {
    let next = AtomicUsize::new(0);
    // Judgements arrive in any order; the keys restore that of the file.
    let judged = Mutex::new(BTreeMap::new());
    thread::scope(|scope| {
        for _ in 0..threads.clamp(1, batch.len().max(1)) {
            scope.spawn(|| {
                while let Some((place, line)) = {
                    let place = next.fetch_add(1, Ordering::Relaxed);
                    batch.get(place).map(|line| (place, line))
                } {
                    // The lock is taken only to store the result, not while judging.
                    let judgement = line
                        .text
                        .as_deref()
                        .map_err(Clone::clone)
                        .and_then(|text| read_submission(text, base_seed))
                        .map(|submission| judge(&submission, kinds));
                    judged
                        .lock()
                        .expect("invariant: no thread panics with the lock")
                        .insert(place, judgement);
                }
            });
        }
    });

    judged.into_inner().expect("invariant: no thread panics with the lock").into_values().collect()
}

/// Judges every line of `input` and passes each judgement or finding to `each`, in file order. Only
/// the first submission for an instance counts.
///
/// # Errors
/// When `input` cannot be read or `each` fails.
pub fn check<R: BufRead>(
    input: R,
    base_seed: u64,
    kinds: Kinds,
    threads: usize,
    mut each: impl FnMut(Result<&Judgement, &Finding>) -> io::Result<()>,
) -> io::Result<Report> {
    let mut lines = Lines::new(input);
    let mut tallies: BTreeMap<(u16, Difficulty), (Tally, &'static Spec)> = BTreeMap::new();
    let mut seen: BTreeSet<String> = BTreeSet::new();

    loop {
        let batch = batch(&mut lines)?;
        if batch.is_empty() {
            return Ok(Report::of(&tallies));
        }
        for (line, judgement) in batch.iter().zip(judge_batch(&batch, base_seed, kinds, threads)) {
            let finding = |problem| Finding { line: line.number, problem };
            match judgement {
                Ok(judgement) if seen.contains(&judgement.id) => {
                    each(Err(&finding(format!(
                        "{} was judged before; this line is passed over",
                        judgement.id
                    ))))?;
                }
                Ok(judgement) => {
                    let key = (judgement.spec.id, judgement.difficulty);
                    tallies
                        .entry(key)
                        .or_insert_with(|| (Tally::default(), judgement.spec))
                        .0
                        .add(&judgement);
                    each(Ok(&judgement))?;
                    seen.insert(judgement.id);
                }
                Err(problem) => each(Err(&finding(problem)))?,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tasks::{BASE_SEED, InstanceId, find};

    #[test]
    fn an_input_that_repeats_counts_once_for_the_interval() {
        let tower = find("tower-of-hanoi").expect("a task");
        let id = |index| InstanceId {
            task: tower,
            difficulty: Difficulty::Easy,
            index,
            base_seed: BASE_SEED,
        };
        // Four instances of the benchmark with the input of the first one, all right but the last.
        let first = id(0).problem().input();
        let same: Vec<u32> =
            (0..200).filter(|index| id(*index).problem().input() == first).collect();
        let lines = same[..4].iter().enumerate().map(|(place, index)| {
            let answer = if place < 3 { id(*index).problem().reference().answer } else { 1.into() };
            serde_json::json!({"id": id(*index).to_string(), "actions": null, "answer": answer})
                .to_string()
                + "\n"
        });
        let text: String = lines.collect();

        let report = check(text.as_bytes(), BASE_SEED, Kinds::ALL, 1, |_| Ok(())).expect("read");
        let row = &report.overall;
        assert_eq!((row.submissions, row.inputs, row.correct), (4, 1, 3));
        assert!((row.accuracy - 0.75).abs() < 1e-12);
        // Wilson's interval of three quarters of one observation (by hand): .1179 to .9854.
        assert!((row.low - 0.1179).abs() < 5e-5 && (row.high - 0.9854).abs() < 5e-5, "{row:?}");
    }
}
