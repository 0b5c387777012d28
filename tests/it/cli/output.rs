//! Standard output and standard error that are full, closed or narrow, and Ctrl-C.

use std::fs::File;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::binary::{Done, REFERENCE, done, prime, prime_signalled, shown};

fn full() -> Stdio {
    File::options().write(true).open("/dev/full").expect("/dev/full").into()
}

/// The writing end of a pipe that nobody reads.
fn closed_pipe() -> Stdio {
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    writer.into()
}

#[test]
fn output_to_a_full_device_fails() {
    let generate = ["bench", "generate", "--task", "n-queens", "--instances", "1", "--out", "-"];
    let solve = [&["run", "n-queens"][..], &REFERENCE].concat();
    for arguments in [
        &["--help"][..],
        &["config", "show"],
        &["completions", "bash"],
        &["man"],
        &["bench", "list"],
        &["bench", "show", "n-queens"],
        &["key", "new", "ci"],
        &generate,
        &solve,
    ] {
        let failed: Done = prime(arguments).stdout(full()).output().unwrap().into();
        assert_eq!(failed.code, 74, "{arguments:?}: {}", failed.stderr);
        assert!(
            failed.stderr.contains("standard output cannot be written: No space left"),
            "{}",
            failed.stderr
        );
    }
}

#[test]
fn a_limit_on_the_size_of_files_is_a_failed_write() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.jsonl");
    let arguments = [&["run", "n-queens", "--trace", shown(&trace)], &REFERENCE[..]].concat();
    let plain = prime(&arguments);
    let mut limited = Command::new("sh");
    limited
        .args(["-c", "ulimit -S -f 1; exec \"$0\" \"$@\""])
        .arg(plain.get_program())
        .args(plain.get_args());

    let failed: Done = limited.output().unwrap().into();
    assert!([2, 74].contains(&failed.code), "{}: {}", failed.code, failed.stderr);
    assert!(failed.stderr.contains("trace.jsonl"), "{}", failed.stderr);
}

#[test]
fn a_reader_that_has_seen_enough_is_no_failure() {
    for arguments in
        [&["--help"][..], &["bench", "list"], &["config", "show"], &["completions", "zsh"]]
    {
        let ended: Done = prime(arguments).stdout(closed_pipe()).output().unwrap().into();
        assert_eq!((ended.code, ended.stderr.as_str()), (0, ""), "{arguments:?}");
    }
}

#[test]
fn a_broken_standard_error_does_not_change_the_exit_code() {
    let solve = [&["run", "n-queens", "--set", "log.level=trace"][..], &REFERENCE].concat();
    let unreadable = ["bench", "check", "/nowhere.jsonl"];
    for (arguments, code) in
        [(&solve[..], 0), (&unreadable, 2), (&["run", "n-quens"], 2), (&["--colour"], 2)]
    {
        for stderr in [full(), closed_pipe()] {
            let ended = prime(arguments).stderr(stderr).output().unwrap();
            assert_eq!(ended.status.code(), Some(code), "{arguments:?}");
        }
    }
}

#[test]
fn the_list_of_tasks_fits_into_80_columns() {
    let list = done(&["bench", "list"]).stdout;
    let wide: Vec<_> =
        list.lines().filter(|line| line.starts_with('|') && line.chars().count() > 80).collect();
    assert!(wide.is_empty(), "{wide:#?}");
}

#[test]
fn help_names_no_argument_without_a_description() {
    let described = |arguments: &[&str]| {
        let help = done(&[arguments, &["--help"]].concat()).stdout;
        let lines: Vec<_> = help.lines().collect();
        for (line, next) in lines.iter().zip(lines.iter().skip(1)) {
            let is_bare = line.trim_start().starts_with("--") && !line.trim_start().contains("  ");
            assert!(!is_bare || !next.trim().is_empty(), "{arguments:?}: {line}");
        }
    };

    for command in ["run", "serve", "bench", "runs", "doctor", "health", "mcp", "data"] {
        described(&[command]);
    }
    for command in [
        "list",
        "generate",
        "export",
        "check",
        "prompt",
        "corrupt",
        "solve",
        "strategies",
        "overhead",
    ] {
        described(&["bench", command]);
    }
}

/// Exit code, output and notes of a command that gets Ctrl-C now.
fn interrupted(child: Child) -> (Option<i32>, String, String) {
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();
    let ended = child.wait_with_output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (ended.status.code(), text(ended.stdout), text(ended.stderr))
}

/// Waits until a command that is at work has written a file.
fn until_written(child: &mut Child, path: &Path) {
    while !path.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended without {}", path.display());
        std::thread::yield_now();
    }
}

#[test]
fn an_interrupted_generation_says_what_it_leaves() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("bench");
    let tasks =
        ["--task", "bubble-sort", "--task", "tower-of-hanoi", "--difficulty", "hard", "--traces"];
    let mut child =
        prime_signalled(&[&["bench", "generate", "--out", shown(&out)], &tasks[..]].concat())
            .spawn()
            .unwrap();

    // The traces of the second task take much longer.
    until_written(&mut child, &out.join("bubble-sort.jsonl"));

    let (code, _, notes) = interrupted(child);
    assert_eq!(code, Some(130), "{notes}");
    assert!(
        notes.contains("interrupted after ") && notes.contains(" of 400 instances; "),
        "{notes}"
    );
    assert!(notes.contains("the same command continues"), "{notes}");

    let export = folder.path().join("dataset");
    let arguments = ["bench", "export", "--format", "jsonl", "--all", "--out", shown(&export)];
    let mut child = prime_signalled(&arguments).spawn().unwrap();
    until_written(&mut child, &export.join("data/bubble-sort/easy.jsonl"));
    let (code, _, notes) = interrupted(child);
    assert_eq!(code, Some(130), "{notes}");
    assert!(
        notes.contains(" of 51600 instances; ") && notes.contains("run the command again"),
        "{notes}"
    );
}

#[test]
fn an_interrupted_check_reports_what_it_has_judged() {
    let line = |index: u32| {
        format!("{{\"id\": \"bubble-sort/easy/{:03}\", \"output\": \"\"}}\n", index % 200)
    };
    let mut child =
        prime_signalled(&["bench", "check", "-"]).stdin(Stdio::piped()).spawn().unwrap();
    let mut input = child.stdin.take().unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();

    // Repeated ids are findings, which show that the first lines are judged.
    (0..1024).for_each(|index| input.write_all(line(index).as_bytes()).unwrap());
    assert!(notes.next().unwrap().unwrap().contains("was judged before"));
    kill_process(Pid::from_child(&child), Signal::INT).unwrap();

    // Its end is noticed between two lines.
    while input.write_all(line(0).as_bytes()).is_ok() {}
    let last = notes.map(Result::unwrap).last().unwrap();
    let ended = child.wait_with_output().unwrap();

    assert_eq!(
        (ended.status.code(), last.as_str()),
        (Some(130), "interrupted: 200 outputs judged")
    );

    let report = String::from_utf8(ended.stdout).unwrap();
    assert!(
        report.contains("bubble-sort") && report.contains("Accuracy: 0.0 % of the outputs"),
        "{report}"
    );
}

/// Ctrl-C, and what `timeout`, CI and Slurm send; each with the exit code after it.
const STOPS: [(Signal, i32); 2] = [(Signal::INT, 130), (Signal::TERM, 143)];

#[test]
fn a_measurement_that_is_asked_to_stop_prints_what_is_complete() {
    for (signal, code) in STOPS {
        stopped_measurement(signal, code);
    }
}

fn stopped_measurement(signal: Signal, code: i32) {
    let tasks = done(&["bench", "list", "--output", "json"]).json(0);
    let slugs = tasks.as_array().unwrap().iter().map(|task| task["slug"].as_str().unwrap());
    let levels = ["easy", "medium", "hard"].into_iter().flat_map(|level| ["--difficulty", level]);
    let mut arguments = vec!["bench", "solve", "--instances", "20", "--output", "json"];
    arguments.extend(REFERENCE.into_iter().chain(levels));
    arguments.extend(slugs.flat_map(|slug| ["--task", slug]));

    let mut child = prime_signalled(&arguments).spawn().unwrap();
    let mut notes = BufReader::new(child.stderr.take().unwrap()).lines();
    let all = notes.next().expect("a note on what is asked").unwrap();
    assert!(all.contains("86 tasks, 3 levels, 2 systems") && all.contains(": 10320 runs"), "{all}");
    let first = "bubble-sort easy single pass";
    let pace = notes
        .by_ref()
        .map(Result::unwrap)
        .take_while(|note| !note.contains(first))
        .collect::<Vec<_>>();
    let estimate = "16 of 10320 runs in ";
    assert!(pace.iter().any(|note| note.starts_with(estimate)), "{pace:?}");

    kill_process(Pid::from_child(&child), signal).unwrap();
    let last = notes.map(Result::unwrap).last().expect("a note on the interrupt");
    let ended = child.wait_with_output().unwrap();
    assert_eq!(ended.status.code(), Some(code));

    let rows: Vec<Value> = serde_json::from_slice(&ended.stdout).expect("whole JSON");

    let done = last
        .strip_prefix("interrupted after ")
        .and_then(|text| text.strip_suffix(" of 516 measurements"));
    let done: usize =
        done.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{last:?}"));
    assert!(done > 0 && rows.len() < 516, "{} rows", rows.len());

    // What is complete, and perhaps the runs of the one under way.
    let (complete, under_way) = rows.split_at(done);
    assert!(
        complete.iter().all(|row| row["accuracy"]["of"] == 20) && under_way.len() <= 1,
        "{rows:?}"
    );
}

/// A run whose executor is a shell script, which creates the file to tell that it got so far.
fn run_by_script(script: &str, file: &Path) -> Child {
    let command = serde_json::to_string(&["sh", "-c", script]).unwrap();
    let mut child = prime_signalled(&[
        "run",
        "tower-of-hanoi",
        "--output",
        "json",
        "--set",
        "agents.executor.implementation=process",
        "--set",
        &format!("agents.executor.program.command={command}"),
    ])
    .env("PATH", "/usr/bin:/bin")
    .spawn()
    .unwrap();
    until_written(&mut child, file);
    child
}

#[test]
fn a_run_that_is_asked_to_stop_prints_its_result() {
    let folder = tempfile::tempdir().unwrap();
    for (signal, code) in STOPS {
        // An executor that is asked, and never answers.
        let asked = folder.path().join(code.to_string());
        let script = format!(
            r#"read hello; echo '{{"prime":1}}'; read turn; touch {}; read more"#,
            asked.display()
        );
        let child = run_by_script(&script, &asked);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = child.wait_with_output().unwrap();
        let result: Value = serde_json::from_slice(&ended.stdout).expect("whole JSON");
        assert_eq!((ended.status.code(), &result["outcome"]), (Some(code), &"cancelled".into()));
    }
}

#[test]
fn a_run_whose_agents_are_not_ready_ends_when_it_is_asked_to_stop() {
    let folder = tempfile::tempdir().unwrap();
    for (signal, code) in STOPS {
        // An executor that is greeted, and never greets back.
        let greeted = folder.path().join(code.to_string());
        let script = format!("read hello; touch {}; read more", greeted.display());
        let child = run_by_script(&script, &greeted);
        kill_process(Pid::from_child(&child), signal).unwrap();
        let ended = child.wait_with_output().unwrap();
        assert_eq!((ended.status.code(), ended.stdout.len()), (Some(code), 0));
    }
}
