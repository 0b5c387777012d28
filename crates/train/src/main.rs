//! `prime-train`: trains models for agents. `prime-agents train` starts this program.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::Context as _;
use clap::{Args, Parser, Subcommand};

use prime_bench::interval::Proportion;
use prime_train::rl::{Ending, Record, RlRecipe, rl};
use prime_train::{
    Accuracy, Budget, Mistakes, Plan, Precision, Recipe, Role, Samples, Session, Traces,
    TrainError, Verdicts, average, convert, sft,
};

/// Trains models for agents.
#[derive(Parser)]
#[command(name = "prime-train", version, propagate_version = true)]
struct Arguments {
    #[command(subcommand)]
    command: TrainCommand,
}

#[derive(Subcommand)]
enum TrainCommand {
    /// Supervised training of an executor or a verifier on reference traces; exports a GGUF file.
    Sft(SftArguments),
    /// Estimate the cost of a supervised training from a trial of some steps: tokens, hours and the
    /// length of the samples.
    Plan(PlanArguments),
    /// Reinforcement learning of an executor from its own attempts; exports the best policy as a
    /// GGUF file.
    Rl(RlArguments),
    /// Write a model that was trained here with matrices of another element type.
    Convert(ConvertArguments),
    /// Write the average of two models that were trained here: it keeps what one knew and most of
    /// what the other learnt from it.
    Average(AverageArguments),
}

#[derive(Args)]
struct SftArguments {
    /// The recipe, a TOML file.
    #[arg(long, value_name = "FILE")]
    recipe: PathBuf,
    /// The GGUF file to write, with its checkpoint beside it. Defaults to the recipe's path with
    /// the extension `.gguf`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Continue from the checkpoint of an earlier run.
    #[arg(long)]
    resume: bool,
    /// Train for this many minutes instead of the recipe's budget.
    #[arg(long, value_name = "N")]
    minutes: Option<f64>,
}

#[derive(Args)]
struct PlanArguments {
    /// The recipe of a supervised training, a TOML file.
    #[arg(long, value_name = "FILE")]
    recipe: PathBuf,
    /// Length of the trial.
    #[arg(long, value_name = "S", default_value_t = 20.0)]
    trial_seconds: f64,
    /// Print JSON.
    #[arg(long)]
    json: bool,
}

#[derive(Args)]
struct RlArguments {
    /// The recipe, a TOML file (docs/reinforcement.md).
    #[arg(long, value_name = "FILE")]
    recipe: PathBuf,
    /// The GGUF file to write, with its checkpoint and its records beside it. Defaults to the
    /// recipe's path with the extension `.gguf`.
    #[arg(long, value_name = "FILE")]
    out: Option<PathBuf>,
    /// Continue from the checkpoint of an earlier run.
    #[arg(long)]
    resume: bool,
}

#[derive(Args)]
struct ConvertArguments {
    /// A GGUF file that this trainer exported.
    #[arg(long, value_name = "FILE")]
    model: PathBuf,
    /// `f32`, `f16`, or `q8_0` (8 bits and a scale for each 32 weights).
    #[arg(long, value_name = "TYPE")]
    matrices: Precision,
    /// The GGUF file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

#[derive(Args)]
struct AverageArguments {
    /// A GGUF file that this trainer exported, such as the start of a training.
    #[arg(long, value_name = "FILE")]
    from: PathBuf,
    /// A file of the same sizes and words, such as the result of that training.
    #[arg(long, value_name = "FILE")]
    towards: PathBuf,
    /// Weight of the second file, from 0 to 1.
    #[arg(long, value_name = "S", value_parser = share)]
    share: f64,
    /// `f32`, `f16`, or `q8_0` (8 bits and a scale for each 32 weights).
    #[arg(long, value_name = "TYPE")]
    matrices: Precision,
    /// The GGUF file to write.
    #[arg(long, value_name = "FILE")]
    out: PathBuf,
}

/// A number from 0 to 1.
fn share(text: &str) -> Result<f64, String> {
    let share = text.parse().ok().filter(|share| (0.0..=1.0).contains(share));
    share.ok_or_else(|| "not a number from 0 to 1".to_owned())
}

fn main() -> ExitCode {
    let done = match Arguments::parse().command {
        TrainCommand::Sft(arguments) => train(&arguments),
        TrainCommand::Plan(arguments) => plan(&arguments),
        TrainCommand::Rl(arguments) => reinforce(&arguments),
        TrainCommand::Convert(arguments) => {
            convert(&arguments.model, arguments.matrices, &arguments.out)
                .map(|()| ExitCode::SUCCESS)
                .map_err(Into::into)
        }
        TrainCommand::Average(AverageArguments { from, towards, share, matrices, out }) => {
            average([&from, &towards], share, matrices, &out)
                .map(|()| ExitCode::SUCCESS)
                .map_err(Into::into)
        }
    };

    done.unwrap_or_else(|error| {
        eprintln!("error: {error:#}");
        ExitCode::from(2)
    })
}

fn read(path: &Path) -> anyhow::Result<String> {
    std::fs::read_to_string(path)
        .with_context(|| format!("--recipe {}: cannot be read", path.display()))
}

/// A recipe of supervised training, and its samples.
fn read_recipe(path: &Path) -> anyhow::Result<(Recipe, Box<dyn Samples>)> {
    let text = read(path)?;
    let read = || {
        let mut recipe = Recipe::from_toml(&text)?;
        recipe.adopt_initial_words()?;
        let samples = samples(&recipe)?;
        Ok::<_, TrainError>((recipe, samples))
    };
    read().with_context(|| format!("--recipe {}", path.display()))
}

fn train(arguments: &SftArguments) -> anyhow::Result<ExitCode> {
    let (mut recipe, mut samples) = read_recipe(&arguments.recipe)?;
    if let Some(minutes) = arguments.minutes {
        anyhow::ensure!(
            minutes > 0.0 && minutes.is_finite(),
            "--minutes {minutes}: give a number above 0"
        );
        recipe.budget = Budget::Minutes(minutes);
    }

    let out = arguments.out.clone().unwrap_or_else(|| arguments.recipe.with_extension("gguf"));
    let stop = Arc::new(AtomicBool::new(false));
    stop_on_interrupt(Arc::clone(&stop))?;

    let summary =
        sft(&recipe, samples.as_mut(), &out, &Session { resume: arguments.resume, stop: &stop })?;

    for accuracy in &summary.accuracy {
        println!("{}", line_of(accuracy));
    }

    println!(
        "{} steps, {} tokens, {:.0} s: {}",
        summary.steps,
        summary.tokens,
        summary.elapsed_s,
        summary.model.display()
    );

    // An interrupted run can be resumed: neither success nor an error of usage.
    Ok(ExitCode::from(u8::from(!summary.finished)))
}

fn plan(arguments: &PlanArguments) -> anyhow::Result<ExitCode> {
    let trial_s = arguments.trial_seconds;
    anyhow::ensure!(
        trial_s >= 0.0 && trial_s.is_finite(),
        "--trial-seconds {trial_s}: give a number from 0 on"
    );
    let (recipe, mut samples) = read_recipe(&arguments.recipe)?;
    let plan = Plan::of(&recipe, samples.as_mut(), trial_s)?;

    if arguments.json {
        println!("{}", serde_json::to_string_pretty(&plan)?);
    } else {
        println!("{plan}");
    }
    Ok(ExitCode::SUCCESS)
}

fn reinforce(arguments: &RlArguments) -> anyhow::Result<ExitCode> {
    let path = arguments.recipe.display();
    let recipe = RlRecipe::from_toml(&read(&arguments.recipe)?)
        .with_context(|| format!("--recipe {path}"))?;

    let out = arguments.out.clone().unwrap_or_else(|| arguments.recipe.with_extension("gguf"));
    anyhow::ensure!(
        out != recipe.init,
        "{}: the model to start from would be overwritten, choose another --out",
        out.display()
    );

    let stop = Arc::new(AtomicBool::new(false));
    stop_on_interrupt(Arc::clone(&stop))?;
    let session = Session { resume: arguments.resume, stop: &stop };

    let summary =
        rl(&recipe, &out, &session, &mut |record| eprintln!("{}", line_of_record(record)))?;

    for (held, initial) in summary.kept.iter().zip(&summary.initial) {
        println!(
            "{} {}: right {} of {} (initially {}), {:.1} proposals (initially {:.1}), {:.0} tokens (initially {:.0})",
            held.task,
            held.difficulty.name(),
            held.right,
            held.instances,
            initial.right,
            held.proposals,
            initial.proposals,
            held.tokens,
            initial.tokens
        );
    }

    println!(
        "{}; {} iterations, {:.0} processor seconds; the model is that of iteration {}: {}",
        summary.ending.text(),
        summary.iterations,
        summary.cpu_s,
        summary.kept_iteration,
        summary.model.display()
    );

    // Neither an interruption nor a collapse is a success or an error of usage.
    Ok(ExitCode::from(u8::from(summary.ending != Ending::Finished)))
}

/// The line that is printed for an iteration.
fn line_of_record(record: &Record) -> String {
    let held: Vec<String> = record
        .held_out
        .iter()
        .map(|held| {
            format!(
                "{} {} {}/{} right, {:.1} proposals",
                held.task,
                held.difficulty.name(),
                held.right,
                held.instances,
                held.proposals
            )
        })
        .collect();

    let held = if held.is_empty() { String::new() } else { format!(" | {}", held.join("; ")) };
    let rehearsal =
        record.rehearsal.map(|loss| format!(", rehearsal {loss:.4}")).unwrap_or_default();

    format!(
        "{:7.0} s iteration {}: reward {:.3}, solved {:.2}, mixed {:.2}, kl {:.4}, entropy {:.4}, clipped {:.3}{rehearsal}{held}",
        record.cpu_s,
        record.iteration,
        record.reward,
        record.solved,
        record.mixed,
        record.kl,
        record.entropy,
        record.clipped
    )
}

/// The training samples for the recipe's role.
fn samples(recipe: &Recipe) -> Result<Box<dyn Samples>, TrainError> {
    Ok(match recipe.data.role {
        Role::Executor => Box::new(Traces::new(&recipe.data)?),
        Role::Verifier => Box::new(Verdicts::new(&recipe.data)?),
    })
}

/// The line that is printed for a task's held-out results.
fn line_of(accuracy: &Accuracy) -> String {
    let rate = |count: usize, of: usize| {
        let share = Proportion::new(count as u64, of as u64).text();
        format!("{count} of {of}, {share} %")
    };
    match accuracy.mistakes {
        None => format!(
            "{}: {} of {} held-out steps exact",
            accuracy.task, accuracy.correct, accuracy.samples
        ),
        Some(Mistakes { false_accepts, wrong, false_rejects, right }) => format!(
            "{}: wrong steps accepted {}; right steps rejected {}",
            accuracy.task,
            rate(false_accepts, wrong),
            rate(false_rejects, right)
        ),
    }
}

/// The first Ctrl-C stops training after the current step, with a checkpoint; the second ends the
/// process.
fn stop_on_interrupt(stop: Arc<AtomicBool>) -> anyhow::Result<()> {
    let waiter = move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
        // Without it, Ctrl-C ends the process at once, as it does by default.
        let Ok(runtime) = runtime else { return };

        runtime.block_on(async {
            while tokio::signal::ctrl_c().await.is_ok() {
                if stop.swap(true, Ordering::Relaxed) {
                    // 128 + SIGINT, as a shell reports such an end.
                    std::process::exit(130);
                }
                eprintln!("stopping after this step; press Ctrl-C again to end at once");
            }
        });
    };

    std::thread::Builder::new()
        .name("interrupt".to_owned())
        .spawn(waiter)
        .context("cannot start the thread for signals")?;
    Ok(())
}
