//! `runs watch`: follows a run until it ends, across broken connections and restarts of the daemon.

use std::io::ErrorKind;
use std::process::ExitCode;
use std::time::Duration;

use clap::Args;
use serde_json::Value;
use tokio::time::Instant;

use super::client::{Answer, Client, ClientError};
use super::display::{Display, Numbered};
use super::reconnect::Reconnect;
use super::{Common, run_id, show};
use crate::cli::output::written;
use prime_http_client::sse::{Events, Message};

/// How long to wait for a daemon that went away.
#[derive(Args)]
pub struct Patience {
    /// Keep trying to reach a daemon that went away for this long; 0: do not retry
    #[arg(long = "patience", value_name = "SECONDS", default_value_t = 300)]
    seconds: u32,
}

#[derive(Args)]
pub struct WatchArguments {
    /// Run id
    #[arg(value_parser = run_id)]
    id: String,
    #[command(flatten)]
    patience: Patience,
    #[command(flatten)]
    common: Common,
}

/// How a connection ended.
enum Ended {
    /// The run finished: its record.
    Run(Value),
    /// The daemon is stopping, or the connection broke.
    Early(ClientError),
    /// Nobody reads standard output.
    Unread,
}

/// A run under watch.
pub struct Watched<'a> {
    client: &'a Client,
    id: &'a str,
    reconnect: Reconnect,
    display: Display,
    /// Number of the last event shown.
    last: u64,
}

impl<'a> Watched<'a> {
    pub fn new(client: &'a Client, id: &'a str, patience: &Patience, display: Display) -> Self {
        let reconnect = Reconnect::new(Duration::from_secs(patience.seconds.into()));
        Self { client, id, reconnect, display, last: 0 }
    }

    /// Follows the run until it ends. Returns its record and whether it was shown; `None` if nobody
    /// reads standard output. `is_known`: the daemon has answered before, so a failure to connect
    /// may be temporary.
    ///
    /// # Errors
    /// When the daemon refuses, or stays away for too long.
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
                        Ended::Early(error) => {
                            self.client.turn_to_next();
                            error
                        }
                    }
                }
                Err(error) if is_known && error.may_pass() => error,
                Err(error) => return Err(error.into()),
            };

            // One note for each outage, not one for each attempt.
            let is_new = !self.reconnect.is_failing();
            let Some(pause) = self.reconnect.delay(Instant::now(), error.retry_after()) else {
                return Err(error.into());
            };
            if is_new {
                self.display.note(&format!("{error}; retrying"));
            }

            wait(pause);
        }
    }

    /// Shows the events of one connection.
    fn read(&mut self, answer: Answer) -> anyhow::Result<Ended> {
        let (url, reader) = answer.into_reader();
        let mut events = Events::new(reader);
        let early =
            |reason: String| Ok(Ended::Early(ClientError::BrokenOff { url: url.clone(), reason }));
        loop {
            match events.next_message() {
                Ok(Some(Message::KeepAlive)) => self.reconnect.succeeded(),
                Ok(Some(Message::Event { id: Some(seq), name, data })) => {
                    self.reconnect.succeeded();
                    if let Err(error) =
                        self.see(&Numbered { seq, name: &name, line: &data }, events.is_drained())?
                    {
                        if error.kind() == ErrorKind::BrokenPipe {
                            return Ok(Ended::Unread);
                        }
                        written(Err(error))?;
                    }
                }
                Ok(Some(Message::Event { id: None, name, data })) if name == "result" => {
                    let record = serde_json::from_str(&data);
                    let unreadable = |error: serde_json::Error| ClientError::Unreadable {
                        url,
                        reason: error.to_string(),
                    };
                    return Ok(Ended::Run(record.map_err(unreadable)?));
                }
                // A kind of event that a later version may send.
                Ok(Some(Message::Event { id: None, .. })) => {}
                Ok(None) => return early("the stream ended before the run".to_owned()),
                Err(error) => return early(error.to_string()),
            }
        }
    }

    /// Shows an event, unless it was shown before. The inner error is standard output's.
    fn see(
        &mut self,
        event: &Numbered<'_>,
        is_last_at_hand: bool,
    ) -> anyhow::Result<std::io::Result<()>> {
        // A new connection may repeat what the last one has sent.
        if event.seq <= self.last {
            return Ok(Ok(()));
        }

        if event.seq != self.last + 1 {
            let (id, last, seq) = (self.id, self.last, event.seq);
            let reason =
                format!("event {seq} of {id} follows event {last}: the daemon skipped events");
            return Err(ClientError::Senseless(reason).into());
        }

        self.last = event.seq;
        let shown = self.display.event(event);
        Ok(shown.and_then(|()| if is_last_at_hand { self.display.flush() } else { Ok(()) }))
    }
}

/// Blocks the thread, which has nothing else to do.
fn wait(pause: Duration) {
    // A timer always fires.
    let _fired = crossbeam_channel::after(pause).recv();
}

/// 0 if the run is verified, else 1.
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
