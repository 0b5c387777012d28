//! One entry of `schedules`, and the check that its times come.

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::api_key::ApiKey;
use super::cron::Cron;
use super::error::SettingsError;

/// Runs at times of the clock (`docs/queues.md`).
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
pub struct Schedule {
    /// The times, as five fields of crontab: minute, hour, day of the month, month, day of the
    /// week, such as `0 6 * * 1-5`.
    #[schemars(extend("format" = "words"))]
    pub cron: String,
    /// The time zone of `cron`, a name of the IANA database such as `Europe/Berlin`. Default:
    /// `UTC`.
    pub timezone: Timezone,
    /// The run, as the body of `POST /v1/runs`: a JSON object.
    #[schemars(extend("format" = "json-object"))]
    pub request: String,
    /// What becomes of a time at which no daemon ran: `skip` (nothing) or `once` (one run for all
    /// times that were missed, as soon as a daemon runs). Default: `skip`.
    pub missed: Missed,
    /// The name of the API key to which the runs belong (`server.keys`), and whose limits apply.
    /// Omitted = none of them.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", extend("format" = "name"))]
    pub key: Option<String>,
}

/// The name of a time zone.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Timezone(pub String);

impl Default for Timezone {
    fn default() -> Self {
        Self("UTC".to_owned())
    }
}

/// What becomes of times at which no daemon ran.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Missed {
    /// Nothing.
    #[default]
    Skip,
    /// One run for all of them.
    Once,
}

impl Schedule {
    /// Its times.
    ///
    /// # Errors
    /// The key that is wrong, and why, as a clause.
    pub fn times(&self) -> Result<Cron, (&'static str, String)> {
        Cron::new(&self.cron, &self.timezone.0)
    }
}

/// Checks that the times of each schedule come, and that it names one of these keys.
pub(super) fn check_schedules(
    schedules: &BTreeMap<String, Schedule>,
    keys: &[ApiKey],
    conflict: &dyn Fn(&[&str], String) -> SettingsError,
) -> Result<(), SettingsError> {
    for (name, schedule) in schedules {
        let wrong = |key: &str, reason: String| {
            let message = format!("`schedules.{name}.{key}` {reason}");
            Err(conflict(&["schedules", name, key], message))
        };
        if let Err((key, reason)) = schedule.times() {
            return wrong(key, reason);
        }
        if schedule.request.is_empty() {
            let example = r#"request = '{"task": "n-queens", "index": 3}'"#;
            return wrong("request", format!("is missing; set it to a run, as in `{example}`"));
        }
        if let Some(key) = &schedule.key
            && !keys.iter().any(|known| known.name == *key)
        {
            return wrong("key", format!("is \"{key}\", but `server.keys` has no such name"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Settings;

    fn load(text: &str) -> Result<Settings, String> {
        let sets = [format!("schedules.nightly={{{text}}}")];
        Settings::load(&[], std::iter::empty(), &sets).map_err(|error| error.to_string())
    }

    const REQUEST: &str = r#"request='{"task": "n-queens"}'"#;

    #[test]
    fn omitted_options_have_defaults() {
        let settings = load(&format!("cron=\"0 6 * * 1-5\", {REQUEST}")).unwrap();
        let nightly = &settings.schedules["nightly"];
        assert_eq!((nightly.timezone.0.as_str(), nightly.missed), ("UTC", Missed::Skip));
        assert_eq!(nightly.key, None);
    }

    #[test]
    fn a_schedule_that_cannot_be_kept_is_refused_with_its_place_and_the_reason() {
        for (text, part) in [
            (
                "cron=\"0 0 31 2 *\"",
                "`schedules.nightly.cron` is \"0 0 31 2 *\", which never comes",
            ),
            ("cron=\"0 0 30 2 *\"", "which never comes"),
            ("cron=\"0 0 31 4,6,9,11 *\"", "which never comes"),
            ("cron=\"\"", "`schedules.nightly.cron` is missing"),
            ("cron=\"0 6 * *\"", "has 4 fields, but needs 5"),
            ("cron=\"0 0 6 * * *\"", "has 6 fields, but needs 5"),
            ("cron=\"@daily\"", "has 1 field, but needs 5"),
            ("cron=\"60 6 * * *\"", "must be in range 0..=59; found 60"),
            ("cron=\"0 6 L * *\"", "`L`"),
            ("cron=\"0 6 15W * *\"", "`15W`"),
            ("cron=\"0 6 * * 5#3\"", "`5#3`"),
            ("cron=\"*/0 6 * * *\"", "schedules.nightly.cron"),
            ("cron=\"0 6 * * *\", timezone=\"Europe/Atlantis\"", "`schedules.nightly.timezone`"),
            ("cron=\"0 6 * * *\", timezone=\"UTC UTC\"", "`schedules.nightly.timezone`"),
            ("cron=\"0 6 * * *\", missed=\"all\"", "names `all`"),
            ("cron=\"0 6 * * *\", key=\"ada\"", "`server.keys` has no such name"),
        ] {
            let message = load(&format!("{text}, {REQUEST}")).unwrap_err();
            assert!(message.contains(part), "{text}: {message}");
        }
        let message = load("cron=\"0 6 * * *\"").unwrap_err();
        assert!(message.contains("`schedules.nightly.request` is missing"), "{message}");
        let message = load("cron=\"0 6 * * *\", request=\"n-queens\"").unwrap_err();
        assert!(message.contains("schedules.nightly.request"), "{message}");
    }

    #[test]
    fn the_line_of_a_file_is_named() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("mine.toml");
        let text = format!("[schedules.nightly]\n{REQUEST}\ncron = \"0 0 31 2 *\"\n");
        std::fs::write(&file, text).unwrap();

        let error = Settings::load(&[file], std::iter::empty(), &[]).unwrap_err().to_string();
        assert!(error.contains("mine.toml:3: "), "{error}");
    }
}
