//! An executor errs once, at a random step, in a way that only the end shows.

use std::sync::Arc;
use std::sync::Mutex;

use async_trait::async_trait;
use futures::executor::block_on;
use proptest::prelude::*;

use super::LocatingCoordinator;
use crate::{
    AgentError, AsyncVerifier, Basis, Coordinator, Failure, RulesVerifier, ThresholdCoordinator,
    Verifier,
};
use prime_bench::judge::soundness::small_inputs;
use prime_bench::tasks::{self, CheckedKinds, Kind, Kinds, Problem, Spec, TaskRng};
use prime_protocol::{
    Basis as StepBasis, Budget, Decision, Effect, Limits, Located, Outcome, Replay, Replayed, Run,
    RunInput, RunPlan, RunSnapshot, Score, Thresholds, Trajectory, TurnId, TurnOutcome, Usage,
    Verdict,
};

/// Sorts whose lines, with the end alone checked, may leave out an exchange.
const TASKS: [&str; 4] = ["bubble-sort", "gnome-sort", "selection-sort", "insertion-sort"];

const THRESHOLDS: Thresholds =
    Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(3), retries_max: 2 };

fn end_alone() -> Kinds {
    Kinds::from_iter([Kind::Format, Kind::Terminal])
}

/// Judges by rules of all kinds, at a cost of ten prompt tokens and one completion token a step.
/// Keeps the depth of each step that it judged.
struct Strict {
    rules: RulesVerifier,
    judged: Mutex<Vec<usize>>,
}

impl Strict {
    fn new() -> Arc<Self> {
        let rules = RulesVerifier::new(CheckedKinds::These(Kinds::ALL));
        Arc::new(Self { rules, judged: Mutex::default() })
    }

    fn judged(&self) -> Vec<usize> {
        self.judged.lock().unwrap().clone()
    }
}

#[async_trait]
impl AsyncVerifier for Strict {
    fn basis(&self, task: &Spec) -> Basis {
        self.rules.basis(task)
    }

    async fn judge(&self, trajectory: &Trajectory, line: &str) -> Result<Verdict, AgentError> {
        self.judged.lock().unwrap().push(trajectory.stack.depth());
        let verdict = self.rules.judge(trajectory, line).await?;
        Ok(Verdict { usage: Usage::new(10, 1), ..verdict })
    }
}

struct Broken;

#[async_trait]
impl AsyncVerifier for Broken {
    fn basis(&self, _: &Spec) -> Basis {
        Basis::NONE
    }

    async fn judge(&self, _: &Trajectory, _: &str) -> Result<Verdict, AgentError> {
        Err(AgentError::new("verifier", Failure::Timeout, "no answer"))
    }
}

fn locating(locator: Arc<dyn Verifier>) -> LocatingCoordinator {
    LocatingCoordinator::new(Arc::new(ThresholdCoordinator(THRESHOLDS)), "strict", locator)
}

fn plan() -> RunPlan {
    let limits = Limits { pops_max: 64, attempts_max: 8, ..Limits::DEFAULT };
    RunPlan {
        limits,
        locates: true,
        basis: StepBasis::rules(end_alone()),
        ..RunPlan::single(4_096)
    }
}

/// A decided turn, as a journal has it.
struct Recorded {
    id: TurnId,
    line: String,
    applicable: bool,
    verdict: Verdict,
    decision: Decision,
    located: Option<Located>,
    usage: Usage,
    /// The depth of its state.
    depth: usize,
}

impl Recorded {
    fn outcome(&self) -> TurnOutcome<'_> {
        TurnOutcome {
            line: &self.line,
            applicable: self.applicable,
            verdict: &self.verdict,
            decision: self.decision,
            located: self.located.as_ref(),
            exhausted: false,
            usage: self.usage,
            derivation: "",
            logprobs: &[],
            speculations: prime_protocol::Speculations::default(),
        }
    }
}

/// Carries out a run of one trajectory whose verifier looks at these kinds.
fn carry_out(
    problem: &Arc<dyn Problem>,
    plan: RunPlan,
    kinds: Kinds,
    coordinator: &dyn Coordinator,
    mut propose: impl FnMut(&Trajectory) -> String,
) -> (Outcome, Vec<Recorded>) {
    let mut run = Run::new(Arc::clone(problem), plan);
    let (mut effects, mut records) = (Vec::new(), Vec::new());
    run.start(&mut effects);

    loop {
        let mut waiting = None;
        for effect in effects.drain(..) {
            match effect {
                Effect::Propose(id, trajectory) => waiting = Some((id, trajectory)),
                Effect::Finish(outcome) => return (*outcome, records),
                Effect::Ended(..) | Effect::Chosen { .. } | Effect::Voted { .. } => {}
            }
        }

        let (id, mut trajectory) = waiting.expect("a run that is not over proposes");
        trajectory.locator_budget = run.locator_budget();
        let line = propose(&trajectory);
        let applicable = trajectory.machine.propose(&line).is_ok();
        let violations = trajectory.machine.violations(kinds);
        let score = Score::from_tenths(violations.tenths(trajectory.machine.spec()));
        let verdict = Verdict { score, ..Verdict::default() };
        let ruling = block_on(coordinator.decide(&trajectory, &line, &verdict)).expect("decided");

        let record = Recorded {
            id,
            line,
            applicable,
            verdict,
            decision: ruling.decision,
            located: ruling.located.map(|located| *located),
            usage: ruling.usage,
            depth: trajectory.stack.depth(),
        };
        run.settle(id, trajectory, record.outcome(), 0, &mut effects);
        records.push(record);
    }
}

/// A sort's steps, one of which is wrong: at the first visit of this depth, a line that can be
/// applied and does not end the trace. The line is kept.
fn errs_once(faulty: usize, rng: &mut TaskRng) -> impl FnMut(&Trajectory) -> String + '_ {
    let mut has_erred = false;
    move |trajectory| {
        let right = trajectory.machine.reference().unwrap_or_else(|| "done".to_owned());
        if has_erred || trajectory.stack.depth() != faulty {
            return right;
        }
        has_erred = true;

        let wrong = ["swap 0 1", "swap 1 2", "cmp 0 1", "cmp 1 2", "pass"];
        let applies = |line: &&&str| {
            let mut machine = trajectory.machine.fork();
            **line != right && machine.propose(line).is_ok() && !machine.candidate_ends()
        };
        let fitting: Vec<&&str> = wrong.iter().filter(applies).collect();
        if fitting.is_empty() { right } else { (*fitting[rng.index(fitting.len())]).to_owned() }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn the_search_goes_back_exactly_to_the_fault(
        seed in any::<u64>(), task in 0..TASKS.len(), input in 0..8usize, at in 0.0f64..1.0
    ) {
        let inputs = small_inputs(tasks::find(TASKS[task]).expect("listed"), 1);
        let problem = &inputs[input % inputs.len()];
        let steps = problem.reference().steps;
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss,
            clippy::cast_precision_loss, reason = "a step of a short trace")]
        let faulty = (at * steps as f64) as usize;

        let (mut rng, locator) = (TaskRng::new(seed), Strict::new());
        let (outcome, records) = carry_out(
            problem, plan(), end_alone(), &locating(locator.clone()), errs_once(faulty, &mut rng),
        );

        prop_assert_eq!(
            &outcome.answer.expect("it goes back to before the fault")["sorted"],
            &problem.reference().answer["sorted"]
        );

        // Where the wrong line led to no refuted end, there is nothing to locate.
        let asked = records.iter().position(|record| record.located.is_some());
        if let Some(asked) = asked {
            let located = records[asked].located.as_ref().expect("found above");
            let erred = &records[faulty];
            let fault = located.fault.as_ref().expect("the locator sees every kind");
            prop_assert_eq!((located.clean, &fault.action), (faulty, &erred.line));
            prop_assert_eq!(located.judged, faulty as u64 + 1);
            prop_assert_eq!(records[asked + 1].depth, faulty, "the next proposal is at its state");
            prop_assert_eq!(records[asked].usage, Usage::new(10 * located.judged, located.judged));
            prop_assert_eq!(outcome.usage, records[asked].usage, "it counts towards the budget");
            // Every step was right from there on.
            prop_assert_eq!(locator.judged(), (0..=faulty).collect::<Vec<_>>());
        }
        // The growing distances would have taken more, and are the worst case of all.
        prop_assert!(outcome.proposals <= 2 * steps + 16, "{} of {steps}", outcome.proposals);
    }

    /// A record, cut anywhere and continued from a snapshot or from its first event, says the same.
    #[test]
    fn a_replay_is_the_same_run(
        seed in any::<u64>(), task in 0..TASKS.len(), at in 0.0f64..1.0, cut in 0.0f64..1.0
    ) {
        let inputs = small_inputs(tasks::find(TASKS[task]).expect("listed"), 1);
        let problem = &inputs[inputs.len() - 1];
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss,
            clippy::cast_precision_loss, reason = "a part of a short trace")]
        let part = |share: f64, of: u64| (share * of as f64) as usize;
        let faulty = part(at, problem.reference().steps);

        let mut rng = TaskRng::new(seed);
        let (outcome, records) = carry_out(
            problem, plan(), end_alone(), &locating(Strict::new()), errs_once(faulty, &mut rng),
        );

        let mut replay = Replay::new(Arc::clone(problem), plan());
        let (before, after) = records.split_at(part(cut, records.len() as u64));
        let apply = |replay: &mut Replay, record: &Recorded| {
            let depth = replay.trajectory(record.id).expect("in flight").stack.depth();
            assert_eq!(depth, record.depth);
            replay.apply(RunInput::Decided { id: record.id, outcome: record.outcome() }, 0)
        };
        replay.apply(RunInput::JudgedBy(plan().basis), 0).unwrap();
        before.iter().for_each(|record| apply(&mut replay, record).unwrap());

        let Replayed::Open(suspended) = replay.finish() else { panic!("it is not over") };
        let waiting = suspended.waiting.iter().map(|(id, trajectory)| (*id, trajectory.as_ref()));
        let snapshot = RunSnapshot::of(&suspended.run, waiting, 0);
        let text = serde_json::to_string(&snapshot).unwrap();
        let read: RunSnapshot = serde_json::from_str(&text).unwrap();

        let mut replay = Replay::from_suspended(read.restore(problem, plan()).unwrap());
        after.iter().for_each(|record| apply(&mut replay, record).unwrap());
        let Replayed::Over(replayed) = replay.finish() else { panic!("the run was over") };
        prop_assert_eq!((replayed.answer, replayed.proposals, replayed.usage),
            (outcome.answer, outcome.proposals, outcome.usage));
    }
}

/// A bubble sort of three numbers whose exchange at the first step is left out.
fn skips_an_exchange() -> (Arc<dyn Problem>, impl FnMut(&Trajectory) -> String) {
    let task = tasks::find("bubble-sort").expect("listed");
    let problem = task.read_input(&serde_json::json!({ "a": [3, 1, 2] })).expect("a valid input");
    // `cmp 0 1` asks for `swap 0 1`, which is left out the first time.
    let mut has_erred = false;
    let propose = move |trajectory: &Trajectory| {
        if !has_erred && trajectory.stack.depth() == 1 {
            has_erred = true;
            return "cmp 1 2".to_owned();
        }
        trajectory.machine.reference().unwrap_or_else(|| "done".to_owned())
    };
    (problem, propose)
}

#[test]
fn the_fault_is_ruled_out_with_its_reason() {
    let (problem, mut propose) = skips_an_exchange();
    let locator = Strict::new();
    let mut at_fault = Vec::new();
    let (outcome, records) =
        carry_out(&problem, plan(), end_alone(), &locating(locator), |trajectory| {
            let top = trajectory.stack.top();
            if trajectory.stack.depth() == 1 {
                at_fault.push((top.excludes("cmp 1 2"), trajectory.feedback.clone()));
            }
            propose(trajectory)
        });

    assert!(outcome.answer.is_some());
    let located: Vec<_> = records.iter().filter_map(|record| record.located.as_ref()).collect();
    let [Located { judged: 2, clean: 1, fault: Some(fault) }] = located[..] else {
        panic!("{located:?}")
    };
    assert_eq!(fault.action, "cmp 1 2");
    assert_eq!(
        located[0].to_string(),
        format!(
            "the locator judged 2 steps and found the fault at depth 1: `cmp 1 2` ({})",
            fault.reason.as_deref().expect("the rules give one")
        )
    );

    let [(false, None), (true, Some(feedback))] = &at_fault[..] else { panic!("{at_fault:?}") };
    assert!(feedback.starts_with("`cmp 1 2` was wrong: "), "{feedback}");
}

#[test]
fn a_locator_that_finds_nothing_is_asked_once_and_leaves_the_growing_distances() {
    let with = |locator: Option<Arc<dyn Verifier>>| {
        let (problem, propose) = skips_an_exchange();
        let threshold = ThresholdCoordinator(THRESHOLDS);
        match locator {
            Some(locator) => carry_out(&problem, plan(), end_alone(), &locating(locator), propose),
            None => carry_out(&problem, plan(), end_alone(), &threshold, propose),
        }
    };
    // The same kinds as the verifier has: it cannot find more.
    let weak = RulesVerifier::new(CheckedKinds::These(end_alone()));
    let (expected, without) = with(None);
    let (outcome, records) = with(Some(Arc::new(weak)));

    assert_eq!((&outcome.answer, outcome.proposals), (&expected.answer, expected.proposals));
    let lines = |records: &[Recorded]| -> Vec<(usize, String)> {
        records.iter().map(|record| (record.depth, record.line.clone())).collect()
    };
    assert_eq!(lines(&records), lines(&without));

    let located: Vec<_> = records.iter().filter_map(|record| record.located.clone()).collect();
    assert!(located.iter().all(|located| located.fault.is_none()), "{located:?}");
    // Only steps that are new since the last time are judged.
    let first = &located[0];
    assert_eq!(usize::try_from(first.judged), Ok(first.clean));
    let shown = "found no fault";
    assert!(first.to_string().ends_with(shown), "{first}");
}

#[test]
fn it_stops_where_the_budget_is_spent() {
    // A verdict costs 11 tokens, and the second one finds the fault: with 11 tokens left it is not
    // asked for.
    for (tokens, completion_tokens, judged, is_found) in
        [(0, 0, 2, true), (22, 0, 2, true), (12, 0, 2, true), (11, 0, 1, false), (0, 1, 1, false)]
    {
        let (problem, propose) = skips_an_exchange();
        let budget = Budget { tokens, completion_tokens, ..plan().budget };
        let plan = RunPlan { budget, ..plan() };
        let (outcome, records) =
            carry_out(&problem, plan, end_alone(), &locating(Strict::new()), propose);

        let located = records.iter().find_map(|record| record.located.as_ref()).expect("asked");
        assert_eq!((located.judged, located.fault.is_some()), (judged, is_found), "{budget:?}");
        assert_eq!(outcome.answer.is_some(), tokens == 0 && completion_tokens == 0, "{budget:?}");
    }
}

#[test]
fn a_failure_names_the_locator() {
    let (problem, propose) = skips_an_exchange();
    let mut at_end = None;
    let mut propose = propose;
    let threshold = ThresholdCoordinator(THRESHOLDS);
    carry_out(&problem, plan(), end_alone(), &threshold, |trajectory| {
        let line = propose(trajectory);
        if line == "done" {
            at_end.get_or_insert_with(|| trajectory.fork());
        }
        line
    });

    let mut trajectory = at_end.expect("the trace comes to its end");
    trajectory.machine.propose("done").expect("applicable");
    let verdict = Verdict { score: Score::from_tenths(10), ..Verdict::default() };
    let error = block_on(locating(Arc::new(Broken)).decide(&trajectory, "done", &verdict));
    let error = error.expect_err("it has no answer");
    assert_eq!(error.failure, Failure::Timeout);
    assert!(error.to_string().contains("locator `strict`"), "{error}");
}

#[test]
fn a_run_that_never_goes_back_asks_no_locator() {
    let (problem, mut propose) = skips_an_exchange();
    let locator = Strict::new();
    let plan = RunPlan { strategy: prime_protocol::Strategy::Greedy, ..plan() };
    carry_out(&problem, plan, end_alone(), &locating(locator.clone()), |trajectory| {
        propose(trajectory)
    });
    assert_eq!(locator.judged(), [0; 0]);
}
