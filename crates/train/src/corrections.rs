//! Corrections: states that the model answered wrongly, with the right completion. It reached them
//! by itself (DAgger, Ross et al. 2011), or was shown them. Reference traces show a state as often
//! as it occurs, but a run fails at the one state that the model always gets wrong.

use std::collections::{BTreeSet, VecDeque};

use prime_bench::tasks::Machine;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;
use serde::{Deserialize, Serialize};

use super::decoder::Decoder;
use super::kept::Kept;
use super::layout::{Layout, uniform};
use super::rollout::{Player, Proposed, Start, TEMPERATURE};
use super::sample::Encoded;
use super::sampler::Sampling;
use super::vocabulary::Vocabulary;

/// Number of corrections kept per task; the oldest are dropped first.
const KEPT_MAX: usize = 256;

/// Maximum number of tokens of a completion in an attempt.
const TOKENS_MAX: usize = 640;

/// The corrections of a training, by task.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Corrections {
    by_task: Vec<VecDeque<Encoded>>,
}

impl Corrections {
    pub fn new(tasks: usize) -> Self {
        Self { by_task: vec![VecDeque::new(); tasks] }
    }

    pub fn tasks(&self) -> usize {
        self.by_task.len()
    }

    /// Adds a correction. One that is already there becomes the newest.
    pub fn add(&mut self, sample: Encoded) {
        let kept = &mut self.by_task[sample.task];
        kept.retain(|other| *other != sample);
        if kept.len() == KEPT_MAX {
            kept.pop_front();
        }
        kept.push_back(sample);
    }

    /// A correction of this task, with probability `share`, if there is one.
    pub fn draw(&self, task: usize, share: f64, rng: &mut ChaCha8Rng) -> Option<&Encoded> {
        let kept = self.by_task.get(task).filter(|kept| share > 0.0 && !kept.is_empty())?;
        let is_drawn = uniform(rng) < share;
        is_drawn.then(|| &kept[(uniform(rng) * kept.len() as f64) as usize % kept.len()])
    }
}

/// Maximum number of mistakes that are recorded per round.
const RECORDED_MAX: usize = 3;

/// A state that the model answered wrongly.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Mistake {
    pub prompt: String,
    /// The model's text, perhaps cut off.
    pub written: String,
    /// The completion of a sample of this state.
    pub right: String,
}

/// The result of a round of attempts at a task.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Attempted {
    /// The task's index in `data.tasks`.
    pub task: usize,
    /// Number of states at which the model proposed a step; several proposals at a state count
    /// once.
    pub states: usize,
    /// Number of states at which one of its proposals was wrong.
    pub wrong: usize,
    /// The first few wrong ones.
    pub mistakes: Vec<Mistake>,
}

/// The policy at the current step of a training.
pub struct Policy<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) weights: &'a Kept<'a>,
    pub(crate) vocabulary: &'a Vocabulary,
}

impl Policy<'_> {
    /// Plays from the starts as a served model would. Returns, each once, the states at which it
    /// proposed neither the reference's step nor, where the task leaves a choice, one that is as
    /// good.
    pub(crate) fn attempt(
        &self,
        task: usize,
        starts: Vec<Box<dyn Machine>>,
        proposals_max: u64,
        rng: &mut ChaCha8Rng,
    ) -> (Attempted, Vec<Box<dyn Machine>>) {
        let player = Player {
            sampler: Box::new(Decoder::new(self.weights.view(self.layout))),
            vocabulary: self.vocabulary,
            sampling: Sampling { temperature: TEMPERATURE, tokens_max: TOKENS_MAX },
            proposals_max,
            rejections_max: u64::MAX,
            verify: true,
            keep: true,
        };

        let starts = starts
            .into_iter()
            .map(|machine| Start { task, machine, seed: rng.next_u64() })
            .collect();

        let mut seen = BTreeSet::new();
        let mut corrected = BTreeSet::new();
        let mut wrong = Vec::new();
        let mut mistakes = Vec::new();

        let played =
            player.play(starts).expect("invariant: the trainer's own decoder does not fail");

        for proposed in played.into_iter().flat_map(|played| played.proposals) {
            let is_wrong = !self.is_right(&proposed);
            // Several proposals at one state would give the same correction.
            if is_wrong && corrected.insert(proposed.prompt.clone()) {
                if mistakes.len() < RECORDED_MAX {
                    mistakes.push(self.mistake(&proposed));
                }
                wrong.push(proposed.machine);
            }

            seen.insert(proposed.prompt);
        }

        (Attempted { task, states: seen.len(), wrong: wrong.len(), mistakes }, wrong)
    }

    fn mistake(&self, Proposed { machine, completion, .. }: &Proposed) -> Mistake {
        let machine = machine.as_ref();
        Mistake {
            prompt: prime_lessons::compact(machine),
            written: self.vocabulary.decode(&completion.tokens),
            right: prime_lessons::completion(machine).unwrap_or_default(),
        }
    }

    fn is_right(&self, Proposed { machine, completion, .. }: &Proposed) -> bool {
        let text = self.vocabulary.decode(&completion.tokens);
        let line = prime_lessons::action_line(&text);
        completion.has_ended
            && (machine.reference().as_deref() == Some(line)
                || prime_lessons::alternatives(machine.as_ref())
                    .iter()
                    .any(|other| prime_lessons::action_line(other) == line))
    }
}

#[cfg(test)]
mod tests {
    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn the_oldest_go_first_and_the_share_is_kept() {
        let mut corrections = Corrections::new(2);
        let sample = |number: usize| Encoded::drawn(1, vec![number as u16], Vec::new());

        for number in 0..KEPT_MAX + 10 {
            corrections.add(sample(number));
        }
        corrections.add(sample(12));

        let mut rng = ChaCha8Rng::seed_from_u64(1);
        assert_eq!(corrections.draw(0, 1.0, &mut rng), None, "there is none of this task");

        let drawn: Vec<usize> = (0..10_000)
            .filter_map(|_| corrections.draw(1, 0.25, &mut rng))
            .map(|sample| usize::from(sample.prompt[0]))
            .collect();
        assert!((2_300..2_700).contains(&drawn.len()), "{}", drawn.len());
        assert_eq!(drawn.iter().min(), Some(&10));
        assert_eq!(corrections.draw(1, 0.0, &mut rng), None);
    }
}
