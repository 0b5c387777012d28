//! The training loop: draw, learn, update; evaluate, checkpoint and export now and then. It owns no task knowledge
//! and stops only between steps.

use std::{
    path::{Path, PathBuf},
    sync::atomic::{AtomicBool, Ordering},
    thread,
};

use pulp::Arch;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};
use serde::Serialize;

use super::{
    TrainError,
    batch::{Batch, Sample, Samples},
    checkpoint::{Checkpoint, replace},
    evaluate::{self, Accuracy},
    gguf,
    layout::Layout,
    model::{Network, Scores},
    optimizer::{self, Moments},
    progress::{Progress, Status},
    recipe::{Budget, Recipe},
};

/// How this run is started, as opposed to what it trains.
pub struct Session<'a> {
    /// Go on from the checkpoint next to the output; without one, start afresh.
    pub resume: bool,
    /// Set by a signal handler: the run writes a checkpoint after the current step and returns.
    pub stop: &'a AtomicBool,
}

/// What came of a run.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Summary {
    /// False when it was stopped before its budget was spent.
    pub finished: bool,
    pub steps: u64,
    pub tokens: u64,
    pub elapsed_s: f64,
    pub accuracy: Vec<Accuracy>,
    pub model: PathBuf,
    pub checkpoint: PathBuf,
}

/// Trains `recipe` and writes the model to `out`, a GGUF file; the checkpoint is `out` with `.checkpoint` appended.
///
/// # Errors
/// When the recipe, a checkpoint or a sample is not usable, a file cannot be written, or the loss diverges.
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
        if run.progress.elapsed_s() - evaluated_s >= recipe.evaluation.every_s && run.spent() < 1.0
        {
            let per_task = run.affordable(run.progress.elapsed_s() - evaluated_s);
            run.evaluate(per_task, true)?;
            run.save()?;
            evaluated_s = run.progress.elapsed_s();
        }
    }
    let finished = run.spent() >= 1.0;
    // The last checkpoint comes before the long evaluation, so that an impatient second Ctrl-C loses nothing.
    run.save()?;
    let accuracy = if finished {
        run.evaluate(recipe.evaluation.final_samples, false)?
    } else {
        Vec::new()
    };
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

struct Run<'a> {
    recipe: &'a Recipe,
    arch: Arch,
    layout: Layout,
    state: Checkpoint,
    moments: Moments,
    workers: Vec<Worker>,
    held_out: Vec<Vec<Sample>>,
    progress: Progress,
    /// Measured cost of grading one sample of every task; 0 before the first evaluation.
    round_s: f64,
    out: PathBuf,
    checkpoint: PathBuf,
}

/// A thread's share of a step.
struct Worker {
    network: Network,
    gradient: Vec<f32>,
}

impl<'a> Run<'a> {
    fn open(
        recipe: &'a Recipe,
        samples: &mut dyn Samples,
        out: &Path,
        resume: bool,
    ) -> Result<Self, TrainError> {
        let tasks = samples.tasks().to_vec();
        if tasks.is_empty() {
            return Err(TrainError::NoTasks);
        }
        let layout = Layout::new(recipe.model);
        let mut name = out.as_os_str().to_owned();
        name.push(".checkpoint");
        let checkpoint = PathBuf::from(name);
        let mut state = if resume && checkpoint.exists() {
            Checkpoint::load(&checkpoint, recipe.model, recipe.seed, &tasks)?
        } else {
            Checkpoint::fresh(
                recipe.model,
                recipe.seed,
                tasks,
                layout.initialize(recipe.seed),
            )
        };
        let most = recipe
            .evaluation
            .samples
            .max(recipe.evaluation.final_samples);
        let worker = || Worker {
            network: Network::new(layout.clone()),
            gradient: vec![0.0; layout.len],
        };
        Ok(Self {
            recipe,
            arch: Arch::new(),
            moments: state.take_moments(),
            workers: (0..recipe.batch.threads).map(|_| worker()).collect(),
            held_out: evaluate::held_out(recipe, samples, most),
            progress: Progress::start(state.elapsed_s, state.tokens),
            round_s: 0.0,
            out: out.to_owned(),
            checkpoint,
            state,
            layout,
        })
    }

    /// Fraction of the budget that is used up.
    fn spent(&self) -> f64 {
        match self.recipe.budget {
            Budget::Steps(steps) => self.state.step as f64 / steps as f64,
            Budget::Minutes(minutes) => self.progress.elapsed_s() / (minutes * 60.0),
        }
    }

    fn step(&mut self, samples: &mut dyn Samples) -> Result<(), TrainError> {
        let plan = &self.recipe.batch;
        let mut rng = ChaCha8Rng::seed_from_u64(self.recipe.seed);
        rng.set_stream(self.state.step + 1);
        let batch = Batch::draw(
            samples,
            &self.state.mix,
            plan.tokens,
            self.recipe.model.context,
            &mut rng,
        )?;
        let (loss, exact) = self.learn(&batch);
        if !loss.is_finite() {
            return Err(TrainError::Diverged {
                step: self.state.step,
            });
        }
        let rate = self.recipe.optimizer.rate_at(self.spent());
        self.state.step += 1;
        self.state.tokens += batch.inputs.len() as u64;
        let gradient_norm = optimizer::update(
            self.arch,
            &self.recipe.optimizer,
            &self.layout,
            &mut self.state.weights,
            &self.workers[0].gradient,
            &mut self.moments,
            rate,
            self.state.step,
        );
        let status = Status {
            step: self.state.step,
            spent: self.spent(),
            loss,
            exact,
            tokens: self.state.tokens,
            rate,
            gradient_norm,
        };
        self.progress.step(&status);
        Ok(())
    }

    /// Leaves the gradient of the mean loss in the first worker; returns that loss and the fraction of exact samples.
    fn learn(&mut self, batch: &Batch) -> (f64, f64) {
        let weight = 1.0 / batch.targets.len() as f32;
        let weights = &self.state.weights;
        let work = |worker: &mut Worker, share: &Batch| {
            worker.gradient.fill(0.0);
            let scores = worker
                .network
                .learn(weights, share, weight, &mut worker.gradient);
            tally(share, &scores)
        };
        let shares = batch.split(self.workers.len());
        let (first, others) = self
            .workers
            .split_first_mut()
            .expect("invariant: one worker at least");
        let tallies: Vec<(f64, usize)> = thread::scope(|scope| {
            let others: Vec<_> = others
                .iter_mut()
                .zip(&shares[1..])
                .map(|(worker, share)| scope.spawn(move || work(worker, share)))
                .collect();
            let mine = work(first, &shares[0]);
            let joined = others
                .into_iter()
                .map(|other| other.join().expect("invariant: a worker does not panic"));
            std::iter::once(mine).chain(joined).collect()
        });
        for other in &others[..shares.len() - 1] {
            super::kernels::add(self.arch, &mut first.gradient, &other.gradient);
        }
        let loss: f64 = tallies.iter().map(|(loss, _)| loss).sum();
        let exact: usize = tallies.iter().map(|(_, exact)| exact).sum();
        (
            loss * f64::from(weight),
            exact as f64 / batch.sequences.len() as f64,
        )
    }

    /// Samples per task that fit into the evaluations' share of the `since_s` seconds since the last one.
    fn affordable(&self, since_s: f64) -> usize {
        let most = self.recipe.evaluation.samples;
        if self.round_s == 0.0 {
            return most.min(16); // the first one measures
        }
        ((since_s * self.recipe.evaluation.share_max / self.round_s) as usize)
            .clamp(most.min(16), most)
    }

    fn evaluate(&mut self, per_task: usize, adapt: bool) -> Result<Vec<Accuracy>, TrainError> {
        let before = self.progress.elapsed_s();
        let network = &mut self.workers[0].network;
        let results = evaluate::evaluate(
            self.recipe,
            network,
            &self.state.weights,
            &self.state.tasks,
            &self.held_out,
            per_task,
        )?;
        let seconds = self.progress.elapsed_s() - before;
        self.round_s = seconds / per_task as f64;
        if adapt {
            let floor = self.recipe.batch.floor;
            self.state.mix = results
                .iter()
                .map(|result| floor + 1.0 - result.rate())
                .collect();
        }
        self.progress.evaluation(self.state.step, &results, seconds);
        Ok(results)
    }

    fn save(&mut self) -> Result<(), TrainError> {
        self.state.elapsed_s = self.progress.elapsed_s();
        self.state.save(&self.checkpoint, &self.moments)?;
        let name = &self.recipe.name;
        let model = gguf::encode(
            name,
            &self.layout,
            &self.state.weights,
            self.recipe.export.matrices,
        );
        replace(&self.out, &model)
    }
}

/// Summed loss and number of exact samples.
fn tally(batch: &Batch, scores: &Scores) -> (f64, usize) {
    let loss = scores.losses.iter().map(|&loss| f64::from(loss)).sum();
    (
        loss,
        evaluate::exact(batch, scores).filter(|&hit| hit).count(),
    )
}
