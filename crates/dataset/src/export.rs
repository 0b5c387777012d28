//! Exports for dataset tools: a file for each task and level, with prompts, as JSON Lines or
//! Parquet, and a dataset card.

use std::fs;
use std::io::{self, Write};
use std::path::Path;

use serde::Serialize;
use sha2::{Digest as _, Sha256};

use super::files::{Content, Whole};
use super::generate::GenerateError;
use super::table::{Column, write_parquet};
use prime_bench::dataset::Selection;
use prime_bench::tasks::inputs::is_in_benchmark;
use prime_bench::tasks::{AnyTask, InstanceId, Problem};

/// File formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// One JSON object a line, compressed with Zstandard if the file's name ends in `.zst`.
    JsonLines,
    /// Parquet, compressed with Zstandard.
    Parquet,
}

impl Format {
    pub(super) fn extension(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

/// One row. `input` and `answer` are JSON texts, because their shapes differ from task to task.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The instance: `<task>/<difficulty>/<index>`.
    pub id: String,
    /// The slug of the task.
    pub task: &'static str,
    /// The number of the task in the benchmark.
    pub task_id: i32,
    /// The category of the task.
    pub category: String,
    /// The level of the instance.
    pub difficulty: &'static str,
    /// The index of the instance within its level, from 0.
    pub index: i32,
    /// The seed that the instance was made from.
    pub seed: i64,
    /// The prompt.
    pub prompt: String,
    /// The input, as JSON.
    pub input: String,
    /// The answer of the reference algorithm, as JSON.
    pub answer: String,
    /// Steps of the reference algorithm.
    pub steps: i64,
}

/// Renders the prompt of an instance.
pub type Prompt<'p> = &'p (dyn Fn(&dyn Problem) -> String + Sync);

/// The row of an instance; `None` if only fresh inputs are wanted and the benchmark has this one.
fn row(id: &InstanceId, prompt: Prompt<'_>, fresh: bool) -> Option<Row> {
    let spec = id.task.spec();
    let problem = id.problem();
    if fresh && is_in_benchmark(problem.as_ref()) {
        return None;
    }
    let reference = problem.reference();
    // The columns are signed.
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);

    Some(Row {
        id: id.to_string(),
        task: spec.slug,
        task_id: i32::from(spec.id),
        category: spec.category.name().to_owned(),
        difficulty: id.difficulty.name(),
        index: i32::try_from(id.index).unwrap_or(i32::MAX),
        seed: signed(id.seed()),
        prompt: prompt(problem.as_ref()),
        input: problem.input().to_string(),
        answer: reference.answer.to_string(),
        steps: signed(reference.steps),
    })
}

/// What an export holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Rows in all files together.
    pub rows: u64,
    /// Instances that are left out because the benchmark has their inputs.
    pub of_benchmark: u64,
    /// Tasks and levels without a row; they have no file.
    pub exhausted: Vec<String>,
}

fn columns(rows: &[Row]) -> Vec<Column> {
    let texts = |name, of: fn(&Row) -> &str| Column::texts(name, rows.iter().map(of));
    vec![
        texts("id", |row| &row.id),
        texts("task", |row| row.task),
        Column::small("task_id", rows.iter().map(|row| row.task_id)),
        texts("category", |row| &row.category),
        texts("difficulty", |row| row.difficulty),
        Column::small("index", rows.iter().map(|row| row.index)),
        Column::large("seed", rows.iter().map(|row| row.seed)),
        texts("prompt", |row| &row.prompt),
        texts("input", |row| &row.input),
        texts("answer", |row| &row.answer),
        Column::large("steps", rows.iter().map(|row| row.steps)),
    ]
}

fn write_json_lines<R: Serialize>(rows: &[R], out: &mut Whole) -> io::Result<()> {
    rows.iter().try_for_each(|row| {
        serde_json::to_writer(&mut *out, row)?;
        out.write_all(b"\n")
    })
}

/// Writes rows under their final name, or none of them.
pub(super) fn write_rows<R: Serialize>(
    rows: &[R],
    columns: impl FnOnce(&[R]) -> Vec<Column>,
    format: Format,
    path: &Path,
) -> Result<Content, GenerateError> {
    let written = Whole::create(path).and_then(|mut file| {
        match format {
            Format::JsonLines => write_json_lines(rows, &mut file),
            Format::Parquet => write_parquet(&columns(rows), &mut file),
        }?;
        file.finish()
    });
    written.map_err(failed(path))
}

/// The error of a file that could not be written.
pub(super) fn failed(path: &Path) -> impl FnOnce(io::Error) -> GenerateError + use<> {
    let path = path.display().to_string();
    |error| GenerateError::File(path, error)
}

/// The words of a dataset card.
pub(super) struct CardWords<'w> {
    pub name: &'w str,
    /// Kinds of tasks, in the words of dataset cards.
    pub categories: &'w str,
    pub columns: &'w str,
}

/// The words of an export of whole instances.
const INSTANCES: CardWords<'static> = CardWords {
    name: "PRIME-Bench",
    categories: "text-generation",
    columns: "Columns: `id`, `task`, `task_id`, `category`, `difficulty`, `index`, `seed`, `prompt`, \
              `input` and `answer` (JSON texts), `steps` (actions of the reference trace).\n",
};

/// Writes the dataset card, last, because its text depends on the content of all files.
pub(super) fn write_card(folder: &Path, card: &str) -> Result<(), GenerateError> {
    let path = folder.join("README.md");
    let stored = Whole::create(&path).and_then(|mut file| {
        file.write_all(card.as_bytes())?;
        file.finish()
    });
    stored.map(drop).map_err(failed(&path))
}

/// The dataset card, which maps files to splits: a configuration for each task with a split for
/// each level, and one with all tasks, the default. Hugging Face's `datasets` reads it.
pub(super) fn card(
    words: &CardWords<'_>,
    tasks: &[&'static dyn AnyTask],
    selection: &Selection,
    format: Format,
    data: &str,
    summary: &Summary,
) -> String {
    let extension = format.extension();
    let is_there = |task: &dyn AnyTask, level: &str| {
        !summary.exhausted.contains(&format!("{}/{level}", task.spec().slug))
    };

    let levels: Vec<_> = selection.difficulties.iter().map(|level| level.name()).collect();
    let mut card = format!(
        "---\npretty_name: {}\nlicense: apache-2.0\ntask_categories:\n- {}\n",
        words.name, words.categories
    );

    card += &format!("size_categories:\n- {}\nconfigs:\n", size_category(summary.rows));
    // Files are named one by one: files of another export into the same folder are not part of this
    // data set.
    let mut config = |name: &str, note: &str, of: &[&'static dyn AnyTask]| {
        let files = |level: &str| -> Vec<String> {
            of.iter()
                .filter(|task| is_there(**task, level))
                .map(|task| format!("    - data/{}/{level}.{extension}\n", task.spec().slug))
                .collect()
        };
        let splits: Vec<_> = levels
            .iter()
            .map(|level| (level, files(level)))
            .filter(|(_, files)| !files.is_empty())
            .collect();
        if splits.is_empty() {
            return;
        }

        card += &format!("- config_name: {name}\n  description: {data}\n{note}  data_files:\n");
        for (level, files) in splits {
            card += &format!("  - split: {level}\n    path:\n{}", files.concat());
        }
    };

    config("all", "  default: true\n", tasks);
    for task in tasks {
        config(task.spec().slug, "", &[*task]);
    }

    card += &format!(
        "---\n\n# {}\n\nMade by `prime-agents bench export` (version {}), base seed {}, {} instances of each \
         task at each level ({}), less {} whose inputs the benchmark has.\n\n`load_dataset(DIR, \"bubble-sort\", split=\"easy\")` opens one task at one level, \
         `load_dataset(DIR, split=\"easy\")` all tasks.\n\n{}",
        words.name,
        env!("CARGO_PKG_VERSION"),
        selection.base_seed,
        selection.instances,
        levels.join(", "),
        summary.of_benchmark,
        words.columns,
    );
    card
}

/// The card's description of its files, which changes with them: `datasets` caches a local folder
/// by its name and its card, and would otherwise show old rows, or rows of another folder.
pub(crate) fn description_of<'f>(files: impl IntoIterator<Item = &'f Content>) -> String {
    let mut all = Sha256::new();
    files.into_iter().for_each(|file| all.update(&file.sha256));
    format!("data {:.16}", format!("{:x}", all.finalize()))
}

/// The size of a data set in the words of dataset cards.
pub(crate) fn size_category(rows: u64) -> &'static str {
    match rows {
        0..1_000 => "n<1K",
        1_000..10_000 => "1K<n<10K",
        10_000..100_000 => "10K<n<100K",
        100_000..1_000_000 => "100K<n<1M",
        _ => "1M<n<10M",
    }
}

/// How a data set is written.
#[derive(Clone, Copy)]
pub struct ExportPlan {
    /// The file format.
    pub format: Format,
    /// Threads that make rows; at least 1.
    pub threads: usize,
    /// Leaves out instances whose inputs the benchmark has.
    pub fresh: bool,
}

/// Writes `data/<task>/<level>` below the folder, then the card. Calls `finished` after each
/// instance.
///
/// # Errors
/// When a file cannot be written.
pub fn export(
    folder: &Path,
    tasks: &[&'static dyn AnyTask],
    selection: &Selection,
    plan: ExportPlan,
    prompt: Prompt<'_>,
    finished: &(dyn Fn() + Sync),
) -> Result<Summary, GenerateError> {
    let ExportPlan { format, threads, fresh } = plan;
    let (mut files, mut summary) = (Vec::new(), Summary::default());
    for task in tasks {
        let data = folder.join("data").join(task.spec().slug);
        fs::create_dir_all(&data).map_err(failed(&data))?;

        for difficulty in &selection.difficulties {
            let path = data.join(format!("{}.{}", difficulty.name(), format.extension()));
            let level = Selection { difficulties: vec![*difficulty], ..selection.clone() };
            let rows = rows(&level.of(*task), threads, prompt, fresh, finished);

            let count = rows.len() as u64;
            summary.rows += count;
            summary.of_benchmark += level.per_task() - count;
            if rows.is_empty() {
                summary.exhausted.push(format!("{}/{}", task.spec().slug, difficulty.name()));
                continue;
            }

            files.push(write_rows(&rows, columns, format, &path)?);
        }
    }

    let data = description_of(&files);
    write_card(folder, &card(&INSTANCES, tasks, selection, format, &data, &summary))?;
    Ok(summary)
}

/// The rows of one task: a few megabytes.
fn rows(
    ids: &[InstanceId],
    threads: usize,
    prompt: Prompt<'_>,
    fresh: bool,
    finished: &(dyn Fn() + Sync),
) -> Vec<Row> {
    let mut rows: Vec<Option<Row>> = vec![None; ids.len()];
    // Consecutive shares: each thread fills its own part of the rows, without a lock.
    let share = ids.len().div_ceil(threads.max(1)).max(1);

    std::thread::scope(|scope| {
        for (ids, rows) in ids.chunks(share).zip(rows.chunks_mut(share)) {
            scope.spawn(move || {
                for (id, place) in ids.iter().zip(rows) {
                    *place = row(id, prompt, fresh);
                    finished();
                }
            });
        }
    });

    rows.into_iter().flatten().collect()
}
