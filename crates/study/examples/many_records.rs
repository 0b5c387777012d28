//! Prints records as if a study had run, to measure `study report`:
//! `cargo run --release -p prime-study --example many_records -- 100000 > records.jsonl`. Two
//! systems take turns on all tasks; the second is right more often.

use std::io::{BufWriter, Write as _};

use prime_bench::tasks::{Difficulty, all};
use prime_study::records::{Key, Provenance, Record, StageOutcome, Status};

fn main() -> std::io::Result<()> {
    let count: usize = std::env::args().nth(1).and_then(|text| text.parse().ok()).unwrap_or(1_000);
    #[expect(clippy::disallowed_methods, reason = "records that this program made")]
    let mut out = BufWriter::new(std::io::stdout().lock());

    let cells = || {
        (0..200).flat_map(|index| (1..).zip(all()).map(move |(place, task)| (index, place, task)))
    };

    let base_seeds = (1..).flat_map(|seed| cells().map(move |cell| (seed, cell)));
    let instances = base_seeds.flat_map(|cell| Difficulty::ALL.map(|level| (level, cell)));

    let runs =
        instances.flat_map(|instance| ["single pass", "PRIME"].map(|system| (system, instance)));

    for (number, (system, (difficulty, (base_seed, (index, place, task))))) in
        runs.take(count).enumerate()
    {
        let key = Key {
            system: system.to_owned(),
            task: task.spec().slug.to_owned(),
            difficulty: difficulty.name().to_owned(),
            index,
            base_seed,
            repeat: 0,
        };

        // A hash of the run decides, so that the file is always the same.
        let drawn = prime_bench::fnv1a(key.to_string().bytes()) % 100;
        let right = drawn < if system == "PRIME" { 90 } else { 30 + place % 40 };

        let provenance = Provenance {
            version: "0.1.0".to_owned(),
            config_hash: "0123456789abcdef".to_owned(),
            machine: "none".to_owned(),
            verifier: "rules".to_owned(),
            ..Provenance::default()
        };

        let stage = if right { StageOutcome::Passed } else { StageOutcome::Failed };
        let record = Record {
            study: "many".to_owned(),
            status: Status::Measured,
            right,
            accepted: right,
            format: StageOutcome::Passed,
            syntax: StageOutcome::Passed,
            semantic: stage,
            result: stage,
            efficiency: Some(1.0),
            size: Some(4 + u64::from(index) % 9),
            first_error_pct: (!right).then_some(drawn as f64),
            first_error_type: (!right).then(|| "index".to_owned()),
            severity: (!right).then(|| "major".to_owned()),
            steps: 40 + drawn,
            reference_steps: 40,
            proposals: 50 + drawn,
            wall_ms: 100.0 + drawn as f64,
            executor_ms: Some(90.0),
            verifier_ms: Some(5.0),
            coordinator_ms: Some(1.0),
            coordination_share: Some(0.01),
            started_at: format!("2026-01-01T00:00:{:02}Z", number % 60),
            ..Record::not_measured(key, task.spec(), &provenance)
        };

        serde_json::to_writer(&mut out, &record)?;
        out.write_all(b"\n")?;
    }
    out.flush()
}
