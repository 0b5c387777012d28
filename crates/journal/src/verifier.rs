//! Verifies the hash chain of a run.

use crate::chain::Head;
use crate::error::JournalError;
use crate::records::Segment;

/// Where the events of a run stop matching the chain.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("run {run:?}, event {seq}: {reason}")]
pub struct Damage {
    /// The id of the run.
    pub run: String,
    /// The first event that does not match, or the first of its segment where only the segment's
    /// hash shows it.
    pub seq: u64,
    /// What does not match.
    pub reason: String,
}

impl From<Damage> for JournalError {
    fn from(damage: Damage) -> Self {
        Self::Damaged(damage.to_string())
    }
}

/// Verifies the chain of a run incrementally, segment by segment.
#[derive(Clone, Debug)]
pub struct ChainVerifier {
    run: String,
    head: Head,
}

impl ChainVerifier {
    /// Starts before the run's first event.
    pub fn new(run: &str, spec: &str) -> Self {
        Self { run: run.to_owned(), head: Head::genesis(spec) }
    }

    /// The last verified event. Compare it with [`RunRow::head`] to detect events lost at the end.
    ///
    /// [`RunRow::head`]: crate::RunRow::head
    pub fn head(&self) -> Head {
        self.head
    }

    /// Verifies the next segment.
    ///
    /// # Errors
    /// When it does not match; the head then stays.
    pub fn follow(&mut self, segment: &Segment) -> Result<(), Damage> {
        let next = self.head.seq + 1;

        let damage = |reason| Damage { run: self.run.clone(), seq: next, reason };
        if segment.first_seq != next {
            return Err(damage(format!(
                "it is missing: the segment there begins with event {}",
                segment.first_seq
            )));
        }

        let lines = segment.lines().map_err(damage)?;
        if lines != u64::from(segment.count) || lines == 0 {
            return Err(damage(format!(
                "its segment claims to hold {} events, but has {lines}",
                segment.count
            )));
        }

        let hash = segment.events().fold(self.head.hash, |hash, (_, event)| hash.then(event));
        if hash != segment.hash {
            let (last, stored) = (segment.last_seq(), segment.hash);
            return Err(damage(format!(
                "the chain's hash after event {last} is {hash}, but {stored} was recorded"
            )));
        }

        self.head = Head { seq: segment.last_seq(), hash };
        Ok(())
    }
}

/// Verifies all events of a run. Returns its head.
///
/// # Errors
/// The first segment that does not match. Segments lost at the end are not detected here: compare
/// the head.
pub fn verify(
    run: &str,
    spec: &str,
    segments: impl IntoIterator<Item = Segment>,
) -> Result<Head, Damage> {
    let mut verifier = ChainVerifier::new(run, spec);
    segments.into_iter().try_for_each(|segment| verifier.follow(&segment))?;
    Ok(verifier.head())
}

#[cfg(test)]
mod tests {
    use super::*;

    const SPEC: &str = r#"{"task":"edit_distance"}"#;

    /// Events 1–2, 3, 4–6 of a run.
    fn recorded() -> Vec<Segment> {
        let first = Segment::following(Head::genesis(SPEC), [r#"{"a":1}"#, r#"{"a":2}"#]);
        let second = Segment::following(first.head(), [r#"{"b":3} "#]);
        let third = Segment::following(second.head(), [r#"{"c":4}"#, r#"{"c":5}"#, r#"{"c":6}"#]);
        vec![first, second, third]
    }

    #[test]
    fn hashes_match_sha256sum() {
        // printf '%s' '{"task":"edit_distance"}' | sha256sum, and of its bytes with the events

        // after them.
        let segments = recorded();
        assert_eq!(
            Head::genesis(SPEC).hash.to_string(),
            "078e2ca5ceb07db9169938b1dbdf66bd2856784c070c9483bec9f0bfebc63fe6"
        );
        assert_eq!(
            segments[0].hash.to_string(),
            "031747afa150013b0d29c21080694b38940c2a461d9cd77a93ab1e09a72043d8"
        );
        assert_eq!(
            segments[2].hash.to_string(),
            "b28ef31f271aeb9f6580a7e0f937cf223b5d1f990387dddf934b57f20636b466"
        );
    }

    #[test]
    fn recorded_events_verify() {
        let head = verify("r", SPEC, recorded()).unwrap();
        assert_eq!((head.seq, head.hash), (6, recorded()[2].hash));
        assert_eq!(verify("r", SPEC, []), Ok(Head::genesis(SPEC)));

        let events: Vec<_> =
            recorded()[1].events().map(|(seq, event)| (seq, event.to_vec())).collect();
        assert_eq!(events, [(3, br#"{"b":3} "#.to_vec())], "an event keeps its spaces");
    }

    #[test]
    fn damage_is_found_where_it_begins() {
        type Change = fn(&mut Vec<Segment>);
        let cases: [(&str, Change, u64, &str); 14] = [
            ("a changed event", |s| s[1].body[2] = b'x', 3, "hash after event 3"),
            ("a changed event among others", |s| s[2].body[12] = b'x', 4, "hash after event 6"),
            ("a changed hash", |s| s[0].hash.0[31] ^= 1, 1, "hash after event 2"),
            ("a dropped segment", |s| drop(s.remove(1)), 3, "begins with event 4"),
            ("the first is dropped", |s| drop(s.remove(0)), 1, "begins with event 3"),
            ("swapped segments", |s| s.swap(1, 2), 3, "begins with event 4"),
            ("swapped events", |s| s[2].body.rotate_left(8), 4, "hash after event 6"),
            ("an added event", |s| s[1].body.extend(b"{}\n"), 3, "hold 1 events, but has 2"),
            ("a dropped event", |s| s[0].body.truncate(8), 1, "hold 2 events, but has 1"),
            (
                "a dropped event and its count",
                |s| (s[0].count, s[0].body) = (1, b"{\"a\":1}\n".into()),
                1,
                "after event 1",
            ),
            ("a segment twice", |s| s.insert(1, s[0].clone()), 3, "begins with event 1"),
            ("an empty segment", |s| (s[1].count, s[1].body) = (0, Vec::new()), 3, "hold 0 events"),
            ("a cut line", |s| s[2].body.truncate(23), 4, "does not end with a newline"),
            ("a space at an end", |s| s[1].body[7] = b'\t', 3, "hash after event 3"),
        ];
        for (what, change, seq, reason) in cases {
            let mut segments = recorded();
            change(&mut segments);
            let damage = verify("r-7", SPEC, segments).expect_err(what);
            assert_eq!((damage.run.as_str(), damage.seq), ("r-7", seq), "{what}: {damage}");
            assert!(damage.reason.contains(reason), "{what}: {damage}");
        }

        let damage = verify("r", "{}", recorded()).expect_err("another spec");
        assert_eq!(damage.seq, 1);

        let message = JournalError::from(damage).to_string();
        assert!(message.starts_with("the journal is damaged: run \"r\", event 1: "), "{message}");
    }

    #[test]
    fn events_lost_at_the_end_show_in_the_head() {
        let head = verify("r", SPEC, recorded().into_iter().take(2)).unwrap();
        assert_eq!(head.seq, 3);
    }
}
