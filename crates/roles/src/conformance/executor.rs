//! Rules of executors: lines and log-probabilities.

use std::sync::Arc;

use async_trait::async_trait;

use super::finding::{Findings, Rule};
use super::turns::Turn;
use super::{Requirements, drive};
use crate::{AgentError, Executor, Proposal};
use prime_protocol::Role;

pub(super) struct Subject(pub Arc<dyn Executor>);

#[async_trait]
impl drive::Subject for Subject {
    const ROLE: Role = Role::Executor;
    type Answer = Proposal;

    async fn turn(&self, turn: &Turn) -> Result<Proposal, AgentError> {
        self.0.propose(&turn.trajectory, turn.sampling).await
    }

    fn check(
        turn: &Turn,
        proposal: &Proposal,
        requirements: &Requirements,
        findings: &mut Findings,
    ) {
        let bytes = proposal.line.len();
        if proposal.line.contains(['\n', '\r']) {
            findings.note(Rule::OneLine, &turn.name, "the proposal contains a line break");
        }

        if bytes > requirements.line_bytes_max {
            let detail = format!(
                "the proposal has {bytes} bytes, more than {}",
                requirements.line_bytes_max
            );
            findings.note(Rule::OneLine, &turn.name, detail);
        }

        if let Some(wrong) =
            proposal.logprobs.iter().find(|logprob| !logprob.is_finite() || **logprob > 0.0)
        {
            findings.note(Rule::Logprob, &turn.name, format!("{wrong} is not a log-probability"));
        }

        // Either list may be missing: many servers report only one of them.
        let (tokens, logprobs) = (proposal.tokens.len(), proposal.logprobs.len());
        if tokens > 0 && logprobs > 0 && tokens != logprobs {
            findings.note(
                Rule::Logprob,
                &turn.name,
                format!("there are {tokens} tokens but {logprobs} log-probabilities"),
            );
        }
    }
}
