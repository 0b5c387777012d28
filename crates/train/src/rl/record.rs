//! The record of an iteration, and the ways in which a run ends.

use serde::{Deserialize, Serialize};

use super::evaluation::Held;

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    pub iteration: u64,
    /// Processor seconds so far, and those of this iteration by part.
    pub cpu_s: f64,
    pub rollout_s: f64,
    pub update_s: f64,
    pub evaluation_s: f64,
    /// Mean total reward of the episodes.
    pub reward: f64,
    /// Unweighted means: task, verification, efficiency, format. Absent where the reward has no
    /// such parts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reward_parts: Option<[f64; 4]>,
    /// Share of the trajectories played from a start with a verified answer, and with a right one.
    pub solved: f64,
    pub right: f64,
    /// Share of groups whose rewards differ.
    pub mixed: f64,
    /// Number of completions learnt from.
    pub samples: u64,
    /// Mean number of tokens of a completion.
    pub length: f64,
    /// Means per token, in nats.
    pub kl: f64,
    pub entropy: f64,
    /// Share of tokens whose ratio was clipped.
    pub clipped: f64,
    pub loss: f64,
    pub gradient_norm: f64,
    pub rate: f64,
    /// Mean cross-entropy of the rehearsed tokens, in nats. Absent where nothing is rehearsed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rehearsal: Option<f64>,
    /// Number of tokens drawn, and number of tokens learnt from.
    pub drawn: u64,
    pub learnt: u64,
    /// Held-out results, if there was an evaluation.
    #[serde(skip_serializing_if = "Vec::is_empty", default)]
    pub held_out: Vec<Held>,
}

/// Why a run ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Ending {
    /// The budget is spent.
    Finished,
    /// It was interrupted and can be resumed.
    Interrupted,
    /// The policy moved too far from the initial one.
    KlCollapse,
    /// Held-out instances that the initial policy solved are no longer solved.
    HeldOutCollapse,
}

impl Ending {
    pub fn text(self) -> &'static str {
        match self {
            Self::Finished => "the budget is spent",
            Self::Interrupted => "interrupted, --resume continues",
            Self::KlCollapse => {
                "stopped: the divergence from the initial policy exceeds stop.kl_max"
            }
            Self::HeldOutCollapse => {
                "stopped: the share of held-out instances solved fell by more than stop.solved_drop"
            }
        }
    }
}
