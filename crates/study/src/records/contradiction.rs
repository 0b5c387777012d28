//! Values that no run can have: a record with one of them was made or changed by something else.

use super::record::Record;

impl Record {
    /// The first contradiction in the record, in words.
    pub(super) fn contradiction(&self) -> Option<String> {
        let durations = [
            ("wall_ms", Some(self.wall_ms)),
            ("queued_ms", self.queued_ms),
            ("matched_budget", self.matched_budget),
            ("executor_ms", self.executor_ms),
            ("verifier_ms", self.verifier_ms),
            ("coordinator_ms", self.coordinator_ms),
        ];
        let shares = [
            ("partial_credit", self.partial_credit, 1.0),
            ("agreement", self.agreement, 1.0),
            ("coordination_share", self.coordination_share, 1.0),
            ("first_error_pct", self.first_error_pct, 100.0),
        ];
        let bounds = durations.map(|(column, value)| (column, value, f64::INFINITY));
        let outside = bounds.into_iter().chain(shares).find_map(|(column, value, most)| {
            let value = value.filter(|value| !(0.0..=most).contains(value))?;
            let most = if most.is_finite() { format!("at most {most}") } else { "finite".into() };
            Some(format!("{column} is {value}, which must be at least 0 and {most}"))
        });
        if outside.is_some() {
            return outside;
        }

        if self.curve.is_some() && self.points().is_none() {
            return Some("curve is not a list of pairs with ascending tokens".to_owned());
        }

        if self.refused.is_some() && self.refusals().is_none() {
            return Some("refused is not an object of constraints with counts".to_owned());
        }

        let votes = self.votes.filter(|votes| *votes > self.trajectories);
        if let Some(votes) = votes {
            let of = self.trajectories;
            return Some(format!("{votes} votes of {of} trajectories"));
        }
        let has_judge = self.verifier != "none";
        if self.accepted && !has_judge {
            return Some("accepted without a verifier".to_owned());
        }
        let is_proof = self.sound == Some(true) && self.accepted;
        (is_proof && self.checked_kinds.is_empty())
            .then(|| "sound and accepted, but no kind of constraint was checked".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::record;

    type Change = fn(&mut Record);

    #[test]
    fn what_no_run_can_have_had_is_named() {
        assert_eq!(record("prime", "n-queens", 0).contradiction(), None);

        let changes: [(Change, &str); 9] = [
            (
                |record| record.refused = Some("{\"sorted\":-1}".to_owned()),
                "refused is not an object",
            ),
            (
                |record| record.curve = Some("[[5,true],[4,false]]".to_owned()),
                "curve is not a list",
            ),
            (|record| record.queued_ms = Some(-1.0), "queued_ms is -1"),
            (|record| record.wall_ms = -5.0, "wall_ms is -5"),
            (|record| record.agreement = Some(7.5), "agreement is 7.5"),
            (|record| record.partial_credit = Some(-3.0), "partial_credit is -3"),
            (|record| record.first_error_pct = Some(101.0), "first_error_pct is 101"),
            (|record| record.votes = Some(record.trajectories + 1), "votes of"),
            (
                |record| (record.verifier, record.accepted) = ("none".to_owned(), true),
                "accepted without a verifier",
            ),
        ];
        for (change, expected) in changes {
            let mut record = record("prime", "n-queens", 0);
            change(&mut record);
            let found = record.contradiction().unwrap_or_default();
            assert!(found.contains(expected), "{expected:?} in {found:?}");
        }
    }
}
