//! The paper's baseline: one answer to one prompt of a chat model, whose text the benchmark judges.

use std::sync::Arc;
use std::time::Duration;

use prime_bench::judge::{Body, Submission, judge};
use prime_bench::tasks::Kinds;
use prime_protocol::Ending;
use prime_study::definition::{AskedRun, Study};
use prime_study::records::{Record, Status};
use tokio::time::{Instant, timeout};

use super::{Places, never_completed};

use prime_agent_set::Sampling;
use prime_agent_set::model::{CompletionRequest, Model};
use prime_bench::prompts::{Style, whole};

/// A chat model with a prompt.
pub struct OneShotSystem {
    pub model: Arc<dyn Model>,
    pub style: Style,
    pub temperature: f32,
    pub top_p: f32,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// Longest time for the answer, as for a run; the wait for a place does not count.
    pub wall: Duration,
    /// The pool's places, shared by all systems of the pool: a run's time then excludes the wait for
    /// others, and no request times out in the pool's queue.
    pub places: Places,
}

impl OneShotSystem {
    pub(super) async fn answer(&self, run: &AskedRun, study: &Study, mut record: Record) -> Record {
        let problem = run.instance().problem();
        record.set_problem(problem.as_ref());

        let request = CompletionRequest {
            sampling: Sampling {
                temperature: self.temperature,
                top_p: self.top_p,
                seed: run.sampling_seed(study),
            },
            max_tokens: self.max_tokens,
            ..CompletionRequest::raw(run.task.spec().slug, whole(problem.as_ref(), self.style))
        };

        let place = self.places.take(1).await;

        let started = Instant::now();
        let completion = timeout(self.wall, self.model.complete(request)).await;

        record.wall_ms = started.elapsed().as_secs_f64() * 1e3;
        // Judging needs no server.
        drop(place);

        record.executor_ms = Some(record.wall_ms);
        record.reference_steps = problem.reference().steps;

        let completion = match completion {
            Ok(Ok(completion)) => completion,
            Ok(Err(error)) => {
                record.failure = Some(error.reason);
                return record;
            }
            // As a run that has had no completion when its time is up.
            Err(_) => {
                let ending = Ending::WallMsSpent.name();
                record.failure = never_completed(&record, ending, false);
                return record;
            }
        };

        record.status = Status::Measured;
        record.proposals = 1;
        (record.rounds, record.trajectories) = (1, 1);
        record.prompt_tokens = completion.usage.prompt;
        record.completion_tokens = completion.usage.completion;
        record.failure =
            completion.is_truncated.then(|| format!("cut after {} tokens", self.max_tokens));

        let submission = Submission { id: run.instance(), body: Body::Text(completion.text) };
        let judgement = judge(&submission, Kinds::ALL);
        record.set_judgement(&judgement);
        record.steps = judgement.steps.unwrap_or_default();

        record
    }
}
