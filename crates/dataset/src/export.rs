//! Exports for dataset tools: one split per task, with prompts, as JSON Lines or Parquet, and a dataset card.

use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;
use serde::Serialize;

use super::files::Whole;
use super::generate::GenerateError;
use prime_bench::dataset::Selection;
use prime_bench::tasks::{AnyTask, InstanceId, Problem};

/// File formats of an export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    JsonLines,
    Parquet,
}

impl Format {
    fn extension(self) -> &'static str {
        match self {
            Self::JsonLines => "jsonl",
            Self::Parquet => "parquet",
        }
    }
}

/// One row. `input` and `answer` are JSON texts, because their shapes differ from task to task.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    pub id: String,
    pub task: &'static str,
    pub task_id: i32,
    pub category: String,
    pub difficulty: &'static str,
    pub index: i32,
    pub seed: i64,
    pub prompt: String,
    pub input: String,
    pub answer: String,
    pub steps: i64,
}

const SCHEMA: &str = "message row {
    required binary id (utf8);
    required binary task (utf8);
    required int32 task_id;
    required binary category (utf8);
    required binary difficulty (utf8);
    required int32 index;
    required int64 seed;
    required binary prompt (utf8);
    required binary input (utf8);
    required binary answer (utf8);
    required int64 steps;
}";

/// Renders the prompt of an instance.
pub type Prompt<'p> = &'p (dyn Fn(&dyn Problem) -> String + Sync);

fn row(id: &InstanceId, prompt: Prompt<'_>) -> Row {
    let spec = id.task.spec();
    let problem = id.problem();
    let reference = problem.reference();
    let signed = |value: u64| i64::try_from(value).unwrap_or(i64::MAX);
    Row {
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
    }
}

fn texts(
    group: &mut SerializedRowGroupWriter<'_, &mut Whole>,
    rows: &[Row],
    of: impl Fn(&Row) -> &str,
) -> parquet::errors::Result<()> {
    let values: Vec<ByteArray> = rows.iter().map(|row| ByteArray::from(of(row))).collect();
    let mut column = group.next_column()?.expect("invariant: the schema has this column");
    column.typed::<ByteArrayType>().write_batch(&values, None, None)?;
    column.close()
}

fn small(
    group: &mut SerializedRowGroupWriter<'_, &mut Whole>,
    rows: &[Row],
    of: impl Fn(&Row) -> i32,
) -> parquet::errors::Result<()> {
    let values: Vec<i32> = rows.iter().map(of).collect();
    let mut column = group.next_column()?.expect("invariant: the schema has this column");
    column.typed::<Int32Type>().write_batch(&values, None, None)?;
    column.close()
}

fn large(
    group: &mut SerializedRowGroupWriter<'_, &mut Whole>,
    rows: &[Row],
    of: impl Fn(&Row) -> i64,
) -> parquet::errors::Result<()> {
    let values: Vec<i64> = rows.iter().map(of).collect();
    let mut column = group.next_column()?.expect("invariant: the schema has this column");
    column.typed::<Int64Type>().write_batch(&values, None, None)?;
    column.close()
}

fn write_parquet(rows: &[Row], out: &mut Whole) -> parquet::errors::Result<()> {
    let schema = Arc::new(parse_message_type(SCHEMA)?);
    let properties = WriterProperties::builder().set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?)).build();
    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    texts(&mut group, rows, |row| &row.id)?;
    texts(&mut group, rows, |row| row.task)?;
    small(&mut group, rows, |row| row.task_id)?;
    texts(&mut group, rows, |row| &row.category)?;
    texts(&mut group, rows, |row| row.difficulty)?;
    small(&mut group, rows, |row| row.index)?;
    large(&mut group, rows, |row| row.seed)?;
    texts(&mut group, rows, |row| &row.prompt)?;
    texts(&mut group, rows, |row| &row.input)?;
    texts(&mut group, rows, |row| &row.answer)?;
    large(&mut group, rows, |row| row.steps)?;
    group.close()?;
    writer.close().map(drop)
}

fn write_json_lines(rows: &[Row], out: &mut Whole) -> io::Result<()> {
    rows.iter().try_for_each(|row| {
        serde_json::to_writer(&mut *out, row)?;
        out.write_all(b"\n")
    })
}

/// The dataset card, which maps files to splits. Split names have underscores: dataset tools reject hyphens.
fn card(tasks: &[&'static dyn AnyTask], selection: &Selection, format: Format) -> String {
    let mut card = String::from("---\npretty_name: PRIME-Bench\nconfigs:\n- config_name: default\n  data_files:\n");
    for task in tasks {
        let slug = task.spec().slug;
        let split = split_name(slug);
        card += &format!("  - split: {split}\n    path: data/{slug}.{}\n", format.extension());
    }
    let levels: Vec<_> = selection.difficulties.iter().map(|level| level.name()).collect();
    card += &format!(
        "---\n\n# PRIME-Bench\n\nMade by `prime-agents bench export` (version {}), base seed {}, {} instances of each \
         task at each level ({}).\n\nColumns: `id`, `task`, `task_id`, `category`, `difficulty`, `index`, `seed`, \
         `prompt`, `input` and `answer` (JSON texts), `steps` (actions of the reference trace).\n",
        env!("CARGO_PKG_VERSION"),
        selection.base_seed,
        selection.instances,
        levels.join(", "),
    );
    card
}

/// Letters, digits and underscores; the first is not a digit.
fn split_name(slug: &str) -> String {
    let name = slug.replace('-', "_");
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("task_{name}") } else { name }
}

/// Writes one split per task below `folder/data`, and the card. Calls `finished` after each row.
///
/// # Errors
/// When a file cannot be written.
pub fn export(
    folder: &Path,
    tasks: &[&'static dyn AnyTask],
    selection: &Selection,
    format: Format,
    threads: usize,
    prompt: Prompt<'_>,
    finished: &(dyn Fn() + Sync),
) -> Result<(), GenerateError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        |error| GenerateError::File(path, error)
    };
    let data = folder.join("data");
    fs::create_dir_all(&data).map_err(failed(&data))?;
    for task in tasks {
        let path = data.join(format!("{}.{}", task.spec().slug, format.extension()));
        let rows = rows(&selection.of(*task), threads, prompt, finished);
        let mut file = Whole::create(&path).map_err(failed(&path))?;
        let written = match format {
            Format::JsonLines => write_json_lines(&rows, &mut file),
            Format::Parquet => write_parquet(&rows, &mut file).map_err(io::Error::other),
        };
        written.and_then(|()| file.finish().map(drop)).map_err(failed(&path))?;
    }
    let path = folder.join("README.md");
    let stored = Whole::create(&path).and_then(|mut file| {
        file.write_all(card(tasks, selection, format).as_bytes())?;
        file.finish()
    });
    stored.map(drop).map_err(failed(&path))
}

/// The rows of one task: a few megabytes.
fn rows(ids: &[InstanceId], threads: usize, prompt: Prompt<'_>, finished: &(dyn Fn() + Sync)) -> Vec<Row> {
    let mut rows: Vec<Option<Row>> = vec![None; ids.len()];
    let share = ids.len().div_ceil(threads.max(1)).max(1);
    std::thread::scope(|scope| {
        for (ids, rows) in ids.chunks(share).zip(rows.chunks_mut(share)) {
            scope.spawn(move || {
                for (id, place) in ids.iter().zip(rows) {
                    *place = Some(row(id, prompt));
                    finished();
                }
            });
        }
    });
    rows.into_iter().map(|row| row.expect("invariant: every place is filled")).collect()
}
