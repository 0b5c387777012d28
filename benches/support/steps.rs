//! The first steps of a task's reference, to be taken one by one.

use prime_bench::tasks::{self, Difficulty, Kinds, Machine};
use prime_protocol::{Decision, Limits, RunPlan, Trajectory, Verdict};

/// Most steps that are taken.
const STEPS: usize = 64;

/// A trajectory at its beginning, and the lines that it takes.
pub struct Steps {
    trajectory: Trajectory,
    lines: Vec<String>,
    limits: Limits,
}

impl Steps {
    /// The steps of a task's first medium instance; fewer than 64 where it ends earlier.
    pub fn of(slug: &str) -> Self {
        let machine = tasks::find(slug).expect("listed").generate(Difficulty::Medium, 1).start();
        let limits = RunPlan::single(0).limits;
        let lines = lines(machine.fork());
        Self { trajectory: Trajectory::new(machine, &limits), lines, limits }
    }

    /// Proposes, judges and commits each line.
    pub fn take(&mut self) {
        let machine = &mut self.trajectory.machine;
        for line in &self.lines {
            machine.propose(line).expect("legal");
            std::hint::black_box(machine.violations(Kinds::ALL));
            machine.commit();
        }
    }

    /// Proposes each line twice: the first proposal is to be retried, the second is committed.
    pub fn settle(&mut self) {
        let verdict = Verdict::default();
        for line in &self.lines {
            for decision in [Decision::Retry, Decision::Proceed] {
                self.trajectory.machine.propose(line).expect("legal");
                std::hint::black_box(self.trajectory.settle(
                    line,
                    true,
                    &verdict,
                    decision,
                    &self.limits,
                ));
            }
        }

        assert_eq!(self.trajectory.counts.committed, self.lines.len() as u64);
    }
}

fn lines(mut machine: Box<dyn Machine>) -> Vec<String> {
    let mut lines = Vec::new();
    while let Some(line) = machine.reference().filter(|_| lines.len() < STEPS) {
        lines.push(line);
        machine.follow_reference();
    }
    lines
}
