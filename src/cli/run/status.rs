//! The status of a run in progress, as text. Pure.

use std::time::Duration;

use super::live::Expected;
use crate::cli::output::{count, wrapped};
use crate::cli::trajectories::Trajectories;

/// What is shown of a run.
pub struct Status<'s> {
    /// Committed steps of the longest trajectory of the round.
    pub steps: u64,
    pub expected: Expected,
    pub elapsed: Duration,
    /// The run's wall time, if it is limited.
    pub limit: Option<Duration>,
    pub round: u64,
    pub max_rounds: u32,
    /// Trajectories of the round that have ended, of `fanout`.
    pub ended: u64,
    pub fanout: u64,
    pub retries: u64,
    pub backtracks: u64,
    pub trajectories: &'s Trajectories,
}

impl Status<'_> {
    /// The status in one line.
    pub fn line(&self) -> String {
        let seconds = self.elapsed.as_secs();
        let time = match self.limit {
            Some(limit) => format!("{seconds} of at most {} s", limit.as_secs()),
            None => format!("{seconds} s"),
        };
        let length = match self.expected {
            Expected::About(steps) => format!("about {steps}"),
            Expected::AtMost(steps) => format!("at most {steps}"),
        };
        let left = self.left().map_or_else(String::new, |left| format!(", about {left} s left"));

        let rejected = self.retries + self.backtracks;
        format!(
            "step {} of {length} · {time}{left} · round {} of {} · {} of {} ended · {rejected} \
             rejected",
            self.steps,
            self.round,
            self.max_rounds,
            self.ended,
            count(self.fanout, "trajectory"),
        )
    }

    /// Seconds until the longest trajectory ends at its pace so far, where its length is known.
    fn left(&self) -> Option<u64> {
        let Expected::About(all) = self.expected else { return None };
        let left = all.checked_sub(self.steps).filter(|left| *left > 0 && self.steps > 0)?;
        let millis = self.elapsed.as_millis() * u128::from(left) / u128::from(self.steps);
        u64::try_from(millis.div_ceil(1_000)).ok()
    }

    /// The status and what each trajectory does, wrapped at words within `columns`.
    pub fn lines(&self, columns: usize) -> String {
        let mut text = wrapped(&self.line(), Some(columns));
        text += &self.trajectories.rows(self.fanout, columns);
        text.truncate(text.trim_end().len());
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_protocol::{Decision, TurnId};

    fn status(trajectories: &Trajectories) -> Status<'_> {
        Status {
            steps: 10,
            expected: Expected::About(30),
            elapsed: Duration::from_secs(5),
            limit: Some(Duration::from_mins(10)),
            round: 1,
            max_rounds: 3,
            ended: 0,
            fanout: 4,
            retries: 1,
            backtracks: 2,
            trajectories,
        }
    }

    #[test]
    fn a_run_shows_its_pace_its_trajectories_and_its_last_rejection() {
        let mut trajectories = Trajectories::default();
        let id = TurnId { round: 1, trajectory: 2 };
        trajectories.settled(id, 8, "place 8 1", None, Decision::Proceed);
        let why = Some("no-attack: two queens attack each other");
        trajectories.settled(id, 9, "place 3 4", why, Decision::Retry);
        // Ten steps in five seconds: twenty more take ten.
        let expected = "\
step 10 of about 30 · 5 of at most 600 s, about 10 s left · round 1 of 3 · 0
            of 4 trajectories ended · 3 rejected
  trajectory 2  step 9: place 8 1
  rejected  trajectory 2, step 10: place 3 4: no-attack: two queens attack
            each other";
        assert_eq!(status(&trajectories).lines(76), expected);
    }

    #[test]
    fn nothing_is_promised_where_the_length_is_unknown_or_exceeded() {
        let nothing = Trajectories::default();
        let open = Status { expected: Expected::AtMost(10_000), ..status(&nothing) };
        assert!(open.line().starts_with("step 10 of at most 10000 · 5 of at most 600 s · round"));
        let longer = Status { steps: 31, ..status(&nothing) };
        assert!(!longer.line().contains("left"), "{}", longer.line());
        let begun = Status { steps: 0, ..status(&nothing) };
        assert!(!begun.line().contains("left"), "{}", begun.line());
    }
}
