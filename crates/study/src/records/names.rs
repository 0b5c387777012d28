//! The names that the columns of a record may hold.

use prime_bench::judge::ErrorType;
use prime_bench::tasks::{Category, Difficulty, Kind, find};

use super::record::{GIVEN, Record, SEVERITIES, severity_name};

impl Record {
    /// The first text that is not among the names allowed in its column, with the column.
    pub(super) fn unknown_name(&self) -> Option<(&'static str, String)> {
        let (is_level, is_task, is_category) = if self.is_own() {
            let is_category = self.category == Category::Own.name();
            (
                self.difficulty == GIVEN,
                find(&self.task).is_err() && is_name(&self.task),
                is_category,
            )
        } else {
            (
                self.difficulty.parse::<Difficulty>().is_ok(),
                find(&self.task).is_ok(),
                self.category.parse::<Category>().is_ok(),
            )
        };
        let names = [
            ("difficulty", is_level, &self.difficulty),
            ("task", is_task, &self.task),
            ("category", is_category, &self.category),
        ];
        if let Some((column, _, name)) = names.into_iter().find(|(_, is_known, _)| !is_known) {
            return Some((column, name.clone()));
        }

        let kinds = self.checked_kinds.split(',').filter(|kind| !kind.is_empty());
        if let Some(kind) = kinds.into_iter().find(|kind| kind.parse::<Kind>().is_err()) {
            return Some(("checked_kinds", kind.to_owned()));
        }

        let is_error = |name: &str| ErrorType::ALL.iter().any(|error| error.name() == name);
        if let Some(name) = self.first_error_type.as_ref().filter(|name| !is_error(name)) {
            return Some(("first_error_type", name.clone()));
        }

        let is_severity =
            |name: &str| SEVERITIES.iter().any(|severity| severity_name(*severity) == name);
        let severity = self.severity.as_ref().filter(|name| !is_severity(name));
        severity.map(|name| ("severity", name.clone()))
    }
}

/// True if a user's task can have this name.
fn is_name(name: &str) -> bool {
    let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    (1..=64).contains(&name.len()) && name.chars().all(is_plain)
}
