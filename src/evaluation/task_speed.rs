//! Speed of the tasks on one thread: generating instances, running references, judging steps.

use serde::Serialize;
use tokio::time::{Duration, Instant};

use prime_bench::dataset::Selection;
use prime_bench::tasks::{AnyTask, Kinds};

/// Time spent on judging a task; the rest would only repeat it.
const JUDGING_MAX: Duration = Duration::from_secs(2);

/// The speed of one task over a selection of its instances.
#[derive(Clone, Debug, Serialize)]
pub struct SpeedRow {
    /// The task's slug.
    pub task: &'static str,
    /// Number of instances.
    pub instances: u64,
    /// Actions of all reference traces.
    pub steps: u64,
    /// Seconds to generate all instances, rejected draws included.
    pub drawing_s: f64,
    /// Seconds to run all references.
    pub reference_s: f64,
    /// Steps of the references per second.
    pub reference_steps_per_s: f64,
    /// Steps parsed, applied and checked against all constraints, per second.
    pub judged_steps_per_s: f64,
}

fn rate(count: u64, time: Duration) -> f64 {
    count as f64 / time.as_secs_f64().max(1e-9)
}

/// Measures a task.
///
/// # Panics
/// When a reference action breaks a constraint: that is a bug of the task.
pub fn task_speed(task: &'static dyn AnyTask, selection: &Selection) -> SpeedRow {
    let started = Instant::now();
    let problems: Vec<_> = selection.of(task).iter().map(|id| id.problem()).collect();
    let drawing = started.elapsed();

    let started = Instant::now();
    let steps = problems.iter().map(|problem| problem.reference().steps).sum();
    let reference = started.elapsed();

    let mut judged = 0;
    let mut judging = Duration::ZERO;
    let mut line = String::new();
    // Lines are produced off the clock: only propose, judge and commit are timed.
    'measured: for problem in &problems {
        let mut machine = problem.start();
        let mut ahead = problem.start();

        loop {
            // Batches keep the clock's own cost out of the figures.
            let mut lines = Vec::with_capacity(1024);
            while lines.len() < 1024 && ahead.advance(&mut line) {
                lines.push(line.clone());
            }

            let started = Instant::now();
            for line in &lines {
                machine.propose(line).expect("invariant: reference actions are legal");
                let found = machine.violations(Kinds::ALL);
                assert!(found.is_empty(), "{}: {line} breaks a constraint", task.spec().slug);
                machine.commit();
            }

            judging += started.elapsed();
            judged += lines.len() as u64;

            if judging > JUDGING_MAX {
                break 'measured;
            }
            if lines.len() < 1024 {
                break;
            }
        }
    }

    SpeedRow {
        task: task.spec().slug,
        instances: problems.len() as u64,
        steps,
        drawing_s: drawing.as_secs_f64(),
        reference_s: reference.as_secs_f64(),
        reference_steps_per_s: rate(steps, reference),
        judged_steps_per_s: rate(judged, judging),
    }
}
