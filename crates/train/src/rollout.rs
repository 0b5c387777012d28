//! Trajectories of the policy, many at a time, with the protocol's own state stack, verifier and
//! coordinator.

use std::sync::Arc;

use prime_bench::tasks::{Kinds, Machine, Problem};
use prime_lessons::{QUERY_END, action_line, compact, query, read, reads_max};
use prime_protocol::reward::Merits;
use prime_protocol::trajectory::{Counts, Summary};
use prime_protocol::{End, Limits, Next, Score, Thresholds, Trajectory, Verdict};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

use crate::TrainError;
use crate::sampler::{Answer, Completion, Request, Sampler, Sampling, Values};
use crate::vocabulary::Vocabulary;

/// Temperature of the default configuration.
pub const TEMPERATURE: f64 = 0.7;

/// The constraints that the verifier `rules` of the default configuration checks.
const SERVED: Kinds = Kinds::WITHOUT_TRANSITION;

/// The coordinator of the default configuration: τ_soft = τ_hard = 0.3, two retries.
const THRESHOLDS: Thresholds =
    Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 2 };

/// A proposal, with the state at which it was made.
pub struct Proposed {
    pub task: usize,
    pub machine: Box<dyn Machine>,
    pub prompt: Vec<u16>,
    pub completion: Completion,
}

/// A trajectory that has ended.
pub struct Played {
    pub proposals: Vec<Proposed>,
    pub merits: Merits,
    /// True if the answer is right, by the task's goal test or the reference.
    pub is_right: bool,
    /// Number of committed steps, including those that were taken back.
    pub committed: u64,
    /// Number of tokens drawn.
    pub tokens: u64,
}

/// Plays trajectories with one policy.
pub struct Player<'a> {
    pub sampler: Box<dyn Sampler + 'a>,
    pub vocabulary: &'a Vocabulary,
    pub sampling: Sampling,
    pub proposals_max: u64,
    /// Number of uncommitted proposals that ends a trajectory.
    pub rejections_max: u64,
    /// True if steps are verified; otherwise every line that can be applied is committed.
    pub verify: bool,
    /// True if proposals are kept; otherwise only the results of the trajectories are.
    pub keep: bool,
}

/// A trajectory that has not ended.
struct Attempt {
    /// Index of its start.
    place: usize,
    task: usize,
    trajectory: Trajectory,
    problem: Arc<dyn Problem>,
    stream: ChaCha8Rng,
    proposals: Vec<Proposed>,
    tokens: u64,
}

/// A problem to be attempted, from its start or from a state.
pub struct Start {
    /// Index among the recipe's tasks.
    pub task: usize,
    pub machine: Box<dyn Machine>,
    /// Seeds all draws of the trajectory.
    pub seed: u64,
}

impl Player<'_> {
    /// Plays one trajectory from each start, and returns them in the order of the starts.
    ///
    /// # Errors
    /// If the sampler fails.
    pub fn play(&self, starts: Vec<Start>) -> Result<Vec<Played>, TrainError> {
        let mut played: Vec<Option<Played>> = starts.iter().map(|_| None).collect();
        let mut attempts: Vec<Attempt> = Vec::with_capacity(starts.len());
        for (place, Start { task, machine, seed }) in starts.into_iter().enumerate() {
            let problem = machine.problem();
            let trajectory = Trajectory::new(machine, &Limits::DEFAULT);
            let stream = ChaCha8Rng::seed_from_u64(seed);
            attempts.push(Attempt {
                place,
                task,
                trajectory,
                problem,
                stream,
                proposals: Vec::new(),
                tokens: 0,
            });
        }

        while !attempts.is_empty() {
            let drawn = self.draw(&mut attempts)?;
            let mut left = Vec::with_capacity(attempts.len());
            for (mut attempt, (prompt, completion)) in attempts.into_iter().zip(drawn) {
                match self.settle(&mut attempt, prompt, completion) {
                    Next::Propose => left.push(attempt),
                    Next::Ended(end) => {
                        let place = attempt.place;
                        played[place] = Some(attempt.ended(&end));
                    }
                }
            }
            attempts = left;
        }

        Ok(played
            .into_iter()
            .map(|played| played.expect("invariant: every attempt has ended"))
            .collect())
    }

    /// Draws a completion for each attempt; returns it with its prompt.
    fn draw(&self, attempts: &mut [Attempt]) -> Result<Vec<(Vec<u16>, Completion)>, TrainError> {
        let prompts: Vec<Vec<u16>> = attempts
            .iter()
            .map(|attempt| self.vocabulary.encode(&compact(attempt.trajectory.machine.as_ref())))
            .collect();
        // Each proposal has its own stream, however much of its stream the last one has used.

        let streams: Vec<ChaCha8Rng> = attempts
            .iter_mut()
            .map(|attempt| {
                let stream = attempt.stream.clone();
                attempt.stream.set_stream(attempt.stream.get_stream() + 1);
                stream
            })
            .collect();

        let values: Vec<Reads<'_>> = attempts
            .iter()
            .map(|attempt| Reads {
                machine: attempt.trajectory.machine.as_ref(),
                vocabulary: self.vocabulary,
            })
            .collect();

        let requests =
            prompts.iter().zip(streams).zip(&values).map(|((prompt, stream), values)| Request {
                prompt,
                streams: vec![stream],
                values: values.are_asked().then_some(values as &dyn Values),
            });

        let drawn = self.sampler.complete(requests.collect(), self.sampling)?;
        let completions = drawn.into_iter().map(|mut completions| completions.remove(0));
        Ok(prompts.into_iter().zip(completions).collect())
    }

    /// The verdict on a machine's candidate.
    pub fn judge(&self, machine: &dyn Machine) -> Verdict {
        let kinds = if self.verify { SERVED } else { Kinds::NONE };
        Verdict::by_rules(machine, kinds).unwrap_or_default()
    }

    /// Judges a proposal and lets the protocol decide.
    fn settle(&self, attempt: &mut Attempt, prompt: Vec<u16>, completion: Completion) -> Next {
        let Attempt { task, trajectory, proposals: kept, tokens, .. } = attempt;
        let text = self.vocabulary.decode(&completion.tokens);
        let line = action_line(&text);
        *tokens += completion.logprobs.len() as u64;

        let before = self.keep.then(|| trajectory.machine.fork());
        // A completion that became too long has no action.
        let is_applicable =
            trajectory.machine.propose(if completion.has_ended { line } else { "" }).is_ok();

        let verdict = self.judge(trajectory.machine.as_ref());
        let decision = THRESHOLDS.decide(verdict.score, trajectory.stack.top().retries);
        let next = trajectory.settle(line, is_applicable, &verdict, decision, &Limits::DEFAULT);

        if let Some(machine) = before {
            kept.push(Proposed { task: *task, machine, prompt, completion });
        }

        let Counts { proposals, committed, .. } = trajectory.counts;
        // The player's limits end a trajectory that the protocol would continue.
        match next {
            Next::Propose
                if proposals >= self.proposals_max
                    || proposals - committed >= self.rejections_max =>
            {
                Next::Ended(End::StepsSpent)
            }
            next => next,
        }
    }
}

/// The values that a derivation at this state can look up.
struct Reads<'a> {
    machine: &'a dyn Machine,
    vocabulary: &'a Vocabulary,
}

impl Reads<'_> {
    fn are_asked(&self) -> bool {
        reads_max(self.machine.spec().slug) > 0
    }
}

impl Values for Reads<'_> {
    fn answer(&self, written: &[u16]) -> Answer {
        if !self.vocabulary.decode(&written[written.len() - 1..]).ends_with(QUERY_END) {
            return Answer::NotAsked;
        }

        let text = self.vocabulary.decode(written);
        let asked = text.matches(QUERY_END).count();
        let address = query(&text).filter(|_| asked <= reads_max(self.machine.spec().slug));
        match address.map(|address| read(self.machine, address)) {
            Some(Ok(value)) => Answer::Value(self.vocabulary.encode(&value)),
            _ => Answer::Nothing,
        }
    }
}

impl Attempt {
    fn ended(self, end: &End) -> Played {
        let Self { trajectory, problem, proposals, tokens, .. } = self;
        let summary = Summary::of(&trajectory);
        let answer = if let End::Answered(answer) = end { Some(answer) } else { None };

        Played {
            proposals,
            merits: Merits {
                solved: answer.is_some() && summary.last_score == Score::ZERO,
                last_score: summary.last_score,
                steps: summary.steps,
                steps_max: problem.steps_max(),
                proposals: summary.proposals,
                applicable: summary.applicable,
            },
            is_right: answer.is_some_and(|answer| problem.accepts(answer)),
            committed: trajectory.counts.committed,
            tokens,
        }
    }
}

#[cfg(test)]
mod tests {
    use prime_bench::tasks::{self, Difficulty};

    use super::*;

    /// A sampler that answers each request with the same text.
    struct Says(Vec<u16>);

    impl Sampler for Says {
        fn complete(
            &self,
            requests: Vec<Request<'_>>,
            _: Sampling,
        ) -> Result<Vec<Vec<Completion>>, TrainError> {
            let completion =
                Completion { tokens: self.0.clone(), has_ended: true, ..Completion::default() };
            Ok(requests
                .iter()
                .map(|request| vec![completion.clone(); request.streams.len()])
                .collect())
        }
    }

    /// Number of proposals in a trajectory of 24-game whose policy always says this.
    fn proposals(says: &str, rejections_max: u64) -> u64 {
        let vocabulary = Vocabulary::default();
        let player = Player {
            sampler: Box::new(Says(vocabulary.encode(says))),
            vocabulary: &vocabulary,
            sampling: Sampling { temperature: 1.0, tokens_max: 10 },
            proposals_max: 20,
            rejections_max,
            verify: true,
            keep: false,
        };

        let machine = tasks::find("24-game").expect("a task").generate(Difficulty::Hard, 1).start();
        let played = player
            .play(vec![Start { task: 0, machine, seed: 1 }])
            .expect("a sampler that does not fail");
        played[0].merits.proposals
    }

    #[test]
    fn a_trajectory_ends_with_its_last_permitted_rejection() {
        assert_eq!([1, 3].map(|most| proposals("nonsense", most)), [1, 3]);
        // Eight to ten numbers: the sum of the first two each time, the last of which misses the
        // target.
        let steps = proposals("calc 0 + 1", 1);
        assert!((7..=9).contains(&steps), "{steps}");
        assert_eq!(proposals("calc 0 + 1", 3), steps + 2, "two retries");
    }
}
