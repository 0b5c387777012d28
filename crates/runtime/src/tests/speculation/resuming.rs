//! Resumed runs: early proposals are not part of a snapshot, and are not missed.

use super::*;
use prime_protocol::{Replay, Replayed, RunInput, RunSnapshot, SuspendedRun, TurnOutcome};

const MOODY: Moody = Moody { millis: (0, 9), tolerable: 10, intolerable: 15 };

fn speculating() -> RunPlan {
    RunPlan { speculate: true, max_rounds: 1, ..plan(1) }
}

/// Asks for a snapshot after `after` steps, and records the run.
#[derive(Clone, Default)]
struct Keeper {
    after: usize,
    trace: Trace,
    records: Arc<Mutex<Vec<Record>>>,
    /// The snapshot, with the number of steps before it.
    saved: Arc<Mutex<Option<(usize, RunSnapshot)>>>,
}

/// A step as a journal records it.
#[derive(Clone)]
struct Record {
    id: TurnId,
    line: String,
    applicable: bool,
    verdict: Verdict,
    decision: Decision,
    usage: Usage,
    speculations: Speculations,
}

impl Observer for Keeper {
    fn observe(&self, event: &Event<'_>) {
        self.trace.observe(event);
        if let Event::Step {
            id,
            proposal,
            is_applicable,
            verdict,
            decision,
            usage,
            speculations,
            ..
        } = event
        {
            self.records.lock().unwrap().push(Record {
                id: *id,
                line: proposal.line.clone(),
                applicable: *is_applicable,
                verdict: (*verdict).clone(),
                decision: *decision,
                usage: *usage,
                speculations: *speculations,
            });
        }
    }

    fn wants_snapshot(&self) -> bool {
        self.saved.lock().unwrap().is_none() && self.records.lock().unwrap().len() >= self.after
    }

    fn save_snapshot(&self, saved: RunSnapshot) {
        *self.saved.lock().unwrap() = Some((self.records.lock().unwrap().len(), saved));
    }
}

/// Runs from the start, or from where a run was suspended.
fn kept(after: usize, suspended: Option<SuspendedRun>) -> (Keeper, Outcome) {
    let keeper = Keeper { after, ..Keeper::default() };
    let (executor, _) = erring(0.1, (0, 9));
    let agents = stopped(executor, || MOODY).0;

    let submission = Submission {
        observer: Arc::new(keeper.clone()),
        suspended: suspended.map(Box::new),
        ..submission(&problem("bubble-sort"), speculating())
    };

    let outcome = in_system(async { outcome_of(shared(agents).submit(submission)).await });
    (keeper, outcome)
}

fn without() -> Traced {
    let (executor, _) = erring(0.1, (0, 9));
    let plan = RunPlan { speculate: false, ..speculating() };
    traced(stopped(executor, || MOODY).0, &problem("bubble-sort"), plan, 42).0
}

#[test]
fn a_snapshot_does_not_discard_early_proposals() {
    let expected = without();
    for after in [0, 1, 7, 30] {
        let (keeper, outcome) = kept(after, None);

        let seen = keeper.trace.get();
        assert_eq!((&seen.order, &seen.ends), (&expected.order, &expected.ends));

        let (at, saved) = keeper.saved.lock().unwrap().take().expect("a snapshot was taken");
        assert_eq!(at, after);

        let (unsaved, _) = kept(usize::MAX, None);
        assert_eq!(
            unsaved.trace.get().speculations,
            outcome.speculations,
            "snapshots waste nothing"
        );

        let suspended =
            saved.restore(&problem("bubble-sort"), speculating()).expect("it can be restored");
        let (rest, resumed) = kept(usize::MAX, Some(suspended));
        assert_eq!(rest.trace.get().order, expected.order[at..]);
        assert_eq!((&resumed.ending, &resumed.answer), (&outcome.ending, &outcome.answer));
        // Counters continue from the snapshot.
        assert_eq!(resumed.proposals, outcome.proposals);
        assert!(
            resumed.speculations.used + 1 >= outcome.speculations.used
                && rest.trace.get().speculations.used > 0
        );
    }
}

#[test]
fn a_replayed_run_continues_the_same() {
    let expected = without();
    let (keeper, outcome) = kept(usize::MAX, None);
    let records = keeper.records.lock().unwrap().clone();
    let problem = problem("bubble-sort");

    for cut in [1, 2, 9, records.len() - 1, records.len()] {
        let mut replay = Replay::new(Arc::clone(&problem), speculating());
        for record in &records[..cut] {
            let Record { id, line, applicable, verdict, decision, usage, speculations } = record;
            let outcome = TurnOutcome {
                line,
                applicable: *applicable,
                verdict,
                decision: *decision,
                located: None,
                exhausted: false,
                usage: *usage,
                derivation: "",
                logprobs: &[],
                speculations: *speculations,
            };
            replay.apply(RunInput::Decided { id: *id, outcome }, 0).expect("it happened");
        }

        match replay.finish() {
            Replayed::Over(replayed) => {
                assert_eq!(
                    (cut, replayed.usage, replayed.speculations),
                    (records.len(), outcome.usage, outcome.speculations)
                );
            }
            Replayed::Open(suspended) => {
                let (rest, resumed) = kept(usize::MAX, Some(*suspended));
                assert_eq!(rest.trace.get().order, expected.order[cut..]);
                assert_eq!(
                    (&resumed.ending, resumed.proposals),
                    (&outcome.ending, outcome.proposals)
                );
            }
        }
    }
}
