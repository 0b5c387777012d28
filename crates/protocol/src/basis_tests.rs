//! Whatever happens to a run, a wrong answer is never verified: verifiers that look at different
//! things, that change between two steps, forks and resumptions from snapshots, every strategy.

use std::sync::Arc;

use proptest::prelude::*;

use super::properties::{plan, strategies};
use super::*;
use prime_bench::judge::soundness::small_inputs;
use prime_bench::tasks::{self, Kind, Kinds, Problem, TaskRng};

/// Tasks of each sort: searches, simulators, sorts, and those whose sound set is every kind.
const TASKS: [&str; 8] = [
    "n-queens",
    "bubble-sort",
    "turing-machine",
    "dependency-sat",
    "unification",
    "tower-of-hanoi",
    "gcd-euclidean",
    "petri-net",
];

/// Who judges from some step on.
fn verifiers() -> [Basis; 7] {
    [
        Basis::NONE,
        Basis::rules(Kinds::from_iter([Kind::Format])),
        Basis::rules(Kinds::from_iter([Kind::Format, Kind::Terminal])),
        Basis::rules(Kinds::WITHOUT_TRANSITION),
        Basis::rules(Kinds::ALL),
        Basis::model(Method::Token),
        Basis::program(Kinds::ALL),
    ]
}

/// The verdict of a verifier with this basis; `basis` is what it states of its own accord.
fn judge(trajectory: &Trajectory, looked: Basis, basis: Option<Basis>) -> Verdict {
    let violations = trajectory.machine.violations(looked.evaluated());
    let score = Score::from_tenths(violations.tenths(trajectory.machine.spec()));
    Verdict { score, basis, ..Verdict::default() }
}

/// A line of the algorithm, or one that an adversary would like to see committed.
fn propose(trajectory: &Trajectory, rng: &mut TaskRng) -> String {
    let right = trajectory.machine.reference();
    if let Some(right) = right.filter(|_| rng.chance(2, 3)) {
        return right;
    }
    if let Some(choices) = trajectory.machine.choices()
        && !choices.is_empty()
        && rng.chance(1, 2)
    {
        return choices[rng.index(choices.len())].clone();
    }

    let forms = [
        "done",
        "fail",
        "halt",
        "clash",
        "0 R acc",
        "1 L rej",
        "fire 0",
        "fire 1",
        "decompose",
        "cmp 0 1",
        "cmp 1 2",
        "swap 0 1",
        "pass",
        "place 0 1",
        "back 0",
        "move 0 2",
        "1 0",
        "2 0",
    ];
    rng.one_of(&forms).to_owned()
}

/// Carries out a run in which everything that can happen happens at random.
fn run_with_changes(problem: &Arc<dyn Problem>, plan: &RunPlan, rng: &mut TaskRng) -> Outcome {
    let mut verifier = rng.one_of(&verifiers());
    let mut run = Run::new(Arc::clone(problem), plan.clone());
    run.set_judged_by(verifier);

    let (mut effects, mut waiting) = (Vec::new(), Vec::new());
    run.start(&mut effects);
    loop {
        for effect in effects.drain(..) {
            match effect {
                Effect::Propose(id, trajectory) => waiting.push((id, trajectory)),
                Effect::Voted { .. } => waiting.clear(),
                Effect::Finish(outcome) => return *outcome,
                Effect::Ended(..) | Effect::Chosen { .. } => {}
            }
        }

        // A fork, a resumption, a reload: the run continues elsewhere, under another verifier.
        if rng.chance(1, 12) && run.is_whole() {
            let turns = waiting
                .iter()
                .map(|(id, trajectory): &(TurnId, Box<Trajectory>)| (*id, trajectory.as_ref()));
            let saved = serde_json::to_string(&RunSnapshot::of(&run, turns, 0)).expect("it saves");
            let saved: RunSnapshot = serde_json::from_str(&saved).expect("it reads");
            let restored = saved.restore(problem, plan.clone()).expect("the same task");
            (run, waiting) = (restored.run, restored.waiting);

            verifier = rng.one_of(&verifiers());
            run.set_judged_by(verifier);
        }

        let (id, mut trajectory) = waiting.swap_remove(rng.index(waiting.len()));
        let line = propose(&trajectory, rng);
        let applicable = trajectory.machine.propose(&line).is_ok();

        // An ensemble that lost its members says that it looked at less.
        let loses = rng.chance(1, 20);
        let looked = if loses { Basis::NONE } else { verifier };
        let verdict = judge(&trajectory, looked, loses.then_some(Basis::NONE));

        // A coordinator that tolerates what it likes.
        let decision = match (verdict.score > Score::ZERO, rng.below(8)) {
            (false, _) | (true, 0) => Decision::Proceed,
            (true, 1) => Decision::Retry,
            _ => Decision::Backtrack,
        };
        let outcome = TurnOutcome {
            line: &line,
            applicable,
            verdict: &verdict,
            decision: run.plan().strategy.ruling(decision),
            located: None,
            exhausted: false,
            usage: Usage::default(),
            derivation: "",
            logprobs: &[-1.0],
            speculations: Speculations::default(),
        };
        run.settle(id, trajectory, outcome, 0, &mut effects);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_wrong_answer_is_never_verified(
        seed in any::<u64>(), task in 0..TASKS.len(), strategy in 0..strategies().len(),
        input in 0..6usize
    ) {
        let inputs = small_inputs(tasks::find(TASKS[task]).expect("listed"), 1);
        let problem = &inputs[input % inputs.len()];
        let budget = Budget { steps: 600, ..plan(3, 8).budget };
        let plan = RunPlan { strategy: strategies()[strategy], budget, ..plan(3, 8) };

        let outcome = run_with_changes(problem, &plan, &mut TaskRng::new(seed));

        if outcome.is_verified() {
            let answer = outcome.answer.as_ref().expect("what is verified");
            prop_assert!(problem.accepts(answer), "{answer} of {}", problem.input());
        }
    }
}

/// A fork of an unchecked run keeps the basis of what it copied, and its own steps have their own.
#[test]
fn a_new_verifier_does_not_vouch_for_the_steps_before_it() {
    let problem = &small_inputs(tasks::find("bubble-sort").expect("listed"), 1)[0];
    let right = |trajectory: &Trajectory| trajectory.machine.reference().expect("an open trace");

    for (before, after, expected) in [
        (Basis::NONE, Basis::rules(Kinds::WITHOUT_TRANSITION), Assurance::Unchecked),
        (Basis::rules(Kinds::WITHOUT_TRANSITION), Basis::NONE, Assurance::Unchecked),
        (Basis::program(Kinds::ALL), Basis::reference(), Assurance::Unrefuted),
        (Basis::rules(Kinds::WITHOUT_TRANSITION), Basis::reference(), Assurance::Verified),
    ] {
        let mut run = Run::new(Arc::clone(problem), RunPlan::single(1_000));
        run.set_judged_by(before);
        let (mut effects, mut steps) = (Vec::new(), 0);
        run.start(&mut effects);

        let outcome = loop {
            let Some(effect) = effects.pop() else { panic!("a run has an end") };
            match effect {
                Effect::Finish(outcome) => break outcome,
                Effect::Propose(id, mut trajectory) => {
                    if steps == 3 {
                        run.set_judged_by(after);
                    }
                    steps += 1;

                    let line = right(&trajectory);
                    trajectory.machine.propose(&line).expect("legal");
                    let outcome = TurnOutcome {
                        line: &line,
                        applicable: true,
                        verdict: &Verdict::default(),
                        decision: Decision::Proceed,
                        located: None,
                        exhausted: false,
                        usage: Usage::default(),
                        derivation: "",
                        logprobs: &[],
                        speculations: Speculations::default(),
                    };
                    run.settle(id, trajectory, outcome, 0, &mut effects);
                }
                _ => {}
            }
        };
        assert_eq!(outcome.assurance, Some(expected), "{before:?} then {after:?}");
    }
}
