//! Where recorded runs come from: a daemon, or the journal of a stopped one.

use std::fs::File;
use std::io::{BufRead, BufReader, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::cli::runs::client::Client;
use crate::cli::runs::list::Filters;
use crate::cli::runs::trace;
use prime_journal::{DamagedRow, Journal, Query, RunRows, Segment};
use prime_service::runs::{Status, TraceContent};

/// Runs of a page.
const PAGE: u32 = 200;

/// Bytes of events per read.
const READ_BYTES: usize = 4 << 20;

pub enum Source {
    Daemon(Box<Client>),
    Journal(Arc<dyn Journal>),
}

/// A run with its events still to be read.
pub struct Recorded {
    pub id: String,
    /// The spec, as JSON.
    pub spec: String,
    pub events: Events,
}

/// The events of a run, in order.
pub enum Events {
    Trace { lines: BufReader<File>, seq: u64 },
    Journal { journal: Arc<dyn Journal>, id: String, last: u64, seq: u64, read: Vec<Segment> },
}

/// A run of a page, or one that cannot be read, and why.
type Listed = Result<String, (String, String)>;

const RUNNING: &str = "it is not over: wait for its end, or cancel it";

fn is_open(status: &str) -> bool {
    Status::ALL.into_iter().any(|known| known.name() == status && !known.is_over())
}

impl Source {
    pub fn journal(place: &str) -> anyhow::Result<Self> {
        if !place.contains("://") && !Path::new(place).exists() {
            bail!(
                "--journal {place}: there is no such file: give the journal of a daemon \
                 (journal.path)"
            );
        }
        let journal = crate::cli::journal::open(place).with_context(|| {
            format!("--journal {}", prime_journal_postgres::without_password(place))
        })?;
        Ok(Self::Journal(Arc::from(journal)))
    }

    /// One page of the chosen runs, and where the next one begins.
    pub fn page(
        &self,
        filters: &Filters,
        after: Option<&str>,
    ) -> anyhow::Result<(Vec<Listed>, Option<String>)> {
        match self {
            Self::Daemon(client) => {
                let page = blocking(|| filters.page(client, PAGE, after))?;
                let id = |run: &Value| run["id"].as_str().unwrap_or_default().to_owned();
                let read = page.runs.iter().map(|run| Ok(id(run)));
                let unreadable = page.unreadable.into_iter().map(|id| {
                    let reason = "its row in the journal is damaged, or the daemon cannot read it";
                    Err((id, reason.to_owned()))
                });
                Ok((read.chain(unreadable).collect(), page.next))
            }
            Self::Journal(journal) => {
                let query = Query {
                    status: filters.status.clone(),
                    task: filters.task.clone(),
                    needs_review: filters.needs_review,
                    after: after.map(str::to_owned),
                    limit: PAGE,
                    ..Query::default()
                };
                let RunRows { rows, damaged, next } = journal.list(&query)?;
                let read = rows.into_iter().map(|row| Ok(row.id));
                let damaged =
                    damaged.into_iter().map(|DamagedRow { id, reason }| Err((id, reason)));
                Ok((read.chain(damaged).collect(), next))
            }
        }
    }

    /// # Errors
    /// When there is no such run, it is not over, or its record is damaged.
    pub fn recorded(&self, id: &str) -> Result<Recorded, String> {
        match self {
            Self::Daemon(client) => blocking(|| from_daemon(client, id)),
            Self::Journal(journal) => {
                let row = journal.run(id).map_err(|error| error.to_string())?;
                let row = row.ok_or("there is no such run in this journal")?;
                if !row.is_over {
                    return Err(RUNNING.to_owned());
                }
                let events = Events::Journal {
                    journal: Arc::clone(journal),
                    id: id.to_owned(),
                    last: row.head.seq,
                    seq: 0,
                    read: Vec::new(),
                };
                Ok(Recorded { id: row.id, spec: row.spec, events })
            }
        }
    }
}

/// The client has a runtime of its own, which must not be entered on a thread of another one.
fn blocking<T: Send>(ask: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| scope.spawn(ask).join())
        .unwrap_or_else(|panic| std::panic::resume_unwind(panic))
}

fn from_daemon(client: &Client, id: &str) -> Result<Recorded, String> {
    let record: Value = client
        .get(&format!("/v1/runs/{id}"), &[])
        .and_then(super::super::client::Answer::json)
        .map_err(|error| error.to_string())?;
    if record["status"].as_str().is_some_and(is_open) {
        return Err(RUNNING.to_owned());
    }

    // Into a file without a name: a trace may be larger than the memory.
    let (_, mut from) =
        trace::open(client, id, TraceContent::EVENTS).map_err(|error| error.to_string())?;
    let mut copied = || -> std::io::Result<BufReader<File>> {
        let mut file = tempfile::tempfile()?;
        std::io::copy(&mut from, &mut file)?;
        file.seek(SeekFrom::Start(0))?;
        Ok(BufReader::new(file))
    };
    let mut lines = copied().map_err(|error| format!("its trace: {error}"))?;

    let mut head = String::new();
    lines.read_line(&mut head).map_err(|error| format!("its trace: {error}"))?;
    let head: Value = serde_json::from_str(&head).map_err(|error| format!("its trace: {error}"))?;
    let spec = head.get("spec").ok_or("its trace does not begin with its spec")?.to_string();
    Ok(Recorded { id: id.to_owned(), spec, events: Events::Trace { lines, seq: 0 } })
}

impl Events {
    /// The next event with its number; `None` after the last one.
    ///
    /// # Errors
    /// When an event is missing, or cannot be read.
    pub fn next(&mut self) -> Result<Option<(u64, Vec<u8>)>, String> {
        match self {
            Self::Trace { lines, seq } => {
                let mut line = Vec::new();
                let read = lines.read_until(b'\n', &mut line);
                if read.map_err(|error| format!("its trace: {error}"))? == 0 {
                    return Ok(None);
                }
                *seq += 1;
                // A trace adds the number in front of what the journal keeps.
                let rest = line
                    .strip_suffix(b"\n")
                    .and_then(|line| line.strip_prefix(format!(r#"{{"seq":{seq},"#).as_bytes()));
                let rest = rest.ok_or_else(|| format!("event {seq} is missing in its trace"))?;
                Ok(Some((*seq, [b"{", rest].concat())))
            }
            Self::Journal { journal, id, last, seq, read } => {
                if *seq == *last {
                    return Ok(None);
                }
                let wanted = *seq + 1;
                if read.last().is_none_or(|segment| segment.last_seq() < wanted) {
                    *read = journal
                        .segments(id, *seq, READ_BYTES)
                        .map_err(|error| error.to_string())?;
                }
                let segment = read
                    .iter()
                    .find(|segment| (segment.first_seq..=segment.last_seq()).contains(&wanted));
                let event = segment
                    .and_then(|segment| segment.events().find(|(at, _)| *at == wanted))
                    .ok_or_else(|| format!("event {wanted} is missing"))?;
                *seq = wanted;
                Ok(Some((wanted, event.1.to_vec())))
            }
        }
    }
}
