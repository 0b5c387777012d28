//! `study merge` and `study leaderboard`: records of several people, on executors without a model.

use std::fs;
use std::path::Path;

use crate::binary::{SCRIPTED, done, file, shown};

const STUDY: &str = r#"
[study]
name = "board"
null = false
[ask]
tasks = ["tower-of-hanoi", "bubble-sort"]
difficulties = ["easy"]
instances = 2
[[system]]
name = "PRIME"
"#;

/// Records of the study with an executor that errs this often.
fn records(study: &Path, to: &Path, error_rate: &str) {
    let rate = format!("agents.executor.error_rate={error_rate}");
    let run = ["study", "run", shown(study), "--records", shown(to), "--set", &rate];
    let done = done(&[&run[..], &SCRIPTED].concat());
    assert_eq!(done.code, 0, "{}", done.stderr);
}

#[test]
fn records_of_two_people_are_checked_merged_and_ranked() {
    let (folder, study) = file("board.toml", STUDY);
    let at = |name: &str| folder.path().join(name);
    let (mine, theirs) = (at("mine.jsonl"), at("theirs.jsonl"));
    records(&study, &mine, "0.0");
    records(&study, &theirs, "0.02");

    let out = at("all.jsonl");
    let named = format!("theirs={}", shown(&theirs));
    let merge = |files: &[&str], code: i32| {
        let merged = ["study", "merge", "--out", shown(&out), "--output", "json"];
        done(&[&merged[..], files].concat()).json(code)
    };
    let report = merge(&[shown(&mine), &named], 0);
    assert_eq!(
        (&report["runs"], &report["systems"], &report["checked"]),
        (&8.into(), &2.into(), &8.into())
    );

    let page = at("board.md");
    let board =
        ["study", "leaderboard", shown(&out), "--study", shown(&study), "--out", shown(&page)];
    assert_eq!(done(&board).code, 0);
    let text = fs::read_to_string(&page).unwrap();
    for expected in
        ["# Leaderboard: board", "4 instances of 2 tasks", "| PRIME |", "| theirs: PRIME |"]
    {
        assert!(text.contains(expected), "{expected:?} in {text}");
    }

    // The file is not replaced, and one run has one result.
    let again = ["study", "merge", shown(&mine), "--out", shown(&out)];
    done(&again).refused(&["all.jsonl: it exists already"]);
    fs::remove_file(&out).unwrap();
    done(&["study", "merge", shown(&mine), shown(&theirs), "--out", shown(&out)])
        .refused(&["theirs.jsonl, line 1", "NAME="]);
    assert!(!out.exists());
}

#[test]
fn an_answer_that_was_changed_is_refused() {
    let (folder, study) = file("board.toml", STUDY);
    let (mine, lie) = (folder.path().join("mine.jsonl"), folder.path().join("lie.jsonl"));
    records(&study, &mine, "0.0");

    let text = fs::read_to_string(&mine).unwrap();
    let wrong = text.replace("\\\"moves\\\":", "\\\"moves\\\":1");
    assert_ne!(text, wrong);
    fs::write(&lie, wrong).unwrap();
    let out = folder.path().join("all.jsonl");
    done(&["study", "merge", shown(&lie), "--out", shown(&out)]).refused(&[
        "lie.jsonl, line ",
        "tower-of-hanoi/easy/000",
        "does not accept the answer",
    ]);

    // Records of another study have no place on its board.
    let other = STUDY.replace("\"board\"", "\"other\"");
    let (_folder, other) = file("other.toml", &other);
    done(&["study", "leaderboard", shown(&mine), "--study", shown(&other)])
        .refused(&["no run of the study `other`"]);
}
