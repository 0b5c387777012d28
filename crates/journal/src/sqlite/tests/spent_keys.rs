//! Idempotency keys of removed runs are bounded for each owner.

use super::*;
use crate::conformance::{end, row};
use crate::journal::{Retention, Write};
use crate::records::IdempotencyKey;

/// The keys kept of an owner, and the first time that one of them ends.
fn kept(journal: &SqliteJournal, owner: &str) -> (u32, Option<i64>) {
    let sql = "SELECT count(*), min(until_ms) FROM spent_key WHERE owner = ?1";

    let read = |connection: &Connection| {
        Ok(connection.query_row(sql, [owner], |row| Ok((row.get(0)?, row.get(1)?)))?)
    };
    journal.readers.read(read).unwrap()
}

#[test]
fn an_owner_that_removes_more_and_more_runs_forgets_its_oldest_keys() {
    let folder = tempfile::tempdir().unwrap();

    let journal = open(&folder, 0);
    let owner = row("r").owner;
    let key = Some(IdempotencyKey { key: "last".to_owned(), fingerprint: [7; 32] });
    journal.commit(&[Write::Accept { row: row("r"), key }, end("r", 1)]).unwrap();

    let fill = format!(
        "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 50000)
         INSERT INTO spent_key SELECT '{owner}', i, x'00', 'run', 1000 + i FROM n;
         INSERT INTO spent_key VALUES ('another', 'key', x'00', 'run', 1000)"
    );
    journal.lock().write(|connection, _| Ok(connection.execute_batch(&fill)?)).unwrap();

    let removal =
        Retention { updated_before_ms: Some(2), keep_keys_ms: 1_000_000, ..Retention::default() };
    while journal.collect(&removal).unwrap().has_more {}

    // The 50,001st key was one too many: it went with a tenth of the others, the oldest of them.
    assert_eq!(kept(&journal, &owner), (45_000, Some(1_000 + 5_002)));
    assert_eq!(kept(&journal, "another"), (1, Some(1_000)));
    assert_eq!(
        journal.run_of_key(&owner, "last").unwrap().map(|(run, _)| run),
        Some("r".to_owned())
    );
}
