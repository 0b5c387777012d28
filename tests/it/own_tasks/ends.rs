//! Programs that end, change or contradict themselves while a run or a command needs them.

use std::path::Path;
use std::process::Command;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::{Value, json};

use super::{COUNTER, UNIFORM, daemon, program, with_path};
use crate::binary::{prime, shown};
use crate::daemon::{Daemon, Home};

/// The program was exchanged between two processes of the daemon: what the first one called clean,
/// the second one does not.
#[test]
fn steps_that_another_program_finds_fault_with_are_not_vouched_for() {
    let (_folder, path) = program(COUNTER);
    let command = format!(r#"tasks.odd.command=["python3", "{path}"]"#);
    let home = Home::new();
    let first = daemon(&home, &[&command]);
    let submit = |daemon: &Daemon, to: u64, (strategy, fanout): (&str, u32)| {
        let input = json!({"to": to});
        daemon.submitted(&json!({
            "task": "odd", "input": input, "fanout": fanout, "max_rounds": 1, "strategy": strategy,
        }))
    };
    let over = submit(&first, 6, ("iterative", 1));
    first.finished(&over);
    // The steps of a vote are taken when it is decided, those of other strategies when judged.
    let open = [("iterative", 1), ("ahead", 3), ("particle_filter", 8), ("uct", 1)]
        .map(|how| submit(&first, 20_000, how));
    for run in &open {
        first.until(run, |record| record["steps"].as_u64() >= Some(20));
    }
    let home = first.kill();

    let stricter = std::fs::read_to_string(&path).expect("the program").replace(
        "return {'state': at,",
        "return {'violations': [{'name': 'low', 'severity': 'critical', 'message': 'x'}] \
         if at < 5 else [], 'state': at,",
    );
    std::fs::write(&path, stricter).expect("writable");
    let second = daemon(&home, &[&command]);

    let expected = "the task's program answers otherwise than when the run was recorded: the step \
                    `go` at depth 0, which was clean, breaks `low`";
    for run in &open {
        let record = second.finished(run);
        let verdict = (&record["verified"], &record["answer"]);
        assert_eq!(verdict, (&json!(false), &Value::Null), "{record}");
        assert!(record["failure"].to_string().contains(expected), "{record}");
    }

    let fork = second.post_text(&format!("{over}/fork?seq=4"), "");
    fork.refused(409, None, &[expected]);

    // What was rejected can only be found in the old states; a plain repetition needs none.
    let again = format!("{over}/retry");
    second.post_text(&again, r#"{"force": true}"#).refused(409, None, &[expected]);
    let plain = second.post_text(&again, r#"{"force": true, "exclude": false}"#);
    assert_eq!(plain.status, 202, "{plain:?}");
    let record = second.finished(plain.location.as_deref().expect("a run"));
    let failure = record["failure"].to_string();
    assert!(!failure.contains("answers otherwise"), "{record}");
}

/// A contradiction of a program is one after a restart too: the run does not wait for another
/// answer.
#[test]
fn a_program_that_refuses_what_it_lists_ends_a_resumed_run() {
    let (_folder, path) = program(COUNTER);
    let command = format!(r#"tasks.odd.command=["python3", "{path}"]"#);
    let first = daemon(&Home::new(), &[&command]);
    let run = first.submitted(&json!({
        "task": "odd", "input": {"to": 20_000}, "fanout": 1, "max_rounds": 1,
    }));
    first.until(&run, |record| record["steps"].as_u64() >= Some(20));
    let home = first.kill();

    let refusing = std::fs::read_to_string(&path).expect("the program");
    let refusing = refusing.replace("    at = ask", "    return {'refused': 'no'}\n    at = ask");
    std::fs::write(&path, refusing).expect("writable");

    let record = daemon(&home, &[&command]).finished(&run);
    assert_eq!(
        (&record["status"], &record["answer"]),
        (&json!("failed"), &Value::Null),
        "{record}"
    );
    assert!(record["failure"].to_string().contains("but listed among the choices"), "{record}");
}

/// A command that is stopped while it waits for a program's handshake leaves no program running.
#[test]
fn a_program_does_not_outlive_a_command_that_is_stopped_at_its_start() {
    let folder = tempfile::tempdir().expect("a folder");
    let (pipe, path) = (folder.path().join("pid"), folder.path().join("deaf.py"));
    let made = with_path(Command::new("mkfifo")).arg(&pipe).status().expect("mkfifo");
    assert!(made.success());
    let code = format!(
        "import os, signal\nwith open({:?}, 'w') as pipe: pipe.write(str(os.getpid()))\n\
         while True: signal.pause()\n",
        shown(&pipe)
    );
    std::fs::write(&path, code).expect("writable");

    let program = format!("python3 -B {}", shown(&path));
    let arguments = [&["run", "--task-program", &program, "--input", "{}"][..], &UNIFORM].concat();
    let child = with_path(prime(&arguments)).spawn().expect("the binary starts");
    // Opening it waits for the program.
    let pid = std::fs::read_to_string(&pipe).expect("its process id");
    let command = Pid::from_child(&child);
    kill_process(command, Signal::TERM).expect("it runs");

    let done = child.wait_with_output().expect("it ends");
    assert_eq!(done.status.code(), Some(143), "{done:?}");
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat"));
    assert!(
        stat.is_ok_and(|stat| stat.contains(") Z "))
            || !Path::new(&format!("/proc/{pid}")).exists()
    );
}

/// A daemon with this program as the task `odd`.
fn daemon_of(home: &std::sync::Arc<Home>, path: &str) -> Daemon {
    daemon(home, &[&format!(r#"tasks.odd.command=["python3", "{path}"]"#)])
}

#[test]
fn a_trace_is_read_without_the_program_that_is_broken_since() {
    let (_folder, path) = program("");
    let home = Home::new();
    let works = daemon_of(&home, &path);
    let run = works.submitted(&json!({"task": "odd", "input": {}, "fanout": 1}));
    works.finished(&run);
    let events = works.text(&format!("{run}/trace?states=false"));
    let whole = works.text(&format!("{run}/trace"));
    assert!(whole.contains(r#""state":0"#) && !whole.contains("left_out"), "{whole}");
    drop(works.kill());

    std::fs::write(&path, "raise SystemExit(3)").expect("written");
    let broken = daemon_of(&home, &path);
    assert_eq!(broken.text(&format!("{run}/trace?states=false")), events);
    let left = broken.text(&format!("{run}/trace"));
    let lines: Vec<Value> =
        left.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    assert_eq!(lines.len(), whole.lines().count(), "{left}");
    let said: Vec<&str> = lines.iter().filter_map(|line| line["left_out"].as_str()).collect();
    assert_eq!(said.len(), 1, "the first step says it: {left}");
    assert!(said[0].contains("odd"), "{said:?}");
    assert!(lines.iter().all(|line| line.get("state").is_none()), "{left}");

    // What cannot be shown without it is refused, with the reason.
    let step = lines.iter().find(|line| line["event"] == "step").expect("a step");
    for path in [format!("steps/{}", step["seq"]), "export?as=dataset".to_owned()] {
        broken.get(&format!("{run}/{path}")).refused(409, None, &["odd"]);
    }
}

#[test]
fn a_bundle_says_which_program_executed_it() {
    let (_folder, path) = program("");
    let here = daemon_of(&Home::new(), &path);
    let run = here.submitted(&json!({"task": "odd", "input": {}, "fanout": 1}));
    here.finished(&run);
    let program = here.get(&format!("{run}/spec")).body["program"].clone();
    assert_eq!(program.as_str().map(str::len), Some(64), "{program}");
    let bundle = here.text(&format!("{run}/export"));
    assert!(bundle.contains(program.as_str().expect("a digest")));

    let same = daemon_of(&Home::new(), &path);
    let arrived = same.post_text("/v1/runs/import", &bundle);
    assert_eq!(arrived.status, 201, "{arrived:?}");
    assert_eq!(arrived.body["imported"].get("other_program"), None);

    let mut code = std::fs::read_to_string(&path).expect("the program");
    code += "# changed\n";
    std::fs::write(&path, code).expect("written");
    let other = daemon_of(&Home::new(), &path);
    let arrived = other.post_text("/v1/runs/import", &bundle);
    assert_eq!((arrived.status, &arrived.body["imported"]["other_program"]), (201, &json!(true)));
    let id = run.rsplit('/').next().expect("an id");
    let shown = crate::binary::done(&["runs", "show", id, "--url", &other.url("")]).stdout;
    assert!(shown.contains("another program here"), "{shown}");
}
