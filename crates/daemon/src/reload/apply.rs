//! Puts new settings in force while the daemon serves, and reports what changed.

use std::collections::BTreeMap;

use actix_web::web;
use serde::Serialize;
use serde_json::{Map, Value};
use tokio::sync::{mpsc, oneshot};
use utoipa::ToSchema;

use prime_service::app::environment_of_the_process;
use prime_service::runs::{Runs, Schedules};
use prime_service::webhooks::Webhooks;
use prime_settings::{Server, Settings};

/// Keys and whole sections whose changes apply to new runs at once. All others apply from the next
/// start.
const AT_ONCE: [&str; 26] = [
    "agents",
    "definitions",
    "engines",
    "journal.clock_trust_hours",
    "journal.idempotency_days",
    "journal.key_bytes_max",
    "journal.prompts",
    "journal.retention_bytes",
    "journal.retention_days",
    "log.level",
    "presets",
    "queue",
    "run",
    "runtime",
    "schedules",
    "server.allow_*",
    "server.import_bytes_max",
    "server.key_cost_per_day_max",
    "server.key_open_runs_max",
    "server.key_waiting_runs_max",
    "server.queue_max",
    "server.reports",
    "server.stuck_ms",
    "tasks",
    "uploads",
    "webhooks",
];

/// New settings to apply, and where to send the result.
pub struct Reload {
    /// The new settings, already checked.
    pub settings: Settings,
    /// Where the result goes; the error says why the settings were not applied.
    pub reply: oneshot::Sender<Result<Reloaded, String>>,
}

/// A request to read the configuration again, and where to send the result.
pub struct ReloadRequest {
    /// Where the result goes; the error says why the configuration cannot be read or applied.
    pub reply: oneshot::Sender<Result<Reloaded, String>>,
}

/// The channels of a daemon whose configuration can be reloaded.
pub struct Reloads {
    /// Settings to apply.
    pub settings: mpsc::Receiver<Reload>,
    /// Where the daemon requests a reload; `None` where nothing can be reloaded.
    pub requests: Option<mpsc::Sender<ReloadRequest>>,
}

/// The result of a reload.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, ToSchema)]
pub struct Reloaded {
    /// The hash of the settings of new runs that do not override any.
    pub config_hash: String,
    /// Changes that apply to new runs: dotted keys of the configuration; definitions as
    /// `definitions.ROLE.NAME`, templates as `definitions.templates.FILE`, adapters whose files
    /// have a new content as `adapters.FILE`.
    pub taken: Vec<String>,
    /// Changes since the daemon was started that apply from its next start.
    pub at_next_start: Vec<String>,
    /// Effects of the new configuration that may be unwanted: uploaded tasks that configured ones
    /// hide.
    pub warnings: Vec<String>,
}

/// Applies new settings to new runs. The server itself stays as it was `started`.
///
/// # Errors
/// When an engine or an agent cannot be made; then nothing has changed.
pub async fn apply(
    runs: &Runs,
    started: &Settings,
    settings: Settings,
) -> Result<Reloaded, String> {
    let app = runs.app();
    let (before, after) = (all(app.settings()), all(&settings));

    let adapters = app.adapter_digests().clone();

    let config_hash = settings.hash();
    // The limits of the keys change together with the keys: at the next start.
    let server = Server { keys: started.server.keys.clone(), ..settings.server.clone() };
    let settings = Settings { server, ..settings };

    let system = actix::System::current();
    // A model may have to be loaded.
    let made = web::block(move || {
        actix::System::set_current(system);
        // The new ones are checked first, because a new engine would take long.
        let webhooks = Webhooks::new(&settings.webhooks, &*environment_of_the_process());
        let webhooks = webhooks.map_err(|error| error.to_string())?;
        let app = app.with_settings(settings).map_err(|error| error.to_string())?;
        let schedules = Schedules::of(app.settings()).map_err(|error| error.to_string())?;
        Ok::<_, String>((app, webhooks, schedules))
    });
    let made = made.await.map_err(|error| error.to_string())?;
    let (made, webhooks, schedules) = made?;
    let exchanged = exchanged(&adapters, made.adapter_digests());
    runs.replace(made);
    runs.use_webhooks(webhooks);
    runs.use_schedules(schedules);

    let changed_keys = changed(&before, &after).into_iter().filter(|key| counts_at_once(key));
    let taken = changed_keys.chain(exchanged).collect();
    let at_next_start =
        changed(&all(started), &after).into_iter().filter(|key| !counts_at_once(key)).collect();
    let warnings = hidden_tasks(runs).await;
    Ok(Reloaded { config_hash, taken, at_next_start, warnings })
}

/// The uploaded tasks that configured ones hide, which the log names, too.
pub async fn hidden_tasks(runs: &Runs) -> Vec<String> {
    let hidden = runs.hidden_tasks().await.unwrap_or_else(|error| {
        vec![format!("uploaded tasks that configured ones may hide cannot be read: {error}")]
    });
    for sentence in &hidden {
        tracing::warn!("{sentence}");
    }
    hidden
}

/// The adapters whose files have another content than before.
fn exchanged(before: &BTreeMap<String, String>, after: &BTreeMap<String, String>) -> Vec<String> {
    let is_other = |path: &&String| before.get(*path).is_some_and(|known| *known != after[*path]);
    after.keys().filter(is_other).map(|path| format!("adapters.{path}")).collect()
}

/// The settings with their definitions, as JSON.
fn all(settings: &Settings) -> Value {
    let value =
        |value: Result<Value, serde_json::Error>| value.expect("invariant: settings serialise");
    let definitions = &settings.definitions;
    let mut all = value(serde_json::to_value(settings));
    all["definitions"] = Value::Object(Map::from_iter([
        ("executor".to_owned(), value(serde_json::to_value(&definitions.executors))),
        ("verifier".to_owned(), value(serde_json::to_value(&definitions.verifiers))),
        ("coordinator".to_owned(), value(serde_json::to_value(&definitions.coordinators))),
        ("templates".to_owned(), value(serde_json::to_value(&definitions.templates))),
    ]));
    all
}

/// The dotted keys in which two tables differ, sorted. A definition counts as one value.
fn changed(one: &Value, other: &Value) -> Vec<String> {
    fn walk(key: &str, one: &Value, other: &Value, found: &mut Vec<String>) {
        if one == other {
            return;
        }
        let is_definition = key.starts_with("definitions.") && key.matches('.').count() == 2;
        let (Value::Object(ones), Value::Object(others), false) = (one, other, is_definition)
        else {
            found.push(key.to_owned());
            return;
        };

        let mut names: Vec<_> = ones.keys().chain(others.keys()).collect();
        names.sort();
        names.dedup();
        for name in names {
            let below = if key.is_empty() { name.clone() } else { format!("{key}.{name}") };
            let value = |table: &Map<String, Value>| table.get(name).cloned().unwrap_or_default();
            walk(&below, &value(ones), &value(others), found);
        }
    }

    let mut found = Vec::new();
    walk("", one, other, &mut found);
    found
}

fn counts_at_once(key: &str) -> bool {
    AT_ONCE.iter().any(|known| match known.strip_suffix('*') {
        Some(start) => key.starts_with(start),
        None => {
            key.strip_prefix(known).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(sets: &[&str]) -> Settings {
        let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
        Settings::load(&[], std::iter::empty(), &sets).unwrap()
    }

    #[test]
    fn what_has_changed_is_named_and_when_it_counts() {
        let cases: [(&[&str], &[&str], &[&str]); 8] = [
            (&[], &[], &[]),
            (&["run.fanout=7", "run.budget.steps=9"], &["run.budget.steps", "run.fanout"], &[]),
            (
                &["agents.split.role=verifier", "agents.split.other=strict"],
                &["agents.split.other", "agents.split.role"],
                &[],
            ),
            (&["server.queue_max=5", "server.burst=99"], &["server.queue_max"], &["server.burst"]),
            (&["presets.quick.fanout=1"], &["presets.quick"], &[]),
            (
                &["tasks.jugs.command=[\"jugs\"]", "uploads.key_tasks_max=3"],
                &["tasks.jugs", "uploads.key_tasks_max"],
                &[],
            ),
            (
                &["server.reports=\"pages\"", "server.streams_max=3"],
                &["server.reports"],
                &["server.streams_max"],
            ),
            (
                &["journal.retention_days=3", "journal.path=x.sqlite"],
                &["journal.retention_days"],
                &["journal.path"],
            ),
        ];

        let owned = |keys: &[&str]| keys.iter().map(|key| (*key).to_owned()).collect::<Vec<_>>();
        let before = all(&Settings::default());

        for (sets, at_once, later) in cases {
            let (now, then): (Vec<_>, Vec<_>) = changed(&before, &all(&settings(sets)))
                .into_iter()
                .partition(|key| counts_at_once(key));
            assert_eq!((now, then), (owned(at_once), owned(later)), "{sets:?}");
        }
    }

    #[test]
    fn a_definition_is_named_as_a_whole() {
        let mut other = Settings::default();
        let strict = other.definitions.verifiers.get_mut("strict").unwrap();
        strict.options.kinds = prime_bench::tasks::CheckedKinds::Sound;
        other.definitions.templates.remove("executor/step.j2");

        let found = changed(&all(&Settings::default()), &all(&other));
        assert_eq!(
            found,
            ["definitions.templates.executor/step.j2", "definitions.verifier.strict"]
        );
        assert!(found.iter().all(|key| counts_at_once(key)));
    }

    #[test]
    fn every_entry_of_the_list_is_a_key() {
        let all = all(&settings(&["presets.quick.fanout=1"]));
        for entry in AT_ONCE.iter().filter(|entry| !entry.ends_with('*')) {
            assert!(
                !all.pointer(&format!("/{}", entry.replace('.', "/")))
                    .unwrap_or(&Value::Null)
                    .is_null(),
                "{entry}"
            );
        }
    }
}
