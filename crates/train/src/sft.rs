//! The training loop: draw, learn, update, with periodic evaluation, checkpoint and export. Knows
//! no tasks, and stops only between steps.

use std::{
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde::Serialize;

use super::{
    TrainError,
    batch::Batch,
    checkpoint::{self, Checkpoint, replace},
    clock::cpu_s,
    corrections::{Attempted, Policy},
    drawer::{self, Drawer, Pool},
    evaluate::{self, Accuracy},
    gguf,
    layout::Layout,
    learner::Learner,
    pool::PoolPlan,
    progress::{Progress, Status},
    recipe::{Budget, Recipe},
    records::Records,
    sample::Encoded,
    samples::Samples,
    vocabulary::Vocabulary,
};

/// Separates the random streams of attempts from those of samples under the same seed.
const ATTEMPTS: u64 = 0x6174;

/// Number of steps whose samples are drawn together and sorted by length.
const POOL_STEPS: u64 = 8;

/// The circumstances of a run, as opposed to its recipe.
pub struct Session<'a> {
    /// Continue from the checkpoint next to the output, if there is one.
    pub resume: bool,
    /// Set by a signal handler: the run writes a checkpoint after the current step and returns.
    pub stop: &'a AtomicBool,
}

/// The outcome of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// False when it was stopped before its budget was spent.
    pub finished: bool,
    /// Number of optimizer steps, those before a resume included.
    pub steps: u64,
    /// Number of tokens trained on.
    pub tokens: u64,
    /// Wall time in seconds, over all parts of the run.
    pub elapsed_s: f64,
    /// The final evaluation, by task; empty if the run was stopped.
    pub accuracy: Vec<Accuracy>,
    /// The GGUF file that was written.
    pub model: PathBuf,
    /// The checkpoint from which the run can be resumed.
    pub checkpoint: PathBuf,
}

/// A line of the records: the state of the training every few seconds, or an evaluation.
#[derive(Serialize)]
struct Record<'a> {
    step: u64,
    elapsed_s: f64,
    tokens: u64,
    /// Smoothed over about fifty steps.
    #[serde(skip_serializing_if = "Option::is_none")]
    loss: Option<f64>,
    /// Share of the training samples that were entirely right, smoothed likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    exact: Option<f64>,
    rate: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    gradient_norm: Option<f64>,
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    held_out: &'a [Accuracy],
    /// A round of the model's own attempts.
    #[serde(skip_serializing_if = "<[_]>::is_empty")]
    attempts: &'a [Attempted],
}

/// Trains `recipe` and writes the model to `out`, a GGUF file; the checkpoint is `out` with
/// `.checkpoint` appended, the records are lines of JSON in `out` with `.records.jsonl` appended.
///
/// # Errors
/// If the recipe, a checkpoint or a sample is invalid, a file cannot be written, or the loss
/// diverges.
pub fn sft(
    recipe: &Recipe,
    samples: &mut dyn Samples,
    out: &Path,
    session: &Session<'_>,
) -> Result<Summary, TrainError> {
    recipe.check()?;
    let mut run = Run::open(recipe, samples, out, session.resume)?;

    let mut evaluated_s = run.progress.elapsed_s();
    while run.spent() < 1.0 && !session.stop.load(Ordering::Relaxed) {
        run.step(samples)?;
        // At the end of the budget, the final evaluation follows anyway.
        if run.progress.elapsed_s() - evaluated_s >= recipe.evaluation.every_s && run.spent() < 1.0
        {
            let per_task = run.affordable(run.progress.elapsed_s() - evaluated_s);
            run.evaluate(per_task, true)?;
            run.save()?;
            evaluated_s = run.progress.elapsed_s();
        }
    }

    let finished = run.spent() >= 1.0;
    // Before the long evaluation, so that a second Ctrl-C during it loses nothing.
    run.save()?;
    let accuracy =
        if finished { run.evaluate(recipe.evaluation.final_samples, false)? } else { Vec::new() };

    run.progress.finish();
    Ok(Summary {
        finished,
        steps: run.state.step,
        tokens: run.state.tokens,
        elapsed_s: run.progress.elapsed_s(),
        accuracy,
        model: run.out,
        checkpoint: run.checkpoint,
    })
}

/// A training that is running.
pub(super) struct Run<'a> {
    recipe: &'a Recipe,
    pub(super) layout: Layout,
    pub(super) state: Checkpoint,
    learner: Learner,
    /// Batches of the current pool's steps; empty before the first.
    pool: Vec<Vec<Batch>>,
    /// Draws pools ahead, if the recipe asks for it.
    drawer: Option<Drawer>,
    pub(super) held_out: Vec<Vec<Encoded>>,
    pub(super) vocabulary: Vocabulary,
    pub(super) progress: Progress,
    records: Records,
    /// Measured cost of grading one sample of every task; 0 before the first evaluation.
    round_s: f64,
    /// Processor time of the process when the run was opened.
    opened_s: f64,
    out: PathBuf,
    checkpoint: PathBuf,
}

impl<'a> Run<'a> {
    pub(super) fn open(
        recipe: &'a Recipe,
        samples: &mut dyn Samples,
        out: &Path,
        resume: bool,
    ) -> Result<Self, TrainError> {
        let tasks = samples.tasks().to_vec();
        if tasks.is_empty() {
            return Err(TrainError::NoTasks);
        }

        let vocabulary = samples.vocabulary().clone();
        let layout = Layout::new(recipe.model, vocabulary.size());
        let checkpoint = checkpoint::path_of(out);

        let mut state = if resume && checkpoint.exists() {
            Checkpoint::load(&checkpoint, recipe.model, recipe.seed, &tasks, &vocabulary)?
        } else {
            let weights = recipe.initial_weights(&layout, &vocabulary)?;
            let mix = tasks.iter().map(|task| recipe.data.share(task)).collect();
            let mut fresh =
                Checkpoint::fresh(recipe.model, recipe.seed, tasks, &vocabulary, weights);
            fresh.mix = mix;
            fresh
        };

        let most = recipe.evaluation.samples.max(recipe.evaluation.final_samples);
        let moments = state.take_moments();
        let drawer = Drawer::new(samples, recipe.batch.drawers)?;

        Ok(Self {
            recipe,
            learner: Learner::new(
                recipe,
                &layout,
                [&state.weights, &state.average],
                moments,
                state.step,
            )?,
            pool: Vec::new(),
            drawer,
            held_out: evaluate::held_out(recipe, samples, most)?,
            progress: Progress::start(state.elapsed_s, state.tokens),
            records: Records::open(out, "step", (state.step > 0).then_some(state.step))?,
            round_s: 0.0,
            opened_s: cpu_s(),
            out: out.to_owned(),
            checkpoint,
            state,
            layout,
            vocabulary,
        })
    }

    /// Fraction of the budget used.
    fn spent(&self) -> f64 {
        match self.recipe.budget {
            Budget::Steps(steps) => self.state.step as f64 / steps as f64,
            Budget::Minutes(minutes) => self.progress.elapsed_s() / (minutes * 60.0),
            Budget::CpuSeconds(seconds) => self.cpu_s() / seconds,
        }
    }

    /// Grades held-out samples of each task.
    pub(super) fn grade(
        &mut self,
        recipe: &Recipe,
        per_task: usize,
    ) -> Result<Vec<Accuracy>, TrainError> {
        let (tasks, held_out) = (&self.state.tasks, &self.held_out);
        self.learner.scored(|score| evaluate::evaluate(recipe, score, tasks, held_out, per_task))
    }

    /// Processor time, over all parts of the run.
    pub(super) fn cpu_s(&self) -> f64 {
        self.state.cpu_s + cpu_s() - self.opened_s
    }

    /// Returns whether the pool of samples is used up.
    pub(super) fn ends_pool(&self) -> bool {
        self.state.step.is_multiple_of(POOL_STEPS)
    }

    pub(super) fn step(&mut self, samples: &mut dyn Samples) -> Result<(), TrainError> {
        self.fill_pool(samples)?;
        let batches = std::mem::take(&mut self.pool[(self.state.step % POOL_STEPS) as usize]);
        let step = self.learner.learn(&batches)?;

        if !step.loss.is_finite() || !step.norm.is_finite() {
            return Err(TrainError::Diverged { step: self.state.step });
        }

        let rate = self.recipe.optimizer.rate_at(self.spent());
        self.state.step += 1;
        self.state.tokens += batches.iter().map(|b| b.inputs.len() as u64).sum::<u64>();
        self.learner.update(step.norm, rate)?;

        if self.spent() >= self.recipe.corrections.misses_from {
            self.state.missed.extend(step.missed);
        }

        let status = Status {
            step: self.state.step,
            spent: self.spent(),
            loss: step.loss,
            exact: step.exact,
            tokens: self.state.tokens,
            rate,
            gradient_norm: step.norm,
        };

        if let Some([loss, exact]) = self.progress.step(&status) {
            self.records.append(&Record {
                loss: Some(loss),
                exact: Some(exact),
                gradient_norm: Some(step.norm),
                ..self.record(&[], &[])
            })?;
        }

        Ok(())
    }

    /// Draws the next pool when the current one is used up, or the current one again after
    /// resuming.
    fn fill_pool(&mut self, samples: &mut dyn Samples) -> Result<(), TrainError> {
        let starts = self.ends_pool();
        if !starts && !self.pool.is_empty() {
            return Ok(());
        }

        if starts {
            self.state.pool_mix.clone_from(&self.state.mix);
            std::mem::take(&mut self.state.missed)
                .into_iter()
                .for_each(|missed| self.state.corrections.add(missed));
            self.attempt(samples)?;
        }

        let batch = &self.recipe.batch;
        let plan = PoolPlan {
            steps: POOL_STEPS as usize,
            // Each thread needs a pass of its own; a GPU learns one after another.
            passes: batch.tokens.div_ceil(batch.pass_tokens).max(if batch.gpu.is_some() {
                1
            } else {
                batch.threads
            }),
            tokens: batch.tokens,
            context: self.recipe.model.context,
            corrected: self.recipe.corrections.share,
            // Changing this would change the result of a recipe. On a GPU, a step may be a single
            // batch, which must not have samples of one length only.
            sorts: batch.gpu.is_none(),
        };

        let current = self.state.step / POOL_STEPS;
        let (seed, state) = (self.recipe.seed, &self.state);
        self.pool = match &mut self.drawer {
            None => {
                drawer::draw(samples, [seed, current], &state.pool_mix, &state.corrections, plan)?
            }
            Some(drawer) => {
                let corrections = Arc::new(state.corrections.clone());
                drawer.draw(current, |number| Pool {
                    seed,
                    number,
                    // The mix of a later pool is not known yet; the present one stands in for it.
                    mix: if number == current { state.pool_mix.clone() } else { state.mix.clone() },
                    corrections: Arc::clone(&corrections),
                    plan,
                })?
            }
        };

        Ok(())
    }

    /// Makes a round of attempts if one is due: states that the model gets wrong become
    /// corrections.
    fn attempt(&mut self, samples: &mut dyn Samples) -> Result<(), TrainError> {
        let plan = &self.recipe.corrections;
        let is_due = (self.state.step / POOL_STEPS).is_multiple_of(plan.every.div_ceil(POOL_STEPS));
        if plan.share == 0.0 || !is_due || self.spent() < plan.from {
            return Ok(());
        }

        samples.begin_pool();
        self.learner.settle()?;

        let weights = self.learner.kept();
        let policy =
            Policy { layout: &self.layout, weights: &weights, vocabulary: &self.vocabulary };

        let mut rng = ChaCha8Rng::seed_from_u64(self.recipe.seed ^ ATTEMPTS);
        rng.set_stream(self.state.step);

        let mut attempts = Vec::new();
        for task in 0..self.state.tasks.len() {
            let Some((attempted, corrections)) = samples.attempt(task, &policy, plan, &mut rng)
            else {
                continue;
            };

            attempts.push(attempted);
            // A state off the traces can have a longer prompt than any that the lesson was measured
            // on.
            let context = self.recipe.model.context;
            for correction in corrections {
                let correction = Encoded::new(&correction, &self.vocabulary);
                if correction.tokens() <= context {
                    self.state.corrections.add(correction);
                }
            }
        }

        self.records.append(&self.record(&[], &attempts))
    }

    /// Number of samples per task that fit into the evaluations' share of the `since_s` seconds
    /// since the last one.
    fn affordable(&self, since_s: f64) -> usize {
        let most = self.recipe.evaluation.samples;
        if self.round_s == 0.0 {
            // The first evaluation measures the cost.
            return most.min(16);
        }

        ((since_s * self.recipe.evaluation.share_max / self.round_s) as usize)
            .clamp(most.min(16), most)
    }

    fn evaluate(&mut self, per_task: usize, adapt: bool) -> Result<Vec<Accuracy>, TrainError> {
        let before = self.progress.elapsed_s();
        let results = self.grade(self.recipe, per_task)?;
        let seconds = self.progress.elapsed_s() - before;

        self.round_s = seconds / per_task as f64;
        if adapt {
            let floor = self.recipe.batch.floor;
            let weight = |result: &Accuracy| {
                self.recipe.data.share(&result.task) * (floor + 1.0 - result.rate())
            };
            self.state.mix = results.iter().map(weight).collect();
        }

        self.progress.evaluation(self.state.step, &results, seconds);
        self.records.append(&self.record(&results, &[]))?;
        Ok(results)
    }

    fn record<'r>(&self, held_out: &'r [Accuracy], attempts: &'r [Attempted]) -> Record<'r> {
        Record {
            step: self.state.step,
            elapsed_s: self.progress.elapsed_s(),
            tokens: self.state.tokens,
            loss: None,
            exact: None,
            rate: self.recipe.optimizer.rate_at(self.spent()),
            gradient_norm: None,
            held_out,
            attempts,
        }
    }

    fn save(&mut self) -> Result<(), TrainError> {
        self.learner.settle()?;
        self.state.elapsed_s = self.progress.elapsed_s();
        self.state.cpu_s = self.cpu_s();
        // From here on, `state.cpu_s` includes the time since the run was opened.
        self.opened_s = cpu_s();

        self.state.weights = self.learner.flat().to_vec();
        self.state.average = self.learner.average().to_vec();
        let moments = self.learner.moments();
        self.state.save(&self.checkpoint, moments)?;

        let about = gguf::About { name: &self.recipe.name, tasks: &self.state.tasks };
        let model = gguf::encode(
            about,
            &self.layout,
            &self.vocabulary,
            self.learner.best(),
            self.recipe.export.matrices,
        );
        replace(&self.out, &model)
    }
}
