//! The log: lines on standard error.

use std::io::Stderr;

use tracing_appender::non_blocking::{NonBlockingBuilder, WorkerGuard};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::writer::BoxMakeWriter;

use super::output::is_stderr_terminal;
use prime_printable::Printable;
use prime_settings::{LogFormat, LogLevel, Settings};

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
        // It reports each malformed request as an error; the daemon itself does that, and sums up.
        LogLevel::Error => "error,actix_http::h1::dispatcher=off",
        LogLevel::Warn => "warn,actix_http::h1::dispatcher=off",
        // rmcp reports every connection at this level.
        LogLevel::Info => "info,actix_http::h1::dispatcher=off,rmcp=warn",
        LogLevel::Debug => "debug",
        LogLevel::Trace => "trace",
    })
}

/// Standard error. The log's formatter escapes the control characters of what it is given, and
/// styles levels with its own; direction characters are escaped here.
#[expect(clippy::disallowed_methods, reason = "the log writes through this")]
fn log_output() -> Printable<Stderr> {
    Printable::styled(std::io::stderr())
}

/// Lines queued for a slow reader of a daemon's standard error; further ones are dropped.
const LINES_MAX: usize = 16_384;

/// Starts the log with the configured format and level.
pub fn start_log(settings: &Settings) -> LogControl {
    start(settings, filter(settings.log.level), BoxMakeWriter::new(log_output))
}

/// Like [`start_log`], for a command that itself says what became of each program: the log would
/// say it again.
pub fn start_log_of_one_run(settings: &Settings) {
    const PROGRAMS: &str = "prime_agent_set::process=error";
    let level = filter(settings.log.level);
    let level = match settings.log.level {
        LogLevel::Warn | LogLevel::Info => {
            level.add_directive(PROGRAMS.parse().expect("invariant: a valid directive"))
        }
        LogLevel::Off | LogLevel::Error | LogLevel::Debug | LogLevel::Trace => level,
    };
    start(settings, level, BoxMakeWriter::new(log_output));
}

/// Like [`start_log`], but for a daemon: writing never blocks, because a full pipe on standard
/// error would stop every run. Dropping the guard writes the queued lines, for at most a second.
pub fn start_daemon_log(settings: &Settings) -> (LogControl, WorkerGuard) {
    let builder = NonBlockingBuilder::default()
        .buffered_lines_limit(LINES_MAX)
        .lossy(true)
        .thread_name("log");
    let (writer, guard) = builder.finish(log_output());
    (start(settings, filter(settings.log.level), BoxMakeWriter::new(writer)), guard)
}

fn start(settings: &Settings, level: EnvFilter, writer: BoxMakeWriter) -> LogControl {
    let log = tracing_subscriber::fmt()
        .with_ansi(is_stderr_terminal())
        .with_writer(writer)
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
