//! The turns that agents are given: tasks of every category, at the start and amid a trace, with good and bad lines.

use crate::agents::Sampling;
use prime_bench::tasks::{self, AnyTask, Category, Difficulty};
use prime_protocol::trajectory::Limits;
use prime_protocol::{Decision, Role, Score, Trajectory, Verdict};

/// Generous, so that no trajectory ends while it is prepared.
const LIMITS: Limits = Limits { attempts_max: 10_000, pops_max: 10_000, snapshot_every_frames: 4 };
/// Always the same instances.
const SEED: u64 = 42;
/// Steps from the start to the state amid a trace.
const STEPS_AMID: usize = 7;
/// Actions that were rejected before, where there are many.
const EXCLUDED: usize = 100;

/// What an agent is given.
pub(super) struct Turn {
    /// Task, state and line.
    pub name: String,
    /// Its machine has carried out or refused `line`, where that is not of an executor's turn.
    pub trajectory: Trajectory,
    pub sampling: Sampling,
    /// Empty for executors.
    pub line: String,
    /// For coordinators.
    pub verdict: Verdict,
}

/// Where a trajectory stands when the agent is asked.
#[derive(Clone, Copy)]
enum State {
    Start,
    Amid,
    /// Amid, after much that was rejected, with long feedback.
    Told,
}

const STATES: [(State, &str); 3] = [(State::Start, "start"), (State::Amid, "amid"), (State::Told, "told")];

/// One task of each category, and two that examples of agents know.
fn handful() -> Vec<&'static dyn AnyTask> {
    let of = |category| tasks::all().find(|task| task.spec().category == category);
    let mut handful: Vec<_> = Category::ALL.into_iter().filter_map(of).collect();
    for slug in ["bubble-sort", "tower-of-hanoi"] {
        if let Ok(task) = tasks::find(slug)
            && handful.iter().all(|taken| taken.spec().slug != slug)
        {
            handful.push(task);
        }
    }
    handful
}

fn trajectory(task: &dyn AnyTask, state: State) -> Trajectory {
    let mut trajectory = Trajectory::new(task.generate(Difficulty::Easy, SEED).start(), &LIMITS);
    if matches!(state, State::Start) {
        return trajectory;
    }
    for _ in 0..STEPS_AMID {
        let Some(line) = trajectory.machine.reference() else { break };
        let applicable = trajectory.machine.propose(&line).is_ok();
        if trajectory.machine.candidate_ends() {
            break;
        }
        trajectory.settle(&line, applicable, &Verdict::default(), Decision::Proceed, &LIMITS);
    }
    if matches!(state, State::Told) {
        let feedback = "\"nein\"\t\u{0}\\ 没有\n{{ view }} %s".repeat(2_000);
        let verdict = Verdict { score: Score::from_tenths(10), feedback: Some(feedback), ..Verdict::default() };
        for count in 0..EXCLUDED {
            let line = format!("no action {count}");
            let applicable = trajectory.machine.propose(&line).is_ok();
            trajectory.settle(&line, applicable, &verdict, Decision::Backtrack, &LIMITS);
        }
    }
    trajectory
}

/// Lines as executors should not write them, with what they are called.
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
    // Refused or carried out: an agent must bear both.
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
    let at = |((state, place), (temperature, top_p, seed)): ((State, &str), (f32, f32, u64))| Turn {
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
    if is_first {
        turns.extend(bad_lines().iter().map(|(what, line)| turn(task, STATES[1], (what, line))));
    }
    turns
}

fn deciding(task: &dyn AnyTask, is_first: bool) -> Vec<Turn> {
    let mut turns = Vec::new();
    for base in judging(task, is_first) {
        // Every verdict on the first turns, the cleanest and the worst on the others.
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

/// The same turn on a trajectory of its own.
fn copy(turn: &Turn) -> Turn {
    let mut trajectory = Trajectory::new(turn.trajectory.machine.fork(), &LIMITS);
    trajectory.set_state(turn.trajectory.state());
    trajectory.stack = turn.trajectory.stack.clone();
    // Refused or carried out, as before.
    let _ = trajectory.machine.propose(&turn.line);
    Turn {
        name: turn.name.clone(),
        trajectory,
        sampling: turn.sampling,
        line: turn.line.clone(),
        verdict: turn.verdict.clone(),
    }
}

/// The turns of a role, always the same.
pub(super) fn turns(role: Role) -> Vec<Turn> {
    let of = |(at, task): (usize, &'static dyn AnyTask)| match role {
        Role::Executor => proposing(task),
        Role::Verifier => judging(task, at == 0),
        Role::Coordinator => deciding(task, at == 0),
    };
    handful().into_iter().enumerate().flat_map(of).collect()
}
