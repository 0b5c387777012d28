//! The independent implementation of every task, in Python, against a sample of the benchmark.

use std::path::Path;
use std::process::Command;

use crate::binary::{done, shown};

/// One line in this many is recomputed; `make recompute` does all.
const EVERY: &str = "10";

#[test]
fn an_independent_implementation_gives_the_same_answers_and_step_counts() {
    let folder = tempfile::tempdir().unwrap();
    let generated = done(&["bench", "generate", "--all", "--out", shown(folder.path())]);
    assert_eq!(generated.code, 0, "{}", generated.stderr);

    let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/recompute/run.py");
    let arguments = [shown(&script), shown(folder.path()), "--every", EVERY];
    // `-B`: no compiled modules beside the sources.
    let run = Command::new("python3")
        .arg("-B")
        .args(arguments)
        .output()
        .expect("python3 is installed by `make test`");

    let printed =
        String::from_utf8_lossy(&run.stdout).into_owned() + &String::from_utf8_lossy(&run.stderr);
    assert!(run.status.success(), "{printed}");

    let tasks = prime_bench::tasks::all().count();
    let summary = format!("{tasks} tasks, {} instances recomputed, 0 differ", tasks * 60);
    assert!(printed.contains(&summary), "{printed}");
}
