//! What a study found, in the sentences with which its page begins.

use prime_page::number::{count, fixed, trimmed};

use crate::results::{Accuracy, PairResults, Results, over_instances};
use crate::statistics::{ALPHA, Computed, Interval};
use crate::tables::{gain, pair_tests};

/// Systems that were asked fewer than this share of the instances of the one asked most are not
/// ranked with the others.
const ASKED_MIN: f64 = 0.75;

/// `95.8 % (82.6 to 100.0)`, or the reason why there is no interval.
fn share(accuracy: &Accuracy) -> String {
    let interval = match &accuracy.interval {
        Ok(interval) => bounds(*interval),
        Err(reason) => format!("no interval: {reason}"),
    };
    format!("{} % ({interval})", fixed(100.0 * accuracy.mean, 1))
}

fn bounds(interval: Interval) -> String {
    format!("{} to {}", fixed(100.0 * interval.low, 1), fixed(100.0 * interval.high, 1))
}

fn p_text(p: f64) -> String {
    if p < 0.001 { "p < 0.001".to_owned() } else { format!("p = {p:.3}") }
}

fn noun(number: usize, one: &str) -> String {
    let plural = if number == 1 { "" } else { "s" };
    format!("{} {one}{plural}", count(number as u64))
}

fn of_instances(accuracy: &Accuracy) -> String {
    format!("{} of {}", noun(accuracy.n, "instance"), noun(accuracy.tasks, "task"))
}

/// `+4.3 percentage points (0.7 to 7.9; p = 0.021)`.
fn difference(pair: &PairResults, p: &Computed<f64>) -> String {
    let (gain, interval) = gain(pair);
    let interval = match interval {
        Ok(interval) => bounds(interval),
        Err(reason) => format!("no interval: {reason}"),
    };
    let p = match p {
        Ok(p) => p_text(*p),
        Err(reason) => format!("no test: {reason}"),
    };
    format!("{} percentage points ({interval}; {p})", fixed(100.0 * gain, 1))
}

/// A system's name, in quotes where its commas would break the sentence.
fn quoted(name: &str) -> String {
    if name.contains(',') { format!("“{name}”") } else { name.to_owned() }
}

/// The sentences. Accuracies are over instances, as in the table of systems.
pub(super) fn result(results: &Results<'_>) -> Vec<String> {
    let measured: Vec<(String, Accuracy)> = results
        .systems
        .iter()
        .map(|system| (quoted(&system.label), over_instances(&system.values(|_, _| true))))
        .filter(|(_, accuracy)| accuracy.n > 0)
        .collect();

    let mut sentences = match &measured[..] {
        [] => return vec!["No run was measured.".to_owned()],
        [(name, accuracy)] => {
            vec![format!("{name} solves {} of {}.", share(accuracy), of_instances(accuracy))]
        }
        [(left, first), (right, second)] => {
            let asked = if first.n == second.n && first.tasks == second.tasks {
                String::new()
            } else {
                format!(" of {}", of_instances(first))
            };
            vec![format!(
                "{right} solves {} of {}, {left} {}{asked}.",
                share(second),
                of_instances(second),
                share(first)
            )]
        }
        many => vec![ranked(many)],
    };
    sentences.extend(compared(results));
    sentences.push("Intervals are at 95 %.".to_owned());
    // A number and its unit stay on one line.
    sentences.into_iter().map(|sentence| sentence.replace(" %", "\u{a0}%")).collect()
}

/// The systems that solve the most and the fewest.
fn ranked(systems: &[(String, Accuracy)]) -> String {
    let most = systems.iter().map(|(_, accuracy)| accuracy.n).max().unwrap_or_default();
    let least = ASKED_MIN * most as f64;
    let mut asked: Vec<_> = systems.iter().filter(|it| it.1.n as f64 >= least).collect();
    // Ties stay in the study's order.
    asked.sort_by(|a, b| b.1.mean.total_cmp(&a.1.mean));

    let which = match systems.len() - asked.len() {
        0 => format!("Of {}", noun(systems.len(), "system")),
        _ => format!(
            "Of the {} that were asked {} or more instances",
            noun(asked.len(), "system"),
            count(asked.iter().map(|it| it.1.n).min().unwrap_or_default() as u64)
        ),
    };
    let (Some(best), Some(worst)) = (asked.first(), asked.last()) else { return String::new() };
    if best.1.mean == worst.1.mean {
        return format!(
            "{which}, each solves {} % of its instances.",
            fixed(100.0 * best.1.mean, 1)
        );
    }

    let named = |mean: f64, end: &(String, Accuracy)| {
        let others = asked.iter().filter(|it| it.1.mean == mean).count() - 1;
        match others {
            0 => (end.0.clone(), "solves"),
            1 => (format!("{} and one other", end.0), "solve"),
            _ => (format!("{} and {others} others", end.0), "solve"),
        }
    };
    // The first of several that solve the fewest, as of several that solve the most.
    let worst = asked.iter().find(|it| it.1.mean == worst.1.mean).unwrap_or(worst);
    let ((most, solves), (fewest, _)) = (named(best.1.mean, best), named(worst.1.mean, worst));
    format!(
        "{which}, {most} {solves} the most, {} of {}, and {fewest} the fewest, {} of {}.",
        share(&best.1),
        of_instances(&best.1),
        share(&worst.1),
        of_instances(&worst.1)
    )
}

/// The differences of the pairs, with their tests.
fn compared(results: &Results<'_>) -> Option<String> {
    let tests = pair_tests(&results.pairs);
    if let ([pair], [(p, _)]) = (&results.pairs[..], &tests[..]) {
        let of = if results.systems.len() > 2 {
            format!(" from {} to {}", quoted(&pair.left), quoted(&pair.right))
        } else {
            String::new()
        };
        return (pair.n() > 0).then(|| {
            format!("The difference{of} on {} is {}.", noun(pair.n(), "pair"), difference(pair, p))
        });
    }

    let made = tests.iter().filter(|(_, adjusted)| adjusted.is_ok()).count();
    let is_significant = |p: &Computed<f64>| p.as_ref().is_ok_and(|p| *p < ALPHA);
    let found = results.pairs.iter().zip(&tests).filter(|(_, (_, p))| is_significant(p));
    let mut found: Vec<_> = found.map(|(pair, (_, p))| (pair, p)).collect();
    let size = |pair: &PairResults| gain(pair).0.abs();
    found.sort_by(|a, b| size(b.0).total_cmp(&size(a.0)));

    match (&found[..], made) {
        (_, 0) => None,
        ([], _) => Some(format!(
            "None of {} is significant at {} % after Holm's adjustment.",
            noun(made, "tested difference"),
            trimmed(100.0 * ALPHA, 1)
        )),
        ([(pair, p), more @ ..], _) => {
            let (verb, which) = if more.is_empty() {
                ("is", ", that from")
            } else {
                ("are", ", the largest of them from")
            };
            Some(format!(
                "{} of {} {verb} significant at {} % after Holm's adjustment{which} {} to {}: {}.",
                count(found.len() as u64),
                noun(made, "tested difference"),
                trimmed(100.0 * ALPHA, 1),
                quoted(&pair.left),
                quoted(&pair.right),
                difference(pair, p)
            ))
        }
    }
}
