//! Lines of arbitrary bytes as actions of any task: parsed, applied and judged, also in states that
//! wrong lines made.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prime_bench::tasks::{self, Difficulty, Kinds};

fuzz_target!(|bytes: &[u8]| {
    let [place, seed, lines @ ..] = bytes else { return };
    let tasks: Vec<_> = tasks::all().chain(tasks::variants()).collect();

    let mut machine = tasks[usize::from(*place) % tasks.len()]
        .generate(Difficulty::Easy, u64::from(*seed % 8))
        .start();

    for line in String::from_utf8_lossy(lines).lines().take(64) {
        // An empty line follows the algorithm, so that later states are reached.
        if line.is_empty() {
            machine.follow_reference();
        } else if machine.propose(line).is_ok() {
            machine.violations(Kinds::ALL);
            machine.commit();
        }

        // Neither may panic, whatever the lines have made of the state.
        machine.reference();
        machine.answer();
    }
});
