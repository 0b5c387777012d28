//! Messages that wait for their delivery. Any node may send one: it claims the row until a time of
//! the server's clock.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;

use super::error_code::Failure;
use super::queries::{damaged, natural, signed};
use super::text::{decode, encode};
use prime_journal::{
    AttemptFailure, Claimed, Claims, LISTED_BODY_CHARS, ListedMessage, Message, OutboxCount,
    OutboxQuery, Settlement,
};

/// Created apart from the other tables, because databases of earlier versions do not have it.
/// `due_ms` is NULL for a message that was given up, 0 for a new one, and the end of the claim
/// while it is claimed.
const SCHEMA: &str = r#"
    CREATE TABLE outbox (
        no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run bigint NOT NULL REFERENCES run (no) ON DELETE CASCADE,
        id text COLLATE "C" NOT NULL,
        endpoint text COLLATE "C" NOT NULL,
        due_ms bigint,
        claims bigint NOT NULL DEFAULT 0,
        failed bigint NOT NULL DEFAULT 0,
        body text COLLATE "C" NOT NULL,
        UNIQUE (endpoint, id)
    );
    CREATE INDEX outbox_due ON outbox (endpoint, due_ms, no) WHERE due_ms IS NOT NULL;
    CREATE INDEX outbox_of_run ON outbox (run, endpoint, no);
"#;

/// Why the last attempt of a message failed.
const FAILURES: &str = r#"
    CREATE TABLE outbox_failure (
        no bigint PRIMARY KEY REFERENCES outbox (no) ON DELETE CASCADE,
        failed_ms bigint NOT NULL,
        reason text COLLATE "C" NOT NULL
    );
"#;

/// The part of a commit's statement that writes its messages, with the numbers of its values.
pub(super) const ENQUEUE: &str = ", messages AS (
        INSERT INTO outbox (run, id, endpoint, due_ms, body)
        SELECT x.run, x.id, x.endpoint, 0, x.body
        FROM mine, unnest($62::bigint[], $63::text[], $64::text[], $65::text[])
            WITH ORDINALITY AS x (run, id, endpoint, body, at)
        ORDER BY x.at ON CONFLICT DO NOTHING
    )";

/// The server's clock.
const NOW: &str = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

/// The messages of a commit, as columns.
#[derive(Debug, Default)]
pub(super) struct Messages {
    pub(super) runs: Vec<i64>,
    pub(super) ids: Vec<String>,
    pub(super) endpoints: Vec<String>,
    pub(super) bodies: Vec<String>,
}

impl Messages {
    pub(super) fn push(&mut self, run: i64, message: &Message) {
        self.runs.push(run);
        self.ids.push(encode(&message.id).into_owned());
        self.endpoints.push(encode(&message.endpoint).into_owned());
        self.bodies.push(encode(&message.body).into_owned());
    }
}

/// Makes the table of a database of an earlier version.
pub(super) async fn create_missing(
    transaction: &tokio_postgres::Transaction<'_>,
) -> Result<(), Failure> {
    let sql = "SELECT to_regclass('outbox') IS NOT NULL";
    if !transaction.query_one(sql, &[]).await?.get::<_, bool>(0) {
        transaction.batch_execute(SCHEMA).await?;
    }
    let sql = "SELECT to_regclass('outbox_failure') IS NOT NULL";
    if !transaction.query_one(sql, &[]).await?.get::<_, bool>(0) {
        transaction.batch_execute(FAILURES).await?;
    }
    Ok(())
}

fn read(row: &Row, endpoint: &str) -> Result<Claimed, Failure> {
    let failed = natural(row, 3).map_err(damaged)?;
    let message =
        Message { id: decode(row.get(1)), endpoint: endpoint.to_owned(), body: decode(row.get(4)) };
    let failed = u32::try_from(failed).unwrap_or(u32::MAX);
    Ok(Claimed::new(message, decode(row.get(2)), failed, row.get(0), row.get(5)))
}

pub(super) async fn claim(
    client: &Object,
    endpoint: &str,
    limit: u32,
    lease_ms: u64,
) -> Result<Claims, Failure> {
    let name = encode(endpoint);
    // A row that another node claims meanwhile is passed over, or found claimed once it is locked.
    let sql = format!(
        "WITH due AS MATERIALIZED (
            SELECT o.no, o.due_ms FROM outbox o
            WHERE o.endpoint = $1 AND o.due_ms <= {NOW} AND NOT EXISTS (
                SELECT 1 FROM outbox e WHERE e.run = o.run AND e.endpoint = o.endpoint
                    AND e.no < o.no AND e.due_ms IS NOT NULL)
            ORDER BY o.due_ms, o.no LIMIT $2 FOR UPDATE SKIP LOCKED
        ), taken AS (
            UPDATE outbox o SET due_ms = {NOW} + $3, claims = claims + 1
            FROM due WHERE o.no = due.no
            RETURNING o.no, o.id, o.run, o.failed, o.body, o.claims, due.due_ms
        )
        SELECT t.no, t.id, r.id, t.failed, t.body, t.claims
        FROM taken t JOIN run r ON r.no = t.run ORDER BY t.due_ms, t.no"
    );
    let statement = client.prepare_cached(&sql).await?;
    let (limit, lease) = (i64::from(limit), signed(lease_ms, "the lease")?);
    let rows = client.query(&statement, &[&name, &limit, &lease]).await?;
    let claimed = rows.iter().map(|row| read(row, endpoint)).collect::<Result<_, _>>()?;

    let sql =
        format!("SELECT min(due_ms) - {NOW} FROM outbox WHERE endpoint = $1 AND due_ms > {NOW}");
    let statement = client.prepare_cached(&sql).await?;
    let next: Option<i64> = client.query_one(&statement, &[&name]).await?.get(0);
    Ok(Claims { claimed, next_ms: next.map(|next| u64::try_from(next).unwrap_or_default()) })
}

pub(super) async fn settle(
    client: &mut Object,
    settled: &[(Claimed, Settlement)],
) -> Result<usize, Failure> {
    let transaction = client.transaction().await?;
    let mut changed = 0;
    for (claimed, settlement) in settled {
        changed += usize::from(settle_one(&transaction, claimed, settlement).await?);
    }
    transaction.commit().await?;
    Ok(changed)
}

async fn settle_one(
    client: &Transaction<'_>,
    claimed: &Claimed,
    settlement: &Settlement,
) -> Result<bool, Failure> {
    let (no, claim) = claimed.numbers();
    let changed = match settlement {
        Settlement::Delivered => {
            let sql = "DELETE FROM outbox WHERE no = $1 AND claims = $2";
            client.execute(&client.prepare_cached(sql).await?, &[&no, &claim]).await?
        }
        Settlement::GivenUp { reason } => {
            let sql = "UPDATE outbox SET due_ms = NULL, failed = failed + 1
                WHERE no = $1 AND claims = $2";
            let changed =
                client.execute(&client.prepare_cached(sql).await?, &[&no, &claim]).await?;
            note_failure(client, no, reason, changed > 0).await?;
            changed
        }
        Settlement::Retry { after_ms, reason } => {
            let after = signed(*after_ms, "the pause")?;
            // The messages that must wait for it need no look before then.
            let sql = format!(
                "WITH failed AS (
                    UPDATE outbox SET due_ms = {NOW} + $3, failed = failed + 1
                    WHERE no = $1 AND claims = $2 RETURNING no, run, endpoint
                ), later AS (
                    UPDATE outbox o SET due_ms = {NOW} + $3 FROM failed f
                    WHERE o.run = f.run AND o.endpoint = f.endpoint AND o.no > f.no
                        AND o.due_ms < {NOW} + $3
                )
                SELECT count(*) FROM failed"
            );
            let statement = client.prepare_cached(&sql).await?;
            let row = client.query_one(&statement, &[&no, &claim, &after]).await?;
            let has_changed = row.get::<_, i64>(0) > 0;
            note_failure(client, no, reason, has_changed).await?;
            return Ok(has_changed);
        }
    };
    Ok(changed > 0)
}

/// Keeps why a message's last attempt failed, if the attempt counted.
async fn note_failure(
    client: &Transaction<'_>,
    no: i64,
    reason: &str,
    has_changed: bool,
) -> Result<(), Failure> {
    if !has_changed {
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO outbox_failure (no, failed_ms, reason) VALUES ($1, {NOW}, $2)
        ON CONFLICT (no) DO UPDATE SET failed_ms = excluded.failed_ms, reason = excluded.reason"
    );
    client.execute(&client.prepare_cached(&sql).await?, &[&no, &encode(reason)]).await?;
    Ok(())
}

/// The failure in two columns from this one on.
fn failure(row: &Row, column: usize) -> Result<Option<AttemptFailure>, Failure> {
    let Some(reason) = row.get::<_, Option<String>>(column + 1) else { return Ok(None) };
    let failed_ms = natural(row, column).map_err(damaged)?;
    Ok(Some(AttemptFailure { failed_ms, reason: decode(reason) }))
}

pub(super) async fn listed(
    client: &Object,
    query: &OutboxQuery,
) -> Result<Vec<ListedMessage>, Failure> {
    let state = if query.is_given_up { "IS NULL" } else { "IS NOT NULL" };
    let sql = format!(
        "SELECT o.no, o.id, r.id, left(o.body, {LISTED_BODY_CHARS}), o.failed, f.failed_ms, f.reason
        FROM outbox o JOIN run r ON r.no = o.run LEFT JOIN outbox_failure f ON f.no = o.no
        WHERE o.endpoint = $1 AND o.due_ms {state} AND o.no > $2 ORDER BY o.no LIMIT $3"
    );
    let statement = client.prepare_cached(&sql).await?;
    let after = i64::try_from(query.after).unwrap_or(i64::MAX);
    let limit = i64::from(query.limit);
    let rows = client.query(&statement, &[&encode(&query.endpoint), &after, &limit]).await?;
    let message = |row: &Row| {
        Ok(ListedMessage {
            number: natural(row, 0).map_err(damaged)?,
            id: decode(row.get(1)),
            run: decode(row.get(2)),
            body: decode(row.get(3)),
            failed: u32::try_from(natural(row, 4).map_err(damaged)?).unwrap_or(u32::MAX),
            failure: failure(row, 5)?,
        })
    };
    rows.iter().map(message).collect()
}

pub(super) async fn last_failure(
    client: &Object,
    endpoint: &str,
) -> Result<Option<AttemptFailure>, Failure> {
    let sql = "SELECT f.failed_ms, f.reason FROM outbox_failure f JOIN outbox o ON o.no = f.no
        WHERE o.endpoint = $1 ORDER BY f.failed_ms DESC, f.no DESC LIMIT 1";
    let statement = client.prepare_cached(sql).await?;
    let row = client.query_opt(&statement, &[&encode(endpoint)]).await?;
    row.map_or(Ok(None), |row| failure(&row, 0))
}

pub(super) async fn resend(
    client: &Object,
    endpoint: &str,
    ids: Option<&[String]>,
) -> Result<u64, Failure> {
    let sql = "UPDATE outbox SET due_ms = 0, failed = 0
        WHERE endpoint = $1 AND due_ms IS NULL AND ($2::text[] IS NULL OR id = ANY($2))";
    let ids: Option<Vec<String>> =
        ids.map(|ids| ids.iter().map(|id| encode(id).into_owned()).collect());
    let statement = client.prepare_cached(sql).await?;
    Ok(client.execute(&statement, &[&encode(endpoint), &ids]).await?)
}

pub(super) async fn waiting(client: &Object, run: &str) -> Result<Vec<Message>, Failure> {
    let sql = "SELECT o.id, o.endpoint, o.body FROM run r JOIN outbox o ON o.run = r.no
        WHERE r.id = $1 AND o.due_ms IS NOT NULL ORDER BY o.no";
    let statement = client.prepare_cached(sql).await?;
    let rows = client.query(&statement, &[&encode(run)]).await?;
    let message = |row: &Row| Message {
        id: decode(row.get(0)),
        endpoint: decode(row.get(1)),
        body: decode(row.get(2)),
    };
    Ok(rows.iter().map(message).collect())
}

pub(super) async fn counts(client: &Object) -> Result<Vec<OutboxCount>, Failure> {
    let sql = "SELECT endpoint, count(due_ms), count(*) - count(due_ms) FROM outbox
        GROUP BY endpoint ORDER BY endpoint";
    let statement = client.prepare_cached(sql).await?;
    let rows = client.query(&statement, &[]).await?;
    let count = |row: &Row| {
        let number = |column| natural(row, column).map_err(damaged);
        let (waiting, given_up) = (number(1)?, number(2)?);
        Ok(OutboxCount { endpoint: decode(row.get(0)), waiting, given_up })
    };
    rows.iter().map(count).collect()
}
