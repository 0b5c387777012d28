//! `prime-agents problem`: checks a client's own problem, and judges lines by it, without a model.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, Subcommand, ValueHint};
use serde::Serialize;
use serde_json::Value;

use super::output::{Output, count, print, print_json};
use super::values::json_or_file;
use prime_bench::tasks::{Kind, Kinds, Machine, Problem, Severity};
use prime_printable::printable_line;
use prime_problems::Custom;
use prime_service::requests::never_verified;

#[derive(Args)]
pub struct ProblemArguments {
    #[command(subcommand)]
    command: ProblemCommand,
}

#[derive(Subcommand)]
enum ProblemCommand {
    /// Compile the checks of a problem, say when each is evaluated and what an answer can be worth,
    /// and judge lines; the exit code is 1 if a line breaks a constraint
    Check {
        /// The problem (JSON, or a file with it)
        #[arg(value_name = "FILE|JSON", value_hint = ValueHint::FilePath)]
        problem: PathBuf,
        /// A line to judge; repeatable: each is judged after those before it that broke nothing
        #[arg(long = "line", value_name = "LINE", allow_hyphen_values = true)]
        lines: Vec<String>,
        /// Output format
        #[arg(long, value_enum, default_value_t = Output::Text)]
        output: Output,
    },
}

/// A constraint as it was understood.
#[derive(Serialize)]
struct Understood {
    name: String,
    severity: Severity,
    evaluated: &'static str,
    /// What is evaluated or read.
    meaning: String,
}

/// What a line breaks.
#[derive(Serialize)]
struct Violated {
    name: String,
    severity: Severity,
    message: String,
}

#[derive(Serialize)]
struct Judged {
    line: String,
    violations: Vec<Violated>,
    /// True if it ends the trace.
    ends: bool,
}

#[derive(Serialize)]
struct Report {
    constraints: Vec<Understood>,
    /// Why no answer can be verified; left out if one can.
    #[serde(skip_serializing_if = "Option::is_none")]
    never_verified: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    lines: Vec<Judged>,
    /// The answer that the lines lead to.
    #[serde(skip_serializing_if = "Option::is_none")]
    answer: Option<Value>,
}

fn word(severity: Severity) -> &'static str {
    match severity {
        Severity::Critical => "critical",
        Severity::Major => "major",
        Severity::Minor => "minor",
    }
}

/// When a constraint of this kind is looked at.
fn evaluated(kind: Option<Kind>, is_of_step: bool) -> &'static str {
    match kind {
        None => "read by a model",
        Some(Kind::Format) => "before a line is applied",
        Some(Kind::Invariant | Kind::Transition) if is_of_step => "after every step",
        Some(Kind::Invariant | Kind::Transition) => "after every line",
        Some(Kind::Terminal) => "with the answer",
    }
}

/// Judges lines; one that breaks something is not applied.
fn judge(machine: &mut dyn Machine, lines: &[String]) -> Vec<Judged> {
    let judged = lines.iter().map(|line| {
        // A line that is refused breaks `format`, whose message says why.
        let _ = machine.propose(line);
        let broken = machine.broken(machine.violations(Kinds::ALL));
        let ends = machine.candidate_ends();
        if broken.is_empty() {
            machine.commit();
        }

        let violated = broken.into_iter().map(|broken| Violated {
            name: broken.name.into_owned(),
            severity: broken.severity,
            message: broken.meaning.into_owned(),
        });
        Judged { line: line.clone(), violations: violated.collect(), ends }
    });
    judged.collect()
}

fn report(problem: &Custom, lines: &[String]) -> Report {
    let rules = problem.rules().into_iter().enumerate().map(|(place, rule)| Understood {
        name: rule.name.into_owned(),
        severity: rule.severity,
        // The first rule is the lines' own form.
        evaluated: evaluated(rule.kind, place > 0 && problem.is_of_step(place - 1)),
        meaning: rule.meaning.into_owned(),
    });

    let mut machine = problem.start();
    let lines = judge(machine.as_mut(), lines);
    Report {
        constraints: rules.collect(),
        never_verified: never_verified(problem).map(str::to_owned),
        lines,
        answer: machine.answer(),
    }
}

impl Report {
    fn text(&self) -> String {
        let mut lines = vec![count(self.constraints.len() as u64, "constraint")];
        for Understood { name, severity, evaluated, meaning } in &self.constraints {
            let (name, meaning) = (printable_line(name), printable_line(meaning));
            lines.push(format!("- {name} ({}, {evaluated}): {meaning}", word(*severity)));
        }
        lines.push(match &self.never_verified {
            Some(reason) => format!("An answer is never verified: {reason}."),
            None => {
                "An answer that breaks nothing is verified, unless its checks accept any other as \
                     well."
                    .to_owned()
            }
        });

        for Judged { line, violations, ends } in &self.lines {
            let line = printable_line(line);
            let end = if *ends { ", the answer" } else { "" };
            if violations.is_empty() {
                lines.push(format!("`{line}`{end}: breaks nothing"));
            }
            for Violated { name, severity, message } in violations {
                let (name, message) = (printable_line(name), printable_line(message));
                lines
                    .push(format!("`{line}`{end}: breaks {name} ({}): {message}", word(*severity)));
            }
        }
        lines.join("\n") + "\n"
    }
}

pub fn problem(arguments: &ProblemArguments) -> anyhow::Result<ExitCode> {
    let ProblemCommand::Check { problem, lines, output } = &arguments.command;
    let definition: Value = json_or_file("problem", problem)?;
    let report = report(&Custom::read(&definition)?, lines);

    match output {
        Output::Text => print(report.text())?,
        Output::Json => print_json(&report)?,
    }
    let is_clean = report.lines.iter().all(|judged| judged.violations.is_empty());
    Ok(ExitCode::from(u8::from(!is_clean)))
}
