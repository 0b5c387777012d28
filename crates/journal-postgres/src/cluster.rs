//! What nodes need from the database in addition to the journal.

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::PostgresJournal;
use super::bulletin::News;
use super::error_code::Failure;
use super::text::{decode, encode};
use prime_journal::{BlockedRun, Cluster, ClusterStatus, JournalError, NodeStatus};

const NODES: &str = "
    SELECT n.id, n.name, n.version, n.capacity, count(h.run),
           greatest(0, extract(epoch FROM clock_timestamp() - n.started) * 1000)::bigint,
           (extract(epoch FROM n.expires - clock_timestamp()) * 1000)::bigint, n.agents,
           (extract(epoch FROM clock_timestamp() - n.beat) * 1000)::bigint
    FROM node n LEFT JOIN head h ON h.holder = n.id
    WHERE NOT n.is_dead GROUP BY n.id ORDER BY n.id";

const RUNS: &str = "
    SELECT open_runs(), count(*), CASE WHEN count(*) > 0 THEN
        greatest(0, extract(epoch FROM clock_timestamp()) * 1000 - min(r.created_ms))::bigint END
    FROM head h JOIN run r ON r.no = h.run WHERE h.is_open AND h.holder IS NULL";

const BLOCKED: &str = "
    SELECT r.id,
           ARRAY(SELECT x FROM unnest(r.needs) x
               WHERE NOT EXISTS (SELECT FROM node n WHERE NOT n.is_dead AND n.capacity > 0 AND x = ANY(n.agents))
               ORDER BY x),
           r.needs
    FROM head h JOIN run r ON r.no = h.run
    WHERE h.is_open AND h.holder IS NULL AND r.needs <> '{}'
        AND NOT EXISTS (SELECT FROM node n WHERE NOT n.is_dead AND n.capacity > 0 AND r.needs <@ n.agents)
    ORDER BY h.created_ms, h.run";

fn texts(row: &Row, column: usize) -> Vec<String> {
    row.get::<_, Vec<String>>(column).into_iter().map(decode).collect()
}

async fn blocked(client: &Object) -> Result<Vec<BlockedRun>, Failure> {
    let rows = client.query(&client.prepare_cached(BLOCKED).await?, &[]).await?;
    let read = |row: &Row| {
        let missing = texts(row, 1);
        BlockedRun {
            id: decode(row.get(0)),
            missing: if missing.is_empty() { texts(row, 2) } else { missing },
        }
    };
    Ok(rows.iter().map(read).collect())
}

fn natural(number: i64) -> u64 {
    u64::try_from(number).unwrap_or_default()
}

impl Cluster for PostgresJournal {
    fn request_cancel(&self, id: &str) -> Result<(), JournalError> {
        self.session.run(async |client: &mut Object| {
            let sql = "INSERT INTO cancellation SELECT r.no FROM run r JOIN head h ON h.run = r.no
                WHERE r.id = $1 AND h.is_open ON CONFLICT DO NOTHING";
            let statement = client.prepare_cached(sql).await?;
            client.execute(&statement, &[&encode(id)]).await?;
            Ok(())
        })?;

        // After the request is in the database, where the holder finds it even if this is lost.
        self.leases.bulletin.add([News::Cancel(id.to_owned())]);
        Ok(())
    }

    fn blocked(&self) -> Result<Vec<BlockedRun>, JournalError> {
        self.session.run(async |client: &mut Object| blocked(client).await)
    }

    fn limit_open_runs(&self, most: u64) {
        self.leases.room.limit(most);
    }

    fn set_capacity(&self, capacity: usize) {
        self.leases.set_capacity(capacity);
    }

    fn open_elsewhere(&self) -> u64 {
        self.leases.room.elsewhere()
    }

    fn status(&self) -> Result<ClusterStatus, JournalError> {
        let this = self.node();
        self.session.run(async |client: &mut Object| {
            let nodes = client.query(&client.prepare_cached(NODES).await?, &[]).await?;
            let nodes = nodes.iter().map(|row| NodeStatus {
                id: row.get(0),
                name: decode(row.get(1)),
                version: row.get(2),
                is_this: this.is_some_and(|this| this.0 == row.get::<_, i64>(0)),
                capacity: natural(row.get(3)),
                held: natural(row.get(4)),
                age_ms: natural(row.get(5)),
                lease_left_ms: row.get(6),
                agents: texts(row, 7),
                lag_ms: Some(natural(row.get(8))),
            });

            let nodes = nodes.collect();

            let row = client.query_one(&client.prepare_cached(RUNS).await?, &[]).await?;
            let waiting_runs = natural(row.get(1));
            let blocked = if waiting_runs > 0 { blocked(client).await? } else { Vec::new() };

            Ok::<_, Failure>(ClusterStatus {
                nodes,
                open_runs: natural(row.get(0)),
                waiting_runs,
                oldest_waiting_ms: row.get::<_, Option<i64>>(2).map(natural),
                blocked,
            })
        })
    }
}
