//! The record of an iteration, and the ways in which a run ends.

use serde::{Deserialize, Serialize};

use super::evaluation::Held;

/// One iteration.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Number of the iteration, from 1; 0 for the evaluation of the initial policy.
    pub iteration: u64,
    /// Processor seconds so far, over all parts of the run.
    pub cpu_s: f64,
    /// Processor seconds of the iteration's rollouts.
    pub rollout_s: f64,
    /// Processor seconds of the iteration's updates.
    pub update_s: f64,
    /// Processor seconds of the evaluation; 0 without one.
    pub evaluation_s: f64,
    /// Mean total reward of the episodes.
    pub reward: f64,
    /// Unweighted means: task, verification, efficiency, format. Absent where the reward has no
    /// such parts.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub reward_parts: Option<[f64; 4]>,
    /// Share of the trajectories played from a start with a verified answer, 0 to 1.
    pub solved: f64,
    /// Share of the trajectories played from a start with a verified answer that is right, 0 to 1.
    pub right: f64,
    /// Share of groups whose rewards differ.
    pub mixed: f64,
    /// Number of completions learnt from.
    pub samples: u64,
    /// Mean number of tokens of a completion.
    pub length: f64,
    /// Mean divergence from the initial policy per token, in nats.
    pub kl: f64,
    /// Mean entropy of the policy per token, in nats.
    pub entropy: f64,
    /// Share of tokens whose ratio was clipped.
    pub clipped: f64,
    /// Mean loss of the optimizer steps.
    pub loss: f64,
    /// Mean norm of their gradients, before clipping.
    pub gradient_norm: f64,
    /// Learning rate of the iteration.
    pub rate: f64,
    /// Mean cross-entropy of the rehearsed tokens, in nats. Absent where nothing is rehearsed.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub rehearsal: Option<f64>,
    /// Number of tokens drawn.
    pub drawn: u64,
    /// Number of tokens learnt from.
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
    /// Why the run ended, in words.
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
