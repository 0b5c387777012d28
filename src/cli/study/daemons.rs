//! `--url`: systems of a study as the requests that daemons take.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use reqwest::header::HeaderValue;
use serde_json::{Map, Value, json};

use crate::cli::remote::{given, key};
use crate::evaluation::study::{Contestant, DaemonSystem, Daemons, StudySystem};
use prime_study::definition::{Source, Study, System};
use prime_study::records::Provenance;

const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Limit on the time until a response is complete.
const TIMEOUT: Duration = Duration::from_mins(1);

#[derive(Args)]
pub struct DaemonArguments {
    /// A daemon that carries out the runs, as http://HOST:PORT; repeatable. Its configuration
    /// applies, except for what a request can change. Its key is read from PRIME_API_KEY
    #[arg(long = "url", value_name = "URL")]
    urls: Vec<String>,
    /// How long runs wait while no daemon answers, before they count as not measured
    #[arg(long, value_name = "SECONDS", default_value_t = 120, requires = "urls")]
    patience: u64,
}

impl DaemonArguments {
    pub fn is_given(&self) -> bool {
        !self.urls.is_empty()
    }

    /// A client of the daemons.
    ///
    /// # Errors
    /// If a URL or the key of the environment cannot be used.
    pub fn daemons(&self) -> anyhow::Result<Arc<Daemons>> {
        let urls = self.urls.iter().map(|url| given(url)).collect::<anyhow::Result<Vec<_>>>()?;
        let http = prime_http_client::builder(false)
            .connect_timeout(CONNECT_TIMEOUT)
            .timeout(TIMEOUT)
            .build()?;
        let authorization =
            key()?.map(|key| HeaderValue::from_str(&format!("Bearer {key}"))).transpose()?;
        Ok(Arc::new(Daemons::new(http, urls, authorization, Duration::from_secs(self.patience))))
    }
}

/// Options of the configuration that a request has under other names.
const FIELDS: [(&str, &str); 13] = [
    ("run.strategy", "strategy"),
    ("run.vote", "vote"),
    ("run.speculate", "speculate"),
    ("run.fanout", "fanout"),
    ("run.max_rounds", "max_rounds"),
    ("run.temperature", "temperature"),
    ("run.top_p", "top_p"),
    ("run.budget.steps", "budget.steps"),
    ("run.budget.tokens", "budget.tokens"),
    ("run.budget.wall_ms", "budget.wall_ms"),
    ("agents.executor.implementation", "agents.executor"),
    ("agents.verifier.implementation", "agents.verifier"),
    ("agents.coordinator.implementation", "agents.coordinator"),
];

/// The fields of a system's requests.
///
/// # Errors
/// If the system sets what no request can say.
pub fn fields(study: &Study, system: &System) -> anyhow::Result<Map<String, Value>> {
    let mut fields = Map::new();
    if let Source::Run { preset: Some(preset) } = &system.source {
        fields.insert("preset".to_owned(), json!(preset));
    }

    let limits = [
        ("wall_ms", study.budget.wall_ms),
        ("tokens", study.budget.tokens),
        ("steps", study.budget.steps),
    ];
    let limits = limits
        .into_iter()
        .filter_map(|(name, limit)| Some(format!("run.budget.{name}={}", limit?)));

    for set in limits.chain(study.sets.iter().cloned()).chain(system.sets.iter().cloned()) {
        let (key, text) = set.split_once('=').context("an option without a value")?;
        let Some((_, field)) = FIELDS.into_iter().find(|(known, _)| *known == key) else {
            bail!(
                "system `{}`: a daemon's request cannot set `{key}`: put it into the daemon's \
                 configuration or a preset there, or run the study without --url",
                system.name
            );
        };
        // As with `--set`, what is not JSON is a string.
        let value = serde_json::from_str(text).unwrap_or_else(|_| json!(text));

        match field.split_once('.') {
            None => fields.insert(field.to_owned(), value),
            Some((section, name)) => {
                let section = fields.entry(section).or_insert_with(|| json!({}));
                section.as_object_mut().context("a section")?.insert(name.to_owned(), value)
            }
        };
    }
    Ok(fields)
}

/// A system whose runs daemons carry out. Verifier, configuration and models of its records are
/// those that the daemon reports.
///
/// # Errors
/// Like [`fields`].
pub fn contestant(
    study: &Study,
    system: &System,
    daemons: &Arc<Daemons>,
    version: &str,
) -> anyhow::Result<Contestant> {
    let provenance = Provenance {
        version: version.to_owned(),
        verifier: "none".to_owned(),
        ..Provenance::default()
    };

    let fields = fields(study, system)?;
    Ok(Contestant {
        system: StudySystem::Daemon(DaemonSystem { daemons: Arc::clone(daemons), fields }),
        provenance,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_study::definition::parse;

    fn study(system: &str) -> Study {
        parse(
            &format!(
                "[study]\nname = \"x\"\n[budget]\nwall_ms = 5\n[[system]]\nname = \"a\"\n{system}"
            ),
            "x",
        )
        .unwrap()
    }

    #[test]
    fn systems_become_requests() {
        let study = study(
            "verifier = \"none\"\npreset = \"fast\"\n\
             set = { \"run.fanout\" = 8, \"run.temperature\" = 0.0 }",
        );
        let fields = fields(&study, &study.systems[0]).unwrap();
        let expected = json!({
            "preset": "fast", "budget": {"wall_ms": 5}, "agents": {"verifier": "none"},
            "fanout": 8, "temperature": 0.0,
        });
        assert_eq!(Value::Object(fields), expected);
    }

    #[test]
    fn what_no_request_can_say_is_refused() {
        let study = study("set = { \"run.tau_soft\" = 0.1 }");
        let error = fields(&study, &study.systems[0]).unwrap_err().to_string();
        assert!(
            error.contains("system `a`")
                && error.contains("`run.tau_soft`")
                && error.contains("--url"),
            "{error}"
        );
    }
}
