//! Human review: flagged steps are listed, reviewed, counted, and kept.

use serde_json::{Value, json};

use crate::binary::prime;
use crate::daemon::{Answer, Daemon, long_run, server_sent};

/// Verifiers that disagree on every wrong step, and an executor that makes some.
pub const DISPUTED: [&str; 5] = [
    "agents.executor.implementation=scripted",
    "agents.executor.error_rate=0.4",
    "agents.verifier.implementation=ensemble",
    "agents.verifier.ensemble.members=[\"rules\", \"none\"]",
    "agents.verifier.ensemble.delta=0.0",
];

/// SHA-256 of "abc" (FIPS 180-2, appendix B.1), of which the key is the text.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

pub fn disputed() -> Value {
    json!({"task": "bubble-sort", "index": 3, "fanout": 3, "seed": 5})
}

fn review(daemon: &Daemon, run: &str, body: &Value) -> Answer {
    daemon.post_text(&format!("{run}/reviews"), &body.to_string())
}

/// The numbers of the steps that the run's events flag.
pub fn flagged(daemon: &Daemon, run: &str) -> Vec<u64> {
    let events = server_sent(&daemon.text(&format!("{run}/events")));
    let steps = events
        .into_iter()
        .filter(|(_, name, line)| name == "step" && line.contains(r#""needs_review":true"#));
    steps.map(|(seq, ..)| seq).collect()
}

fn seqs(page: &Value) -> Vec<u64> {
    page["steps"].as_array().unwrap().iter().map(|step| step["seq"].as_u64().unwrap()).collect()
}

fn ids(list: &Value) -> Vec<&str> {
    list["runs"].as_array().unwrap().iter().map(|run| run["id"].as_str().unwrap()).collect()
}

#[test]
fn disputed_steps_are_listed_reviewed_and_counted() {
    let daemon = Daemon::start(&DISPUTED);
    let run = daemon.submitted(&disputed());
    let record = daemon.finished(&run);
    let expected = flagged(&daemon, &run);
    let needed = expected.len() as u64;
    assert!(needed > 3, "{record}");
    assert_eq!(record["reviews"], json!({"needed": needed, "open": needed, "rejected": 0}));

    let whole = daemon.get(&format!("{run}/reviews?limit=1000")).body;
    assert_eq!((seqs(&whole), &whole["next"]), (expected.clone(), &Value::Null));
    for step in whole["steps"].as_array().unwrap() {
        assert!(step["review"].is_null() && step.get("history").is_none(), "{step}");
        assert!(step["action"].is_string() && step["score"].as_f64() > Some(0.0), "{step}");
        let verifiers: Vec<_> =
            step["opinions"].as_array().unwrap().iter().map(|one| &one["verifier"]).collect();
        assert_eq!(verifiers, ["rules", "none"]);
    }

    let mut paged = Vec::new();
    let mut after = 0;
    loop {
        let page = daemon.get(&format!("{run}/reviews?limit=2&after={after}")).body;
        assert!(seqs(&page).len() <= 2);
        paged.extend(seqs(&page));
        match page["next"].as_u64() {
            Some(next) => after = next,
            None => break,
        }
    }
    assert_eq!(paged, expected);

    // The first is accepted, then rejected; the same again changes nothing.
    let first = expected[0];
    let accepted = review(&daemon, &run, &json!({"seq": first, "verdict": "accept"}));
    assert_eq!((accepted.status, &accepted.body["seq"]), (200, &json!(first)));
    assert_eq!(
        (&accepted.body["review"]["verdict"], &accepted.body["review"]["by"]),
        (&json!("accept"), &json!("local"))
    );

    let rejection = json!({"seq": first, "verdict": "reject", "note": "no swap is due"});
    let rejected = review(&daemon, &run, &rejection);
    assert_eq!(rejected.body["review"]["note"], "no swap is due");
    assert_eq!(rejected.body["history"], json!([accepted.body["review"]]));
    assert_eq!(review(&daemon, &run, &rejection).body, rejected.body);

    let counted = daemon.get(&run).body;
    assert_eq!(counted["reviews"], json!({"needed": needed, "open": needed - 1, "rejected": 1}));
    for field in ["status", "verified", "events", "chain", "updated_at"] {
        assert_eq!(counted[field], record[field], "{field}: the run itself stays as it is");
    }

    // What is left is reviewed; then nothing is open.
    let other = daemon.submitted(&disputed());
    daemon.finished(&other);
    let open = |daemon: &Daemon| daemon.get("/v1/runs?needs_review=true").body;
    let names = [&other, &run].map(|run| run.strip_prefix("/v1/runs/").unwrap());
    assert_eq!(ids(&open(&daemon)), names);
    for seq in &expected[1..] {
        assert_eq!(review(&daemon, &run, &json!({"seq": seq, "verdict": "accept"})).status, 200);
    }
    assert_eq!(ids(&open(&daemon)), names[..1]);
    assert_eq!(ids(&daemon.get("/v1/runs").body), names);

    // All of it is durable, and a fork has the flags of what it copies.
    let daemon = Daemon::start_in(&daemon.kill(), &DISPUTED);
    assert_eq!(
        daemon.get(&run).body["reviews"],
        json!({"needed": needed, "open": 0, "rejected": 1})
    );
    let kept = daemon.get(&format!("{run}/reviews")).body;
    assert_eq!(kept["steps"][0], rejected.body);
    let fork = daemon.post(&format!("{run}/fork?seq={}", expected[1])).location.unwrap();
    daemon.finished(&fork);
    let flags = seqs(&daemon.get(&format!("{fork}/reviews?limit=2")).body);
    assert_eq!(flags, expected[..2]);
    assert_eq!(daemon.get(&fork).body["reviews"]["rejected"], 0, "the fork has no reviews");

    let metrics = daemon.text("/metrics");
    assert!(metrics.contains("prime_reviews_needed_total "), "{metrics}");
}

#[test]
fn an_open_run_can_be_reviewed() {
    // Errors are rare enough for the run to survive them until it is cancelled.
    let mut sets = DISPUTED;
    sets[1] = "agents.executor.error_rate=0.05";
    let daemon = Daemon::start(&sets);
    let run = daemon.submitted(&long_run());
    let record = daemon.until(&run, |record| {
        record["status"] == "running" && record["reviews"]["needed"].as_u64() > Some(2)
    });
    assert_eq!(record["reviews"]["rejected"], 0);

    let seq = seqs(&daemon.get(&format!("{run}/reviews?limit=1")).body)[0];
    assert_eq!(review(&daemon, &run, &json!({"seq": seq, "verdict": "reject"})).status, 200);
    let counts = daemon.get(&run).body["reviews"].clone();
    assert_eq!(counts["rejected"], 1, "{counts}");
    assert_eq!(counts["needed"].as_u64().unwrap() - counts["open"].as_u64().unwrap(), 1);

    let listed = daemon.get("/v1/runs?needs_review=true").body;
    assert_eq!(listed["runs"][0]["reviews"]["rejected"], 1);

    // Another process resumes it with its reviews.
    let daemon = Daemon::start_in(&daemon.kill(), &sets);
    assert_eq!(daemon.get(&run).body["reviews"]["rejected"], 1);
    assert_eq!(daemon.post(&format!("{run}/cancel")).status, 200);
    let cancelled = daemon.finished(&run);
    assert_eq!(
        (&cancelled["status"], &cancelled["reviews"]["rejected"]),
        (&json!("cancelled"), &json!(1))
    );
}

#[test]
fn invalid_reviews_are_refused() {
    let daemon = Daemon::start(&DISPUTED);
    let run = daemon.submitted(&disputed());
    let events = daemon.finished(&run)["events"].as_u64().unwrap();
    let seq = seqs(&daemon.get(&format!("{run}/reviews?limit=1")).body)[0];

    for none in [0, 1, events, events + 1, 1 << 40, u64::MAX] {
        let answer = review(&daemon, &run, &json!({"seq": none, "verdict": "accept"}));
        answer.refused(422, Some("seq"), &[&format!("event {none} "), "/reviews lists"]);
    }

    let rows = [
        (json!({"seq": seq, "verdict": "maybe"}), Some("verdict"), "maybe"),
        (json!({"seq": -1, "verdict": "accept"}), Some("seq"), "-1"),
        (json!({"seq": seq, "verdict": "accept", "by": "me"}), Some("by"), "unknown field"),
        (json!({"seq": seq, "verdict": "accept", "note": "x".repeat(4_001)}), Some("note"), "4000"),
        (json!({"verdict": "accept"}), Some("seq"), "seq"),
    ];
    for (body, field, part) in rows {
        review(&daemon, &run, &body).refused(400, field, &[part]);
    }

    let note = "x".repeat(4_000);
    assert_eq!(
        review(&daemon, &run, &json!({"seq": seq, "verdict": "accept", "note": note})).status,
        200
    );

    for limit in [0, 1_001] {
        daemon.get(&format!("{run}/reviews?limit={limit}")).refused(
            400,
            Some("limit"),
            &["1 to 1000"],
        );
    }

    daemon.get(&format!("{run}/reviews?limit=x")).refused(400, Some("limit"), &["query"]);
    daemon.get("/v1/runs/run_x/reviews").refused(404, None, &["run_x"]);
    review(&daemon, "/v1/runs/run_x", &json!({"seq": 1, "verdict": "accept"})).refused(
        404,
        None,
        &["run_x"],
    );

    // A step has only so many reviews, and keeps the last of them.
    for at in 0..98 {
        let verdict = ["accept", "reject"][at % 2];
        assert_eq!(
            review(&daemon, &run, &json!({"seq": seq, "verdict": verdict, "note": at.to_string()}))
                .status,
            200
        );
    }
    assert_eq!(review(&daemon, &run, &json!({"seq": seq, "verdict": "reject"})).status, 200);
    review(&daemon, &run, &json!({"seq": seq, "verdict": "accept"})).refused(
        409,
        None,
        &["100 reviews"],
    );
    assert_eq!(daemon.get(&run).body["reviews"]["rejected"], 1);
}

#[test]
fn a_review_has_the_name_of_its_key_and_runs_are_their_owners() {
    // SHA-256 of FIPS 180-2's second message.
    let (other, message) = (
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
        "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
    );
    let keys = format!(
        "server.keys=[{{name=\"ada\", sha256=\"{ABC}\"}}, {{name=\"bob\", sha256=\"{other}\"}}]"
    );
    let daemon = Daemon::start(&[&DISPUTED[..], &[&keys]].concat());

    let send = |key: &str, path: &str, body: Option<&Value>| -> Answer {
        let authorization = format!("Bearer {key}");
        match body {
            Some(body) => {
                let post =
                    daemon.client.post(daemon.url(path)).header("Authorization", authorization);
                post.header("Content-Type", "application/json")
                    .body(body.to_string())
                    .send()
                    .unwrap()
                    .into()
            }
            None => daemon
                .client
                .get(daemon.url(path))
                .header("Authorization", authorization)
                .send()
                .unwrap()
                .into(),
        }
    };

    let mut record = send("abc", "/v1/runs", Some(&disputed())).body;
    let run = format!("/v1/runs/{}", record["id"].as_str().unwrap());
    while !crate::daemon::is_over(&record) {
        record = send("abc", &run, None).body;
    }

    let reviews = format!("{run}/reviews");
    let seq = seqs(&send("abc", &reviews, None).body)[0];
    let body = json!({"seq": seq, "verdict": "reject"});
    send(message, &reviews, Some(&body)).refused(404, None, &["no run"]);
    send(message, &reviews, None).refused(404, None, &["no run"]);
    daemon.get(&reviews).refused(401, None, &["key"]);
    assert_eq!(send("abc", &reviews, Some(&body)).body["review"]["by"], "ada");
}

#[test]
fn the_client_lists_and_reviews_steps() {
    let daemon = Daemon::start(&DISPUTED);
    let run = daemon.submitted(&disputed());
    daemon.finished(&run);
    let id = run.strip_prefix("/v1/runs/").unwrap();
    let runs = |arguments: &[&str]| -> crate::binary::Done {
        let url = daemon.url("");
        prime(&[&["runs"], arguments, &["--url", &url]].concat()).output().unwrap().into()
    };

    let listed = runs(&["reviews", id, "--limit", "1"]);
    assert_eq!(listed.code, 0, "{}", listed.stderr);
    let page = runs(&["reviews", id, "--output", "json"]).json(0);
    let seq = seqs(&page)[0].to_string();
    for part in [&seq, "rules ", "none 0", "open", "1 step"] {
        assert!(listed.stdout.contains(part), "{part:?} is missing in {}", listed.stdout);
    }
    assert!(listed.stderr.contains(&format!("--after {seq}")), "{}", listed.stderr);

    let said = runs(&["review", id, &seq, "reject", "--note", "it is sorted"]);
    assert_eq!(said.code, 0, "{}", said.stderr);
    assert!(said.stdout.contains("rejected by local: it is sorted"), "{}", said.stdout);

    assert!(runs(&["show", id]).stdout.contains("1 rejected"));
    assert_eq!(ids(&runs(&["list", "--needs-review", "--output", "json"]).json(0)), [id]);
    assert_eq!(runs(&["review", id, &seq, "maybe"]).code, 2);

    let none = runs(&["review", id, "1", "accept"]);
    assert!(none.code == 1 && none.stderr.contains("not_flagged"), "{}", none.stderr);
}
