//! The folder of a data set: an empty one, or one whose former data set is removed first. Files of
//! two data sets in one folder would be read as one.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// The folder of a data set's files, below that of the data set.
const DATA: &str = "data";
/// Its card.
const CARD: &str = "README.md";
/// Endings of the files of data.
const EXTENSIONS: [&str; 2] = ["parquet", "jsonl"];

/// Why a folder cannot take a data set.
#[derive(Debug, thiserror::Error)]
pub enum PlaceError {
    /// The folder has files.
    #[error(
        "{}: the folder is not empty: name a new one, or replace the data set in it with --force",
        .0.display()
    )]
    NotEmpty(PathBuf),
    /// Something could not be read or removed.
    #[error("{}: {reason}", path.display())]
    File {
        /// The file or folder.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
    },
}

/// Makes sure that a folder has no file of a former data set; it need not exist. `replaces` removes
/// the card and the files below `data` that end in .parquet or .jsonl, and leaves all others.
///
/// # Errors
/// When the folder has files and `replaces` is false, or something cannot be read or removed.
pub fn prepare(folder: &Path, replaces: bool) -> Result<(), PlaceError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |reason| PlaceError::File { path, reason }
    };

    let mut entries = match fs::read_dir(folder) {
        Ok(entries) => entries,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(failed(folder)(error)),
    };
    if entries.next().is_none() {
        return Ok(());
    }
    if !replaces {
        return Err(PlaceError::NotEmpty(folder.to_owned()));
    }

    // The card goes first: without it, what is left is not a data set.
    let card = folder.join(CARD);
    if card.is_file() {
        fs::remove_file(&card).map_err(failed(&card))?;
    }
    clear(&folder.join(DATA), 1)
}

/// Removes the files of data in a folder, and in those below it down to `depth` more levels.
fn clear(folder: &Path, depth: usize) -> Result<(), PlaceError> {
    let failed = |path: &Path| {
        let path = path.to_owned();
        |reason| PlaceError::File { path, reason }
    };
    if !folder.is_dir() {
        return Ok(());
    }

    for entry in fs::read_dir(folder).map_err(failed(folder))? {
        let path = entry.map_err(failed(folder))?.path();
        let is_data = path.extension().is_some_and(|own| EXTENSIONS.iter().any(|one| own == *one));
        if path.is_dir() && depth > 0 {
            clear(&path, depth - 1)?;
            // Only an empty folder can be removed; one with other files stays.
            drop(fs::remove_dir(&path));
        } else if is_data {
            fs::remove_file(&path).map_err(failed(&path))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_takes_one_data_set() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(&path, "x").unwrap();
            path
        };
        prepare(folder.path(), false).expect("empty");
        prepare(&folder.path().join("new"), false).expect("not there yet");

        let former =
            [file("README.md"), file("data/bubble-sort.parquet"), file("data/n-queens/easy.jsonl")];
        let own = [file("notes.txt"), file("data/notes.txt"), file("other/a.parquet")];
        let refused = prepare(folder.path(), false).unwrap_err().to_string();
        assert!(refused.contains("not empty") && refused.contains("--force"), "{refused}");
        assert!(former.iter().all(|path| path.is_file()), "nothing is removed unasked");

        prepare(folder.path(), true).expect("cleared");
        assert!(former.iter().all(|path| !path.exists()));
        assert!(own.iter().all(|path| path.is_file()), "what is not a data set's stays");
    }
}
