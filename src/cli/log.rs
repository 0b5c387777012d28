//! The log: lines on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use crate::settings::{LogFormat, LogLevel, Settings};

/// Changes the level of the log.
pub struct LogControl(Box<dyn Fn(EnvFilter)>);

impl LogControl {
    pub fn set_level(&self, level: LogLevel) {
        self.0(filter(level));
    }
}

fn filter(level: LogLevel) -> EnvFilter {
    EnvFilter::new(match level {
        LogLevel::Off => "off",
        LogLevel::Error => "error",
        LogLevel::Warn => "warn",
        // rmcp reports every connection at this level.
        LogLevel::Info => "info,rmcp=warn",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    })
}

/// Starts the log with the configured format and level.
pub fn start_log(settings: &Settings) -> LogControl {
    let level = filter(settings.log.level);
    let log = tracing_subscriber::fmt()
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        // It would report its own failures with a panic where standard error is closed.
        .log_internal_errors(false);
    // A second start in one process (tests) keeps the first log.
    match settings.log.format {
        LogFormat::Text => {
            let log = log.with_env_filter(level).with_filter_reloading();
            let handle = log.reload_handle();
            drop(log.try_init());
            LogControl(Box::new(move |filter| drop(handle.reload(filter))))
        }
        LogFormat::Json => {
            let log = log.json().with_env_filter(level).with_filter_reloading();
            let handle = log.reload_handle();
            drop(log.try_init());
            LogControl(Box::new(move |filter| drop(handle.reload(filter))))
        }
    }
}
