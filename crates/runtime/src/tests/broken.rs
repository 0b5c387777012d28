//! Tasks whose own code panics outside agents: their runs end by name, and the cell survives.

use std::sync::atomic::AtomicBool;

use serde_json::Value;

use super::*;
use prime_bench::tasks::{BadInput, Machine, PathDraw, Spec, TaskRng};
use prime_protocol::Ending;

/// Panics at its first event of this kind.
struct Breaks {
    at: fn(&Event<'_>) -> bool,
    is_broken: AtomicBool,
}

impl Observer for Breaks {
    fn observe(&self, event: &Event<'_>) {
        let breaks = (self.at)(event) && !self.is_broken.swap(true, Ordering::SeqCst);
        assert!(!breaks, "{PLANNED} outside the agents");
    }
}

/// A problem that cannot be started.
struct Stillborn(Arc<dyn Problem>);

impl Problem for Stillborn {
    fn spec(&self) -> &'static Spec {
        self.0.spec()
    }

    fn input(&self) -> Value {
        self.0.input()
    }

    fn start(&self) -> Box<dyn Machine> {
        panic!("{PLANNED} outside the agents")
    }

    fn machine_at(&self, state: &Value) -> Result<Box<dyn Machine>, BadInput> {
        self.0.machine_at(state)
    }

    fn steps_max(&self) -> u64 {
        self.0.steps_max()
    }

    fn on_path(&self, draw: PathDraw, rng: &mut TaskRng) -> Option<Box<dyn Machine>> {
        self.0.on_path(draw, rng)
    }

    fn goal(&self, answer: &Value) -> Option<bool> {
        self.0.goal(answer)
    }
}

#[test]
fn a_run_that_panics_outside_its_agents_ends_by_name_and_no_other_does() {
    for placement in [Placement::Shared, Placement::Own] {
        in_system(async {
            let (agents, made) = checked(|_| ReferenceExecutor);
            let runtime = Runtime::start(&runtime_plan(placement), agents);
            let sound = problem("bubble-sort");

            let mut beside = runtime.submit(submission(&sound, plan(4)));
            let kinds: [fn(&Event<'_>) -> bool; 4] = [
                |event| matches!(event, Event::Step { .. }),
                |event| matches!(event, Event::Step { depth: 3, .. }),
                |event| matches!(event, Event::TrajectoryEnded { .. }),
                |event| matches!(event, Event::Voted { .. }),
            ];

            let mut handles: Vec<_> = kinds
                .into_iter()
                .map(|at| {
                    let observer = Arc::new(Breaks { at, is_broken: AtomicBool::new(false) });
                    runtime.submit(Submission { observer, ..submission(&sound, plan(4)) })
                })
                .collect();

            let stillborn: Arc<dyn Problem> = Arc::new(Stillborn(Arc::clone(&sound)));
            handles.push(runtime.submit(submission(&stillborn, plan(4))));

            for handle in handles {
                let Ending::AgentFailed(reason) = outcome_of(handle).await.ending else {
                    panic!("it went on")
                };
                assert!(reason.contains("outside the agents"), "{reason}");
            }

            assert!(beside.outcome().await.expect("the Supervisor lives").is_verified());
            assert!(outcome_of(runtime.submit(submission(&sound, plan(4)))).await.is_verified());
            assert_eq!((runtime.load(), made.counts()), (0, [1, 1, 1]), "no agent has died");
        });
    }
}
