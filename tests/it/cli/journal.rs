//! `journal check` and `journal salvage`.

use std::path::Path;
use std::process::Command;

use rustix::process::Signal;
use serde_json::json;

use crate::binary::{done, shown};
use crate::daemon::{Daemon, Home};

/// Changes a journal's file as nobody should.
fn damage(file: &Path, sql: &str) {
    let code =
        "import sqlite3, sys\nwith sqlite3.connect(sys.argv[1]) as file: file.execute(sys.argv[2])";
    let ended = Command::new("python3").args(["-c", code]).arg(file).arg(sql).status();
    assert!(ended.unwrap().success());
}

#[test]
fn a_journal_is_checked_and_what_can_be_read_of_it_is_saved() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &[]);
    let runs: Vec<_> = (3..5)
        .map(|n| {
            let input = json!({"n": n, "from": 0, "to": 2});
            let run =
                daemon.submitted(&json!({"task": "tower-of-hanoi", "input": input, "fanout": 1}));
            daemon.finished(&run)
        })
        .collect();
    let id = |run: usize| runs[run]["id"].as_str().unwrap();
    let events = |run: usize| runs[run]["events"].as_u64().unwrap();
    daemon.end_by(Signal::TERM);
    // The second start moves the events to the rows of their runs.
    Daemon::start_in(&home, &[]).end_by(Signal::TERM);

    let file = home.journal();
    let whole = done(&["journal", "check", shown(&file)]);
    let expected = format!("2 runs with {} events are whole\n", events(0) + events(1));
    assert_eq!((whole.code, whole.stdout), (0, expected), "{}", whole.stderr);

    damage(
        &file,
        &format!(
            "UPDATE segment SET hash = zeroblob(32) WHERE at >> 32 = (SELECT no FROM run WHERE id = '{}')",
            id(0)
        ),
    );
    let checked = done(&["journal", "check", shown(&file)]);
    let cut = format!("cut: run {:?}: 0 of {} events remain: ", id(0), events(0));
    assert_eq!(checked.code, 1, "{}", checked.stdout);
    assert!(
        checked.stdout.starts_with(&cut) && checked.stdout.lines().count() == 1,
        "{}",
        checked.stdout
    );
    assert!(
        checked.stderr.contains(&format!("journal salvage {} ", shown(&file))),
        "{}",
        checked.stderr
    );

    let saved = file.with_extension("saved");
    let salvaged = done(&["journal", "salvage", shown(&file), shown(&saved)]);
    assert_eq!(salvaged.code, 0, "{}", salvaged.stderr);
    assert!(salvaged.stdout.starts_with(&cut), "{}", salvaged.stdout);
    let summary = format!(
        "2 runs with {} events were saved; 0 rows are lost, 1 runs have lost events\n",
        events(1)
    );
    assert!(salvaged.stdout.ends_with(&summary), "{}", salvaged.stdout);

    let whole = done(&["journal", "check", shown(&saved)]);
    assert_eq!(
        whole.stdout,
        format!("2 runs with {} events are whole\n", events(1)),
        "{}",
        whole.stderr
    );
}

#[test]
fn a_file_that_lost_its_end_is_named_and_what_it_has_is_saved() {
    let home = Home::new();
    let daemon = Daemon::start_in(&home, &[]);
    let input = json!({"n": 3, "from": 0, "to": 2});
    let run = daemon.submitted(&json!({"task": "tower-of-hanoi", "input": input, "fanout": 1}));
    daemon.finished(&run);
    daemon.end_by(Signal::TERM);

    let file = home.journal();
    let bytes = std::fs::metadata(&file).unwrap().len();
    std::fs::File::options().write(true).open(&file).unwrap().set_len(bytes - 5_000).unwrap();

    let (check, salvage) = (
        format!("`prime-agents journal check {}`", shown(&file)),
        format!("`prime-agents journal salvage {} NEW_FILE`", shown(&file)),
    );
    let to_copy = file.with_extension("copied");
    done(&["journal", "copy", shown(&file), shown(&to_copy)]).refused(&[&check, &salvage]);

    let cut = format!(
        "page: the file has {} bytes, but its header says {bytes}: its end is missing\n",
        bytes - 5_000
    );
    let checked = done(&["journal", "check", shown(&file)]);
    assert!(checked.code == 1 && checked.stdout.starts_with(&cut), "{}", checked.stdout);
    assert!(checked.stderr.contains("journal salvage"), "{}", checked.stderr);

    let saved = file.with_extension("saved");
    let salvaged = done(&["journal", "salvage", shown(&file), shown(&saved)]);
    assert_eq!(salvaged.code, 0, "{}", salvaged.stderr);
    assert!(salvaged.stdout.starts_with(&cut), "{}", salvaged.stdout);
    assert!(salvaged.stdout.contains(" were saved; "), "{}", salvaged.stdout);
}

#[test]
fn files_that_cannot_be_checked_or_written_are_refused() {
    let home = Home::new();
    let missing = home.journal();
    done(&["journal", "check", shown(&missing)]).refused(&["there is no such file"]);
    let target = missing.with_extension("saved");
    done(&["journal", "salvage", shown(&missing), shown(&target)])
        .refused(&["the journal to read", "there is no such file"]);
    assert!(!missing.exists() && !target.exists());

    let daemon = Daemon::start_in(&home, &[]);
    done(&["journal", "check", shown(&missing)]).refused(&["another process uses it"]);
    daemon.end_by(Signal::TERM);

    std::fs::write(&target, "something").unwrap();
    done(&["journal", "salvage", shown(&missing), shown(&target)])
        .refused(&["it exists already: name a new file"]);
    assert_eq!(std::fs::read_to_string(&target).unwrap(), "something");
}
