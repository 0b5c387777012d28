//! Task modules that clients upload.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;

use super::error_code::Failure;
use super::queries::{damaged, natural, signed};
use super::text::{decode, encode};
use prime_journal::compression::{Packed, Packing, unpack};
use prime_journal::{Stored, TaskVersion, UploadLimits, Usage};

/// Most versions that one round of collection removes: for each, the specs of the open runs are
/// searched.
const COLLECTED_MAX: i64 = 100;

/// Created apart from the other tables, because databases of earlier versions do not have them.
pub(super) const SCHEMA: &str = r#"
    CREATE TABLE module (
        digest text COLLATE "C" PRIMARY KEY,
        packing smallint NOT NULL,
        bytes bigint NOT NULL,
        body bytea NOT NULL
    );
    ALTER TABLE module ALTER COLUMN body SET STORAGE EXTERNAL;

    CREATE TABLE task_version (
        owner text COLLATE "C" NOT NULL,
        name text COLLATE "C" NOT NULL,
        digest text COLLATE "C" NOT NULL,
        bytes bigint NOT NULL,
        uploaded_ms bigint NOT NULL,
        released_ms bigint,
        PRIMARY KEY (owner, name, digest)
    );
    CREATE INDEX task_version_of_module ON task_version (digest);
    CREATE INDEX task_version_released ON task_version (released_ms)
        WHERE released_ms IS NOT NULL;
"#;

/// Begins a change of uploads, which waits for those of other nodes.
async fn begin(client: &mut Object) -> Result<Transaction<'_>, Failure> {
    let transaction = client.transaction().await?;
    let lock = "SELECT pg_advisory_xact_lock(hashtext('prime-agents uploads ' || coalesce(current_schema(), '')))";
    transaction.execute(&transaction.prepare_cached(lock).await?, &[]).await?;
    Ok(transaction)
}

fn read(row: &Row) -> Result<TaskVersion, Failure> {
    let number = |column| natural(row, column).map_err(damaged);
    let released: Option<i64> = row.get(5);
    Ok(TaskVersion {
        owner: decode(row.get(0)),
        name: decode(row.get(1)),
        digest: row.get(2),
        bytes: number(3)?,
        uploaded_ms: number(4)?,
        released_ms: released.map(|_| number(5)).transpose()?,
    })
}

const CURRENT: &str =
    "SELECT digest FROM task_version WHERE owner = $1 AND name = $2 AND released_ms IS NULL";

const RELEASE: &str = "UPDATE task_version SET released_ms = $3
    WHERE owner = $1 AND name = $2 AND released_ms IS NULL";

pub(super) async fn store(
    client: &mut Object,
    version: &TaskVersion,
    packed: &Packed<'_>,
    length: u64,
    limits: &UploadLimits,
) -> Result<Stored, Failure> {
    let transaction = begin(client).await?;
    let (owner, name) = (&*encode(&version.owner), &*encode(&version.name));
    let digest = &version.digest;

    let statement = transaction.prepare_cached(CURRENT).await?;
    let known = transaction.query_opt(&statement, &[&owner, &name]).await?;
    if known.is_some_and(|row| row.get::<_, String>(0) == *digest) {
        return Ok(Stored::Known);
    }

    let sql = "
        SELECT count(*) FILTER (WHERE released_ms IS NULL AND name <> $2), count(*),
               coalesce(sum(bytes), 0)::bigint
        FROM task_version WHERE owner = $1 AND (name <> $2 OR digest <> $3)";
    let statement = transaction.prepare_cached(sql).await?;
    let row = transaction.query_one(&statement, &[&owner, &name, digest]).await?;
    let number = |column| natural(&row, column).map_err(damaged);
    let usage =
        Usage { other_tasks: number(0)?, other_versions: number(1)?, other_bytes: number(2)? };
    if let Some(refusal) = limits.refusal(usage, length) {
        return Ok(refusal);
    }

    let now = signed(version.uploaded_ms, "the time")?;
    let statement = transaction.prepare_cached(RELEASE).await?;
    transaction.execute(&statement, &[&owner, &name, &now]).await?;

    let sql = "INSERT INTO task_version (owner, name, digest, bytes, uploaded_ms)
        VALUES ($1, $2, $3, $4, $5)
        ON CONFLICT (owner, name, digest)
        DO UPDATE SET uploaded_ms = excluded.uploaded_ms, released_ms = NULL";
    let statement = transaction.prepare_cached(sql).await?;
    let bytes = signed(length, "the size")?;
    transaction.execute(&statement, &[&owner, &name, digest, &bytes, &now]).await?;

    let sql = "INSERT INTO module (digest, packing, bytes, body) VALUES ($1, $2, $3, $4)
        ON CONFLICT (digest) DO NOTHING";
    let statement = transaction.prepare_cached(sql).await?;
    let Packed { packing, bytes, body } = packed;
    transaction.execute(&statement, &[digest, &packing.number(), bytes, body]).await?;

    transaction.commit().await?;
    Ok(Stored::New)
}

pub(super) async fn release(
    client: &mut Object,
    owner: &str,
    name: &str,
    now_ms: u64,
) -> Result<bool, Failure> {
    let transaction = begin(client).await?;
    let statement = transaction.prepare_cached(RELEASE).await?;
    let (owner, name) = (&*encode(owner), &*encode(name));
    let now = signed(now_ms, "the time")?;
    let released = transaction.execute(&statement, &[&owner, &name, &now]).await?;
    transaction.commit().await?;
    Ok(released > 0)
}

pub(super) async fn versions(
    client: &mut Object,
    owner: Option<&str>,
) -> Result<Vec<TaskVersion>, Failure> {
    let sql = "SELECT owner, name, digest, bytes, uploaded_ms, released_ms FROM task_version
        WHERE $1::text IS NULL OR owner = $1
        ORDER BY owner, name, released_ms IS NOT NULL, uploaded_ms DESC, digest";
    let statement = client.prepare_cached(sql).await?;
    let owner = owner.map(|owner| encode(owner).into_owned());
    client.query(&statement, &[&owner]).await?.iter().map(read).collect()
}

pub(super) async fn current(
    client: &mut Object,
    owner: &str,
    name: &str,
) -> Result<Option<String>, Failure> {
    let statement = client.prepare_cached(CURRENT).await?;
    let row = client.query_opt(&statement, &[&&*encode(owner), &&*encode(name)]).await?;
    Ok(row.map(|row| row.get(0)))
}

pub(super) async fn module(client: &mut Object, digest: &str) -> Result<Option<Vec<u8>>, Failure> {
    let sql = "SELECT packing, bytes, body FROM module WHERE digest = $1";
    let statement = client.prepare_cached(sql).await?;
    let Some(row) = client.query_opt(&statement, &[&digest]).await? else { return Ok(None) };

    let wrong = |reason: String| damaged(format!("the module {digest}: {reason}"));
    let number: i16 = row.get(0);
    let packing = Packing::of_number(i64::from(number))
        .ok_or_else(|| wrong(format!("{number} is not a way to store a body")))?;
    unpack(packing, row.get(1), row.get(2)).map(Some).map_err(wrong)
}

pub(super) async fn collect(client: &mut Object, released_before_ms: u64) -> Result<u64, Failure> {
    let before = i64::try_from(released_before_ms).unwrap_or(i64::MAX);
    // Most rounds find nothing, and should not write.
    let sql = "SELECT 1 FROM task_version WHERE released_ms < $1 LIMIT 1";
    let statement = client.prepare_cached(sql).await?;
    if client.query_opt(&statement, &[&before]).await?.is_none() {
        return Ok(0);
    }

    let transaction = begin(client).await?;
    let sql = "DELETE FROM task_version WHERE (owner, name, digest) IN (
            SELECT owner, name, digest FROM task_version t
            WHERE released_ms < $1 AND NOT EXISTS (
                SELECT 1 FROM run WHERE NOT run.is_over AND position(t.digest IN run.spec) > 0)
            ORDER BY released_ms LIMIT $2)";
    let statement = transaction.prepare_cached(sql).await?;
    let removed = transaction.execute(&statement, &[&before, &COLLECTED_MAX]).await?;

    let sql = "DELETE FROM module WHERE NOT EXISTS (
            SELECT 1 FROM task_version WHERE task_version.digest = module.digest)";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[]).await?;
    transaction.commit().await?;
    Ok(removed)
}
