//! Steps that wait for approval: what holds them, and what decisions make of them.

use tokio::sync::mpsc;

use super::*;
use prime_protocol::{Approval, ApprovalVerdict, Resolution};

/// Holds the steps at these depths, and tells when one waits and when the run is suspended.
struct Holds {
    depths: &'static [usize],
    trajectories: &'static [u32],
    seen: Recorder,
    tell: mpsc::UnboundedSender<Told>,
}

#[derive(Debug, PartialEq, Eq)]
enum Told {
    Waits(u32, String),
    /// The first trajectory has ended.
    Ended,
    Suspended,
}

impl Observer for Holds {
    fn observe(&self, event: &Event<'_>) {
        self.seen.observe(event);
        if let Event::Waiting { number, step: Event::Step { proposal, .. } } = event {
            let _ = self.tell.send(Told::Waits(*number, proposal.line.clone()));
        }
        if matches!(event, Event::TrajectoryEnded { id, .. } if id.trajectory == 0) {
            let _ = self.tell.send(Told::Ended);
        }
    }

    fn may_hold(&self) -> bool {
        true
    }

    fn holds(&self, step: &Event<'_>) -> bool {
        matches!(step, Event::Step { id, depth, .. }
            if self.trajectories.contains(&id.trajectory) && self.depths.contains(depth))
    }

    fn suspended(&self) {
        let _ = self.tell.send(Told::Suspended);
    }
}

fn decided(number: u32, verdict: ApprovalVerdict, line: Option<&str>) -> Resolution {
    let (by, reason) = ("ada".to_owned(), "because".to_owned());
    let approval = Approval { number, verdict, by, reason, proposed: None };
    Resolution { approval, line: line.map(str::to_owned) }
}

/// The second trajectory does not begin before it is told to: it keeps the run in memory.
#[derive(Clone, Default)]
struct Second(Arc<tokio::sync::Notify>);

#[async_trait]
impl Before for Second {
    async fn before(&self, _: u64, trajectory: &Trajectory) -> Result<(), AgentError> {
        if trajectory.index == 1 && trajectory.counts.proposals == 0 {
            self.0.notified().await;
        }
        Ok(())
    }
}

#[test]
fn a_run_whose_trajectories_all_wait_leaves_without_an_outcome() {
    in_system(async {
        let runtime = shared(checked(|_| ReferenceExecutor).0);
        let (tell, mut told) = mpsc::unbounded_channel();
        let (depths, trajectories) = (&[0], &[0, 1]);
        let observer = Arc::new(Holds { depths, trajectories, seen: Recorder::default(), tell });
        let run = Submission { observer, ..submission(&problem("bubble-sort"), plan(2)) };
        let mut handle = runtime.submit(run);

        assert!(handle.outcome().await.is_none(), "it waits");
        // The run's owner may hear of it a moment before the load is counted.
        while runtime.load() > 0 {
            tokio::task::yield_now().await;
        }
        let first = problem("bubble-sort").start().reference().expect("it has steps");
        assert_eq!(told.recv().await, Some(Told::Waits(1, first.clone())));
        assert_eq!(told.recv().await, Some(Told::Waits(2, first)));
        assert_eq!(told.recv().await, Some(Told::Suspended));
    });
}

#[test]
fn decisions_reach_a_run_that_goes_on() {
    in_system(async {
        let second = Second::default();
        let begins = second.clone();
        let runtime = shared(checked(move |_| reference_after(second.clone())).0);
        let (tell, mut told) = mpsc::unbounded_channel();
        let seen = Recorder::default();
        let (depths, trajectories) = (&[0, 1, 2], &[0]);
        let observer = Arc::new(Holds { depths, trajectories, seen: seen.clone(), tell });
        let run = Submission { observer, ..submission(&problem("bubble-sort"), plan(2)) };
        let mut handle = runtime.submit(run);
        let of = handle.canceller();

        let Some(Told::Waits(1, first)) = told.recv().await else { panic!("the first step waits") };
        // There is no such step, so that nothing happens.
        of.approve(decided(2, ApprovalVerdict::Accept, None));
        // The verifier judges a person's line like any other.
        of.approve(decided(1, ApprovalVerdict::Edit, Some("nonsense")));
        // The executor proposes the same again, which waits again.
        assert_eq!(told.recv().await, Some(Told::Waits(2, first.clone())));
        of.approve(decided(2, ApprovalVerdict::Edit, Some(&first)));
        let Some(Told::Waits(3, line)) = told.recv().await else { panic!("the second step waits") };
        of.approve(decided(3, ApprovalVerdict::Accept, None));
        // A decision that comes twice counts once.
        of.approve(decided(3, ApprovalVerdict::Accept, None));
        let Some(Told::Waits(4, third)) = told.recv().await else { panic!("the third step waits") };
        of.approve(decided(4, ApprovalVerdict::Reject, None));
        // The executor finds another way.
        let Some(Told::Waits(5, other)) = told.recv().await else { panic!("another line waits") };
        assert_ne!(other, third);
        of.approve(decided(5, ApprovalVerdict::Accept, None));
        // It may come back to these depths.
        loop {
            match told.recv().await.expect("the run tells") {
                Told::Waits(number, _) => {
                    of.approve(decided(number, ApprovalVerdict::Accept, None));
                }
                Told::Ended => break,
                Told::Suspended => panic!("the second trajectory has not begun"),
            }
        }
        begins.0.notify_one();

        let outcome = handle.outcome().await.expect("it has ended");
        assert!(outcome.is_verified(), "{:?}", outcome.ending);
        let steps: Vec<_> = seen
            .seen()
            .steps
            .iter()
            .filter(|step| step.id.trajectory == 0)
            .take(4)
            .cloned()
            .collect();
        let said: Vec<_> = steps.iter().map(|step| (step.line.as_str(), step.decision)).collect();
        let (proceed, backtrack) = (Decision::Proceed, Decision::Backtrack);
        let (first, line, third) = (first.as_str(), line.as_str(), third.as_str());
        let expected =
            [("nonsense", backtrack), (first, proceed), (line, proceed), (third, backtrack)];
        assert_eq!(said, expected);
        let feedback = steps[3].feedback.as_deref();
        assert_eq!(feedback, Some("a reviewer rejected this line: because"));
    });
}
