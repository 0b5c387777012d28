//! The paper's baseline: one answer to one prompt of a chat model, whose text the benchmark judges.

use std::sync::Arc;
use std::time::Duration;

use prime_bench::judge::{Body, Submission, answer_of, judge};
use prime_bench::tasks::Kinds;
use prime_protocol::{Cost, Ending};
use prime_study::definition::{AskedRun, Study};
use prime_study::records::{Record, Status};
use tokio::time::{Instant, timeout};

use super::{Answered, Places, never_completed};

use prime_agent_set::Sampling;
use prime_agent_set::model::{CompletionRequest, Model};
use prime_bench::prompts::{Style, whole};

/// What stands before and after the answer that a model is to look for mistakes in.
const REFINE_BEFORE: &str = "Your answer to this was:";
const REFINE_AFTER: &str = "Check it step by step. Where there is a mistake, mend it and all that \
                            follows from it. Then give the whole answer again, in the same form.";

/// A chat model with a prompt.
pub struct OneShotSystem {
    /// The model that completes the prompt.
    pub model: Arc<dyn Model>,
    /// The style of the prompt.
    pub style: Style,
    /// Temperature of the draws; 0 is greedy.
    pub temperature: f32,
    /// Nucleus of the draws, 0 to 1.
    pub top_p: f32,
    /// True to ask for log-probabilities.
    pub logprobs: bool,
    /// Most tokens of the answer.
    pub max_tokens: u32,
    /// Longest time for the answer, as for a run; the wait for a place does not count.
    pub wall: Duration,
    /// The pool's places, shared by all systems of the pool: a run's time then excludes the wait for
    /// others, and no request times out in the pool's queue.
    pub places: Places,
}

impl OneShotSystem {
    /// The answer with this seed. `before` is an answer that the model is to look for mistakes in.
    pub(super) async fn answer(
        &self,
        run: &AskedRun,
        study: &Study,
        seed: u64,
        before: Option<&str>,
        mut record: Record,
    ) -> Answered {
        let problem = run.instance().problem();
        record.set_problem(problem.as_ref());

        let mut prompt = whole(problem.as_ref(), self.style);
        if let Some(before) = before {
            prompt = format!("{prompt}\n\n{REFINE_BEFORE}\n{before}\n\n{REFINE_AFTER}");
        }

        let request = CompletionRequest {
            sampling: Sampling { temperature: self.temperature, top_p: self.top_p, seed },
            max_tokens: self.max_tokens,
            logprobs: self.logprobs,
            ..CompletionRequest::raw(run.task.spec().slug, prompt)
        };

        let asked = Instant::now();
        let place = self.places.take(1).await;
        record.queued_ms = Some(asked.elapsed().as_secs_f64() * 1e3);

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
                return record.into();
            }
            // Treated like a run without a completion when its time is up.
            Err(_) => {
                let ending = Ending::WallMsSpent.name();
                record.failure = never_completed(&record, ending, false);
                return record.into();
            }
        };

        record.status = Status::Measured;
        record.proposals = 1;
        (record.rounds, record.trajectories) = (1, 1);
        record.prompt_tokens = completion.usage.prompt;
        record.completion_tokens = completion.usage.completion;
        record.cached_tokens = Some(completion.usage.cached);
        record.cost = completion.usage.cost.map(Cost::units);
        record.failure =
            completion.is_truncated.then(|| format!("cut after {} tokens", self.max_tokens));

        let logprobs = &completion.logprobs;
        let sum: f64 = logprobs.iter().copied().map(f64::from).sum();
        let mean_logprob = (!logprobs.is_empty()).then(|| sum / logprobs.len() as f64);
        let text = completion.text;
        let answer = answer_of(problem.as_ref(), &text);

        let submission = Submission { id: run.instance(), body: Body::Text(text.clone()) };
        let judgement = judge(&submission, Kinds::ALL);
        record.set_judgement(&judgement);
        record.steps = judgement.steps.unwrap_or_default();

        let usage = completion.usage;
        let tokens = study.prompts.tokens(usage.prompt, usage.cached, usage.completion);
        record.set_curve([(tokens, record.right)]);
        Answered { record, text, answer, mean_logprob }
    }
}
