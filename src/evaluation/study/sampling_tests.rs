//! Systems that draw samples, at the spending of another one.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;

use super::spending::Budget;
use super::*;
use crate::evaluation::systems::{plan, runtime_plan, system};
use prime_agent_set::model::{Completion, CompletionRequest, Model};
use prime_agent_set::{
    AgentError, AsyncExecutor, Executor, Proposal, RulesVerifier, Sampling, ScriptedExecutor,
};
use prime_bench::prompts::Style;
use prime_protocol::{RunPlan, Trajectory, Usage};
use prime_study::definition::{Samples, Select, parse};
use serde_json::json;

/// The reference's lines, each for ten prompt tokens, of which four were cached, and three
/// generated ones.
struct Priced(ScriptedExecutor);

#[async_trait]
impl AsyncExecutor for Priced {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        let proposal = self.0.propose(trajectory, sampling).await?;
        Ok(Proposal { usage: Usage { cached: 4, ..Usage::new(10, 3) }, ..proposal })
    }
}

/// Never proposes anything.
struct Mute;

#[async_trait]
impl AsyncExecutor for Mute {
    async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        std::future::pending().await
    }
}

fn study(matching: &str, systems: &str) -> Study {
    let text = format!(
        "[study]\nname = \"test\"\n[ask]\ntasks = [\"tower-of-hanoi\"]\ndifficulties = [\"easy\"]\n\
         instances = 3\n[budget]\n{matching}\n{systems}"
    );
    parse(&text, "test").unwrap()
}

fn records(study: &Study, systems: impl FnOnce() -> Vec<StudySystem>) -> Vec<Record> {
    actix::System::new().block_on(async {
        let provenance = Provenance { verifier: "rules".to_owned(), ..Provenance::default() };
        let contestant = |system| Some(Contestant { system, provenance: provenance.clone() });
        let contestants: Vec<_> = systems().into_iter().map(contestant).collect();
        let runs: Vec<AskedRun> = study.runs().collect();
        let spendings = Spendings::new(study, &[], &runs);

        let mut records = Vec::new();
        run_study(
            study,
            &contestants,
            &runs,
            &spendings,
            2,
            || true,
            |record| {
                records.push(record);
                Ok::<(), RuntimeEnded>(())
            },
        )
        .await
        .unwrap();
        records
    })
}

#[expect(clippy::unnecessary_box_returns, reason = "systems hold it in a box")]
fn runs(executor: fn() -> Arc<dyn Executor>, fanout: u32, kinds: Kinds) -> Box<RunSystem> {
    let plan = RunPlan { fanout, ..plan() };
    let system = system(executor, move || RulesVerifier::new(kinds), &plan);
    Box::new(RunSystem::start(system, &runtime_plan(), None, Vec::new()))
}

fn priced() -> Arc<dyn Executor> {
    Arc::new(Priced(ScriptedExecutor::new(0.0)))
}

fn mute() -> Arc<dyn Executor> {
    Arc::new(Mute)
}

fn sampled(of: Sampled, select: Select, most: Option<u32>) -> StudySystem {
    StudySystem::Sampling(SamplingSystem { of, samples: Samples { select, most } })
}

const PRIME_AND_VOTES: &str =
    "[[system]]\nname = \"votes\"\nselect = \"majority\"\n[[system]]\nname = \"prime\"\n";

#[test]
fn samples_are_drawn_until_as_much_was_spent() {
    for (prompts, price) in [("computed", 9), ("all", 13), ("none", 3)] {
        let matching = format!("match = \"tokens\"\nmatch_to = \"prime\"\nprompts = \"{prompts}\"");
        let all = records(&study(&matching, PRIME_AND_VOTES), || {
            let passes = Sampled::Run(runs(priced, 1, Kinds::NONE));
            let votes = sampled(passes, Select::Majority, None);
            vec![votes, StudySystem::Run(runs(priced, 3, Kinds::WITHOUT_TRANSITION))]
        });
        assert_eq!(all.len(), 6);

        for votes in all.iter().filter(|record| record.system == "votes") {
            let of = |other: &&Record| other.system == "prime" && other.index == votes.index;
            let prime = all.iter().find(of).unwrap();
            let (budget, steps) = (price * prime.proposals, votes.reference_steps);
            assert!(votes.right && prime.right && prime.proposals > steps, "{prime:?}");

            // A sample is as long as the reference, and each begins while there is something left.
            let samples = prime.proposals.div_ceil(steps);
            assert_eq!(votes.samples.map(u64::from), Some(samples));
            assert_eq!(votes.matched_budget, Some(budget as f64));
            assert_eq!(
                (votes.prompt_tokens, votes.cached_tokens, votes.completion_tokens),
                (10 * samples * steps, Some(4 * samples * steps), 3 * samples * steps)
            );
            // The first sample is right, and so are all others.
            assert_eq!(votes.points().unwrap(), [(price * steps, true)]);
            assert_eq!((votes.votes.map(u64::from), votes.agreement), (Some(samples), Some(1.0)));
            // A trajectory that has ended would win: three of them continue side by side.
            let [(first, true)] = prime.points().unwrap()[..] else { panic!("{prime:?}") };
            assert!(first >= price * steps && first <= budget, "{prime:?}");
        }
    }
}

#[test]
fn a_matched_run_ends_when_as_much_was_spent() {
    for (prompts, price) in [("all", 13), ("none", 3)] {
        let matching = format!("match = \"tokens\"\nprompts = \"{prompts}\"");
        let systems = "[[system]]\nname = \"pass\"\n[[system]]\nname = \"four\"\nmatched = true\n";
        let all = records(&study(&matching, systems), || {
            vec![
                StudySystem::Run(runs(priced, 1, Kinds::NONE)),
                StudySystem::Run(runs(priced, 4, Kinds::WITHOUT_TRANSITION)),
            ]
        });
        assert_eq!(all.len(), 6);

        // Four trajectories at the price of one: none of them ends.
        for four in all.iter().filter(|record| record.system == "four") {
            let budget = price * four.reference_steps;
            assert_eq!(four.matched_budget, Some(budget as f64));
            assert!(four.is_measured() && !four.right, "{four:?}");
            assert_eq!(four.failure.as_deref(), Some("tokens_spent"));
            assert!(four.proposals.abs_diff(four.reference_steps) <= 1, "{four:?}");
        }
    }
}

#[test]
fn nothing_is_equal_to_what_was_not_measured() {
    let matching = "match = \"tokens\"\nmatch_to = \"prime\"";
    let all = records(&study(matching, PRIME_AND_VOTES), || {
        let passes = Sampled::Run(runs(priced, 1, Kinds::NONE));
        let mut hurried = plan();
        hurried.budget.wall_ms = 1;
        let system = system(mute, || RulesVerifier::new(Kinds::NONE), &hurried);
        let prime = RunSystem::start(system, &runtime_plan(), None, Vec::new());
        vec![sampled(passes, Select::Majority, None), StudySystem::Run(Box::new(prime))]
    });
    for record in all {
        assert_eq!(record.status, Status::NotMeasured);
        let reason = record.failure.unwrap();
        let expected = match record.system.as_str() {
            "votes" => "the run whose spending is its budget was not measured",
            _ => "wall_ms_spent before the first completion",
        };
        assert!(reason.starts_with(expected), "{reason}");
    }
}

#[test]
fn what_was_spent_before_is_the_budget_of_a_later_session() {
    let study = study("match = \"tokens\"\nmatch_to = \"prime\"", PRIME_AND_VOTES);
    let runs: Vec<AskedRun> = study.runs().collect();
    let (prime, votes): (Vec<AskedRun>, Vec<AskedRun>) =
        runs.into_iter().partition(|run| study.systems[run.system].name == "prime");

    let record = prime[0].record(&study, &Provenance::default(), String::new());
    let found = Record {
        status: Status::Measured,
        prompt_tokens: 100,
        cached_tokens: Some(60),
        completion_tokens: 7,
        ..record
    };
    let spendings = Spendings::new(&study, &[found], &votes);
    let budget = |run| futures::executor::block_on(spendings.budget(&study, run));
    assert_eq!(budget(&votes[0]), Budget::Of(47.0));
    // Nobody will ever know.
    assert_eq!(budget(&votes[1]), Budget::Unknown);
}

#[test]
fn the_clock_is_no_limit_where_tokens_are_equal() {
    let ending = &Ending::WallMsSpent;
    let tokens = study("match = \"tokens\"\nmatch_to = \"prime\"", PRIME_AND_VOTES);
    assert!(out_of_time(&tokens, ending, false).is_some());
    assert_eq!(out_of_time(&tokens, ending, true), None);
    assert_eq!(out_of_time(&tokens, &Ending::StepsSpent, false), None);
    let seconds = study("match = \"seconds\"\nmatch_to = \"prime\"", PRIME_AND_VOTES);
    assert_eq!(out_of_time(&seconds, ending, false), None);
}

/// Counts its answers, and keeps the prompts.
struct Counting(Mutex<Vec<String>>);

#[async_trait]
impl Model for Counting {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        let mut prompts = self.0.lock().unwrap();
        prompts.push(request.prompt);
        let logprobs = if request.logprobs { vec![-1.0] } else { Vec::new() };
        let text = format!("answer {}", prompts.len());
        Ok(Completion { text, usage: Usage::new(100, 5), logprobs, ..Completion::default() })
    }
}

/// The record and the prompts of one instance.
fn prompted(select: Select, logprobs: bool) -> (Record, Vec<String>) {
    let name = select.name();
    let systems = format!(
        "[[system]]\nname = \"a\"\nprompt = \"baseline\"\npool = \"mine\"\nselect = \"{name}\"\n\
         samples = 3\n"
    );
    let study = study("", &systems);
    let model = Arc::new(Counting(Mutex::default()));
    let asked = Arc::clone(&model);
    let mut all = records(&study, || {
        let answers = OneShotSystem {
            model: asked,
            style: Style::Baseline,
            temperature: 0.0,
            top_p: 1.0,
            logprobs,
            max_tokens: 77,
            wall: Duration::from_mins(1),
            places: Places::new(1),
        };
        vec![sampled(Sampled::OneShot(answers), select, Some(3))]
    });
    let prompts = std::mem::take(&mut *model.0.lock().unwrap());
    (all.swap_remove(0), prompts)
}

#[test]
fn each_refinement_shows_the_answer_before() {
    let (record, prompts) = prompted(Select::Refine, false);
    assert_eq!((record.samples, record.completion_tokens), (Some(3), 15));
    // Two instances are under way at a time.
    let begun: Vec<&String> =
        prompts.iter().filter(|prompt| !prompt.contains("Your answer to this was:")).collect();
    assert_eq!((begun.len(), prompts.len()), (3, 9));
    for prompt in prompts.iter().filter(|prompt| !begun.contains(prompt)) {
        assert!(begun.iter().any(|begun| prompt.starts_with(begun.as_str())), "{prompt}");
        assert!(prompt.contains("Your answer to this was:\nanswer "), "{prompt}");
    }
}

#[test]
fn likelihoods_that_a_model_does_not_give_are_not_made_up() {
    let (record, _) = prompted(Select::Likelihood, true);
    assert_eq!((record.status, record.samples), (Status::Measured, Some(3)));
    let (record, _) = prompted(Select::Likelihood, false);
    assert_eq!(record.status, Status::NotMeasured);
    assert!(record.failure.unwrap().contains("gives no log-probabilities"));
}

#[test]
fn each_rule_chooses_its_sample() {
    let study = study("", "[[system]]\nname = \"a\"\n");
    let run = study.runs().next().unwrap();
    let sample = |answer: Option<i32>, mean_logprob: f64| Answered {
        record: run.record(&study, &Provenance::default(), String::new()),
        text: String::new(),
        answer: answer.map(|answer| json!({ "n": answer })),
        mean_logprob: Some(mean_logprob),
    };
    let samples = [
        sample(None, -0.1),
        sample(Some(1), -0.9),
        sample(Some(2), -0.5),
        sample(Some(2), -0.7),
        sample(Some(1), -0.5),
        sample(Some(3), -2.0),
        sample(None, -0.2),
    ];
    let places = Select::ALL.map(|select| sampling::chosen(select, &samples));
    // 1 and 2 have two votes each, and 1 came first; -0.5 came first as 2.
    assert_eq!(places, [Some(1), Some(1), Some(2), Some(5)]);
    assert_eq!(Select::ALL.map(|select| sampling::chosen(select, &samples[..1])), [None; 4]);
}
