//! `bench generate` and `bench export`: what is written, and what an interruption leaves.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::binary::{Done, done, prime, shown};

fn generate(arguments: &[&str]) -> Done {
    let generated = done(&[&["bench", "generate"], arguments].concat());
    assert_eq!(generated.code, 0, "{}", generated.stderr);
    generated
}

fn names(folder: &Path) -> Vec<String> {
    let entry =
        |entry: std::io::Result<fs::DirEntry>| entry.unwrap().file_name().into_string().unwrap();
    let mut names: Vec<String> = fs::read_dir(folder).unwrap().map(entry).collect();
    names.sort();
    names
}

#[test]
fn lines_are_those_of_the_contract() {
    let task = ["--task", "bubble-sort", "--instances", "2", "--out", "-"];
    let printed = generate(&task);
    let lines: Vec<Value> =
        printed.stdout.lines().map(|line| serde_json::from_str(line).unwrap()).collect();

    let ids: Vec<_> = lines.iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect();
    let wanted = ["easy/000", "easy/001", "medium/000", "medium/001", "hard/000", "hard/001"];
    assert_eq!(ids, wanted.map(|id| format!("bubble-sort/{id}")));

    let keys: Vec<_> = lines[0].as_object().unwrap().keys().cloned().collect();
    let contract = [
        "id",
        "task",
        "task_id",
        "category",
        "difficulty",
        "index",
        "seed",
        "input",
        "answer",
        "steps",
    ];
    assert_eq!(keys, contract);
    assert_eq!(lines[3]["seed"], 42_001_001);

    // What any sort does, found without one of ours.
    let mut values: Vec<i64> = serde_json::from_value(lines[5]["input"]["a"].clone()).unwrap();
    values.sort_unstable();
    assert_eq!(lines[5]["answer"]["sorted"], serde_json::json!(values));

    assert_eq!(generate(&task).stdout, printed.stdout, "the same bytes again");

    let other =
        [&task[..], &["--base-seed", "7", "--difficulty", "hard", "--threads", "1"]].concat();
    let line: Value =
        serde_json::from_str(generate(&other).stdout.lines().next().unwrap()).unwrap();
    assert_eq!(line["seed"], 7_002_000);
}

#[test]
fn traces_and_snapshots_lead_from_the_input_to_the_answer() {
    let arguments =
        ["--task", "bubble-sort", "--instances", "1", "--difficulty", "easy", "--out", "-"];
    let printed = generate(&[&arguments[..], &["--traces", "--states-every", "10"]].concat());
    let line: Value = serde_json::from_str(&printed.stdout).unwrap();
    let steps = line["steps"].as_u64().unwrap();
    let actions = line["actions"].as_array().unwrap();
    assert_eq!(actions.len() as u64, steps);

    assert_eq!(
        (&actions[0], &actions[actions.len() - 1]),
        (&Value::from("cmp 0 1"), &Value::from("done"))
    );

    let states = line["states"].as_array().unwrap();
    let at: Vec<u64> = states.iter().map(|state| state["step"].as_u64().unwrap()).collect();
    let wanted: Vec<u64> = (0..steps).step_by(10).chain([steps]).collect();
    assert_eq!(at, wanted);
    assert_eq!(states[0]["state"]["a"], line["input"]["a"]);
    assert_eq!(states[states.len() - 1]["state"]["a"], line["answer"]["sorted"]);
}

#[test]
fn a_folder_is_filled_once_and_only_with_one_selection() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    let out = shown(&out);

    generate(&["--task", "n-queens", "--instances", "3", "--out", out]);
    assert_eq!(names(Path::new(out)), ["manifest.json", "n-queens.jsonl"]);
    let before = fs::metadata(Path::new(out).join("n-queens.jsonl")).unwrap().modified().unwrap();

    generate(&["--task", "n-queens", "--task", "long-division", "--instances", "3", "--out", out]);
    assert_eq!(names(Path::new(out)), ["long-division.jsonl", "manifest.json", "n-queens.jsonl"]);
    let after = fs::metadata(Path::new(out).join("n-queens.jsonl")).unwrap().modified().unwrap();
    assert_eq!(before, after, "what is complete is left alone");

    let other = ["bench", "generate", "--task", "n-queens", "--instances", "4", "--out", out];
    done(&other).refused(&["3 instances", "4 instances", "another folder"]);
    fs::write(Path::new(out).join("manifest.json"), "{").unwrap();
    done(&other).refused(&["manifest.json", "another folder"]);

    done(&["bench", "generate", "--out", out]).refused(&["--task", "--all"]);
    done(&["bench", "generate", "--all", "--out", "/proc/nowhere"]).refused(&["/proc/nowhere"]);

    for name in ["lines.json", "lines.csv", "manifest.txt"] {
        let path = folder.path().join(name);
        done(&["bench", "generate", "--all", "--out", shown(&path)]).refused(&[
            shown(&path),
            "folder",
            ".jsonl",
        ]);
        assert!(!path.exists(), "no folder by the name of a file");
    }

    done(&["bench", "generate", "--all", "--out", "/dev/full"])
        .refused(&["/dev/full", "name of a folder"]);

    let export = folder.path().join("dataset.parquet");
    done(&["bench", "export", "--format", "parquet", "--out", shown(&export)])
        .refused(&[shown(&export), "folder"]);
}

#[test]
fn a_compressed_file_holds_the_same_lines() {
    let folder = tempfile::tempdir().unwrap();
    let (plain, packed) = (folder.path().join("a.jsonl"), folder.path().join("a.jsonl.zst"));
    for path in [&plain, &packed] {
        generate(&["--task", "bubble-sort", "--instances", "20", "--traces", "--out", shown(path)]);
    }

    let plain = fs::read(plain).unwrap();
    let packed = fs::read(packed).unwrap();
    assert!(packed.len() * 4 < plain.len());
    assert_eq!(zstd::decode_all(&packed[..]).unwrap(), plain);
}

#[test]
fn a_kill_leaves_whole_files_and_a_rerun_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (killed, quiet) = (folder.path().join("killed"), folder.path().join("quiet"));
    let arguments = |out: &Path| {
        let tasks = [
            "--task",
            "bubble-sort",
            "--task",
            "tower-of-hanoi",
            "--difficulty",
            "hard",
            "--instances",
            "12",
        ];
        [&["bench", "generate", "--traces"], &tasks[..], &["--out", shown(out)]].concat().join(" ")
    };
    let run = |out: &Path| done(&arguments(out).split(' ').collect::<Vec<_>>());

    let text = arguments(&killed);
    let mut child = prime(&text.split(' ').collect::<Vec<_>>()).spawn().unwrap();

    // The long traces of the second task take seconds; the kill comes while they are written.
    while !killed.join("bubble-sort.jsonl").exists() {
        assert!(child.try_wait().unwrap().is_none(), "still at work");
        std::thread::yield_now();
    }

    child.kill().unwrap();
    child.wait().unwrap();

    for name in names(&killed) {
        assert!(
            ["bubble-sort.jsonl", "manifest.json"].contains(&name.as_str()),
            "{name} is half a file"
        );
    }

    assert_eq!(run(&killed).code, 0);
    assert_eq!(run(&quiet).code, 0);
    assert_eq!(names(&killed), ["bubble-sort.jsonl", "manifest.json", "tower-of-hanoi.jsonl"]);
    for name in names(&killed) {
        assert!(
            fs::read(killed.join(&name)).unwrap() == fs::read(quiet.join(&name)).unwrap(),
            "{name} differs"
        );
    }
}

#[test]
fn an_export_has_a_card_and_a_file_for_each_task_and_level() {
    let folder = tempfile::tempdir().unwrap();
    for (format, extension) in [("jsonl", "jsonl"), ("parquet", "parquet")] {
        let out = folder.path().join(format);
        let tasks = ["--task", "bubble-sort", "--task", "24-game", "--instances", "2"];
        let exported = done(
            &[&["bench", "export", "--format", format, "--out", shown(&out)], &tasks[..]].concat(),
        );
        assert_eq!(exported.code, 0, "{}", exported.stderr);

        let card = fs::read_to_string(out.join("README.md")).unwrap();
        let easy = format!(
            "  data_files:\n  - split: easy\n    path:\n    - data/bubble-sort/easy.{extension}\n"
        );
        let (_, sorting) = card
            .split_once("- config_name: bubble-sort\n  description: data ")
            .expect("a configuration");

        assert_eq!(
            sorting.split_once('\n').map(|(digest, rest)| (digest.len(), rest.starts_with(&easy))),
            Some((16, true))
        );

        assert_eq!(names(&out.join("data")), ["24-game", "bubble-sort"]);
        let levels = ["easy", "hard", "medium"].map(|level| format!("{level}.{extension}"));
        assert_eq!(names(&out.join("data/24-game")), levels);
    }

    // The card describes the latest export alone, which takes the place of the earlier one.
    let out = folder.path().join("jsonl");
    let card = || fs::read_to_string(out.join("README.md")).unwrap();
    let exported = |task: &str| {
        done(&[
            "bench",
            "export",
            "--force",
            "--format",
            "jsonl",
            "--out",
            shown(&out),
            "--instances",
            "2",
            "--task",
            task,
        ]);
        card()
    };

    let (sorts, games) = (exported("bubble-sort"), exported("24-game"));
    assert!(
        sorts.contains("data/bubble-sort/easy.jsonl") && !games.contains("bubble-sort/easy"),
        "{games}"
    );

    let digest = |card: &str| card.split_once("description: ").unwrap().1[..21].to_owned();
    assert_ne!(digest(&sorts), digest(&games));
    assert_eq!(exported("bubble-sort"), sorts, "the same data have the same card");

    let rows = fs::read_to_string(folder.path().join("jsonl/data/bubble-sort/hard.jsonl")).unwrap();
    let row: Value = serde_json::from_str(rows.lines().nth(1).unwrap()).unwrap();
    assert_eq!(row["id"], "bubble-sort/hard/001");
    assert!(row["prompt"].as_str().unwrap().contains(row["input"].as_str().unwrap()));
    let answer: Value = serde_json::from_str(row["answer"].as_str().unwrap()).unwrap();
    assert!(answer["sorted"].is_array());

    let parquet = fs::read(folder.path().join("parquet/data/bubble-sort/hard.parquet")).unwrap();
    assert!(parquet.starts_with(b"PAR1") && parquet.ends_with(b"PAR1"));
}
