//! The parts of a report: results whose verifiers looked at kinds of different worth are never in
//! one table.

use std::collections::BTreeSet;

use crate::records::{Evidence, Record};

/// Records that may stand in one table.
pub(super) struct Part {
    /// What their verifiers looked at, where the report has several parts.
    pub evidence: Option<Evidence>,
    pub records: Vec<Record>,
}

/// Divides records by what their verifiers looked at. Runs without a verifier are in each part, as
/// its baseline: the first part, which has the most records, has all of them; each other part has
/// those of its tasks.
pub(super) fn parts(records: &[Record]) -> Vec<Part> {
    let of = |evidence: Evidence| records.iter().filter(move |run| run.evidence() == evidence);
    let mut found: Vec<Evidence> =
        Evidence::CLAIMS.into_iter().filter(|claim| of(*claim).count() > 0).collect();
    if found.len() < 2 {
        return vec![Part { evidence: None, records: records.to_vec() }];
    }

    // The sort is stable: of parts with equally many records, the stronger evidence is first.
    found.sort_by_key(|claim| std::cmp::Reverse(of(*claim).count()));
    let part = |(place, claim): (usize, Evidence)| {
        let tasks: BTreeSet<&str> = of(claim).map(|run| run.task.as_str()).collect();
        let belongs = |run: &&Record| match run.evidence() {
            Evidence::Nothing => place == 0 || tasks.contains(run.task.as_str()),
            evidence => evidence == claim,
        };
        Part { evidence: Some(claim), records: records.iter().filter(belongs).cloned().collect() }
    };
    found.into_iter().enumerate().map(part).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{checked_by, record};

    #[test]
    fn one_kind_of_evidence_is_one_part() {
        let records =
            [checked_by("", record("base", "n-queens", 0)), record("prime", "n-queens", 0)];
        let parts = parts(&records);
        let [Part { evidence: None, records }] = &parts[..] else { panic!("one part") };
        assert_eq!(records.len(), 2);
    }

    #[test]
    fn each_part_has_its_claim_and_the_baseline_of_its_tasks() {
        let (sound, all) = ("format,invariant,terminal", "format,invariant,transition,terminal");
        let records = [
            checked_by("", record("base", "n-queens", 0)),
            checked_by("", record("base", "bubble-sort", 0)),
            checked_by(sound, record("prime", "n-queens", 0)),
            checked_by(sound, record("prime", "bubble-sort", 0)),
            checked_by(all, record("told", "n-queens", 0)),
            checked_by("format", record("form", "bubble-sort", 0)),
        ];
        let found: Vec<_> = parts(&records)
            .into_iter()
            .map(|part| {
                let of = |run: Record| format!("{} {}", run.system, run.task);
                (part.evidence, part.records.into_iter().map(of).collect::<Vec<_>>())
            })
            .collect();

        let expected = [
            (
                Evidence::Sound,
                &["base n-queens", "base bubble-sort", "prime n-queens", "prime bubble-sort"][..],
            ),
            (Evidence::Incomplete, &["base bubble-sort", "form bubble-sort"]),
            (Evidence::Transition, &["base n-queens", "told n-queens"]),
        ];
        assert_eq!(found.len(), expected.len());
        for ((evidence, runs), (claim, names)) in found.iter().zip(expected) {
            assert_eq!(*evidence, Some(claim));
            assert_eq!(runs, names);
        }
    }
}
