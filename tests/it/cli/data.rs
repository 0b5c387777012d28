//! `data`: what is written, and what is refused.

use std::fs;

use crate::binary::{done, shown};

const SMALL: [&str; 6] = ["--task", "n-queens", "--difficulty", "hard", "--instances", "2"];

#[test]
fn each_kind_has_a_card_and_a_file_for_each_task() {
    let folder = tempfile::tempdir().unwrap();
    for kind in ["sft", "dpo", "grpo"] {
        let out = folder.path().join(kind);
        let written = done(&[&["data", kind, "--out", shown(&out)], &SMALL[..]].concat());
        assert_eq!(written.code, 0, "{}", written.stderr);
        assert!(written.stderr.contains(": 1 file, "), "{}", written.stderr);

        let card = fs::read_to_string(out.join("README.md")).unwrap();
        assert!(
            card.contains(&format!("pretty_name: PRIME-Bench {kind}\n"))
                && card.contains("base seed 1000,"),
            "{card}"
        );
        let parquet = fs::read(out.join("data/n-queens.parquet")).unwrap();
        assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
    }
}

#[test]
fn what_the_benchmark_has_is_left_out_unless_it_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("hanoi");
    // The benchmark has all of its 36 easy inputs.
    let hanoi = ["data", "sft", "--task", "tower-of-hanoi", "--difficulty", "easy"];
    let asked = [&hanoi[..], &["--instances", "2", "--out", shown(&out)]].concat();
    done(&asked).refused(&["2 instances left out", "--benchmark-inputs", "of tower-of-hanoi"]);

    let kept = done(&[&asked[..], &["--benchmark-inputs", "--force"]].concat());
    assert_eq!(kept.code, 0, "{}", kept.stderr);
    let card = fs::read_to_string(out.join("README.md")).unwrap();
    assert!(card.contains("Inputs that the benchmark has are among them."), "{card}");
}

#[test]
fn a_folder_holds_one_data_set() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("sft");
    let write = |command: &[&str], more: &[&str]| {
        done(&[command, &["--out", shown(&out), "--instances", "2"], more].concat())
    };
    let (sft, export) = (&["data", "sft"][..], &["bench", "export", "--format", "parquet"][..]);
    let (queens, sort) = (["--task", "n-queens"], ["--task", "bubble-sort"]);

    assert_eq!(write(sft, &queens).code, 0);
    let card = fs::read_to_string(out.join("README.md")).unwrap();
    for command in [sft, export] {
        write(command, &sort).refused(&["--out", shown(&out), "not empty", "--force"]);
    }
    assert_eq!(fs::read_to_string(out.join("README.md")).unwrap(), card, "nothing is changed");

    let forced = write(sft, &[&sort[..], &["--force"]].concat());
    assert_eq!(forced.code, 0, "{}", forced.stderr);
    assert!(!out.join("data/n-queens.parquet").exists());
    assert!(out.join("data/bubble-sort.parquet").is_file());
}

#[test]
fn what_is_no_trace_of_a_run_gives_no_pairs() {
    let folder = tempfile::tempdir().unwrap();
    let (trace, out) = (folder.path().join("steps.jsonl"), folder.path().join("dpo"));
    fs::write(&trace, "{\"event\":\"started\"}\n").unwrap();
    let pairs =
        |trace| done(&["data", "dpo", "--only-traces", "--trace", trace, "--out", shown(&out)]);
    pairs(shown(&trace)).refused(&[shown(&trace), "accepted", "runs trace"]);
    pairs("/nowhere/steps.jsonl").refused(&["/nowhere/steps.jsonl"]);
}

#[test]
fn what_cannot_be_made_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let out = shown(folder.path());
    let refused = |arguments: &[&str], parts: &[&str]| {
        done(&[&["data"], arguments, &["--out", out]].concat()).refused(parts);
    };

    refused(&["sft", "--base-seed", "42"], &["--base-seed 42", "benchmark"]);
    refused(&["sft", "--style", "terse"], &["terse", "compact"]);
    refused(&["grpo", "--style", "compact"], &["compact", "structured"]);
    refused(&["sft", "--task", "n-quens"], &["n-quens", "n-queens"]);
    refused(&["dpo", "--only-traces"], &["--trace"]);
    refused(&["dpo", "--prefer", "rlaif"], &["--trace"]);
    refused(&["dpo", "--trace", "t.jsonl", "--margin", "0.1"], &["--margin", "--prefer rlaif"]);
    refused(
        &["dpo", "--trace", "t.jsonl", "--prefer", "rlaif", "--margin", "-1"],
        &["--margin", "not negative"],
    );
    refused(&["sft", "--style", "turns"], &["turns", "compact"]);
    refused(&["grpo", "--instances", "0"], &["--instances"]);
    refused(
        &["sft", "--style", "baseline", "--lines-max", "1", "--task", "bubble-sort"],
        &["nothing to train on"],
    );

    done(&["data", "sft", "--out", "/proc/nowhere", "--task", "n-queens"])
        .refused(&["/proc/nowhere"]);
    done(&["data", "sft", "--out", "sft.parquet"]).refused(&["sft.parquet", "folder"]);
}
