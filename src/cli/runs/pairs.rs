//! `runs pairs`: people's reviews as preference pairs for training.

use std::collections::BTreeMap;
use std::io::{self, BufRead, BufReader, Read};
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Args, ValueHint};
use serde::Deserialize;

use super::chosen::Chosen;
use super::trace::save;
use super::{Common, run_id};
use crate::cli::output::{count, note};
use crate::cli::values::TaskParser;
use prime_service::runs::LeftOut;

#[derive(Args)]
pub struct PairsArguments {
    /// Run id [default: the reviews of all runs]
    #[arg(
        value_parser = run_id,
        conflicts_with_all = ["task", "agent", "model", "label", "key", "since", "before"]
    )]
    id: Option<String>,
    /// Only reviews of runs of this task
    #[arg(long, value_parser = TaskParser, hide_possible_values = true)]
    task: Option<String>,
    /// Only reviews of runs with this agent in any role
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    #[command(flatten)]
    chosen: Chosen,
    /// Write to this file, which appears when it is complete [default: standard output]
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    out: Option<PathBuf>,
    #[command(flatten)]
    common: Common,
}

/// The lines of an export that are pairs. The others are counted.
struct Pairs<R> {
    from: BufReader<R>,
    line: Vec<u8>,
    read: usize,
    passed: u64,
    left_out: BTreeMap<LeftOut, u64>,
}

/// The line of a step without a pair.
#[derive(Deserialize)]
struct Without {
    left_out: LeftOut,
}

impl<R: Read> Pairs<R> {
    fn new(from: R) -> Self {
        let (line, left_out) = (Vec::new(), BTreeMap::new());
        Self { from: BufReader::new(from), line, read: 0, passed: 0, left_out }
    }
}

impl<R: Read> Read for Pairs<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.read == self.line.len() {
            self.line.clear();
            self.read = 0;
            if self.from.read_until(b'\n', &mut self.line)? == 0 {
                return Ok(0);
            }
            if let Ok(Without { left_out }) = serde_json::from_slice(&self.line) {
                *self.left_out.entry(left_out).or_default() += 1;
                self.line.clear();
            } else {
                self.passed += 1;
            }
        }
        let rest = &self.line[self.read..];
        let read = rest.len().min(buffer.len());
        buffer[..read].copy_from_slice(&rest[..read]);
        self.read += read;
        Ok(read)
    }
}

fn reason(left_out: LeftOut) -> &'static str {
    match left_out {
        LeftOut::NoBetterLine => "no better line was proposed in the same state",
        LeftOut::Repeated => "another step gives the same pair",
        LeftOut::OwnTask => "the task is not the benchmark's and has no one-line prompt",
        LeftOut::TooLong => "the run has more than 200,000 events",
        LeftOut::Unreadable => "this version of the daemon cannot replay the run",
    }
}

pub fn pairs(arguments: &PairsArguments) -> anyhow::Result<ExitCode> {
    let PairsArguments { id, task, agent, chosen, out, common } = arguments;
    let own = [("run", id.clone()), ("task", task.clone()), ("agent", agent.clone())];
    let given = own.into_iter().chain(chosen.query());
    let mut query: Vec<_> =
        given.filter_map(|(name, value)| value.map(|value| (name, value))).collect();
    query.push(("left_out", "true".to_owned()));

    let (url, from) = common.client()?.get("/v1/reviews/pairs", &query)?.into_reader();
    let mut from = Pairs::new(from);
    save(url, &mut from, out.as_deref())?;

    note!("{}", count(from.passed, "pair"));
    for (why, steps) in &from.left_out {
        note!("{} left out: {}", count(*steps, "rejected step"), reason(*why));
    }
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pairs_pass_whatever_the_size_of_a_read_and_others_are_counted() {
        let text = "{\"prompt\":\"a\"}\n{\"left_out\":\"repeated\",\"run\":\"r\",\"seq\":1}\n\
                    {\"prompt\":\"\\u001b[2J\"}\n{\"left_out\":\"no_better_line\"}\n\
                    {\"left_out\":\"repeated\"}\n";
        for size in [1, 7, 1_000] {
            let mut pairs = Pairs::new(text.as_bytes());
            let (mut found, mut buffer) = (Vec::new(), vec![0; size]);
            loop {
                match pairs.read(&mut buffer).expect("a slice can be read") {
                    0 => break,
                    read => found.extend_from_slice(&buffer[..read]),
                }
            }
            assert_eq!(found, b"{\"prompt\":\"a\"}\n{\"prompt\":\"\\u001b[2J\"}\n");
            let left_out = BTreeMap::from([(LeftOut::NoBetterLine, 1), (LeftOut::Repeated, 2)]);
            assert_eq!((pairs.passed, pairs.left_out), (2, left_out), "{size}");
        }
    }
}
