//! Properties of runs that go on elsewhere: folded from their events, or put back from a snapshot, at any point.

use std::sync::Arc;

use proptest::prelude::*;

use super::properties::{kinds, plan, queens};
use super::*;
use crate::{Ahead, Beam, Strategy};
use prime_bench::tasks::{Problem, TaskRng};

/// Something that happened, owned.
#[derive(Clone, Debug)]
struct Record {
    id: TurnId,
    line: String,
    applicable: bool,
    verdict: Verdict,
    decision: Decision,
    usage: Usage,
    logprob: Option<f64>,
}

impl Record {
    fn happened(&self) -> RunInput<'_> {
        let Self { id, line, applicable, verdict, decision, usage, logprob } = self;
        let settled = TurnOutcome {
            line,
            applicable: *applicable,
            verdict,
            decision: *decision,
            usage: *usage,
            logprob: *logprob,
            characters: line.len(),
            speculations: Speculations::default(),
        };
        RunInput::TurnOutcome { id: *id, settled }
    }
}

/// A run with random proposals and random, mostly sensible decisions, in a random order of turns.
fn recorded(problem: &Arc<dyn Problem>, plan: &RunPlan, seed: u64) -> (Vec<Record>, Outcome) {
    let mut rng = TaskRng::new(seed);
    let mut run = Run::new(Arc::clone(problem), plan.clone());
    let (mut effects, mut waiting, mut records) = (Vec::new(), Vec::new(), Vec::new());
    run.start(&mut effects);
    loop {
        for effect in effects.drain(..) {
            match effect {
                Effect::Propose(id, trajectory) => waiting.push((id, trajectory)),
                Effect::Finish(outcome) => return (records, *outcome),
                Effect::Voted { .. } => waiting.clear(),
                Effect::Ended(..) | Effect::Chosen { .. } => {}
            }
        }
        let (id, mut trajectory) = waiting.swap_remove(rng.index(waiting.len()));
        let choices = trajectory.machine.choices().expect("n-queens is a search");
        let line = if rng.chance(1, 10) { "nonsense".to_owned() } else { choices[rng.index(choices.len())].clone() };
        let applicable = trajectory.machine.propose(&line).is_ok();
        let is_clean = trajectory.machine.violations(kinds()).is_empty();
        let score = if is_clean { Score::ZERO } else { Score::from_tenths(2) };
        let decision = plan.strategy.ruling(match (is_clean, rng.below(8)) {
            (true, _) | (false, 0) => Decision::Proceed,
            (false, 1 | 2) => Decision::Retry,
            _ => Decision::Backtrack,
        });
        let feedback = (!is_clean).then(|| format!("not {line}"));
        let verdict = Verdict { score, feedback, ..Verdict::default() };
        let usage = Usage { prompt: rng.below(9), completion: 1 };
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let logprob = Some(-(rng.below(50) as f64) / 10.0);
        let settled = TurnOutcome {
            line: &line,
            applicable,
            verdict: &verdict,
            decision,
            usage,
            logprob,
            characters: line.len(),
            speculations: Speculations::default(),
        };
        run.settle(id, trajectory, settled, 0, &mut effects);
        records.push(Record { id, line, applicable, verdict, decision, usage, logprob });
    }
}

fn fold(problem: &Arc<dyn Problem>, plan: &RunPlan, records: &[Record]) -> Replay {
    let mut fold = Replay::new(Arc::clone(problem), plan.clone());
    for record in records {
        fold.apply(record.happened(), 0).expect("it happened");
    }
    fold
}

fn over(folded: Replayed) -> Outcome {
    match folded {
        Replayed::Over(outcome) => *outcome,
        Replayed::Open(_) => panic!("the run was over"),
    }
}

fn same(a: &Outcome, b: &Outcome) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Folding all events comes to the same end, and so does going on from a snapshot taken between any two of them.
    #[test]
    fn a_run_comes_to_the_same_end_from_anywhere(
        seed in any::<u64>(), n in 4usize..7, at in 0.0f64..1.0, strategy in 0usize..5
    ) {
        let problem = queens(n);
        let ahead = Ahead { k: 2, samples_max: 20, characters_max: 100, step_accuracy: 0.9 };
        let strategy = [
            Strategy::Iterative,
            Strategy::Greedy,
            Strategy::BestOfN,
            Strategy::Beam(Beam { width: 2, actions: 2 }),
            Strategy::Ahead(ahead),
        ][strategy];
        let fanout = if matches!(strategy, Strategy::Beam(_)) { 4 } else { 3 };
        let budget = Budget { steps: 400, tokens: 0, wall_ms: u64::MAX };
        let plan = RunPlan { strategy, budget, ..plan(fanout, 6) };
        let (records, outcome) = recorded(&problem, &plan, seed);
        prop_assert!(same(&over(fold(&problem, &plan, &records).finish()), &outcome));

        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a place in the list")]
        let mut cut = (at * records.len() as f64) as usize;
        // A run is saved between two batches only.
        let is_whole = |cut: usize| match fold(&problem, &plan, &records[..cut]).finish() {
            Replayed::Open(resting) => resting.run.is_whole(),
            Replayed::Over(_) => false,
        };
        while !is_whole(cut) {
            cut -= 1;
        }
        let Replayed::Open(resting) = fold(&problem, &plan, &records[..cut]).finish() else {
            return Err(TestCaseError::fail("it is not over before its last event"));
        };
        let waiting = resting.waiting.iter().map(|(id, trajectory)| (*id, trajectory.as_ref()));
        let text = serde_json::to_string(&RunSnapshot::of(&resting.run, waiting, 7)).unwrap();
        let saved: RunSnapshot = serde_json::from_str(&text).unwrap();
        let restored = saved.restore(&problem, plan.clone()).unwrap();
        prop_assert_eq!(restored.elapsed_ms, 7);
        let states = |resting: &SuspendedRun| -> Vec<_> {
            resting.waiting.iter().map(|(id, trajectory)| (*id, trajectory.machine.state(), trajectory.feedback.clone())).collect()
        };
        prop_assert_eq!(states(&restored), states(&resting));
        let mut rest = Replay::from_resting(restored);
        for record in &records[cut..] {
            rest.apply(record.happened(), 0).unwrap();
        }
        prop_assert!(same(&over(rest.finish()), &outcome));
    }
}

#[test]
fn what_cannot_have_happened_is_named() {
    let problem = queens(4);
    let plan = plan(1, 3);
    let good = Record {
        id: TurnId { round: 1, trajectory: 0 },
        line: "place 0 1".to_owned(),
        applicable: true,
        verdict: Verdict::default(),
        decision: Decision::Proceed,
        usage: Usage::default(),
        logprob: None,
    };
    let mut fold = fold(&problem, &plan, std::slice::from_ref(&good));
    let again = Record { line: "place nowhere".to_owned(), ..good.clone() };
    let again = fold.apply(again.happened(), 0).unwrap_err();
    assert!(matches!(again, fold::ReplayError::Step { depth: 1, .. }), "{again:?}");
    let stranger = Record { id: TurnId { round: 2, trajectory: 5 }, ..good };
    let error = fold.apply(stranger.happened(), 0).unwrap_err();
    assert_eq!(error, fold::ReplayError::NotUnderWay { round: 2, trajectory: 5 });
}

#[test]
fn a_stop_from_outside_is_folded_as_it_came() {
    let problem = queens(5);
    let mut stopped = Replay::new(Arc::clone(&problem), plan(2, 3));
    stopped.apply(RunInput::Stopped { ending: Ending::Cancelled }, 3).unwrap();
    assert_eq!(over(stopped.finish()).ending, Ending::Cancelled);
    let mut failed = Replay::new(problem, plan(1, 3));
    for round in 1..=3 {
        let id = TurnId { round, trajectory: 0 };
        if failed.apply(RunInput::Failed { id, reason: "no model".to_owned() }, 0).is_err() {
            break;
        }
    }
    assert_eq!(over(failed.finish()).ending, Ending::AgentFailed("no model".to_owned()));
}
