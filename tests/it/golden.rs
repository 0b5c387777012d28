//! The benchmark's bytes, which must not change by accident.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::binary::{done, shown};

/// Digest, steps and lines of each file of `bench generate --all`, as recorded by `make golden`.
const RECORDED: &str = include_str!("../golden/benchmark.json");

#[test]
fn all_instances_are_those_of_the_record() {
    let folder = tempfile::tempdir().unwrap();
    let generated = done(&["bench", "generate", "--all", "--out", shown(folder.path())]);
    assert_eq!(generated.code, 0, "{}", generated.stderr);
    let manifest = std::fs::read_to_string(folder.path().join("manifest.json")).unwrap();

    let files = |text: &str| -> BTreeMap<String, Value> {
        let manifest: Value = serde_json::from_str(text).unwrap();
        serde_json::from_value(manifest["files"].clone()).unwrap()
    };

    let (recorded, made) = (files(RECORDED), files(&manifest));
    let lines: u64 = made.values().map(|file| file["lines"].as_u64().unwrap()).sum();
    // Three levels of 200 instances.
    assert_eq!((made.len(), lines), (recorded.len(), 600 * recorded.len() as u64));

    let changed: Vec<_> =
        made.iter().filter(|(name, file)| recorded.get(*name) != Some(file)).collect();
    assert!(
        changed.is_empty(),
        "changed: {changed:?}; if that is intended, record it with `make golden`"
    );
}

/// The Python package is tested against the same file.
#[test]
fn outputs_are_judged_as_recorded() {
    let folder = tempfile::tempdir().unwrap();
    let details = folder.path().join("judgements.jsonl");
    let outputs = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/outputs.jsonl");
    let checked = done(&["bench", "check", outputs, "--details", shown(&details)]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);

    let recorded = include_str!("../golden/judgements.jsonl");
    let judged = std::fs::read_to_string(details).unwrap();
    for (line, (wanted, found)) in recorded.lines().zip(judged.lines()).enumerate() {
        assert_eq!(
            found,
            wanted,
            "line {}; if that is intended, record it with `make golden`",
            line + 1
        );
    }
    assert_eq!(recorded.lines().count(), judged.lines().count());
}
