//! Tests that are specific to the SQLite store: its file.

mod common_words;
mod damaged_pages;
mod damaged_rows;
mod folding;
mod folding_store;
mod outbox;
mod salvage;
mod spent_keys;

use std::fs;
use std::os::unix::fs::symlink;

use rusqlite::Connection;
use tempfile::TempDir;

use super::*;
use crate::conformance::{Store, accept, append, end, events, noise, random, row, suite};
use crate::records::Segment;
use crate::verifier::verify;

struct InFolder {
    folder: TempDir,
    journal: Option<SqliteJournal>,
}

fn store() -> InFolder {
    let folder = tempfile::tempdir().unwrap();
    let journal = Some(open(&folder, 0));
    InFolder { folder, journal }
}

impl Store for InFolder {
    fn journal(&self) -> &dyn Journal {
        self.journal.as_ref().unwrap()
    }

    fn reopen(&mut self) {
        self.journal = None;
        self.journal = Some(open(&self.folder, 0));
    }
}

suite!(store);

fn open(folder: &TempDir, bytes_max: u64) -> SqliteJournal {
    SqliteJournal::open(&folder.path().join("runs.db"), SqliteOptions { bytes_max }).unwrap()
}

fn refused(path: &Path, parts: &[&str]) {
    let error = SqliteJournal::open(path, SqliteOptions::default()).err().expect("it is refused");
    let shown = error.to_string();
    assert!(shown.starts_with(&format!("journal.path = {path:?}: ")), "{shown}");
    for part in parts {
        assert!(shown.contains(part), "{part:?} is missing in {shown:?}");
    }
}

#[test]
fn folders_are_made() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("a/b/c/runs.db");
    SqliteJournal::open(&path, SqliteOptions::default()).unwrap().commit(&[accept("r")]).unwrap();
    let journal = SqliteJournal::open(&path, SqliteOptions::default()).unwrap();
    assert_eq!(journal.run("r").unwrap(), Some(row("r")));
}

#[test]
fn a_journal_is_open_once_under_all_its_names() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");

    let journal = open(&folder, 0);
    let link = folder.path().join("link.db");
    symlink(&path, &link).unwrap();
    symlink(folder.path(), folder.path().join("here")).unwrap();

    for name in [
        path.clone(),
        link,
        folder.path().join("here/runs.db"),
        folder.path().join("here/here/link.db"),
    ] {
        let error =
            SqliteJournal::open(&name, SqliteOptions::default()).err().expect("it is refused");
        assert!(matches!(error, JournalError::InUse { .. }), "{error}");
        assert!(error.to_string().contains("another process uses it"), "{error}");
    }

    journal.commit(&[accept("r")]).unwrap();
    drop(journal);
    assert!(open(&folder, 0).run("r").unwrap().is_some());
}

#[test]
fn a_journal_with_two_names_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);

    journal.commit(&[accept("r")]).unwrap();
    let link = folder.path().join("link.db");
    fs::hard_link(folder.path().join("runs.db"), &link).unwrap();

    let error = SqliteJournal::open(&link, SqliteOptions::default()).err().expect("it is refused");
    assert!(matches!(error, JournalError::InUse { .. }), "{error}");
    drop(journal);

    refused(&link, &["2 names (hard links)", "remove all but one"]);
    fs::remove_file(&link).unwrap();
    assert!(open(&folder, 0).run("r").unwrap().is_some());
}

#[test]

fn a_deleted_log_is_noticed_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    journal.commit(&[accept("r")]).unwrap();

    fs::remove_file(folder.path().join("runs.db-wal")).unwrap();
    for error in [journal.commit(&[accept("s")]), journal.probe(), journal.commit(&[accept("s")])] {
        let error = error.expect_err("nobody would find it again");
        assert!(
            matches!(&error, JournalError::NotWritable(reason) if reason.contains("runs.db-wal was deleted")),
            "{error}"
        );
    }

    // The state that a crash would leave.
    let other = tempfile::tempdir().unwrap();
    fs::copy(folder.path().join("runs.db"), other.path().join("runs.db")).unwrap();
    let after = open(&other, 0);
    assert!(after.run("r").unwrap().is_some() && after.run("s").unwrap().is_none());
}

#[test]
fn a_file_that_lost_its_name_takes_nothing_until_it_is_back() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    journal.commit(&[accept("r")]).unwrap();
    let (path, elsewhere) = (folder.path().join("runs.db"), folder.path().join("moved.db"));

    let no_longer_writes = |what: &str| {
        let collected = journal.collect(&Retention::default()).map(drop);
        for error in [journal.commit(&[accept("s")]), journal.probe(), collected] {
            let error = error.expect_err(what);
            let reason = "runs.db was deleted, moved or replaced";
            assert!(
                matches!(&error, JournalError::NotWritable(said) if said.contains(reason)),
                "{what}: {error}"
            );
        }
        assert!(journal.run("r").unwrap().is_some(), "{what}: it can still be read");
    };

    fs::rename(&path, &elsewhere).unwrap();
    no_longer_writes("moved");

    fs::copy(&elsewhere, &path).unwrap();
    no_longer_writes("replaced");

    fs::rename(&elsewhere, &path).unwrap();
    journal.commit(&[accept("t")]).unwrap();

    fs::remove_file(&path).unwrap();
    no_longer_writes("deleted");
}

#[test]
fn a_new_file_goes_with_a_start_that_failed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");
    open(&folder, 0).discard_if_unused();
    assert!(!path.exists());

    let journal = open(&folder, 0);
    journal.commit(&[accept("r")]).unwrap();
    journal.discard_if_unused();
    drop(journal);

    open(&folder, 0).discard_if_unused();
    assert!(path.exists(), "there is a run in it, and it is not new");
}

#[test]
fn what_is_no_journal_is_refused_and_stays() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("file");

    for garbage in [&b"x"[..], b"SQLite format 2\0 and more", &[0; 5_000]] {
        fs::write(&path, garbage).unwrap();
        refused(&path, &["nor any SQLite database", "name another file"]);
        assert_eq!(fs::read(&path).unwrap(), garbage);
    }

    for sql in [
        "CREATE TABLE theirs (x)",
        "CREATE TABLE run (id TEXT); PRAGMA user_version = 1",
        "PRAGMA application_id = 7",
        "PRAGMA journal_mode = WAL; CREATE TABLE theirs (x)",
    ] {
        fs::remove_file(&path).unwrap();
        Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = fs::read(&path).unwrap();
        refused(&path, &["a SQLite database of another program", "left unchanged"]);
        assert!(fs::read(&path).unwrap() == before, "{sql}: the file has changed");
    }

    fs::write(&path, b"SQLite format 3\0 and then nothing of the kind").unwrap();
    refused(&path, &["it is damaged", "`prime-agents journal check "]);

    refused(folder.path(), &["it is a folder"]);
    refused(&folder.path().join("file/runs.db"), &["its folder cannot be created"]);

    refused(Path::new("/"), &["a file name"]);
}

#[test]
fn another_version_is_refused_and_stays() {
    for version in [0, 2, 4] {
        let folder = tempfile::tempdir().unwrap();
        drop(open(&folder, 0));

        let path = folder.path().join("runs.db");
        let pragma = format!("PRAGMA user_version = {version}");
        Connection::open(&path).unwrap().execute_batch(&pragma).unwrap();
        let before = fs::read(&path).unwrap();

        let found = format!("its schema has version {version}, ");
        refused(
            &path,
            &[&found, "reads only version 1", "left unchanged", "start with a new file"],
        );
        assert!(fs::read(&path).unwrap() == before, "the file has changed");
    }
}

#[test]
fn an_empty_file_becomes_a_journal() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("runs.db"), b"").unwrap();
    open(&folder, 0).commit(&[accept("r")]).unwrap();
    assert!(open(&folder, 0).run("r").unwrap().is_some());
}

#[test]
fn writes_are_synced_and_the_log_is_bounded() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);

    let pragma = |name| {
        let read = |connection: &mut Connection| {
            Ok(connection.pragma_query_value(None, name, |row| row.get::<_, i64>(0))?)
        };
        journal.lock().write(|connection, _| read(connection)).unwrap()
    };

    let found =
        ["synchronous", "foreign_keys", "auto_vacuum", "wal_autocheckpoint", "journal_size_limit"]
            .map(pragma);
    assert_eq!(found, [2, 1, 2, 1_000, 32 << 20]);

    // Twice what the log may hold before it is moved into the file.
    journal.commit(&[accept("r")]).unwrap();
    let mut body = random(1, 4 << 20);
    for _ in 0..16 {
        body.rotate_left(1);
        let snapshot = Snapshot { seq: 0, body: body.clone() };
        journal.commit(&[Write::Save { id: "r".to_owned(), snapshot }]).unwrap();
    }

    let length = |name: &str| fs::metadata(folder.path().join(name)).unwrap().len();
    assert!(
        length("runs.db-wal") < 32 << 20 && length("runs.db") > 4 << 20,
        "{}",
        length("runs.db-wal")
    );
}

#[test]
fn a_full_file_takes_nothing_until_there_is_room() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 1 << 20);

    let mut acknowledged = Vec::new();
    let error = loop {
        let id = format!("r{}", acknowledged.len());
        let segments = [noise(row(&id).head, 30_000)];
        match journal.commit(&[
            accept(&id),
            append(&id, &segments[0]),
            end(&id, acknowledged.len() as u64),
        ]) {
            Ok(()) => acknowledged.push((id, segments)),
            Err(error) => break error,
        }
    };

    assert!(matches!(error, JournalError::NotWritable(_)), "{error}");
    assert!(acknowledged.len() > 20, "{}", acknowledged.len());
    for _ in 0..2 {
        let next = format!("r{}", acknowledged.len());
        assert_eq!(journal.run(&next).unwrap(), None);
        assert_eq!(journal.size().unwrap().runs, acknowledged.len() as u64);
        for (id, segments) in &acknowledged {
            assert_eq!(journal.segments(id, 0, usize::MAX).unwrap(), segments);
        }
        let again =
            journal.commit(&[accept(&next), append(&next, &noise(row(&next).head, 300_000))]);
        assert!(matches!(again, Err(JournalError::NotWritable(_))), "{again:?}");
        // What needs no room is written.
        journal.probe().unwrap();
    }

    assert!(fs::metadata(folder.path().join("runs.db")).map_or(0, |data| data.len()) <= 1 << 20);
    let retention = Retention { updated_before_ms: Some(10), ..Retention::default() };
    assert_eq!(journal.collect(&retention).unwrap().runs, 10);

    journal.commit(&[accept("s"), append("s", &noise(row("s").head, 100_000))]).unwrap();
    drop(journal);

    // It is bounded again, and again when it is opened.
    let journal = open(&folder, 1 << 20);
    let large = noise(row("t").head, 2 << 20);
    let again = journal.commit(&[accept("t"), append("t", &large)]);
    assert!(matches!(again, Err(JournalError::NotWritable(_))), "{again:?}");

    drop(journal);
    open(&folder, 0).commit(&[accept("t"), append("t", &large)]).unwrap();
}

#[test]
fn a_file_shrinks_when_runs_are_removed() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    let length = || fs::metadata(folder.path().join("runs.db")).unwrap().len();
    for at in 0..4 {
        let id = format!("r{at}");
        journal
            .commit(&[accept(&id), append(&id, &noise(row(&id).head, 4 << 20)), end(&id, at)])
            .unwrap();
    }

    let retention = Retention { updated_before_ms: Some(3), ..Retention::default() };
    let mut rounds = 0;
    while journal.collect(&retention).unwrap().has_more {
        rounds += 1;
    }

    assert!(rounds > 0, "each round is bounded");

    let size = journal.size().unwrap();
    assert_eq!((size.runs, size.bytes), (1, length()));
    assert!(size.bytes < 5 << 20, "{size:?}");
}

#[test]
fn nothing_is_written_after_a_failed_sync() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    journal.commit(&[accept("r")]).unwrap();

    let failed =
        journal.lock().write(|_, _| Err::<(), _>(JournalError::DiskFailed("a sync".to_owned())));
    assert!(failed.is_err());

    for done in
        [journal.commit(&[]), journal.probe(), journal.collect(&Retention::default()).map(drop)]
    {
        assert!(
            matches!(&done, Err(JournalError::DiskFailed(reason)) if reason == "a sync"),
            "{done:?}"
        );
    }

    assert!(journal.run("r").unwrap().is_some(), "it can still be read");
}

#[test]
fn a_broken_connection_is_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);

    let broken = journal.lock().write(|connection, _| {
        connection.execute_batch("BEGIN; DELETE FROM meta")?;
        Err::<(), _>(JournalError::NotWritable("amid a transaction".to_owned()))
    });
    assert!(broken.is_err());

    journal.commit(&[accept("r")]).unwrap();
    journal.probe().unwrap();
    assert!(journal.run("r").unwrap().is_some());
}

/// Calls everything that reads or writes, until something is found damaged. Returns the events that
/// were found.
fn use_all(path: &Path) -> Result<Vec<Segment>, JournalError> {
    let journal = SqliteJournal::open(path, SqliteOptions::default())?;

    journal.size()?;
    let open = journal.open_runs()?;

    let listed =
        journal.list(&Query { limit: 100, owner: Some("ada".to_owned()), ..Query::default() })?;
    if let Some(damaged) = open.damaged.iter().chain(&listed.damaged).next() {
        return Err(JournalError::Damaged(damaged.reason.clone()));
    }

    let mut all = Vec::new();
    for row in listed.rows {
        journal.run(&row.id)?;
        journal.run_of_key(&row.owner, &row.id)?;
        journal.snapshot(&row.id)?;
        journal.reviews(&row.id, 0, 9)?;
        let segments = journal.segments(&row.id, 0, usize::MAX)?;
        verify(&row.id, &row.spec, segments.iter().cloned())?;
        all.extend(segments);
    }

    journal.commit(&[accept("new"), append("new", &events(row("new").head, 3)), end("new", 1)])?;

    journal.probe()?;
    while journal
        .collect(&Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() })?
        .has_more
    {}

    Ok(all)
}

#[test]
fn a_damaged_page_is_an_error_and_no_panic() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("runs.db");

    let journal = open(&folder, 0);
    let mut heads = ["a", "b", "c"].map(|id| (id, row(id).head));
    journal.commit(&heads.map(|(id, _)| accept(id))).unwrap();

    for _ in 0..3 {
        for (id, head) in &mut heads {
            let segment = noise(*head, 3_000);
            *head = segment.head();
            journal.commit(&[append(id, &segment)]).unwrap();
        }
    }

    journal.commit(&[end("b", 4)]).unwrap();
    drop(journal);

    let good = fs::read(&path).unwrap();
    let expected = use_all(&path).unwrap();

    assert_eq!(expected.len(), 9);

    let damages: [fn(usize, u8) -> u8; 3] =
        [|_, _| 0, |_, byte| byte ^ 0x55, |at, _| random(at as u64, 1)[0]];

    let mut found = 0;
    for page in 0..good.len() / 4_096 {
        for damage in damages {
            let mut bad = good.clone();

            // The first bytes identify a SQLite file.
            let from = (page * 4_096).max(100);
            for (at, byte) in bad[from..(page + 1) * 4_096].iter_mut().enumerate() {
                *byte = damage(at, *byte);
            }

            for name in ["runs.db-wal", "runs.db-shm"] {
                drop(fs::remove_file(folder.path().join(name)));
            }
            fs::write(&path, &bad).unwrap();

            match use_all(&path) {
                // A page that holds none of what was read, such as an index of something else.
                Ok(segments) => assert!(
                    segments.is_empty() || segments == expected,
                    "page {page}: other content"
                ),
                Err(JournalError::Damaged(_) | JournalError::Open { .. }) => found += 1,
                Err(error) => panic!("page {page}: {error}"),
            }
        }
    }

    assert!(found > 40, "only {found} of {}", good.len() / 1_024);
}
