//! Writes the rows: `data/<task>.parquet` below a folder, rows from runs as `data/runs.parquet`,
//! and a card.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use prime_bench::dataset::Selection;
use prime_bench::tasks::inputs::is_in_benchmark;
use prime_bench::tasks::{AnyTask, BASE_SEED, InstanceId};

use super::{Column, Kind, Options, Recorded, dpo, grpo, sft};
use crate::export::{description_of, size_category};
use crate::files::{Content, Whole};
use crate::generate::GenerateError;
use crate::table::write_parquet;

/// What a folder holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Parquet files, one for each task with rows.
    pub files: u64,
    /// Rows in all files together.
    pub rows: u64,
    /// Instances without a row, because their traces are too long or their steps are not taught.
    pub left_out: u64,
    /// Instances without a row, because the benchmark has their inputs.
    pub of_benchmark: u64,
    /// Tasks of which the benchmark has the inputs of all instances asked for.
    pub exhausted: Vec<&'static str>,
}

/// Makes a value for each instance, on several threads, and returns the values in the order of the
/// instances.
fn made<R: Send>(
    ids: &[InstanceId],
    threads: usize,
    finished: &(dyn Fn() + Sync),
    of: impl Fn(&InstanceId) -> R + Sync,
) -> Vec<R> {
    // One at a time from a common counter, because instances differ widely in cost.
    let next = AtomicUsize::new(0);

    let work = || {
        let mut done = Vec::new();
        loop {
            let place = next.fetch_add(1, Ordering::Relaxed);
            let Some(id) = ids.get(place) else { return done };
            done.push((place, of(id)));
            finished();
        }
    };

    let mut rows: Vec<_> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.max(1)).map(|_| scope.spawn(work)).collect();
        let joined = workers.into_iter().map(|worker| worker.join());
        joined
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });
    // Threads finish in any order; files must not depend on it.
    rows.sort_by_key(|(place, _)| *place);
    rows.into_iter().map(|(_, rows)| rows).collect()
}

/// A task's file.
struct Table {
    columns: Vec<Column>,
    rows: u64,
    /// Instances without a row although the benchmark does not have their inputs.
    left_out: u64,
    /// Instances whose inputs the benchmark has.
    of_benchmark: u64,
}

impl Table {
    /// The table of the rows of each instance; `None` for one whose input the benchmark has.
    fn of<R>(rows: Vec<Option<Vec<R>>>, columns: impl Fn(&[R]) -> Vec<Column>) -> Self {
        let of_benchmark = rows.iter().filter(|rows| rows.is_none()).count() as u64;
        let is_empty = |rows: &&Option<Vec<R>>| rows.as_ref().is_some_and(Vec::is_empty);
        let left_out = rows.iter().filter(is_empty).count() as u64;

        let rows: Vec<R> = rows.into_iter().flatten().flatten().collect();
        Self { columns: columns(&rows), rows: rows.len() as u64, left_out, of_benchmark }
    }
}

fn table(
    ids: &[InstanceId],
    options: &Options,
    threads: usize,
    finished: &(dyn Fn() + Sync),
) -> Table {
    fn made_of<R: Send>(
        (ids, options): (&[InstanceId], &Options),
        threads: usize,
        finished: &(dyn Fn() + Sync),
        of: fn(&InstanceId, &Options) -> Vec<R>,
    ) -> Vec<Option<Vec<R>>> {
        made(ids, threads, finished, |id| {
            let is_allowed = options.benchmark_inputs || !is_in_benchmark(id.problem().as_ref());
            is_allowed.then(|| of(id, options))
        })
    }

    let asked = (ids, options);
    match options.kind {
        Kind::Sft => Table::of(made_of(asked, threads, finished, sft::rows), sft::columns),
        Kind::Dpo => Table::of(made_of(asked, threads, finished, dpo::rows), dpo::columns),
        Kind::Grpo => Table::of(made_of(asked, threads, finished, grpo::rows), grpo::columns),
    }
}

/// What a kind is for, and its columns.
fn description(kind: Kind) -> &'static str {
    match kind {
        Kind::Sft => {
            "Reference completions for supervised fine-tuning: `prompt` and `completion` (messages), `style`, `step`. With \
             the style `compact` a row is one step, with a derivation before the action; with the others it is a whole trace \
             and its answer."
        }
        Kind::Dpo => {
            "Preference pairs for single steps: `prompt`, `chosen`, `rejected` (messages), `rejected_v_tenths` (V of the \
             rejected step, in tenths), `chosen_score` and `rejected_score` (what the preference rests on: −V, for RLAIF with \
             the line's share of the proposals), `source` (`reference`, or a run)."
        }
        Kind::Grpo => {
            "Prompts for reinforcement learning. Reward functions find the instance in `task`, `difficulty`, `index`, \
             `base_seed` (TRL), `reward_model.ground_truth` and `extra_info` (verl), `label` (OpenRLHF)."
        }
    }
}

fn card(
    options: &Options,
    selection: &Selection,
    summary: &Summary,
    files: &[(String, Content)],
) -> String {
    let levels: Vec<_> = selection.difficulties.iter().map(|level| level.name()).collect();
    let styles: Vec<_> = options.asks.iter().map(|ask| ask.name()).collect();
    let of_the_benchmark =
        if selection.base_seed == BASE_SEED { ", the benchmark's own" } else { "" };
    let excluded = if options.benchmark_inputs {
        "Inputs that the benchmark has are among them.".to_owned()
    } else {
        format!("{} of them, whose inputs the benchmark has, are left out.", summary.of_benchmark)
    };

    format!(
        "---\npretty_name: PRIME-Bench {kind}\nlicense: apache-2.0\ntask_categories:\n- text-generation\nsize_categories:\n\
         - {size}\nconfigs:\n- config_name: default\n  description: {data}\n  data_files:\n  - split: train\n    path:\n{paths}---\n\n\
         # PRIME-Bench {kind}\n\nMade by `prime-agents data {kind}` (version {version}), base seed {seed}{of_the_benchmark}, {count} \
         instances of each task at each level ({levels}), styles {styles}. {excluded}\n\n{description}\n\n`task`, `difficulty` and `phase` \
         are in every row; `phase` is that of the paper's curriculum in which the level is first seen, from 1.\n",
        kind = options.kind.name(),
        size = size_category(summary.rows),
        data = description_of(files.iter().map(|(_, content)| content)),
        // One by one: files of another export into the same folder are not part of this data set.
        paths = files.iter().map(|(path, _)| ["    - ", path, "\n"].concat()).collect::<String>(),
        version = env!("CARGO_PKG_VERSION"),
        seed = selection.base_seed,
        count = selection.instances,
        levels = levels.join(", "),
        styles = styles.join(", "),
        description = description(options.kind),
    )
}

fn store(path: &Path, columns: &[Column]) -> io::Result<Content> {
    let mut file = Whole::create(path)?;
    write_parquet(columns, &mut file)?;
    file.finish()
}

/// Writes a folder. Tasks without a row get no file. Calls `finished` after each instance.
///
/// # Errors
/// When a file cannot be written.
pub fn write(
    folder: &Path,
    tasks: &[&'static dyn AnyTask],
    selection: &Selection,
    options: &Options,
    recorded: Vec<Recorded>,
    threads: usize,
    finished: &(dyn Fn() + Sync),
) -> Result<Summary, GenerateError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        |error| GenerateError::File(path, error)
    };

    let data = folder.join("data");
    fs::create_dir_all(&data).map_err(failed(&data))?;

    let (mut summary, mut files) = (Summary::default(), Vec::new());
    let mut add = |name: &str, columns: &[Column], rows: u64| {
        if rows > 0 {
            let name = format!("data/{name}.parquet");
            let path = folder.join(&name);
            files.push((name, store(&path, columns).map_err(failed(&path))?));
            summary.files += 1;
            summary.rows += rows;
        }
        Ok::<(), GenerateError>(())
    };

    let (mut left_out, mut of_benchmark, mut exhausted) = (0, 0, Vec::new());
    for task in tasks {
        let slug = task.spec().slug;
        let table = table(&selection.of(*task), options, threads, finished);
        left_out += table.left_out;
        of_benchmark += table.of_benchmark;
        if table.of_benchmark == selection.per_task() {
            exhausted.push(slug);
        }
        add(slug, &table.columns, table.rows)?;
    }

    let pairs: Vec<_> = recorded
        .into_iter()
        .flat_map(|Recorded { run, pairs }| {
            pairs.into_iter().map(move |pair| dpo::row_of(pair, &run))
        })
        .collect();

    let count = pairs.len() as u64;
    add("runs", &dpo::columns(&pairs), count)?;
    (summary.left_out, summary.of_benchmark) = (left_out, of_benchmark);
    summary.exhausted = exhausted;

    let path = folder.join("README.md");
    let stored = Whole::create(&path).and_then(|mut file| {
        file.write_all(card(options, selection, &summary, &files).as_bytes())?;
        file.finish()
    });

    stored.map_err(failed(&path))?;
    Ok(summary)
}
