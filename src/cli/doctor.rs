//! `prime-agents doctor`: what was found on this machine, and what to do about what is missing.

use std::io::Write as _;
use std::net::TcpListener;
use std::process::ExitCode;

use clap::Args;

use super::Configuration;
use crate::app::{cores, engine_spec};
use crate::engine;
use crate::settings::Settings;

#[derive(Args)]
pub struct DoctorArguments {
    #[command(flatten)]
    configuration: Configuration,
}

/// One thing that was looked at.
struct Finding {
    what: String,
    /// What was found, or what is wrong and how to mend it.
    detail: Result<String, String>,
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
    let model = field("model name").unwrap_or_else(|| "of an unknown model".to_owned());
    let flags = field("flags").unwrap_or_default();
    if cfg!(target_arch = "x86_64") && !flags.split(' ').any(|flag| flag == "avx2") {
        let mend = "has no AVX2, which the engine is built for: build with RUSTFLAGS=-Ctarget-cpu=native".to_owned();
        return finding("cpu", Err(format!("{model} {mend}")));
    }
    finding("cpu", Ok(format!("{model}, {} cores for this process", cores())))
}

fn gibibytes(bytes: u64) -> String {
    #[expect(clippy::cast_precision_loss, reason = "a size for display")]
    let value = bytes as f64 / f64::from(1 << 30);
    format!("{value:.1} GiB")
}

fn devices() -> Vec<Finding> {
    match engine::devices() {
        Ok(devices) => devices
            .into_iter()
            .map(|device| {
                let memory =
                    format!("{} of {} free", gibibytes(device.memory_free_bytes), gibibytes(device.memory_total_bytes));
                finding(format!("device {}", device.name), Ok(format!("{}, {memory}", device.description)))
            })
            .collect(),
        Err(error) => vec![finding("devices", Err(error.to_string()))],
    }
}

fn engines(settings: &Settings) -> impl Iterator<Item = Finding> {
    settings.engines.iter().map(|(name, entry)| {
        let what = format!("engine {name}");
        let spec = match engine_spec(name, entry) {
            Ok(spec) => spec,
            Err(error) => return finding(what, Err(error.to_string())),
        };
        let (path, device) = (spec.model.display().to_string(), spec.device.to_string());
        match engine::Engine::start(spec) {
            Ok(engine) => {
                let status = engine.status();
                engine.shutdown();
                finding(what, Ok(format!("{path} on {device}: {} ({}), decodes", status.model, status.device)))
            }
            Err(error) => finding(what, Err(error.to_string())),
        }
    })
}

fn port(settings: &Settings) -> Finding {
    let bind = settings.server.bind;
    let detail = match TcpListener::bind(bind) {
        Ok(_) => Ok(format!("{bind} is free")),
        Err(error) => Err(format!("{bind} cannot be bound ({error}): stop what uses it, or set server.bind")),
    };
    finding("port", detail)
}

pub fn doctor(arguments: &DoctorArguments) -> anyhow::Result<ExitCode> {
    let settings = arguments.configuration.load()?;
    let mut findings = vec![cpu()];
    findings.extend(devices());
    findings.extend(engines(&settings));
    findings.push(port(&settings));
    let mut text = String::new();
    for Finding { what, detail } in &findings {
        let (mark, detail) = match detail {
            Ok(detail) => ("ok  ", detail),
            Err(detail) => ("FAIL", detail),
        };
        text += &format!("{mark}  {what}: {detail}\n");
    }
    drop(std::io::stdout().write_all(text.as_bytes()));
    let healthy = findings.iter().all(|finding| finding.detail.is_ok());
    Ok(ExitCode::from(u8::from(!healthy)))
}
