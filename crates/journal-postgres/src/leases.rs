//! Executes the node's lease requests, in a task on the journal's own thread.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, MutexGuard};
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::sync::watch;
use tokio::time::{Instant, sleep, timeout};

use super::bulletin::{Bulletin, News};
use super::error_code::Failure;
use super::needs::Met;
use super::notice::{Notice, OnNotice};
use super::room::Room;
use super::session::Session;
use super::text::{decode, encode};
use super::this_node::ThisNode;
use super::url::Target;
use prime_journal::JournalError;
use prime_journal::lease::{Answer, Epoch, Node, NodeId, Request, Timing};

/// Pause after a failed request.
const PAUSE: Duration = Duration::from_millis(200);
/// The longest wait without anything to send.
const DAY_MS: u64 = 86_400_000;
/// Time limit for the last requests when the journal is closed.
const CLOSE_MAX: Duration = Duration::from_secs(5);
/// Shortest time limit of a request, however short the lease is: a loaded server may need that
/// long.
const REQUEST_MIN: Duration = Duration::from_secs(1);

/// A node's leases, shared by its commits and its heartbeats.
pub(super) struct Leases {
    pub(super) this: ThisNode,
    pub(super) bulletin: Bulletin,
    met: Met,
    pub(super) room: Room,
    /// True if other nodes live, as of the last heartbeat.
    has_others: AtomicBool,
    name: String,
    timing: Timing,
}

impl Leases {
    pub(super) fn new(
        name: String,
        timing: Timing,
        capacity: usize,
        on_notice: Option<OnNotice>,
        met: Met,
    ) -> Self {
        Self {
            this: ThisNode::new(timing, capacity, on_notice),
            bulletin: Bulletin::default(),
            met,
            room: Room::default(),
            has_others: AtomicBool::new(false),
            name,
            timing,
        }
    }

    pub(super) fn set_capacity(&self, capacity: usize) {
        let mut node = self.node();
        node.set_capacity(capacity);
        node.look_for_runs();
        drop(node);

        self.this.wake.notify_one();
    }

    /// The capacity that the next heartbeat writes to the node's row.
    fn capacity(&self) -> i64 {
        i64::try_from(self.node().capacity()).unwrap_or(i64::MAX)
    }

    /// See [`ThisNode::node`].
    pub(super) fn node(&self) -> MutexGuard<'_, Node<String>> {
        self.this.node()
    }

    /// Tells other nodes, if there are any.
    pub(super) fn tell(&self, news: impl IntoIterator<Item = News>) {
        if self.has_others.load(Ordering::Relaxed) {
            self.bulletin.add(news);
        }
    }

    async fn execute(
        &self,
        client: &mut Object,
        request: &Request<String>,
    ) -> Result<Answer<String>, Failure> {
        let lease_s = Duration::from_millis(self.timing.lease_ms).as_secs_f64();
        match request {
            Request::Register => {
                let sql = "INSERT INTO node (name, version, expires, capacity, beat)
                    VALUES ($1, $2, clock_timestamp() + make_interval(secs => $3), $4, clock_timestamp()) RETURNING id";
                let statement = client.prepare_cached(sql).await?;
                let (version, capacity) = (env!("CARGO_PKG_VERSION"), self.capacity());

                let row = client
                    .query_one(&statement, &[&encode(&self.name), &version, &lease_s, &capacity])
                    .await?;
                Ok(Answer::Registered(NodeId(row.get(0))))
            }
            Request::Heartbeat { node } => {
                let answer = heartbeat(client, *node, lease_s, self.capacity()).await?;
                self.read_news(client, *node).await?;
                Ok(answer)
            }
            Request::Reap => {
                reap(client, lease_s).await?;
                Ok(Answer::Reaped)
            }
            Request::Take { node, most } => {
                take(client, *node, *most, self.met.known().as_deref()).await
            }
            Request::Release { node, runs } => {
                let (ids, epochs): (Vec<_>, Vec<_>) =
                    runs.iter().map(|(run, epoch)| (encode(run), epoch.0)).unzip();
                let sql = "UPDATE head SET holder = NULL
                    FROM unnest($2::text[], $3::bigint[]) AS x (id, epoch) JOIN run ON run.id = x.id
                    WHERE head.run = run.no AND head.holder = $1 AND head.epoch = x.epoch";
                let statement = client.prepare_cached(sql).await?;
                client.execute(&statement, &[&node.0, &ids, &epochs]).await?;
                Ok(Answer::Released)
            }
        }
    }

    /// Reads what other nodes request of this node's runs, whether there are other nodes, and how
    /// many open runs this node does not hold.
    async fn read_news(&self, client: &Object, node: NodeId) -> Result<(), Failure> {
        let sql = "SELECT EXISTS (SELECT FROM node WHERE id <> $1 AND NOT is_dead),
            open_runs() - (SELECT count(*) FROM head WHERE holder = $1),
            ARRAY(SELECT r.id FROM cancellation c JOIN head h ON h.run = c.run AND h.holder = $1
                JOIN run r ON r.no = h.run)";
        let row = client.query_one(&client.prepare_cached(sql).await?, &[&node.0]).await?;

        self.has_others.store(row.get(0), Ordering::Relaxed);
        self.room.count(u64::try_from(row.get::<_, i64>(1)).unwrap_or_default());

        // The count may be far from the limit again, so the next commit that accepts runs shares
        // the lock.
        self.room.set_crowded(false);

        for run in row.get::<_, Vec<String>>(2) {
            self.this.notify(Notice::Cancel(decode(run)));
        }
        Ok(())
    }

    /// Notes that `open` runs are open in the store, including those of this node.
    pub(super) fn count_open(&self, open: u64) {
        let held = self.node().held().count() as u64;
        self.room.count(open.saturating_sub(held));
    }

    /// Sends what is due, once.
    pub(super) async fn send(
        &self,
        session: &Session,
        request: &Request<String>,
    ) -> Result<(), Failure> {
        // A connection that hangs must leave enough of the lease for another attempt.
        let max = (Duration::from_millis(self.timing.lease_ms) / 3).max(REQUEST_MIN);
        let sent = session
            .once_within(max, async |client: &mut Object| self.execute(client, request).await)
            .await;

        let effects = match sent {
            Ok(answer) => self.node().answered(answer),
            Err(failure) => {
                self.node().unanswered();
                return Err(failure);
            }
        };

        // No lock is held here: the receiver may call the journal.
        self.this.announce(effects);
        Ok(())
    }

    /// Sends the first request, which a busy server may answer late. If the answer is lost, the
    /// node's row expires by itself.
    pub(super) async fn register(&self, session: &Session) -> Result<(), JournalError> {
        let mut attempts = session.attempts();
        loop {
            let request = self.node().next(0);
            let Some(request) = request else { return Ok(()) };
            match self.send(session, &request).await {
                Ok(()) => return Ok(()),
                Err(failure) if failure.is_passing() && attempts.pause().await => {}
                Err(failure) => return Err(failure.into_error(&session.database)),
            }
        }
    }

    /// Keeps the leases until the journal is closed, then gives back all runs.
    pub(super) async fn keep(
        self: Arc<Self>,
        session: Session,
        target: &Target,
        started: Instant,
        mut closed: watch::Receiver<bool>,
    ) {
        let requests = self.send_requests(&session, started);
        tokio::select! {
            () = requests => {}
            () = self.bulletin.keep(target, &self.this) => {}
            () = self.met.keep(&session, &self.this, Duration::from_millis(self.timing.heartbeat_ms)) => {}
            _ = closed.wait_for(|closed| *closed) => {}
        }

        self.give_back(&session).await;
    }

    async fn send_requests(&self, session: &Session, started: Instant) {
        loop {
            let now_ms = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);

            let (request, wake_ms) = {
                let mut node = self.node();
                let request = node.next(now_ms);
                (request, node.wake_ms())
            };

            let step = async {
                match request {
                    Some(request) if self.send(session, &request).await.is_err() => {
                        sleep(PAUSE).await;
                    }
                    Some(_) => {}
                    None => {
                        // At least 1 ms from now: the node's wake time may lie in the past while
                        // nothing can be sent. And at most a day, which every clock can hold.
                        let wait_ms = wake_ms.saturating_sub(now_ms).clamp(1, DAY_MS);
                        let wake = sleep(Duration::from_millis(wait_ms));
                        tokio::select! { () = wake => {}, () = self.this.wake.notified() => {} }
                    }
                }
            };

            step.await;
        }
    }

    /// Gives back all runs, for other nodes to take at once.
    async fn give_back(&self, session: &Session) {
        let Some(node) = self.node().id() else { return };

        let close = session.once(async |client: &mut Object| {
            let sql = "WITH freed AS (UPDATE head SET holder = NULL WHERE holder = $1) DELETE FROM node WHERE id = $1";
            let statement = client.prepare_cached(sql).await?;
            client.execute(&statement, &[&node.0]).await?;

            client
                .execute("SELECT pg_notify('prime_agents_' || md5(coalesce(current_schema(), '')), 'f')", &[])
                .await?;
            Ok(())
        });

        // If it fails, the lease ends by itself.
        drop(timeout(CLOSE_MAX, close).await);
    }
}

async fn heartbeat(
    client: &Object,
    node: NodeId,
    lease_s: f64,
    capacity: i64,
) -> Result<Answer<String>, Failure> {
    let sql = "UPDATE node SET expires = clock_timestamp() + make_interval(secs => $2), beat = clock_timestamp(),
        capacity = $3 WHERE id = $1 AND NOT is_dead";
    let statement = client.prepare_cached(sql).await?;
    if client.execute(&statement, &[&node.0, &lease_s, &capacity]).await? == 0 {
        return Ok(Answer::Dead);
    }

    let sql = "SELECT r.id, h.epoch FROM head h JOIN run r ON r.no = h.run WHERE h.holder = $1";
    let rows = client.query(&client.prepare_cached(sql).await?, &[&node.0]).await?;
    Ok(Answer::Alive(rows.iter().map(|row| (decode(row.get(0)), Epoch(row.get(1)))).collect()))
}

/// Takes free runs. `SKIP LOCKED`: nodes that take at the same time get different runs, and none
/// waits for another's commit. `met` are the needs that the node meets; without it, all.
async fn take(
    client: &Object,
    node: NodeId,
    most: usize,
    met: Option<&[String]>,
) -> Result<Answer<String>, Failure> {
    let sql = "
        WITH me AS (SELECT id FROM node WHERE id = $1 AND NOT is_dead FOR SHARE),
        free AS (
            SELECT head.run FROM head, me WHERE is_open AND holder IS NULL
                AND ($3::text[] IS NULL OR (SELECT needs FROM run WHERE no = head.run) <@ $3)
            ORDER BY created_ms, run LIMIT $2 FOR UPDATE OF head SKIP LOCKED
        ), taken AS (
            UPDATE head SET holder = $1, epoch = epoch + 1 FROM free WHERE head.run = free.run
            RETURNING head.run, epoch, created_ms
        )
        SELECT r.id, t.epoch FROM taken t JOIN run r ON r.no = t.run ORDER BY t.created_ms, t.run";

    let statement = client.prepare_cached(sql).await?;
    let most = i64::try_from(most).unwrap_or(i64::MAX);

    let rows = client.query(&statement, &[&node.0, &most, &met]).await?;
    Ok(Answer::Taken(rows.iter().map(|row| (decode(row.get(0)), Epoch(row.get(1)))).collect()))
}

async fn reap(client: &Object, lease_s: f64) -> Result<(), Failure> {
    // A clock that was set back must not keep the dead alive. Without its type, PostgreSQL takes $1
    // in `2 * $1` for an int.
    let capped = "UPDATE node SET expires = clock_timestamp() + make_interval(secs => $1)
        WHERE NOT is_dead AND expires > clock_timestamp() + make_interval(secs => 2 * $1::float8)";
    client.execute(&client.prepare_cached(capped).await?, &[&lease_s]).await?;

    let died = "UPDATE node SET is_dead = true FROM (
            SELECT id FROM node WHERE NOT is_dead AND expires < clock_timestamp() FOR UPDATE SKIP LOCKED
        ) late WHERE node.id = late.id";
    client.execute(&client.prepare_cached(died).await?, &[]).await?;

    let freed = "UPDATE head SET holder = NULL FROM (
            SELECT run FROM head h WHERE holder IS NOT NULL
                AND NOT EXISTS (SELECT FROM node WHERE node.id = h.holder AND NOT node.is_dead)
            FOR UPDATE SKIP LOCKED
        ) lost WHERE head.run = lost.run";
    client.execute(&client.prepare_cached(freed).await?, &[]).await?;

    let obsolete = "DELETE FROM cancellation c WHERE NOT EXISTS (SELECT FROM head h WHERE h.run = c.run AND h.is_open)";
    client.execute(&client.prepare_cached(obsolete).await?, &[]).await?;

    // Kept for a while: a node that wakes learns from its row what became of its last commit.
    let forgotten =
        "DELETE FROM node WHERE is_dead AND expires < clock_timestamp() - interval '1 hour'
        AND NOT EXISTS (SELECT FROM head WHERE head.holder = node.id)";
    client.execute(&client.prepare_cached(forgotten).await?, &[]).await?;
    Ok(())
}
