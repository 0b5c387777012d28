//! Systems of a study, from the configuration.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};

use crate::cli::Configuration;
use crate::cli::own_tasks::check_verifier;
use crate::evaluation::comparison::System as RunningSystem;
use crate::evaluation::study::{
    Contestant, OneShotSystem, Places, RunSystem, Sampled, SamplingSystem, StudySystem,
};
use prime_agent_set::{AgentSet, Resources, configured_names};
use prime_bench::prompts::{Components, Style};
use prime_bench::tasks::Kinds;
use prime_service::app::{planner, run_sampling, runtime_plan};
use prime_settings::{CoordinatorAgent, ExecutorAgent, Preset, Settings, VerifierAgent};
use prime_study::definition::{OneShot, PromptStyle, Select, Source, Study, System};
use prime_study::records::Provenance;

/// The configuration of a system: the user's, the study's kinds, budget and options, the preset,
/// and what the system sets.
pub fn settings(
    study: &Study,
    system: &System,
    configuration: &Configuration,
) -> anyhow::Result<Settings> {
    let mut configuration = configuration.clone();
    let kinds: Vec<String> = study.kinds.iter().map(|kind| format!("\"{kind}\"")).collect();
    configuration.sets.push(format!("agents.verifier.kinds=[{}]", kinds.join(", ")));

    let limits = [
        ("wall_ms", study.budget.wall_ms),
        ("tokens", study.budget.tokens),
        ("steps", study.budget.steps),
    ];
    for (key, limit) in limits {
        configuration.sets.extend(limit.map(|limit| format!("run.budget.{key}={limit}")));
    }

    configuration.sets.extend(study.sets.iter().cloned());
    if let Source::Run { preset: Some(name) } = &system.source {
        // Loaded with the options so far, only to read its preset.
        let configured = configuration.load()?;
        let preset = configured.presets.get(name).with_context(|| {
            let known: Vec<&str> = configured.presets.keys().map(String::as_str).collect();
            format!(
                "system `{}`: there is no preset `{name}` (section `presets`); known: {}",
                system.name,
                known.join(", ")
            )
        })?;
        configuration.sets.extend(preset_sets(preset)?);
    }

    if !matches!(system.source, Source::Run { .. }) {
        // No agent works, so no engine is needed.
        let agents =
            [("executor", "reference"), ("verifier", "none"), ("coordinator", "threshold")];
        configuration
            .sets
            .extend(agents.map(|(role, name)| format!("agents.{role}.implementation={name}")));
    }

    // Last, so that the system's own options win.
    configuration.sets.extend(system.sets.iter().cloned());
    configuration.load().with_context(|| format!("system `{}`", system.name))
}

/// The options of a preset, as `--set` takes them.
fn preset_sets(preset: &Preset) -> anyhow::Result<Vec<String>> {
    let mut sets = Vec::new();
    for (key, value) in toml::Table::try_from(preset)? {
        match (key.as_str(), value) {
            ("executor" | "verifier" | "coordinator", toml::Value::String(name)) => {
                sets.push(format!("agents.{key}.implementation={name}"));
            }
            (_, toml::Value::Table(options)) => {
                sets.extend(
                    options.iter().map(|(option, value)| format!("run.{key}.{option}={value}")),
                );
            }
            (_, toml::Value::String(text)) => sets.push(format!("run.{key}={text}")),
            (_, value) => sets.push(format!("run.{key}={value}")),
        }
    }
    Ok(sets)
}

/// Engines and pools are started once for all systems, by name.
pub fn check_shared(study: &Study, all: &[Settings]) -> anyhow::Result<()> {
    let Some((first, others)) = all.split_first() else { return Ok(()) };
    for (place, settings) in (1..).zip(others) {
        ensure!(
            settings.engines == first.engines
                && settings.pools == first.pools
                && settings.tasks == first.tasks,
            "system `{}` changes `engines`, `pools` or `tasks`, which all systems of a study \
             share: give each model an engine or pool of its own name in the configuration, and let the \
             system choose it (`agents.executor.engine`, `pool`)",
            study.systems[place].name
        );
    }
    Ok(())
}

/// Provenance of a system's records.
fn provenance(
    settings: &Settings,
    verifier: &str,
    kinds: Kinds,
    model: Option<String>,
) -> Provenance {
    Provenance {
        version: env!("CARGO_PKG_VERSION").to_owned(),
        // Set by the build of a release (config/Dockerfile).
        commit: option_env!("PRIME_COMMIT").filter(|commit| !commit.is_empty()).map(str::to_owned),
        config_hash: settings.hash(),
        model_digest: model,
        machine: machine(),
        verifier: verifier.to_owned(),
        kinds: kinds.iter().collect(),
        task_digests: BTreeMap::new(),
        system_place: None,
    }
}

fn machine() -> String {
    let host = prime_loadtest::host_info();
    format!("{}, {} cores", host.processor, host.cores)
}

/// Provenance of a system whose outputs were made elsewhere.
pub fn provenance_of_answers(settings: &Settings) -> Provenance {
    provenance(settings, "none", Kinds::NONE, None)
}

/// The SHA-256 of the models of local engines, each after its engine's name; `None` without any.
fn model_digests(resources: &Resources) -> Option<String> {
    let digests: Vec<String> = resources
        .model_digests
        .iter()
        .map(|(engine, digest)| format!("{engine} {digest}"))
        .collect();
    (!digests.is_empty()).then(|| digests.join(", "))
}

/// How many requests the servers of each pool take at a time, by the pool's name.
#[derive(Default)]
pub struct PoolPlaces(BTreeMap<String, Places>);

impl PoolPlaces {
    fn of(&mut self, pool: &str, settings: &Settings) -> Places {
        let upstreams = settings.pools.get(pool).map_or(&[][..], |pool| &pool.upstreams);
        let total =
            upstreams.iter().map(|upstream| upstream.concurrent_max).fold(0, u32::saturating_add);
        self.0.entry(pool.to_owned()).or_insert_with(|| Places::new(total)).clone()
    }
}

/// The pools that the configured agents ask, each once, in order of their names.
fn pools_asked(settings: &Settings) -> BTreeSet<String> {
    let mut pools = BTreeSet::new();
    settings.walk_configured::<ExecutorAgent>(&mut |_, agent| {
        pools.extend(agent.pool().map(str::to_owned));
    });
    settings.walk_configured::<VerifierAgent>(&mut |_, agent| {
        pools.extend(agent.pool().map(str::to_owned));
    });
    settings.walk_configured::<CoordinatorAgent>(&mut |_, agent| {
        pools.extend(agent.pool().map(str::to_owned));
    });
    settings.walk_locator(&mut |_, agent| pools.extend(agent.pool().map(str::to_owned)));
    pools
}

/// Starts a system; those of one pool share its `places`. Must be called within an actix system.
pub fn start(
    study: &Study,
    system: &System,
    settings: &Settings,
    resources: &Resources,
    places: &mut PoolPlaces,
) -> anyhow::Result<Contestant> {
    // What one system left in an engine's cache must be no gift to the others.
    let place = study.systems.iter().position(|other| other.name == system.name);
    let space = place.filter(|_| study.matched.is_some()).map_or(0, |place| place as u64 + 1);
    let resources = &Resources { space, ..resources.clone() };

    match &system.source {
        Source::Answers(_) => {
            bail!("system `{}` answers nothing here: its outputs were made elsewhere", system.name)
        }
        Source::OneShot(one_shot) => {
            let (answers, provenance) =
                start_one_shot(system, one_shot, settings, resources, places)?;
            let system = match system.samples {
                None => StudySystem::OneShot(answers),
                Some(samples) => {
                    let of = Sampled::OneShot(answers);
                    StudySystem::Sampling(SamplingSystem { of, samples })
                }
            };
            Ok(Contestant { system, provenance })
        }
        Source::Run { .. } => {
            let agents = AgentSet::from_settings(settings, resources)
                .with_context(|| format!("system `{}`", system.name))?;
            let names = configured_names(settings);

            check_verifier(&agents, &study.ask.tasks)
                .with_context(|| format!("system `{}`", system.name))?;

            let judge = agents.judge();
            let asked = study.ask.tasks.iter();
            let kinds =
                asked.map(|task| judge.basis(task.spec()).kinds()).fold(Kinds::NONE, Kinds::union);
            let hidden: Vec<&str> = kinds
                .iter()
                .filter(|kind| !study.kinds.contains(*kind))
                .map(|kind| kind.name())
                .collect();
            ensure!(
                hidden.is_empty(),
                "system `{}`: its verifier `{}` sees {}, which `study.kinds` does not allow: add \
                 it there, or choose another verifier",
                system.name,
                names.verifier,
                hidden.join(", ")
            );

            let plan = Box::new(planner(settings, &agents));
            let running = RunningSystem { agents, plan, sampling: run_sampling(settings) };
            let model = model_digests(resources);

            let runs = Box::new(RunSystem::start(
                running,
                &runtime_plan(settings),
                study.budget.steps,
                pools_asked(settings).iter().map(|pool| places.of(pool, settings)).collect(),
            ));
            let system = match system.samples {
                None => StudySystem::Run(runs),
                Some(samples) => {
                    StudySystem::Sampling(SamplingSystem { of: Sampled::Run(runs), samples })
                }
            };
            Ok(Contestant {
                system,
                provenance: provenance(settings, &names.verifier, kinds, model),
            })
        }
    }
}

fn start_one_shot(
    system: &System,
    one_shot: &OneShot,
    settings: &Settings,
    resources: &Resources,
    places: &mut PoolPlaces,
) -> anyhow::Result<(OneShotSystem, Provenance)> {
    let style = match one_shot.style {
        PromptStyle::Baseline => Style::Baseline,
        PromptStyle::Structured => {
            let components =
                one_shot.without.iter().try_fold(Components::ALL, |all, name| all.without(name));
            Style::Structured(components.map_err(anyhow::Error::msg)?)
        }
    };

    let model = resources.pools.get(&one_shot.pool, settings, &resources.environment);
    let model = model.map_err(|error| anyhow::anyhow!("system `{}`: {error}", system.name))?;

    let served = settings.pools.get(&one_shot.pool).and_then(|pool| pool.upstreams.first());
    let sampling = run_sampling(settings);

    let answers = OneShotSystem {
        model,
        style,
        temperature: sampling.temperature,
        top_p: sampling.top_p,
        logprobs: system.samples.is_some_and(|samples| samples.select == Select::Likelihood),
        max_tokens: one_shot.max_tokens,
        wall: Duration::from_millis(settings.run.budget.wall_ms),
        places: places.of(&one_shot.pool, settings),
    };
    let model = served.map(|upstream| upstream.model.clone());
    Ok((answers, provenance(settings, "none", Kinds::NONE, model)))
}
