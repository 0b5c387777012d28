//! Gauges over all nodes that share the journal. Each node shows the same values, as the store
//! reports them, so a query must take one of them (`max`) and not their sum.

use std::fmt::Error;
use std::sync::{Arc, Mutex, PoisonError};

use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, EncodeMetric};
use prometheus_client::metrics::MetricType;
use prometheus_client::metrics::gauge::ConstGauge;
use prometheus_client::registry::Unit;

use super::labels::{Node, NodeInfo};
use prime_journal::{ClusterStatus, NodeStatus};

/// The last status from the store; `None` for a journal that is not shared, or a store that does
/// not answer.
#[derive(Clone, Debug, Default)]
pub(super) struct Cluster(Arc<Mutex<Option<ClusterStatus>>>);

/// Name, help, unit and value.
type Row<T> = (&'static str, &'static str, Option<Unit>, fn(&T) -> Option<f64>);

fn of_all() -> [Row<ClusterStatus>; 5] {
    [
        ("prime_cluster_nodes", "Nodes that share the journal and are not dead.", None, |all| {
            Some(all.nodes.len() as f64)
        }),
        (
            "prime_cluster_open_runs",
            "Runs of all nodes that were accepted and are not over.",
            None,
            |all| Some(all.open_runs as f64),
        ),
        ("prime_cluster_waiting_runs", "Open runs that no node holds.", None, |all| {
            Some(all.waiting_runs as f64)
        }),
        (
            "prime_cluster_blocked_runs",
            "Those of them that no live node can take, because none has their agents.",
            None,
            |all| Some(all.blocked.len() as f64),
        ),
        (
            "prime_cluster_oldest_waiting",
            "Age of the oldest open run that no node holds; 0 without one.",
            Some(Unit::Seconds),
            |all| Some(seconds(all.oldest_waiting_ms.unwrap_or_default())),
        ),
    ]
}

fn of_nodes() -> [Row<NodeStatus>; 4] {
    [
        ("prime_cluster_leases", "Open runs that the node holds.", None, |node| {
            Some(node.held as f64)
        }),
        (
            "prime_cluster_capacity",
            "Open runs up to which the node takes those that nobody holds.",
            None,
            |node| Some(node.capacity as f64),
        ),
        (
            "prime_cluster_lease_left",
            "Time until the node's lease ends unless it renews it; negative if it is late.",
            Some(Unit::Seconds),
            |node| Some(node.lease_left_ms as f64 / 1e3),
        ),
        (
            "prime_cluster_heartbeat_lag",
            "Time since the node's last heartbeat.",
            Some(Unit::Seconds),
            |node| node.lag_ms.map(seconds),
        ),
    ]
}

fn seconds(ms: u64) -> f64 {
    ms as f64 / 1e3
}

impl Cluster {
    pub(super) fn tell(&self, status: Option<ClusterStatus>) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = status;
    }
}

impl Collector for Cluster {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> Result<(), Error> {
        let status = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let Some(status) = status else { return Ok(()) };

        for (name, help, unit, value) in of_all() {
            let Some(value) = value(&status) else { continue };
            let gauge = ConstGauge::new(value);
            gauge.encode(encoder.encode_descriptor(
                name,
                help,
                unit.as_ref(),
                MetricType::Gauge,
            )?)?;
        }

        for (name, help, unit, value) in of_nodes() {
            let known: Vec<_> =
                status.nodes.iter().filter_map(|node| Some((node, value(node)?))).collect();
            if known.is_empty() {
                continue;
            }

            let mut family =
                encoder.encode_descriptor(name, help, unit.as_ref(), MetricType::Gauge)?;
            for (node, value) in known {
                let labels = Node { node: node.name.clone(), id: node.id };
                ConstGauge::new(value).encode(family.encode_family(&labels)?)?;
            }
        }

        // The only gauge that differs from node to node.
        if let Some(this) = status.nodes.into_iter().find(|node| node.is_this) {
            let help =
                "The node that shows these metrics; all that are not over the cluster are its own.";
            let mut family =
                encoder.encode_descriptor("prime_node_info", help, None, MetricType::Gauge)?;
            let labels = NodeInfo { node: this.name, id: this.id, version: this.version };
            ConstGauge::new(1.0).encode(family.encode_family(&labels)?)?;
        }

        Ok(())
    }
}
