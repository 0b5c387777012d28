//! Reinforcement learning: prompts with the columns from which reward functions judge a completion.
//! TRL's functions get `task`, `difficulty`, `index` and `base_seed`, verl's `data_source`,
//! `reward_model.ground_truth` and `extra_info`, OpenRLHF's `label`.

use prime_bench::tasks::InstanceId;

use super::{Ask, Column, Options, instance_columns, label, user};

/// The name by which verl chooses a reward function.
const DATA_SOURCE: &str = "prime-bench";

pub struct Row {
    id: InstanceId,
    style: &'static str,
    prompt: String,
}

/// The row of an instance.
pub fn rows(id: &InstanceId, options: &Options) -> Vec<Row> {
    let problem = id.problem();
    let ask = match options.ask(id, problem.as_ref()) {
        // Reward functions judge whole traces, and environments write their prompts from these
        // columns.
        Ask::Step => return Vec::new(),
        ask @ Ask::Whole(_) => ask,
    };

    vec![Row { id: *id, style: ask.name(), prompt: ask.prompt(problem.start().as_ref()) }]
}

pub fn columns(rows: &[Row]) -> Vec<Column> {
    let labels = || rows.iter().map(|row| label(&row.id));
    let mut columns = vec![
        Column::conversations("prompt", rows.iter().map(|row| user(row.prompt.clone()))),
        Column::texts("style", rows.iter().map(|row| row.style)),
        Column::texts("label", labels()),
        Column::texts("data_source", rows.iter().map(|_| DATA_SOURCE)),
        Column::texts("reward_model.style", rows.iter().map(|_| "rule")),
        Column::texts("reward_model.ground_truth", labels()),
        Column::texts("extra_info.task", rows.iter().map(|row| row.id.task.spec().slug)),
        Column::texts("extra_info.difficulty", rows.iter().map(|row| row.id.difficulty.name())),
        Column::small(
            "extra_info.index",
            rows.iter().map(|row| i32::try_from(row.id.index).unwrap_or(i32::MAX)),
        ),
        Column::large(
            "extra_info.base_seed",
            rows.iter().map(|row| i64::try_from(row.id.base_seed).unwrap_or(i64::MAX)),
        ),
    ];

    columns.extend(instance_columns(rows.iter().map(|row| &row.id)));
    columns
}
