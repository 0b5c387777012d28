//! Tests of the text: its form, its names, and that what is fed reaches its metric.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use super::exposition::{Family, read};
use super::{CONTENT_TYPE, GpuReading, GpuSource, Metrics};
use prime_agent_set::{AgentError, Failure, Proposal};
use prime_bench::tasks;
use prime_engine::{EngineCounts, EngineStatus};
use prime_journal::{BlockedRun, ClusterStatus, NodeStatus, OutboxCount};
use prime_protocol::{Cost, Decision, Role, RoleTimes, Speculations, TurnId, Usage, Verdict};
use prime_runtime::{Event, Hangs, Observer as _};

/// Two GPUs, of which the second reports only its memory.
#[derive(Debug)]
struct TwoGpus;

impl GpuSource for TwoGpus {
    fn read(&self) -> Vec<GpuReading> {
        let second = GpuReading {
            index: 1,
            uuid: "GPU-2".to_owned(),
            memory_used_bytes: Some(5),
            memory_total_bytes: Some(6),
            ..GpuReading::default()
        };
        let first = GpuReading {
            index: 0,
            uuid: "GPU-1".to_owned(),
            memory_used_bytes: Some(1 << 34),
            utilisation: Some(0.25),
            celsius: Some(41),
            watts: Some(699.5),
            ..second.clone()
        };
        vec![first, second]
    }
}

/// An engine with a name that has to be escaped.
fn engine_status() -> EngineStatus {
    let counts = EngineCounts {
        decodes: 3,
        prompt_tokens: 400,
        shared_tokens: 300,
        cancelled: 1,
        live: 5,
        decode_p99_us: 2500,
        ..EngineCounts::default()
    };

    let name = "a \"b\"\\c\nd".to_owned();
    EngineStatus { name, ready: true, restarts: 2, in_flight: 7, counts, ..EngineStatus::default() }
}

/// Two nodes of one name, the second late and of a version that does not say when it sent its last
/// heartbeat.
fn two_nodes() -> ClusterStatus {
    let first = NodeStatus {
        id: 7,
        name: "box:1".to_owned(),
        version: "0.2.0".to_owned(),
        is_this: true,
        capacity: 64,
        held: 3,
        age_ms: 60_000,
        lease_left_ms: 9_250,
        lag_ms: Some(750),
        agents: Vec::new(),
    };
    let second = NodeStatus {
        id: 9,
        is_this: false,
        held: 1,
        lease_left_ms: -1_500,
        lag_ms: None,
        ..first.clone()
    };

    ClusterStatus {
        nodes: vec![first, second],
        open_runs: 6,
        waiting_runs: 2,
        oldest_waiting_ms: Some(12_500),
        blocked: vec![BlockedRun { id: "run_1".to_owned(), missing: vec!["pool `p`".to_owned()] }],
    }
}

/// Metrics in which every family has a sample.
fn fed() -> Metrics {
    let metrics = Metrics::new("2026-02-03T04:05:06.5Z".parse().expect("a time"))
        .with_gpus(Box::new(TwoGpus));
    metrics.resumed();
    metrics.refused("queue_full");
    metrics.http("/v1/runs/{id}", 200, 0.004);
    metrics.http("/v1/runs/{id}", 404, 0.002);
    metrics.engine(&engine_status());
    metrics.hangs(Hangs { now: 1, total: 3 });
    metrics.journal_commit(3, 0.0002);
    metrics.journal_state(Some(4096), true);
    metrics.cluster(Some(two_nodes()));
    metrics.declare_webhooks(["ops", "idle"]);
    metrics.webhook_delivered("ops");
    for _ in 0..2 {
        metrics.webhook_failed("ops");
    }
    metrics.webhook_given_up("ops");
    let waiting = OutboxCount { endpoint: "ops".to_owned(), waiting: 5, given_up: 1 };
    metrics.webhooks_waiting(&[waiting]);
    metrics
}

fn families(metrics: &Metrics) -> BTreeMap<String, Family> {
    read(&metrics.render())
}

/// Labels to look for.
type With<'a> = &'a [(&'a str, &'a str)];

/// The value of the one sample of this name with exactly these labels.
fn value(families: &BTreeMap<String, Family>, name: &str, labels: With) -> f64 {
    let has = |found: &[(String, String)]| {
        found.iter().map(|(name, value)| (name.as_str(), value.as_str())).eq(labels.iter().copied())
    };

    let mut samples = families.values().flat_map(|family| &family.samples);
    let found = samples.find(|(other, found, _)| other == name && has(found));
    found.unwrap_or_else(|| panic!("{name} {labels:?} is missing in {families:#?}")).2
}

#[test]
fn the_text_follows_the_rules_of_the_format() {
    let families = families(&fed());
    assert!(families.len() >= 20, "{families:#?}");
    for (name, family) in &families {
        assert!(name.starts_with("prime_") || name.starts_with("process_"), "{name}");
        assert!(!name.ends_with("_total"), "{name}: the suffix is the samples'");
        assert!(family.help.len() > 10 && family.help.ends_with('.'), "{name}: {:?}", family.help);
        assert!(!family.samples.is_empty(), "{name} has no samples");
        if let Some(unit) = &family.unit {
            assert!(name.ends_with(&format!("_{unit}")), "{name}");
            assert!(["seconds", "bytes", "celsius", "watts"].contains(&unit.as_str()), "{name}");
        }
    }
    assert!(CONTENT_TYPE.starts_with("application/openmetrics-text; version=1.0.0"));
}

#[test]
fn buckets_of_histograms_rise_to_their_count() {
    let families = families(&fed());
    let mut looked_at = 0;
    for (name, family) in families.iter().filter(|(_, family)| family.kind == "histogram") {
        // A series is identified by all its labels but `le`.
        let mut series: BTreeMap<_, Vec<(f64, f64)>> = BTreeMap::new();
        for (_, labels, count) in
            family.samples.iter().filter(|(sample, ..)| sample.ends_with("_bucket"))
        {
            let (le, others): (Vec<_>, Vec<_>) =
                labels.iter().partition(|(label, _)| label == "le");
            series.entry(others).or_default().push((le[0].1.parse().expect("a bound"), *count));
        }

        for (labels, buckets) in series {
            assert!(buckets.is_sorted(), "{name}: {buckets:?}");
            let (bound, last) = buckets[buckets.len() - 1];
            assert_eq!(bound, f64::INFINITY, "{name}");
            let labels: Vec<_> =
                labels.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
            assert_eq!(value(&families, &format!("{name}_count"), &labels), last, "{name}");
            looked_at += 1;
        }
    }
    assert!(looked_at >= 4, "{looked_at} histograms");
}

#[test]
fn what_is_fed_is_shown() {
    let metrics = fed();
    let families = families(&metrics);
    let engine = [("engine", "a \"b\"\\c\nd")];
    let webhook = [("webhook", "ops")];
    let rows: [(&str, With, f64); 26] = [
        ("prime_build_info", &[("version", env!("CARGO_PKG_VERSION"))], 1.0),
        ("prime_resumed_runs_total", &[], 1.0),
        ("prime_refused_total", &[("reason", "queue_full")], 1.0),
        ("prime_http_requests_total", &[("route", "/v1/runs/{id}"), ("status", "200")], 1.0),
        ("prime_http_requests_total", &[("route", "/v1/runs/{id}"), ("status", "404")], 1.0),
        ("prime_http_request_duration_seconds_sum", &[("route", "/v1/runs/{id}")], 0.006),
        ("prime_http_request_duration_seconds_count", &[("route", "/v1/runs/{id}")], 2.0),
        ("prime_engine_up", &engine, 1.0),
        ("prime_engine_restarts_total", &engine, 2.0),
        ("prime_engine_in_flight", &engine, 7.0),
        ("prime_engine_decodes_total", &engine, 3.0),
        ("prime_engine_prompt_tokens_total", &engine, 400.0),
        ("prime_engine_shared_tokens_total", &engine, 300.0),
        ("prime_engine_cancelled_total", &engine, 1.0),
        ("prime_engine_live_sequences", &engine, 5.0),
        ("prime_engine_decode_p99_seconds", &engine, 0.0025),
        ("prime_journal_commit_duration_seconds_sum", &[], 0.0002),
        ("prime_journal_commit_events_sum", &[], 3.0),
        ("prime_journal_bytes", &[], 4096.0),
        ("prime_journal_writable", &[], 1.0),
        ("prime_webhook_delivered_total", &webhook, 1.0),
        ("prime_webhook_failed_attempts_total", &webhook, 2.0),
        ("prime_webhook_given_up_total", &webhook, 1.0),
        ("prime_webhook_delivered_total", &[("webhook", "idle")], 0.0),
        ("prime_webhook_waiting", &webhook, 5.0),
        ("process_start_time_seconds", &[], 1_770_091_506.5),
    ];

    for (name, labels, expected) in rows {
        let found = value(&families, name, labels);
        assert!((found - expected).abs() < 1e-9, "{name} is {found}, not {expected}");
    }

    metrics.engine(&EngineStatus { ready: false, restarts: 3, in_flight: 0, ..engine_status() });
    metrics.journal_state(None, false);
    let families = read(&metrics.render());

    let again = ["prime_engine_up", "prime_engine_restarts_total", "prime_engine_in_flight"];
    assert_eq!(again.map(|name| value(&families, name, &engine)), [0.0, 3.0, 0.0]);
    assert_eq!(value(&families, "prime_journal_writable", &[]), 0.0);
    assert_eq!(value(&families, "prime_journal_bytes", &[]), 4096.0, "the last that was known");
}

#[test]
fn gpus_have_a_row_each_for_what_they_tell() {
    let with_two = families(&fed());

    let (first, second) = ([("gpu", "0"), ("uuid", "GPU-1")], [("gpu", "1"), ("uuid", "GPU-2")]);
    let rows: [(&str, With, f64); 6] = [
        ("prime_gpu_memory_used_bytes", &first, 17_179_869_184.0),
        ("prime_gpu_memory_used_bytes", &second, 5.0),
        ("prime_gpu_memory_bytes", &second, 6.0),
        ("prime_gpu_utilisation_ratio", &first, 0.25),
        ("prime_gpu_temperature_celsius", &first, 41.0),
        ("prime_gpu_power_watts", &first, 699.5),
    ];

    for (name, labels, expected) in rows {
        assert_eq!(value(&with_two, name, labels), expected, "{name}");
    }

    assert_eq!(
        with_two["prime_gpu_power_watts"].samples.len(),
        1,
        "what is not told is not shown as 0"
    );

    #[derive(Debug)]
    struct NoGpu;
    impl GpuSource for NoGpu {
        fn read(&self) -> Vec<GpuReading> {
            Vec::new()
        }
    }

    let without = families(&Metrics::new(jiff::Timestamp::UNIX_EPOCH).with_gpus(Box::new(NoGpu)));
    assert!(without.keys().all(|name| !name.contains("gpu")), "{without:#?}");
}

#[test]
fn the_nodes_of_a_shared_journal_have_a_row_each() {
    let metrics = fed();
    let of_two = families(&metrics);
    let (first, second) = ([("node", "box:1"), ("id", "7")], [("node", "box:1"), ("id", "9")]);

    let rows: [(&str, With, f64); 12] = [
        ("prime_cluster_nodes", &[], 2.0),
        ("prime_cluster_open_runs", &[], 6.0),
        ("prime_cluster_waiting_runs", &[], 2.0),
        ("prime_cluster_blocked_runs", &[], 1.0),
        ("prime_cluster_oldest_waiting_seconds", &[], 12.5),
        ("prime_cluster_leases", &first, 3.0),
        ("prime_cluster_leases", &second, 1.0),
        ("prime_cluster_capacity", &second, 64.0),
        ("prime_cluster_lease_left_seconds", &first, 9.25),
        ("prime_cluster_lease_left_seconds", &second, -1.5),
        ("prime_cluster_heartbeat_lag_seconds", &first, 0.75),
        ("prime_node_info", &[("node", "box:1"), ("id", "7"), ("version", "0.2.0")], 1.0),
    ];

    for (name, labels, expected) in rows {
        assert_eq!(value(&of_two, name, labels), expected, "{name} {labels:?}");
    }

    assert_eq!(
        of_two["prime_cluster_heartbeat_lag_seconds"].samples.len(),
        1,
        "what is not told is not shown as 0"
    );

    metrics.cluster(None);
    let without = families(&metrics);
    assert!(
        without.keys().all(|name| !name.contains("cluster") && !name.contains("node")),
        "{without:#?}"
    );
}

#[cfg(target_os = "linux")]
#[test]
fn the_process_is_measured() {
    let open = |metrics: &Metrics| value(&families(metrics), "process_open_fds", &[]);
    let metrics = fed();
    let memory = value(&families(&metrics), "process_resident_memory_bytes", &[]);
    assert!(memory > 1e6 && memory < 1e12, "{memory} bytes");

    // Other tests of this process open files too, so that a difference says nothing; a floor does.
    let files: Vec<_> = (0..100).map(|_| fs::File::open("/dev/null").expect("there")).collect();
    assert!(open(&metrics) >= files.len() as f64);
}

#[test]
fn a_run_waits_until_it_begins_and_is_open_until_its_meter_is_gone() {
    let metrics = fed();
    let spec = tasks::find("n-queens").expect("listed").spec();

    let open_and_queued = || {
        ["prime_runs_open", "prime_runs_queued"].map(|name| value(&families(&metrics), name, &[]))
    };
    assert_eq!(open_and_queued(), [0.0, 0.0]);

    let meters = [metrics.run(spec), metrics.run(spec)];
    assert_eq!(open_and_queued(), [2.0, 2.0]);
    drop(meters);
    assert_eq!(open_and_queued(), [0.0, 0.0]);

    assert_eq!(
        value(&families(&metrics), "prime_run_duration_seconds_count", &[]),
        0.0,
        "none of them ended"
    );
}

#[test]
fn proposals_begun_early_are_counted_by_what_became_of_them() {
    let metrics = fed();
    let meter = metrics.run(tasks::find("n-queens").expect("listed").spec());
    let counted = || {
        ["used", "wasted"].map(|outcome| {
            value(&families(&metrics), "prime_speculations_total", &[("outcome", outcome)])
        })
    };
    assert_eq!(counted(), [0.0, 0.0], "the rows are there before there is anything to count");
    for (used, wasted) in [(1, 0), (0, 2), (1, 1), (0, 0)] {
        meter.observe(&Event::Step {
            id: TurnId { round: 1, trajectory: 0 },
            elapsed_ms: 1,
            depth: 0,
            proposal: &Proposal::default(),
            is_applicable: true,
            verdict: &Verdict::default(),
            decision: Decision::Proceed,
            located: None,
            approval: None,
            usage: Usage::default(),
            speculations: Speculations { used, wasted },
            waited: RoleTimes::default(),
            timing: None,
        });
    }

    assert_eq!(counted(), [2.0, 3.0]);
}

#[test]
fn failures_have_a_row_each_and_are_counted_by_role_and_kind() {
    let metrics = fed();
    let meter = metrics.run(tasks::find("n-queens").expect("listed").spec());
    let id = TurnId { round: 1, trajectory: 0 };
    let error = AgentError::new("test", Failure::Timeout, "late");
    for mishaps in [1, 2] {
        meter.observe(&Event::Mishap {
            id,
            elapsed_ms: 1,
            role: Role::Verifier,
            error: &error,
            mishaps,
        });
    }

    let failed = Event::TurnFailed {
        id,
        elapsed_ms: 1,
        role: Role::Executor,
        failure: Failure::Refused,
        reason: "no",
        usage: Usage { cost: Cost::from_units(0.25), ..Usage::default() },
    };
    meter.observe(&failed);
    assert_eq!(value(&families(&metrics), "prime_cost_total", &[]), 0.25);

    let families = families(&metrics);
    assert_eq!(
        families["prime_agent_failures"].samples.len(),
        3 * 12,
        "each role and kind has a row"
    );
    for (role, failure, expected) in
        [("verifier", "timeout", 2.0), ("executor", "refused", 1.0), ("coordinator", "died", 0.0)]
    {
        let labels = [("role", role), ("failure", failure)];
        assert_eq!(
            value(&families, "prime_agent_failures_total", &labels),
            expected,
            "{role} {failure}"
        );
    }
}

#[test]
fn the_board_asks_for_metrics_that_there_are() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../config/grafana.json");
    let board: serde_json::Value =
        serde_json::from_str(&fs::read_to_string(path).expect("there")).expect("JSON");
    let families = families(&fed());
    let known: Vec<&str> =
        families.values().flat_map(|family| &family.samples).map(|(name, ..)| &**name).collect();

    let name = regex::Regex::new(r"\b(?:prime|process)_[a-z0-9_]+").expect("a pattern");
    let panels = board["panels"].as_array().expect("panels");
    let mut asked = 0;
    for panel in panels {
        let expressions =
            panel["targets"].as_array().into_iter().flatten().map(|target| &target["expr"]);
        for expression in
            expressions.chain(std::iter::once(&panel["expr"])).filter_map(|text| text.as_str())
        {
            for found in name.find_iter(expression) {
                assert!(
                    known.contains(&found.as_str()),
                    "{} asks for {}",
                    panel["title"],
                    found.as_str()
                );
                asked += 1;
            }
        }
    }

    assert!(asked > 20, "only {asked} metrics are shown");
    let mut ids: Vec<_> = panels.iter().map(|panel| panel["id"].as_u64().expect("an id")).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), panels.len(), "ids of panels are their own");
}
