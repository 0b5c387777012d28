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
    /// A file; `near` suggests another one of the same folder, or is empty.
    #[error("{}: {reason}{near}", path.display())]
    File { path: PathBuf, reason: io::Error, near: String },
    /// Text that is not TOML or not a study; the reason has line and column.
    #[error("{origin}: {reason}")]
    Syntax { origin: String, reason: String },
    #[error("{}", problems.iter().map(|problem| format!("{origin}: {problem}")).collect::<Vec<_>>().join("\n"))]
    Invalid { origin: String, problems: Vec<String> },
}

/// Reads and checks a study file of the benchmark's tasks, and of those that it sets itself. Files
/// that it names are relative to its folder.
///
/// # Errors
/// If it cannot be read or is not a study. All problems of its values are reported at once.
pub fn load(path: &Path) -> Result<Study, StudyError> {
    load_with(path, &[])
}

/// As [`load`], where the configuration has tasks of these names.
///
/// # Errors
/// As [`load`].
pub fn load_with(path: &Path, configured: &[String]) -> Result<Study, StudyError> {
    let text = fs::read_to_string(path).map_err(|reason| {
        let near = if reason.kind() == io::ErrorKind::NotFound {
            similar_file(path)
        } else {
            String::new()
        };
        StudyError::File { path: path.to_owned(), reason, near }
    })?;

    let mut study = parse_with(&text, &path.display().to_string(), configured)?;

    let folder = path.parent().unwrap_or(Path::new(""));
    for system in &mut study.systems {
        if let Source::Answers(answers) = &mut system.source {
            *answers = folder.join(&answers);
        }
    }

    Ok(study)
}

/// A suggestion of the file in the same folder whose name is most like the missing one's.
fn similar_file(path: &Path) -> String {
    let Some(name) = path.file_name().map(|name| name.to_string_lossy()) else {
        return String::new();
    };

    let folder =
        path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let Ok(entries) = fs::read_dir(folder) else { return String::new() };

    let names: Vec<_> =
        entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
    did_you_mean(&name, names.iter().map(String::as_str))
}

/// Checks the text of a study file; `origin` names it in messages.
///
/// # Errors
/// As [`load`].
pub fn parse(text: &str, origin: &str) -> Result<Study, StudyError> {
    parse_with(text, origin, &[])
}

fn parse_with(text: &str, origin: &str, configured: &[String]) -> Result<Study, StudyError> {
    let file: StudyFile = toml::from_str(text).map_err(|error| {
        let message = error.to_string();
        StudyError::Syntax {
            origin: origin.to_owned(),
            reason: message.trim_end().to_owned() + &suggestion(&message),
        }
    })?;

    Study::new(&file, configured)
        .map_err(|problems| StudyError::Invalid { origin: origin.to_owned(), problems })
}

/// A suggestion of the name most like the unknown one, among the names that serde expected.
fn suggestion(message: &str) -> String {
    let Some((_, rest)) = message.split_once("unknown field ") else { return String::new() };
    // Names are quoted in backticks: first the unknown one, then the expected ones.
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(unknown) = names.next() else { return String::new() };
    did_you_mean(unknown, names)
}
