//! The route that reports the nodes which share the journal.

use std::collections::BTreeSet;

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::ToSchema;

use super::clock::now_ms;
use super::error::{ApiError, method_not_allowed};
use super::journal::node_name;
use super::state::State;
use prime_journal::{ClusterStatus, NodeStatus};

pub fn configure(config: &mut web::ServiceConfig) {
    config.service(
        web::resource("/v1/cluster")
            .route(web::get().to(show))
            .default_service(web::to(|| method_not_allowed("GET"))),
    );
}

/// The nodes and the runs that they share.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterReport {
    /// True if the journal is one that several daemons may use (`journal.url`).
    pub shared: bool,
    /// The nodes that are not dead, oldest first.
    pub nodes: Vec<ClusterNode>,
    pub open_runs: u64,
    /// Open runs that no node holds.
    pub waiting_runs: u64,
    /// Milliseconds since the oldest waiting run was accepted; null if there is none.
    pub oldest_waiting_ms: Option<u64>,
    /// Waiting runs that no node can take: none has all that their agents need.
    pub blocked_runs: u64,
    /// What the blocked runs need: engines with their models, pools, programs, recordings.
    pub missing: Vec<String>,
}

/// One life of a daemon.
#[derive(Debug, Serialize, ToSchema)]
pub struct ClusterNode {
    /// Tells nodes of one name apart. Null for a journal that is not shared.
    pub id: Option<i64>,
    /// Host and process.
    pub name: String,
    pub version: String,
    /// True if it is the node that answers.
    pub this: bool,
    /// Most runs that it takes from others: its `server.queue_max`.
    pub capacity: u64,
    /// Open runs that it executes.
    pub held: u64,
    /// Milliseconds since it began to use the journal.
    pub age_ms: u64,
    /// Milliseconds until its lease ends unless it renews it; negative if it is late. Null for a
    /// journal that is not shared.
    pub lease_left_ms: Option<i64>,
    /// Milliseconds since its last heartbeat. Null for a journal that is not shared, and for a node
    /// of a version that does not say.
    pub lag_ms: Option<u64>,
    /// What it has of what agents need: engines with their models, pools, and the programs and
    /// recordings of open runs.
    pub agents: Vec<String>,
}

impl From<NodeStatus> for ClusterNode {
    fn from(node: NodeStatus) -> Self {
        let NodeStatus {
            id,
            name,
            version,
            is_this,
            capacity,
            held,
            age_ms,
            lease_left_ms,
            lag_ms,
            agents,
        } = node;
        Self {
            id: Some(id),
            name,
            version,
            this: is_this,
            capacity,
            held,
            age_ms,
            lease_left_ms: Some(lease_left_ms),
            lag_ms,
            agents,
        }
    }
}

impl From<ClusterStatus> for ClusterReport {
    fn from(status: ClusterStatus) -> Self {
        let ClusterStatus { nodes, open_runs, waiting_runs, oldest_waiting_ms, blocked } = status;
        let missing: BTreeSet<_> =
            blocked.iter().flat_map(|run| run.missing.iter().cloned()).collect();

        let nodes = nodes.into_iter().map(ClusterNode::from).collect();
        Self {
            shared: true,
            nodes,
            open_runs,
            waiting_runs,
            oldest_waiting_ms,
            blocked_runs: blocked.len() as u64,
            missing: missing.into_iter().collect(),
        }
    }
}

/// A daemon with a journal of its own.
fn alone(state: &State) -> ClusterReport {
    // Alone, it holds every open run, so none can wait or be blocked.
    let held = state.runs.open_runs() as u64;
    let node = ClusterNode {
        id: None,
        name: node_name(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        this: true,
        capacity: state.runs.app().settings().server.queue_max.into(),
        held,
        age_ms: now_ms().saturating_sub(state.started_ms),
        lease_left_ms: None,
        lag_ms: None,
        agents: state.runs.app().needs_met(&[]),
    };

    ClusterReport {
        shared: false,
        nodes: vec![node],
        open_runs: held,
        waiting_runs: 0,
        oldest_waiting_ms: None,
        blocked_runs: 0,
        missing: Vec::new(),
    }
}

/// Lists the daemons that share the journal, and the runs that they hold.
///
/// Any of them answers for all. With a journal in a file, this daemon is the only one.
#[utoipa::path(
    get, path = "/v1/cluster", tag = "operations", operation_id = "show_cluster",
    responses((status = 200, description = "The nodes", body = ClusterReport)),
)]
pub async fn show(state: web::Data<State>) -> Result<HttpResponse, ApiError> {
    let report = state.runs.cluster().await?.map_or_else(|| alone(&state), ClusterReport::from);
    Ok(HttpResponse::Ok().json(report))
}
