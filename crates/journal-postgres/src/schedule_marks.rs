//! The marks of schedules.

use deadpool_postgres::Object;

use super::error_code::Failure;
use super::text::encode;

/// Created apart from the other tables, because databases of earlier versions do not have it.
const SCHEMA: &str = r#"
    CREATE TABLE schedule_mark (
        name text COLLATE "C" PRIMARY KEY,
        done_ms bigint NOT NULL
    );
"#;

/// Makes the table of a database of an earlier version.
pub(super) async fn create_missing(
    transaction: &tokio_postgres::Transaction<'_>,
) -> Result<(), Failure> {
    let sql = "SELECT to_regclass('schedule_mark') IS NOT NULL";
    if !transaction.query_one(sql, &[]).await?.get::<_, bool>(0) {
        transaction.batch_execute(SCHEMA).await?;
    }
    Ok(())
}

pub(super) async fn mark(client: &Object, schedule: &str) -> Result<Option<u64>, Failure> {
    let sql = "SELECT done_ms FROM schedule_mark WHERE name = $1";
    let statement = client.prepare_cached(sql).await?;
    let row = client.query_opt(&statement, &[&encode(schedule)]).await?;
    Ok(row.map(|row| u64::try_from(row.get::<_, i64>(0)).unwrap_or_default()))
}

pub(super) async fn set_mark(client: &Object, schedule: &str, done_ms: u64) -> Result<(), Failure> {
    let sql = "INSERT INTO schedule_mark (name, done_ms) VALUES ($1, $2)
        ON CONFLICT (name) DO UPDATE SET done_ms = excluded.done_ms";
    let statement = client.prepare_cached(sql).await?;
    let done = i64::try_from(done_ms).unwrap_or(i64::MAX);
    client.execute(&statement, &[&encode(schedule), &done]).await?;
    Ok(())
}
