//! Preference optimisation: for each prompt a completion to prefer and one to reject.

use prime_bench::tasks::{InstanceId, TaskRng};
use prime_lessons::completion;

use super::candidates::wrong_line;
use super::recorded::Pair;
use super::states::sampled;
use super::{Ask, Column, Options, assistant, phase, user};

pub struct Row {
    pub prompt: String,
    pub chosen: String,
    pub rejected: String,
    /// V of the rejected line, in tenths.
    pub tenths: u32,
    /// Scores of the chosen and of the rejected line, which the preference rests on.
    pub scores: [f64; 2],
    /// `reference`, or the id of the run that both lines come from.
    pub source: String,
    pub task: &'static str,
    pub difficulty: String,
    pub phase: i32,
}

/// The completion with another action line, and the same derivation.
fn with_line(completion: &str, line: &str) -> String {
    completion
        .rsplit_once('\n')
        .map_or_else(|| line.to_owned(), |(derivation, _)| format!("{derivation}\n{line}"))
}

/// The rows of an instance, one for each single step: the reference's completion, preferred to the
/// same one with a wrong line.
pub fn rows(id: &InstanceId, options: &Options) -> Vec<Row> {
    let problem = id.problem();
    let mut rng = TaskRng::new(id.seed());
    let mut rows = Vec::new();

    sampled(problem.as_ref(), options.steps_max, |_, machine| {
        let Some((chosen, right)) = completion(machine).zip(machine.reference()) else { return };
        let Some((wrong, tenths)) = wrong_line(machine, &right, &mut rng) else { return };

        rows.push(Row {
            prompt: Ask::Step.prompt(machine),
            rejected: with_line(&chosen, &wrong),
            chosen,
            tenths,
            scores: [0.0, 0.0 - f64::from(tenths) / 10.0],
            source: "reference".to_owned(),
            task: id.task.spec().slug,
            difficulty: id.difficulty.name().to_owned(),
            phase: phase(id.difficulty),
        });
    });
    rows
}

/// The row of a pair from a run's trace. The difficulty of an input that is not an instance of the
/// benchmark is empty.
pub fn row_of(pair: Pair, source: &str) -> Row {
    let level = pair.difficulty;
    Row {
        prompt: pair.prompt,
        chosen: pair.chosen,
        rejected: pair.rejected,
        tenths: pair.tenths,
        scores: pair.scores,
        source: source.to_owned(),
        task: pair.task,
        difficulty: level.map_or_else(String::new, |level| level.name().to_owned()),
        phase: level.map_or(0, phase),
    }
}

pub fn columns(rows: &[Row]) -> Vec<Column> {
    vec![
        Column::conversations("prompt", rows.iter().map(|row| user(row.prompt.clone()))),
        Column::conversations("chosen", rows.iter().map(|row| assistant(row.chosen.clone()))),
        Column::conversations("rejected", rows.iter().map(|row| assistant(row.rejected.clone()))),
        Column::small(
            "rejected_v_tenths",
            rows.iter().map(|row| i32::try_from(row.tenths).unwrap_or(i32::MAX)),
        ),
        Column::numbers("chosen_score", rows.iter().map(|row| row.scores[0])),
        Column::numbers("rejected_score", rows.iter().map(|row| row.scores[1])),
        Column::texts("source", rows.iter().map(|row| row.source.clone())),
        Column::texts("task", rows.iter().map(|row| row.task)),
        Column::texts("difficulty", rows.iter().map(|row| row.difficulty.clone())),
        Column::small("phase", rows.iter().map(|row| row.phase)),
    ]
}
