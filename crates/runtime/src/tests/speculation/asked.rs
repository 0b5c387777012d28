//! Early proposals for tasks whose steps are asked of a program: they start when the program has
//! answered, and ask it nothing.

use std::collections::HashSet;

use serde_json::Value;

use super::*;
use prime_bench::tasks::{
    BadInput, Foresight, Machine, PathDraw, Refusal, Snapshot, Unanswered, Violations,
};

/// A program that computes a built-in task, slowly.
struct Asked {
    inner: Arc<dyn Problem>,
    /// What the answer to a line takes, in milliseconds of virtual time.
    millis: u64,
    /// Every so many questions the program fails; 0: never.
    fails_every: u64,
    questions: AtomicU64,
    /// The lines that were answered, with their states.
    answered: Mutex<HashSet<(String, String)>>,
}

impl Asked {
    fn problem(slug: &str, millis: u64, fails_every: u64) -> (Arc<Self>, Arc<dyn Problem>) {
        let asked = Arc::new(Self {
            inner: problem(slug),
            millis,
            fails_every,
            questions: AtomicU64::new(0),
            answered: Mutex::default(),
        });
        (Arc::clone(&asked), Arc::new(Shared(asked)))
    }

    fn questions(&self) -> u64 {
        self.questions.load(Ordering::SeqCst)
    }
}

/// The problem: its machines need it.
struct Shared(Arc<Asked>);

impl Problem for Shared {
    fn spec(&self) -> &'static Spec {
        self.0.inner.spec()
    }

    fn input(&self) -> Value {
        self.0.inner.input()
    }

    fn start(&self) -> Box<dyn Machine> {
        Box::new(Walk { asked: Arc::clone(&self.0), inner: self.0.inner.start() })
    }

    fn machine_at(&self, state: &Value) -> Result<Box<dyn Machine>, BadInput> {
        self.0.inner.machine_at(state)
    }

    fn steps_max(&self) -> u64 {
        self.0.inner.steps_max()
    }

    fn is_asked(&self) -> bool {
        true
    }

    fn on_path(&self, _: PathDraw, _: &mut TaskRng) -> Option<Box<dyn Machine>> {
        None
    }

    fn goal(&self, answer: &Value) -> Option<bool> {
        self.0.inner.goal(answer)
    }
}

struct Walk {
    asked: Arc<Asked>,
    inner: Box<dyn Machine>,
}

impl Walk {
    fn question(&self, line: &str) -> (String, String) {
        (self.inner.state().to_string(), line.to_owned())
    }

    fn is_answered(&self, line: &str) -> bool {
        let answered = self.asked.answered.lock().unwrap_or_else(PoisonError::into_inner);
        answered.contains(&self.question(line))
    }
}

impl Machine for Walk {
    fn spec(&self) -> &'static Spec {
        self.inner.spec()
    }

    fn problem(&self) -> Arc<dyn Problem> {
        Arc::new(Shared(Arc::clone(&self.asked)))
    }

    fn propose(&mut self, line: &str) -> Result<(), Refusal> {
        if self.is_answered(line) { self.inner.propose(line) } else { Err(Refusal::Unanswered) }
    }

    fn foresee<'m>(&'m mut self, line: &'m str) -> Option<Foresight<'m>> {
        Some(Box::pin(async move {
            if self.is_answered(line) {
                return Ok(());
            }
            let number = self.asked.questions.fetch_add(1, Ordering::SeqCst) + 1;
            tokio::time::sleep(Duration::from_millis(self.asked.millis)).await;
            if self.asked.fails_every > 0 && number.is_multiple_of(self.asked.fails_every) {
                let error = AgentError::new("task", Failure::Overloaded, "it is busy");
                return Err(Unanswered { error: Box::new(error), is_contradiction: false });
            }
            let question = self.question(line);
            self.asked.answered.lock().unwrap_or_else(PoisonError::into_inner).insert(question);
            Ok(())
        }))
    }

    fn violations(&self, kinds: Kinds) -> Violations {
        self.inner.violations(kinds)
    }

    fn candidate_ends(&self) -> bool {
        self.inner.candidate_ends()
    }

    fn commit(&mut self) {
        self.inner.commit();
    }

    fn replay(&mut self, line: &str) -> Result<(), Refusal> {
        if self.is_answered(line) { self.inner.replay(line) } else { Err(Refusal::Unanswered) }
    }

    fn follow_reference(&mut self) -> bool {
        self.inner.follow_reference()
    }

    fn reference(&self) -> Option<String> {
        self.inner.reference()
    }

    fn ended(&self) -> bool {
        self.inner.ended()
    }

    fn answer(&self) -> Option<Value> {
        self.inner.answer()
    }

    fn choices(&self) -> Option<Vec<String>> {
        self.inner.choices()
    }

    fn state(&self) -> Value {
        self.inner.state()
    }

    fn parts(&self) -> Option<(&dyn std::any::Any, &dyn std::any::Any)> {
        self.inner.parts()
    }

    fn snapshot(&self) -> Snapshot {
        self.inner.snapshot()
    }

    fn restore(&mut self, snapshot: &Snapshot) {
        self.inner.restore(snapshot);
    }

    fn fork(&self) -> Box<dyn Machine> {
        Box::new(Self { asked: Arc::clone(&self.asked), inner: self.inner.fork() })
    }
}

#[test]
fn the_steps_are_the_same_and_the_program_is_asked_no_more() {
    const LIMITS: Limits = Limits { attempts_max: 4, pops_max: 40, ..ENDLESS };
    let moody = Moody { millis: (0, 12), tolerable: 15, intolerable: 10 };

    let mut all = Speculations::default();
    for (slug, seed) in ["bubble-sort", "n-queens", "merge-sort"]
        .into_iter()
        .flat_map(|slug| (0..4).map(move |seed| (slug, seed)))
    {
        let [without, with] = [false, true].map(|speculate| {
            let (asked, problem) = Asked::problem(slug, 3, 0);
            let budget = Budget { steps: 150, ..plan(1).budget };
            let plan = RunPlan { speculate, limits: LIMITS, budget, max_rounds: 2, ..plan(1) };
            let (executor, _) = erring(0.1, (0, 12));
            let (traced, outcome) =
                traced(stopped(executor, move || moody).0, &problem, plan, seed);
            (traced, outcome, asked.questions())
        });

        assert_eq!(with.0.order, without.0.order, "{slug} {seed}");
        assert_eq!((&with.0.ends, &with.0.votes), (&without.0.ends, &without.0.votes));
        assert_eq!(with.1.answer, without.1.answer);
        assert_eq!(with.2, without.2, "the program hears nothing of early proposals");
        assert_eq!((with.0.mishaps, without.1.speculations), (0, Speculations::default()));
        assert_eq!(with.1.speculations, with.0.speculations, "the sum over the steps");
        all.add(with.1.speculations);
    }
    assert!(all.used > 200 && all.wasted > 40, "{all:?}");
}

#[test]
fn a_proposal_starts_when_the_program_has_answered_and_before_the_verdict() {
    let (_, problem) = Asked::problem("bubble-sort", 3, 0);
    let (executor, probe) = erring(0.0, (4, 4));
    let agents = stopped(executor, || Moody { millis: (10, 10), tolerable: 0, intolerable: 0 }).0;
    let (traced, outcome) = traced(agents, &problem, RunPlan { speculate: true, ..plan(1) }, 5);

    let proposals = outcome.proposals;
    assert!(outcome.is_verified() && proposals > 10, "{outcome:?}");
    assert_eq!(outcome.speculations, Speculations { used: proposals - 1, wasted: 0 });
    assert_eq!(probe.started_and_cancelled(), (proposals, 0));
    // Each step waits for its question and its verdict, and only the first for its proposal. The
    // clock rounds each wait up by a millisecond.
    assert_eq!(traced.elapsed_ms, 5 + proposals * (4 + 11));
}

#[test]
fn a_program_that_fails_is_asked_again_and_starts_no_proposal() {
    let [without, with] = [false, true].map(|speculate| {
        let (_, problem) = Asked::problem("bubble-sort", 3, 4);
        let (executor, probe) = erring(0.2, (4, 4));
        let agents =
            stopped(executor, || Moody { millis: (10, 10), tolerable: 0, intolerable: 20 }).0;
        let plan = RunPlan { speculate, max_rounds: 1, ..plan(1) };
        let (traced, outcome) = traced(agents, &problem, plan, 5);
        (traced, outcome, probe.started_and_cancelled().0)
    });

    assert!(with.0.mishaps > 3, "{}", with.0.mishaps);
    assert_eq!((&with.0.order, with.0.mishaps), (&without.0.order, without.0.mishaps));
    let Speculations { used, wasted } = with.1.speculations;
    assert!(used > 5 && wasted > 1, "{used} {wasted}");
    assert_eq!(with.2, with.1.proposals + wasted, "one early proposal for each step at most");
}
