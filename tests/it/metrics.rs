//! The metrics of real runs agree with their outcomes.

use std::sync::Arc;

use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId};
use prime_protocol::Outcome;
use prime_runtime::{Silent, Watched};
use prime_service::app::{App, run_sampling};
use prime_service::metrics::Metrics;
use prime_settings::Settings;

/// The value of the sample with this name and these labels, as they stand in the text.
fn value(text: &str, sample: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("{sample} is missing in {text}")).parse().unwrap()
}

/// The sum of all samples of this name.
fn sum(text: &str, name: &str) -> f64 {
    let samples = text
        .lines()
        .filter(|line| line.strip_prefix(name).is_some_and(|rest| rest.starts_with('{')));
    samples.map(|line| line.rsplit_once(' ').unwrap().1.parse::<f64>().unwrap()).sum()
}

/// Executes a run of each task with these settings; returns the outcomes and the metrics.
fn counted(sets: &[&str], slugs: &[&str]) -> (Vec<Outcome>, String) {
    let sets: Vec<String> = sets.iter().map(|set| (*set).to_owned()).collect();
    let settings = Settings::load(&[], std::iter::empty(), &sets).unwrap();
    let metrics = Metrics::new(jiff::Timestamp::UNIX_EPOCH);

    let outcomes = actix::System::new().block_on(async {
        let sampling = run_sampling(&settings);
        let app = App::start(settings).unwrap();
        let mut outcomes = Vec::new();
        for slug in slugs {
            let id = InstanceId::new(tasks::find(slug).unwrap(), Difficulty::Easy, 0, BASE_SEED)
                .unwrap();
            let problem = id.problem();
            let observer = Arc::new(Watched::new(metrics.run(problem.spec()), Arc::new(Silent)));
            let plan = app.plan(problem.as_ref());
            let mut run = app.submit(problem, plan, sampling, observer);
            outcomes.push(run.outcome().await.unwrap());
        }
        outcomes
    });

    (outcomes, metrics.render())
}

#[test]
fn steps_votes_and_ends_are_counted() {
    let scripted = [
        "agents.executor.implementation=scripted",
        "agents.executor.error_rate=0.3",
        "runtime.cells=1",
    ];
    let (outcomes, text) = counted(&scripted, &["n-queens", "bubble-sort", "long-division"]);

    let all = |count: fn(&Outcome) -> u64| outcomes.iter().map(count).sum::<u64>() as f64;
    assert_eq!(sum(&text, "prime_steps_total"), all(|outcome| outcome.proposals));
    assert_eq!(sum(&text, "prime_votes_total"), all(|outcome| u64::from(outcome.rounds)));
    assert_eq!(sum(&text, "prime_runs_total"), outcomes.len() as f64);

    let verified = all(|outcome| u64::from(outcome.is_verified()));
    assert_eq!(value(&text, "prime_runs_total{status=\"verified\"}"), verified);
    assert_eq!(value(&text, "prime_votes_total{agreed=\"true\"}"), verified, "each was agreed on");
    assert!(
        all(|outcome| outcome.retries) + all(|outcome| outcome.backtracks) > 0.0,
        "there were errors to find"
    );

    assert!(sum(&text, "prime_violations_total") > 0.0);
    assert_eq!(
        value(&text, "prime_violations_total{constraint=\"other\"}"),
        0.0,
        "every constraint has a name"
    );

    assert_eq!(value(&text, "prime_run_duration_seconds_count"), outcomes.len() as f64);
    assert_eq!([value(&text, "prime_runs_open"), value(&text, "prime_runs_queued")], [0.0, 0.0]);
}

#[test]
fn votes_on_steps_are_counted() {
    let ahead = [
        "agents.executor.implementation=scripted",
        "agents.executor.error_rate=0.3",
        "run.strategy=ahead",
    ];
    let (outcomes, text) =
        counted(&[&ahead[..], &["run.ahead.k=2", "runtime.cells=1"]].concat(), &["bubble-sort"]);

    let votes = outcomes[0].step_votes.expect("steps were voted on");
    assert!(votes.discarded > 0 && votes.samples > votes.steps, "{votes:?}");
    // The votes are those of the answer's round, which was the only one.
    assert_eq!(outcomes[0].rounds, 1);

    let names = ["prime_step_votes_total", "prime_step_samples_total", "prime_red_flags_total"];
    let expected = [votes.steps, votes.samples, votes.discarded].map(|count| count as f64);
    assert_eq!(names.map(|name| value(&text, name)), expected);
}

#[test]
fn disputed_steps_and_failures_are_counted() {
    let disputed = [
        "agents.executor.implementation=scripted",
        "agents.executor.error_rate=0.3",
        "agents.verifier.implementation=ensemble",
        "agents.verifier.ensemble.members=[\"rules\", \"none\"]",
        "agents.verifier.ensemble.delta=0.0",
        "runtime.cells=1",
    ];
    let (_, text) = counted(&disputed, &["bubble-sort"]);

    assert!(value(&text, "prime_reviews_needed_total") > 0.0);
    assert_eq!(sum(&text, "prime_agent_failures_total"), 0.0);
    assert_eq!(
        value(&text, "prime_agent_failures_total{role=\"verifier\",failure=\"timeout\"}"),
        0.0
    );
}

#[test]
fn a_run_ended_by_a_limit_is_not_verified() {
    let (outcomes, text) = counted(
        &["agents.executor.implementation=reference", "run.budget.steps=3", "runtime.cells=1"],
        &["bubble-sort"],
    );
    assert!(!outcomes[0].is_verified());
    assert_eq!(value(&text, "prime_runs_total{status=\"unverified\"}"), 1.0);
    assert_eq!(value(&text, "prime_runs_total{status=\"verified\"}"), 0.0);
    assert_eq!(sum(&text, "prime_votes_total"), 0.0);
    assert_eq!(sum(&text, "prime_steps_total"), 3.0);
}
