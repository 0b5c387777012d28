//! Which runs a node can execute: a run's needs are a set of texts, and a node knows which of these
//! it meets.

use std::future::pending;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use deadpool_postgres::Object;
use tokio::time::sleep;

use super::error_code::Failure;
use super::session::Session;
use super::text::{decode, encode};
use super::this_node::ThisNode;
use prime_journal::lease::NodeId;

/// What the runs of a store need from the nodes that execute them. Needs are texts of one line,
/// which mean the same on all nodes.
pub trait Needs: Send + Sync {
    /// What a run of this spec needs from its node. Called with each accepted run, so it must not
    /// block.
    fn of(&self, spec: &str) -> Vec<String>;

    /// Where a run of this spec comes in the order in which nodes take runs, in milliseconds since
    /// 1970: the earliest first. `None` = by the time of its acceptance. Called as
    /// [`Needs::of`] is.
    fn rank_ms(&self, _spec: &str) -> Option<i64> {
        None
    }

    /// Which of these needs this node meets at present, and any others that it is known to meet.
    /// Called repeatedly, on a thread that may block.
    fn met(&self, asked: &[String]) -> Vec<String>;
}

/// Needs as the text that statements expect: one a line.
pub(super) fn lines(needs: Vec<String>) -> String {
    let lines: Vec<_> = needs.into_iter().map(|need| encode(&need).replace('\n', " ")).collect();
    lines.join("\n")
}

/// The needs that this node meets.
pub(super) struct Met {
    needs: Option<Arc<dyn Needs>>,
    /// The needs as the node's row has them, sorted, and the node.
    known: Mutex<(Option<NodeId>, Vec<String>)>,
}

impl Met {
    pub(super) fn new(needs: Option<Arc<dyn Needs>>) -> Self {
        Self { needs, known: Mutex::default() }
    }

    /// What the node meets as far as it knows; `None` for a node that takes any run.
    pub(super) fn known(&self) -> Option<Vec<String>> {
        self.needs.as_ref()?;
        Some(self.known.lock().unwrap_or_else(PoisonError::into_inner).1.clone())
    }

    /// Keeps up with what runs need and with what this node meets, for as long as the future is
    /// polled. Apart from heartbeats, because the answer may take longer than a lease.
    pub(super) async fn keep(&self, session: &Session, this: &ThisNode, pause: Duration) {
        let Some(needs) = &self.needs else { return pending().await };
        loop {
            // If there is no connection, the next round tries again.
            drop(self.renew(needs, session, this).await);
            sleep(pause).await;
        }
    }

    async fn renew(
        &self,
        needs: &Arc<dyn Needs>,
        session: &Session,
        this: &ThisNode,
    ) -> Result<(), Failure> {
        let Some(node) = this.node().id() else { return Ok(()) };
        // Includes runs that other nodes hold: when those nodes die, the answer must be known.
        let asked = session.once(async |client: &mut Object| {
            let sql = "SELECT DISTINCT unnest(needs) FROM run WHERE NOT is_over AND needs <> '{}'";
            let rows = client.query(&client.prepare_cached(sql).await?, &[]).await?;
            Ok(rows.iter().map(|row| decode(row.get(0))).collect::<Vec<_>>())
        });

        let (asked, needs) = (asked.await?, Arc::clone(needs));
        // A panic there is a bug that the next round may not have.
        let Ok(met) = tokio::task::spawn_blocking(move || needs.met(&asked)).await else {
            return Ok(());
        };

        let mut met: Vec<_> = met.iter().map(|need| encode(need).into_owned()).collect();
        met.sort();
        met.dedup();

        // Compared with the node as well: one that registered anew has an empty row.
        if *self.known.lock().unwrap_or_else(PoisonError::into_inner) == (Some(node), met.clone()) {
            return Ok(());
        }

        let told = session.once(async |client: &mut Object| {
            let statement =
                client.prepare_cached("UPDATE node SET agents = $2 WHERE id = $1").await?;
            client.execute(&statement, &[&node.0, &met]).await?;
            Ok(())
        });

        told.await?;
        *self.known.lock().unwrap_or_else(PoisonError::into_inner) = (Some(node), met);

        // Runs whose needs were not met before may be free.
        this.look_for_runs();
        Ok(())
    }
}
