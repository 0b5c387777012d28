//! One iteration's update: advantages of its samples, then optimizer steps on the objective.

use rand_chacha::ChaCha8Rng;

use super::advantage::{self, Scale};
use super::critic::Critic;
use super::groups::{Group, Sampled};
use super::objective::{Drawn, Gain, Loss};
use super::policy::Policy;
use super::recipe::{Algorithm, RlRecipe, Update};
use super::rehearsal::{CROSS_ENTROPY, Rehearsal};
use crate::TrainError;
use crate::batch::{Batch, target_order};
use crate::layout::shuffle;
use crate::sample::Encoded;

/// A completion to learn from.
struct Lesson<'a> {
    sampled: &'a Sampled,
    advantage: f64,
    /// The weight of each of its tokens: 1/|o| of its episode.
    weight: f64,
}

/// The figures of an update.
#[derive(Debug, Clone, Copy, Default)]
pub struct Outcome {
    /// Share of the groups whose rewards differ.
    pub mixed: f64,
    /// Number of completions learnt from.
    pub samples: usize,
    /// Means over the tokens of the first epoch.
    pub kl: f64,
    pub entropy: f64,
    pub clipped: f64,
    pub loss: f64,
    /// Number of optimizer steps.
    pub steps: u64,
    /// Number of tokens that went through the network with gradients.
    pub tokens: u64,
    /// The largest gradient norm.
    pub norm: f64,
    /// Mean cross-entropy of the rehearsed tokens, in nats; 0 without any.
    pub rehearsal: f64,
}

/// Learns from the samples of an iteration.
pub struct Learner<'a> {
    pub recipe: &'a RlRecipe,
    pub policy: &'a mut Policy,
    pub critic: &'a mut Critic,
    pub rehearsal: Option<&'a mut Rehearsal>,
    pub rate: f64,
}

impl Learner<'_> {
    /// Learns from the groups of an iteration.
    ///
    /// # Errors
    /// If a completion with its prompt is longer than the context, a gradient is not finite, or a
    /// GPU fails.
    pub fn learn(
        &mut self,
        groups: &[Group],
        rng: &mut ChaCha8Rng,
        iteration: u64,
    ) -> Result<Outcome, TrainError> {
        let mixed = groups.iter().filter(|group| is_mixed(group)).count();
        let mut outcome =
            Outcome { mixed: mixed as f64 / groups.len().max(1) as f64, ..Outcome::default() };

        let lessons = self.lessons(groups)?;
        outcome.samples = lessons.len();

        let gain = match self.recipe.algorithm {
            Algorithm::Reinforce { .. } | Algorithm::BestOf => Gain::Likelihood,
            Algorithm::Grpo { .. } | Algorithm::Ppo { .. } => Gain::Ratio,
        };

        let temperature = self.recipe.rollout.temperature as f32;
        let loss = Loss { objective: self.recipe.objective, gain, temperature };
        let context = self.recipe.model.context;
        let plan = self.recipe.update;

        // With 0, each completion is a separate bundle.
        let shared = if self.policy.shares_prompts() { plan.pass_tokens } else { 0 };
        let mut bundles = bundles(&lessons, shared);

        let mut seen = 0.0;
        for epoch in 0..plan.epochs {
            shuffle(&mut bundles, rng);
            for step in portions(&bundles, plan) {
                let all = step.iter().copied().flatten();
                let total: f64 = all.map(|lesson| lesson.weight * lesson.tokens() as f64).sum();

                for pass in passes(step, plan) {
                    let mut batch = Batch::default();
                    for bundle in &pass {
                        let Sampled { task, prompt, .. } = bundle[0].sampled;
                        let completions: Vec<&[u16]> = bundle
                            .iter()
                            .map(|lesson| &lesson.sampled.completion.tokens[..])
                            .collect();
                        batch.push_group(*task, prompt, &completions, context)?;
                    }

                    let drawn = self.drawn(&pass, &batch, total)?;
                    let terms = self.policy.learn(&batch, loss, &drawn)?;

                    outcome.tokens += batch.inputs.len() as u64;
                    // Tokens of weight 0 were not drawn: the end of a completion that became too
                    // long.
                    for (term, drawn) in
                        terms.iter().zip(&drawn).filter(|(_, drawn)| drawn.weight > 0.0)
                    {
                        outcome.loss += f64::from(term.loss * drawn.weight);
                        if epoch == 0 {
                            outcome.kl += f64::from(term.kl);
                            outcome.entropy += f64::from(term.entropy);
                            outcome.clipped += f64::from(u8::from(term.is_clipped));
                            seen += 1.0;
                        }
                    }
                }

                self.rehearse(rng, &mut outcome)?;
                let norm = self.policy.step(self.rate)?;
                if !norm.is_finite() {
                    return Err(TrainError::Diverged { step: iteration });
                }

                outcome.norm = outcome.norm.max(norm);
                outcome.steps += 1;
            }
        }

        self.policy.settle()?;
        if seen > 0.0 {
            outcome.kl /= seen;
            outcome.entropy /= seen;
            outcome.clipped /= seen;
        }

        outcome.loss /= outcome.steps.max(1) as f64;
        outcome.rehearsal /= outcome.steps.max(1) as f64;
        Ok(outcome)
    }

    /// Adds the gradient of the rehearsed samples to that of the optimizer step.
    fn rehearse(&mut self, rng: &mut ChaCha8Rng, outcome: &mut Outcome) -> Result<(), TrainError> {
        let Some(rehearsal) = &mut self.rehearsal else { return Ok(()) };
        let passes = rehearsal.draw(rng)?;

        let total: usize = passes.iter().map(|pass| pass.targets.len()).sum();
        for pass in &passes {
            let terms = self.policy.learn(pass, CROSS_ENTROPY, &rehearsal.drawn(pass, total))?;
            outcome.rehearsal +=
                terms.iter().map(|term| f64::from(term.loss)).sum::<f64>() / total as f64;
            outcome.tokens += pass.inputs.len() as u64;
        }
        Ok(())
    }

    /// The lessons that the recipe's algorithm draws from the groups.
    fn lessons<'g>(&mut self, groups: &'g [Group]) -> Result<Vec<Lesson<'g>>, TrainError> {
        let mut lessons = Vec::new();
        match self.recipe.algorithm {
            Algorithm::Grpo { scale } => {
                let scale = scale.map_or(Scale::Deviation, Scale::Constant);
                for group in groups.iter().filter(|group| is_mixed(group)) {
                    for (episode, advantage) in
                        group.iter().zip(advantage::group(&totals(group), scale))
                    {
                        teach(&mut lessons, &episode.steps, |_| advantage);
                    }
                }
            }
            Algorithm::BestOf => {
                for group in groups.iter().filter(|group| is_mixed(group)) {
                    teach(&mut lessons, &group[advantage::best(&totals(group))].steps, |_| 1.0);
                }
            }
            Algorithm::Ppo { discount, lambda, value_clip } => {
                self.criticised(groups, value_clip, &mut lessons, |rewards, values| {
                    let advantages = advantage::generalised(rewards, values, discount, lambda);
                    let targets = advantages
                        .iter()
                        .zip(values)
                        .map(|(advantage, value)| advantage + value)
                        .collect();
                    (advantages, targets)
                })?;
            }
            Algorithm::Reinforce { discount } => {
                self.criticised(groups, f64::INFINITY, &mut lessons, |rewards, values| {
                    let returns = advantage::returns(rewards, discount);
                    (
                        returns
                            .iter()
                            .zip(values)
                            .map(|(to_come, value)| to_come - value)
                            .collect(),
                        returns,
                    )
                })?;
            }
        }
        Ok(lessons)
    }

    /// Adds lessons by a critic: `estimate` computes advantages and the critic's targets from an
    /// episode's rewards and values.
    fn criticised<'g>(
        &mut self,
        groups: &'g [Group],
        value_clip: f64,
        lessons: &mut Vec<Lesson<'g>>,
        estimate: impl Fn(&[f64], &[f64]) -> (Vec<f64>, Vec<f64>),
    ) -> Result<(), TrainError> {
        let episodes: Vec<_> = groups.iter().flatten().collect();
        let prompts = episodes.iter().flat_map(|episode| &episode.steps);
        let features = self.features(prompts)?;
        let values = self.critic.values(&features);

        let mut all_targets = Vec::with_capacity(values.len());
        let mut at = 0;

        for episode in episodes {
            let own = &values[at..at + episode.steps.len()];
            at += episode.steps.len();
            let (advantages, targets) = estimate(&episode.rewards, own);
            teach(lessons, &episode.steps, |step| advantages[step]);
            all_targets.extend(targets);
        }

        self.critic.learn(&features, &all_targets, value_clip);
        Ok(())
    }

    /// The hidden state at the end of each prompt, [prompts, d_model].
    fn features<'s>(
        &mut self,
        sampled: impl Iterator<Item = &'s Sampled>,
    ) -> Result<Vec<f32>, TrainError> {
        let mut features = Vec::new();
        let mut batch = Batch::default();

        for sampled in sampled {
            // Without a completion, the only target is the token after the prompt.
            batch.push(
                &Encoded::drawn(sampled.task, sampled.prompt.clone(), Vec::new()),
                self.recipe.model.context,
            )?;
            if batch.inputs.len() >= self.recipe.update.pass_tokens {
                features.extend(self.policy.features(&std::mem::take(&mut batch))?);
            }
        }

        if !batch.sequences.is_empty() {
            features.extend(self.policy.features(&batch)?);
        }

        Ok(features)
    }

    /// The drawn tokens of a pass, one for each target of its batch.
    fn drawn(
        &mut self,
        pass: &[&[Lesson<'_>]],
        batch: &Batch,
        total: f64,
    ) -> Result<Vec<Drawn>, TrainError> {
        let mut drawn = Vec::with_capacity(batch.targets.len());
        for bundle in pass {
            let lengths: Vec<usize> =
                bundle.iter().map(|lesson| lesson.sampled.completion.tokens.len()).collect();

            for (at, index) in target_order(&lengths) {
                let Lesson { sampled, advantage, weight } = &bundle[at];

                // The policy did not draw the end of a completion that became too long.
                let old = sampled.completion.logprobs.get(index);
                drawn.push(Drawn {
                    token: batch.targets[drawn.len()].token,
                    old: old.copied().unwrap_or(0.0),
                    reference: old.copied().unwrap_or(0.0),
                    advantage: *advantage as f32,
                    weight: if old.is_some() { (weight / total) as f32 } else { 0.0 },
                });
            }
        }

        if self.recipe.objective.kl > 0.0 {
            let temperature = self.recipe.rollout.temperature as f32;
            let logprobs = self.policy.reference(batch, temperature)?;
            drawn.iter_mut().zip(logprobs).for_each(|(drawn, logprob)| drawn.reference = logprob);
        }

        Ok(drawn)
    }
}

impl Lesson<'_> {
    fn tokens(&self) -> usize {
        self.sampled.completion.logprobs.len()
    }
}

fn totals(group: &Group) -> Vec<f64> {
    group.iter().map(super::groups::Episode::total).collect()
}

fn is_mixed(group: &Group) -> bool {
    advantage::is_mixed(&totals(group))
}

/// Adds the steps of an episode to the lessons.
fn teach<'g>(
    lessons: &mut Vec<Lesson<'g>>,
    steps: &'g [Sampled],
    advantage: impl Fn(usize) -> f64,
) {
    let tokens: usize = steps.iter().map(|step| step.completion.logprobs.len()).sum();
    let weight = 1.0 / tokens.max(1) as f64;
    lessons.extend(steps.iter().enumerate().map(|(index, sampled)| Lesson {
        sampled,
        advantage: advantage(index),
        weight,
    }));
}

/// Number of tokens that the model reads for completions of one prompt: bos, the prompt, and each
/// of them.
fn inputs(bundle: &[Lesson<'_>]) -> usize {
    let completions =
        bundle.iter().map(|lesson| lesson.sampled.completion.tokens.len()).sum::<usize>();
    1 + bundle[0].sampled.prompt.len() + completions
}

/// Bundles of neighbours with the same prompt, each of at most `tokens_max` inputs unless it is one
/// completion.
fn bundles<'l, 's>(lessons: &'l [Lesson<'s>], tokens_max: usize) -> Vec<&'l [Lesson<'s>]> {
    let mut bundles = Vec::new();
    let mut rest = lessons;

    while let Some(first) = rest.first() {
        let prompt = &first.sampled.prompt;
        let fits = |count: &usize| {
            let bundle = &rest[..*count];
            // A batch takes as many completions of a prompt as that has tokens, bos included.
            *count <= prompt.len() + 1
                && bundle[*count - 1].sampled.prompt == *prompt
                && inputs(bundle) <= tokens_max
        };

        let (bundle, after) = rest.split_at((2..=rest.len()).take_while(fits).last().unwrap_or(1));
        bundles.push(bundle);
        rest = after;
    }

    bundles
}

/// The bundles of each optimizer step, about `plan.tokens` inputs each, counted as if no prompt
/// were shared: the samples of a step must not depend on how it is computed.
fn portions<'b, 'l, 's>(
    bundles: &'b [&'l [Lesson<'s>]],
    plan: Update,
) -> impl Iterator<Item = &'b [&'l [Lesson<'s>]]> {
    let total: usize =
        bundles.iter().copied().flatten().map(|lesson| inputs(std::slice::from_ref(lesson))).sum();

    let parts = (total as f64 / plan.tokens as f64).round().max(1.0) as usize;
    bundles.chunks(bundles.len().div_ceil(parts).max(1))
}

/// The bundles of a step in passes of similar length.
fn passes<'l, 's>(step: &[&'l [Lesson<'s>]], plan: Update) -> Vec<Vec<&'l [Lesson<'s>]>> {
    let mut sorted = step.to_vec();
    sorted.sort_by_key(|bundle| inputs(bundle));

    let mut passes: Vec<Vec<&[Lesson<'_>]>> = Vec::new();
    // Full, so that the first bundle begins a pass.
    let mut used = usize::MAX;

    for bundle in sorted {
        if used.saturating_add(inputs(bundle)) > plan.pass_tokens {
            passes.push(Vec::new());
            used = 0;
        }
        used += inputs(bundle);
        passes.last_mut().expect("invariant: a pass was begun").push(bundle);
    }

    passes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sampler::Completion;

    #[test]
    fn neighbours_with_one_prompt_are_bundled_as_far_as_they_fit() {
        let sampled = |prompt: &[u16], tokens: usize| {
            let completion = Completion { tokens: vec![7; tokens], ..Completion::default() };
            Sampled { task: 0, prompt: prompt.to_vec(), completion }
        };

        let mut all =
            vec![2; 5].into_iter().map(|tokens| sampled(&[1, 2], tokens)).collect::<Vec<_>>();
        all.extend([sampled(&[1], 9), sampled(&[1], 1), sampled(&[1, 2], 2)]);

        let lessons: Vec<Lesson<'_>> =
            all.iter().map(|sampled| Lesson { sampled, advantage: 0.0, weight: 1.0 }).collect();
        let sizes = |tokens_max| {
            bundles(&lessons, tokens_max).iter().map(|bundle| bundle.len()).collect::<Vec<_>>()
        };

        assert_eq!(
            sizes(100),
            [3, 2, 2, 1],
            "a prompt of two tokens, and bos, has three completions"
        );
        assert_eq!(sizes(11), [3, 2, 1, 1, 1], "two and nine and one are twelve");
        assert_eq!(sizes(7), [2, 2, 1, 1, 1, 1]);
        assert_eq!(sizes(0), [1; 8]);
    }
}
