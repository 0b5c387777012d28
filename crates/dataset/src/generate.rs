//! A folder of generated instances: one file per task, and a manifest.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

use super::files::Whole;
use super::ordered;
use prime_bench::dataset::Selection;
use prime_bench::dataset::line::{Extras, write_line};
use prime_bench::tasks::AnyTask;

/// The manifest's file name.
pub const MANIFEST: &str = "manifest.json";

/// The contents of a folder and how they were generated. Listed files are complete; another run
/// keeps them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Manifest {
    /// The version of the program.
    pub version: String,
    /// The levels, instances and base seed.
    #[serde(flatten)]
    pub selection: Selection,
    /// True if the files have the reference traces.
    pub traces: bool,
    /// Steps between two states of a trace that are written; `None`: no states are written.
    pub states_every: Option<u64>,
    /// The complete files, by name.
    pub files: BTreeMap<String, FileRecord>,
}

/// A file of the folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FileRecord {
    /// Instances, one a line.
    pub lines: u64,
    /// Sum of the reference steps of its instances.
    pub steps: u64,
    /// Size before compression.
    pub bytes: u64,
    /// SHA-256 of the lines before compression, hexadecimal.
    pub sha256: String,
}

/// Why a folder could not be filled.
#[derive(Debug, thiserror::Error)]
pub enum GenerateError {
    /// The path of a file that could not be read or written, and the system's message.
    #[error("{0}: {1}")]
    File(String, io::Error),
    /// The path of a file that is not a manifest, and the parser's message.
    #[error("{0}: not a manifest of this program: {1}. Give another folder")]
    Manifest(String, serde_json::Error),
    /// The folder was filled with other settings.
    #[error(
        "{folder}: holds another selection ({there}), not the one asked for ({asked}). Give another folder"
    )]
    Differs {
        /// The folder.
        folder: String,
        /// The settings with which it was filled.
        there: String,
        /// The settings that were asked for.
        asked: String,
    },
}

impl Manifest {
    fn new(selection: Selection, extras: Extras) -> Self {
        Self {
            version: env!("CARGO_PKG_VERSION").to_owned(),
            selection,
            traces: extras.traces,
            states_every: extras.states_every,
            files: BTreeMap::new(),
        }
    }

    /// The settings that must match to resume filling a folder.
    fn terms(&self) -> String {
        let levels: Vec<_> = self.selection.difficulties.iter().map(|level| level.name()).collect();
        format!(
            "version {}, base seed {}, {} instances of {}, traces {}, states every {}",
            self.version,
            self.selection.base_seed,
            self.selection.instances,
            levels.join(", "),
            self.traces,
            self.states_every.map_or("never".to_owned(), |every| every.to_string()),
        )
    }

    fn store(&self, folder: &Path) -> io::Result<()> {
        let mut file = Whole::create(&folder.join(MANIFEST))?;
        serde_json::to_writer_pretty(&mut file, self)?;
        file.write_all(b"\n")?;
        file.finish().map(drop)
    }
}

/// Writes instances as lines, in order, on several threads; returns the sum of their steps. Calls
/// `finished` after each line.
///
/// # Errors
/// When `out` fails.
pub fn write_lines(
    tasks: &[&'static dyn AnyTask],
    selection: &Selection,
    extras: Extras,
    threads: usize,
    out: &mut dyn Write,
    mut finished: impl FnMut(),
) -> io::Result<u64> {
    let ids: Vec<_> = tasks.iter().flat_map(|task| selection.of(*task)).collect();
    let steps = AtomicU64::new(0);
    let produce = |id: &_, out: &mut dyn Write| {
        steps.fetch_add(write_line(id, extras, out)?, Ordering::Relaxed);
        Ok(())
    };

    ordered(&ids, threads, produce, out, |_| finished())?;
    Ok(steps.into_inner())
}

/// Fills a folder with one file per task, `<slug>.jsonl` or `<slug>.jsonl.zst`. Keeps files from an
/// earlier run of the same selection. Calls `finished` with the number of lines done.
///
/// # Errors
/// When the folder cannot be written or was made for another selection.
pub fn fill_folder(
    folder: &Path,
    tasks: &[&'static dyn AnyTask],
    selection: &Selection,
    extras: Extras,
    compressed: bool,
    threads: usize,
    mut finished: impl FnMut(u64),
) -> Result<Manifest, GenerateError> {
    let failed = |path: &Path| {
        let path = path.display().to_string();
        |error| GenerateError::File(path, error)
    };

    fs::create_dir_all(folder).map_err(failed(folder))?;

    let mut manifest = Manifest::new(selection.clone(), extras);
    let path = folder.join(MANIFEST);
    // Another version or selection would mix two data sets in one folder.
    if path.exists() {
        let text = fs::read_to_string(&path).map_err(failed(&path))?;
        let there: Manifest = serde_json::from_str(&text)
            .map_err(|error| GenerateError::Manifest(path.display().to_string(), error))?;
        if there.terms() != manifest.terms() {
            let (there, asked) = (there.terms(), manifest.terms());
            return Err(GenerateError::Differs {
                folder: folder.display().to_string(),
                there,
                asked,
            });
        }
        manifest = there;
    }

    for task in tasks {
        let name = format!("{}.jsonl{}", task.spec().slug, if compressed { ".zst" } else { "" });
        let path = folder.join(&name);
        // Listed means complete: the manifest is stored after the file.
        if manifest.files.contains_key(&name) && path.is_file() {
            finished(selection.per_task());
            continue;
        }

        let mut file = Whole::create(&path).map_err(failed(&path))?;
        let steps = write_lines(&[*task], selection, extras, threads, &mut file, || finished(1));

        let record = steps.and_then(|steps| {
            let content = file.finish()?;
            Ok(FileRecord {
                lines: selection.per_task(),
                steps,
                bytes: content.bytes,
                sha256: content.sha256,
            })
        });

        manifest.files.insert(name, record.map_err(failed(&path))?);
        // After each task, so that an interrupted run repeats one file at most.
        manifest.store(folder).map_err(failed(folder))?;
    }
    Ok(manifest)
}
