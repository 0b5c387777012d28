//! Puts the records of several makers together, after checking that they can be what they say.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;

use prime_printable::printable_line;
use serde_json::Value;

use super::read::{ReadError, read};
use super::record::{Key, Record};
use crate::results::Instance;

/// Columns that are named where two records of one run differ.
const COLUMNS_NAMED: usize = 4;

/// A file of records to merge.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Part {
    /// What its systems are called after, as `NAME: SYSTEM`; nothing keeps their names.
    pub name: Option<String>,
    /// The file.
    pub path: PathBuf,
}

/// Records of several files.
#[derive(Debug, Default)]
pub struct Merged {
    /// One record for each run, in the order of the files.
    pub records: Vec<Record>,
    /// Measured runs whose instance was made again and whose answer was judged again.
    pub checked: usize,
    /// Measured runs of users' own tasks, which cannot be made again from a record.
    pub unchecked: usize,
    /// Records that a file before had already, word for word.
    pub repeated: usize,
    /// Versions of the programs that made the runs.
    pub versions: BTreeSet<String>,
    /// Systems whose runs were made with several configurations.
    pub reconfigured: BTreeSet<String>,
}

/// Why records cannot be merged.
#[derive(Debug, thiserror::Error)]
pub enum MergeError {
    /// A file is not one of records.
    #[error(transparent)]
    Read(#[from] ReadError),
    /// The record is not one of the benchmark's instance that it names.
    #[error("{}, line {line}: {key}: {what}", path.display())]
    Benchmark {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The run.
        key: Box<Key>,
        /// What the benchmark contradicts.
        what: String,
    },
    /// A run was measured twice, with different results.
    #[error(
        "{}, line {line}: {key} is in {} too, with another {columns}: leave one of the files out, or \
         tell their systems apart (NAME={})",
        path.display(), first.display(), path.display()
    )]
    Contradiction {
        /// The file.
        path: PathBuf,
        /// The line, from 1.
        line: usize,
        /// The run.
        key: Box<Key>,
        /// The file that had it before.
        first: PathBuf,
        /// Columns that differ.
        columns: String,
    },
    /// The runs of one system were not made by one system.
    #[error(transparent)]
    Mixed(Box<MixedSystem>),
}

/// Runs of one system that were not made by one system.
#[derive(Debug, thiserror::Error)]
#[error(
    "{}, line {line}: `{system}` has {column} `{found}` here and `{before}` in {}: these are two \
     systems; tell them apart (NAME={}), or leave the runs of one out",
    path.display(), first.display(), path.display()
)]
pub struct MixedSystem {
    /// The file.
    path: PathBuf,
    /// The line, from 1.
    line: usize,
    system: String,
    /// The column that differs.
    column: &'static str,
    /// Its value in this record.
    found: String,
    /// Its value in the records before.
    before: String,
    /// The file of those.
    first: PathBuf,
}

/// Where a record stands.
#[derive(Clone, Copy)]
struct Origin<'p> {
    part: &'p Part,
    line: usize,
}

/// What made the runs of a system, and the file that said so first.
struct Maker<'p> {
    model_digest: Option<String>,
    verifier: String,
    config_hash: String,
    first: &'p Part,
}

/// The models of a digest by name, each with its SHA-256; a served model has none.
fn models(digest: &str) -> BTreeMap<&str, &str> {
    let mut models = BTreeMap::new();
    for part in digest.split(", ") {
        let named = part.split_once(' ').filter(|(_, sha)| is_sha256(sha));
        let (name, sha) = named.unwrap_or((part, ""));
        models.insert(name, sha);
    }
    models
}

fn is_sha256(word: &str) -> bool {
    word.len() == 64 && word.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// True if two records can be of the same models: they have models in common, and none of these
/// has changed. A study names the engines of all its systems, whichever one a system asks.
fn are_same_models(one: Option<&str>, other: Option<&str>) -> bool {
    let (Some(one), Some(other)) = (one, other) else { return one == other };
    let (one, other) = (models(one), models(other));
    let mut common = one.iter().filter_map(|(name, sha)| Some((sha, other.get(name)?))).peekable();
    common.peek().is_some() && common.all(|(sha, other)| sha == other)
}

/// Hexadecimal digits of a digest that are shown.
const DIGITS_SHOWN: usize = 12;

/// A model digest for people: each name, with the first digits of its SHA-256.
pub(crate) fn short_digest(digest: Option<&str>) -> String {
    let shorter = |word: &str| {
        let (word, comma) = word.strip_suffix(',').map_or((word, ""), |word| (word, ","));
        let shown = if is_sha256(word) { &word[..DIGITS_SHOWN] } else { word };
        format!("{shown}{comma}")
    };
    let words: Vec<_> = digest.unwrap_or("none").split(' ').map(shorter).collect();
    printable_line(&words.join(" ")).into_owned()
}

#[derive(Default)]
struct Merging<'p> {
    merged: Merged,
    origins: Vec<Origin<'p>>,
    places: BTreeMap<Key, usize>,
    systems: BTreeMap<String, Maker<'p>>,
}

impl<'p> Merging<'p> {
    fn add(&mut self, record: Record, origin: Origin<'p>) -> Result<(), MergeError> {
        self.check_maker(&record, origin)?;

        match self.places.entry(record.key()) {
            Entry::Vacant(place) => {
                place.insert(self.origins.len());
                self.merged.records.push(record);
                self.origins.push(origin);
            }
            Entry::Occupied(place) => {
                let place = *place.get();
                let before = &mut self.merged.records[place];
                if *before == record || !record.is_measured() {
                    self.merged.repeated += 1;
                } else if before.is_measured() {
                    return Err(MergeError::Contradiction {
                        path: origin.part.path.clone(),
                        line: origin.line,
                        key: Box::new(record.key()),
                        first: self.origins[place].part.path.clone(),
                        columns: different(before, &record),
                    });
                } else {
                    *before = record;
                    self.origins[place] = origin;
                }
            }
        }
        Ok(())
    }

    /// Refuses a record whose system was another model, or had another verifier, in a record before.
    fn check_maker(&mut self, record: &Record, origin: Origin<'p>) -> Result<(), MergeError> {
        let before = self.systems.entry(record.system.clone()).or_insert_with(|| Maker {
            model_digest: record.model_digest.clone(),
            verifier: record.verifier.clone(),
            config_hash: record.config_hash.clone(),
            first: origin.part,
        });

        let first = before.first;
        let mixed = |column, found: String, before: String| {
            MergeError::Mixed(Box::new(MixedSystem {
                path: origin.part.path.clone(),
                line: origin.line,
                system: record.system.clone(),
                column,
                found,
                before,
                first: first.path.clone(),
            }))
        };
        if !are_same_models(before.model_digest.as_deref(), record.model_digest.as_deref()) {
            let shown = [&record.model_digest, &before.model_digest]
                .map(|digest| short_digest(digest.as_deref()));
            let [found, before] = shown;
            return Err(mixed("model_digest", found, before));
        }
        if before.verifier != record.verifier {
            return Err(mixed("verifier", record.verifier.clone(), before.verifier.clone()));
        }
        // Another number of threads is another configuration, too.
        if before.config_hash != record.config_hash {
            self.merged.reconfigured.insert(record.system.clone());
        }
        Ok(())
    }

    /// Makes each instance of the benchmark once, and judges all runs of it.
    fn check_answers(&mut self) -> Result<(), MergeError> {
        let mut of_instance: BTreeMap<(&str, Instance), Vec<usize>> = BTreeMap::new();
        for (place, record) in self.merged.records.iter().enumerate() {
            if record.is_own() {
                self.merged.unchecked += usize::from(record.is_measured());
            } else {
                let instance = (record.task.as_str(), Instance::of(record));
                of_instance.entry(instance).or_default().push(place);
            }
        }

        for places in of_instance.values() {
            let mut problem = None;
            for place in places {
                let record = &self.merged.records[*place];
                let refused = |what: String| {
                    let Origin { part, line } = self.origins[*place];
                    let (path, key) = (part.path.clone(), Box::new(record.key()));
                    MergeError::Benchmark { path, line, key, what }
                };

                // Each record's own words are checked, even where the instance is made already.
                let instance = record.instance().map_err(refused)?;
                let problem = problem.get_or_insert_with(|| instance.problem());
                if let Some(what) = record.contradicts(problem.as_ref()) {
                    return Err(refused(what));
                }
                self.merged.checked += usize::from(record.is_measured());
            }
        }
        Ok(())
    }
}

/// The columns in which two records differ, the first few by name.
fn different(one: &Record, other: &Record) -> String {
    let fields = |record: &Record| match serde_json::to_value(record) {
        Ok(Value::Object(fields)) => fields,
        _ => unreachable!("a record serialises as an object"),
    };
    let other = fields(other);
    let mut columns: Vec<String> = fields(one)
        .into_iter()
        .filter(|(name, value)| other.get(name) != Some(value))
        .map(|(name, _)| name)
        .collect();

    let more = columns.len().saturating_sub(COLUMNS_NAMED);
    columns.truncate(COLUMNS_NAMED);
    let more = if more > 0 { format!(" and {more} more columns") } else { String::new() };
    columns.join(", ") + &more
}

/// Reads the files, checks every run against the benchmark, and puts them together. A run that is
/// in several files word for word counts once; one that was not measured is replaced by one that
/// was.
///
/// # Errors
/// When a file cannot be read, a record contradicts its instance or another record, or the runs of
/// one system were made from different models, configurations or verifiers.
pub fn merge(parts: &[Part]) -> Result<Merged, MergeError> {
    let mut merging = Merging::default();
    for part in parts {
        let read = read(&part.path)?;
        for (line, mut record) in read.lines.into_iter().zip(read.records) {
            if let Some(name) = &part.name {
                record.system = format!("{name}: {}", record.system);
            }
            merging.merged.versions.insert(record.version.clone());
            merging.add(record, Origin { part, line })?;
        }
    }
    merging.check_answers()?;
    Ok(merging.merged)
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::records::Status;
    use crate::testing::record;

    fn genuine(system: &str, index: u32) -> Record {
        let mut genuine = record(system, "gcd-euclidean", index);
        let problem = genuine.instance().unwrap().problem();
        genuine.set_problem(problem.as_ref());
        genuine.answer = Some(problem.reference().answer.to_string());
        genuine
    }

    fn written(folder: &Path, name: &str, records: &[Record]) -> PathBuf {
        let lines: Vec<_> =
            records.iter().map(|record| serde_json::to_string(record).unwrap() + "\n").collect();
        let path = folder.join(name);
        std::fs::write(&path, lines.concat()).unwrap();
        path
    }

    fn part(path: &Path) -> Part {
        Part { name: None, path: path.to_owned() }
    }

    fn named(name: &str, path: &Path) -> Part {
        Part { name: Some(name.to_owned()), path: path.to_owned() }
    }

    #[test]
    fn a_run_counts_once_and_a_measured_one_instead_of_a_lost_one() {
        let folder = tempfile::tempdir().unwrap();
        let mut lost = genuine("prime", 1);
        lost.status = Status::NotMeasured;
        let first = written(folder.path(), "a.jsonl", &[genuine("prime", 0), lost]);
        let second = written(
            folder.path(),
            "b.jsonl",
            &[genuine("prime", 0), genuine("prime", 1), genuine("prime", 2)],
        );

        for parts in [[part(&first), part(&second)], [part(&second), part(&first)]] {
            let merged = merge(&parts).unwrap();
            let indices: Vec<_> = merged.records.iter().map(|record| record.index).collect();
            assert_eq!(indices, [0, 1, 2]);
            assert!(merged.records.iter().all(Record::is_measured));
            assert_eq!((merged.checked, merged.unchecked), (3, 0));
        }
    }

    #[test]
    fn results_that_contradict_each_other_are_refused_unless_their_systems_are_told_apart() {
        let folder = tempfile::tempdir().unwrap();
        let first = written(folder.path(), "a.jsonl", &[genuine("prime", 0)]);
        let other = Record { proposals: 7, steps: 5, ..genuine("prime", 0) };
        let second = written(folder.path(), "b.jsonl", &[other]);

        let error = merge(&[part(&first), part(&second)]).unwrap_err().to_string();
        for expected in ["b.jsonl, line 1: prime on", "a.jsonl too", "steps, proposals", "NAME="] {
            assert!(error.contains(expected), "{expected:?} in {error:?}");
        }

        let merged = merge(&[part(&first), named("mine", &second)]).unwrap();
        let systems: Vec<_> = merged.records.iter().map(|record| &*record.system).collect();
        assert_eq!(systems, ["prime", "mine: prime"]);
    }

    #[test]
    fn a_system_of_two_models_is_two_systems() {
        let folder = tempfile::tempdir().unwrap();
        let other = Record { model_digest: Some("sha256:2".to_owned()), ..genuine("prime", 1) };
        let path = written(folder.path(), "a.jsonl", &[genuine("prime", 0), other]);

        let error = merge(&[part(&path)]).unwrap_err().to_string();
        for expected in ["line 2", "`prime`", "model_digest `sha256:2`", "`sha256:1`"] {
            assert!(error.contains(expected), "{expected:?} in {error:?}");
        }
    }

    #[test]
    fn another_configuration_of_a_system_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let other = Record { config_hash: "def".to_owned(), ..genuine("prime", 1) };
        let path = written(folder.path(), "a.jsonl", &[genuine("prime", 0), other]);

        let merged = merge(&[part(&path)]).unwrap();
        assert_eq!(merged.reconfigured.into_iter().collect::<Vec<_>>(), ["prime"]);
    }

    #[test]
    fn models_are_the_same_if_those_in_common_are() {
        let (a, b) = ("ab".repeat(32), "cd".repeat(32));
        let two = format!("small {a}, large {b}");
        for (one, other, expected) in [
            (Some(two.clone()), Some(format!("small {a}")), true),
            (Some(two.clone()), Some(format!("small {b}")), false),
            (Some(two.clone()), Some(format!("other {a}")), false),
            (Some("gpt-x".to_owned()), Some("gpt-x".to_owned()), true),
            (Some("gpt-x".to_owned()), Some("gpt-y".to_owned()), false),
            (None, None, true),
            (Some(two), None, false),
        ] {
            let found = are_same_models(one.as_deref(), other.as_deref());
            assert_eq!(found, expected, "{one:?} {other:?}");
        }
    }

    #[test]
    fn digests_are_short_and_names_whole() {
        let digest = "ab".repeat(32);
        let long = format!("base {digest}, large {digest}");
        assert_eq!(short_digest(Some(&long)), "base abababababab, large abababababab");
        assert_eq!(short_digest(Some("gpt\u{1b}[2J")), "gpt\\u001b[2J");
        assert_eq!(short_digest(None), "none");
    }

    #[test]
    fn an_answer_that_the_benchmark_judges_otherwise_is_refused_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let lie = Record { answer: Some("{\"gcd\":0}".to_owned()), ..genuine("prime", 1) };
        let path = written(folder.path(), "a.jsonl", &[genuine("prime", 0), lie]);

        let error = merge(&[part(&path)]).unwrap_err().to_string();
        assert!(error.contains("a.jsonl, line 2: prime on gcd-euclidean/easy/001"), "{error}");
        assert!(error.contains("does not accept"), "{error}");
    }
}
