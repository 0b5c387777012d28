//! The suite's turns: tasks of every category, initial and mid-trace states, valid and invalid
//! lines.

use crate::Sampling;
use prime_bench::tasks::{self, AnyTask, Category, Difficulty};
use prime_protocol::trajectory::Limits;
use prime_protocol::{Decision, Role, Score, Trajectory, Verdict};

/// Limits so high that no trajectory ends during setup.
const LIMITS: Limits =
    Limits { attempts_max: 10_000, pops_max: 10_000, snapshot_every_frames: 4, ..Limits::DEFAULT };
const SEED: u64 = 42;
/// Steps from the start to a mid-trace state.
const STEPS_MID_TRACE: usize = 7;
/// Rejected actions before the state [`State::Rejected`].
const EXCLUDED: usize = 100;

/// The input of one turn.
pub(super) struct Turn {
    /// Task, state and line.
    pub name: String,
    /// Except for executors, its machine has applied or rejected `line`.
    pub trajectory: Trajectory,
    pub sampling: Sampling,
    /// Empty for executors.
    pub line: String,
    /// The verdict that a coordinator is shown.
    pub verdict: Verdict,
}

/// The state of a trajectory.
#[derive(Clone, Copy)]
enum State {
    Start,
    MidTrace,
    /// Mid-trace, after many rejections, with long feedback.
    Rejected,
}

const STATES: [(State, &str); 3] = [
    (State::Start, "start"),
    (State::MidTrace, "mid-trace"),
    (State::Rejected, "after rejections"),
];

/// One task of each category, and two that the example agents know.
fn sample_tasks() -> Vec<&'static dyn AnyTask> {
    let of = |category| tasks::all().find(|task| task.spec().category == category);
    let mut sample_tasks: Vec<_> = Category::ALL.into_iter().filter_map(of).collect();

    for slug in ["bubble-sort", "tower-of-hanoi"] {
        if let Ok(task) = tasks::find(slug)
            && sample_tasks.iter().all(|taken| taken.spec().slug != slug)
        {
            sample_tasks.push(task);
        }
    }

    sample_tasks
}

fn trajectory(task: &dyn AnyTask, state: State) -> Trajectory {
    let mut trajectory = Trajectory::new(task.generate(Difficulty::Easy, SEED).start(), &LIMITS);
    if matches!(state, State::Start) {
        return trajectory;
    }

    for _ in 0..STEPS_MID_TRACE {
        // A short task may end earlier: the state before its last step is mid-trace enough.
        let Some(line) = trajectory.machine.reference() else { break };
        let applicable = trajectory.machine.propose(&line).is_ok();
        if trajectory.machine.candidate_ends() {
            break;
        }
        trajectory.settle(&line, applicable, &Verdict::default(), Decision::Proceed, &LIMITS);
    }

    if matches!(state, State::Rejected) {
        // Quotes, control characters and templates break careless prompts and parsers.
        let feedback = "\"nein\"\t\u{0}\\ 没有\n{{ view }} %s".repeat(2_000);
        let verdict = Verdict {
            score: Score::from_tenths(10),
            feedback: Some(feedback),
            ..Verdict::default()
        };

        for count in 0..EXCLUDED {
            let line = format!("no action {count}");
            let applicable = trajectory.machine.propose(&line).is_ok();
            trajectory.settle(&line, applicable, &verdict, Decision::Backtrack, &LIMITS);
        }
    }

    trajectory
}

/// Invalid lines with their names.
fn bad_lines() -> [(&'static str, String); 8] {
    [
        ("refused", "no action".to_owned()),
        ("empty", String::new()),
        ("blank", "   ".to_owned()),
        ("unicode", "ｍｏｖｅ １ ٢ ३ 🦀\u{202e}\u{feff}".to_owned()),
        ("control characters", "\u{0}\u{1b}[2J\u{7}\t\r\u{85}".to_owned()),
        ("two lines", "cmp 0 1\nswap 0 1".to_owned()),
        ("huge number", format!("move {} 0 1", "9".repeat(400))),
        ("a mebibyte", "x".repeat(1 << 20)),
    ]
}

fn verdicts(task: &dyn AnyTask) -> Vec<(String, Verdict)> {
    let names = || task.spec().constraints.iter().map(|constraint| constraint.name.into());
    let scores = [0.0, 0.2, 0.6, 1.0, 3.0, 1_000.0].into_iter().filter_map(Score::from_value);
    let verdict = |score: Score| {
        let violations = if score == Score::ZERO { Vec::new() } else { names().collect() };
        let feedback = (score > Score::ZERO).then(|| "no\n".repeat(10_000));
        (format!("V = {score}"), Verdict { score, violations, feedback, ..Verdict::default() })
    };
    scores.map(verdict).collect()
}

fn turn(task: &dyn AnyTask, (state, place): (State, &str), (what, line): (&str, &str)) -> Turn {
    let mut trajectory = trajectory(task, state);
    // Applied or rejected: agents must handle both.
    let _ = trajectory.machine.propose(line);
    Turn {
        name: format!("{} at {place}, {what}", task.spec().slug),
        trajectory,
        sampling: Sampling { temperature: 0.7, top_p: 0.95, seed: SEED },
        line: line.to_owned(),
        verdict: Verdict::default(),
    }
}

fn proposing(task: &dyn AnyTask) -> Vec<Turn> {
    let samplings = [(0.0, 1.0, 0), (2.0, 0.01, u64::MAX), (0.7, 0.95, SEED)];

    let at =
        |((state, place), (temperature, top_p, seed)): ((State, &str), (f32, f32, u64))| Turn {
            name: format!("{} at {place}", task.spec().slug),
            trajectory: trajectory(task, state),
            sampling: Sampling { temperature, top_p, seed },
            line: String::new(),
            verdict: Verdict::default(),
        };
    STATES.into_iter().zip(samplings).map(at).collect()
}

fn judging(task: &dyn AnyTask, is_first: bool) -> Vec<Turn> {
    let mut turns = Vec::new();
    for state in STATES {
        let right = trajectory(task, state.0).machine.reference().unwrap_or_default();
        turns.push(turn(task, state, ("the algorithm's line", &right)));
        turns.push(turn(task, state, ("a refused line", "no action")));
    }
    // These lines do not depend on the task: one of them is enough.
    if is_first {
        turns.extend(bad_lines().iter().map(|(what, line)| turn(task, STATES[1], (what, line))));
    }

    turns
}

fn deciding(task: &dyn AnyTask, is_first: bool) -> Vec<Turn> {
    let mut turns = Vec::new();
    for base in judging(task, is_first) {
        // Every verdict for the first turns, the best and the worst for the others.
        let verdicts = verdicts(task);
        let last = verdicts.len() - 1;

        for (at, (score, verdict)) in verdicts.into_iter().enumerate() {
            if turns.len() >= 4 * last && ![0, last].contains(&at) {
                continue;
            }
            let mut turn = copy(&base);
            turn.name += &format!(", {score}");
            turn.verdict = verdict;
            turn.trajectory.stack.top_mut().retries = u32::try_from(turns.len() % 4).unwrap_or(0);
            turns.push(turn);
        }
    }
    turns
}

/// A copy of a turn that shares nothing with it.
fn copy(turn: &Turn) -> Turn {
    let mut trajectory = Trajectory::new(turn.trajectory.machine.fork(), &LIMITS);
    trajectory.set_state(turn.trajectory.state());
    trajectory.stack = turn.trajectory.stack.clone();

    // Applied or rejected, as before.
    let _ = trajectory.machine.propose(&turn.line);
    Turn {
        name: turn.name.clone(),
        trajectory,
        sampling: turn.sampling,
        line: turn.line.clone(),
        verdict: turn.verdict.clone(),
    }
}

/// The turns of a role, the same at every call.
pub(super) fn turns(role: Role) -> Vec<Turn> {
    let of = |(at, task): (usize, &'static dyn AnyTask)| match role {
        Role::Executor => proposing(task),
        Role::Verifier => judging(task, at == 0),
        Role::Coordinator => deciding(task, at == 0),
    };
    sample_tasks().into_iter().enumerate().flat_map(of).collect()
}
