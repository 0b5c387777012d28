//! Several keys on one daemon: what one does takes nothing from another.

use std::fmt::Write as _;
use std::sync::Arc;

use reqwest::header::AUTHORIZATION;
use rustix::process::Signal;
use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::daemon::{Answer, Daemon, Home, PATIENCE, long_run};

/// A daemon whose keys are the same as their names.
pub struct Keyed {
    pub daemon: Daemon,
}

impl Keyed {
    pub fn start(keys: &[(&str, &str)], sets: &[&str]) -> Self {
        Self::start_in(&Home::new(), keys, sets)
    }

    fn start_in(home: &Arc<Home>, keys: &[(&str, &str)], sets: &[&str]) -> Self {
        let entry = |(name, options): &(&str, &str)| {
            let mut sha256 = String::new();
            Sha256::digest(name).iter().for_each(|byte| write!(sha256, "{byte:02x}").unwrap());
            format!("{{name=\"{name}\", sha256=\"{sha256}\"{options}}}")
        };
        let keys =
            format!("server.keys=[{}]", keys.iter().map(entry).collect::<Vec<_>>().join(", "));
        Self { daemon: Daemon::start_in(home, &[&[keys.as_str()][..], sets].concat()) }
    }

    pub fn post(&self, key: &str, path: &str, body: &Value) -> Answer {
        let post = self
            .daemon
            .client
            .post(self.daemon.url(path))
            .header(AUTHORIZATION, format!("Bearer {key}"));
        post.body(body.to_string()).send().unwrap().into()
    }

    /// Submits a run with an idempotency key.
    fn submit(&self, key: &str, idempotency_key: &str, body: &Value) -> Answer {
        let post = self
            .daemon
            .client
            .post(self.daemon.url("/v1/runs"))
            .header(AUTHORIZATION, format!("Bearer {key}"));
        post.header("Idempotency-Key", idempotency_key)
            .body(body.to_string())
            .send()
            .unwrap()
            .into()
    }

    pub fn get(&self, key: &str, path: &str) -> Answer {
        let get = self
            .daemon
            .client
            .get(self.daemon.url(path))
            .header(AUTHORIZATION, format!("Bearer {key}"));
        get.send().unwrap().into()
    }

    /// Requests something until a condition holds.
    #[expect(clippy::disallowed_methods, reason = "it waits for another process, in real time")]
    pub fn until(&self, key: &str, path: &str, is_so: impl Fn(&Value) -> bool) -> Value {
        let started = std::time::Instant::now();
        loop {
            let answer = self.get(key, path);
            if is_so(&answer.body) {
                return answer.body;
            }
            assert!(started.elapsed() < PATIENCE, "not in time: {answer:?}");
        }
    }

    /// Waits for the end of a run.
    fn finish(&self, key: &str, run: &str) {
        let events = self.daemon.url(&format!("{run}/events?after={}", u32::MAX));
        let stream = self
            .daemon
            .client
            .get(events)
            .header(AUTHORIZATION, format!("Bearer {key}"))
            .send()
            .unwrap();
        assert_eq!(stream.status(), 200);
        stream.text().unwrap();
    }

    /// A finished run's path.
    pub fn finished(&self, key: &str) -> String {
        let taken = self.post(key, "/v1/runs", &short_run());
        assert_eq!(taken.status, 202, "{taken:?}");
        let run = taken.location.unwrap();
        self.finish(key, &run);
        run
    }
}

fn short_run() -> Value {
    json!({"task": "dfa-simulation"})
}

fn code(answer: &Answer) -> (u16, &str) {
    (answer.status, answer.body["error"]["code"].as_str().unwrap_or_default())
}

const ALL: &[(&str, &str)] = &[("ada", ""), ("bob", ""), ("root", ", admin=true")];

#[test]
fn a_key_cleans_up_its_own_runs_and_an_admin_key_all() {
    let keyed = Keyed::start(ALL, &[]);
    let (of_ada, of_bob) = (keyed.finished("ada"), keyed.finished("bob"));
    let everything = json!({"bytes_max": 0, "older_than_days": 0});

    let removed = keyed.post("bob", "/v1/gc", &everything);
    assert_eq!((removed.status, &removed.body["runs"]), (200, &json!(1)), "{removed:?}");
    assert_eq!(keyed.get("bob", &of_bob).status, 404);
    assert_eq!(keyed.get("ada", &of_ada).status, 200, "another's run stays");

    assert_eq!(keyed.post("root", "/v1/gc", &everything).body["runs"], json!(1));
    assert_eq!(keyed.get("ada", &of_ada).status, 404);

    for key in ["ada", "bob"] {
        let refused = keyed.post(key, "/v1/reload", &json!({}));
        assert_eq!(code(&refused), (403, "admin_key_needed"), "{refused:?}");
    }

    assert_eq!(keyed.post("root", "/v1/reload", &json!({})).status, 200);
}

#[test]
fn an_idempotency_key_outlives_its_run() {
    let home = Home::new();
    let keyed = Keyed::start_in(&home, ALL, &[]);
    let first = keyed.submit("ada", "k", &short_run());
    assert_eq!(first.status, 202, "{first:?}");
    keyed.finish("ada", &first.location.unwrap());

    assert_eq!(keyed.post("root", "/v1/gc", &json!({"bytes_max": 0})).body["runs"], json!(1));

    let again = |keyed: &Keyed| {
        let answer = keyed.submit("ada", "k", &short_run());
        assert_eq!(code(&answer), (410, "run_removed"), "{answer:?}");
        let other = keyed.submit("ada", "k", &json!({"task": "n-queens"}));
        assert_eq!(code(&other), (422, "idempotency_key_reused"), "{other:?}");
        assert_eq!(
            keyed.get("ada", "/v1/runs").body["runs"],
            json!([]),
            "nothing was executed again"
        );
    };

    again(&keyed);
    let home = keyed.daemon.kill();
    again(&Keyed::start_in(&home, ALL, &[]));
}

#[test]
fn one_key_cannot_fill_the_queue() {
    let home = Home::new();
    let sets = ["server.queue_max=5"];
    let keyed = Keyed::start_in(&home, ALL, &sets);
    let submit = |keyed: &Keyed, key: &str| keyed.post(key, "/v1/runs", &long_run());
    let of_ada: Vec<_> =
        (0..3).map(|_| submit(&keyed, "ada").location.expect("accepted")).collect();

    let beyond = submit(&keyed, "ada");
    assert_eq!(code(&beyond), (429, "too_many_open_runs"), "{beyond:?}");
    beyond.refused(429, None, &["3 runs", "server.key_open_runs_max"]);
    assert!(beyond.retry_after.is_some());

    let fork = keyed.post("ada", &format!("{}/fork?seq=0", of_ada[0]), &json!({}));
    assert_eq!(code(&fork), (429, "too_many_open_runs"), "{fork:?}");
    assert_eq!([submit(&keyed, "bob").status, submit(&keyed, "bob").status], [202, 202]);
    assert_eq!(code(&submit(&keyed, "bob")), (429, "queue_full"));

    assert_eq!(keyed.post("ada", &format!("{}/cancel", of_ada[0]), &json!({})).status, 200);
    assert_eq!(submit(&keyed, "ada").status, 202, "there is room for another");

    // The next process counts them as well.
    let home = keyed.daemon.kill();
    let keyed = Keyed::start_in(&home, ALL, &["server.queue_max=9", "server.key_open_runs_max=3"]);
    assert_eq!(code(&submit(&keyed, "ada")), (429, "too_many_open_runs"));
    assert_eq!(submit(&keyed, "bob").status, 202);
    assert_eq!(code(&submit(&keyed, "bob")), (429, "too_many_open_runs"));
}

#[test]
fn a_key_has_its_own_limit_of_open_runs() {
    let keyed = Keyed::start(&[("ada", ", open_runs_max=1"), ("bob", "")], &["server.queue_max=9"]);
    assert_eq!(keyed.post("ada", "/v1/runs", &long_run()).status, 202);
    let beyond = keyed.post("ada", "/v1/runs", &long_run());
    assert_eq!(code(&beyond), (429, "too_many_open_runs"), "{beyond:?}");
}

#[test]
fn a_list_does_not_tell_whether_another_has_a_run() {
    let keyed = Keyed::start(ALL, &[]);
    let run = keyed.finished("ada");
    let id = run.rsplit('/').next().unwrap();
    let missing = format!("{}0000", &id[..id.len() - 4]);

    let list = |key: &str, after: &str| keyed.get(key, &format!("/v1/runs?after={after}"));
    assert_eq!(list("ada", id).status, 200);
    let (foreign, none) = (list("bob", id), list("bob", &missing));
    foreign.refused(400, Some("after"), &[]);
    assert_eq!(foreign.body.to_string().replace(id, &missing), none.body.to_string());
}

#[test]
fn reasons_are_for_those_with_a_key() {
    let keyed = Keyed::start(ALL, &["log.level=error"]);
    assert_eq!(keyed.post("ada", "/v1/runs", &long_run()).status, 202);
    keyed.daemon.limit_journal(Some(0));
    let failure = |body: &Value| body["journal"]["failure"].as_str().map(str::to_owned);

    let shown = keyed.daemon.until("/readyz", |body| failure(body).is_some());
    assert_eq!(
        (&shown["ready"], failure(&shown).unwrap().contains("be written")),
        (&json!(false), false),
        "{shown}"
    );

    let known = keyed.get("ada", "/readyz");
    assert_eq!(known.status, 503);
    assert!(failure(&known.body).is_some_and(|why| why.contains("cannot be written")), "{known:?}");
}

#[test]
fn a_burst_of_wrong_keys_is_logged_once() {
    let keyed = Keyed::start(ALL, &[]);
    for _ in 0..15 {
        assert_eq!(code(&keyed.get("mallory", "/v1/runs")), (401, "invalid_api_key"));
    }

    assert_eq!(
        keyed.get("ada", "/v1/runs").status,
        200,
        "a right key of the same address is not held up"
    );

    let (_, log) = keyed.daemon.end_by(Signal::TERM);
    assert_eq!(log.matches("this key is unknown").count(), 1, "{log}");
}
