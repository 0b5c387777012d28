//! `bench prompt`: the prompt of an instance.

use std::process::ExitCode;

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use crate::cli::output::print;
use crate::cli::values::{TaskParser, difficulty, index};
use prime_bench::prompts::{Components, Style, verifier, whole};
use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Machine};
use prime_lessons::compact;

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum PromptStyle {
    /// The problem only
    Baseline,
    /// With constraints, verification procedure, worked example and output format
    Structured,
    /// The paper's template for sorting
    Sorting,
    /// The paper's template for automata and simulations
    StateMachine,
    /// The paper's template for mathematics
    Mathematical,
    /// For environments: one action a turn
    Turns,
    /// The prompt of a verifier, for one step
    Verifier,
    /// The one-line step prompt of small models
    Compact,
}

#[derive(Args)]
pub struct PromptArguments {
    /// Task, such as tower-of-hanoi
    #[arg(value_parser = TaskParser, hide_possible_values = true)]
    task: String,
    /// Difficulty of the instance
    #[arg(long, value_name = "LEVEL", value_parser = difficulty(), default_value = "easy")]
    difficulty: Difficulty,
    /// Index of the instance, 0 to 999; the benchmark has 0 to 199
    #[arg(long, value_parser = index, allow_negative_numbers = true, default_value_t = 0)]
    index: u32,
    /// Base seed of the instances
    #[arg(long, value_name = "SEED", default_value_t = BASE_SEED)]
    base_seed: u64,
    /// Style of the prompt
    #[arg(long, value_enum, default_value_t = PromptStyle::Structured)]
    style: PromptStyle,
    /// Leave out components of the structured prompt: constraints, verification, examples, format
    #[arg(long, value_name = "COMPONENT", value_delimiter = ',')]
    without: Vec<String>,
    /// For `verifier` and `compact`: steps of the reference before the state
    #[arg(long, value_name = "STEPS", default_value_t = 0)]
    step: u64,
    /// For `verifier`: action to judge [default: the reference's]
    #[arg(long, value_name = "LINE")]
    action: Option<String>,
}

fn state(arguments: &PromptArguments, id: &InstanceId) -> anyhow::Result<Box<dyn Machine>> {
    let mut machine = id.problem().start();
    for step in 0..arguments.step {
        anyhow::ensure!(
            machine.follow_reference(),
            "--step {}: the trace of {id} ends after {step} steps",
            arguments.step
        );
    }
    Ok(machine)
}

fn text(arguments: &PromptArguments) -> anyhow::Result<String> {
    let task = tasks::find(&arguments.task)?;
    let id = InstanceId::new(task, arguments.difficulty, arguments.index, arguments.base_seed)?;

    let structured = arguments.style == PromptStyle::Structured;
    anyhow::ensure!(
        structured || arguments.without.is_empty(),
        "--without is for the structured prompt"
    );

    let steps = matches!(arguments.style, PromptStyle::Verifier | PromptStyle::Compact);
    anyhow::ensure!(steps || arguments.step == 0, "--step is for the verifier and compact prompts");
    let judges = arguments.style == PromptStyle::Verifier;
    anyhow::ensure!(judges || arguments.action.is_none(), "--action is for the verifier prompt");

    let style = match arguments.style {
        PromptStyle::Baseline => Style::Baseline,
        PromptStyle::Structured => {
            let components =
                arguments.without.iter().try_fold(Components::ALL, |all, name| all.without(name));
            Style::Structured(components.map_err(anyhow::Error::msg)?)
        }
        PromptStyle::Sorting => Style::Sorting,
        PromptStyle::StateMachine => Style::StateMachine,
        PromptStyle::Mathematical => Style::Mathematical,
        PromptStyle::Turns => Style::Turns,
        PromptStyle::Compact => return Ok(compact(state(arguments, &id)?.as_ref())),
        PromptStyle::Verifier => {
            let machine = state(arguments, &id)?;
            let given = arguments.action.clone().or_else(|| machine.reference());
            let action =
                given.context("the trace has ended: give --action, or a smaller --step")?;
            return verifier(machine.as_ref(), &action)
                .with_context(|| format!("--action {action:?}"));
        }
    };

    let category = task.spec().category;
    anyhow::ensure!(style.suits(category), "--style {style}: {} is not a sort", arguments.task);
    Ok(whole(id.problem().as_ref(), style))
}

pub fn prompt(arguments: &PromptArguments) -> anyhow::Result<ExitCode> {
    print(text(arguments)?)?;
    Ok(ExitCode::SUCCESS)
}
