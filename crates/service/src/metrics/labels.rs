//! The label sets of the metrics. Each label has few values, fixed by the program or the
//! configuration, never by client input.

use prometheus_client::encoding::EncodeLabelSet;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Version {
    pub version: &'static str,
}

/// How a run ended: `verified`, `unrefuted`, `unverified`, `failed` or `cancelled`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Status {
    pub status: &'static str,
}

/// `proceed`, `retry` or `backtrack`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Decided {
    pub decision: &'static str,
}

/// A constraint of the benchmark, or `other`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Broken {
    pub constraint: &'static str,
}

/// `prompt` or `completion`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Tokens {
    pub kind: &'static str,
}

/// `used` or `wasted`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Speculated {
    pub outcome: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Vote {
    pub agreed: bool,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Failed {
    pub role: &'static str,
    pub failure: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Reason {
    pub reason: &'static str,
}

/// The pattern of a route, such as `/v1/runs/{id}`.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Route {
    pub route: &'static str,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Answered {
    pub route: &'static str,
    pub status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Engine {
    pub engine: String,
}

/// A webhook, by its name in the configuration.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Webhook {
    pub webhook: String,
}

/// A GPU, by index and UUID.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Gpu {
    pub gpu: u32,
    pub uuid: String,
}

/// A node that shares the journal. Several nodes may have one name.
#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct Node {
    pub node: String,
    pub id: i64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub struct NodeInfo {
    pub node: String,
    pub id: i64,
    pub version: String,
}
