//! Labelled steps as a data set: proposed steps at states of reference traces, right and wrong.

use std::fs;
use std::path::Path;

use serde::Serialize;

use super::export::{
    CardWords, ExportPlan, Summary, card, description_of, failed, write_card, write_rows,
};
use super::generate::GenerateError;
use super::table::Column;
use prime_bench::dataset::Selection;
use prime_bench::judge::labelled::{LabelledStep, labelled_steps};
use prime_bench::tasks::inputs::is_in_benchmark;
use prime_bench::tasks::{AnyTask, Difficulty};

/// One proposed step. `input`, `state` and `after` are JSON texts, because their shapes differ from
/// task to task.
#[derive(Clone, Debug, Serialize)]
pub struct LabelledRow {
    /// The instance: `<task>/<difficulty>/<index>`.
    pub instance: String,
    /// The slug of the task.
    pub task: &'static str,
    /// The level of the instance.
    pub difficulty: &'static str,
    /// The index of the instance within its level, from 0.
    pub index: i32,
    /// The seed that the instance was made from.
    pub seed: i64,
    /// Steps of the reference trace before the state.
    pub step: i64,
    /// The input, as JSON.
    pub input: String,
    /// The state before the step, as JSON.
    pub state: String,
    /// The proposed line.
    pub line: String,
    /// The state after the step; empty where it cannot be carried out.
    pub after: String,
    /// `right` or `wrong`.
    pub label: &'static str,
    /// The type of the error; empty for a right step.
    pub error: &'static str,
    /// The names of the constraints that the step breaks, with commas.
    pub violations: String,
    /// `reference`, `random` or `adversarial`.
    pub origin: &'static str,
}

const STEPS: CardWords<'static> = CardWords {
    name: "PRIME-Bench labelled steps",
    categories: "text-classification",
    columns: "For each instance a state of its reference trace is drawn, and there: the \
              reference's own step, a mutation of it that is wrong but can be carried out, a line \
              that cannot, and a wrong step that breaks as few kinds of constraints as a search \
              finds. A kind of step that does not exist at a state has no row.\n\n\
              | column | |\n| --- | --- |\n\
              | `instance`, `task`, `difficulty`, `index`, `seed` | the instance |\n\
              | `step` | steps of the trace before the state |\n\
              | `input`, `state`, `after` | JSON texts: the instance's input, the state, the state \
              after the line (empty where it cannot be carried out) |\n\
              | `line` | the proposed step |\n\
              | `label` | `right` or `wrong`, by the task's algorithm |\n\
              | `error` | the type of the error; empty for a right step |\n\
              | `violations` | the constraints that the step breaks, with commas |\n\
              | `origin` | `reference`, `random` (a mutation) or `adversarial` (a search for steps \
              that constraints miss) |\n",
};

fn columns(rows: &[LabelledRow]) -> Vec<Column> {
    let texts = |name, of: fn(&LabelledRow) -> &str| Column::texts(name, rows.iter().map(of));
    vec![
        texts("instance", |row| &row.instance),
        texts("task", |row| row.task),
        texts("difficulty", |row| row.difficulty),
        Column::small("index", rows.iter().map(|row| row.index)),
        Column::large("seed", rows.iter().map(|row| row.seed)),
        Column::large("step", rows.iter().map(|row| row.step)),
        texts("input", |row| &row.input),
        texts("state", |row| &row.state),
        texts("line", |row| &row.line),
        texts("after", |row| &row.after),
        texts("label", |row| row.label),
        texts("error", |row| row.error),
        texts("violations", |row| &row.violations),
        texts("origin", |row| row.origin),
    ]
}

fn row(step: &LabelledStep) -> LabelledRow {
    // The columns are signed.
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    let mut after = step.machine.fork();
    let state = after.state().to_string();
    let applies = after.propose(&step.line).is_ok();
    after.commit();

    LabelledRow {
        instance: step.id.to_string(),
        task: step.id.task.spec().slug,
        difficulty: step.id.difficulty.name(),
        index: i32::try_from(step.id.index).unwrap_or(i32::MAX),
        seed: signed(step.id.seed()),
        step: signed(step.step),
        input: step.machine.problem().input().to_string(),
        state,
        line: step.line.clone(),
        after: if applies { after.state().to_string() } else { String::new() },
        label: if step.error.is_some() { "wrong" } else { "right" },
        error: step.error.as_ref().map_or("", |error| error.error.name()),
        violations: step.error.as_ref().map(|error| error.violations.join(",")).unwrap_or_default(),
        origin: step.origin.name(),
    }
}

/// The rows of a task and level, and how many instances are left out.
fn rows(
    task: &'static dyn AnyTask,
    level: Difficulty,
    selection: &Selection,
    fresh: bool,
) -> (Vec<LabelledRow>, u64) {
    let steps = labelled_steps(task, level, selection.instances, selection.base_seed);
    let mut left_out = 0;
    let mut rows = Vec::with_capacity(steps.len());
    // The steps of an instance follow each other.
    for of_instance in steps.chunk_by(|left, right| left.id.seed() == right.id.seed()) {
        if fresh && is_in_benchmark(of_instance[0].machine.problem().as_ref()) {
            left_out += 1;
        } else {
            rows.extend(of_instance.iter().map(row));
        }
    }
    (rows, left_out)
}

/// Writes labelled steps as `data/<task>/<level>` below the folder, then the card. Calls `finished`
/// after each task and level. The plan's number of threads has no effect: levels are made in
/// parallel.
///
/// # Errors
/// When a file cannot be written.
pub fn export_labelled_steps(
    folder: &Path,
    tasks: &[&'static dyn AnyTask],
    selection: &Selection,
    plan: ExportPlan,
    finished: &(dyn Fn() + Sync),
) -> Result<Summary, GenerateError> {
    let (mut files, mut summary) = (Vec::new(), Summary::default());
    for task in tasks {
        let data = folder.join("data").join(task.spec().slug);
        fs::create_dir_all(&data).map_err(failed(&data))?;

        let made = std::thread::scope(|scope| {
            let levels = selection.difficulties.iter().map(|level| {
                scope.spawn(move || {
                    let rows = rows(*task, *level, selection, plan.fresh);
                    finished();
                    (*level, rows)
                })
            });
            let levels: Vec<_> = levels.collect();
            let made = levels
                .into_iter()
                .map(|level| level.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)));
            made.collect::<Vec<_>>()
        });

        for (level, (rows, left_out)) in made {
            summary.rows += rows.len() as u64;
            summary.of_benchmark += left_out;
            if rows.is_empty() {
                summary.exhausted.push(format!("{}/{}", task.spec().slug, level.name()));
                continue;
            }
            let path = data.join(format!("{}.{}", level.name(), plan.format.extension()));
            files.push(write_rows(&rows, columns, plan.format, &path)?);
        }
    }

    let data = description_of(&files);
    write_card(folder, &card(&STEPS, tasks, selection, plan.format, &data, &summary))?;
    Ok(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::export::Format;
    use prime_bench::tasks::find;
    use serde_json::Value;

    #[test]
    fn each_row_says_what_is_wrong_with_the_line() {
        let folder = tempfile::tempdir().expect("a folder");
        let tasks = [find("n-queens").expect("a task")];
        let selection =
            Selection { difficulties: vec![Difficulty::Easy], instances: 4, base_seed: 42 };
        let plan = ExportPlan { format: Format::JsonLines, threads: 1, fresh: true };
        let summary =
            export_labelled_steps(folder.path(), &tasks, &selection, plan, &|| {}).expect("files");
        // A base seed of the benchmark, whose instances are all its own.
        assert_eq!((summary.rows, summary.of_benchmark), (0, 4));

        let plan = ExportPlan { fresh: false, ..plan };
        let summary =
            export_labelled_steps(folder.path(), &tasks, &selection, plan, &|| {}).expect("files");
        let text = fs::read_to_string(folder.path().join("data/n-queens/easy.jsonl")).expect("it");
        let rows: Vec<Value> =
            text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!(rows.len() as u64, summary.rows);

        let of = |origin: &str| rows.iter().filter(|row| row["origin"] == origin).count();
        assert_eq!(of("reference"), 4);
        for row in &rows {
            let is_right = row["label"] == "right";
            assert_eq!(is_right, row["origin"] == "reference", "{row}");
            assert_eq!(is_right, row["error"] == "", "{row}");
            assert_eq!(is_right, row["violations"] == "", "{row}");
            assert_eq!(row["error"] == "format", row["after"] == "", "{row}");
            assert_eq!((&row["task"], &row["difficulty"]), (&"n-queens".into(), &"easy".into()));
        }

        let card = fs::read_to_string(folder.path().join("README.md")).expect("a card");
        for part in ["# PRIME-Bench labelled steps", "| `violations` |", "data/n-queens/easy.jsonl"]
        {
            assert!(card.contains(part), "{part}: {card}");
        }
    }

    #[test]
    fn parquet_has_the_columns_of_the_rows() {
        let row = row(&labelled_steps(find("sudoku").expect("a task"), Difficulty::Easy, 1, 42)[0]);
        let value = serde_json::to_value(&row).expect("it serialises");
        let mut names: Vec<_> = columns(&[row]).iter().map(|column| column.name).collect();
        let mut fields: Vec<_> = value.as_object().expect("an object").keys().collect();
        names.sort_unstable();
        fields.sort_unstable();
        assert_eq!(names, fields);
    }
}
