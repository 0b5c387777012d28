//! Reads. Each is one statement, and thus a consistent snapshot.

use deadpool_postgres::Object;
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::assignees;
use super::error_code::Failure;
use super::text::{decode, encode};
use prime_journal::compression::{Packing, unpack};
use prime_journal::{
    Assigned, ChainHash, DamagedRow, FlaggedEvent, Head, IdempotencyKey, JournalError, Query,
    Review, ReviewCounts, RunRow, RunRows, Segment, Size, Snapshot,
};

pub(super) const RUNS: &str = "
    SELECT r.id, r.owner, r.created_ms, r.updated_ms, r.task, r.status, r.is_over, r.resumed, r.spec, r.summary, r.split,
           h.last_seq, h.hash, f.needed, f.open, f.rejected
    FROM run r
    JOIN head h ON h.run = r.no
    CROSS JOIN LATERAL (
        SELECT count(*) AS needed, count(*) FILTER (WHERE NOT is_reviewed) AS open,
               count(*) FILTER (WHERE is_rejected) AS rejected
        FROM flag WHERE flag.run = r.no
    ) f";

/// Segments that one statement reads.
const SEGMENTS_AT_ONCE: i64 = 32;

const SEGMENTS: &str = "
    SELECT g.first_seq, g.count, g.hash, g.packing, g.bytes, g.body
    FROM run r
    JOIN segment g ON g.run = r.no
        AND g.first_seq >= coalesce((SELECT max(first_seq) FROM segment WHERE run = r.no AND first_seq <= $2), 0)
    WHERE r.id = $1
    ORDER BY g.first_seq
    LIMIT $3";

pub(super) fn damaged(reason: String) -> Failure {
    Failure::Final(JournalError::Damaged(reason))
}

/// The number as a bigint.
///
/// # Errors
/// `Refused` if it is too large.
pub(super) fn signed(number: u64, what: &str) -> Result<i64, JournalError> {
    i64::try_from(number)
        .map_err(|_| JournalError::Refused(format!("{what} {number} is too large")))
}

pub(super) fn natural(row: &Row, column: usize) -> Result<u64, String> {
    let number: i64 = row.get(column);
    let name = row.columns()[column].name();
    u64::try_from(number)
        .map_err(|_| format!("its column `{name}` holds {number}, which must not be negative"))
}

fn hash(bytes: &[u8]) -> Result<ChainHash, String> {
    Ok(ChainHash(bytes.try_into().map_err(|_| format!("a hash of {} bytes", bytes.len()))?))
}

fn run_row(row: &Row) -> Result<RunRow, String> {
    let text = |column: usize| decode(row.get(column));

    let resumed = natural(row, 7)?;
    Ok(RunRow {
        id: text(0),
        owner: text(1),
        created_ms: natural(row, 2)?,
        updated_ms: natural(row, 3)?,
        task: text(4),
        status: text(5),
        is_over: row.get(6),
        resumed: u32::try_from(resumed)
            .map_err(|_| format!("its column `resumed` holds {resumed}"))?,
        spec: text(8),
        summary: text(9),
        split: row.get::<_, Option<String>>(10).map(decode),
        head: Head { seq: natural(row, 11)?, hash: hash(row.get(12))? },
        reviews: ReviewCounts {
            needed: natural(row, 13)?,
            open: natural(row, 14)?,
            rejected: natural(row, 15)?,
        },
    })
}

pub(super) fn run_rows(rows: &[Row]) -> RunRows {
    let mut found = RunRows::default();
    for row in rows {
        match run_row(row) {
            Ok(run) => found.rows.push(run),
            Err(reason) => found.damaged.push(DamagedRow { id: decode(row.get(0)), reason }),
        }
    }
    found
}

pub(super) async fn run(client: &Object, id: &str) -> Result<Option<RunRow>, Failure> {
    let statement = client.prepare_cached(&format!("{RUNS} WHERE r.id = $1")).await?;

    let row = client.query_opt(&statement, &[&encode(id)]).await?;
    row.map(|row| run_row(&row))
        .transpose()
        .map_err(|reason| damaged(format!("run {id:?}: {reason}")))
}

pub(super) async fn run_of_key(
    client: &Object,
    owner: &str,
    key: &str,
) -> Result<Option<(String, [u8; 32])>, Failure> {
    let sql = "SELECT run_id, fingerprint FROM idempotency_key WHERE owner = $1 AND key = $2";

    let statement = client.prepare_cached(sql).await?;
    let row = client.query_opt(&statement, &[&encode(owner), &encode(key)]).await?;

    let read = |row: Row| Ok((decode(row.get(0)), hash(row.get(1))?.0));
    row.map(read)
        .transpose()
        .map_err(|reason: String| damaged(format!("the idempotency key {key:?}: {reason}")))
}

pub(super) async fn key_of_run(
    client: &Object,
    id: &str,
) -> Result<Option<IdempotencyKey>, Failure> {
    let sql = "SELECT k.key, k.fingerprint FROM run r JOIN idempotency_key k ON k.run = r.no WHERE r.id = $1";
    let statement = client.prepare_cached(sql).await?;

    let row = client.query_opt(&statement, &[&encode(id)]).await?;

    let read =
        |row: Row| Ok(IdempotencyKey { key: decode(row.get(0)), fingerprint: hash(row.get(1))?.0 });

    row.map(read)
        .transpose()
        .map_err(|reason: String| damaged(format!("the idempotency key of run {id:?}: {reason}")))
}

pub(super) async fn list(client: &Object, query: &Query) -> Result<RunRows, Failure> {
    let mut conditions = Vec::new();
    let mut values: Vec<&(dyn ToSql + Sync)> = Vec::new();

    let texts = [("owner", &query.owner), ("status", &query.status), ("task", &query.task)];
    let texts = texts.map(|(column, value)| (column, value.as_deref().map(encode)));

    for (column, value) in &texts {
        if let Some(value) = value {
            values.push(value);
            conditions.push(format!("r.{column} = ${}", values.len()));
        }
    }

    if query.needs_review {
        conditions
            .push("EXISTS (SELECT FROM flag WHERE run = r.no AND NOT is_reviewed)".to_owned());
    }
    let assignee = match &query.assigned {
        Some(Assigned::To(name)) => Some(encode(name)),
        _ => None,
    };
    if let Some(name) = &assignee {
        values.push(name);
    }
    if let Some(assigned) = &query.assigned {
        conditions.push(assignees::condition(assigned, query.needs_review, values.len()));
    }
    if query.in_split {
        conditions.push("r.split IS NOT NULL".to_owned());
    }

    let since = query.since_ms.map(|since| i64::try_from(since).unwrap_or(i64::MAX));
    if let Some(since) = &since {
        values.push(since);
        conditions.push(format!("r.created_ms >= ${}", values.len()));
    }

    let (created, after): (i64, _);
    if let Some(id) = &query.after {
        // Another owner's run is not found either, so that its existence does not show.
        let sql = "SELECT created_ms FROM run WHERE id = $1 AND owner = coalesce($2, owner)";
        let statement = client.prepare_cached(sql).await?;
        let owner = query.owner.as_deref().map(encode);
        after = encode(id);
        let found = client.query_opt(&statement, &[&after, &owner]).await?;
        let missing = || Failure::Final(JournalError::NoSuchRun { id: id.clone() });
        created = found.ok_or_else(missing)?.get(0);

        values.extend([&created as &(dyn ToSql + Sync), &after]);
        conditions.push(format!(
            "(r.created_ms, r.id) < (${}, ${})",
            values.len() - 1,
            values.len()
        ));
    }

    let filter = if conditions.is_empty() {
        String::new()
    } else {
        format!("WHERE {}", conditions.join(" AND "))
    };

    let limit = i64::from(query.limit);
    values.push(&limit);
    let sql =
        format!("{RUNS} {filter} ORDER BY r.created_ms DESC, r.id DESC LIMIT ${}", values.len());

    let statement = client.prepare_cached(&sql).await?;
    let rows = client.query(&statement, &values).await?;

    let last = rows.last().filter(|_| rows.len() == query.limit as usize);
    Ok(RunRows { next: last.map(|row| decode(row.get(0))), ..run_rows(&rows) })
}

pub(super) async fn open_runs(client: &Object) -> Result<RunRows, Failure> {
    let statement = client
        .prepare_cached(&format!("{RUNS} WHERE h.is_open ORDER BY r.created_ms, r.id"))
        .await?;
    Ok(run_rows(&client.query(&statement, &[]).await?))
}

fn segment(row: &Row) -> Result<Segment, String> {
    let packing: i16 = row.get(3);
    let packing =
        Packing::of_number(packing.into()).ok_or_else(|| format!("a packing {packing}"))?;

    let count = natural(row, 1)?;
    Ok(Segment {
        first_seq: natural(row, 0)?,
        count: u32::try_from(count).map_err(|_| format!("a segment of {count} events"))?,
        hash: hash(row.get(2))?,
        body: unpack(packing, row.get(4), row.get(5))?,
    })
}

pub(super) async fn segments(
    client: &Object,
    id: &str,
    after_seq: u64,
    bytes: usize,
) -> Result<Vec<Segment>, Failure> {
    let statement = client.prepare_cached(SEGMENTS).await?;

    let (mut segments, mut total, mut next): (Vec<Segment>, _, _) =
        (Vec::new(), 0, after_seq.saturating_add(1));

    loop {
        // The next event is in the last segment that begins no later.
        let from = i64::try_from(next).unwrap_or(i64::MAX);
        let rows = client.query(&statement, &[&encode(id), &from, &SEGMENTS_AT_ONCE]).await?;

        for row in &rows {
            let segment = segment(row);
            let segment = segment.map_err(|reason| {
                damaged(format!("run {id:?}, after event {after_seq}: {reason}"))
            })?;
            // The segment to begin with may end before the next event.
            if segment.last_seq() < next {
                continue;
            }

            total += segment.body.len();
            next = segment.last_seq() + 1;
            segments.push(segment);
            if total >= bytes {
                return Ok(segments);
            }
        }

        // Fewer than asked for: there are no more.
        if rows.len() < usize::try_from(SEGMENTS_AT_ONCE).unwrap_or_default() {
            return Ok(segments);
        }
    }
}

pub(super) async fn reviews(
    client: &Object,
    id: &str,
    after_seq: u64,
    limit: u32,
) -> Result<Vec<FlaggedEvent>, Failure> {
    let sql = "
        SELECT f.seq, v.at_ms, v.reviewer, v.is_rejected, v.note
        FROM (SELECT g.run, g.seq FROM run r JOIN flag g ON g.run = r.no AND g.seq > $2
              WHERE r.id = $1 ORDER BY g.seq LIMIT $3) f
        LEFT JOIN review v ON v.run = f.run AND v.seq = f.seq
        ORDER BY f.seq, v.no";
    let statement = client.prepare_cached(sql).await?;

    let after = i64::try_from(after_seq).unwrap_or(i64::MAX);
    let mut all: Vec<FlaggedEvent> = Vec::new();

    for row in client.query(&statement, &[&encode(id), &after, &i64::from(limit)]).await? {
        let seq = natural(&row, 0).map_err(damaged)?;
        if all.last().is_none_or(|last| last.seq != seq) {
            all.push(FlaggedEvent { seq, reviews: Vec::new() });
        }
        // The outer join has NULL where an event has no review.
        if let (Some(last), Some(_)) = (all.last_mut(), row.get::<_, Option<i64>>(1)) {
            last.reviews.push(review(&row, 1)?);
        }
    }
    Ok(all)
}

/// A review from this column on.
pub(super) fn review(row: &Row, from: usize) -> Result<Review, Failure> {
    Ok(Review {
        at_ms: natural(row, from).map_err(damaged)?,
        by: decode(row.get(from + 1)),
        is_rejected: row.get(from + 2),
        note: decode(row.get(from + 3)),
    })
}

pub(super) async fn snapshot(client: &Object, id: &str) -> Result<Option<Snapshot>, Failure> {
    let sql = "SELECT s.seq, s.packing, s.bytes, s.body FROM run r JOIN snapshot s ON s.run = r.no WHERE r.id = $1";

    let statement = client.prepare_cached(sql).await?;
    let Some(row) = client.query_opt(&statement, &[&encode(id)]).await? else { return Ok(None) };

    let read = || {
        let packing: i16 = row.get(1);
        let packing =
            Packing::of_number(packing.into()).ok_or_else(|| format!("a packing {packing}"))?;
        Ok(Snapshot { seq: natural(&row, 0)?, body: unpack(packing, row.get(2), row.get(3))? })
    };

    read().map(Some).map_err(|reason: String| damaged(format!("run {id:?}, snapshot: {reason}")))
}

pub(super) async fn size(client: &Object) -> Result<Size, Failure> {
    let sql = "SELECT count(*), count(*) FILTER (WHERE is_open),
            coalesce(sum(bytes + snapshot_bytes), 0)::bigint
                + (SELECT coalesce(sum(octet_length(body)), 0)::bigint FROM module)
        FROM head";
    let statement = client.prepare_cached(sql).await?;

    let row = client.query_one(&statement, &[]).await?;
    let number = |column| natural(&row, column).map_err(damaged);
    Ok(Size { runs: number(0)?, open_runs: number(1)?, bytes: number(2)? })
}

/// Like [`Journal::reached_ms`](prime_journal::Journal::reached_ms).
pub(super) async fn reached_ms(client: &Object) -> Result<Option<u64>, Failure> {
    // Both can be read from an index.
    let sql = "SELECT coalesce(
        (SELECT value FROM meta WHERE name = 'reached_ms'),
        (SELECT max(ms) FROM (
            SELECT max(updated_ms) AS ms FROM run WHERE is_over
            UNION ALL SELECT max(created_ms) FROM run) AS latest))";
    let row = client.query_one(&client.prepare_cached(sql).await?, &[]).await?;
    let reached: Option<i64> = row.get(0);
    Ok(reached.map(|reached| u64::try_from(reached).unwrap_or_default()))
}
