//! The load test on a daemon reports what the daemon did.

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::time::Duration;

use prime_loadtest::histogram;
use prime_loadtest::http::{HttpLoad, HttpLoadError, HttpMeasured, http};
use prime_loadtest::report::Length;
use serde_json::{Value, json};

use crate::daemon::{Daemon, is_over};

fn load(url: String, length: Length) -> HttpLoad {
    let request =
        json!({"task": "tower-of-hanoi", "input": {"n": 3, "from": 0, "to": 2}, "fanout": 1});
    HttpLoad {
        url,
        key: None,
        request,
        trajectories: 4,
        rate: None,
        warmup: Duration::ZERO,
        length,
    }
}

fn measured(load: &HttpLoad) -> Result<HttpMeasured, HttpLoadError> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(http(load))
}

/// Runs and steps as the daemon counts them. All runs must be over.
fn counted(daemon: &Daemon) -> (u64, u64) {
    let page = daemon.get("/v1/runs?limit=1000").body;
    assert_eq!(page["next"], Value::Null, "all fit on one page");
    let runs = page["runs"].as_array().unwrap();
    assert!(runs.iter().all(is_over));
    (runs.len() as u64, runs.iter().map(|run| run["steps"].as_u64().unwrap()).sum())
}

fn runs(measured: &HttpMeasured) -> u64 {
    histogram::decode(&measured.point.histogram).unwrap().len()
}

#[test]
fn a_closed_loop_counts_what_the_daemon_did() {
    let daemon = Daemon::start(&[]);
    // A run has 7 steps, so that each client makes 3.
    let measured = measured(&load(daemon.url("/"), Length::Steps(20))).unwrap();
    assert_eq!(counted(&daemon), (12, 84));

    let point = &measured.point;
    assert_eq!((runs(&measured), point.steps, point.failures, point.rate), (12, 84, 0, None));
    let stages: Vec<_> = point.stages.iter().map(|stage| stage.name.as_str()).collect();
    assert_eq!(stages, ["accept", "run"]);

    let sum = point.stages.iter().map(|stage| stage.latency.mean_us).sum::<f64>();
    let mean = point.latency.mean_us;
    assert!((sum - mean).abs() < mean * 0.02, "the stages, {sum} in total, add up to {mean}");

    assert!(
        measured.remarks[0].contains("12 runs ended")
            && measured.remarks[0].contains("12 verified")
    );
}

#[test]
fn an_open_loop_counts_what_was_due() {
    let daemon = Daemon::start(&[]);
    let load = HttpLoad { rate: Some(50.0), ..load(daemon.url(""), Length::Seconds(0.5)) };
    let measured = measured(&load).unwrap();
    let (counted_runs, steps) = counted(&daemon);
    assert_eq!((runs(&measured), measured.point.steps), (counted_runs, steps));

    let rate = measured.point.rate.unwrap();
    // Due at 0, 20, …, 480 ms.
    assert!(counted_runs <= 25 && rate.due == 50.0 && rate.behind >= 25 - counted_runs, "{rate:?}");
    assert_eq!(measured.point.stages[0].name, "late");
}

#[test]
fn an_unsustainable_rate_is_reported() {
    let daemon = Daemon::start(&[]);
    let load = HttpLoad {
        rate: Some(20_000.0),
        trajectories: 1,
        ..load(daemon.url(""), Length::Seconds(0.3))
    };

    let measured = measured(&load).unwrap();
    let rate = measured.point.rate.unwrap();
    assert!(!rate.is_held && rate.reached < rate.due && rate.behind > 5_000, "{rate:?}");
    // Waiting for earlier runs is part of the latency.
    assert!(measured.point.latency.max_us > 100_000.0, "{:?}", measured.point.latency);

    let remark =
        measured.remarks.iter().find(|remark| remark.contains("the rate was not held")).unwrap();
    assert!(
        remark.contains("20,000 runs/s were due") && remark.contains("never submitted"),
        "{remark}"
    );
}

#[test]
fn the_warm_up_is_not_measured() {
    let daemon = Daemon::start(&[]);
    let load =
        HttpLoad { warmup: Duration::from_millis(100), ..load(daemon.url(""), Length::Steps(20)) };
    let measured = measured(&load).unwrap();
    let (counted_runs, _) = counted(&daemon);
    // Each client's first run is due at once.
    assert!(counted_runs >= 16, "{counted_runs}");
    assert_eq!((runs(&measured), measured.point.steps), (12, 84));
}

#[test]
fn refusals_are_counted_and_respected() {
    let daemon = Daemon::start(&["server.queue_max=1"]);
    let load = HttpLoad { trajectories: 2, ..load(daemon.url(""), Length::Steps(70)) };
    let measured = measured(&load).unwrap();
    let point = &measured.point;
    assert_eq!((runs(&measured), point.steps), counted(&daemon));
    assert_eq!(point.steps, 140);

    if point.failures > 0 {
        assert!(
            measured.remarks.iter().any(|remark| remark.contains("server.queue_max")),
            "{:?}",
            measured.remarks
        );
        assert!(point.latency.max_us > 1e6, "the daemon asked for a second");
    }
}

#[test]
fn mistakes_end_the_test_at_once() {
    // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let keyed = Daemon::start(&[&format!("server.keys=[{{name=\"ci\", sha256=\"{sha256}\"}}]")]);
    let own = |url: String| load(url, Length::Seconds(600.0));
    let refused = |load: HttpLoad, parts: &[&str]| {
        let error = measured(&load).unwrap_err().to_string();
        assert!(
            parts.iter().all(|part| error.contains(part)),
            "{parts:?} are missing in {error:?}"
        );
    };

    refused(own(keyed.url("")), &["does not accept the key", "PRIME_API_KEY"]);
    let with_key =
        |request| HttpLoad { key: Some("abc".to_owned()), request, ..own(keyed.url("")) };
    refused(with_key(json!({"task": "n-quens"})), &["status 400", "did you mean `n-queens`?"]);

    assert_eq!(
        measured(&HttpLoad { length: Length::Steps(7), ..with_key(own(String::new()).request) })
            .unwrap()
            .point
            .steps,
        28
    );

    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    let foreign = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut buffer = [0; 4_096];
        assert!(stream.read(&mut buffer).unwrap() > 0);
        stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello").unwrap();
    });
    refused(own(address.clone()), &["is not a prime-agents daemon", "check --url"]);
    foreign.join().unwrap();

    // Nothing listens there now.
    refused(own(address), &["no daemon answers", "prime-agents serve", "--url"]);
    refused(own("localhost".to_owned()), &["http://HOST:PORT"]);
    refused(HttpLoad { trajectories: 0, ..own(keyed.url("")) }, &["no trajectories"]);
    refused(HttpLoad { trajectories: u32::MAX, ..own(keyed.url("")) }, &["ulimit -n"]);

    for rate in [0.0, -1.0, f64::NAN, f64::INFINITY] {
        refused(HttpLoad { rate: Some(rate), ..own(keyed.url("")) }, &["a rate of", "above 0"]);
    }
    for seconds in [0.0, -1.0, f64::NAN] {
        refused(load(keyed.url(""), Length::Seconds(seconds)), &["a length of"]);
    }
    refused(load(keyed.url(""), Length::Steps(0)), &["no steps"]);
}
