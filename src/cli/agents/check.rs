//! `agents check`: finds mistakes that loading a configuration does not: renders the templates for
//! every task, looks for the models, and starts the programs.

use std::collections::{BTreeMap, BTreeSet};
use std::process::ExitCode;
use std::sync::Arc;

use serde_json::json;
use tokio::runtime::Builder;

use super::{OfRole, with_role};
use crate::cli::output::{Output, count, note, print, print_json};
use prime_agent_set::llm::from_settings;
use prime_agent_set::process::ProcessPool;
use prime_bench::tasks::Problem;
use prime_problems::Custom;
use prime_protocol::Role;
use prime_service::app::{check_chat_templates, model_source};
use prime_settings::{BUILT_IN, Program, RoleOptions, Settings};

/// The templates of a role's agents, each with the first agent that uses it.
struct Asked<'a>(&'a Settings);

impl OfRole for Asked<'_> {
    type Out = BTreeMap<String, String>;

    fn of<A: RoleOptions>(&self) -> Self::Out {
        let mut asked = BTreeMap::new();
        for name in self.0.agent_names(A::ROLE) {
            let Some(options) = self.0.agent::<A>(&name) else { continue };
            for template in options.templates() {
                asked.entry(template).or_insert_with(|| name.clone());
            }
        }
        asked
    }
}

/// Problems of clients, one of each form.
fn clients() -> Vec<Arc<dyn Problem>> {
    let stepwise = json!({"statement": "s", "steps": "stepwise", "constraints": [
        {"name": "polite", "severity": "major", "text": "Be polite."}]});
    let single = json!({"statement": "s", "answer": {"pattern": "[0-9]+"}});
    let read = |problem| Custom::read(problem).expect("invariant: a valid problem").problem();
    [stepwise, single].iter().map(read).collect()
}

/// Starts a process of each program that the configured agents run, and waits for its handshake;
/// each has a deadline (`start_timeout_ms`). The programs end before this returns.
///
/// # Errors
/// When no event loop can be made.
pub fn handshakes(settings: &Settings) -> anyhow::Result<Vec<(String, Result<(), String>)>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut answered = Vec::new();
    for ((role, name), program) in settings.programs_needed() {
        // One process shows as much as several.
        let program = Program { processes: 1, ..program };
        let answer = match ProcessPool::start(role, &name, &program) {
            Ok(pool) => runtime.block_on(pool.ready()).map_err(|error| error.reason),
            Err(error) => Err(error.to_string()),
        };
        answered.push((format!("program of the {role} `{name}`"), answer));
    }
    Ok(answered)
}

pub fn check(settings: &Settings, output: Output) -> anyhow::Result<ExitCode> {
    let mut findings = Vec::new();
    let mut tried = 0;
    match from_settings::templates(settings) {
        Err(error) => findings.push(error.to_string()),
        Ok(templates) => {
            let clients = clients();
            for role in Role::ALL {
                for (template, agent) in with_role(role, &Asked(settings)) {
                    tried += 1;
                    if let Err(error) = templates.check(&template, role, &BTreeMap::new(), &clients)
                    {
                        findings.push(format!("{role} `{agent}`: {error}"));
                    }
                }
            }
        }
    }

    let used: BTreeSet<_> = Role::ALL
        .into_iter()
        .flat_map(|role| with_role(role, &Asked(settings)).into_keys())
        .collect();
    let unused = settings.definitions.templates.iter().filter(|(name, template)| {
        template.origin != BUILT_IN && !used.contains(*name) && !name.ends_with("/problem.j2")
    });
    for (name, template) in unused {
        note!("note: no agent uses the template {name} ({})", template.origin);
    }

    let mut models = Vec::new();
    for name in settings.engines_needed() {
        let engine = settings
            .engines
            .get(&name)
            .expect("invariant: validated settings name existing engines");
        match model_source(&name, engine) {
            Ok(source) => models.push(format!("engine {name}: {source}")),
            Err(error) => findings.push(error.to_string()),
        }
    }

    for (engine, checked) in check_chat_templates(settings) {
        match checked {
            Ok(()) => models.push(format!("engine {engine}: its chat template can be rendered")),
            Err(error) => findings.push(error.to_string()),
        }
    }

    let mut programs = Vec::new();
    for (what, answer) in handshakes(settings)? {
        match answer {
            Ok(()) => programs.push(format!("{what}: answers the handshake")),
            Err(reason) => findings.push(format!("{what}: {reason}")),
        }
    }

    let definitions: usize =
        Role::ALL.into_iter().map(|role| settings.definitions.names(role).len()).sum();
    if output == Output::Json {
        print_json(&json!({
            "valid": findings.is_empty(),
            "findings": findings,
            "definitions": definitions,
            "templates": tried,
            "models": models,
            "programs": programs,
            "hash": settings.hash(),
        }))?;
        return Ok(ExitCode::from(u8::from(!findings.is_empty())));
    }

    if findings.is_empty() {
        let (definitions, templates) =
            (count(definitions as u64, "definition"), count(tried, "template"));
        print(format_args!(
            "{definitions} valid, {templates} usable on every task; the configuration's hash is {}
",
            settings.hash()
        ))?;
        for line in models.iter().chain(&programs) {
            print(format_args!("{line}\n"))?;
        }
        return Ok(ExitCode::SUCCESS);
    }

    findings.iter().for_each(|finding| note!("error: {finding}"));
    Ok(ExitCode::FAILURE)
}
