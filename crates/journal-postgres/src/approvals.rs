//! Steps that wait for approval. A run that does nothing else is parked: no node holds it, and its
//! head is not open, so that none takes it and it does not count.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error_code::Failure;
use super::queries::{damaged, natural, signed};
use super::text::{decode, encode};
use prime_journal::lease::NodeId;
use prime_journal::{ApprovalQuery, ApprovalRow, Decided, JournalError, NewApproval};

/// Created apart from the other tables, because databases of earlier versions do not have it.
const SCHEMA: &str = r#"
    CREATE TABLE approval (
        no bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
        run bigint NOT NULL REFERENCES run (no) ON DELETE CASCADE,
        number bigint NOT NULL,
        due_ms bigint NOT NULL,
        body text COLLATE "C" NOT NULL,
        decision text COLLATE "C",
        is_void boolean NOT NULL DEFAULT false,
        UNIQUE (run, number)
    );
    CREATE INDEX approval_due ON approval (due_ms) WHERE decision IS NULL AND NOT is_void;
    CREATE INDEX approval_waiting ON approval (no) WHERE decision IS NULL AND NOT is_void;
"#;

const ROWS: &str = "
    SELECT a.no, r.id, r.owner, a.number, a.due_ms, a.body, a.decision, a.is_void OR r.is_over
    FROM approval a JOIN run r ON r.no = a.run";

/// The server's clock.
const NOW: &str = "(extract(epoch FROM statement_timestamp()) * 1000)::bigint";

const WAITS: &str = "a.decision IS NULL AND NOT a.is_void AND NOT r.is_over";

/// Makes the table of a database of an earlier version.
pub(super) async fn create_missing(
    transaction: &tokio_postgres::Transaction<'_>,
) -> Result<(), Failure> {
    let sql = "SELECT to_regclass('approval') IS NOT NULL";
    if !transaction.query_one(sql, &[]).await?.get::<_, bool>(0) {
        transaction.batch_execute(SCHEMA).await?;
    }
    Ok(())
}

fn read(row: &Row) -> Result<ApprovalRow, Failure> {
    let number = natural(row, 3).map_err(damaged)?;
    Ok(ApprovalRow {
        no: natural(row, 0).map_err(damaged)?,
        run: decode(row.get(1)),
        owner: decode(row.get(2)),
        number: u32::try_from(number).map_err(|_| damaged(format!("an approval {number}")))?,
        due_ms: natural(row, 4).map_err(damaged)?,
        body: decode(row.get(5)),
        decision: row.get::<_, Option<String>>(6).map(decode),
        is_void: row.get(7),
    })
}

fn read_all(rows: &[Row]) -> Result<Vec<ApprovalRow>, Failure> {
    rows.iter().map(read).collect()
}

/// The number of a run and the node that holds it. Its head is locked: decisions and changes of its
/// holder wait for each other.
async fn lock(
    transaction: &Transaction<'_>,
    run: &str,
) -> Result<Option<(i64, Option<i64>)>, Failure> {
    let sql = "SELECT h.run, h.holder FROM run r JOIN head h ON h.run = r.no
        WHERE r.id = $1 FOR UPDATE OF h";
    let statement = transaction.prepare_cached(sql).await?;
    let found = transaction.query_opt(&statement, &[&encode(run)]).await?;
    Ok(found.map(|row| (row.get(0), row.get(1))))
}

async fn execute(
    transaction: &Transaction<'_>,
    sql: &str,
    values: &[&(dyn ToSql + Sync)],
) -> Result<u64, Failure> {
    let statement = transaction.prepare_cached(sql).await?;
    Ok(transaction.execute(&statement, values).await?)
}

pub(super) async fn hold(
    client: &mut Object,
    node: Option<NodeId>,
    run: &str,
    waiting: &[NewApproval],
) -> Result<(), Failure> {
    let transaction = client.transaction().await?;
    let Some((no, holder)) = lock(&transaction, run).await? else {
        return Err(Failure::Final(JournalError::Refused(format!("there is no run {run:?}"))));
    };
    // A node that was cut off knows less than the one that executes the run now.
    if holder.is_some_and(|holder| node != Some(NodeId(holder))) {
        return Ok(());
    }

    let numbers: Vec<i64> = waiting.iter().map(|approval| approval.number.into()).collect();
    let sql = "UPDATE approval SET is_void = number <> ALL ($2)
        WHERE run = $1 AND decision IS NULL AND is_void <> (number <> ALL ($2))";
    execute(&transaction, sql, &[&no, &numbers]).await?;

    let sql = format!(
        "INSERT INTO approval (run, number, due_ms, body) VALUES ($1, $2, {NOW} + $3, $4)
         ON CONFLICT (run, number) DO NOTHING"
    );
    for NewApproval { number, within_ms, body } in waiting {
        let (number, within_ms) = (i64::from(*number), signed(*within_ms, "the time")?);
        execute(&transaction, &sql, &[&no, &number, &within_ms, &encode(body)]).await?;
    }
    Ok(transaction.commit().await?)
}

pub(super) async fn parked_runs(client: &Object, owner: &str, most: u32) -> Result<u32, Failure> {
    let sql = "SELECT count(*) FROM (
        SELECT FROM run r JOIN head h ON h.run = r.no
        WHERE r.owner = $1 AND NOT r.is_over AND NOT h.is_open LIMIT $2) parked";
    let statement = client.prepare_cached(sql).await?;
    let row = client.query_one(&statement, &[&encode(owner), &i64::from(most)]).await?;
    Ok(u32::try_from(row.get::<_, i64>(0)).unwrap_or(u32::MAX))
}

/// Frees a run that this node holds. Returns whether a node may take it at once.
pub(super) async fn park(
    client: &mut Object,
    node: NodeId,
    run: &str,
    numbers: &[u32],
) -> Result<bool, Failure> {
    let transaction = client.transaction().await?;
    let Some((no, _)) = lock(&transaction, run).await? else { return Ok(false) };

    let numbers: Vec<i64> = numbers.iter().map(|number| (*number).into()).collect();
    let sql = "SELECT EXISTS (SELECT FROM approval
        WHERE run = $1 AND number = ANY ($2) AND decision IS NOT NULL)";
    let statement = transaction.prepare_cached(sql).await?;
    let is_decided: bool = transaction.query_one(&statement, &[&no, &numbers]).await?.get(0);

    let sql = "UPDATE head SET holder = NULL, is_open = $3
        WHERE run = $1 AND holder = $2 AND is_open";
    let freed = execute(&transaction, sql, &[&no, &node.0, &is_decided]).await?;
    if is_decided && freed > 0 {
        execute(&transaction, "UPDATE run SET status = 'queued' WHERE no = $1", &[&no]).await?;
    }
    transaction.commit().await?;
    Ok(is_decided && freed > 0)
}

pub(super) async fn decide(
    client: &mut Object,
    run: &str,
    number: u32,
    decision: &str,
) -> Result<(Decided, bool), Failure> {
    let transaction = client.transaction().await?;
    let Some((no, _)) = lock(&transaction, run).await? else {
        return Ok((Decided::Unknown, false));
    };

    let sql = format!("{ROWS} WHERE a.run = $1 AND a.number = $2");
    let statement = transaction.prepare_cached(&sql).await?;
    let found = transaction.query_opt(&statement, &[&no, &i64::from(number)]).await?;
    let Some(found) = found.as_ref().map(read).transpose()? else {
        return Ok((Decided::Unknown, false));
    };
    if !found.waits() {
        return Ok((Decided::Earlier(Box::new(found)), false));
    }

    let sql = "UPDATE approval SET decision = $3 WHERE run = $1 AND number = $2";
    execute(&transaction, sql, &[&no, &i64::from(number), &encode(decision)]).await?;
    let sql = "UPDATE head SET is_open = true WHERE run = $1 AND NOT is_open AND holder IS NULL";
    let freed = execute(&transaction, sql, &[&no]).await?;
    if freed > 0 {
        execute(&transaction, "UPDATE run SET status = 'queued' WHERE no = $1", &[&no]).await?;
    }
    transaction.commit().await?;
    // The node that takes the lease executes it.
    Ok((Decided::Now { must_resume: false }, freed > 0))
}

pub(super) async fn of_run(client: &Object, run: &str) -> Result<Vec<ApprovalRow>, Failure> {
    let sql = format!("{ROWS} WHERE r.id = $1 ORDER BY a.number");
    let statement = client.prepare_cached(&sql).await?;
    read_all(&client.query(&statement, &[&encode(run)]).await?)
}

pub(super) async fn waiting(
    client: &Object,
    query: &ApprovalQuery,
) -> Result<Vec<ApprovalRow>, Failure> {
    let sql = format!(
        "{ROWS} WHERE {WAITS} AND a.no > $1 AND ($2::text IS NULL OR r.owner = $2)
         ORDER BY a.no LIMIT $3"
    );
    let statement = client.prepare_cached(&sql).await?;
    let after = i64::try_from(query.after).unwrap_or(i64::MAX);
    let owner = query.owner.as_deref().map(encode);
    let limit = i64::from(query.limit);
    read_all(&client.query(&statement, &[&after, &owner, &limit]).await?)
}

pub(super) async fn due(
    client: &Object,
    limit: u32,
) -> Result<(Vec<ApprovalRow>, Option<u64>), Failure> {
    let sql =
        format!("{ROWS} WHERE {WAITS} AND a.due_ms <= {NOW} ORDER BY a.due_ms, a.no LIMIT $1");
    let statement = client.prepare_cached(&sql).await?;
    let due = read_all(&client.query(&statement, &[&i64::from(limit)]).await?)?;

    let sql = format!(
        "SELECT min(a.due_ms) - {NOW} FROM approval a JOIN run r ON r.no = a.run
         WHERE {WAITS} AND a.due_ms > {NOW}"
    );
    let statement = client.prepare_cached(&sql).await?;
    let next: Option<i64> = client.query_one(&statement, &[]).await?.get(0);
    Ok((due, next.map(|next| u64::try_from(next).unwrap_or(0))))
}
