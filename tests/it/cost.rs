//! Money: what runs cost whose models have a price, and the budget that ends them.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex};

use prime_stub_server::{Asked, Reply, StubServer};
use serde_json::{Value, json};

use crate::binary::run;
use crate::daemon::Daemon;
use crate::raw::{Raw, post};

/// A task of one step, the step that solves its first instance, and one that does not.
const TASK: &str = "n-queens-last-queen";
const RIGHT: &str = "place 4 2";
const WRONG: &str = "place 4 4";

/// A turn has 90 prompt tokens, 64 of them cached, and writes 12. So it costs
/// 26 · 2,000 + 64 · 500 + 12 · 8,000 billionths.
const PRICE: &str = "pools.server.price={prompt=2, cached=0.5, completion=8}";
const TURN: f64 = 0.000_18;

/// Asks the executor for a step again.
const EXECUTOR: &str = r#"{"role": "executor"}"#;

/// A server whose every answer is this line.
fn server(line: &'static str) -> StubServer {
    server_of(line, Arc::new(AtomicU64::new(u64::MAX)))
}

/// A server that answers with this line as often as `left` says, and then is silent.
fn server_of(line: &'static str, left: Arc<AtomicU64>) -> StubServer {
    let answers = server_script(line);
    StubServer::scripted(move |asked: &Asked| {
        let take = |left: u64| left.checked_sub(1);
        let is_turn = asked.path.ends_with("/chat/completions");
        if is_turn && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, take).is_err() {
            return Reply::Silence;
        }
        answers(asked)
    })
    .expect("a port")
}

/// Answers with this line.
fn server_script(line: &'static str) -> impl Fn(&Asked) -> Reply {
    move |asked: &Asked| {
        if !asked.path.ends_with("/chat/completions") {
            return Reply::Json(200, json!({"object": "list", "data": [{"id": "m"}]}));
        }
        let part = |delta: Value| json!({"model": "m", "choices": [{"delta": delta}]}).to_string();
        let usage = json!({
            "prompt_tokens": 90, "completion_tokens": 12,
            "prompt_tokens_details": {"cached_tokens": 64},
        });
        Reply::Events(vec![
            part(json!({"role": "assistant", "content": line})),
            json!({"choices": [{"delta": {}, "finish_reason": "stop"}]}).to_string(),
            json!({"choices": [], "usage": usage}).to_string(),
            "[DONE]".to_owned(),
        ])
    }
}

/// Settings of an executor that asks this server, one trajectory at a time, without an early end.
fn asking(stub: &StubServer) -> Vec<String> {
    let pool = format!("pools.server.upstreams=[{{url=\"{}\", model=\"m\"}}]", stub.url);
    [
        pool.as_str(),
        "agents.executor.implementation=openai",
        "agents.executor.pool=server",
        "run.fanout=1",
        "run.max_rounds=100",
        "run.adaptive_rounds=false",
        "run.attempts_max=1000000",
        "run.repetitions_max=1000000",
        "run.stuck_after=1000000",
    ]
    .map(str::to_owned)
    .to_vec()
}

/// A daemon whose executor asks this server at a price, one turn a run, for keys that may spend the
/// price of less than two turns a day.
fn daily(stub: &StubServer) -> Daemon {
    let mut sets = asking(stub);
    sets.extend(
        [PRICE, "run.max_rounds=1", "server.key_cost_per_day_max=0.0003"].map(str::to_owned),
    );
    Daemon::start(&sets.iter().map(String::as_str).collect::<Vec<_>>())
}

/// Waits until the overview has counted the one run of a daemon, of one turn; the path to try its
/// step again.
fn counted(daemon: &Daemon, run: &str) -> String {
    daemon.finished(run);
    daemon.until("/v1/overview", |body| body["total"]["cost"] == json!(TURN));
    let steps = daemon.get(&format!("{run}/steps")).body;
    format!("{run}/steps/{}/try", steps["steps"][0]["seq"])
}

fn solved(stub: &StubServer, more: &[&str], code: i32) -> Value {
    let all = asking(stub);
    let sets: Vec<&str> = all
        .iter()
        .map(String::as_str)
        .chain(more.iter().copied())
        .flat_map(|set| ["--set", set])
        .collect();
    run(&[&[TASK], &sets]).json(code)
}

#[test]
fn a_run_costs_what_its_tokens_do_and_ends_with_its_best_answer_when_the_money_is_spent() {
    let stub = server(RIGHT);
    let once = ["run.max_rounds=1"];
    let priced = solved(&stub, &[&once[..], &[PRICE]].concat(), 0);
    let tokens = json!({"prompt": 90, "completion": 12, "cached": 64, "cost": TURN});
    assert_eq!(priced["tokens"], tokens, "{priced}");
    assert_eq!(priced["notes"].to_string().matches("budget.cost").count(), 0);

    let without = solved(&stub, &once, 0);
    assert_eq!(without["tokens"], json!({"prompt": 90, "completion": 12, "cached": 64}));
    let free = "pools.server.price={prompt=0, completion=0.0}";
    assert_eq!(solved(&stub, &[&once[..], &[free]].concat(), 0)["tokens"]["cost"], 0.0);

    // Three turns reach what two do not.
    let cut = solved(&stub, &[PRICE, "run.budget.cost=0.0004"], 0);
    assert_eq!((&cut["outcome"], &cut["verified"]), (&json!("cost_spent"), &json!(true)), "{cut}");
    assert_eq!((&cut["proposals"], &cut["tokens"]["cost"]), (&json!(3), &json!(0.000_54)));

    // A budget of exactly two turns has room for no third.
    let exact = solved(&stub, &[PRICE, "run.budget.cost=0.00036"], 0);
    assert_eq!((&exact["proposals"], &exact["tokens"]["cost"]), (&json!(2), &json!(0.000_36)));
}

#[test]
fn a_budget_of_money_outlives_the_daemon_that_spent_it() {
    // The server falls silent before the money is spent, so that the run cannot end before the kill.
    let left = Arc::new(AtomicU64::new(200));
    let stub = server_of(WRONG, Arc::clone(&left));
    let all = asking(&stub);
    let mut sets: Vec<&str> = all.iter().map(String::as_str).collect();
    sets.extend([PRICE, "run.budget.cost=1.0"]);

    let daemon = Daemon::start(&sets);
    for (cost, part) in [
        (json!(0), "is 0, but must be a number above 0 and up to 1, the daemon's own limit"),
        (json!(-0.5), "is -0.5, but must be a number above 0"),
        (json!(1.5), "is 1.5, but must be a number above 0 and up to 1, the daemon's own limit"),
    ] {
        let request = json!({"task": TASK, "budget": {"cost": cost}});
        daemon.submit(&request).refused(400, Some("budget.cost"), &[part]);
    }

    // 500 turns, of which 100 or more are durable before the daemon is killed.
    let run = daemon.submitted(&json!({"task": TASK, "budget": {"cost": 0.09}}));
    let before = daemon.with_events(&run, 120);
    assert!(before["tokens"]["cost"].as_f64() >= Some(100.0 * TURN), "{before}");

    let home = daemon.kill();
    left.store(u64::MAX, Ordering::Relaxed);
    let daemon = Daemon::start_in(&home, &sets);
    let after = daemon.finished(&run);
    assert_eq!(
        (&after["outcome"], &after["resumed"]),
        (&json!("cost_spent"), &json!(1)),
        "{after}"
    );
    assert_eq!((&after["proposals"], &after["tokens"]["cost"]), (&json!(500), &json!(0.09)));
    assert_eq!(after["tokens"]["prompt"], 45_000);

    let overview = daemon.until("/v1/overview", |body| body["total"]["cost"] == json!(0.09));
    for part in ["tasks", "models", "days"] {
        assert_eq!(overview[part][0]["cost"], 0.09, "{part}: {overview}");
    }
}

#[test]
fn a_key_pays_for_so_much_a_day() {
    let stub = server(RIGHT);
    let daemon = daily(&stub);

    // Two runs are paid for: after the first, there is something left.
    let request = json!({"task": TASK});
    for paid in [TURN, 0.000_36] {
        daemon.finished(&daemon.submitted(&request));
        daemon.until("/v1/overview", |body| body["total"]["cost"] == json!(paid));
    }
    let refused = daemon.with_key("repeated", &request);
    refused.refused(429, None, &["cost 0.00036, ", "may cost 0.0003 ", "T00:00:00"]);
    assert_eq!(refused.body["error"]["code"], "daily_cost_spent");
    let seconds: u64 = refused.retry_after.unwrap().parse().unwrap();
    assert!((1..=86_400).contains(&seconds), "{seconds}");
}

#[test]
fn models_without_a_price_are_named_where_money_is_limited() {
    let stub = server(RIGHT);
    let all = asking(&stub);
    let sets: Vec<&str> = all.iter().map(String::as_str).collect();
    let daemon = Daemon::start(&[&sets[..], &["run.max_rounds=1"]].concat());
    let run = daemon.submitted(&json!({"task": TASK, "budget": {"cost": 3}}));
    let record = daemon.finished(&run);
    let note = "`budget.cost` does not limit what has no price: pool `server`";
    assert!(record["notes"].as_array().unwrap().contains(&json!(note)), "{record}");
    assert!(record["tokens"].get("cost").is_none(), "{record}");
}

#[test]
fn turns_that_are_tried_count_towards_the_day_of_their_key() {
    let stub = server(RIGHT);
    let daemon = daily(&stub);
    let run = daemon.submitted(&json!({"task": TASK}));
    let path = counted(&daemon, &run);
    let tried = daemon.post_text(&path, EXECUTOR);
    assert_eq!((tried.status, &tried.body["action"]), (200, &json!(RIGHT)), "{tried:?}");
    let refused = daemon.post_text(&path, EXECUTOR);
    refused.refused(429, None, &["runs and tried steps", "cost 0.00036, ", "may cost 0.0003 "]);
    assert_eq!(refused.body["error"]["code"], "daily_cost_spent");
    daemon.submit(&json!({"task": TASK})).refused(429, None, &["may cost 0.0003 "]);
}

#[test]
fn turns_that_are_tried_at_once_do_not_exceed_the_day_together() {
    let stub = server(RIGHT);
    let daemon = daily(&stub);
    let run = daemon.submitted(&json!({"task": TASK}));
    let path = counted(&daemon, &run);
    let tried: Vec<u16> = std::thread::scope(|scope| {
        let all: Vec<_> =
            (0..8).map(|_| scope.spawn(|| daemon.post_text(&path, EXECUTOR).status)).collect();
        all.into_iter().map(|one| one.join().expect("an answer")).collect()
    });
    let count = |status| tried.iter().filter(|answer| **answer == status).count();
    // The run has cost more than half of the limit: one turn is left.
    assert_eq!((count(200), count(429)), (1, 7), "{tried:?}");
}

#[test]
fn a_tried_turn_costs_what_it_does_although_its_client_is_gone() {
    let (asked, was_asked) = channel();
    let (release, released) = channel::<()>();
    let gate = Mutex::new((asked, released));
    let answers = server_script(RIGHT);
    let stub = StubServer::scripted(move |request: &Asked| {
        if request.path.ends_with("/chat/completions") {
            let gate = gate.lock().expect("no panic");
            // Once the other ends are gone, nothing waits any more.
            let _told = gate.0.send(());
            let _released = gate.1.recv();
        }
        answers(request)
    })
    .expect("a port");
    let daemon = daily(&stub);

    release.send(()).expect("a server");
    let run = daemon.submitted(&json!({"task": TASK}));
    let path = counted(&daemon, &run);
    was_asked.recv().expect("a turn of the run");
    let mut client = Raw::connect(&daemon.address);
    client.send(&post(&path, EXECUTOR));
    was_asked.recv().expect("a tried turn");
    drop(client);

    let next = std::thread::scope(|scope| {
        let next = scope.spawn(|| daemon.post_text(&path, EXECUTOR));
        drop(release);
        next.join().expect("an answer")
    });
    next.refused(429, None, &["cost 0.00036, ", "may cost 0.0003 "]);
}
