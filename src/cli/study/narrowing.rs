//! A part of a study: fewer systems, tasks, levels or instances. The records of a part are those of
//! the whole.

use anyhow::ensure;
use clap::Args;
use clap::builder::RangedU64ValueParser;

use crate::cli::values::{TaskParser, difficulty};
use prime_bench::tasks::Difficulty;
use prime_study::definition::Study;

#[derive(Args)]
pub struct Narrowing {
    /// This system only; repeatable
    #[arg(long = "system", value_name = "NAME")]
    systems: Vec<String>,
    /// This task of the study only; repeatable
    #[arg(
        long = "task",
        value_name = "TASK",
        value_parser = TaskParser,
        hide_possible_values = true
    )]
    tasks: Vec<String>,
    /// This level of the study only; repeatable
    #[arg(long = "difficulty", value_name = "LEVEL", value_parser = difficulty())]
    difficulties: Vec<Difficulty>,
    /// At most this many instances of each task, level and base seed
    #[arg(long, value_name = "N", value_parser = RangedU64ValueParser::<u32>::new().range(1..=200))]
    instances: Option<u32>,
}

impl Narrowing {
    /// Leaves the chosen part of a study.
    ///
    /// # Errors
    /// If something is chosen that the study does not have.
    pub fn apply(&self, study: &mut Study) -> anyhow::Result<()> {
        let names: Vec<String> = study.systems.iter().map(|system| system.name.clone()).collect();
        for name in &self.systems {
            ensure!(names.contains(name), "--system {name}: the study has {}", names.join(", "));
        }

        let of_benchmark = study.ask.tasks.iter().map(|task| task.spec().slug);
        let slugs: Vec<&str> =
            of_benchmark.chain(study.ask.own.iter().map(String::as_str)).collect();
        for task in &self.tasks {
            ensure!(
                slugs.contains(&task.as_str()),
                "--task {task}: the study has {}",
                slugs.join(", ")
            );
        }

        let levels: Vec<&str> = study.ask.difficulties.iter().map(|level| level.name()).collect();
        for level in &self.difficulties {
            ensure!(
                levels.contains(&level.name()),
                "--difficulty {level}: the study has {}",
                levels.join(", ")
            );
        }

        study
            .systems
            .retain(|system| self.systems.is_empty() || self.systems.contains(&system.name));

        let ask = &mut study.ask;
        ask.tasks.retain(|task| {
            self.tasks.is_empty() || self.tasks.iter().any(|slug| slug == task.spec().slug)
        });
        ask.own.retain(|name| self.tasks.is_empty() || self.tasks.contains(name));
        ask.difficulties
            .retain(|level| self.difficulties.is_empty() || self.difficulties.contains(level));
        ask.instances =
            self.instances.map_or(ask.instances, |instances| instances.min(ask.instances));

        Ok(())
    }
}
