//! Batches and folding: it must not be visible where the events are stored.

use super::super::batches::Backlog;
use super::*;
use crate::conformance::{events, row};
use crate::journal::{Removed, Retention, Write};

/// The next slice of a pass, which begins if there is none: reads a batch, folds a run, or deletes
/// a batch.
pub(super) fn fold_one(journal: &SqliteJournal) -> Result<(), JournalError> {
    let mut writer = journal.lock();
    if writer.pass.is_none() && writer.backlog.rows > 0 {
        writer.begin_pass()?;
    }
    writer.fold_slice(Backlog { rows: 1, bytes: u64::MAX })
}

/// The numbers of rows in `batch` and `segment`.
fn rows(journal: &SqliteJournal) -> (u32, u32) {
    let count = |connection: &Connection, table: &str| {
        connection
            .query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get::<_, u32>(0))
            .unwrap()
    };

    journal
        .readers
        .read(|connection| Ok((count(connection, "batch"), count(connection, "segment"))))
        .unwrap()
}

/// Changes the file without the journal's knowledge.
fn change(journal: &SqliteJournal, sql: &str) {
    journal.lock().write(|connection, _| Ok(connection.execute_batch(sql)?)).unwrap();
}

/// Makes `commits` commits with an event of each run. Returns what was committed, by run.
fn commit_to_all(journal: &SqliteJournal, ids: &[&str], commits: usize) -> Vec<Vec<Segment>> {
    let mut all: Vec<Vec<Segment>> = vec![Vec::new(); ids.len()];
    for _ in 0..commits {
        let mut writes = Vec::new();
        for (id, segments) in ids.iter().zip(&mut all) {
            let head = segments.last().map_or(row(id).head, Segment::head);
            segments.push(events(head, 1));
            writes.push(append(id, &segments[segments.len() - 1]));
        }
        journal.commit(&writes).unwrap();
    }
    all
}

fn check(journal: &SqliteJournal, ids: &[&str], all: &[Vec<Segment>]) {
    for (id, segments) in ids.iter().zip(all) {
        let found = journal.run(id).unwrap().unwrap();
        assert_eq!(found.head, segments[segments.len() - 1].head());
        assert!(journal.segments(id, 0, usize::MAX).unwrap() == *segments, "{id}");
        assert_eq!(verify(id, &found.spec, segments.iter().cloned()), Ok(found.head));
    }
}

#[test]
fn a_commit_is_a_row_and_so_is_a_run_after_folding() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    let ids = ["a", "b", "c"];
    journal.commit(&ids.map(accept)).unwrap();

    let all = commit_to_all(&journal, &ids, 5);
    assert_eq!(rows(&journal), (5, 0));
    check(&journal, &ids, &all);

    journal.fold(false).unwrap();
    assert_eq!(rows(&journal), (5, 0), "it is not due");

    for _ in 0..2 {
        journal.fold(true).unwrap();
        assert_eq!(rows(&journal), (0, 3));
        check(&journal, &ids, &all);
    }

    // Reading from amid a row.
    for after in 0..6 {
        let after_u64 = after as u64;
        assert_eq!(
            journal.segments("b", after_u64, usize::MAX).unwrap(),
            all[1][after.min(5)..],
            "after {after}"
        );
        let one = &all[1][after.min(5)..5.min(after + 1)];
        assert_eq!(journal.segments("b", after_u64, 1).unwrap(), one, "after {after}");
    }
}

#[test]
fn commits_go_on_between_the_slices_of_a_pass() {
    let ids = ["a", "b", "c", "d"];

    // Three slices read, four fold, three delete; then another pass begins.
    for slices in 0..=12_u32 {
        let folder = tempfile::tempdir().unwrap();
        let journal = open(&folder, 0);
        journal.commit(&ids.map(accept)).unwrap();

        let mut all = commit_to_all(&journal, &ids, 3);

        for slice in 1..=slices {
            fold_one(&journal).unwrap();
            if slice <= 10 {
                let batches = 3 + (slice - 1) - slice.saturating_sub(7);
                assert_eq!(
                    rows(&journal),
                    (batches, slice.saturating_sub(3).min(4)),
                    "after slice {slice}"
                );
            }
            check(&journal, &ids, &all);
            all = continue_all(&journal, &ids);
        }

        // What is folded already is not folded again: by another process, or at once.
        if slices % 2 == 0 {
            drop(journal);
            check(&open(&folder, 0), &ids, &all);
        } else {
            journal.fold(true).unwrap();
            check(&journal, &ids, &all);
            assert_eq!(rows(&journal).0, 0);
        }
    }
}

#[test]
fn a_run_may_be_removed_between_slices() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    journal.commit(&[accept("a"), accept("b"), accept("c")]).unwrap();
    let all = commit_to_all(&journal, &["a", "b", "c"], 3);
    journal.commit(&[end("a", 1), end("b", 1)]).unwrap();

    for _ in 0..4 {
        fold_one(&journal).unwrap();
    }

    // As if there were no room to fold first: `a` is folded, `b` is not.
    let old = Retention { updated_before_ms: Some(2), ..Retention::default() };
    while journal.lock().collect(&old, &Measured::default()).unwrap().0.has_more {}

    check(&journal, &["c"], &all[2..]);

    for _ in 0..5 {
        fold_one(&journal).unwrap();
    }

    assert_eq!((journal.size().unwrap().runs, rows(&journal)), (1, (0, 1)));
    check(&journal, &["c"], &all[2..]);
}

#[test]
fn long_segments_are_rows_as_soon_as_the_run_is_folded() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    let ids = ["a", "b"];
    journal.commit(&ids.map(accept)).unwrap();
    let mut all = commit_to_all(&journal, &ids, 2);

    for _ in 0..3 {
        fold_one(&journal).unwrap();
    }

    assert_eq!(rows(&journal), (2, 1));

    for (id, segments) in ids.iter().zip(&mut all) {
        segments.push(noise(segments[1].head(), 700_000));
        journal.commit(&[append(id, &segments[2])]).unwrap();
    }

    // That of `a` is in a row, although its batches are still there, and that of `b` in a batch.
    assert_eq!(rows(&journal), (3, 2));
    check(&journal, &ids, &all);
    assert!(journal.segments("a", 1, usize::MAX).unwrap() == all[0][1..]);

    drop(journal);
    let journal = open(&folder, 0);
    assert_eq!(rows(&journal), (0, 4));
    check(&journal, &ids, &all);
}

#[test]
fn a_commit_folds_when_nobody_else_does() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    journal.commit(&[accept("a"), accept("b")]).unwrap();

    let all = commit_to_all(&journal, &["a", "b"], 513);
    assert_eq!(rows(&journal), (1, 2));
    check(&journal, &["a", "b"], &all);
}

#[test]

fn what_was_not_folded_is_folded_when_it_is_opened() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    journal.commit(&[accept("a"), accept("b")]).unwrap();
    let all = commit_to_all(&journal, &["a", "b"], 3);

    drop(journal);
    let journal = open(&folder, 0);
    assert_eq!(rows(&journal), (0, 2));
    check(&journal, &["a", "b"], &all);

    journal.commit(&[append("a", &events(all[0][2].head(), 1))]).unwrap();
}

#[test]
fn a_torn_commit_is_none() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    let ids = ["a", "b", "c"];
    journal.commit(&ids.map(accept)).unwrap();

    let log = |folder: &TempDir| folder.path().join("runs.db-wal");

    let mut lengths = Vec::new();
    let all = (1..=3).fold(Vec::new(), |_: Vec<Vec<Segment>>, commits| {
        let all = if commits == 1 {
            commit_to_all(&journal, &ids, 1)
        } else {
            continue_all(&journal, &ids)
        };
        lengths.push(fs::metadata(log(&folder)).unwrap().len());
        all
    });

    let (file, wal) =
        (fs::read(folder.path().join("runs.db")).unwrap(), fs::read(log(&folder)).unwrap());

    let begin = lengths[0] - 4_096;
    for length in (begin..=lengths[2]).step_by(509) {
        let torn = tempfile::tempdir().unwrap();
        fs::write(torn.path().join("runs.db"), &file).unwrap();

        fs::write(log(&torn), &wal[..usize::try_from(length).unwrap()]).unwrap();
        let commits = lengths.iter().filter(|whole| **whole <= length).count();

        let journal = open(&torn, 0);
        for (id, segments) in ids.iter().zip(&all) {
            assert!(
                journal.segments(id, 0, usize::MAX).unwrap() == segments[..commits],
                "{id} of {length} bytes"
            );
        }
    }
}

/// Commits one more event of each run. Returns all segments, by run.
fn continue_all(journal: &SqliteJournal, ids: &[&str]) -> Vec<Vec<Segment>> {
    let more = |id: &&str| append(id, &events(journal.run(id).unwrap().unwrap().head, 1));
    journal.commit(&ids.iter().map(more).collect::<Vec<_>>()).unwrap();
    ids.iter().map(|id| journal.segments(id, 0, usize::MAX).unwrap()).collect()
}

#[test]
fn a_damaged_batch_is_named() {
    let damages = [
        "UPDATE batch SET entries = CAST(x'09000000' || substr(entries, 5) AS BLOB)",
        "UPDATE batch SET entries = substr(entries, 1, 40)",
        "UPDATE batch SET digest = x''",
        "UPDATE batch SET bytes = bytes - 1",
        "UPDATE batch SET body = x'00'",
    ];
    for damage in damages {
        let folder = tempfile::tempdir().unwrap();
        let journal = open(&folder, 0);
        journal.commit(&[accept("a"), accept("b")]).unwrap();
        commit_to_all(&journal, &["a", "b"], 1);
        change(&journal, damage);

        let shown = |error: Option<JournalError>| {
            let error = error.expect("it is found");
            assert!(
                matches!(&error, JournalError::Damaged(reason) if reason.starts_with("batch 1: "))
                    || matches!(&error, JournalError::Open { reason, .. }
                        if reason.starts_with("it is damaged: batch 1: ")),
                "{error}"
            );
        };

        shown(journal.segments("b", 0, 1).err());
        shown(journal.fold(true).err());
        shown(journal.fold(true).err());
        drop(journal);
        shown(SqliteJournal::open(&folder.path().join("runs.db"), SqliteOptions::default()).err());
    }
}

#[test]
fn events_of_a_removed_run_go_with_it() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    journal.commit(&[accept("a"), accept("b")]).unwrap();
    let all = commit_to_all(&journal, &["a", "b"], 3);

    journal.commit(&[end("a", 1)]).unwrap();

    // As if there were no room to fold first.
    let old = Retention { updated_before_ms: Some(2), ..Retention::default() };
    let removed = journal.lock().collect(&old, &Measured::default()).unwrap();
    assert_eq!((removed.0.runs, rows(&journal)), (1, (3, 0)));
    assert_eq!(journal.segments("a", 0, usize::MAX).unwrap(), []);

    // Another run with that id does not get them either.
    journal.commit(&[accept("a")]).unwrap();

    for _ in 0..2 {
        assert_eq!(journal.run("a").unwrap(), Some(row("a")));
        check(&journal, &["b"], &all[1..]);
        journal.fold(true).unwrap();
        assert_eq!(rows(&journal), (0, 1));
    }

    journal.commit(&[append("a", &all[0][0]), end("b", 1)]).unwrap();
    while journal.collect(&old).unwrap().has_more {}
    assert_eq!((journal.size().unwrap().runs, rows(&journal)), (1, (0, 1)));
}

#[test]
fn a_run_that_cannot_be_folded_is_no_obstacle() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    journal.commit(&[accept("a"), accept("b"), accept("c")]).unwrap();

    let all = commit_to_all(&journal, &["a", "b", "c"], 2);

    let refuse = "CREATE TRIGGER refuse BEFORE INSERT ON segment WHEN NEW.at >> 32 = 2
        BEGIN SELECT RAISE(ABORT, 'refused by a test'); END";
    change(&journal, refuse);

    // Two slices read, three fold.
    for _ in 0..5 {
        fold_one(&journal).unwrap();
        check(&journal, &["a", "b", "c"], &all);
    }

    for _ in 0..2 {
        assert_eq!(rows(&journal), (1, 2), "only those of `b` are left");
        check(&journal, &["a", "b", "c"], &all);
        journal.fold(true).unwrap();
    }

    let next = events(all[1][1].head(), 4);
    let flag = Write::Flag { id: "b".to_owned(), seqs: vec![1, 6] };
    journal.commit(&[append("b", &next), flag, end("b", 7)]).unwrap();

    // It is over, but is not measured while some of its events are in batches; retention does not
    // wait for that.
    let unlimited = Retention { bytes_max: Some(u64::MAX), ..Retention::default() };
    assert_eq!(journal.collect(&unlimited).unwrap(), Removed::default());

    change(&journal, "DROP TRIGGER refuse");

    let expected = [&all[1][..], &[next]].concat();
    for _ in 0..2 {
        check(&journal, &["b"], std::slice::from_ref(&expected));
        journal.fold(true).unwrap();
        assert_eq!(rows(&journal), (0, 3));
    }
}

#[test]
fn a_refused_commit_leaves_no_trace_in_the_next() {
    let folder = tempfile::tempdir().unwrap();

    let journal = open(&folder, 0);
    journal.commit(&[accept("a"), accept("b")]).unwrap();

    let first = events(row("a").head, 1);
    let second = events(first.head(), 1);
    let wrong = append("b", &second);

    for writes in [
        vec![append("a", &first), wrong.clone()],
        vec![accept("c"), append("c", &first), end("c", 1), wrong],
    ] {
        assert!(matches!(journal.commit(&writes), Err(JournalError::Refused(_))));
        assert_eq!((journal.run("c").unwrap(), rows(&journal)), (None, (0, 0)));
    }

    journal.commit(&[append("a", &first), append("a", &second), accept("c")]).unwrap();
    journal.commit(&[append("c", &events(row("c").head, 1))]).unwrap();
    check(&journal, &["a"], &[vec![first, second]]);
    assert_eq!(rows(&journal), (2, 0));
}

#[test]
fn long_segments_are_rows_at_once_unless_others_are_before_them() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);

    let ids = ["a", "b", "c"];
    journal.commit(&ids.map(accept)).unwrap();
    let mut all = commit_to_all(&journal, &ids[..2], 1);
    all.push(Vec::new());

    // `c` alone has nothing in a batch; the other two take a batch each, because of their length.
    let commit_long = |all: &mut Vec<Vec<Segment>>| {
        for (id, segments) in ids.iter().zip(all.iter_mut()) {
            segments.push(noise(segments.last().map_or(row(id).head, Segment::head), 700_000));
        }
        let last =
            |(id, segments): (&&str, &Vec<Segment>)| append(id, &segments[segments.len() - 1]);
        journal.commit(&ids.iter().zip(&*all).map(last).collect::<Vec<_>>()).unwrap();
        check(&journal, &ids, all);
    };

    commit_long(&mut all);
    assert_eq!(rows(&journal), (3, 1));
    journal.fold(true).unwrap();
    assert_eq!(rows(&journal), (0, 5));

    commit_long(&mut all);
    assert_eq!(rows(&journal), (0, 8), "nothing is before them any more");

    // After a refused commit, too.
    let short = events(all[0][2].head(), 1);
    let wrong = append("b", &events(row("b").head, 1));
    assert!(journal.commit(&[append("a", &short), wrong]).is_err());
    commit_long(&mut all);
    assert_eq!(rows(&journal), (0, 11));

    drop(journal);
    check(&open(&folder, 0), &ids, &all);
}
