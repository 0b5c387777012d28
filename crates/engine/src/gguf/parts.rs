//! A model that is split into several files, `NAME-00001-of-00003.gguf` and so on, as llama.cpp's
//! `gguf-split` writes them.

use std::path::{Path, PathBuf};

use super::{EngineError, Header, read_file};

/// Key of the number of files.
pub(super) const COUNT_KEY: &str = "split.count";
/// Key of the number of this file, from 0.
const NUMBER_KEY: &str = "split.no";
/// Key of the number of tensors in all files together.
const TENSORS_KEY: &str = "split.tensors.count";

/// Most files of a model: the numbers in names have five digits.
const PARTS_MAX: u64 = 99_999;

/// The files of a model, of which `path` is one: itself, or all parts by the pattern of its name.
/// Opens nothing.
pub fn part_paths(path: &Path) -> Vec<PathBuf> {
    let parts = named(path).map(|(prefix, _, count)| paths(path, &prefix, count));
    parts.unwrap_or_else(|| vec![path.to_owned()])
}

/// The parts of a file name: the text before the number, the number from 1, and the count.
fn named(path: &Path) -> Option<(String, u64, u64)> {
    let name = path.file_name()?.to_str()?.strip_suffix(".gguf")?;
    let (rest, count) = name.rsplit_once("-of-")?;
    let (prefix, number) = rest.rsplit_once('-')?;
    let of_five = |digits: &str| {
        let is_number = digits.len() == 5 && digits.bytes().all(|byte| byte.is_ascii_digit());
        is_number.then(|| digits.parse::<u64>().ok())?
    };
    let (number, count) = (of_five(number)?, of_five(count)?);
    (1..=count).contains(&number).then(|| (prefix.to_owned(), number, count))
}

fn paths(path: &Path, prefix: &str, count: u64) -> Vec<PathBuf> {
    let of = |part: u64| path.with_file_name(format!("{prefix}-{part:05}-of-{count:05}.gguf"));
    (1..=count).map(of).collect()
}

/// The header of all parts, of which `path` with `header` is one: the metadata of the first, and
/// the tensors of all.
pub(super) fn read(path: &Path, header: &Header, count: u64) -> Result<Header, EngineError> {
    let damaged =
        |path: &Path, detail: String| EngineError::ModelTruncated { path: path.to_owned(), detail };

    let number = header.number(NUMBER_KEY).map_or(0, |number| number.saturating_add(1));
    let name = named(path).filter(|(_, named, of)| (*named, *of) == (number, count));
    let Some((prefix, ..)) = name.filter(|_| count <= PARTS_MAX) else {
        return Err(damaged(
            path,
            format!(
                "it is part {number} of a model of {count} files, and its name does not end in \
                 -{number:05}-of-{count:05}.gguf, by which the others are found: give all parts \
                 the names that they had"
            ),
        ));
    };

    let parts = paths(path, &prefix, count);
    let mut whole = Header::default();
    for (part, own) in (1..).zip(&parts) {
        let read = if own == path { Ok(header.clone()) } else { read_file(own) };
        let next = read.map_err(|error| match error {
            EngineError::ModelMissing { path: missing, detail } => EngineError::ModelMissing {
                path: missing,
                detail: format!("{detail}; it is part {part} of {count} of the model"),
            },
            other => other,
        })?;
        if next.number(NUMBER_KEY) != Some(part - 1) || next.number(COUNT_KEY) != Some(count) {
            let detail =
                format!("by its name it is part {part} of {count}, by its header it is not");
            return Err(damaged(own, detail));
        }
        if part == 1 {
            whole = next;
        } else {
            whole.tensors.extend(next.tensors);
        }
    }

    let found = whole.tensors.len() as u64;
    if let Some(claimed) = whole.number(TENSORS_KEY).filter(|claimed| *claimed != found) {
        let detail = format!("its {count} parts have {found} tensors together, not {claimed}");
        return Err(damaged(&parts[0], detail));
    }
    whole.parts = parts;
    Ok(whole)
}

#[cfg(test)]
mod tests {
    use prime_engine_testing::TinyModel;

    use super::*;
    use crate::gguf::read;

    #[test]
    fn any_part_stands_for_the_whole_model() {
        let folder = tempfile::tempdir().unwrap();
        let whole = folder.path().join("whole.gguf");
        TinyModel::default().write(&whole).unwrap();
        let whole = read(&whole).unwrap();
        let parts = TinyModel::default().write_split(folder.path(), "tiny", 3).unwrap();

        for part in &parts {
            let header = read(part).unwrap();
            assert_eq!(header.parts, parts);
            assert_eq!(header.first_part(part), parts[0]);
            assert_eq!(header.architecture, "llama");
            let bytes = |header: &Header| -> u64 { header.tensors.iter().map(|t| t.bytes).sum() };
            assert_eq!((header.tensors.len(), bytes(&header)), (21, bytes(&whole)));
            assert_eq!(part_paths(part), parts);
        }
    }

    #[test]
    fn a_missing_part_and_a_wrong_name_are_named() {
        let folder = tempfile::tempdir().unwrap();
        let parts = TinyModel::default().write_split(folder.path(), "tiny", 3).unwrap();

        let renamed = folder.path().join("tiny.gguf");
        std::fs::copy(&parts[1], &renamed).unwrap();
        let error = read(&renamed).unwrap_err().to_string();
        assert!(error.contains("part 2 of a model of 3 files"), "{error}");
        assert!(error.contains("-00002-of-00003.gguf"), "{error}");

        std::fs::copy(&parts[0], &parts[2]).unwrap();
        let error = read(&parts[0]).unwrap_err().to_string();
        assert!(error.contains("by its name it is part 3 of 3"), "{error}");

        std::fs::remove_file(&parts[1]).unwrap();
        let error = read(&parts[0]).unwrap_err().to_string();
        assert!(error.contains("tiny-00002-of-00003.gguf"), "{error}");
        assert!(error.contains("part 2 of 3 of the model"), "{error}");
    }

    #[test]
    fn names_without_the_pattern_are_single_files() {
        for name in ["model.gguf", "a-of-b.gguf", "x-00004-of-00003.gguf", "x-1-of-3.gguf"] {
            assert_eq!(part_paths(Path::new(name)), [Path::new(name)], "{name}");
        }
    }
}
