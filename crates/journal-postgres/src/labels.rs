//! The labels of runs that were given others than in their spec.

use std::collections::BTreeMap;

use deadpool_postgres::Object;

use super::error_code::Failure;
use super::text::{decode, encode};
use prime_journal::JournalError;

/// Created apart from the other tables, because databases of earlier versions do not have it.
const SCHEMA: &str = r#"
    CREATE TABLE run_labels (
        run bigint PRIMARY KEY REFERENCES run (no) ON DELETE CASCADE,
        body text COLLATE "C" NOT NULL
    );
"#;

/// Makes the table of a database of an earlier version.
pub(super) async fn create_missing(
    transaction: &tokio_postgres::Transaction<'_>,
) -> Result<(), Failure> {
    let sql = "SELECT to_regclass('run_labels') IS NOT NULL";
    if !transaction.query_one(sql, &[]).await?.get::<_, bool>(0) {
        transaction.batch_execute(SCHEMA).await?;
    }
    Ok(())
}

pub(super) async fn relabel(client: &Object, run: &str, labels: &str) -> Result<(), Failure> {
    // A process that ends before it notes them anew leaves that to the next one.
    let sql = "WITH labelled AS (
            INSERT INTO run_labels (run, body) SELECT no, $2 FROM run WHERE id = $1
            ON CONFLICT (run) DO UPDATE SET body = excluded.body RETURNING run
        ), stale AS (
            UPDATE run_facts s SET is_stale = true FROM labelled l WHERE s.run = l.run
        )
        SELECT run FROM labelled";
    let statement = client.prepare_cached(sql).await?;
    match client.query_opt(&statement, &[&encode(run), &encode(labels)]).await? {
        None => Err(Failure::Final(JournalError::Refused(format!("there is no run {run:?}")))),
        Some(_) => Ok(()),
    }
}

/// Whether they were still `before`; only then does it replace them.
pub(super) async fn relabel_if(
    client: &Object,
    run: &str,
    before: Option<&str>,
    labels: &str,
) -> Result<bool, Failure> {
    let replaced = match before {
        None => {
            "INSERT INTO run_labels (run, body) SELECT no, $2 FROM run WHERE id = $1
             ON CONFLICT (run) DO NOTHING RETURNING run"
        }
        Some(_) => {
            "UPDATE run_labels l SET body = $2 FROM run r
             WHERE r.no = l.run AND r.id = $1 AND l.body = $3 RETURNING l.run"
        }
    };
    let sql = format!(
        "WITH labelled AS ({replaced}), stale AS (
            UPDATE run_facts s SET is_stale = true FROM labelled l WHERE s.run = l.run
        )
        SELECT run FROM labelled"
    );
    let statement = client.prepare_cached(&sql).await?;
    let (run, labels) = (encode(run), encode(labels));
    let found = match before.map(encode) {
        None => client.query_opt(&statement, &[&run, &labels]).await?,
        Some(before) => client.query_opt(&statement, &[&run, &labels, &before]).await?,
    };
    Ok(found.is_some())
}

pub(super) async fn relabelled(
    client: &Object,
    runs: &[String],
) -> Result<BTreeMap<String, String>, Failure> {
    let sql = "SELECT r.id, l.body FROM run r JOIN run_labels l ON l.run = r.no
        WHERE r.id = ANY ($1)";
    let statement = client.prepare_cached(sql).await?;
    let runs: Vec<_> = runs.iter().map(|run| encode(run)).collect();
    let rows = client.query(&statement, &[&runs]).await?;
    Ok(rows.iter().map(|row| (decode(row.get(0)), decode(row.get(1)))).collect())
}
