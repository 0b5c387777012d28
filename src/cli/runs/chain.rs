//! `runs verify-chain`: recomputes a run's hash chain from its trace and compares it with the
//! record, and the record's answer and verdict with the event that ended the run.

use std::io::{BufRead, BufReader};
use std::process::ExitCode;

use clap::Args;
use serde::Deserialize;
use serde_json::{Value, json};

use super::client::ClientError;
use super::{Common, run_id, show, trace};
use crate::cli::output::{Output, count, print};
use prime_journal::{ChainHash, Head};
use prime_protocol::Assurance;
use prime_report::RunResult;
use prime_service::runs::{RunRecord, Status, TraceContent};

#[derive(Args)]
pub struct VerifyChainArguments {
    /// Run id
    #[arg(value_parser = run_id)]
    id: String,
    #[command(flatten)]
    common: Common,
}

/// Why the chain of a trace cannot be computed.
#[derive(Debug, thiserror::Error)]
pub enum ChainError {
    #[error(transparent)]
    Read(#[from] std::io::Error),
    /// It is another run's trace, or an event is missing.
    #[error("line {line} of the trace is not {expected}")]
    Damaged { line: u64, expected: String },
}

/// How the run ended, according to its events.
#[derive(Debug, Default, PartialEq, Deserialize)]
pub struct End {
    /// Absent if no actor carried the run out when it ended, for example because it could not be
    /// resumed.
    outcome: Option<String>,
    #[serde(default)]
    verified: bool,
    /// Absent in records from before it existed.
    assurance: Option<Assurance>,
    answer: Option<Value>,
}

impl End {
    const PREFIX: &'static [u8] = br#"{"event":"finished""#;

    /// What a finished run's record says that contradicts this end, if anything. A run without an
    /// answer has none in its last event either.
    pub fn contradiction(&self, status: Status, record: &RunResult) -> Option<String> {
        let text =
            |value: Option<&Value>| value.map_or_else(|| "none".to_owned(), Value::to_string);
        if self.answer != record.answer {
            let (ours, theirs) = (text(self.answer.as_ref()), text(record.answer.as_ref()));
            return Some(format!("the record's answer is {theirs}, that of its last event {ours}"));
        }

        // The record is older than bases: nobody vouches for its steps now, whatever they were
        // called then.
        let shown = record
            .assurance
            .filter(|shown| self.assurance.is_none() && *shown <= Assurance::Unchecked);
        if self.verified != record.verified && (shown.is_none() || record.verified) {
            return Some(format!(
                "`verified` is {} in the record, but {} in its last event",
                record.verified, self.verified
            ));
        }
        if self.assurance.is_some() && self.assurance != record.assurance {
            let word = |assurance: Option<Assurance>| assurance.map_or("missing", Assurance::name);
            return Some(format!(
                "`assurance` is {} in the record, but {} in its last event",
                word(record.assurance),
                word(self.assurance)
            ));
        }

        let recorded = record.outcome.as_deref().unwrap_or("none");
        let outcome = self.outcome.as_deref().unwrap_or(recorded);
        if outcome != recorded {
            return Some(format!(
                "the record's outcome is {recorded}, that of its last event {outcome}"
            ));
        }

        let before = self.verified.then_some(Assurance::Verified);
        let ended = Status::of_ended(outcome, self.assurance.or(shown).or(before));
        if ended == status {
            return None;
        }
        let (said, ended) = (status.name(), ended.name());
        Some(format!(
            "the record's status is {said}, but a run that ends as its last event says is {ended}"
        ))
    }
}

/// A line without its newline; `None` if it was cut off.
fn whole(line: &[u8]) -> Option<&[u8]> {
    line.strip_suffix(b"\n")
}

/// The chain over a trace without states, up to event `last` or to its end, and how the run ended.
///
/// It begins with the SHA-256 of the run's spec as the trace has it; each event extends it to the
/// SHA-256 of the previous hash and the event.
///
/// # Errors
/// [`ChainError`].
pub fn chain(
    id: &str,
    trace: &mut impl BufRead,
    last: Option<u64>,
) -> Result<(Head, End), ChainError> {
    let mut line = Vec::new();
    trace.read_until(b'\n', &mut line)?;

    // Compared as bytes, because the hash covers the spec exactly as it was recorded.
    let before = format!(r#"{{"seq":0,"event":"accepted","run":"{id}","spec":"#);
    let spec =
        whole(&line).and_then(|line| line.strip_prefix(before.as_bytes())?.strip_suffix(b"}"));
    let spec = spec.and_then(|spec| std::str::from_utf8(spec).ok());
    let spec = spec
        .ok_or_else(|| ChainError::Damaged { line: 1, expected: "the spec of this run".into() })?;

    let mut head = Head::genesis(spec);
    let mut end = End::default();
    while last.is_none_or(|last| head.seq < last) {
        line.clear();
        // The trace may end early; the caller compares the count of events.
        if trace.read_until(b'\n', &mut line)? == 0 {
            break;
        }

        let seq = head.seq + 1;
        let rest = whole(&line)
            .and_then(|line| line.strip_prefix(format!(r#"{{"seq":{seq},"#).as_bytes()));
        let damaged = || ChainError::Damaged { line: seq + 1, expected: format!("event {seq}") };
        let event = [b"{", rest.ok_or_else(damaged)?].concat();

        head = Head { seq, hash: ChainHash::then(head.hash, &event) };
        if event.starts_with(End::PREFIX) {
            let read = serde_json::from_slice(&event);
            end = read.map_err(|_| ChainError::Damaged {
                line: seq + 1,
                expected: "the end of a run".into(),
            })?;
        }
    }

    Ok((head, end))
}

pub fn verify_chain(arguments: &VerifyChainArguments) -> anyhow::Result<ExitCode> {
    let VerifyChainArguments { id, common } = arguments;
    let client = common.client()?;

    // The record is read first, so that the trace has at least its events.
    let record = show::read(&client.get(&format!("/v1/runs/{id}"), &[])?.json::<Value>()?)?;

    // An open run may have further events by now. A finished run must have exactly its record's.
    let last = (!record.status.is_over()).then_some(record.events);

    let (url, from) = trace::open(&client, id, TraceContent::EVENTS)?;
    let (computed, reason) = match chain(id, &mut BufReader::with_capacity(64 << 10, from), last) {
        Ok((head, _)) if head.seq != record.events => (
            Some(head),
            Some(format!(
                "the trace has {}, the record {}",
                count(head.seq, "event"),
                record.events
            )),
        ),
        Ok((head, _)) if head.hash.to_string() != record.chain => (
            Some(head),
            Some(format!("the trace hashes to {}, the record says {}", head.hash, record.chain)),
        ),
        Ok((head, end)) if record.status.is_over() => {
            (Some(head), end.contradiction(record.status, &record.result))
        }
        Ok((head, _)) => (Some(head), None),
        Err(ChainError::Read(error)) => {
            return Err(ClientError::BrokenOff { url, reason: error.to_string() }.into());
        }
        Err(damaged @ ChainError::Damaged { .. }) => (None, Some(damaged.to_string())),
    };

    let text = match (common.output, &reason) {
        (Output::Json, _) => {
            let report = json!({
                "id": id,
                "agrees": reason.is_none(),
                "events": record.events,
                "recorded": record.chain,
                "computed": computed.map(|head| head.hash.to_string()),
                "reason": reason,
            });
            serde_json::to_string_pretty(&report)? + "\n"
        }
        (Output::Text, None) => {
            format!(
                "{id}: {} agree with chain {}{}\n",
                count(record.events, "event"),
                record.chain,
                ending(&record)
            )
        }
        (Output::Text, Some(reason)) => {
            format!("{id}: the record does NOT agree with its events: {reason}\n")
        }
    };

    print(text)?;
    Ok(ExitCode::from(u8::from(reason.is_some())))
}

/// What else agrees once a run is over.
fn ending(record: &RunRecord) -> &'static str {
    if record.status.is_over() { ", answer and verdict with the last of them" } else { "" }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TRACE: &str = r#"{"seq":0,"event":"accepted","run":"run_1","spec":{"task":"x"}}
{"seq":1,"event":"started"}
{"seq":2,"event":"step","action":"a"}
{"seq":3,"event":"finished"}
"#;
    /// Computed with another implementation of SHA-256.
    const AFTER: [&str; 4] = [
        "cd09025192232dfb4074bdfeb1dd279054444614039c6c4d29ff683eee635047",
        "7507223bef744c72d991dc49df0ac6d13e4b2a65a509c8d1028a1d625c3357a6",
        "bd936415435c5f0dddf9c567b8f499458fdd114f7c7eca2198b746dec0b00de2",
        "7691b12243f4f9ddbcf98d331e339c55a4a2da08544a5b3dc75ceb9d7ccb536b",
    ];

    fn chain_of(text: &str, last: Option<u64>) -> Result<Head, ChainError> {
        chain("run_1", &mut text.as_bytes(), last).map(|(head, _)| head)
    }

    #[test]
    fn the_chain_covers_the_spec_and_every_event() {
        for (last, expected) in (0..).zip(AFTER) {
            let head = chain_of(TRACE, Some(last)).unwrap();
            assert_eq!((head.seq, head.hash.to_string().as_str()), (last, expected));
        }

        assert_eq!(chain_of(TRACE, None).unwrap().hash.to_string(), AFTER[3]);
        for changed in [TRACE.replace(r#""x""#, r#""y""#), TRACE.replace(r#""a""#, r#""b""#)] {
            assert_ne!(chain_of(&changed, None).unwrap().hash.to_string(), AFTER[3], "{changed}");
        }
    }

    #[test]
    fn traces_with_a_hole_are_damaged() {
        let without_event = |line: usize| {
            TRACE
                .split_inclusive('\n')
                .enumerate()
                .filter(|(at, _)| *at != line)
                .map(|(_, line)| line)
                .collect()
        };

        let rows: [(String, &str); 6] = [
            (String::new(), "line 1"),
            (TRACE.replace("run_1", "run_2"), "line 1"),
            (without_event(0), "line 1"),
            (without_event(1), "line 2 of the trace is not event 1"),
            (without_event(2), "line 3 of the trace is not event 2"),
            (TRACE.trim_end().to_owned(), "line 4 of the trace is not event 3"),
        ];

        for (text, expected) in rows {
            let error = chain_of(&text, None).unwrap_err().to_string();
            assert!(error.contains(expected), "{error}");
        }
    }
}
