//! A commit of the journal that takes the next record of every run that waits, with its share of
//! the folding after it: the cost of group commit. The file lies beside the build, on whatever disk
//! that is; each commit is synced.

use std::time::Duration;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use prime_journal::{
    Head, Journal as _, ReviewCounts, RunRow, SqliteJournal, SqliteOptions, Write,
};
use tokio::time::Instant;

use crate::support::records::segment;

const SPEC: &str = "{}";

fn row(index: usize) -> RunRow {
    RunRow {
        id: format!("run_{index:027x}"),
        owner: String::new(),
        created_ms: 0,
        updated_ms: 0,
        task: "bubble-sort".to_owned(),
        status: "running".to_owned(),
        is_over: false,
        resumed: 0,
        spec: SPEC.to_owned(),
        summary: "{}".to_owned(),
        split: None,
        reviews: ReviewCounts::default(),
        head: Head::genesis(SPEC),
    }
}

/// A journal with open runs, and their last events.
struct Waiting {
    journal: SqliteJournal,
    heads: Vec<(String, Head)>,
}

impl Waiting {
    fn open(folder: &std::path::Path, runs: usize) -> Self {
        let journal = SqliteJournal::open(&folder.join("runs.db"), SqliteOptions::default())
            .expect("a new journal");

        let rows: Vec<RunRow> = (0..runs).map(row).collect();
        let heads = rows.iter().map(|row| (row.id.clone(), row.head)).collect();

        let accept: Vec<Write> =
            rows.into_iter().map(|row| Write::Accept { row, key: None }).collect();
        journal.commit(&accept).expect("accepted");

        Self { journal, heads }
    }

    /// Commits one more record of every run, and folds if that is due; the records are made before
    /// the clock starts.
    fn commit(&mut self) -> Duration {
        let append = |(id, head): &mut (String, Head)| {
            let segment = segment(*head, 1);
            *head = segment.head();
            Write::Append { id: id.clone(), segment }
        };
        let writes: Vec<Write> = self.heads.iter_mut().map(append).collect();

        let started = Instant::now();
        self.journal.commit(&writes).expect("committed");
        self.journal.fold(false).expect("folded");

        started.elapsed()
    }
}

fn group_commit(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("journal: a record of each waiting run, one commit");
    group.sample_size(10);

    for runs in [1, 64, 1_000] {
        group.throughput(Throughput::Elements(runs as u64));
        group.bench_function(BenchmarkId::from_parameter(runs), |bencher| {
            let folder =
                tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a temporary folder");
            let mut waiting = Waiting::open(folder.path(), runs);

            bencher.iter_custom(|rounds| (0..rounds).map(|_| waiting.commit()).sum());
        });
    }

    group.finish();
}

criterion_group!(benches, group_commit);
