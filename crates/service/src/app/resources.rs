//! The engines and pools that configured agents need. Starts and reuses engines.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::cores::cores;
use super::error::AppError;
use prime_agent_set::pools::{Environment, Pools};
use prime_agent_set::programs::Programs;
use prime_agent_set::task_program::TaskPrograms;
use prime_agent_set::{Resources, file_digest, model_digest};
use prime_engine::{Adapter, Engine, EngineSpec, KvPool};
use prime_settings::{ModelSource, Settings};

/// Where an engine's model comes from.
///
/// # Errors
/// The model's file does not exist.
pub fn model_source(name: &str, engine: &prime_settings::Engine) -> Result<ModelSource, AppError> {
    let executable: Option<PathBuf> = std::env::current_exe().ok();
    let source = engine.find_model(executable.as_deref());
    source.map_err(|reason| AppError::Model { engine: name.to_owned(), reason })
}

/// The file of an engine's model.
///
/// # Errors
/// It does not exist, or the built-in model cannot be written to the cache.
pub(super) fn model_file(name: &str, engine: &prime_settings::Engine) -> Result<PathBuf, AppError> {
    match model_source(name, engine)? {
        ModelSource::File(path) => Ok(path),
        ModelSource::BuiltIn(model) => {
            model.file().map_err(|reason| AppError::ModelCache { engine: name.to_owned(), reason })
        }
    }
}

/// The spec of a configured engine, for at most `turns` turns at once; `None` stands for its
/// maximum.
///
/// # Errors
/// The model's file does not exist, or the built-in model cannot be written to the cache.
pub fn engine_spec(
    name: &str,
    engine: &prime_settings::Engine,
    turns: Option<u32>,
) -> Result<EngineSpec, AppError> {
    let model = model_file(name, engine)?;
    // A file that cannot be read is refused when the engine starts.
    let trained = prime_engine::gguf::read(&model).ok().and_then(|header| header.context_length());

    // The engine counts these in 16 bits.
    let narrow = |value: u32| u16::try_from(value).unwrap_or(u16::MAX);

    let threads = if engine.threads == 0 {
        // One core is left to the actors; a small model gains nothing from many threads.
        u32::try_from(cores().saturating_sub(1).clamp(1, 8)).unwrap_or(1)
    } else {
        engine.threads
    };

    let kv = engine.kv_pool(turns.unwrap_or(u32::MAX), trained.unwrap_or(u64::MAX));
    let part = engine.split_tokens();
    if let Some(trained) = trained.filter(|trained| kv == KvPool::Split && part < *trained) {
        tracing::warn!(
            engine = name,
            "kv_cache = \"split\" leaves {part} tokens for prompt and completion of a turn, the model has {trained}: longer \
             turns are cut off; set kv_cache = \"auto\", raise context_tokens or lower sequences_max"
        );
    }

    Ok(EngineSpec {
        name: name.to_owned(),
        model,
        device: engine.device.clone(),
        isolation: engine.isolation,
        kv,
        flash_attention: engine.flash_attention,
        kv_type: engine.kv_type,
        gpu_layers: engine.gpu_layers.0,
        cpu_experts: engine.cpu_experts.0,
        fit: engine.fit,
        checkpoint_mib: engine.checkpoint_mib,
        context_tokens: engine.context_tokens,
        sequences_max: narrow(engine.sequences_max),
        batch_tokens: engine.batch_tokens,
        kept_max: narrow(engine.cached_sequences_max),
        prefill_tokens: engine.prefill_tokens,
        threads: narrow(threads),
        prompt_threads: narrow(engine.prompt_threads),
        speculation: engine.speculation,
        deadline_ms: engine.deadline_ms,
        start_timeout_ms: engine.start_timeout_ms,
        restarts_max: engine.restarts_max,
        restart_window_ms: engine.restart_window_ms,
        template_variables: engine.template_variables(),
        idle_stop_ms: engine.idle_stop_ms,
        ..EngineSpec::default()
    })
}

/// Returns whether the chat template of each engine that an agent applies one of can be rendered,
/// by the engine's name. No model is loaded.
pub fn check_chat_templates(settings: &Settings) -> Vec<(String, Result<(), AppError>)> {
    let check = |name: &String| {
        let spec = engine_spec(name, &settings.engines[name], None)?;
        prime_engine::check_chat(&spec)
            .map_err(|reason| AppError::Engine { engine: name.clone(), reason })
    };
    settings.chat_engines().into_iter().map(|name| (name.clone(), check(&name))).collect()
}

/// Checks that a server of each open pool answers, and that a process of each program has started.
///
/// # Errors
/// The first that does not, and why.
pub async fn check_agents(resources: &Resources) -> Result<(), String> {
    resources.pools.check().await.map_err(|error| error.to_string())?;
    resources.programs.check().await.map_err(|error| error.to_string())
}

/// The resources of the configured agents: starts the engines that they need, for at most `turns`
/// turns at once.
///
/// # Errors
/// When an engine cannot start.
pub fn resources(settings: &Settings, turns: Option<u32>) -> Result<Resources, AppError> {
    renewed(settings, &BTreeMap::new(), Pools::default(), turns)
}

/// Like [`resources`], for several configurations with the same engines and pools: each engine that
/// any of them needs is started once.
///
/// # Errors
/// When an engine cannot start.
pub fn resources_of<'s>(
    all: impl IntoIterator<Item = &'s Settings>,
    turns: Option<u32>,
) -> Result<Resources, AppError> {
    let mut running = Running::new();
    // The pools are passed along, so that all configurations share one view of each server.
    let mut pools = Pools::default();
    for settings in all {
        let resources = renewed(settings, &running, pools, turns)?;
        running.extend(running_of(settings, &resources));
        pools = resources.pools;
    }

    Ok(new(running, pools))
}

/// A running engine.
#[derive(Clone)]
pub(super) struct RunningEngine {
    /// Its entry in the configuration.
    pub entry: prime_settings::Engine,
    pub engine: Engine,
    /// The SHA-256 of its model's file.
    pub digest: Option<String>,
}

/// Returns whether an engine with this entry runs as one with the other would.
fn is_same_but_price(one: &prime_settings::Engine, other: &prime_settings::Engine) -> bool {
    prime_settings::Engine { price: other.price, ..one.clone() } == *other
}

/// Running engines by name.
pub(super) type Running = BTreeMap<String, RunningEngine>;

/// The engines of resources that were made for these settings.
pub(super) fn running_of(settings: &Settings, resources: &Resources) -> Running {
    let running = |(name, engine): (&String, &Engine)| {
        let (entry, digest) =
            (settings.engines.get(name)?.clone(), resources.model_digests.get(name).cloned());
        Some((name.clone(), RunningEngine { entry, engine: engine.clone(), digest }))
    };
    resources.engines.iter().filter_map(running).collect()
}

/// Starts an engine with a context that has these adapters, and computes the digest of its model
/// meanwhile.
///
/// # Errors
/// When it cannot start.
pub(super) fn start_engine(
    name: &str,
    entry: &prime_settings::Engine,
    adapters: Vec<Adapter>,
    turns: Option<u32>,
) -> Result<RunningEngine, AppError> {
    let model = model_file(name, entry)?;
    // In parallel, because each reads the whole file.
    std::thread::scope(|scope| {
        let digest = scope.spawn(move || model_digest(&model).ok());
        let mut running = start_engine_of(name, entry, None, adapters, turns)?;
        running.digest = digest.join().ok().flatten();
        Ok(running)
    })
}

/// Starts an engine whose model has this digest.
///
/// # Errors
/// When it cannot start.
pub(super) fn start_engine_of(
    name: &str,
    entry: &prime_settings::Engine,
    digest: Option<String>,
    adapters: Vec<Adapter>,
    turns: Option<u32>,
) -> Result<RunningEngine, AppError> {
    let started = Engine::start(EngineSpec { adapters, ..engine_spec(name, entry, turns)? });
    let engine = started.map_err(|reason| AppError::Engine { engine: name.to_owned(), reason })?;
    Ok(RunningEngine { entry: entry.clone(), engine, digest })
}

/// An engine beside one of those that run, if one has its weights.
fn beside<'r>(
    name: &str,
    entry: &prime_settings::Engine,
    adapters: &[Adapter],
    mut running: impl Iterator<Item = &'r RunningEngine>,
    turns: Option<u32>,
) -> Option<Result<RunningEngine, AppError>> {
    let spec = match engine_spec(name, entry, turns) {
        Ok(spec) => EngineSpec { adapters: adapters.to_vec(), ..spec },
        Err(error) => return Some(Err(error)),
    };
    let same = running.find(|known| spec.shares_weights_with(known.engine.spec()))?;
    // The file may have another content than when its weights were loaded.
    let digest = model_digest(&spec.model).ok();
    if digest.is_none() || digest != same.digest {
        return None;
    }
    let opened = same.engine.beside(spec);
    let opened = opened.map(|engine| RunningEngine { entry: entry.clone(), engine, digest });
    Some(opened.map_err(|reason| AppError::Engine { engine: name.to_owned(), reason }))
}

/// The adapters of the first context of each engine: those that an agent asks first. The others
/// are opened when their agents are built.
pub(super) fn first_adapters(
    settings: &Settings,
    digests: &BTreeMap<String, String>,
) -> Result<BTreeMap<String, Vec<Adapter>>, AppError> {
    let known = Resources { adapter_digests: digests.clone(), ..Resources::default() };
    let needed = settings.adapters_needed().into_iter();
    let first = needed.map(|(engine, mut adapters)| {
        // The model itself comes first, where an agent asks it.
        adapters.sort_by_key(Option::is_some);
        let first = adapters.into_iter().next().flatten();
        let read = |(path, scale): (String, f64)| {
            known
                .adapter(&path, scale)
                .map_err(|reason| AppError::Adapter { engine: engine.clone(), reason })
        };
        Ok((engine.clone(), first.map(read).transpose()?.into_iter().collect()))
    });
    first.collect()
}

/// The SHA-256 of the adapters of configured agents, as their files are now.
fn adapter_digests(settings: &Settings) -> BTreeMap<String, String> {
    let all = settings.adapters_needed().into_values().flatten().flatten();
    // An adapter that cannot be read is refused when it is opened, with the name of its engine.
    all.filter_map(|(path, _)| file_digest(path.as_ref()).ok().map(|digest| (path, digest)))
        .collect()
}

/// Like [`resources`], reusing running engines whose entry has not changed and the weights of those
/// that have the same model.
pub(super) fn renewed(
    settings: &Settings,
    running: &Running,
    pools: Pools,
    turns: Option<u32>,
) -> Result<Resources, AppError> {
    let digests = adapter_digests(settings);
    let mut first = first_adapters(settings, &digests)?;
    let mut engines = Running::new();

    for name in settings.engines_needed() {
        let entry = settings
            .engines
            .get(&name)
            .expect("invariant: validated settings name existing engines");
        let adapters = first.remove(&name).unwrap_or_default();
        let engine = match running.get(&name) {
            Some(known) if is_same_but_price(&known.entry, entry) => {
                let engine = known.engine.with_adapters(&adapters);
                let engine =
                    engine.map_err(|reason| AppError::Engine { engine: name.clone(), reason })?;
                RunningEngine { engine, ..known.clone() }
            }
            _ => {
                let others = engines.values().chain(running.values());
                match beside(&name, entry, &adapters, others, turns) {
                    Some(engine) => engine?,
                    None => start_engine(&name, entry, adapters, turns)?,
                }
            }
        };
        engines.insert(name, engine);
    }

    Ok(Resources { adapter_digests: digests, ..new(engines, pools) })
}

/// Resources with these engines and pools, and the environment of the process.
pub(super) fn new(running: Running, pools: Pools) -> Resources {
    let programs = Programs::default();

    let (mut engines, mut model_digests) = (BTreeMap::new(), BTreeMap::new());
    for (name, RunningEngine { engine, digest, .. }) in running {
        model_digests.extend(digest.map(|digest| (name.clone(), digest)));
        engines.insert(name, engine);
    }

    Resources {
        engines,
        model_digests,
        adapter_digests: BTreeMap::new(),
        pools,
        programs,
        tasks: TaskPrograms::default(),
        environment: environment_of_the_process(),
        tap: None,
        space: 0,
    }
}

/// Looks up variables in the environment of the process.
pub fn environment_of_the_process() -> Environment {
    Arc::new(environment)
}

#[expect(
    clippy::disallowed_methods,
    reason = "API keys of model servers come from the environment only; agents look them up by name"
)]
fn environment(name: &str) -> Option<String> {
    std::env::var(name).ok()
}
