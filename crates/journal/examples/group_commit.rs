//! What a group commit costs: `cargo run --release -p prime-journal --example group_commit -- RUNS COMMITS EVENTS`. Each
//! commit has so many new events of each run. Prints the time of a commit and of the folding after it, and their CPU time.
#![allow(clippy::disallowed_methods, reason = "it measures")]

use std::time::{Duration, Instant};

use prime_journal::{Head, Journal as _, ReviewCounts, RunRow, Segment, SqliteJournal, SqliteOptions, Write};
use rustix::time::{ClockId, clock_gettime};

fn row(index: u64) -> RunRow {
    let spec = "{}".to_owned();
    RunRow {
        id: format!("run_{index:027x}"),
        owner: String::new(),
        created_ms: 0,
        updated_ms: 0,
        task: "bubble-sort".to_owned(),
        status: "running".to_owned(),
        is_over: false,
        resumed: 0,
        summary: spec.clone(),
        split: None,
        reviews: ReviewCounts::default(),
        head: Head::genesis(&spec),
        spec,
    }
}

/// The event of a step, as a run records it.
fn event(seq: u64) -> String {
    let value = seq.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 40;
    format!(
        r#"{{"type":"step","round":1,"trajectory":0,"elapsed_ms":{},"depth":{seq},"line":"SWAP {value} {}","applicable":true,"violations":[],"decision":"proceed","tokens":0}}"#,
        seq / 90,
        value % 97
    )
}

/// CPU time of this thread.
fn cpu() -> Duration {
    let now = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(now.tv_sec.unsigned_abs(), u32::try_from(now.tv_nsec).unwrap_or_default())
}

fn milliseconds(mut times: Vec<Duration>) -> String {
    times.sort_unstable();
    let at = |percent: usize| times[percent * (times.len() - 1) / 100].as_secs_f64() * 1e3;
    let mean = times.iter().sum::<Duration>().as_secs_f64() * 1e3 / times.len() as f64;
    format!("mean {mean:.2} p50 {:.2} p99 {:.2} max {:.2} ms", at(50), at(99), at(100))
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1).map(|argument| argument.parse::<u64>());
    let mut next = |default| arguments.next().unwrap_or(Ok(default));
    let (runs, commits, events) = (next(1_000)?, next(400)?, next(1)?);
    let folder = tempfile::tempdir_in(".")?;
    let journal = SqliteJournal::open(&folder.path().join("runs.db"), SqliteOptions::default())?;
    let rows: Vec<RunRow> = (0..runs).map(row).collect();
    let mut heads: Vec<(String, Head)> = rows.iter().map(|row| (row.id.clone(), row.head)).collect();
    journal.commit(&rows.into_iter().map(|row| Write::Accept { row, key: None }).collect::<Vec<_>>())?;
    let (mut wall, mut wall_folding) = (Vec::new(), Vec::new());
    let (mut busy, mut busy_folding) = (Duration::ZERO, Duration::ZERO);
    for _ in 0..commits {
        let append = |(id, head): &mut (String, Head)| {
            let segment = Segment::following(*head, (1..=events).map(|at| event(head.seq + at)));
            *head = segment.head();
            Write::Append { id: id.clone(), segment }
        };
        let writes: Vec<Write> = heads.iter_mut().map(append).collect();
        let (began, before) = (Instant::now(), cpu());
        journal.commit(&writes)?;
        wall.push(began.elapsed());
        let (began, between) = (Instant::now(), cpu());
        journal.fold(false)?;
        wall_folding.push(began.elapsed());
        busy += between.saturating_sub(before);
        busy_folding += cpu().saturating_sub(between);
    }
    let each = |time: Duration| time.as_secs_f64() * 1e3 / commits as f64;
    println!("{runs} runs, {commits} commits of {events} events of each");
    println!("commit:  {}; CPU {:.2} ms each", milliseconds(wall), each(busy));
    println!("folding: {}; CPU {:.2} ms a commit", milliseconds(wall_folding), each(busy_folding));
    println!("size:    {:.1} MiB", journal.size()?.bytes as f64 / f64::from(1 << 20));
    Ok(())
}
