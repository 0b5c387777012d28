use futures::executor::block_on;

use super::*;
use prime_bench::tasks::{self, Difficulty};
use prime_protocol::{Limits, Next, Verdict};

const LIMITS: Limits =
    Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };

fn start() -> Trajectory {
    let problem = tasks::find("bubble-sort").expect("listed").generate(Difficulty::Easy, 3);
    Trajectory::new(problem.start(), &LIMITS)
}

fn step(trajectory: u32, depth: usize, action: &str, decision: &str) -> String {
    let applicable = decision != "backtrack";
    format!(
        r#"{{"event":"step","round":1,"trajectory":{trajectory},"depth":{depth},"action":{action:?},"applicable":{applicable},"score":0.0,"violations":[],"decision":{decision:?},"usage":{{"prompt":5,"completion":2}},"logprobs":[-0.5],"elapsed_ms":3}}"#
    )
}

fn read(lines: &[String]) -> Arc<Recording> {
    Arc::new(Recording::read(&lines.join("\n")).expect("a record"))
}

/// Two interleaved trajectories: 1 commits its first line, the first line of 0 is wrong.
fn two(first: &str) -> Vec<String> {
    vec![
        r#"{"event":"started"}"#.to_owned(),
        step(1, 0, first, "proceed"),
        step(0, 0, "nonsense", "backtrack"),
        String::new(),
        r#"{"event":"mishap","round":1,"trajectory":0,"role":"executor","failure":"timeout","reason":"","mishaps":1,"elapsed_ms":2}"#.to_owned(),
        step(0, 0, first, "proceed"),
        step(1, 1, "late", "backtrack"),
        r#"{"event":"finished","outcome":"agreed","verified":true}"#.to_owned(),
    ]
}

fn ask(
    executor: &RecordingExecutor,
    trajectory: &Trajectory,
    seed: u64,
) -> Result<Proposal, AgentError> {
    block_on(executor.propose(trajectory, Sampling { temperature: 0.0, top_p: 1.0, seed }))
}

#[test]
fn with_the_runs_seed_each_trajectory_is_reproduced() {
    let mut trajectory = start();
    let first = trajectory.machine.reference().expect("a start");
    let executor = RecordingExecutor::new(read(&two(&first)), Some(42));
    let seed = |trajectory, made| turn_seed(42, TurnId { round: 1, trajectory }, made);

    let proposal = ask(&executor, &trajectory, seed(0, 0)).expect("recorded");
    assert_eq!(
        (proposal.line.as_str(), proposal.logprobs.as_slice()),
        ("nonsense", &[-0.5_f32][..])
    );
    assert_eq!(proposal.usage, Usage::new(5, 2));
    assert_eq!(ask(&executor, &trajectory, seed(1, 0)).expect("recorded").line, first);

    trajectory.settle("nonsense", false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    assert_eq!(ask(&executor, &trajectory, seed(0, 1)).expect("recorded").line, first);
    assert_eq!(ask(&executor, &trajectory, seed(1, 1)).expect("recorded").line, "late");

    trajectory.settle("other", false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    for (seed, part) in [
        (seed(0, 2), "round 1, trajectory 0 ends after 2 proposals"),
        (seed(2, 2), "no trajectory with this turn's seed: it ends after 1 rounds"),
        (7, "a seed other than 42"),
    ] {
        let error = ask(&executor, &trajectory, seed).expect_err(part);
        assert!(error.reason.contains(part), "{error}");
        assert_eq!((error.failure, error.is_transient), (Failure::Unsupported, false));
    }
}

#[test]
fn without_a_seed_a_turn_is_found_by_its_committed_lines_and_attempts() {
    let mut trajectory = start();
    let first = trajectory.machine.reference().expect("a start");
    let executor = RecordingExecutor::new(read(&two(&first)), None);
    assert_eq!(
        ask(&executor, &trajectory, 1).expect("recorded").line,
        first,
        "the first that was there"
    );

    trajectory.settle("nonsense", false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    assert_eq!(
        ask(&executor, &trajectory, 1).expect("recorded").line,
        first,
        "of trajectory 0, at its second try"
    );

    trajectory.machine.propose(&first).expect("legal");
    assert_eq!(
        trajectory.settle(&first, true, &Verdict::default(), Decision::Proceed, &LIMITS),
        Next::Propose
    );
    assert_eq!(
        ask(&executor, &trajectory, 1).expect("recorded").line,
        "late",
        "of the other, which came here too"
    );

    trajectory.settle("late", false, &Verdict::default(), Decision::Backtrack, &LIMITS);
    let error = ask(&executor, &trajectory, 1).expect_err("beyond the record");
    assert!(
        error.reason.contains("more than 1 proposals after these 1 committed steps"),
        "{error}"
    );
    assert_eq!(error.failure, Failure::Unsupported);
}

#[test]
fn a_state_keeps_counting_proposals_after_a_pop() {
    let first = start().machine.reference().expect("a start");
    // Committed, wrong in the next state, popped, then another line.
    let record = [
        step(0, 0, &first, "proceed"),
        step(0, 1, "wrong", "backtrack"),
        step(0, 0, "other", "backtrack"),
    ];

    let executor = RecordingExecutor::new(read(&record), None);
    let limits = Limits { attempts_max: 1, ..LIMITS };
    let mut trajectory = start();
    trajectory.machine.propose(&first).expect("legal");
    trajectory.settle(&first, true, &Verdict::default(), Decision::Proceed, &limits);

    assert_eq!(ask(&executor, &trajectory, 1).expect("recorded").line, "wrong");
    trajectory.settle(
        "wrong",
        false,
        &Verdict::default(),
        Decision::Backtrack,
        &Limits { attempts_max: 1, ..limits },
    );
    assert_eq!(trajectory.stack.depth(), 0, "popped");
    assert_eq!(ask(&executor, &trajectory, 1).expect("recorded").line, "other");
}

#[test]
fn invalid_traces_are_refused_with_the_line() {
    let good = step(0, 0, "a", "proceed");
    for (text, line, part) in [
        (String::new(), 1, "there is no step"),
        ("{\"event\":\"started\"}\n".to_owned(), 1, "there is no step"),
        (format!("{good}\nnonsense"), 2, "not an event of a trace"),
        (format!("{good}\n\n{{\"event\":\"step\"}}"), 3, "missing field `round`"),
        (format!("{good}\n{}", &good[..40]), 2, "not an event of a trace"),
        (
            format!("{good}\n{}", step(0, 2, "b", "proceed")),
            2,
            "at depth 2, but its trajectory has 1 committed",
        ),
        (step(0, 1, "b", "proceed"), 1, "at depth 1, but its trajectory has 0 committed"),
        (good.replace("\"proceed\"", "\"accept\""), 1, "unknown variant"),
    ] {
        let error = Recording::read(&text).expect_err(part);
        assert_eq!(error.line, line, "{error}");
        assert!(error.detail.contains(part), "{error}");
    }
}
