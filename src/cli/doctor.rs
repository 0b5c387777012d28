//! `prime-agents doctor`: checks this machine against what the configuration uses, and says how to
//! fix what is wrong.

use std::net::TcpListener;
use std::process::ExitCode;

use clap::Args;
use serde_json::{Value, json};
use tokio::runtime::Builder;

use super::agents::handshakes;
use super::own_model::OwnModel;
use crate::cli::output::{Output, print, print_json};
use prime_agent_set::Resources;
use prime_agent_set::pools::Pools;
use prime_agent_set::upstream::Probed;
use prime_daemon::bind_remedy;
use prime_daemon::guard::descriptors;
use prime_engine::{self, Bytes, EngineSpec, Fit};
use prime_service::app::{
    check_chat_templates, cores, engine_spec, environment_of_the_process, model_source,
};
use prime_settings::{ModelSource, Settings};

#[derive(Args)]
pub struct DoctorArguments {
    #[command(flatten)]
    configuration: OwnModel,
    /// Check models by their headers and the free memory, without loading them
    #[arg(long)]
    no_load: bool,
    /// Output format
    #[arg(long, value_enum, default_value_t = Output::Text)]
    output: Output,
}

/// The result of one check.
struct Finding {
    what: String,
    /// What was found, or what is wrong and how to fix it.
    detail: Result<String, String>,
}

impl Finding {
    fn json(&self) -> Value {
        let (Ok(detail) | Err(detail)) = &self.detail;
        json!({"what": self.what, "ok": self.detail.is_ok(), "detail": detail})
    }
}

fn finding(what: impl Into<String>, detail: Result<String, String>) -> Finding {
    Finding { what: what.into(), detail }
}

fn cpu() -> Finding {
    let info = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let field = |name: &str| {
        let line = info.lines().find(|line| line.starts_with(name))?;
        Some(line.split_once(':')?.1.trim().to_owned())
    };

    let model = field("model name").unwrap_or_else(|| "unknown model".to_owned());
    let missing = prime_engine::missing_extensions();
    if !missing.is_empty() {
        let error = prime_engine::EngineError::Processor { missing: missing.join(", ") };
        return finding("cpu", Err(format!("{model}: {error}")));
    }

    finding("cpu", Ok(format!("{model}, {} cores for this process", cores())))
}

/// The confinement of the processes that compute models.
#[cfg(all(feature = "llama", target_os = "linux"))]
fn workers() -> Finding {
    let detail = match prime_engine::confinement() {
        None => "not confined in a build for GPUs",
        Some(found) => match (found.landlock, found.seccomp) {
            (true, true) => "may compute and read; may not write files, run programs or connect",
            (false, true) => {
                "may not run programs or connect; this kernel cannot keep them from writing files \
                 (Landlock, Linux 5.13)"
            }
            (true, false) => "may not write files or run programs; this kernel has no seccomp",
            (false, false) => "not confined: this kernel has neither Landlock nor seccomp",
        },
    };
    finding("engine workers", Ok(detail.to_owned()))
}

fn devices() -> Vec<Finding> {
    match prime_engine::devices() {
        Ok(devices) => devices
            .into_iter()
            .map(|device| {
                let place = device.pci.map(|id| format!(" at pci:{id}")).unwrap_or_default();
                let (free, total) =
                    (Bytes(device.memory_free_bytes), Bytes(device.memory_total_bytes));
                let detail = format!("{}{place}, {free} of {total} free", device.description);
                finding(format!("device {}", device.name), Ok(detail))
            })
            .collect(),
        Err(error) => vec![finding("devices", Err(error.to_string()))],
    }
}

/// The memory that an engine needs, and what is free.
fn account(spec: &EngineSpec, fit: &Fit) -> String {
    let needs = &fit.estimate;
    let devices = spec.device.all().len();
    let each = if devices > 1 { " each" } else { "" };

    let (mapped, holder) =
        if spec.device.is_cpu() { (" mapped from the file", "process") } else { ("", "driver") };
    let weights = match (fit.shares_weights, needs.weights_bytes) {
        (true, 0) => "weights shared".to_owned(),
        (true, adapter) => format!("weights shared, adapter {}", Bytes(adapter)),
        (false, weights) => format!("weights {}{mapped}", Bytes(weights)),
    };
    let free = fit.free.iter().map(|free| format!("{} on {}", Bytes(free.free_bytes), free.device));
    let free = match free.collect::<Vec<_>>() {
        none if none.is_empty() => "free memory unknown".to_owned(),
        all => format!("free: {}", all.join(", ")),
    };

    let states = match needs.state_bytes {
        0 => String::new(),
        bytes => format!(
            ", states {} (and up to {} of saved ones)",
            Bytes(bytes),
            Bytes(needs.checkpoint_bytes)
        ),
    };
    let chosen = fit.chosen.as_ref().map_or_else(String::new, |what| format!("; {what}"));

    format!(
        "{} ({weights}, KV pool of {} tokens {}{states}, compute {}{each}, {holder} {}{each}); \
         {free}{chosen}",
        Bytes(needs.total_bytes(devices)),
        needs.kv_tokens,
        Bytes(needs.kv_bytes),
        Bytes(needs.compute_bytes),
        Bytes(needs.reserve_bytes),
    )
}

/// The memory of each engine that the configured agents ask, and of each of its contexts with
/// another adapter; and, unless `no_load`, whether it decodes. One that does not fit is not
/// started. Weights that several contexts share count once.
fn engines(settings: &Settings, no_load: bool) -> Vec<Finding> {
    let mut findings = Vec::new();
    let mut fitting: Vec<(EngineSpec, prime_engine::Fit)> = Vec::new();
    let mut needed = settings.adapters_needed();
    let resources = Resources::default();
    for name in settings.engines_needed() {
        let name = name.as_str();
        let entry = &settings.engines[name];
        let found = model_source(name, entry)
            .and_then(|source| Ok((source, engine_spec(name, entry, None)?)));
        let (source, base) = match found {
            Ok(found) => found,
            Err(error) => {
                findings.push(finding(format!("engine {name}"), Err(error.to_string())));
                continue;
            }
        };

        for adapter in needed.remove(name).unwrap_or_default() {
            let with = adapter.as_ref().map(|(path, _)| format!(" with adapter {path}"));
            let what = format!("engine {name}{}", with.as_deref().unwrap_or_default());
            let adapter = adapter.map(|(path, scale)| resources.adapter(&path, scale));
            let spec = match adapter.transpose() {
                Ok(adapter) => {
                    EngineSpec { adapters: adapter.into_iter().collect(), ..base.clone() }
                }
                Err(reason) => {
                    findings.push(finding(what, Err(reason)));
                    continue;
                }
            };

            match prime_engine::check_fit_beside(&spec, &fitting) {
                Ok(fit) => {
                    let memory = format!("memory for {}", &what["engine ".len()..]);
                    findings.push(finding(memory, Ok(account(&spec, &fit))));
                    fitting.push((spec.clone(), fit));
                }
                Err(error) => {
                    findings.push(finding(what, Err(error.to_string())));
                    continue;
                }
            }

            if !no_load {
                findings.push(finding(what, decodes(&source, spec)));
            }
        }
    }
    findings
}

fn decodes(source: &ModelSource, spec: EngineSpec) -> Result<String, String> {
    // Loaded at once, to see that it can be.
    let spec = EngineSpec { idle_stop_ms: 0, ..spec };
    let engine = prime_engine::Engine::start(spec).map_err(|error| error.to_string())?;
    let status = engine.status();
    engine.shutdown();
    // A built-in model is known by its engine, not by the name that its training had.
    let model = match (source, status.model.split_once(", ")) {
        (ModelSource::BuiltIn(_), Some((_, size))) => size,
        _ => &status.model,
    };
    Ok(format!("{source} on {}: {model}, decodes", status.device))
}

/// Whether the chat templates that agents apply can be rendered.
fn chat_templates(settings: &Settings) -> impl Iterator<Item = Finding> {
    check_chat_templates(settings).into_iter().map(|(engine, checked)| {
        let detail = checked.map(|()| "can be rendered".to_owned());
        finding(format!("chat template of {engine}"), detail.map_err(|error| error.to_string()))
    })
}

/// Whether the servers of each pool that the configured agents ask answer.
fn pools(settings: &Settings) -> anyhow::Result<Vec<Finding>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (pools, environment) = (Pools::default(), environment_of_the_process());
    let mut findings = Vec::new();
    for name in settings.pools_needed() {
        let what = format!("pool {name}");
        match pools.get(&name, settings, &environment) {
            Ok(model) => {
                let probed = runtime.block_on(model.probe());
                findings.extend(probed.into_iter().map(|Probed { server, answer }| {
                    finding(
                        format!("{what}, {server}"),
                        answer.map(|status| format!("answers with status {status}")),
                    )
                }));
            }
            Err(error) => findings.push(finding(what, Err(error.to_string()))),
        }
    }
    Ok(findings)
}

/// Whether the programs of the configured agents start and answer the handshake.
fn programs(settings: &Settings) -> anyhow::Result<Vec<Finding>> {
    let answered = handshakes(settings)?.into_iter().map(|(what, answer)| {
        finding(what, answer.map(|()| "starts and answers the handshake".to_owned()))
    });
    Ok(answered.collect())
}

fn port(settings: &Settings) -> Finding {
    let bind = settings.server.bind;
    let detail = match TcpListener::bind(bind) {
        Ok(_) => Ok(format!("{bind} is free")),
        Err(error) => Err(format!("{bind} cannot be bound ({error}): {}", bind_remedy(&error))),
    };
    finding("port", detail)
}

/// Whether the daemon may have a file descriptor for each connection.
fn descriptors(settings: &Settings) -> Finding {
    let most = settings.server.connections_max;
    let detail = descriptors::ensure(most).map(|limit| {
        format!("{limit} allowed, {} needed for {most} connections", descriptors::needed(most))
    });
    finding("file descriptors", detail)
}

pub fn doctor(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.configuration.load()?;
    let mut findings = vec![cpu()];
    #[cfg(all(feature = "llama", target_os = "linux"))]
    findings.push(workers());
    findings.extend(devices());
    findings.extend(engines(&settings, arguments.no_load));
    findings.extend(chat_templates(&settings));
    findings.extend(pools(&settings)?);
    findings.extend(programs(&settings)?);
    findings.push(port(&settings));
    findings.push(descriptors(&settings));

    let healthy = findings.iter().all(|finding| finding.detail.is_ok());
    let code = ExitCode::from(u8::from(!healthy));
    if arguments.output == Output::Json {
        let all: Vec<_> = findings.iter().map(Finding::json).collect();
        print_json(&json!({"healthy": healthy, "findings": all}))?;
        return Ok(code);
    }

    let mut text = String::new();
    for Finding { what, detail } in &findings {
        let (mark, detail) = match detail {
            Ok(detail) => ("ok  ", detail),
            Err(detail) => ("FAIL", detail),
        };
        text += &format!("{mark}  {what}: {detail}\n");
    }

    print(text)?;
    Ok(code)
}
