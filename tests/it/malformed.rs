//! Malformed requests to every route: each is refused as a client error or does what it says, and
//! the daemon survives.
#![allow(clippy::disallowed_methods, reason = "the number of cases comes from the environment")]

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use prime_bench::tasks::{self, Difficulty};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, TestCaseError, TestRng, TestRunner};
use reqwest::blocking::Response;
use rustix::process::Signal;
use serde_json::{Value, json};

use crate::daemon::{Daemon, PATIENCE};
use crate::figures::{chaos_seed, from_env, optimised};

/// Nesting beyond what the daemon reads.
const DEEP: usize = 200;

/// The value that a mutation inserts.
fn odd(kind: u8) -> Value {
    let deep = (0..DEEP).fold(json!(0), |inner, _| json!([inner]));
    let odd = [
        json!(null),
        json!(true),
        json!(0),
        json!(-1),
        json!(1),
        json!(0.5),
        json!(-0.0),
        json!(1e308),
        json!(u64::MAX),
        json!(i64::MIN),
        json!(u64::from(u32::MAX) + 1),
        json!(""),
        json!("\u{0}"),
        json!("-1"),
        json!("é🦀\u{202e}"),
        json!("x".repeat(10_000)),
        json!("9".repeat(400)),
        json!([]),
        json!({}),
        json!({"": ""}),
        json!(vec![0; 2_000]),
        json!([[[]], {}, null, "", -1]),
        deep,
    ];
    odd[usize::from(kind) % odd.len()].clone()
}

/// A change at one place in a JSON value.
#[derive(Clone, Debug)]
struct Edit {
    place: prop::sample::Index,
    act: u8,
    odd: u8,
}

/// A change of one byte: its place, the kind of change, and a byte.
type Scratch = (prop::sample::Index, u8, u8);

fn pointers(value: &Value, at: &str, all: &mut Vec<String>) {
    all.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items
                .iter()
                .enumerate()
                .for_each(|(n, item)| pointers(item, &format!("{at}/{n}"), all));
        }
        Value::Object(fields) => fields.iter().for_each(|(name, field)| {
            pointers(field, &format!("{at}/{}", name.replace('~', "~0").replace('/', "~1")), all);
        }),
        _ => {}
    }
}

fn edit(value: &mut Value, edit: &Edit) {
    let mut all = Vec::new();
    pointers(value, "", &mut all);
    let Some(place) = value.pointer_mut(&all[edit.place.index(all.len())]) else { return };

    match (edit.act % 7, &mut *place) {
        (0, Value::Object(fields)) => {
            let name = fields.keys().nth(usize::from(edit.odd) % fields.len().max(1)).cloned();
            name.and_then(|name| fields.shift_remove(&name));
        }
        (0, Value::Array(items)) => drop(items.pop()),
        (1, Value::Object(fields)) => drop(fields.insert("surprise".to_owned(), odd(edit.odd))),
        (1, Value::Array(items)) => items.push(odd(edit.odd)),
        (2, Value::Array(items)) => items.reverse(),
        (2, place) => *place = json!([place.clone()]),
        (3, Value::Number(number)) => {
            let near = number.as_i64().unwrap_or(0).saturating_add(i64::from(edit.odd) - 128);
            *place = json!(near);
        }
        (3, Value::String(text)) => text.push(char::from(edit.odd)),
        (4, place) => *place = json!({"a": place.clone()}),
        (_, place) => *place = odd(edit.odd),
    }
}

fn scratch(bytes: &mut Vec<u8>, (place, act, byte): &Scratch) {
    if bytes.is_empty() {
        return bytes.push(*byte);
    }

    let at = place.index(bytes.len());
    match act % 3 {
        0 => drop(bytes.remove(at)),
        1 => bytes.insert(at, *byte),
        _ => bytes[at] ^= 1 << (byte % 8),
    }
}

/// Valid requests, with the routes that accept them.
fn bodies() -> Vec<(&'static str, Value)> {
    let run = json!({
        "task": "n-queens", "difficulty": "easy", "index": 3, "base_seed": 42, "fanout": 2,
        "speculate": true, "max_rounds": 2, "seed": 5,
        "temperature": 0.5, "top_p": 0.9, "preset": "fast",
        "budget": {"steps": 50, "tokens": 1_000, "wall_ms": 1_000},
        "agents": {"executor": "reference", "verifier": "rules", "coordinator": "threshold"},
    });
    let problem = json!({
        "problem": {
            "statement": "Write n as a product of two factors above 1.", "input": {"n": 15},
            "steps": "stepwise",
            "answer": {
                "schema": {
                    "type": "object", "required": ["x"], "properties": {"x": {"type": "integer"}},
                },
            },
            "constraints": [
                {"name": "product", "severity": "critical", "check": "answer.x * 3 == input.n"},
            ],
        },
        "budget": {"steps": 20},
    });
    let chat = json!({
        "model": "prime/fast", "n": 2, "max_tokens": 500, "temperature": 0.5, "seed": 1,
        "messages": [
            {"role": "system", "content": "Solve."},
            {
                "role": "user",
                "content": [{"type": "text", "text": "```json\n{\"task\": \"n-queens\"}\n```"}],
            },
        ],
        "response_format": {"type": "text"}, "prime": {"budget": {"steps": 20}},
    });
    let streamed = json!({
        "model": "prime", "stream": true, "stream_options": {"include_usage": true},
        "messages": [
            {"role": "user", "content": "{\"task\": \"bubble-sort\", \"input\": {\"a\": [2, 1]}}"},
        ],
    });
    let judged = json!({
        "task": "bubble-sort", "difficulty": "easy", "index": 0, "action": "CMP 0 1",
        "kinds": ["format"],
    });
    let mut all = vec![
        ("/v1/runs", run),
        ("/v1/runs", problem),
        ("/v1/chat/completions", chat),
        ("/v1/chat/completions", streamed),
        ("/v1/verify", json!({"batch": [judged.clone(), judged.clone()]})),
        ("/v1/verify", judged),
        ("/v1/gc", json!({"older_than_days": 30, "bytes_max": 1_000_000_000})),
    ];

    for task in tasks::all() {
        let problem = task.generate(Difficulty::Easy, 1);
        let (slug, input) = (problem.spec().slug, problem.input());
        let state = problem.start().state();
        let budget = json!({"steps": 20});
        all.push((
            "/v1/runs",
            json!({"task": slug, "input": input, "budget": budget, "fanout": 1, "max_rounds": 1}),
        ));
        all.push((
            "/v1/verify",
            json!({"task": slug, "input": input, "state": state, "action": "x"}),
        ));
        all.push((
            "/v1/verify",
            json!({"task": slug, "input": input, "answer": problem.reference().answer}),
        ));
    }
    all
}

/// Valid paths with queries; `RUN` stands for a run.
const PATHS: [(&str, &str); 19] = [
    ("GET", "/v1/runs?status=running&task=n-queens&limit=10&after=RUN"),
    ("GET", "/v1/runs/RUN"),
    ("GET", "/v1/runs/RUN/events?after=3"),
    ("GET", "/v1/runs/RUN/trace?states=true"),
    ("POST", "/v1/runs/RUN/fork?seq=4&seed=7"),
    ("POST", "/v1/runs/RUN/cancel"),
    ("POST", "/v1/runs"),
    ("POST", "/v1/verify"),
    ("POST", "/v1/chat/completions"),
    ("GET", "/v1/tasks"),
    ("GET", "/v1/tasks/bubble-sort"),
    ("GET", "/v1/agents"),
    ("GET", "/v1/models"),
    ("GET", "/v1/models/prime/fast"),
    ("GET", "/livez"),
    ("GET", "/readyz"),
    ("GET", "/metrics"),
    ("GET", "/openapi.json"),
    ("GET", "/docs/index.html"),
];

/// Checks that a response is not a server error, and that an error has the common shape.
fn check(what: &str, status: u16, text: &str) -> Result<(), TestCaseError> {
    prop_assert!((200..500).contains(&status), "{status} for {what}: {text}");
    if status >= 400 {
        let body: Value = serde_json::from_str(text).map_err(|error| {
            TestCaseError::fail(format!("{status} for {what}: {error} in {text:?}"))
        })?;
        let error = &body["error"];
        let is_formed = error["message"].as_str().is_some_and(|message| !message.is_empty())
            && error["type"].is_string()
            && error["code"].is_string()
            && (error["field"].is_string() || error["field"].is_null())
            && error["param"] == error["field"];
        prop_assert!(is_formed, "{status} for {what}: {text}");
    }
    Ok(())
}

fn check_response(
    answer: Result<Response, reqwest::Error>,
    what: &str,
) -> Result<(), TestCaseError> {
    let answer = answer.map_err(|error| TestCaseError::fail(format!("{error} for {what}")))?;
    let status = answer.status().as_u16();
    let text = answer.text();
    check(
        what,
        status,
        &text.map_err(|error| TestCaseError::fail(format!("{error} in the answer to {what}")))?,
    )
}

/// A request with exactly this target, which an HTTP client would normalise. With HTTP/1.0 the body
/// is what follows the headers until the connection is closed.
fn raw(address: &str, method: &str, target: &str) -> std::io::Result<(u16, String)> {
    let mut stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(
        format!("{method} {target} HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n")
            .as_bytes(),
    )?;

    let mut response = Vec::new();
    stream.read_to_end(&mut response)?;
    let response = String::from_utf8_lossy(&response);
    let (head, body) = response.split_once("\r\n\r\n").unwrap_or((&response, ""));

    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or(std::io::ErrorKind::InvalidData)?, body.to_owned()))
}

fn daemon() -> Daemon {
    Daemon::start(&["run.budget.steps=2000", "server.queue_max=1000", "log.level=error"])
}

fn runner(cases: u64) -> TestRunner {
    let cases = u32::try_from(from_env("PRIME_MALFORMED_CASES", cases)).unwrap();
    let config =
        Config { cases, failure_persistence: None, max_shrink_iters: 200, ..Config::default() };
    let seed: Vec<u8> = chaos_seed().to_le_bytes().into_iter().cycle().take(32).collect();
    TestRunner::new_with_rng(config, TestRng::from_seed(RngAlgorithm::ChaCha, &seed))
}

/// Ends the daemon, which must not have panicked.
fn ends_well(daemon: Daemon) {
    assert_eq!(daemon.get("/livez").status, 200);
    let (code, log) = daemon.end_by(Signal::TERM);
    assert_eq!(code, Some(0), "{log}");
    assert!(!log.contains("panicked"), "{log}");
}

#[test]
fn malformed_bodies_are_client_errors() {
    let daemon = daemon();
    let edits = prop::collection::vec(
        (any::<prop::sample::Index>(), any::<u8>(), any::<u8>())
            .prop_map(|(place, act, odd)| Edit { place, act, odd }),
        0..4,
    );
    let scratches = prop_oneof![
        4 => Just(Vec::new()),
        1 => prop::collection::vec(any::<Scratch>(), 1..4),
    ];

    let request = (prop::sample::select(bodies()), edits, scratches).prop_map(
        |((path, mut body), edits, scratches)| {
            edits.iter().for_each(|change| edit(&mut body, change));
            let mut bytes = body.to_string().into_bytes();
            scratches.iter().for_each(|change| scratch(&mut bytes, change));
            (path, bytes)
        },
    );

    let sent = runner(optimised(1_000, 400)).run(&request, |(path, bytes)| {
        let what =
            format!("POST {path} {}", String::from_utf8_lossy(&bytes[..bytes.len().min(2_000)]));
        let post = daemon.client.post(daemon.url(path)).header("Content-Type", "application/json");
        check_response(post.body(bytes).send(), &what)
    });

    sent.unwrap_or_else(|error| panic!("{error}"));
    ends_well(daemon);
}

#[test]
fn malformed_paths_and_queries_are_client_errors() {
    let daemon = daemon();
    let run = daemon.submitted(&json!({"task": "n-queens"}));
    let id = daemon.finished(&run)["id"].as_str().unwrap().to_owned();

    let request = (
        prop::sample::select(PATHS.to_vec()),
        prop::collection::vec(any::<Scratch>(), 0..5),
        any::<bool>(),
    );

    let sent =
        runner(optimised(1_000, 400)).run(&request, |((method, path), scratches, is_other)| {
            let mut path = path.replace("RUN", &id).into_bytes();
            scratches.iter().for_each(|change| scratch(&mut path, change));

            // Only what may stand in a request's first line: the rest is not HTTP.
            let may_stand =
                |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~!$&'()*+,;=:@/?".contains(byte);
            let text: String = path
                .into_iter()
                .map(|byte| {
                    if may_stand(&byte) {
                        char::from(byte).to_string()
                    } else {
                        format!("%{byte:02X}")
                    }
                })
                .collect();

            let target = format!("/{}", text.trim_start_matches('/'));
            let method = if (method == "POST") == is_other { "GET" } else { "POST" };
            let what = format!("{method} {target}");

            let answer = raw(&daemon.address, method, &target);
            let (status, text) =
                answer.map_err(|error| TestCaseError::fail(format!("{error} for {what}")))?;
            check(&what, status, &text)
        });

    sent.unwrap_or_else(|error| panic!("{error}"));
    ends_well(daemon);
}
