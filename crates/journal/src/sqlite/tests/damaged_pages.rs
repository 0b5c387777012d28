//! Pages zeroed at their heads, and emptied files: what is on a damaged page is named, the rest is
//! there.

use std::collections::BTreeSet;
use std::os::unix::fs::FileExt as _;

use super::*;
use crate::conformance::{accept, append, end, events, ids, row};
use crate::journal::{Query, Retention, Write};
use crate::records::{RunRow, RunRows};

pub(super) const RUNS: u64 = 60;

pub(super) fn id(at: u64) -> String {
    format!("run_{at:03}")
}

/// A journal of sixty runs of two owners; every third is over. Returns its path.
pub(super) fn journal(folder: &TempDir) -> PathBuf {
    let journal = open(folder, 0);
    for at in 1..=RUNS {
        let id = id(at);
        let owner = if at % 2 == 0 { "ada" } else { "bob" }.to_owned();
        // Long, so that a page has a few rows.
        let summary = format!(r#"{{"text":"{}"}}"#, "x".repeat(300));
        let new = RunRow { owner, created_ms: 1_000 + at, summary, ..row(&id) };
        journal.commit(&[Write::Accept { row: new, key: None }]).unwrap();
        journal.commit(&[append(&id, &events(row(&id).head, 2))]).unwrap();
        if at % 3 == 0 {
            journal.commit(&[end(&id, 5_000)]).unwrap();
        }
    }
    journal.fold(true).unwrap();
    drop(journal);
    folder.path().join("runs.db")
}

/// The leaf pages of a table or index, in its order.
pub(super) fn leaves(path: &Path, name: &str) -> Vec<u64> {
    let connection = Connection::open(path).unwrap();
    let number = |sql: &str| connection.query_row(sql, [], |row| row.get::<_, u32>(0)).unwrap();
    let size = number("PRAGMA page_size");
    let root = number(&format!("SELECT rootpage FROM sqlite_schema WHERE name = '{name}'"));
    // Into the file from its log.
    connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |_| Ok(())).unwrap();

    let file = fs::read(path).unwrap();
    let page = |number: u64| &file[usize::try_from((number - 1) * u64::from(size)).unwrap()..];
    let (mut inner, mut leaves) = (vec![u64::from(root)], Vec::new());
    while let Some(number) = inner.pop() {
        let page = page(number);
        let at = |offset: usize| usize::from(u16::from_be_bytes([page[offset], page[offset + 1]]));
        let child = |offset: usize| {
            u64::from(u32::from_be_bytes(page[offset..offset + 4].try_into().unwrap()))
        };
        // Interior pages of indexes and tables have these types.
        if [2, 5].contains(&page[0]) {
            let cells: Vec<u64> = (0..at(3)).map(|cell| child(at(12 + 2 * cell))).collect();
            inner.push(child(8));
            inner.extend(cells.into_iter().rev());
        } else {
            leaves.push(number);
        }
    }
    leaves
}

/// Zeroes the head of a page.
pub(super) fn zero(path: &Path, page: u64) {
    let size: u32 = Connection::open(path)
        .unwrap()
        .query_row("PRAGMA page_size", [], |row| row.get(0))
        .unwrap();
    let file = fs::File::options().write(true).open(path).unwrap();
    file.write_all_at(&[0; 64], (page - 1) * u64::from(size)).unwrap();
}

/// All pages of a list.
fn all(journal: &SqliteJournal, mut query: Query) -> RunRows {
    let mut all = RunRows::default();
    loop {
        let page = journal.list(&query).unwrap();
        assert!(page.rows.len() <= query.limit as usize);
        all.rows.extend(page.rows);
        all.damaged.extend(page.damaged);
        match page.next {
            Some(next) => query.after = Some(next),
            None => return all,
        }
    }
}

fn names(rows: &RunRows) -> BTreeSet<String> {
    rows.damaged.iter().map(|row| row.id.clone()).collect()
}

#[test]
fn a_damaged_leaf_of_runs_hides_its_rows_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(&folder);
    let leaves = leaves(&path, "run");
    assert!(leaves.len() > 4, "{leaves:?}");
    zero(&path, leaves[2]);

    let journal = open(&folder, 0);
    let readable: BTreeSet<_> =
        (1..=RUNS).map(id).filter(|id| journal.run(id).is_ok_and(|row| row.is_some())).collect();
    let lost: BTreeSet<_> = (1..=RUNS).map(id).filter(|id| !readable.contains(id)).collect();
    assert!((1..20).contains(&lost.len()), "{lost:?}");

    for limit in [1, 7, 100] {
        let listed = all(&journal, Query { limit, ..Query::default() });
        assert_eq!(names(&listed), lost, "{limit}");
        assert_eq!(listed.damaged.len(), lost.len());
        let newest_first: Vec<_> = readable.iter().rev().cloned().collect();
        assert_eq!(ids(listed.rows), newest_first, "{limit}");
    }

    // The ids of one owner's runs do not show in the list of another.
    let of_ada = |at: &String| at[4..].parse::<u64>().unwrap() % 2 == 0;
    let query = Query { owner: Some("ada".to_owned()), limit: 9, ..Query::default() };
    let listed = all(&journal, query);
    assert_eq!(names(&listed), lost.iter().filter(|id| of_ada(id)).cloned().collect());
    assert_eq!(listed.rows.len(), readable.iter().filter(|id| of_ada(id)).count());

    let still_open = journal.open_runs().unwrap();
    assert_eq!(names(&still_open), lost);
    let is_open = |id: &&String| id[4..].parse::<u64>().unwrap() % 3 != 0;
    assert_eq!(
        ids(still_open.rows),
        readable.iter().filter(is_open).cloned().collect::<Vec<_>>(),
        "oldest first"
    );

    // New runs are accepted: the damaged page is not where they go.
    journal.probe().unwrap();
    journal.commit(&[accept("run_999")]).unwrap();
}

#[test]
fn lists_do_without_a_damaged_index() {
    for index in ["run_by_created", "run_by_owner"] {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(&folder);
        for leaf in leaves(&path, index) {
            zero(&path, leaf);
        }

        let journal = open(&folder, 0);
        for owner in [None, Some("bob".to_owned())] {
            let expected = if owner.is_some() { RUNS / 2 } else { RUNS };
            let listed = all(&journal, Query { owner, limit: 7, ..Query::default() });
            assert_eq!((listed.rows.len() as u64, listed.damaged), (expected, vec![]), "{index}");
        }
        assert_eq!(journal.open_runs().unwrap().rows.len(), 40, "{index}");
    }
}

#[test]
fn lists_name_rows_that_neither_index_nor_table_has() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(&folder);
    for leaf in leaves(&path, "run_by_created") {
        zero(&path, leaf);
    }
    let table = leaves(&path, "run");
    zero(&path, table[0]);
    zero(&path, table[2]);
    zero(&path, table[table.len() - 1]);

    let journal = open(&folder, 0);
    let readable = (1..=RUNS).filter(|at| journal.run(&id(*at)).is_ok()).count();
    for limit in [1, 7, 100] {
        let listed = all(&journal, Query { limit, ..Query::default() });
        let reasons: Vec<_> = listed.damaged.iter().map(|row| row.reason.as_str()).collect();
        assert_eq!(reasons.len(), 3, "{reasons:?}");
        assert!(reasons[0].starts_with("rows 1 to "), "{reasons:?}");
        assert!(reasons[2].contains("to 60 of the table `run`: "), "{reasons:?}");
        assert_eq!(listed.rows.len(), readable, "{limit}");
    }
}

#[test]
fn probes_find_damage_that_keeps_new_runs_out() {
    for damaged in ["sqlite_autoindex_run_1", "run_by_created", "run_by_task", "run_open", "run"] {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(&folder);
        open(&folder, 0).probe().unwrap();
        // New runs come last in all of these.
        zero(&path, *leaves(&path, damaged).last().unwrap());

        let journal = open(&folder, 0);
        let next = RunRow {
            created_ms: 1_000 + RUNS,
            owner: "ada".to_owned(),
            ..row(&format!("{}a", id(RUNS)))
        };
        let accepted = journal.commit(&[Write::Accept { row: next, key: None }]);
        assert!(matches!(accepted, Err(JournalError::Damaged(_))), "{damaged}: {accepted:?}");

        let probed = journal.probe();
        assert!(matches!(probed, Err(JournalError::Damaged(_))), "{damaged}: {probed:?}");
    }
}

#[test]
fn an_emptied_or_missing_journal_is_not_begun_anew() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let reserve = folder.path().join("runs.db.reserve");
    open(&folder, 0).commit(&[accept("r")]).unwrap();

    let kept = fs::read(&path).unwrap();
    fs::write(&path, []).unwrap();
    let parts = ["runs.db.reserve shows that there was a journal", "put the file or a backup"];
    refused(&path, &["it has 0 bytes", parts[0], parts[1]]);
    assert_eq!(fs::metadata(&path).unwrap().len(), 0, "it is left as it was");

    fs::remove_file(&path).unwrap();
    refused(&path, &["there is no such file", parts[0], parts[1]]);
    assert!(!path.exists(), "and none is made");

    fs::write(&path, kept).unwrap();
    assert!(open(&folder, 0).run("r").unwrap().is_some());

    // As the message says.
    fs::remove_file(&path).unwrap();
    fs::remove_file(&reserve).unwrap();
    assert_eq!(open(&folder, 0).size().unwrap().runs, 0);
}

#[test]
fn a_log_shows_that_there_was_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    fs::write(folder.path().join("runs.db-wal"), b"commits").unwrap();
    refused(&path, &["runs.db-wal shows that there was a journal"]);
}

/// Removes all finished runs, in rounds until there is no more to do. Returns how many were
/// removed, and what the last round names.
fn collect_all(journal: &SqliteJournal, retention: &Retention) -> (u64, BTreeSet<String>) {
    let mut removed = 0;
    for _ in 0..100 {
        let round = journal.collect(retention).unwrap();
        removed += round.runs;
        if !round.has_more {
            let named = round.damaged.into_iter().map(|row| row.id);
            return (removed, named.filter(|id| !id.is_empty()).collect());
        }
    }
    panic!("removal does not end");
}

#[test]
fn a_damaged_page_keeps_only_what_is_on_it_from_being_removed() {
    let by_age = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    let by_size = Retention { bytes_max: Some(0), ..Retention::default() };
    for (table, retention) in [
        ("run", &by_age),
        ("run", &by_size),
        ("spec", &by_age),
        ("run_ended", &by_age),
        ("run_by_created", &by_age),
    ] {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(&folder);
        let leaves = leaves(&path, table);
        let damaged = leaves[leaves.len() / 3];
        zero(&path, damaged);

        let journal = open(&folder, 0);
        let (removed, named) = collect_all(&journal, retention);

        // Every third of the sixty runs is over.
        let finished: BTreeSet<_> = (1..=20).map(|at| id(3 * at)).collect();
        assert!(named.is_subset(&finished), "{table}: {named:?}");
        assert_eq!(removed + named.len() as u64, 20, "{table}: {named:?}");
        // The first and the last run are on other pages, far away in every table.
        if table == "run" {
            assert!((1..15).contains(&named.len()), "{named:?}");
            assert!(!named.contains(&id(3)) && !named.contains(&id(60)), "{named:?}");
            assert!(journal.run(&id(3)).unwrap().is_none());
            assert!(journal.run(&id(60)).unwrap().is_none());
        }
        // New runs are accepted, and the next round passes over the same. The other tables are one
        // page, where new runs go, too.
        if table == "run" {
            journal.commit(&[accept("run_999"), end("run_999", 5_000)]).unwrap();
            assert_eq!(collect_all(&journal, retention), (1, named), "{table}");
        }
    }
}

#[test]
fn damaged_events_of_a_removed_run_are_named_and_other_runs_go() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(&folder);
    zero(&path, leaves(&path, "segment")[0]);

    let journal = open(&folder, 0);
    let all = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    let (removed, named) = collect_all(&journal, &all);
    assert_eq!((removed, named.len()), (20, 0), "the rows of all runs go");

    let again = journal.collect(&all).unwrap();
    assert!(
        again.damaged[0].reason.starts_with("events of the removed run in row 3: "),
        "{again:?}"
    );
}

#[test]
fn errors_of_a_damaged_file_say_what_to_do() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(&folder);
    let damaged = leaves(&path, "run")[2];
    let whole = fs::read(&path).unwrap();
    zero(&path, damaged);

    // Clients of a daemon see these: they name no path.
    let journal = open(&folder, 0);
    let lost = (1..=RUNS).map(id).find_map(|id| journal.run(&id).err()).unwrap().to_string();
    assert!(lost.contains("`prime-agents journal check`"), "{lost}");
    assert!(lost.contains("`prime-agents journal salvage`"), "{lost}");
    assert!(!lost.contains(path.to_str().unwrap()), "{lost}");
    drop(journal);

    // The operator who starts a daemon sees these.
    let check = format!("`prime-agents journal check {}`", path.display());
    let salvage = format!("`prime-agents journal salvage {} NEW_FILE`", path.display());
    fs::write(&path, &whole[..whole.len() / 2]).unwrap();
    refused(&path, &[path.to_str().unwrap(), &check, &salvage]);
    fs::write(&path, &whole).unwrap();
    let schema = fs::File::options().write(true).open(&path).unwrap();
    schema.write_all_at(&[0xff; 64], 100).unwrap();
    refused(&path, &[path.to_str().unwrap(), &check, &salvage]);
}
