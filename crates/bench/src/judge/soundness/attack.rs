//! An adversarial search: traces that leave the algorithm's path where the constraints permit it,
//! and then follow the algorithm to an end.

use std::sync::Arc;

use serde::Serialize;

use super::lines::Source;
use super::{Fooled, Judged};
use crate::tasks::{AnyTask, Difficulty, Kinds, Machine, Problem, TaskRng};

/// Traces that grow beyond the reference trace by more than this factor are given up.
const LENGTH_FACTOR: usize = 2;
/// Candidates tried at a state where the trace is to deviate.
const TRIES: usize = 40;
/// Candidates tried at a state where the algorithm has no clean line.
const TRIES_OFF_PATH: usize = 160;
/// Walks on one instance.
const WALKS: u64 = 24;

/// The extent of a search.
#[derive(Clone, Copy, Debug)]
pub struct Attack {
    /// The kinds of constraints that judge the traces.
    pub kinds: Kinds,
    /// Walks per task, a third of them of each level.
    pub walks: u64,
    /// Longest trace that is followed, in lines.
    pub lines_max: usize,
    /// Seed of the instances and of the search.
    pub seed: u64,
}

/// The findings of an attack on a task.
#[derive(Clone, Debug, Serialize)]
pub struct AttackRow {
    /// The task's slug.
    pub task: &'static str,
    /// Number of walks that were tried.
    pub walks: u64,
    /// Walks that found a clean line other than the algorithm's.
    pub deviated: u64,
    /// Clean traces that deviated from the reference trace and ended.
    pub ended: u64,
    /// Number of them that end in a wrong answer.
    pub wrong: u64,
    /// The shortest of these.
    pub shortest: Option<Fooled>,
}

impl AttackRow {
    /// The row of a task before its first walk.
    pub fn new(task: &'static str) -> Self {
        Self { task, walks: 0, deviated: 0, ended: 0, wrong: 0, shortest: None }
    }

    fn keep(&mut self, fooled: Fooled) {
        self.wrong += 1;
        if self.shortest.as_ref().is_none_or(|best| fooled.lines.len() < best.lines.len()) {
            self.shortest = Some(fooled);
        }
    }
}

/// The steps at which a walk deviates.
struct Schedule {
    /// The step of the first deviation.
    first: usize,
    /// The chance of each later one, in a thousand.
    again: u64,
}

impl Schedule {
    fn drawn(steps: usize, rng: &mut TaskRng) -> Self {
        let near = steps.min(8);
        let first = match rng.below(4) {
            0 => rng.index(near.max(1)),
            1 => steps - rng.index(near.max(1)).min(steps),
            _ => rng.index(steps.max(1)),
        };
        Self { first, again: rng.one_of(&[0, 0, 10, 50, 200, 500]) }
    }
}

/// A trace under attack.
struct Walk<'a> {
    machine: Box<dyn Machine>,
    source: Source,
    lines: Vec<String>,
    deviated_at: Option<usize>,
    kinds: Kinds,
    rng: &'a mut TaskRng,
}

impl Walk<'_> {
    /// Commits the line if these kinds find it clean.
    fn take(&mut self, line: &str) -> bool {
        if self.machine.propose(line).is_err() || !self.machine.violations(self.kinds).is_empty() {
            return false;
        }
        self.machine.commit();
        self.source.push(line);
        self.lines.push(line.to_owned());
        true
    }

    /// Takes a clean line other than the algorithm's.
    fn deviate(&mut self, right: Option<&str>, tries: usize) -> bool {
        self.source.look(self.machine.as_ref());
        for _ in 0..tries {
            let line = self.source.candidate(self.machine.as_ref(), self.rng);
            if right != Some(line.as_str()) && self.take(&line) {
                self.deviated_at.get_or_insert(self.lines.len() - 1);
                return true;
            }
        }
        false
    }

    /// Returns whether the walk reaches an end within `lines_max` lines.
    fn run(&mut self, schedule: &Schedule, lines_max: usize) -> bool {
        while self.lines.len() < lines_max && !self.machine.ended() {
            let right = self.machine.reference();
            let step = self.lines.len();
            let is_due = step == schedule.first
                || step > schedule.first && self.rng.below(1_000) < schedule.again;
            if is_due && self.deviate(right.as_deref(), TRIES) {
                continue;
            }

            let follows = right.as_deref().is_some_and(|line| self.take(line));
            // Off the path the algorithm may have no clean line, but there may be others.
            if !follows && !self.deviate(right.as_deref(), TRIES_OFF_PATH) {
                return false;
            }
        }
        self.machine.ended()
    }
}

/// Starts a walk, and draws the steps at which it deviates.
fn start<'a>(
    judged: &Judged,
    kinds: Kinds,
    lines_max: usize,
    rng: &'a mut TaskRng,
) -> (Schedule, Walk<'a>) {
    let schedule = Schedule::drawn(judged.steps.min(lines_max), rng);
    let walk = Walk {
        machine: judged.problem.start(),
        source: Source::default(),
        lines: Vec::new(),
        deviated_at: None,
        kinds,
        rng,
    };
    (schedule, walk)
}

/// One walk: the lines of a complete trace that these kinds find clean, and that leaves the
/// algorithm's path; `None` if it finds none.
pub fn deviating_trace(
    judged: &Judged,
    kinds: Kinds,
    lines_max: usize,
    rng: &mut TaskRng,
) -> Option<Vec<String>> {
    let (schedule, mut walk) = start(judged, kinds, lines_max, rng);
    let has_ended = walk.run(&schedule, lines_max);
    (has_ended && walk.deviated_at.is_some()).then_some(walk.lines)
}

/// A line other than the algorithm's that these kinds find clean, and that `is_wanted` accepts,
/// given the machine with this line as its candidate; `None` if some tries find none.
pub fn clean_deviation(
    machine: &dyn Machine,
    kinds: Kinds,
    rng: &mut TaskRng,
    is_wanted: impl Fn(&dyn Machine, &str) -> bool,
) -> Option<String> {
    let mut source = Source::default();
    source.look(machine);

    let mut tried = machine.fork();
    (0..TRIES).map(|_| source.candidate(machine, rng)).find(|line| {
        tried.propose(line).is_ok()
            && tried.violations(kinds).is_empty()
            && is_wanted(tried.as_ref(), line)
    })
}

/// Attacks one problem.
fn attack_one(judged: &Judged, plan: &Attack, walks: u64, rng: &mut TaskRng, row: &mut AttackRow) {
    let lines_max =
        plan.lines_max.min(judged.steps.saturating_mul(LENGTH_FACTOR).saturating_add(64));
    for _ in 0..walks {
        row.walks += 1;
        let (schedule, mut walk) = start(judged, plan.kinds, lines_max, rng);
        let has_ended = walk.run(&schedule, lines_max);
        row.deviated += u64::from(walk.deviated_at.is_some());
        if !has_ended {
            continue;
        }
        let (Some(at), Some(answer)) = (walk.deviated_at, walk.machine.answer()) else { continue };
        row.ended += 1;
        if !judged.accepts(&answer) {
            row.keep(Fooled {
                input: judged.problem.input(),
                lines: walk.lines,
                at,
                answer,
                right: judged.right.clone(),
            });
        }
    }
}

/// Attacks a task on instances of all levels in turn, and on small inputs.
pub fn attack(task: &'static dyn AnyTask, plan: &Attack) -> AttackRow {
    let mut row = AttackRow::new(task.spec().slug);
    let mut rng = TaskRng::new(plan.seed ^ u64::from(task.spec().id));
    let mut small = super::small_inputs(task, plan.seed).into_iter();

    let mut instance = 0;
    while row.walks < plan.walks {
        let walks = WALKS.min(plan.walks - row.walks);
        // Half of the instances are small: there the search is fast, and ends are near.
        let problem: Arc<dyn Problem> = match small.next().filter(|_| instance % 2 == 0) {
            Some(problem) => problem,
            None => {
                let level = Difficulty::ALL[usize::try_from(instance / 2 % 3).unwrap_or(0)];
                task.generate(level, plan.seed.wrapping_mul(1_000_003).wrapping_add(instance))
            }
        };
        instance += 1;

        // A trace that is cut off has no end to judge.
        let judged = Judged::new(problem);
        if judged.steps <= plan.lines_max {
            attack_one(&judged, plan, walks, &mut rng, &mut row);
        } else {
            row.walks += 1;
        }
    }
    row
}
