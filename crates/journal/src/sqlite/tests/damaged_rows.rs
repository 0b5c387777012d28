//! Rows with values that the journal never wrote: they are reported, and hide no others.

use super::*;
use crate::conformance::{accept, end, events, ids, row};
use crate::journal::{Query, Retention, Write};
use crate::records::{DamagedRow, RunRow, RunRows};

const ALL: [&str; 4] = ["a", "b", "c", "d"];

/// A journal of four runs with events; `d` is over.
fn journal(folder: &TempDir) -> SqliteJournal {
    let journal = open(folder, 0);
    for (created_ms, id) in (1..).zip(ALL) {
        let new = Write::Accept { row: RunRow { created_ms, ..row(id) }, key: None };
        journal.commit(&[new, append(id, &events(row(id).head, 3))]).unwrap();
    }
    journal.commit(&[end("d", 9)]).unwrap();
    journal.fold(true).unwrap();
    journal
}

/// Changes the file like a program that ignores the columns' types.
fn damage(folder: &TempDir, sql: &str) {
    let path = folder.path().join("runs.db");

    let strict = |from: &str, to: &str| {
        let connection = Connection::open(&path).unwrap();
        let sql = format!(
            "PRAGMA writable_schema = ON;
             UPDATE sqlite_schema SET sql = replace(sql, '{from}', '{to}') WHERE name IN ('run', 'spec', 'segment')"
        );
        connection.execute_batch(&sql).unwrap();
    };

    strict(") STRICT", ") /*LAX*/");
    Connection::open(&path).unwrap().execute_batch(sql).unwrap();
    strict(") /*LAX*/", ") STRICT");
}

fn page(journal: &SqliteJournal, after: Option<&str>, limit: u32) -> RunRows {
    journal.list(&Query { after: after.map(str::to_owned), limit, ..Query::default() }).unwrap()
}

/// What is done to `b`, the second run, and what is reported about it.
const DAMAGES: [(&str, &str); 17] = [
    (
        "UPDATE run SET summary = CAST(x'7bff' AS TEXT) WHERE no = 2",
        "`summary` holds Text: invalid utf-8",
    ),
    ("UPDATE run SET summary = x'7b7d' WHERE no = 2", "`summary` holds Blob"),
    ("UPDATE run SET task = CAST(x'ff' AS TEXT) WHERE no = 2", "`task` holds Text"),
    ("UPDATE run SET owner = CAST(x'ff' AS TEXT) WHERE no = 2", "`owner` holds Text"),
    ("UPDATE run SET owner = x'ff' WHERE no = 2", "`owner` holds Blob"),
    ("UPDATE run SET status = x'00' WHERE no = 2", "`status` holds Blob"),
    ("UPDATE run SET split = x'00' WHERE no = 2", "`split` holds Blob"),
    ("UPDATE run SET created_ms = 'soon' WHERE no = 2", "`created_ms` holds Text"),
    ("UPDATE run SET created_ms = -5 WHERE no = 2", "`created_ms` holds -5"),
    ("UPDATE run SET updated_ms = 0.5 WHERE no = 2", "`updated_ms` holds Real"),
    ("UPDATE run SET resumed = -1 WHERE no = 2", "`resumed` holds Integer"),
    ("UPDATE run SET flagged = 'all' WHERE no = 2", "`flagged` holds Text"),
    ("UPDATE spec SET body = x'7b7d' WHERE run = 2", "`spec` holds Blob"),
    ("DELETE FROM spec WHERE run = 2", "`spec` holds Null"),
    ("UPDATE segment SET hash = x'00' WHERE at >> 32 = 2", "`hash` holds Blob"),
    ("UPDATE segment SET count = 'x' WHERE at >> 32 = 2", "`count` holds Text"),
    ("UPDATE segment SET at = at - 1, count = 0 WHERE at >> 32 = 2", "its last segment is empty"),
];

#[test]
fn a_row_that_cannot_be_decoded_is_named_and_hides_no_other() {
    for (sql, reason) in DAMAGES {
        let folder = tempfile::tempdir().unwrap();
        drop(journal(&folder));
        damage(&folder, sql);

        let journal = open(&folder, 0);

        let all = page(&journal, None, 9);
        assert_eq!(ids(all.rows), ["d", "c", "a"], "{sql}");
        let [DamagedRow { id, reason: said }] = &all.damaged[..] else {
            panic!("{sql}: {:?}", all.damaged)
        };
        assert!(id == "b" && said.contains(reason), "{sql}: {said}");

        let still_open = journal.open_runs().unwrap();
        assert_eq!(
            (ids(still_open.rows), still_open.damaged),
            (vec!["a".to_owned(), "c".to_owned()], all.damaged),
            "{sql}"
        );

        let one = journal.run("b").unwrap_err().to_string();
        assert!(
            one.contains("the journal is damaged: run \"b\"") && one.contains(reason),
            "{sql}: {one}"
        );

        // Page by page, wherever the damaged row is in the order.
        let (mut after, mut found, mut damaged) = (None, Vec::new(), Vec::new());
        for _ in 0..9 {
            let page = page(&journal, after.as_deref(), 1);
            assert_eq!(
                page.rows.len() + page.damaged.len(),
                usize::from(found.len() + damaged.len() < 4),
                "{sql}"
            );
            found.extend(ids(page.rows));
            damaged.extend(page.damaged);
            after = page.next;
            if after.is_none() {
                break;
            }
        }

        found.sort();
        assert_eq!(
            (found, damaged.len()),
            (vec!["a".to_owned(), "c".to_owned(), "d".to_owned()], 1),
            "{sql}"
        );

        // Other runs continue.
        journal
            .commit(&[append("c", &events(events(row("c").head, 3).head(), 2)), accept("e")])
            .unwrap();
    }
}

#[test]
fn a_row_without_a_readable_id_does_not_end_the_list() {
    let folder = tempfile::tempdir().unwrap();
    drop(journal(&folder));
    damage(
        &folder,
        "UPDATE run SET id = CAST(x'62ff' AS TEXT) WHERE id = 'b'; UPDATE run SET id = x'63' WHERE id = 'c'",
    );
    let journal = open(&folder, 0);

    let named = |page: &RunRows| page.damaged.iter().map(|row| row.id.clone()).collect::<Vec<_>>();

    let all = page(&journal, None, 9);
    assert_eq!(
        (named(&all), ids(all.rows)),
        (vec!["c".to_owned(), "b\u{fffd}".to_owned()], vec!["d".to_owned(), "a".to_owned()])
    );

    let first = page(&journal, None, 1);
    assert_eq!((ids(first.rows), first.next.as_deref()), (vec!["d".to_owned()], Some("d")));

    let second = page(&journal, Some("d"), 1);
    assert_eq!(
        (named(&second).len(), ids(second.rows), second.next.as_deref()),
        (2, vec!["a".to_owned()], Some("a"))
    );

    assert_eq!(page(&journal, Some("a"), 1), RunRows::default());
}

#[test]
fn damaged_rows_do_not_keep_others_from_being_removed() {
    for sql in [
        "UPDATE run SET owner = CAST(x'ff' AS TEXT)",
        "UPDATE run SET summary = x'00', id = x'00'",
        "UPDATE run SET updated_ms = 'x', created_ms = 'x'",
        "UPDATE run SET task = x'ff', status = x'ff'",
    ] {
        let folder = tempfile::tempdir().unwrap();

        let journal = journal(&folder);
        journal.commit(&ALL[..3].iter().map(|id| end(id, 8)).collect::<Vec<_>>()).unwrap();
        drop(journal);
        damage(&folder, &format!("{sql} WHERE id = 'b'"));

        let journal = open(&folder, 0);

        let all = Retention { bytes_max: Some(0), ..Retention::default() };
        let mut removed = 0;
        loop {
            let round = journal.collect(&all).unwrap();
            removed += round.runs;
            if !round.has_more {
                break;
            }
        }

        assert_eq!((removed, journal.size().unwrap().runs), (4, 0), "{sql}");
    }
}
