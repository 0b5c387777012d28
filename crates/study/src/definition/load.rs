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
    /// A file that cannot be read.
    #[error("{}: {reason}{near}", path.display())]
    File {
        /// The file, as given.
        path: PathBuf,
        /// The system's message.
        reason: io::Error,
        /// A suggestion, ready to follow the message; or empty.
        near: String,
    },
    /// Text that is not TOML or not a study; the reason has line and column.
    #[error("{origin}: {reason}")]
    Syntax {
        /// The file, or what stands for it in messages.
        origin: String,
        /// The parser's message.
        reason: String,
    },
    /// A study that is well-formed but cannot be run: every problem of its values.
    #[error("{}", problems.iter().map(|problem| format!("{origin}: {problem}")).collect::<Vec<_>>().join("\n"))]
    Invalid {
        /// The file, or what stands for it in messages.
        origin: String,
        /// What is wrong with which key, one message for each problem.
        problems: Vec<String>,
    },
}

/// Reads and checks a study file that asks benchmark tasks, or tasks that it defines itself. Files
/// that it names are relative to its folder.
///
/// # Errors
/// If it cannot be read or is not a study. All problems of its values are reported at once.
pub fn load(path: &Path) -> Result<Study, StudyError> {
    load_with(path, &[])
}

/// Like [`load`], for a configuration that defines tasks with these names.
///
/// # Errors
/// Like [`load`].
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

/// Suggests the file of the same folder whose name is most similar to the missing one's.
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
/// Like [`load`].
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

/// Suggests, among the names that serde expected, the one most similar to the unknown name.
fn suggestion(message: &str) -> String {
    let Some((_, rest)) = message.split_once("unknown field ") else { return String::new() };
    // Names are quoted in backticks: first the unknown one, then the expected ones.
    let mut names = rest.split('`').skip(1).step_by(2);
    let Some(unknown) = names.next() else { return String::new() };
    did_you_mean(unknown, names)
}
