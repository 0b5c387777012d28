//! Reading a study file.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::check::Study;
use super::file::StudyFile;
use super::system::Source;
use crate::nearest::did_you_mean;

/// Why a study cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StudyError {
    #[error("{}: {reason}", path.display())]
    File { path: PathBuf, reason: io::Error },
    /// With line and column.
    #[error("{origin}: {reason}")]
    Syntax { origin: String, reason: String },
    #[error("{}", problems.iter().map(|problem| format!("{origin}: {problem}")).collect::<Vec<_>>().join("\n"))]
    Invalid { origin: String, problems: Vec<String> },
}

/// Reads and checks a study file. Files that it names are relative to its folder.
///
/// # Errors
/// If it cannot be read, or is no study; all that is wrong with its values is said at once.
pub fn load(path: &Path) -> Result<Study, StudyError> {
    let text = fs::read_to_string(path).map_err(|reason| StudyError::File { path: path.to_owned(), reason })?;
    let mut study = parse(&text, &path.display().to_string())?;
    let folder = path.parent().unwrap_or(Path::new(""));
    for system in &mut study.systems {
        if let Source::Answers(answers) = &mut system.source {
            *answers = folder.join(&answers);
        }
    }
    Ok(study)
}

/// Checks the text of a study file; `origin` names it in messages.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, origin: &str) -> Result<Study, StudyError> {
    let file: StudyFile = toml::from_str(text).map_err(|error| {
        let message = error.to_string();
        StudyError::Syntax { origin: origin.to_owned(), reason: message.trim_end().to_owned() + &suggestion(&message) }
    })?;
    Study::new(&file).map_err(|problems| StudyError::Invalid { origin: origin.to_owned(), problems })
}

/// The nearest of the names that serde expected in place of an unknown one.
fn suggestion(message: &str) -> String {
    let Some((_, rest)) = message.split_once("unknown field ") else { return String::new() };
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(unknown) = names.next() else { return String::new() };
    did_you_mean(unknown, names)
}
