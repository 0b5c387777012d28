//! Executor `escalation`: a small executor first, and a large one if the small one's samples differ
//! or were rejected.

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;

use super::{AgentError, AsyncExecutor, Proposal, Sampling};
use prime_protocol::{Trajectory, Usage, sample_seed};

/// An executor and the name that its proposals carry as their source.
#[derive(Clone)]
pub struct NamedExecutor {
    /// The name, by which results know the executor.
    pub name: Arc<str>,
    /// The executor.
    pub executor: Arc<dyn super::Executor>,
}

/// Draws `samples` proposals from the small executor concurrently, with different seeds. If all
/// agree, and the line was not rejected in this state before, it is proposed; otherwise the large
/// executor proposes. In a state with at least `after_rejections` earlier proposals the large
/// executor is asked directly.
///
/// Samples of a greedy executor (temperature 0) always agree and carry no information. A sample
/// that failed transiently counts as disagreement; any other failure is returned.
pub struct EscalatingExecutor {
    small: NamedExecutor,
    large: NamedExecutor,
    samples: u32,
    after_rejections: u32,
}

/// An [`EscalatingExecutor`] that would draw no sample from its small executor.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("`samples` of the small executor is 0: set it to at least 1")]
pub struct NoSamples;

impl EscalatingExecutor {
    /// `samples` is at least 1; if `after_rejections` is 0, the small executor is never asked.
    ///
    /// # Errors
    /// `samples` is 0.
    pub fn new(
        small: NamedExecutor,
        large: NamedExecutor,
        samples: u32,
        after_rejections: u32,
    ) -> Result<Self, NoSamples> {
        if samples == 0 {
            return Err(NoSamples);
        }
        Ok(Self { small, large, samples, after_rejections })
    }

    /// The small executor's proposal, if its samples agree, and the tokens that they spent.
    async fn sample_small(
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
        let mut disagrees = false;
        // All answers are counted even after a disagreement: their tokens have been spent.
        for answer in join_all((0..self.samples).map(sample)).await {
            match answer {
                Ok(proposal) => {
                    usage.add(proposal.usage);
                    disagrees |= agreed.as_ref().is_some_and(|first| first.line != proposal.line);
                    agreed.get_or_insert(proposal);
                }
                Err(error) if error.is_transient => disagrees = true,
                Err(error) => return Err(error),
            }
        }

        // The large executor is there for lines that were rejected here, and for exhausted
        // grammars.
        let is_new =
            |proposal: &Proposal| !proposal.is_exhausted && !trajectory.excludes(&proposal.line);
        let agreed = agreed.filter(|proposal| !disagrees && is_new(proposal));
        Ok((agreed, usage))
    }
}

#[async_trait]
impl AsyncExecutor for EscalatingExecutor {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        let mut spent = Usage::default();
        if trajectory.stack.top().proposals < self.after_rejections {
            let (agreed, usage) = self.sample_small(trajectory, sampling).await?;
            if let Some(proposal) = agreed {
                return Ok(Proposal {
                    usage,
                    source: Some(Arc::clone(&self.small.name)),
                    ..proposal
                });
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
