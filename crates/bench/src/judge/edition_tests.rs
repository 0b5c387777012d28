//! The edition of the constraints is raised when their verdicts change. What each task's
//! constraints and sound set say of 48 corrupted traces is recorded as a digest.

use sha2::{Digest, Sha256};

use super::corruption::{corrupted_traces, first_found};
use crate::tasks::{AnyTask, Difficulty, EDITION, Kinds, all};

/// The first line is the edition, the others are a task and its digest.
const RECORDED: &str = include_str!("edition.txt");

fn digest(task: &'static dyn AnyTask) -> String {
    let sound = task.spec().sound;
    let mut digest = Sha256::new();
    for trace in corrupted_traces(task, &Difficulty::ALL, 48, 42) {
        for kinds in [Kinds::WITHOUT_TRANSITION, sound] {
            let found = first_found(trace.problem.as_ref(), &trace.corrupted, kinds, trace.ends);
            digest.update(format!("{found:?} "));
        }
    }
    let first = digest.finalize()[..8].try_into().expect("invariant: a digest has 32 bytes");
    format!("{:016x}", u64::from_be_bytes(first))
}

#[test]
fn changed_verdicts_have_an_edition_of_their_own() {
    let mut now = format!("{EDITION}\n");
    for task in all() {
        now += &format!("{} {}\n", task.spec().slug, digest(task));
    }
    if now == RECORDED {
        return;
    }

    let lines = now.lines().zip(RECORDED.lines());
    let changed: Vec<_> = lines.filter(|(now, then)| now != then).map(|(now, _)| now).collect();
    let place = std::env::temp_dir().join("edition.txt");
    std::fs::write(&place, &now).unwrap();
    panic!(
        "the verdicts of these tasks changed: {changed:?}. Raise EDITION in \
         src/tasks/checked_kinds.rs if a constraint refuses what it allowed, or a sound set grew; \
         then copy {} to src/judge/edition.txt",
        place.display()
    );
}
