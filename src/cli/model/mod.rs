//! `prime-agents model`: what a model's file holds, and how its chat template renders messages.

mod adapter;
pub mod facts;
mod render;
mod show;

use std::process::ExitCode;

use clap::{Args, Subcommand};

#[derive(Args)]
pub struct ModelArguments {
    #[command(subcommand)]
    command: ModelCommand,
}

#[derive(Subcommand)]
enum ModelCommand {
    /// Show what a GGUF file holds: architecture, chat template, tokens, context, memory
    Show(show::ShowArguments),
    /// Render messages with a chat template, as the model would see them
    Render(render::RenderArguments),
}

pub fn model(arguments: &ModelArguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        ModelCommand::Show(arguments) => show::show(arguments),
        ModelCommand::Render(arguments) => render::render(arguments),
    }
}
