//! Executor `scripted`: the reference, erring with a given probability, by seed. The test double for everything that
//! needs an executor that is sometimes wrong.

use async_trait::async_trait;

use super::{AgentError, Executor, Proposal, Sampling};
use crate::protocol::Trajectory;
use crate::tasks::Draw;

pub struct ScriptedExecutor {
    /// Probability of an error at each proposal, in millionths.
    error_millionths: u64,
}

impl ScriptedExecutor {
    /// `error_rate` between 0 and 1.
    pub fn new(error_rate: f64) -> Self {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to 0..=1 before")]
        Self { error_millionths: (error_rate.clamp(0.0, 1.0) * 1e6).round() as u64 }
    }
}

/// A line that is near the right one and wrong: a changed number, another action, or no action at all.
fn wrong(line: &str, draw: &mut Draw) -> String {
    let digits: Vec<_> = line.char_indices().filter(|(_, c)| c.is_ascii_digit()).map(|(at, _)| at).collect();
    if digits.is_empty() || draw.chance(1, 8) {
        return "no action".to_owned();
    }
    let at = digits[draw.index(digits.len())];
    let old = line.as_bytes()[at] - b'0';
    let new = (u64::from(old) + 1 + draw.below(9)) % 10;
    format!("{}{new}{}", &line[..at], &line[at + 1..])
}

#[async_trait]
impl Executor for ScriptedExecutor {
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
        let right = super::reference::next(trajectory, "scripted")?;
        let mut draw = Draw::new(sampling.seed);
        let errs = draw.chance(self.error_millionths, 1_000_000);
        Ok(Proposal { line: if errs { wrong(&right, &mut draw) } else { right }, ..Proposal::default() })
    }
}
