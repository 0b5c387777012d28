//! Assignees of flagged events.

use std::collections::BTreeMap;

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::PostgresJournal;
use super::error_code::Failure;
use super::queries::{damaged, natural};
use super::text::{decode, encode};
use prime_journal::{Assigned, Assignees, JournalError};

/// Created apart from the other tables, because databases of earlier versions do not have it.
const SCHEMA: &str = r#"
    CREATE TABLE assignee (
        run bigint NOT NULL,
        seq bigint NOT NULL,
        name text COLLATE "C" NOT NULL,
        PRIMARY KEY (run, seq),
        FOREIGN KEY (run, seq) REFERENCES flag (run, seq) ON DELETE CASCADE
    );
    CREATE INDEX assignee_by_name ON assignee (name, run);
"#;

/// Makes the table of a database of an earlier version.
pub(super) async fn create_missing(
    transaction: &tokio_postgres::Transaction<'_>,
) -> Result<(), Failure> {
    let sql = "SELECT to_regclass('assignee') IS NOT NULL";
    if !transaction.query_one(sql, &[]).await?.get::<_, bool>(0) {
        transaction.batch_execute(SCHEMA).await?;
    }
    Ok(())
}

/// The condition on a row `r` of `run`; the name's value is the one with this number.
pub(super) fn condition(assigned: &Assigned, needs_review: bool, number: usize) -> String {
    match assigned {
        Assigned::To(_) if needs_review => format!(
            "EXISTS (SELECT FROM assignee a JOIN flag f ON f.run = a.run AND f.seq = a.seq
                WHERE a.run = r.no AND a.name = ${number} AND NOT f.is_reviewed)"
        ),
        Assigned::To(_) => {
            format!("EXISTS (SELECT FROM assignee a WHERE a.run = r.no AND a.name = ${number})")
        }
        Assigned::Nobody => "EXISTS (SELECT FROM flag f WHERE f.run = r.no AND NOT f.is_reviewed
            AND NOT EXISTS (SELECT FROM assignee a WHERE a.run = f.run AND a.seq = f.seq))"
            .to_owned(),
    }
}

async fn assign(
    client: &Object,
    run: &str,
    seq: u64,
    assignee: Option<&str>,
) -> Result<(), Failure> {
    // The lock keeps the flag until the assignment is there.
    let flag = "SELECT f.run, f.seq FROM run r JOIN flag f ON f.run = r.no AND f.seq = $2
        WHERE r.id = $1 FOR KEY SHARE OF f";
    let change = match assignee {
        Some(_) => {
            "INSERT INTO assignee (run, seq, name) SELECT run, seq, $3 FROM flagged
             ON CONFLICT (run, seq) DO UPDATE SET name = excluded.name"
        }
        None => "DELETE FROM assignee a USING flagged f WHERE a.run = f.run AND a.seq = f.seq",
    };
    let sql = format!("WITH flagged AS ({flag}), changed AS ({change}) SELECT FROM flagged");
    let statement = client.prepare_cached(&sql).await?;

    let (id, at) = (encode(run), i64::try_from(seq).unwrap_or(i64::MAX));
    let flagged = match assignee.map(encode) {
        Some(name) => client.query_opt(&statement, &[&id, &at, &name]).await?,
        None => client.query_opt(&statement, &[&id, &at]).await?,
    };
    let refused = || {
        let reason =
            format!("run {run:?}: event {seq} is not flagged, so there is nothing to assign");
        Failure::Final(JournalError::Refused(reason))
    };
    flagged.map(|_| ()).ok_or_else(refused)
}

async fn assignees(
    client: &Object,
    run: &str,
    first: u64,
    last: u64,
) -> Result<BTreeMap<u64, String>, Failure> {
    let sql = "SELECT a.seq, a.name FROM run r JOIN assignee a ON a.run = r.no
        WHERE r.id = $1 AND a.seq BETWEEN $2 AND $3";
    let statement = client.prepare_cached(sql).await?;
    let [first, last] = [first, last].map(|seq| i64::try_from(seq).unwrap_or(i64::MAX));
    let rows = client.query(&statement, &[&encode(run), &first, &last]).await?;
    let read = |row: &Row| Ok((natural(row, 0).map_err(damaged)?, decode(row.get(1))));
    rows.iter().map(read).collect()
}

impl Assignees for PostgresJournal {
    fn assign(&self, run: &str, seq: u64, assignee: Option<&str>) -> Result<(), JournalError> {
        self.session.run(async |client: &mut Object| assign(client, run, seq, assignee).await)
    }

    fn assigned(
        &self,
        run: &str,
        first: u64,
        last: u64,
    ) -> Result<BTreeMap<u64, String>, JournalError> {
        self.session.run(async |client: &mut Object| assignees(client, run, first, last).await)
    }
}
