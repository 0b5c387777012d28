//! `runs watch`: the events of a run to its end, over broken connections and restarts of the daemon.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;
use tokio::time::Instant;

use super::client::{Answer, Client, ClientError};
use super::display::{Display, Numbered};
use super::reconnect::Reconnect;
use super::{Common, run_id, show};
use crate::sse::{Events, Message};

/// How a command waits for a daemon that has gone away.
#[derive(Args)]
pub struct Patience {
    /// How long to go on trying to reach a daemon that has gone away, in seconds; 0: not at all.
    #[arg(long = "patience", value_name = "SECONDS", default_value_t = 300)]
    seconds: u32,
}

#[derive(Args)]
pub struct WatchArguments {
    /// The run's id.
    #[arg(value_parser = run_id)]
    id: String,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    common: Common,
}

/// How a connection came to its end.
enum Ended {
    /// With the run: its record.
    Run(Value),
    /// The daemon stops, or the connection broke.
    Early(ClientError),
    /// Nobody reads what is shown.
    Unread,
}

/// A run that is watched.
pub struct Watched<'a> {
    client: &'a Client,
    id: &'a str,
    reconnect: Reconnect,
    display: Display,
    /// The last event that was shown.
    last: u64,
}

impl<'a> Watched<'a> {
    pub fn new(client: &'a Client, id: &'a str, patience: &Patience, display: Display) -> Self {
        let reconnect = Reconnect::new(Duration::from_secs(patience.seconds.into()));
        Self { client, id, reconnect, display, last: 0 }
    }

    /// Follows the run to its end; gives its record and whether it was shown, or nothing when nobody reads any more.
    /// `is_known`: the daemon has answered before, so that its silence may pass.
    ///
    /// # Errors
    /// When the daemon refuses, or is away for longer than patience lasts.
    pub fn follow(mut self, mut is_known: bool) -> anyhow::Result<Option<(Value, bool)>> {
        loop {
            let error = match self.client.events(self.id, self.last) {
                Ok(answer) => {
                    is_known = true;
                    match self.read(answer)? {
                        Ended::Run(record) => {
                            let was_shown = self.display.finish(&record)?;
                            return Ok(Some((record, was_shown)));
                        }
                        Ended::Unread => return Ok(None),
                        Ended::Early(error) => error,
                    }
                }
                Err(error) if is_known && error.may_pass() => error,
                Err(error) => return Err(error.into()),
            };
            let is_new = !self.reconnect.is_failing();
            let Some(pause) = self.reconnect.delay(Instant::now(), error.retry_after()) else {
                return Err(error.into());
            };
            if is_new {
                self.display.note(&format!("{error}; trying again"));
            }
            wait(pause);
        }
    }

    /// Shows what comes through one connection.
    fn read(&mut self, answer: Answer) -> anyhow::Result<Ended> {
        let (url, reader) = answer.into_reader();
        let mut events = Events::new(reader);
        let early = |reason: String| Ok(Ended::Early(ClientError::BrokenOff { url: url.clone(), reason }));
        loop {
            match events.next() {
                Ok(Some(Message::KeepAlive)) => self.reconnect.succeeded(),
                Ok(Some(Message::Event { id: Some(seq), name, data })) => {
                    self.reconnect.succeeded();
                    if let Err(error) = self.see(&Numbered { seq, name: &name, line: &data }, events.is_drained())? {
                        if error.kind() == ErrorKind::BrokenPipe {
                            return Ok(Ended::Unread);
                        }
                        return Err(error).context("standard output cannot be written");
                    }
                }
                Ok(Some(Message::Event { id: None, name, data })) if name == "result" => {
                    let record = serde_json::from_str(&data);
                    let unreadable =
                        |error: serde_json::Error| ClientError::Unreadable { url, reason: error.to_string() };
                    return Ok(Ended::Run(record.map_err(unreadable)?));
                }
                // Of a later version.
                Ok(Some(Message::Event { id: None, .. })) => {}
                Ok(None) => return early("the stream ended before the run".to_owned()),
                Err(error) => return early(error.to_string()),
            }
        }
    }

    /// Shows an event, unless it was shown before. The inner error is of standard output.
    fn see(&mut self, event: &Numbered<'_>, is_last_at_hand: bool) -> anyhow::Result<std::io::Result<()>> {
        if event.seq <= self.last {
            return Ok(Ok(()));
        }
        if event.seq != self.last + 1 {
            let (id, last, seq) = (self.id, self.last, event.seq);
            let reason = format!("event {seq} of {id} came after event {last}: the daemon left some out");
            return Err(ClientError::Senseless(reason).into());
        }
        self.last = event.seq;
        let shown = self.display.event(event);
        Ok(shown.and_then(|()| if is_last_at_hand { self.display.rest() } else { Ok(()) }))
    }
}

/// Waits for a timer; nothing else happens meanwhile.
fn wait(pause: Duration) {
    // A timer always tells its time.
    let _told = crossbeam_channel::after(pause).recv();
}

/// Whether the run of a record is verified, as an exit code.
pub fn exit_code(record: &Value) -> ExitCode {
    ExitCode::from(u8::from(record["status"] != "verified"))
}

pub fn watch(arguments: &WatchArguments) -> anyhow::Result<ExitCode> {
    let WatchArguments { id, patience, common } = arguments;
    let client = common.client()?;
    let watched = Watched::new(&client, id, patience, Display::of_watch(common.output));
    let Some((record, was_shown)) = watched.follow(false)? else { return Ok(ExitCode::FAILURE) };
    if !was_shown {
        show::print(&record, common.output)?;
    }
    Ok(exit_code(&record))
}
