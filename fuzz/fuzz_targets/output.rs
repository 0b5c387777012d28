//! Arbitrary bytes as a model's output: what it says, and whether the judge agrees with itself.
#![no_main]

use libfuzzer_sys::fuzz_target;
use prime_bench::judge::{Body, StageResult, judge_body, read_output};
use prime_bench::output::Found;
use prime_bench::tasks::{self, Difficulty, Kinds};

fuzz_target!(|bytes: &[u8]| {
    let [place, text @ ..] = bytes else { return };
    let tasks: Vec<_> = tasks::all().chain(tasks::variants()).collect();
    let problem = tasks[usize::from(*place) % tasks.len()].generate(Difficulty::Easy, 0);

    let text = String::from_utf8_lossy(text).into_owned();
    let output = read_output(&text, problem.spec());
    let judged =
        judge_body(problem.as_ref(), String::new(), Difficulty::Easy, &Body::Text(text), Kinds::ALL);

    if let Found::Unreadable(_) = output.answer {
        assert_eq!(judged.result, StageResult::Failed, "nothing stands in for it");
    }
    if output.actions == Found::Absent {
        assert_eq!(judged.semantic, StageResult::NotJudged);
    }
});
