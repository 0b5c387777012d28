//! Verifier `ensemble`: several verifiers judge the same step (the paper's Algorithm "Ensemble
//! Verifier").

use std::sync::Arc;

use async_trait::async_trait;
use futures::future::join_all;

use super::{AgentError, AsyncVerifier, Basis, Failure};
use prime_bench::tasks::Spec;
use prime_protocol::{Opinion, Score, Trajectory, Usage, Verdict};

/// A verifier and its name in the verdict's opinions.
pub struct EnsembleMember {
    /// Name of the verifier, unique in the ensemble.
    pub name: String,
    /// The verifier.
    pub verifier: Arc<dyn super::Verifier>,
}

/// Runs its members concurrently and combines their verdicts.
///
/// V is the median of the scores; with an even number the upper median, so that a step to which
/// half of the members object is not clean. A constraint counts as violated if at least half of the
/// members name it. A member that fails abstains; the verdict needs answers from at least half of
/// the members.
pub struct EnsembleVerifier {
    members: Vec<EnsembleMember>,
    /// δ: a larger spread of the scores asks for review.
    review_above: Score,
}

/// Why verifiers cannot form an ensemble.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnsembleError {
    /// There are no members.
    #[error("the ensemble has no members: name at least one verifier")]
    Empty,
    /// Two members have the same name.
    #[error("the ensemble has two members called `{name}`: give them different names")]
    Duplicate {
        /// The name that two members have.
        name: String,
    },
}

/// The upper median; `None` for an empty list.
fn median(mut scores: Vec<Score>) -> Option<Score> {
    scores.sort_unstable();
    scores.get(scores.len() / 2).copied()
}

impl EnsembleVerifier {
    /// `review_above` is the paper's δ: if the highest score exceeds the lowest by more, the
    /// verdict asks for review.
    ///
    /// # Errors
    /// There are no members, or two have the same name.
    pub fn new(members: Vec<EnsembleMember>, review_above: Score) -> Result<Self, EnsembleError> {
        if members.is_empty() {
            return Err(EnsembleError::Empty);
        }

        // Opinions are told apart by the member's name.
        for (index, member) in members.iter().enumerate() {
            if members[..index].iter().any(|other| other.name == member.name) {
                return Err(EnsembleError::Duplicate { name: member.name.clone() });
            }
        }

        Ok(Self { members, review_above })
    }

    /// The error if too few members answered.
    fn quorum_error(
        &self,
        answers: &[Result<Verdict, AgentError>],
        trajectory: &Trajectory,
    ) -> Option<AgentError> {
        let failed = || {
            answers
                .iter()
                .zip(&self.members)
                .filter_map(|(answer, member)| Some((answer.as_ref().err()?, member)))
        };
        let answered = answers.len() - failed().count();

        let is_read = answers
            .iter()
            .zip(&self.members)
            .any(|(answer, m)| answer.is_ok() && m.verifier.reads_words());
        // Otherwise nothing has judged the constraints that a client wrote in natural language.
        let is_unread =
            self.reads_words() && !is_read && trajectory.machine.problem().needs_reader();
        if 2 * answered >= answers.len() && !is_unread {
            return None;
        }

        // The first failure stands for all; a single transient one makes a retry worthwhile.
        let reasons: Vec<_> =
            failed().map(|(error, member)| format!("{}: {}", member.name, error.reason)).collect();
        let failure = failed().next().map_or(Failure::Unsupported, |(error, _)| error.failure);
        let is_transient = failed().any(|(error, _)| error.is_transient);

        let reason =
            format!("{answered} of {} verifiers answered ({})", answers.len(), reasons.join("; "));
        Some(AgentError { is_transient, ..AgentError::new("verifier `ensemble`", failure, reason) })
    }
}

#[async_trait]
impl AsyncVerifier for EnsembleVerifier {
    fn basis(&self, task: &Spec) -> Basis {
        Basis::of_members(
            &self.members.iter().map(|member| member.verifier.basis(task)).collect::<Vec<_>>(),
        )
    }

    /// True if at least half of the members read them: as many as it takes to call a constraint
    /// violated.
    fn reads_words(&self) -> bool {
        2 * self.members.iter().filter(|member| member.verifier.reads_words()).count()
            >= self.members.len()
    }

    /// True if any member needs it: that member would never vote.
    fn needs_algorithm(&self) -> bool {
        self.members.iter().any(|member| member.verifier.needs_algorithm())
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        let answers =
            join_all(self.members.iter().map(|member| member.verifier.judge(trajectory, line)))
                .await;
        if let Some(error) = self.quorum_error(&answers, trajectory) {
            return Err(error);
        }

        let opinions = answers.iter().zip(&self.members).map(|(answer, member)| Opinion {
            verifier: member.name.clone(),
            score: answer.as_ref().ok().map(|verdict| verdict.score),
        });
        let opinions: Vec<_> = opinions.collect();

        // A member that failed looked at nothing.
        let task = trajectory.machine.spec();
        let lost = answers.iter().any(Result::is_err);
        let basis_of = |(answer, member): (&Result<Verdict, AgentError>, &EnsembleMember)| {
            let of = |verdict: &Verdict| verdict.basis.unwrap_or(member.verifier.basis(task));
            answer.as_ref().map_or(Basis::NONE, of)
        };
        let states_own = answers.iter().flatten().any(|verdict| verdict.basis.is_some());
        let basis = (lost || states_own).then(|| {
            let members: Vec<_> = answers.iter().zip(&self.members).map(basis_of).collect();
            Basis::of_members(&members)
        });

        // Members that failed abstain from here on.
        let verdicts: Vec<&Verdict> = answers.iter().flatten().collect();
        let scores: Vec<Score> = verdicts.iter().map(|verdict| verdict.score).collect();
        let lowest = scores.iter().min().copied().unwrap_or_default();
        let highest = scores.iter().max().copied().unwrap_or_default();

        let mut violations = Vec::new();
        for name in verdicts.iter().flat_map(|verdict| &verdict.violations) {
            let votes = verdicts.iter().filter(|verdict| verdict.violations.contains(name)).count();
            if 2 * votes >= verdicts.len() && !violations.contains(name) {
                violations.push(name.clone());
            }
        }

        let score = median(scores).unwrap_or_default();
        let mut usage = Usage::default();
        verdicts.iter().for_each(|verdict| usage.add(verdict.usage));

        // Not a set, so that the reasons stay in the order of the members.
        let mut reasons: Vec<&str> = Vec::new();
        for reason in verdicts.iter().filter_map(|verdict| verdict.feedback.as_deref()) {
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }

        Ok(Verdict {
            score,
            violations,
            feedback: (score > Score::ZERO && !reasons.is_empty()).then(|| reasons.join("; ")),
            logprob: None,
            opinions,
            needs_review: highest > lowest.plus(self.review_above),
            basis,
            usage,
        })
    }
}

#[cfg(test)]
mod tests;
