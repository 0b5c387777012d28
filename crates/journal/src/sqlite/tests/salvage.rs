//! Checks of damaged files, and what is saved of them.

use super::damaged_pages::{RUNS, id, journal, leaves, zero};
use super::*;
use crate::journal::Query;
use crate::sqlite::{Checked, SqliteFile};

fn file(folder: &TempDir) -> SqliteFile {
    SqliteFile::open(&folder.path().join("runs.db")).unwrap()
}

/// Saves what can be read to another journal, and checks that everything there is whole.
fn salvage(folder: &TempDir) -> (SqliteJournal, Checked, TempDir) {
    let target = tempfile::tempdir().unwrap();
    let to = open(&target, 0);
    let saved = file(folder).salvage(&to).unwrap();
    assert_eq!(to.size().unwrap().runs, saved.runs);

    drop(to);
    let checked = file(&target).check().unwrap();
    assert!(checked.is_whole(), "{checked:?}");
    assert_eq!((checked.runs, checked.events), (saved.runs, saved.events));
    (open(&target, 0), saved, target)
}

#[test]
fn a_whole_file_is_checked_and_saved_as_it_is() {
    let folder = tempfile::tempdir().unwrap();
    journal(&folder);

    let checked = file(&folder).check().unwrap();
    assert!(checked.is_whole(), "{checked:?}");
    assert_eq!((checked.runs, checked.events), (RUNS, 2 * RUNS));

    let (saved, _, _target) = salvage(&folder);
    let original = open(&folder, 0);
    let all = Query { limit: 100, ..Query::default() };
    assert_eq!(saved.list(&all).unwrap(), original.list(&all).unwrap());
    assert!(matches!(
        SqliteFile::open(&folder.path().join("runs.db")),
        Err(JournalError::InUse { .. })
    ));
}

#[test]
fn damaged_rows_and_chains_are_named_and_the_rest_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(&folder);
    // The last run's events change without a page being damaged.
    Connection::open(&path)
        .unwrap()
        .execute_batch("UPDATE segment SET hash = zeroblob(32) WHERE at >> 32 = 60")
        .unwrap();
    let (rows, events) = (leaves(&path, "run"), leaves(&path, "segment"));
    zero(&path, rows[1]);
    zero(&path, events[0]);

    let checked = file(&folder).check().unwrap();
    assert!(!checked.pages.is_empty() && !checked.lost.is_empty(), "{checked:?}");
    assert_eq!(checked.runs + checked.lost.len() as u64, RUNS);

    let last = checked.cut.iter().find(|run| run.id == id(RUNS)).unwrap();
    assert_eq!((last.kept, last.committed), (0, 2));
    assert!(last.reason.contains("the chain's hash"), "{last:?}");
    // A run whose events alone are damaged is there without them.
    let first = checked.cut.iter().find(|run| run.id == id(1)).unwrap();
    assert!(first.kept == 0 && first.reason.contains("malformed"), "{first:?}");

    let (saved, report, _target) = salvage(&folder);
    assert_eq!(Checked { pages: checked.pages.clone(), ..report }, checked, "both say the same");
    for lost in &checked.lost {
        assert!(saved.run(&lost.id).unwrap().is_none());
    }
    for cut in &checked.cut {
        let row = saved.run(&cut.id).unwrap().unwrap();
        assert_eq!(row.head.seq, cut.kept);
    }
}

#[test]
fn no_run_is_lost_with_an_index() {
    for index in ["sqlite_autoindex_run_1", "run_by_created", "run_open"] {
        let folder = tempfile::tempdir().unwrap();
        let path = journal(&folder);
        for leaf in leaves(&path, index) {
            zero(&path, leaf);
        }

        let (saved, report, _target) = salvage(&folder);
        assert!(!report.pages.is_empty(), "{index}");
        assert_eq!((report.runs, report.events), (RUNS, 2 * RUNS), "{index}");
        assert!(report.lost.is_empty() && report.cut.is_empty(), "{index}: {report:?}");
        assert!(saved.run(&id(7)).unwrap().is_some());
    }
}

#[test]
fn what_a_cut_file_still_has_is_saved() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(&folder);
    let rows = leaves(&path, "run");
    let whole = fs::read(&path).unwrap();
    // In the middle of a page, before the last runs.
    let kept = usize::try_from(rows[rows.len() - 2]).unwrap() * 4_096 - 1_000;
    fs::write(&path, &whole[..kept]).unwrap();

    let checked = file(&folder).check().unwrap();
    let cut = format!(
        "the file has {kept} bytes, but its header says {}: its end is missing",
        whole.len()
    );
    assert_eq!(checked.pages[0], cut);
    assert!(checked.runs > 0 && checked.runs < RUNS, "{checked:?}");

    let (saved, report, _target) = salvage(&folder);
    assert_eq!(report.pages[0], cut);
    assert_eq!(report.runs, checked.runs);
    assert!(saved.run(&id(1)).unwrap().is_some());

    assert_eq!(fs::read(&path).unwrap(), whole[..kept], "it is left as it was");
    let beside = fs::read_dir(folder.path()).unwrap();
    let beside = beside.map(|file| file.unwrap().file_name().into_string().unwrap());
    assert_eq!(beside.filter(|name| name.starts_with(".journal-")).count(), 0);
}

#[test]
fn a_file_of_which_nothing_can_be_read_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = journal(&folder);
    let whole = fs::read(&path).unwrap();
    for length in [50, 100] {
        fs::write(&path, &whole[..length]).unwrap();
        let error = match SqliteFile::open(&path) {
            Err(error) => error,
            Ok(file) => file.check().unwrap_err(),
        };
        let error = error.to_string();
        assert!(error.contains(path.to_str().unwrap()), "{length}: {error}");
        assert!(error.contains("restore a backup"), "{length}: {error}");
    }
}

#[test]
fn what_is_no_journal_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    let refused = |part: &str| {
        let error = SqliteFile::open(&path).err().expect("it is refused").to_string();
        assert!(error.contains(part), "{error}");
    };
    refused("there is no such file");
    assert!(!path.exists());

    fs::write(&path, []).unwrap();
    refused("it is empty");
    fs::write(&path, b"something else entirely").unwrap();
    refused("not a journal");
}
