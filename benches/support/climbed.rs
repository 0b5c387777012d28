//! A long trajectory midway: Tower of Hanoi, a given number of steps after its beginning.

use std::sync::Arc;

use prime_bench::tasks::{self, Problem};
use prime_protocol::{Basis, Effect, Run, RunPlan, RunSnapshot, Score, Trajectory, TurnId};

/// Lines that are known beyond the trajectory's depth.
const AHEAD: usize = 64;

/// A run whose only trajectory has come to a given depth.
pub struct Climbed {
    pub problem: Arc<dyn Problem>,
    pub plan: RunPlan,
    pub run: Run,
    pub id: TurnId,
    pub trajectory: Box<Trajectory>,
    /// The lines that come next.
    pub next: Vec<String>,
}

impl Climbed {
    /// A run at this depth, which is at most some 16 million.
    pub fn to(depth: usize) -> Self {
        let input = serde_json::json!({ "n": 24, "from": 0, "to": 2 });
        let problem =
            tasks::find("tower-of-hanoi").expect("listed").read_input(&input).expect("valid");

        let plan = RunPlan::single(u64::MAX);
        let mut run = Run::new(Arc::clone(&problem), plan.clone());
        let mut effects = Vec::new();
        run.start(&mut effects);

        let Some(Effect::Propose(id, mut trajectory)) = effects.pop() else {
            panic!("a run begins with a proposal")
        };

        for _ in 0..depth {
            let line = trajectory.machine.reference().expect("a long trace");
            trajectory.machine.replay(&line).expect("legal");
            trajectory.push(&line, Score::ZERO, Basis::NONE);
        }

        let mut ahead = trajectory.machine.fork();
        let mut next = Vec::new();
        for _ in 0..AHEAD {
            next.push(ahead.reference().expect("a long trace"));
            ahead.follow_reference();
        }

        Self { problem, plan, run, id, trajectory, next }
    }

    /// What a snapshot in the journal holds.
    pub fn save(&self) -> Vec<u8> {
        let saved = RunSnapshot::of(&self.run, [(self.id, &*self.trajectory)], 0);
        serde_json::to_vec(&saved).expect("saved runs serialise")
    }

    /// The trajectory again, out of what [`Climbed::save`] gave.
    pub fn restore(&self, saved: &[u8]) -> Box<Trajectory> {
        let saved: RunSnapshot = serde_json::from_slice(saved).expect("saved runs can be read");
        let mut suspended =
            saved.restore(&self.problem, self.plan.clone()).expect("its lines are legal");
        suspended.waiting.pop().expect("one trajectory").1
    }

    /// Replays the next lines and puts them on the stack.
    pub fn push(&mut self) {
        let Trajectory { machine, stack, .. } = &mut *self.trajectory;
        for line in &self.next {
            machine.replay(line).expect("legal");
            stack.push(line, machine.as_ref());
        }
    }

    /// Takes back as many lines as [`Climbed::push`] pushes.
    pub fn pop(&mut self) {
        let Trajectory { machine, stack, .. } = &mut *self.trajectory;
        for _ in &self.next {
            stack.pop(machine.as_mut()).expect("they were pushed");
        }
    }
}
