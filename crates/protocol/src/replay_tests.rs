//! Properties of runs that are replayed from their events, or restored from a snapshot, at any
//! point.

use std::sync::Arc;

use proptest::prelude::*;

use super::properties::{kinds, plan, queens};
use super::*;
use crate::{Ahead, Beam, ParticleFilter, Strategy, Uct};
use prime_bench::tasks::{Problem, TaskRng};

/// An event, owned.
#[derive(Clone, Debug)]
struct Record {
    id: TurnId,
    line: String,
    applicable: bool,
    verdict: Verdict,
    decision: Decision,
    exhausted: bool,
    usage: Usage,
    logprob: [f32; 1],
}

impl Record {
    fn input(&self) -> RunInput<'_> {
        let Self { id, line, applicable, verdict, decision, exhausted, usage, logprob } = self;
        let outcome = TurnOutcome {
            line,
            applicable: *applicable,
            verdict,
            decision: *decision,
            located: None,
            exhausted: *exhausted,
            usage: *usage,
            derivation: "",
            logprobs: logprob,
            speculations: Speculations::default(),
        };
        RunInput::Decided { id: *id, outcome }
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
        let line = if rng.chance(1, 10) {
            "nonsense".to_owned()
        } else {
            choices[rng.index(choices.len())].clone()
        };

        let applicable = trajectory.machine.propose(&line).is_ok();
        let is_clean = trajectory.machine.violations(kinds()).is_empty();
        let score = if is_clean { Score::ZERO } else { Score::from_tenths(2) };
        let decision = plan.strategy.ruling(match (is_clean, rng.below(8)) {
            (true, _) | (false, 0) => Decision::Proceed,
            (false, 1 | 2) => Decision::Retry,
            _ => Decision::Backtrack,
        });

        let exhausted = decision == Decision::Backtrack && rng.chance(1, 16);
        let feedback = (!is_clean).then(|| format!("not {line}"));
        let verdict = Verdict { score, feedback, ..Verdict::default() };

        let usage = Usage::new(rng.below(9), 1);
        #[expect(clippy::cast_precision_loss, reason = "a small number")]
        let logprob = [-(rng.below(50) as f32) / 10.0];

        let outcome = TurnOutcome {
            line: &line,
            applicable,
            verdict: &verdict,
            decision,
            located: None,
            exhausted,
            usage,
            derivation: "",
            logprobs: &logprob,
            speculations: Speculations::default(),
        };

        run.settle(id, trajectory, outcome, 0, &mut effects);
        records.push(Record { id, line, applicable, verdict, decision, exhausted, usage, logprob });
    }
}

fn replayed(problem: &Arc<dyn Problem>, plan: &RunPlan, records: &[Record]) -> Replay {
    let mut replay = Replay::new(Arc::clone(problem), plan.clone());
    replay.apply(RunInput::JudgedBy(plan.basis), 0).expect("a run has a verifier");
    for record in records {
        replay.apply(record.input(), 0).expect("it happened");
    }
    replay
}

fn over(replayed: Replayed) -> Outcome {
    match replayed {
        Replayed::Over(outcome) => *outcome,
        Replayed::Open(_) => panic!("the run was over"),
    }
}

fn same(a: &Outcome, b: &Outcome) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Replaying all events reaches the same end, and so does continuing from a snapshot between
    /// any two of them.
    #[test]
    fn a_run_reaches_the_same_end_from_anywhere(
        seed in any::<u64>(), n in 4usize..7, at in 0.0f64..1.0, strategy in 0usize..8
    ) {

        let problem = queens(n);
        let ahead = Ahead { k: 2, samples_max: 20, characters_max: 100, step_accuracy: 0.9 };
        let strategy = [
            Strategy::Iterative,
            Strategy::Greedy,
            Strategy::BestOfN,
            Strategy::Beam(Beam { width: 2, actions: 2 }),
            Strategy::Ahead(ahead),
            Strategy::ParticleFilter(ParticleFilter { particles: 3, resample_below: 0.7 }),
            Strategy::Uct(Uct { width: 3, exploration: 0.5, simulations: 60 }),
            Strategy::Uct(Uct { width: 2, exploration: 0.0, simulations: 1_000 }),
        ][strategy];
        let fanout = if matches!(strategy, Strategy::Beam(_)) { 4 } else { 3 };

        let budget = Budget { steps: 400, tokens: 0, completion_tokens: 0, cost: Cost::ZERO, wall_ms: u64::MAX };
        // A tree then keeps every other trajectory, and makes the others.
        let limits = Limits { snapshot_every_frames: 2, ..plan(fanout, 6).limits };
        let plan = RunPlan { strategy, limits, budget, ..plan(fanout, 6) };

        let (records, outcome) = recorded(&problem, &plan, seed);
        prop_assert!(same(&over(replayed(&problem, &plan, &records).finish()), &outcome));

        #[expect(clippy::cast_sign_loss, clippy::cast_possible_truncation, reason = "a place in the list")]
        let mut cut = (at * records.len() as f64) as usize;

        // Snapshots are taken between two batches.
        let is_whole = |cut: usize| match replayed(&problem, &plan, &records[..cut]).finish() {
            Replayed::Open(suspended) => suspended.run.is_whole(),
            Replayed::Over(_) => false,
        };

        while !is_whole(cut) {
            cut -= 1;
        }

        let Replayed::Open(suspended) = replayed(&problem, &plan, &records[..cut]).finish() else {
            return Err(TestCaseError::fail("it is not over before its last event"));
        };

        let waiting = suspended.waiting.iter().map(|(id, trajectory)| (*id, trajectory.as_ref()));
        let text = serde_json::to_string(&RunSnapshot::of(&suspended.run, waiting, 7)).unwrap();
        let saved: RunSnapshot = serde_json::from_str(&text).unwrap();
        let restored = saved.restore(&problem, plan.clone()).unwrap();
        prop_assert_eq!(restored.elapsed_ms, 7);

        let states = |suspended: &SuspendedRun| -> Vec<_> {
            suspended.waiting.iter().map(|(id, trajectory)| (*id, trajectory.machine.state(), trajectory.feedback.clone())).collect()
        };
        prop_assert_eq!(states(&restored), states(&suspended));

        let mut rest = Replay::from_suspended(restored);
        for record in &records[cut..] {
            rest.apply(record.input(), 0).unwrap();
        }

        let resumed = over(rest.finish());
        prop_assert!(same(&resumed, &outcome), "{resumed:?}\n{outcome:?}");
    }
}

#[test]
fn impossible_events_are_named() {
    let problem = queens(4);
    let plan = plan(1, 3);

    let good = Record {
        id: TurnId { round: 1, trajectory: 0 },
        line: "place 0 1".to_owned(),
        applicable: true,
        verdict: Verdict::default(),
        decision: Decision::Proceed,
        exhausted: false,
        usage: Usage::default(),
        logprob: [-1.0],
    };

    let mut replay = replayed(&problem, &plan, std::slice::from_ref(&good));
    let again = Record { line: "place nowhere".to_owned(), ..good.clone() };
    let again = replay.apply(again.input(), 0).unwrap_err();
    assert!(matches!(again, replay_error::ReplayError::Step { depth: 1, .. }), "{again:?}");

    let stranger = Record { id: TurnId { round: 2, trajectory: 5 }, ..good };
    let error = replay.apply(stranger.input(), 0).unwrap_err();
    assert_eq!(error, replay_error::ReplayError::NotInFlight { round: 2, trajectory: 5 });
}

#[test]
fn a_stop_from_outside_is_replayed() {
    let problem = queens(5);

    let mut stopped = Replay::new(Arc::clone(&problem), plan(2, 3));
    stopped.apply(RunInput::Stopped { ending: Ending::Cancelled }, 3).unwrap();
    assert_eq!(over(stopped.finish()).ending, Ending::Cancelled);

    let mut failed = Replay::new(problem, plan(1, 3));
    for round in 1..=3 {
        let id = TurnId { round, trajectory: 0 };
        if failed
            .apply(
                RunInput::Failed { id, reason: "no model".to_owned(), usage: Usage::default() },
                0,
            )
            .is_err()
        {
            break;
        }
    }

    assert_eq!(over(failed.finish()).ending, Ending::AgentFailed("no model".to_owned()));
}
