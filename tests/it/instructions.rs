//! The regression gate of `make instructions`, on synthetic files.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::shown;

const COMPILER: &str = "rustc 1.95.0 (made up)";

/// Instructions by benchmark.
type Counts<'a> = &'a [(&'a str, u64)];

/// A folder with a record and the counts of a run.
struct Files {
    _folder: TempDir,
    record: PathBuf,
    counts: PathBuf,
}

/// A benchmark as gungraun prints it: `name` is its function and id.
fn summary(name: &str, instructions: u64) -> String {
    let (function, id) =
        name.split_once("::").map_or((name, Value::Null), |(function, id)| (function, id.into()));
    let metrics = json!({ "Ir": { "values": { "new": instructions, "old": 7 } } });
    let profile =
        json!({ "tool": "Callgrind", "data": { "parts": [], "total": { "metrics": metrics } } });
    json!({ "function_name": function, "id": id, "profiles": [profile] }).to_string() + "\n"
}

impl Files {
    fn of(record: &Value, counts: Counts) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (record_path, counts_path) =
            (folder.path().join("record.json"), folder.path().join("counts.jsonl"));
        fs::write(&record_path, record.to_string()).unwrap();

        let lines: String = counts.iter().map(|(name, count)| summary(name, *count)).collect();
        fs::write(&counts_path, lines).unwrap();
        Self { _folder: folder, record: record_path, counts: counts_path }
    }

    /// The gate's exit code and what it printed.
    fn gate(&self, more: &[&str]) -> (i32, String) {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("scripts/instructions");
        let paths = [&script, &self.record, &self.counts].map(|path| shown(path));
        let mut command = Command::new("python3");
        command.arg("-B").args(paths).args(["--compiler", COMPILER]).args(more);
        let run = command.output().expect("python3 is installed by `make test`");
        let printed = [run.stdout, run.stderr].concat();
        (run.status.code().expect("it ended by itself"), String::from_utf8(printed).unwrap())
    }
}

fn record(counts: &Value) -> Value {
    json!({ "compiler": COMPILER, "instructions": counts })
}

#[test]
fn only_regressions_above_a_tenth_and_missing_benchmarks_fail() {
    let regression = [
        "push::deep: 1,101 instructions, +10.1 % against the recorded 1,000",
        "make instructions RECORD=1",
    ];
    let improvement = [
        "push::deep: 899 instructions, -10.1 % against the recorded 1,000",
        "make instructions RECORD=1",
    ];
    let uncounted = ["push::deep: 1,000 instructions are recorded, and it was not counted"];
    let unrecorded = ["pop: 5 instructions, and no record of it"];
    let none: [&str; 0] = [];
    let cases: [(Counts, i32, &[&str]); 7] = [
        (&[("push::deep", 1_000)], 0, &none),
        (&[("push::deep", 1_100)], 0, &none),
        (&[("push::deep", 900)], 0, &none),
        (&[("push::deep", 1_101)], 1, &regression),
        (&[("push::deep", 899)], 0, &improvement),
        (&[("pop", 5)], 1, &uncounted),
        (&[("push::deep", 1_000), ("pop", 5)], 1, &unrecorded),
    ];

    for (counts, code, sentences) in cases {
        let files = Files::of(&record(&json!({ "push::deep": 1_000 })), counts);
        let (found, printed) = files.gate(&[]);
        assert_eq!(found, code, "{counts:?}: {printed}");
        for sentence in sentences {
            assert!(printed.contains(sentence), "{counts:?}: {printed}");
        }
        assert_eq!(printed.contains("RECORD=1"), !sentences.is_empty(), "{counts:?}: {printed}");
    }
}

#[test]
fn another_compiler_is_named_and_compared_all_the_same() {
    let made_before = json!({ "compiler": "rustc 1.94.1", "instructions": { "push": 1_000 } });
    for (count, code) in [(1_000, 0), (1_200, 1)] {
        let (found, printed) = Files::of(&made_before, &[("push", count)]).gate(&[]);
        assert_eq!(found, code, "{printed}");
        assert!(
            printed.contains("made by rustc 1.94.1") && printed.contains(COMPILER),
            "{printed}"
        );
    }
}

#[test]
fn the_record_holds_the_counts() {
    let files = Files::of(&json!("none yet"), &[("push::deep", 1_000), ("pop", 5)]);
    let (code, printed) = files.gate(&["--record"]);
    assert_eq!(code, 0, "{printed}");
    let written: Value = serde_json::from_str(&fs::read_to_string(&files.record).unwrap()).unwrap();
    assert_eq!(written, record(&json!({ "pop": 5, "push::deep": 1_000 })));

    let (code, printed) = files.gate(&[]);
    assert_eq!(code, 0, "{printed}");
}

#[test]
fn files_that_cannot_be_read_are_named() {
    let good = record(&json!({ "push": 1_000 }));
    let counts: Counts = &[("push", 1_000)];
    for bad in [
        json!([1]),
        json!({ "compiler": COMPILER }),
        record(&json!({ "push": 0 })),
        record(&json!([1_000])),
    ] {
        let (code, printed) = Files::of(&bad, counts).gate(&[]);
        assert_eq!(code, 2, "{bad}: {printed}");
        assert!(printed.contains("record.json: no record of instructions"), "{bad}: {printed}");
    }

    let (code, printed) = Files::of(&good, &[]).gate(&[]);
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("counts.jsonl: it holds no bench"), "{printed}");

    for line in ["{\"function_name\": \"push\"}\n", "{\"function_name\"\n"] {
        let files = Files::of(&good, counts);
        fs::write(&files.counts, summary("push", 1_000) + line).unwrap();
        let (code, printed) = files.gate(&[]);
        assert_eq!(code, 2, "{line}: {printed}");
        assert!(printed.contains("counts.jsonl, line 2: no summary"), "{line}: {printed}");
    }

    let files = Files::of(&good, counts);
    fs::remove_file(&files.record).unwrap();
    let (code, printed) = files.gate(&[]);
    assert_eq!(code, 2, "{printed}");
    assert!(printed.contains("record.json"), "{printed}");
}
