//! The statements of a commit. A commit is one autocommitted statement, so that there is one
//! answer, and one wait for the disk.

use std::sync::LazyLock;

use deadpool_postgres::{GenericClient, Object};
use tokio_postgres::types::ToSql;

use super::batch::{Batch, Known};
use super::error_code::Failure;
use super::outbox::ENQUEUE;
use super::queries::{damaged, review, signed};
use super::text::{decode, encode};
use prime_journal::lease::{Found, NodeId};
use prime_journal::{JournalError, Review};

/// Everything depends on `mine`: a commit whose number was used before changes nothing. `admit` is
/// called before anything is changed, so that it counts no run of this commit.
const CHANGES: &str = "
    WITH mine AS (
        UPDATE node SET commits = $2
        WHERE id = $1 AND CASE WHEN commits >= $2 THEN false WHEN $58::bigint IS NULL THEN true
            ELSE admit($59, $60, $58, $61) END
        RETURNING id
    ), claimed AS (
        SELECT * FROM unnest($3::bigint[], $4::bigint[], $5::bigint[], $6::boolean[], $7::bigint[], $8::bytea[],
            $9::bigint[], $10::bigint[], $11::boolean[])
            AS x (run, epoch, base, was_over, last_seq, hash, bytes, snapshot_bytes, is_over)
    ), changed AS (
        UPDATE head SET last_seq = x.last_seq, hash = coalesce(x.hash, head.hash), bytes = x.bytes,
            snapshot_bytes = x.snapshot_bytes, is_open = NOT x.is_over,
            holder = CASE WHEN x.is_over THEN NULL ELSE head.holder END
        FROM claimed x, mine
        WHERE head.run = x.run AND head.epoch = x.epoch AND head.last_seq = x.base AND head.is_open = NOT x.was_over
            AND head.holder IS NOT DISTINCT FROM CASE WHEN x.was_over THEN NULL ELSE mine.id END
        RETURNING head.run
    ), accepted AS (
        INSERT INTO run (no, id, owner, created_ms, updated_ms, task, status, is_over, resumed, spec, summary, split,
            needs)
        SELECT x.no, x.id, x.owner, x.created_ms, x.updated_ms, x.task, x.status, x.is_over, x.resumed, x.spec,
            x.summary, x.split, string_to_array(x.needs, E'\n')
        FROM mine, unnest($12::bigint[], $13::text[], $14::text[], $15::bigint[], $16::bigint[], $17::text[],
            $18::text[], $19::boolean[], $20::bigint[], $21::text[], $22::text[], $23::text[], $57::text[])
            AS x (no, id, owner, created_ms, updated_ms, task, status, is_over, resumed, spec, summary, split, needs)
    ), accepted_heads AS (
        INSERT INTO head (run, created_ms, epoch, holder, is_open, last_seq, hash, bytes, snapshot_bytes)
        SELECT x.run, x.created_ms, 1, CASE WHEN x.is_over THEN NULL ELSE mine.id END, NOT x.is_over, x.last_seq, x.hash, x.bytes,
            x.snapshot_bytes
        FROM mine, unnest($24::bigint[], $25::bigint[], $26::bytea[], $27::bigint[], $28::bigint[], $29::boolean[],
            $56::bigint[]) AS x (run, last_seq, hash, bytes, snapshot_bytes, is_over, created_ms)
    ), keys AS (
        INSERT INTO idempotency_key (owner, key, fingerprint, run, run_id)
        SELECT x.* FROM mine, unnest($30::text[], $31::text[], $32::bytea[], $33::bigint[], $34::text[]) x
    ), segments AS (
        INSERT INTO segment (run, first_seq, count, epoch, hash, packing, bytes, body)
        SELECT x.* FROM mine, unnest($35::bigint[], $36::bigint[], $37::bigint[], $38::bigint[], $39::bytea[],
            $40::smallint[], $41::bigint[], $42::bytea[]) x
    ), updated AS (
        UPDATE run SET updated_ms = x.updated_ms, status = x.status, is_over = x.is_over, resumed = x.resumed,
            summary = x.summary
        FROM mine, unnest($43::bigint[], $44::bigint[], $45::text[], $46::boolean[], $47::bigint[], $48::text[])
            AS x (no, updated_ms, status, is_over, resumed, summary)
        WHERE run.no = x.no
    ), snapshots AS (
        INSERT INTO snapshot (run, seq, packing, bytes, body)
        SELECT x.* FROM mine, unnest($49::bigint[], $50::bigint[], $51::smallint[], $52::bigint[], $53::bytea[]) x
        ON CONFLICT (run) DO UPDATE SET seq = excluded.seq, packing = excluded.packing, bytes = excluded.bytes,
            body = excluded.body
    ), flags AS (
        INSERT INTO flag (run, seq) SELECT x.* FROM mine, unnest($54::bigint[], $55::bigint[]) x ON CONFLICT DO NOTHING
    )";

/// `changed` is the fence.
const FENCE: &str = "
    SELECT refuse_unless(
        (SELECT count(*) FROM mine) = 1 AND (SELECT count(*) FROM changed) = cardinality($3::bigint[]))";

static COMMIT: LazyLock<String> = LazyLock::new(|| format!("{CHANGES}{FENCE}"));
/// Apart, so that a commit without messages costs no more than it did.
static COMMIT_WITH_MESSAGES: LazyLock<String> =
    LazyLock::new(|| format!("{CHANGES}{ENQUEUE}{FENCE}"));

/// Identifies an attempt of a commit, and limits its new runs.
#[derive(Clone, Copy)]
pub(super) struct Mark {
    pub(super) node: NodeId,
    pub(super) number: i64,
    /// Most open runs in the store.
    pub(super) most: Option<i64>,
    /// True if no other node may accept runs meanwhile.
    pub(super) is_alone: bool,
}

/// One attempt of a commit without reviews.
pub(super) async fn commit<C: GenericClient + Sync>(
    client: &C,
    mark: Mark,
    batch: &Batch,
) -> Result<(), Failure> {
    let Mark { node, number, most, is_alone } = mark;
    let (opened, ended) = batch.opened_and_ended();
    // A commit that opens no run is not counted, and takes no lock.
    let most = most.filter(|_| opened > 0);

    let (heads, new_heads) = (batch.heads(false), batch.heads(true));
    let (updates, new_rows) = (batch.updates(false), batch.updates(true));
    let (snapshots, accepts, keys, segments) =
        (batch.snapshots(), &batch.accepts, &batch.keys, &batch.segments);

    let ranks = batch.ranks();

    let messages = &batch.messages;
    let of_messages: [&(dyn ToSql + Sync); 4] =
        [&messages.runs, &messages.ids, &messages.endpoints, &messages.bodies];
    let (sql, of_messages) = if messages.runs.is_empty() {
        (&COMMIT, &of_messages[..0])
    } else {
        (&COMMIT_WITH_MESSAGES, &of_messages[..])
    };

    let statement = client.prepare_cached(sql).await?;
    let values: [&(dyn ToSql + Sync); 61] = [
        &node.0,
        &number,
        &heads.runs,
        &heads.epochs,
        &heads.bases,
        &heads.were_over,
        &heads.last_seqs,
        &heads.hashes,
        &heads.bytes,
        &heads.snapshot_bytes,
        &heads.are_over,
        &new_rows.runs,
        &accepts.ids,
        &accepts.owners,
        &accepts.created,
        &new_rows.updated,
        &accepts.tasks,
        &new_rows.statuses,
        &new_rows.are_over,
        &new_rows.resumed,
        &accepts.specs,
        &new_rows.summaries,
        &accepts.splits,
        &new_heads.runs,
        &new_heads.last_seqs,
        &new_heads.hashes,
        &new_heads.bytes,
        &new_heads.snapshot_bytes,
        &new_heads.are_over,
        &keys.owners,
        &keys.names,
        &keys.fingerprints,
        &keys.runs,
        &keys.ids,
        &segments.runs,
        &segments.first_seqs,
        &segments.counts,
        &segments.epochs,
        &segments.hashes,
        &segments.packings,
        &segments.bytes,
        &segments.bodies,
        &updates.runs,
        &updates.updated,
        &updates.statuses,
        &updates.are_over,
        &updates.resumed,
        &updates.summaries,
        &snapshots.runs,
        &snapshots.seqs,
        &snapshots.packings,
        &snapshots.bytes,
        &snapshots.bodies,
        &batch.flags.0,
        &batch.flags.1,
        &ranks,
        &accepts.needs,
        &most,
        &opened,
        &ended,
        &is_alone,
    ];
    client.execute(&statement, &[&values, of_messages].concat()).await?;
    Ok(())
}

/// One attempt of a commit with reviews.
pub(super) async fn commit_with_reviews(
    client: &mut Object,
    mark: Mark,
    batch: &Batch,
) -> Result<(), Failure> {
    let transaction = client.transaction().await?;
    apply(&transaction, mark, batch).await?;
    Ok(transaction.commit().await?)
}

async fn apply<C: GenericClient + Sync>(
    client: &C,
    mark: Mark,
    batch: &Batch,
) -> Result<(), Failure> {
    commit(client, mark, batch).await?;
    // After the commit's own statement, so that an event may be flagged and reviewed at once.
    for (id, seq, said) in &batch.reviews {
        add_review(client, id, *seq, said).await?;
    }
    Ok(())
}

/// Applies a commit and takes it back; then makes a small change of the node's own durable.
pub(super) async fn probe(client: &mut Object, mark: Mark, batch: &Batch) -> Result<(), Failure> {
    let transaction = client.transaction().await?;
    apply(&transaction, mark, batch).await?;
    transaction.rollback().await?;

    let statement =
        client.prepare_cached("UPDATE node SET probes = probes + 1 WHERE id = $1").await?;
    client.execute(&statement, &[&mark.node.0]).await?;
    Ok(())
}

async fn add_review<C: GenericClient + Sync>(
    transaction: &C,
    id: &str,
    seq: u64,
    said: &Review,
) -> Result<(), Failure> {
    let refused = |reason: String| Failure::Final(JournalError::Refused(reason));

    let sql = "SELECT no FROM run WHERE id = $1";
    let run =
        transaction.query_opt(&transaction.prepare_cached(sql).await?, &[&encode(id)]).await?;
    let no: i64 = run.ok_or_else(|| refused(format!("there is no run {id:?}")))?.get(0);
    let at = i64::try_from(seq).unwrap_or(i64::MAX);

    // The lock on the flag makes concurrent reviews of one event wait for each other.
    let sql = "SELECT FROM flag WHERE run = $1 AND seq = $2 FOR UPDATE";
    let flag = transaction.query_opt(&transaction.prepare_cached(sql).await?, &[&no, &at]).await?;
    flag.ok_or_else(|| {
        refused(format!("run {id:?}: event {seq} is not flagged, so there is nothing to review"))
    })?;

    let sql = "SELECT at_ms, reviewer, is_rejected, note FROM review WHERE run = $1 AND seq = $2 ORDER BY no DESC LIMIT 1";
    let newest =
        transaction.query_opt(&transaction.prepare_cached(sql).await?, &[&no, &at]).await?;
    let newest = newest.map(|row| review(&row, 0)).transpose()?;

    if newest.is_some_and(|newest| newest.repeats(said)) {
        return Ok(());
    }

    let sql = "INSERT INTO review (run, seq, at_ms, reviewer, is_rejected, note) VALUES ($1, $2, $3, $4, $5, $6)";
    let (time, by, note) = (signed(said.at_ms, "the time")?, encode(&said.by), encode(&said.note));
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&no, &at, &time, &by, &said.is_rejected, &note]).await?;
    // The newest review counts, so its verdict is stored with the flag.
    let sql = "UPDATE flag SET is_reviewed = true, is_rejected = $3 WHERE run = $1 AND seq = $2";
    transaction
        .execute(&transaction.prepare_cached(sql).await?, &[&no, &at, &said.is_rejected])
        .await?;
    Ok(())
}

/// Runs as commits need to know them, with their holders.
pub(super) async fn known(
    client: &Object,
    ids: &[&str],
) -> Result<Vec<(String, Known, Option<NodeId>)>, Failure> {
    let sql =
        "SELECT r.id, h.run, h.epoch, h.last_seq, r.is_over, h.bytes, h.snapshot_bytes, h.holder
        FROM run r JOIN head h ON h.run = r.no WHERE r.id = ANY($1)";
    let statement = client.prepare_cached(sql).await?;
    let ids: Vec<_> = ids.iter().map(|id| encode(id)).collect();

    let rows = client.query(&statement, &[&ids]).await?;

    let read = |row: &tokio_postgres::Row| {
        let last_seq: i64 = row.get(3);
        let known = Known {
            no: row.get(1),
            epoch: row.get(2),
            last_seq: u64::try_from(last_seq)
                .map_err(|_| damaged(format!("a last event {last_seq}")))?,
            is_over: row.get(4),
            bytes: row.get(5),
            snapshot_bytes: row.get(6),
        };
        Ok((decode(row.get(0)), known, row.get::<_, Option<i64>>(7).map(NodeId)))
    };
    rows.iter().map(read).collect()
}

/// Takes free runs by their numbers. Returns those that it got, with their epochs.
pub(super) async fn take(
    client: &Object,
    node: NodeId,
    runs: &[i64],
) -> Result<Vec<(i64, i64)>, Failure> {
    let sql = "
        WITH me AS (SELECT id FROM node WHERE id = $1 AND NOT is_dead FOR SHARE)
        UPDATE head SET holder = me.id, epoch = epoch + 1 FROM me
        WHERE run = ANY($2) AND is_open AND holder IS NULL RETURNING run, epoch";
    let statement = client.prepare_cached(sql).await?;
    let rows = client.query(&statement, &[&node.0, &runs]).await?;

    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}

/// A block of 256 numbers for runs; returns the first.
pub(super) async fn next_numbers(client: &Object) -> Result<i64, Failure> {
    let statement = client.prepare_cached("SELECT nextval('run_no')").await?;
    Ok(client.query_one(&statement, &[]).await?.get(0))
}

/// The node's last commit.
pub(super) async fn last_commit(client: &Object, node: NodeId) -> Result<Option<u64>, Failure> {
    let statement = client.prepare_cached("SELECT commits FROM node WHERE id = $1").await?;
    let row = client.query_opt(&statement, &[&node.0]).await?;
    Ok(row.and_then(|row| u64::try_from(row.get::<_, i64>(0)).ok()))
}

/// Uses up a number, so that no attempt of its commit can be applied any more. Returns false if one
/// was applied already.
pub(super) async fn use_up(client: &Object, node: NodeId, number: i64) -> Result<bool, Failure> {
    let statement = client
        .prepare_cached("UPDATE node SET commits = $2 WHERE id = $1 AND commits < $2")
        .await?;

    if client.execute(&statement, &[&node.0, &number]).await? == 1 {
        return Ok(true);
    }
    // The number was used, or the node has no row: then no attempt can be applied any more.
    Ok(last_commit(client, node).await?.is_none())
}

/// Why the new runs of a commit cannot be accepted, if their ids or keys are the reason.
pub(super) async fn obstacle(client: &Object, batch: &Batch) -> Result<Option<String>, Failure> {
    let statement = client.prepare_cached("SELECT id FROM run WHERE id = ANY($1) LIMIT 1").await?;
    if let Some(row) = client.query_opt(&statement, &[&batch.accepts.ids]).await? {
        return Ok(Some(format!("run {:?} exists already", decode(row.get(0)))));
    }

    let sql = "SELECT x.id, k.run_id FROM unnest($1::text[], $2::text[], $3::text[]) AS x (owner, key, id)
        JOIN idempotency_key k ON k.owner = x.owner AND k.key = x.key LIMIT 1";
    let (keys, statement) = (&batch.keys, client.prepare_cached(sql).await?);
    let row = client.query_opt(&statement, &[&keys.owners, &keys.names, &keys.ids]).await?;
    Ok(row.map(|row| {
        let (id, run) = (decode(row.get(0)), decode(row.get(1)));
        format!("the idempotency key of the new run {id:?} belongs to run {run:?}")
    }))
}

/// The runs that a commit claimed, in their order.
pub(super) fn found(
    claimed: &[String],
    known: &[(String, Known, Option<NodeId>)],
) -> Vec<Option<Found>> {
    let find = |id: &String| {
        let (_, known, holder) = known.iter().find(|(known, _, _)| known == id)?;
        Some(Found {
            epoch: prime_journal::lease::Epoch(known.epoch),
            holder: *holder,
            last_seq: known.last_seq,
        })
    };
    claimed.iter().map(find).collect()
}
