//! Random batches against a model in memory.

use std::collections::BTreeMap;

use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

use super::fixtures::{Make, row};
use crate::chain::{ChainHash, Head};
use crate::error::JournalError;
use crate::journal::{Journal, Query, Write};
use crate::records::{
    FlaggedEvent, IdempotencyKey, Review, ReviewCounts, RunRow, Segment, Snapshot,
};

const IDS: [&str; 4] = ["a", "b", "c", "d"];
const OWNERS: [&str; 2] = ["ada", "bob"];
const STATUSES: [&str; 2] = ["queued", "running"];
const KEYS: [&str; 2] = ["k", "l"];

#[derive(Clone, Debug)]
enum Step {
    /// One batch.
    Commit(Vec<Change>),
    Reopen,
}

/// A write, before it is known which head it must follow.
#[derive(Clone, Debug)]
enum Change {
    Accept {
        id: usize,
        owner: usize,
        created_ms: u64,
        key: Option<usize>,
    },
    /// `skip` is the distance to the event that would follow; only 0 is right.
    Append {
        id: usize,
        lengths: Vec<usize>,
        skip: i64,
    },
    Update {
        id: usize,
        status: usize,
        is_over: bool,
        at: u32,
    },
    /// `ahead` is the distance to the last event; only up to 0 is right.
    Save {
        id: usize,
        ahead: i64,
        length: usize,
    },
    /// `ahead` as above, for two events.
    Flag {
        id: usize,
        ahead: [i64; 2],
    },
    /// Only of a flagged event.
    Review {
        id: usize,
        ahead: i64,
        is_rejected: bool,
        at: u32,
    },
}

fn changes() -> impl Strategy<Value = Change> {
    let id = 0..IDS.len();
    let skip = prop_oneof![20 => Just(0_i64), 1 => -2_i64..3];
    let lengths = prop::collection::vec(prop_oneof![5 => 0_usize..40, 1 => 400_usize..3_000], 1..5);

    prop_oneof![
        3 => (id.clone(), 0..OWNERS.len(), 0_u64..3, prop::option::of(0..KEYS.len()))
            .prop_map(|(id, owner, created_ms, key)| Change::Accept { id, owner, created_ms, key }),
        6 => (id.clone(), lengths, skip).prop_map(|(id, lengths, skip)| Change::Append { id, lengths, skip }),
        2 => (id.clone(), 0..STATUSES.len(), prop::bool::weighted(0.1), 0_u32..99)
            .prop_map(|(id, status, is_over, at)| Change::Update { id, status, is_over, at }),
        2 => (id.clone(), prop_oneof![9 => -3_i64..1, 1 => Just(1_i64)], 0_usize..2_000)
            .prop_map(|(id, ahead, length)| Change::Save { id, ahead, length }),
        2 => (id.clone(), prop_oneof![9 => -3_i64..1, 1 => Just(1_i64)], -1_i64..1)
            .prop_map(|(id, one, other)| Change::Flag { id, ahead: [one, other] }),
        2 => (id, -2_i64..1, prop::bool::ANY, 0_u32..99)
            .prop_map(|(id, ahead, is_rejected, at)| Change::Review { id, ahead, is_rejected, at }),
    ]
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    // Short batches are mostly right. The first batch always is, because only runs that exist can
    // get events.
    let batch = prop::collection::vec(changes(), 1..4).prop_map(Step::Commit);
    let begin = (0..OWNERS.len(), 0_u64..3).prop_map(|(owner, created_ms)| {
        let accept = |id| Change::Accept {
            id,
            owner: (owner + id) % 2,
            created_ms: created_ms + id as u64 % 2,
            key: None,
        };
        Step::Commit(vec![accept(0), accept(2)])
    });

    let later = prop::collection::vec(prop_oneof![12 => batch, 1 => Just(Step::Reopen)], 1..14);
    (begin, later).prop_map(|(begin, mut later)| {
        later.insert(0, begin);
        later
    })
}

#[derive(Clone, Debug)]
struct Known {
    row: RunRow,
    key: Option<IdempotencyKey>,
    segments: Vec<Segment>,
    snapshot: Option<Snapshot>,
    flags: BTreeMap<u64, Vec<Review>>,
}

impl Known {
    fn count(&mut self) {
        let of = |has: fn(&Vec<Review>) -> bool| {
            self.flags.values().filter(|reviews| has(reviews)).count() as u64
        };
        self.row.reviews = ReviewCounts {
            needed: of(|_| true),
            open: of(Vec::is_empty),
            rejected: of(|reviews| reviews.last().is_some_and(|last| last.is_rejected)),
        };
    }

    fn flagged(&self) -> Vec<FlaggedEvent> {
        self.flags
            .iter()
            .map(|(seq, reviews)| FlaggedEvent { seq: *seq, reviews: reviews.clone() })
            .collect()
    }
}

/// What a journal holds, in the simplest form.
#[derive(Clone, Debug, Default)]
struct Model {
    runs: BTreeMap<String, Known>,
}

impl Model {
    fn head(&self, id: &str) -> Head {
        self.runs.get(id).map_or_else(|| row(id).head, |known| known.row.head)
    }

    /// The change as a write to the runs as they are here.
    fn write(&self, change: &Change) -> Write {
        match change {
            Change::Accept { id, owner, created_ms, key } => {
                let (owner, created_ms) = (OWNERS[*owner].to_owned(), *created_ms);
                let key = key.map(|key| IdempotencyKey {
                    key: KEYS[key].to_owned(),
                    fingerprint: ChainHash::genesis(IDS[*id]).0,
                });
                Write::Accept { row: RunRow { owner, created_ms, ..row(IDS[*id]) }, key }
            }
            Change::Append { id, lengths, skip } => {
                let head = self.head(IDS[*id]);
                let head = Head { seq: head.seq.saturating_add_signed(*skip), ..head };
                let lines = lengths.iter().map(|length| "x".repeat(*length));
                Write::Append { id: IDS[*id].to_owned(), segment: Segment::following(head, lines) }
            }
            Change::Update { id, status, is_over, at } => Write::Update {
                id: IDS[*id].to_owned(),
                updated_ms: u64::from(*at),
                status: STATUSES[*status].to_owned(),
                is_over: *is_over,
                resumed: *at,
                summary: format!("{{\"at\":{at}}}"),
            },
            Change::Save { id, ahead, length } => {
                let seq = self.head(IDS[*id]).seq.saturating_add_signed(*ahead);
                Write::Save {
                    id: IDS[*id].to_owned(),
                    snapshot: Snapshot { seq, body: vec![b'y'; *length] },
                }
            }
            Change::Flag { id, ahead } => {
                let last = self.head(IDS[*id]).seq;
                let seqs = ahead.map(|ahead| last.saturating_add_signed(ahead)).to_vec();
                Write::Flag { id: IDS[*id].to_owned(), seqs }
            }
            Change::Review { id, ahead, is_rejected, at } => {
                let seq = self.head(IDS[*id]).seq.saturating_add_signed(*ahead);
                let (by, note) =
                    (OWNERS[*at as usize % 2].to_owned(), "n".repeat(*at as usize % 3));
                let review = Review { at_ms: u64::from(*at), by, is_rejected: *is_rejected, note };
                Write::Review { id: IDS[*id].to_owned(), seq, review }
            }
        }
    }

    /// Applies the write if it is allowed. Returns whether it is.
    fn apply(&mut self, write: Write) -> bool {
        match write {
            Write::Accept { row, key } => {
                let is_taken = |known: &Known| {
                    key.is_some()
                        && known.row.owner == row.owner
                        && known.key.as_ref().map(|key| &key.key)
                            == key.as_ref().map(|key| &key.key)
                };

                if self.runs.contains_key(&row.id) || self.runs.values().any(is_taken) {
                    return false;
                }

                let known = Known {
                    row: row.clone(),
                    key,
                    segments: Vec::new(),
                    snapshot: None,
                    flags: BTreeMap::new(),
                };
                self.runs.insert(row.id, known).is_none()
            }
            Write::Append { id, segment } => {
                let Some(known) = self.runs.get_mut(&id) else { return false };
                if known.row.is_over || segment.first_seq != known.row.head.seq + 1 {
                    return false;
                }

                known.row.head = segment.head();
                known.segments.push(segment);
                true
            }
            Write::Update { id, updated_ms, status, is_over, resumed, summary } => {
                let Some(known) =
                    self.runs.get_mut(&id).filter(|known| !known.row.is_over || is_over)
                else {
                    return false;
                };
                known.row =
                    RunRow { updated_ms, status, is_over, resumed, summary, ..known.row.clone() };
                true
            }
            Write::Save { id, snapshot } => {
                let known =
                    self.runs.get_mut(&id).filter(|known| snapshot.seq <= known.row.head.seq);
                known.map(|known| known.snapshot = Some(snapshot)).is_some()
            }
            Write::Flag { id, seqs } => {
                let is_there = |known: &&mut Known| {
                    seqs.iter().all(|seq| (1..=known.row.head.seq).contains(seq))
                };
                let Some(known) = self.runs.get_mut(&id).filter(is_there) else { return false };

                for seq in seqs {
                    known.flags.entry(seq).or_default();
                }
                known.count();
                true
            }
            Write::Review { id, seq, review } => {
                let known = self.runs.get_mut(&id).filter(|known| known.flags.contains_key(&seq));

                let Some(known) = known else { return false };

                let reviews = known.flags.entry(seq).or_default();
                if reviews.last().is_none_or(|last| !last.repeats(&review)) {
                    reviews.push(review);
                }
                known.count();
                true
            }
            Write::Enqueue { id, .. } => self.runs.contains_key(&id),
        }
    }

    /// The rows that pass, in the order of a listing.
    fn listed(&self, owner: Option<&str>, status: Option<&str>) -> Vec<RunRow> {
        let rows = self.runs.values().map(|known| &known.row);
        let passes = |row: &&RunRow| {
            owner.is_none_or(|owner| row.owner == owner)
                && status.is_none_or(|status| row.status == status)
        };

        let mut rows: Vec<_> = rows.filter(passes).cloned().collect();
        rows.sort_by(|one, other| (other.created_ms, &other.id).cmp(&(one.created_ms, &one.id)));
        rows
    }

    /// Fails unless the journal holds the same. A quick check.
    fn check(&self, journal: &dyn Journal) {
        for id in IDS {
            let known = self.runs.get(id);
            assert_eq!(journal.run(id).unwrap().as_ref(), known.map(|known| &known.row));
            assert_eq!(
                journal.snapshot(id).unwrap(),
                known.and_then(|known| known.snapshot.clone())
            );

            let all = known.map(|known| &known.segments[..]).unwrap_or_default();
            assert!(journal.segments(id, 0, usize::MAX).unwrap() == all, "{id}");
            assert_eq!(
                journal.reviews(id, 0, u32::MAX).unwrap(),
                known.map(Known::flagged).unwrap_or_default()
            );
        }

        let mut open = self.listed(None, None);
        open.retain(|row| !row.is_over);
        open.reverse();

        assert_eq!(
            journal.open_runs().unwrap(),
            crate::RunRows { rows: open.clone(), ..crate::RunRows::default() }
        );

        let size = journal.size().unwrap();
        assert_eq!((size.runs, size.open_runs), (self.runs.len() as u64, open.len() as u64));
    }

    /// Compares every kind of read.
    fn check_all(&self, journal: &dyn Journal) {
        self.check(journal);
        for id in IDS {
            let all = self.runs.get(id).map(|known| &known.segments[..]).unwrap_or_default();
            for after in 0..=self.head(id).seq + 1 {
                let from = all.partition_point(|segment| segment.last_seq() <= after);
                assert!(
                    journal.segments(id, after, usize::MAX).unwrap() == all[from..],
                    "{id} after {after}"
                );
                let one = &all[from..all.len().min(from + 1)];
                assert!(journal.segments(id, after, 0).unwrap() == one, "{id} after {after}");
            }
        }

        for owner in OWNERS {
            for key in KEYS {
                let has = |known: &&Known| {
                    known.row.owner == owner
                        && known.key.as_ref().is_some_and(|given| given.key == key)
                };
                let expected = self.runs.values().find(has);
                let expected = expected
                    .map(|known| (known.row.id.clone(), known.key.as_ref().unwrap().fingerprint));
                assert_eq!(journal.run_of_key(owner, key).unwrap(), expected);
            }
        }

        for owner in [None, Some(OWNERS[0]), Some(OWNERS[1])] {
            for status in [None, Some(STATUSES[0]), Some(STATUSES[1])] {
                for limit in [1, 3, 9] {
                    let expected = self.listed(owner, status);
                    assert_eq!(
                        paged(journal, owner, status, limit),
                        expected,
                        "{owner:?} {status:?} by {limit}"
                    );
                }
            }
        }
    }
}

/// A listing, page by page.
fn paged(
    journal: &dyn Journal,
    owner: Option<&str>,
    status: Option<&str>,
    limit: u32,
) -> Vec<RunRow> {
    let mut rows: Vec<RunRow> = Vec::new();
    loop {
        let after = rows.last().map(|row| row.id.clone());
        let (owner, status) = (owner.map(str::to_owned), status.map(str::to_owned));
        let page =
            journal.list(&Query { owner, status, after, limit, ..Query::default() }).unwrap();
        assert_eq!(page.damaged, []);

        let last = page.rows.last().map(|row| row.id.clone());
        assert_eq!(page.next, last.filter(|_| page.rows.len() == limit as usize));

        rows.extend(page.rows);
        if page.next.is_none() {
            return rows;
        }
    }
}

/// After any batches, reopened at any time, a journal holds what the model holds, and refuses what
/// it refuses.
pub fn agrees_with_the_model(make: Make<'_>) {
    let config = Config { cases: 32, failure_persistence: None, ..Config::default() };
    let outcome = TestRunner::new(config).run(&steps(), |steps| {
        let mut store = make();
        let mut model = Model::default();

        for step in steps {
            let Step::Commit(changes) = step else {
                store.reopen();
                model.check_all(store.journal());
                continue;
            };

            let mut next = model.clone();
            let mut writes = Vec::new();
            let mut is_right = true;
            for change in &changes {
                writes.push(next.write(change));
                is_right &= next.apply(writes[writes.len() - 1].clone());
            }

            match store.journal().commit(&writes) {
                Ok(()) => {
                    assert!(is_right, "done, but wrong: {writes:?}");
                    model = next;
                }
                Err(JournalError::Refused(reason)) => assert!(!is_right, "{reason}: {writes:?}"),
                Err(error) => panic!("{error}"),
            }

            model.check(store.journal());
        }

        model.check_all(store.journal());
        Ok(())
    });

    outcome.unwrap_or_else(|error| panic!("{error}"));
}
