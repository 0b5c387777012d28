//! Studies on the scripted executor and on a model that answers by rote.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;

use super::*;
use crate::evaluation::systems::{plan, runtime_plan, scripted, system};
use prime_agent_set::model::{Completion, CompletionRequest, Model};
use prime_agent_set::{
    AgentError, AsyncExecutor, Executor, Failure, Proposal, RulesVerifier, Sampling,
    ScriptedExecutor,
};
use prime_bench::prompts::Style;
use prime_bench::tasks::Kinds;
use prime_protocol::{Trajectory, Usage};
use prime_study::definition::parse;
use prime_study::records::{Key, StageOutcome, Status};

fn study(systems: &str) -> Study {
    let ask = "tasks = [\"tower-of-hanoi\"]\ndifficulties = [\"easy\"]\ninstances = 4\nrepeats = 2";
    parse(&format!("[study]\nname = \"test\"\n[ask]\n{ask}\n{systems}"), "test").unwrap()
}

fn provenance() -> Provenance {
    Provenance {
        verifier: "rules".to_owned(),
        kinds: Kinds::WITHOUT_TRANSITION.iter().collect(),
        ..Provenance::default()
    }
}

fn records(study: &Study, contestant: impl FnOnce() -> StudySystem) -> Vec<Record> {
    actix::System::new().block_on(async {
        let contestants = [Some(Contestant { system: contestant(), provenance: provenance() })];
        let runs: Vec<AskedRun> = study.runs().collect();
        let mut records = Vec::new();
        let spendings = Spendings::new(study, &[], &runs);
        let ended = run_study(
            study,
            &contestants,
            &runs,
            &spendings,
            3,
            || true,
            |record| {
                records.push(record);
                Ok::<(), RuntimeEnded>(())
            },
        );
        ended.await.unwrap();
        records
    })
}

#[test]
fn every_run_is_recorded_once_and_judged() {
    let study = study("[[system]]\nname = \"prime\"\n");
    let records = records(&study, || {
        let verifier = || RulesVerifier::new(Kinds::WITHOUT_TRANSITION);
        StudySystem::Run(Box::new(RunSystem::start(
            system(scripted(0.0), verifier, &plan()),
            &runtime_plan(),
            None,
            Vec::new(),
        )))
    });

    let keys: BTreeSet<Key> = records.iter().map(Record::key).collect();
    assert_eq!((records.len(), keys.len()), (8, 8));

    for record in &records {
        assert!(record.right && record.accepted, "{record:?}");
        assert_eq!(record.status, Status::Measured);
        // The executor makes no mistakes: the trace is the reference's.
        assert_eq!(record.steps, record.reference_steps);
        assert_eq!(
            [record.format, record.syntax, record.semantic, record.result],
            [StageOutcome::Passed; 4]
        );
        assert_eq!(
            (record.partial_credit, record.efficiency, record.steps_retried),
            (Some(1.0), Some(1.0), Some(0))
        );
        assert_eq!(record.refused.as_deref(), Some("{}"));
        assert!(
            record.first_error_step.is_none()
                && record.severity.is_none()
                && record.failure.is_none()
        );
        assert_eq!(record.checked_kinds, "format,invariant,terminal");
        assert!(
            record.executor_ms.is_some()
                && record.coordination_share.is_some_and(|share| share <= 1.0)
        );
        assert!(record.started_at.ends_with('Z'));
    }
}

#[test]
fn the_constraints_that_refuse_lines_are_counted() {
    let study = study("[[system]]\nname = \"prime\"\n");
    let records = records(&study, || {
        let verifier = || RulesVerifier::new(Kinds::WITHOUT_TRANSITION);
        StudySystem::Run(Box::new(RunSystem::start(
            system(scripted(0.5), verifier, &plan()),
            &runtime_plan(),
            None,
            Vec::new(),
        )))
    });

    assert!(records.iter().any(|record| record.refusals().is_some_and(|it| !it.is_empty())));
    for record in &records {
        let refusals = record.refusals().expect("a record of this version");
        // Every constraint that refused a line did so in a retry or a backtrack.
        let most = refusals.values().max().copied().unwrap_or(0);
        assert!(most <= record.retries + record.backtracks, "{record:?}");
    }
}

#[test]
fn wrong_steps_are_found_where_nobody_checks() {
    let study = study("[[system]]\nname = \"single pass\"\n");
    let records = records(&study, || {
        let verifier = || RulesVerifier::new(Kinds::NONE);
        StudySystem::Run(Box::new(RunSystem::start(
            system(scripted(0.5), verifier, &plan()),
            &runtime_plan(),
            None,
            Vec::new(),
        )))
    });

    let wrong: Vec<&Record> = records.iter().filter(|record| !record.right).collect();
    assert!(!wrong.is_empty(), "half of all steps are wrong");
    for record in wrong {
        assert!(
            !record.accepted && record.first_error_type.is_some() && record.severity.is_some(),
            "{record:?}"
        );
        assert_eq!(record.result, StageOutcome::Failed);
    }
}

/// Answers every prompt with the same text, or fails.
struct Rote(Result<&'static str, &'static str>);

#[async_trait]
impl Model for Rote {
    async fn complete(&self, request: CompletionRequest) -> Result<Completion, AgentError> {
        assert!(request.prompt.contains("Hanoi") && request.max_tokens == 77);
        match self.0 {
            Ok(text) => {
                let usage = Usage::new(100, 5);
                Ok(Completion { text: text.to_owned(), usage, ..Completion::default() })
            }
            Err(reason) => Err(AgentError {
                agent: "pool".to_owned(),
                failure: Failure::Unreachable,
                reason: reason.to_owned(),
                is_transient: false,
                usage: Usage::default(),
            }),
        }
    }
}

fn one_shot(answer: Result<&'static str, &'static str>) -> Vec<Record> {
    let study = study(
        "[[system]]\nname = \"baseline\"\nprompt = \"baseline\"\npool = \"mine\"\n\
         max_tokens = 77\n",
    );
    records(&study, || {
        StudySystem::OneShot(OneShotSystem {
            model: Arc::new(Rote(answer)),
            style: Style::Baseline,
            temperature: 0.0,
            top_p: 1.0,
            logprobs: false,
            max_tokens: 77,
            wall: Duration::from_mins(1),
            places: Places::new(1),
        })
    })
}

#[test]
fn texts_without_an_answer_are_apart_from_wrong_answers() {
    for record in one_shot(Ok("I do not know.")) {
        assert_eq!(
            (record.format, record.result),
            (StageOutcome::Failed, StageOutcome::Failed),
            "{record:?}"
        );
        assert_eq!((record.prompt_tokens, record.completion_tokens, record.proposals), (100, 5, 1));
    }
    for record in one_shot(Ok("{\"moves\": 1}")) {
        assert_eq!((record.format, record.right), (StageOutcome::Passed, false), "{record:?}");
    }
}

#[test]
fn a_lost_server_is_not_measured_and_never_wrong() {
    for record in one_shot(Err("connection refused")) {
        assert_eq!(record.status, Status::NotMeasured);
        assert_eq!(record.failure.as_deref(), Some("connection refused"));
    }
}

/// Never answers.
struct Silent;

#[async_trait]
impl Model for Silent {
    async fn complete(&self, _: CompletionRequest) -> Result<Completion, AgentError> {
        std::future::pending().await
    }
}

#[test]
fn a_prompt_without_a_completion_in_its_time_is_not_measured() {
    let study = study(
        "[[system]]\nname = \"baseline\"\nprompt = \"baseline\"\npool = \"mine\"\n\
         max_tokens = 77\n",
    );
    let records = records(&study, || {
        StudySystem::OneShot(OneShotSystem {
            model: Arc::new(Silent),
            style: Style::Baseline,
            temperature: 0.0,
            top_p: 1.0,
            logprobs: false,
            max_tokens: 77,
            wall: Duration::ZERO,
            places: Places::new(1),
        })
    });

    assert_eq!(records.len(), 8);
    for record in records {
        assert_eq!((record.status, record.right), (Status::NotMeasured, false));
        assert_eq!(record.failure.as_deref(), Some("wall_ms_spent before the first completion"));
    }
}

/// An executor that never proposes anything.
struct Mute;

#[async_trait]
impl AsyncExecutor for Mute {
    async fn propose(&self, _: &Trajectory, _: Sampling) -> Result<Proposal, AgentError> {
        std::future::pending().await
    }
}

#[test]
fn a_run_whose_time_is_up_before_the_first_completion_is_not_measured() {
    let study = study("[[system]]\nname = \"prime\"\n");
    let mut hurried = plan();
    hurried.budget.wall_ms = 1;
    let records = records(&study, || {
        let verifier = || RulesVerifier::new(Kinds::WITHOUT_TRANSITION);
        let mute = || Arc::new(Mute) as Arc<dyn Executor>;
        StudySystem::Run(Box::new(RunSystem::start(
            system(mute, verifier, &hurried),
            &runtime_plan(),
            None,
            Vec::new(),
        )))
    });

    assert_eq!(records.len(), 8);
    for record in records {
        assert_eq!((record.status, record.right), (Status::NotMeasured, false), "{record:?}");
        let reason = record.failure.unwrap();
        assert!(reason.starts_with("wall_ms_spent before the first completion"), "{reason}");
    }
}

/// Proposes the reference's lines, and counts the runs that wait for one at a time.
struct Counting {
    scripted: ScriptedExecutor,
    active: AtomicUsize,
    most: Arc<AtomicUsize>,
}

#[async_trait]
impl AsyncExecutor for Counting {
    async fn propose(
        &self,
        trajectory: &Trajectory,
        sampling: Sampling,
    ) -> Result<Proposal, AgentError> {
        let active = self.active.fetch_add(1, Ordering::Relaxed) + 1;
        self.most.fetch_max(active, Ordering::Relaxed);
        // Long enough for all other runs to ask as well.
        for _ in 0..20 {
            tokio::task::yield_now().await;
        }

        let proposal = self.scripted.propose(trajectory, sampling).await;
        self.active.fetch_sub(1, Ordering::Relaxed);
        proposal
    }
}

#[test]
fn runs_of_a_pool_take_turns_before_their_clocks_start() {
    let study = study("[[system]]\nname = \"prime\"\n");
    let most_with = |places: Vec<Places>| {
        let most = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&most);
        let all = records(&study, move || {
            let counting = Arc::new(Counting {
                scripted: ScriptedExecutor::new(0.0),
                active: AtomicUsize::new(0),
                most: counted,
            });
            let executor = move || Arc::clone(&counting) as Arc<dyn Executor>;
            let verifier = || RulesVerifier::new(Kinds::WITHOUT_TRANSITION);
            let system = system(executor, verifier, &plan());
            StudySystem::Run(Box::new(RunSystem::start(system, &runtime_plan(), None, places)))
        });
        assert!(all.len() == 8 && all.iter().all(|record| record.right));
        most.load(Ordering::Relaxed)
    };

    // Three runs at a time, of one trajectory each.
    assert_eq!(most_with(Vec::new()), 3);
    assert_eq!(most_with(vec![Places::new(2)]), 2);
    assert_eq!(most_with(vec![Places::new(1)]), 1);
}

#[test]
fn outputs_made_elsewhere_are_judged() {
    let study = study("[[system]]\nname = \"other\"\nanswers = \"o\"\n");
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("outputs.jsonl");
    let line = |index: u32, answer: &str| {
        format!("{{\"id\":\"tower-of-hanoi/easy/{index:03}\",\"output\":\"{answer}\"}}\n")
    };

    std::fs::write(&path, line(0, "none") + &line(0, "none") + &line(3, "none")).unwrap();

    let records = records_of_answers(&path, &study, 0, &provenance()).unwrap();
    let keys: Vec<_> =
        records.iter().map(|record| (record.index, record.repeat, record.right)).collect();
    assert_eq!(keys, [(0, 0, false), (0, 1, false), (3, 0, false)]);

    for (text, expected) in [
        (line(4, "none"), "line 1: tower-of-hanoi/easy/004 was not asked"),
        (line(0, "a").repeat(3), "line 3: tower-of-hanoi/easy/000 was not asked (or more often"),
        ("{}\n".to_owned(), "line 1: field `id` is missing"),
    ] {
        std::fs::write(&path, text).unwrap();
        let error = records_of_answers(&path, &study, 0, &provenance()).unwrap_err().to_string();
        assert!(error.contains(expected) && error.contains("outputs.jsonl"), "{error}");
    }
}
