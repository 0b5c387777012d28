//! Executor `escalating`: a small executor first, and a larger one where the small one is not of one mind or was wrong.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;

use super::{AgentError, AsyncExecutor, Proposal, Sampling};
use prime_protocol::{Trajectory, Usage, sample_seed};

/// An executor with the name that records give as the source of its proposals.
#[derive(Clone)]
pub struct Named {
    pub name: Arc<str>,
    pub executor: Arc<dyn super::Executor>,
}

/// Asks the small executor `samples` times at once, with different seeds. If all lines are the same, and the line was not
/// rejected in this state before, it is proposed; otherwise the large executor is asked, as it is from the start in a state
/// that is hard: one where `after_rejections` proposals or more were made before.
///
/// Samples of a greedy executor (temperature 0) are always the same and say nothing. A sample that failed for a reason that
/// may pass counts as one of another mind; any other failure is reported.
pub struct EscalatingExecutor {
    small: Named,
    large: Named,
    samples: u32,
    after_rejections: u32,
}

impl EscalatingExecutor {
    /// `samples` is at least 1; with `after_rejections` 0 the small executor is never asked.
    ///
    /// # Errors
    /// When `samples` is 0.
    pub fn new(small: Named, large: Named, samples: u32, after_rejections: u32) -> Result<Self, String> {
        if samples == 0 {
            return Err("samples of the small executor: 0, set it to at least 1".to_owned());
        }
        Ok(Self { small, large, samples, after_rejections })
    }

    /// The small executor's proposal, if it is of one mind; and what its samples spent.
    async fn small(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<(Option<Proposal>, Usage), AgentError> {
        let sample = |number| {
            let seed = sample_seed(sampling.seed, number);
            self.small.executor.propose(trajectory, Sampling { seed, ..sampling })
        };
        let mut usage = Usage::default();
        let mut agreed: Option<Proposal> = None;
        let mut is_split = false;
        for answer in join_all((0..self.samples).map(sample)).await {
            match answer {
                Ok(proposal) => {
                    usage.add(proposal.usage);
                    is_split |= agreed.as_ref().is_some_and(|first| first.line != proposal.line);
                    agreed.get_or_insert(proposal);
                }
                Err(error) if error.is_transient => is_split = true,
                Err(error) => return Err(error),
            }
        }
        let agreed = agreed.filter(|proposal| !is_split && !trajectory.excludes(&proposal.line));
        Ok((agreed, usage))
    }
}

#[async_trait]
impl AsyncExecutor for EscalatingExecutor {
    async fn propose(&self, trajectory: &Trajectory, sampling: Sampling) -> Result<Proposal, AgentError> {
        let mut spent = Usage::default();
        if trajectory.stack.top().proposals < self.after_rejections {
            let (agreed, usage) = self.small(trajectory, sampling).await?;
            if let Some(proposal) = agreed {
                return Ok(Proposal { usage, source: Some(Arc::clone(&self.small.name)), ..proposal });
            }
            spent = usage;
        }
        let proposal = self.large.executor.propose(trajectory, sampling).await?;
        spent.add(proposal.usage);
        Ok(Proposal { usage: spent, source: Some(Arc::clone(&self.large.name)), ..proposal })
    }
}

#[cfg(test)]
mod tests;
