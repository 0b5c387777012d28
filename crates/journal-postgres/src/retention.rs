//! Removes finished runs, in short rounds, by one node at a time.
//!
//! A run's row goes first, which makes the run invisible. Its flags and segments follow in as many
//! rounds as needed; the table `removing` remembers them.

use std::collections::{BTreeSet, HashMap};

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error_code::Failure;
use super::search;
use super::text::encode;
use prime_journal::{Removed, Retention};

/// Limits of a round: rows to remove, and their bytes.
const ROWS: i64 = 1_000;
const BYTES: i64 = 4 << 20;
/// The cost of a run's row relative to a segment's: it is in up to ten indexes.
const RUN_ROWS: i64 = 10;
/// Segments that one statement removes.
const SEGMENTS_AT_ONCE: i64 = 100;
/// Most idempotency keys of removed runs that are kept for an owner.
const OWNER_KEYS_MAX: i64 = 50_000;

struct Round<'t> {
    transaction: &'t Transaction<'t>,
    retention: &'t Retention,
    /// Bytes of all runs, and of the finished runs of each owner; measured when first needed.
    usage: Option<(i64, HashMap<String, i64>)>,
    owners_with_keys: BTreeSet<String>,
    rows: i64,
    bytes: i64,
    removed: Removed,
}

/// A finished run.
struct Ended {
    run: i64,
    owner: String,
    updated_ms: i64,
    bytes: i64,
}

fn ended(row: &Row) -> Ended {
    Ended { run: row.get(0), owner: row.get(1), updated_ms: row.get(2), bytes: row.get(3) }
}

fn unsigned(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

pub(super) async fn collect(
    client: &mut Object,
    retention: &Retention,
) -> Result<Removed, Failure> {
    let transaction = client.transaction().await?;
    let lock = "SELECT pg_try_advisory_xact_lock(hashtext('prime-agents retention ' || coalesce(current_schema(), '')))";
    let is_ours: bool =
        transaction.query_one(&transaction.prepare_cached(lock).await?, &[]).await?.get(0);
    // Another node is removing runs: one round at a time is enough.
    if !is_ours {
        return Ok(Removed::default());
    }

    let mut round = Round {
        transaction: &transaction,
        retention,
        usage: None,
        owners_with_keys: BTreeSet::new(),
        rows: ROWS,
        bytes: BYTES,
        removed: Removed::default(),
    };

    round.run().await?;

    let removed = round.removed;
    transaction.commit().await?;
    Ok(removed)
}

impl Round<'_> {
    async fn execute(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<i64, Failure> {
        let statement = self.transaction.prepare_cached(sql).await?;
        Ok(i64::try_from(self.transaction.execute(&statement, values).await?).unwrap_or(i64::MAX))
    }

    async fn query(&self, sql: &str, values: &[&(dyn ToSql + Sync)]) -> Result<Vec<Row>, Failure> {
        let statement = self.transaction.prepare_cached(sql).await?;
        Ok(self.transaction.query(&statement, values).await?)
    }

    async fn run(&mut self) -> Result<(), Failure> {
        let now = i64::try_from(self.retention.now_ms).unwrap_or(i64::MAX);
        if now > 0 {
            // To ten minutes, so that an idle journal is written rarely.
            let sql = "INSERT INTO meta VALUES ('reached_ms', $1)
                ON CONFLICT (name) DO UPDATE SET value = $1 WHERE abs(meta.value - $1) >= 600000";
            self.execute(sql, &[&now]).await?;
        }
        let sql = "DELETE FROM idempotency_key WHERE (owner, key) IN
            (SELECT owner, key FROM idempotency_key WHERE until_ms <= $1 ORDER BY until_ms LIMIT $2)";
        let expired = self.execute(sql, &[&now, &ROWS]).await?;

        loop {
            let pending: Option<i64> = self
                .query("SELECT run FROM removing LIMIT 1", &[])
                .await?
                .first()
                .map(|row| row.get(0));

            let next = if pending.is_none() { self.next().await? } else { None };
            // Looked up before the budget is checked, to know whether there is more.
            if self.rows <= 0 || self.bytes <= 0 {
                self.removed.has_more = pending.is_some() || next.is_some();
                break;
            }

            match (pending, next) {
                (Some(run), _) => self.remove_body(run).await?,
                (None, Some(run)) => self.remove_row(&run).await?,
                (None, None) => break,
            }
        }

        for owner in &self.owners_with_keys {
            let sql = "DELETE FROM idempotency_key WHERE owner = $1 AND key IN (
                SELECT key FROM idempotency_key WHERE owner = $1 AND until_ms IS NOT NULL
                ORDER BY until_ms DESC OFFSET $2)";
            self.execute(sql, &[owner, &OWNER_KEYS_MAX]).await?;
        }

        self.removed.has_more |= expired >= ROWS;
        Ok(())
    }

    /// The run that ended first, of this owner or of all.
    async fn first_ended(&self, owner: Option<&str>) -> Result<Option<Ended>, Failure> {
        let of_owner = if owner.is_some() { "AND r.owner = $1" } else { "" };
        let sql = format!(
            "SELECT r.no, r.owner, r.updated_ms, h.bytes + h.snapshot_bytes FROM run r JOIN head h ON h.run = r.no
             WHERE r.is_over {of_owner} ORDER BY r.updated_ms, r.no LIMIT 1"
        );

        let rows = match &owner {
            Some(owner) => self.query(&sql, &[owner]).await?,
            None => self.query(&sql, &[]).await?,
        };
        Ok(rows.first().map(ended))
    }

    async fn measure(&mut self) -> Result<(), Failure> {
        if self.usage.is_none() {
            let sql = "SELECT r.owner, r.is_over, sum(h.bytes + h.snapshot_bytes)::bigint FROM run r JOIN head h ON h.run = r.no
                GROUP BY r.owner, r.is_over";
            // Modules have limits of their own: runs make no room for them.
            let mut all: i64 = 0;
            let mut finished = HashMap::new();
            for row in self.query(sql, &[]).await? {
                let bytes: i64 = row.get(2);
                all += bytes;
                if row.get(1) {
                    finished.insert(row.get(0), bytes);
                }
            }
            self.usage = Some((all, finished));
        }
        Ok(())
    }

    async fn next(&mut self) -> Result<Option<Ended>, Failure> {
        let owner = self.retention.owner.as_deref().map(|owner| encode(owner).into_owned());

        let Some(first) = self.first_ended(owner.as_deref()).await? else { return Ok(None) };
        if self
            .retention
            .updated_before_ms
            .is_some_and(|before| unsigned(first.updated_ms) < before)
        {
            return Ok(Some(first));
        }
        let Some(most) = self.retention.bytes_max else { return Ok(None) };

        self.measure().await?;
        let Some((all, finished)) = &self.usage else { return Ok(None) };
        if let Some(owner) = &owner {
            let bytes = finished.get(owner).copied().unwrap_or_default();
            return Ok((unsigned(bytes) > most).then_some(first));
        }

        if unsigned(*all) <= most {
            return Ok(None);
        }

        // By bytes, then the first name.
        let largest = finished.iter().max_by(|one, other| (one.1, other.0).cmp(&(other.1, one.0)));
        let largest = largest.map(|(owner, _)| owner.clone());

        let of_largest = self.first_ended(largest.as_deref()).await?;
        Ok(of_largest.or(Some(first)))
    }

    async fn remove_row(&mut self, ended: &Ended) -> Result<(), Failure> {
        let Retention { now_ms, keep_keys_ms, .. } = self.retention;

        if *keep_keys_ms > 0 {
            let until = i64::try_from(now_ms.saturating_add(*keep_keys_ms)).unwrap_or(i64::MAX);
            let kept = self
                .execute(
                    "UPDATE idempotency_key SET until_ms = $2 WHERE run = $1",
                    &[&ended.run, &until],
                )
                .await?;
            if kept > 0 {
                self.owners_with_keys.insert(ended.owner.clone());
            }
        } else {
            self.execute("DELETE FROM idempotency_key WHERE run = $1", &[&ended.run]).await?;
        }

        self.execute(search::FORGET, &[&ended.run]).await?;
        self.execute("DELETE FROM snapshot WHERE run = $1", &[&ended.run]).await?;
        self.execute("DELETE FROM head WHERE run = $1", &[&ended.run]).await?;
        self.execute("DELETE FROM run WHERE no = $1", &[&ended.run]).await?;
        self.execute("INSERT INTO removing VALUES ($1)", &[&ended.run]).await?;

        // The measured bytes stay right without measuring again in this round.
        if let Some((all, finished)) = &mut self.usage {
            *all -= ended.bytes;
            if let Some(bytes) = finished.get_mut(&ended.owner) {
                *bytes -= ended.bytes;
            }
        }

        self.rows -= RUN_ROWS;
        self.removed.runs += 1;
        self.removed.bytes += unsigned(ended.bytes);
        Ok(())
    }

    /// Removes a part of a run's reviews, flags and segments.
    async fn remove_body(&mut self, run: i64) -> Result<(), Failure> {
        let sql = "DELETE FROM review WHERE no IN (SELECT no FROM review WHERE run = $1 ORDER BY seq, no LIMIT $2)";
        let reviews = self.execute(sql, &[&run, &self.rows]).await?;
        self.rows -= reviews;

        if self.rows <= 0 {
            return Ok(());
        }

        let sql = "DELETE FROM flag WHERE run = $1 AND seq IN (SELECT seq FROM flag WHERE run = $1 ORDER BY seq LIMIT $2)";
        self.rows -= self.execute(sql, &[&run, &self.rows]).await?;
        if self.rows <= 0 {
            return Ok(());
        }

        let sql = "DELETE FROM segment WHERE run = $1 AND first_seq IN
                (SELECT first_seq FROM segment WHERE run = $1 ORDER BY first_seq LIMIT $2)
            RETURNING count, octet_length(body)::bigint";
        let most = self.rows.min(SEGMENTS_AT_ONCE);
        let rows = self.query(sql, &[&run, &most]).await?;

        for row in &rows {
            self.removed.events += unsigned(row.get(0));
            self.bytes -= row.get::<_, i64>(1);
        }

        let removed = i64::try_from(rows.len()).unwrap_or(i64::MAX);
        self.rows -= removed;

        // Fewer than asked for: the run has no more.
        if removed < most {
            self.execute("DELETE FROM removing WHERE run = $1", &[&run]).await?;
        }
        Ok(())
    }
}
