//! The loop: collect groups, learn from them, evaluate every few iterations. Stops only between
//! iterations.

use std::path::{Path, PathBuf};
use std::sync::atomic::Ordering;

use prime_kernels::Bf16;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;
use serde::Serialize;
use tempfile::TempDir;

use super::engine_sampler::EngineSampler;
use super::evaluation::{Held, evaluate, is_better};
use super::groups::{Collected, Collector, Episode};
use super::policy::Policy;
use super::practice::Practice;
use super::recipe::{Budget, Keep, RlRecipe, Rollout, SamplerKind, Source};
use super::record::{Ending, Record};
use super::rehearsal::Rehearsal;
use super::state::State;
use super::update::{Learner, Outcome};
use crate::checkpoint::{self, replace};
use crate::clock::cpu_s;
use crate::decoder::Decoder;
use crate::layout::Layout;
use crate::model_view::ModelView;
use crate::network::{ModelWeights, Weights};
use crate::recipe::Compute;
use crate::records::Records;
use crate::rollout::{Player, TEMPERATURE};
use crate::sampler::{Sampler, Sampling};
use crate::vocabulary::Vocabulary;
use crate::{Session, TrainError, gguf, initial};

/// Separates these random streams from those of supervised training under the same seed.
const STREAMS: u64 = 0x726c;

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct RlSummary {
    /// Why the run ended.
    pub ending: Ending,
    /// Number of iterations, those before a resume included.
    pub iterations: u64,
    /// Processor time in seconds, over all parts of the run.
    pub cpu_s: f64,
    /// Held-out results before the first iteration, and of the model that was kept.
    pub initial: Vec<Held>,
    /// Held-out results of the model that was kept.
    pub kept: Vec<Held>,
    /// Number of iterations after which the kept policy was evaluated; 0 for the initial one.
    pub kept_iteration: u64,
    /// The GGUF file that was written.
    pub model: PathBuf,
    /// The file of records, one JSON object per line.
    pub records: PathBuf,
}

/// Trains the policy of `recipe` and writes the one that is kept to `out`, a GGUF file; checkpoint
/// and records lie beside it, with `.checkpoint` and `.records.jsonl` appended.
///
/// # Errors
/// If the recipe, its initial model or a checkpoint is invalid, a file cannot be written, a
/// gradient is not finite, or a GPU fails.
pub fn rl(
    recipe: &RlRecipe,
    out: &Path,
    session: &Session<'_>,
    report: &mut dyn FnMut(&Record),
) -> Result<RlSummary, TrainError> {
    recipe.check()?;
    let mut run = Run::open(recipe, out, session.resume)?;
    // A resumed run has evaluated the initial policy already.
    if run.state.initial.is_empty() {
        let record = run.before()?;
        report(&record);
    }

    let ending = loop {
        if run.spent() >= 1.0 {
            break Ending::Finished;
        }
        if session.stop.load(Ordering::Relaxed) {
            break Ending::Interrupted;
        }
        let record = run.iterate()?;
        report(&record);
        if let Some(ending) = run.collapse(&record) {
            break ending;
        }
    };

    run.save()?;
    Ok(RlSummary {
        ending,
        iterations: run.state.iteration,
        cpu_s: run.elapsed_s(),
        initial: run.state.initial,
        kept: run.state.kept,
        kept_iteration: run.state.kept_iteration,
        model: run.out,
        records: run.records.path().to_owned(),
    })
}

struct Run<'a> {
    recipe: &'a RlRecipe,
    practice: Practice,
    rehearsal: Option<Rehearsal>,
    vocabulary: Vocabulary,
    layout: Layout,
    policy: Policy,
    /// The policy's weights in the arithmetic of rollouts.
    decoded: Decoded,
    state: State,
    out: PathBuf,
    checkpoint: PathBuf,
    records: Records,
    /// Processor time of the process when the run was opened.
    opened_s: f64,
}

impl<'a> Run<'a> {
    fn open(recipe: &'a RlRecipe, out: &Path, resume: bool) -> Result<Self, TrainError> {
        let practice = Practice::new(&recipe.data)?;
        let (layout, vocabulary, initial) = initial::policy(&recipe.init, recipe.model)?;

        let rehearsal = recipe.rehearsal.as_ref().map(|plan| {
            Rehearsal::new(
                plan,
                &recipe.data,
                &vocabulary,
                recipe.model.context,
                recipe.update.pass_tokens,
            )
        });
        let rehearsal = rehearsal.transpose()?;

        let checkpoint = checkpoint::path_of(out);
        let state = if resume && checkpoint.exists() {
            State::load(&checkpoint, recipe, &vocabulary)?
        } else {
            State::fresh(recipe, &vocabulary, initial.clone())
        };

        let done = (!state.initial.is_empty()).then_some(state.iteration);
        let records = Records::open(out, "iteration", done)?;

        let mut run = Self {
            recipe,
            practice,
            rehearsal,
            policy: Policy::new(
                recipe.update,
                &recipe.optimizer,
                &layout,
                [&state.weights, &initial],
                state.moments.clone(),
                state.steps,
            )?,
            decoded: Decoded::new(recipe.rollout)?,
            vocabulary,
            layout,
            state,
            out: out.to_owned(),
            checkpoint,
            records,
            opened_s: cpu_s(),
        };

        run.prepare()?;
        Ok(run)
    }

    fn elapsed_s(&self) -> f64 {
        self.state.cpu_s + cpu_s() - self.opened_s
    }

    /// Fraction of the budget used.
    fn spent(&self) -> f64 {
        match self.recipe.budget {
            Budget::Iterations(iterations) => self.state.iteration as f64 / iterations as f64,
            Budget::CpuSeconds(seconds) => self.elapsed_s() / seconds,
        }
    }

    /// Prepares the present weights for rollouts.
    ///
    /// # Errors
    /// If an engine does not start with them.
    fn prepare(&mut self) -> Result<(), TrainError> {
        self.decoded.prepare(&self.layout, &self.vocabulary, self.policy.flat())
    }

    fn player(&self, temperature: f64, keep: bool) -> Player<'_> {
        let rollout = &self.recipe.rollout;
        Player {
            sampler: self.decoded.sampler(&self.layout, &self.vocabulary),
            vocabulary: &self.vocabulary,
            sampling: Sampling { temperature, tokens_max: rollout.tokens_max },
            proposals_max: rollout.proposals_max,
            rejections_max: rollout.rejections_max.unwrap_or(u64::MAX),
            verify: rollout.verify,
            keep,
        }
    }

    /// Evaluates the policy on held-out instances, always with the verifier, as it will be served.
    fn evaluate(&self) -> Result<Vec<Held>, TrainError> {
        let evaluation = &self.recipe.evaluation;
        let proposals_max = evaluation.proposals_max.unwrap_or(self.recipe.rollout.proposals_max);
        let player = Player {
            verify: true,
            proposals_max,
            rejections_max: u64::MAX,
            ..self.player(TEMPERATURE, false)
        };
        evaluate(&player, &self.practice, evaluation.instances)
    }

    /// Evaluates the initial policy, which is the best one so far.
    fn before(&mut self) -> Result<Record, TrainError> {
        let start_s = cpu_s();
        let held = self.evaluate()?;

        self.state.initial.clone_from(&held);
        self.state.kept.clone_from(&held);
        self.state.latest.clone_from(&held);
        self.export()?;

        let evaluation_s = cpu_s() - start_s;
        let record =
            Record { cpu_s: self.elapsed_s(), evaluation_s, held_out: held, ..Record::default() };

        self.records.append(&record)?;
        Ok(record)
    }

    fn iterate(&mut self) -> Result<Record, TrainError> {
        let rate = self.recipe.optimizer.rate_at(self.spent());
        let mut rng = ChaCha8Rng::seed_from_u64(self.recipe.seed ^ STREAMS);
        rng.set_stream(self.state.iteration + 1);

        let start_s = cpu_s();
        let collected = self.collect(&mut rng)?;
        let rolled_s = cpu_s();

        if let Some(rehearsal) = &mut self.rehearsal {
            rehearsal.begin();
        }

        let mut learner = Learner {
            recipe: self.recipe,
            policy: &mut self.policy,
            critic: &mut self.state.critic,
            rehearsal: self.rehearsal.as_mut(),
            rate,
        };
        let outcome = learner.learn(&collected.groups, &mut rng, self.state.iteration)?;

        let updated_s = cpu_s();
        self.state.iteration += 1;
        self.state.steps += outcome.steps;
        let is_due = self.state.iteration.is_multiple_of(self.recipe.evaluation.every)
            || self.spent() >= 1.0;
        // Before the evaluation, which plays with the updated weights.
        self.prepare()?;
        let held_out = if is_due { self.evaluate()? } else { Vec::new() };

        let record = Record {
            rollout_s: rolled_s - start_s,
            update_s: updated_s - rolled_s,
            evaluation_s: cpu_s() - updated_s,
            rate,
            held_out,
            ..self.record(&collected, &outcome)
        };

        self.records.append(&record)?;
        if is_due {
            self.state.latest.clone_from(&record.held_out);
            let is_kept = match self.recipe.evaluation.keep {
                Keep::Best => is_better(&record.held_out, &self.state.kept),
                Keep::Last => self.collapse(&record).is_none(),
            };
            if is_kept {
                self.state.kept.clone_from(&record.held_out);
                self.state.kept_iteration = self.state.iteration;
                self.export()?;
            }

            self.save()?;
        }
        Ok(record)
    }

    fn collect(&self, rng: &mut ChaCha8Rng) -> Result<Collected, TrainError> {
        let levels = self.practice.levels(self.spent(), &self.state.latest);
        let collector = Collector {
            player: self.player(self.recipe.rollout.temperature, true),
            rollout: self.recipe.rollout,
            reward: self.recipe.reward,
        };
        collector.collect(&mut |rng| self.practice.draw(&levels, rng), rng)
    }

    fn record(&self, collected: &Collected, outcome: &Outcome) -> Record {
        let episodes: Vec<&Episode> = collected.groups.iter().flatten().collect();
        let completions: usize = episodes.iter().map(|episode| episode.steps.len()).sum();
        let tokens: usize = episodes
            .iter()
            .flat_map(|episode| &episode.steps)
            .map(|step| step.completion.logprobs.len())
            .sum();

        let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
        let rewarded = collected.rewarded.max(1) as f64;
        Record {
            iteration: self.state.iteration,
            cpu_s: self.elapsed_s(),
            reward: episodes.iter().map(|episode| episode.total()).sum::<f64>()
                / episodes.len().max(1) as f64,
            reward_parts: (self.recipe.reward.source == Source::Composite)
                .then(|| collected.parts.map(|sum| sum / rewarded)),
            solved: share(collected.solved, collected.played),
            right: share(collected.right, collected.played),
            mixed: outcome.mixed,
            samples: outcome.samples as u64,
            length: tokens as f64 / completions.max(1) as f64,
            kl: outcome.kl,
            entropy: outcome.entropy,
            clipped: outcome.clipped,
            loss: outcome.loss,
            gradient_norm: outcome.norm,
            rehearsal: self.rehearsal.is_some().then_some(outcome.rehearsal),
            drawn: collected.tokens,
            learnt: outcome.tokens,
            ..Record::default()
        }
    }

    /// How the policy has collapsed, if it has.
    fn collapse(&self, record: &Record) -> Option<Ending> {
        let solved = |held: &[Held]| {
            held.iter().map(Held::solved_share).sum::<f64>() / held.len().max(1) as f64
        };

        if record.kl > self.recipe.stop.kl_max {
            return Some(Ending::KlCollapse);
        }

        let is_worse = !record.held_out.is_empty()
            && solved(&record.held_out)
                < solved(&self.state.initial) - self.recipe.stop.solved_drop;
        is_worse.then_some(Ending::HeldOutCollapse)
    }

    fn save(&mut self) -> Result<(), TrainError> {
        self.state.cpu_s = self.elapsed_s();
        // From here on, `state.cpu_s` includes the time since the run was opened.
        self.opened_s = cpu_s();

        self.state.moments = self.policy.settle()?;
        self.state.weights = self.policy.flat().to_vec();
        self.state.save(&self.checkpoint)
    }

    /// Writes the present policy as the model.
    fn export(&self) -> Result<(), TrainError> {
        let matrices = self.recipe.export.matrices;
        let weights = self.policy.flat();

        let rehearsed = self.recipe.rehearsal.iter().flat_map(|plan| &plan.tasks);
        let tasks: Vec<String> = self.practice.names().iter().chain(rehearsed).cloned().collect();
        let about = gguf::About { name: &self.recipe.name, tasks: &tasks };

        replace(&self.out, &gguf::encode(about, &self.layout, &self.vocabulary, weights, matrices))
    }
}

/// Weights prepared for drawing.
enum Decoded {
    F32(Weights<f32>),
    Bf16(Weights<Bf16>),
    /// An engine, with the folder of its model, which is written again whenever the weights have
    /// changed.
    Engine(TempDir, Option<Box<EngineSampler>>),
}

impl Decoded {
    fn new(rollout: Rollout) -> Result<Self, TrainError> {
        Ok(match (rollout.sampler, rollout.compute) {
            (SamplerKind::Engine, _) => {
                let refuse = |source| TrainError::Io {
                    action: "create",
                    path: std::env::temp_dir(),
                    source,
                };
                Self::Engine(tempfile::tempdir().map_err(refuse)?, None)
            }
            (SamplerKind::Decoder, Compute::F32) => Self::F32(Weights::default()),
            (SamplerKind::Decoder, Compute::Bf16) => Self::Bf16(Weights::default()),
        })
    }

    fn prepare(
        &mut self,
        layout: &Layout,
        vocabulary: &Vocabulary,
        flat: &[f32],
    ) -> Result<(), TrainError> {
        match self {
            Self::F32(weights) => weights.prepare(layout, flat),
            Self::Bf16(weights) => weights.prepare(layout, flat),
            Self::Engine(folder, engine) => {
                // The old engine ends first, so that only one holds memory.
                *engine = None;

                let sampler = EngineSampler::start(
                    &folder.path().join("policy.gguf"),
                    layout,
                    vocabulary,
                    flat,
                )?;
                *engine = Some(Box::new(sampler));
            }
        }
        Ok(())
    }

    fn sampler<'a>(&'a self, layout: &Layout, vocabulary: &'a Vocabulary) -> Box<dyn Sampler + 'a> {
        let weights: &dyn ModelWeights = match self {
            Self::F32(weights) => weights,
            Self::Bf16(weights) => weights,
            Self::Engine(_, engine) => {
                let engine = engine.as_ref().expect("invariant: weights are prepared before draws");
                return Box::new(engine.with(vocabulary));
            }
        };
        Box::new(Decoder::new(ModelView::new(layout, weights)))
    }
}
