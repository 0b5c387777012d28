//! Which constraints refused the lines of a run.

use std::collections::BTreeMap;

use prime_printable::printable_line;

use super::record::Record;

/// Most constraints that a record names, and most characters of a name: tasks of your own and
/// verifiers that are models choose theirs freely.
const CONSTRAINTS_MAX: usize = 32;
const NAME_CHARS_MAX: usize = 64;

impl Record {
    /// How many lines each constraint refused, by its name; `None` if that was not recorded or is
    /// malformed.
    pub fn refusals(&self) -> Option<BTreeMap<String, u64>> {
        serde_json::from_str(self.refused.as_deref()?).ok()
    }

    /// Sets how many lines each constraint refused. The constraints that refused most are kept.
    pub fn set_refusals(&mut self, refusals: &BTreeMap<String, u64>) {
        let mut by_name: BTreeMap<String, u64> = BTreeMap::new();
        for (name, lines) in refusals {
            let name = printable_line(name).chars().take(NAME_CHARS_MAX).collect();
            *by_name.entry(name).or_default() += lines;
        }

        let mut sorted: Vec<(String, u64)> = by_name.into_iter().collect();
        sorted.sort_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
        let kept: BTreeMap<String, u64> = sorted.into_iter().take(CONSTRAINTS_MAX).collect();
        self.refused = Some(serde_json::to_string(&kept).expect("invariant: counts serialise"));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    #[test]
    fn names_are_cleaned_and_those_that_refused_most_are_kept() {
        let mut record = record("prime", "n-queens", 0);
        assert_eq!(record.refusals(), None);

        let mut refusals: BTreeMap<String, u64> =
            (0..40).map(|number| (format!("constraint {number:02}"), 1)).collect();
        refusals.insert("\u{1b}[31mred".to_owned(), 3);
        refusals.insert("x".repeat(500), 2);
        record.set_refusals(&refusals);

        let kept = record.refusals().unwrap();
        assert_eq!(kept.len(), 32);
        assert_eq!(kept[&"x".repeat(64)], 2);
        assert!(kept.contains_key("constraint 29") && !kept.contains_key("constraint 30"));
        let red = kept.iter().find(|(name, _)| name.ends_with("[31mred")).unwrap();
        assert!(*red.1 == 3 && !red.0.contains('\u{1b}'), "{red:?}");
    }
}
