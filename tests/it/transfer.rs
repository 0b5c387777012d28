//! Runs that leave a daemon and come to another, with their chains; and what is no whole bundle.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use crate::binary::{done, shown};
use crate::daemon::{Answer, Daemon, long_run};
use crate::owners::Keyed;

fn hex(bytes: &[u8]) -> String {
    let mut text = String::new();
    bytes.iter().for_each(|byte| write!(text, "{byte:02x}").unwrap());
    text
}

/// A run of this daemon that is over: its id and its bundle.
fn exported(daemon: &Daemon, request: &Value) -> (String, String) {
    let record = daemon.finished(&daemon.submitted(request));
    let id = record["id"].as_str().unwrap().to_owned();
    let bundle = daemon.text(&format!("/v1/runs/{id}/export"));
    (id, bundle)
}

fn import(daemon: &Daemon, bundle: &str) -> Answer {
    daemon.post_text("/v1/runs/import", bundle)
}

/// The bundle with another head, spec and events, as somebody would forge it who knows how chains
/// are computed.
fn forged(
    bundle: &str,
    head: impl FnOnce(&mut Value),
    record: impl Fn(u64, String) -> String,
) -> String {
    let lines: Vec<&str> = bundle.lines().collect();
    let (first, records) = (lines[0], &lines[1..lines.len() - 1]);
    let mut hash = Vec::new();
    let mut body = String::new();
    for (seq, line) in (0_u64..).zip(records) {
        let start = format!("{{\"seq\":{seq},\"chain\":\"");
        let content = &line[start.len() + 64 + 2..];
        let content = record(seq, content.to_owned());
        hash = if seq == 0 {
            let spec = content.split_once("\"spec\":").unwrap().1.strip_suffix('}').unwrap();
            Sha256::digest(spec).to_vec()
        } else {
            Sha256::digest([&hash[..], b"{", content.as_bytes()].concat()).to_vec()
        };
        body += &format!("{start}{}\",{content}\n", hex(&hash));
    }

    let mut first: Value = serde_json::from_str(first).unwrap();
    first["chain"] = json!(hex(&hash));
    head(&mut first);
    let text = format!("{first}\n{body}");
    let end = json!({"end": "prime-agents.run", "sha256": hex(&Sha256::digest(&text))});
    format!("{text}{end}\n")
}

fn same(_: u64, content: String) -> String {
    content
}

#[test]
fn a_run_comes_to_another_daemon_with_its_records_and_its_chain() {
    let folder = tempfile::tempdir().unwrap();
    let at = |name: &str| shown(&folder.path().join(name)).to_owned();
    let key = at("key.pem");
    let public = done(&["attest", "key", &key, "--output", "json"]).json(0)["public_key"].clone();

    let here = Daemon::start(&[]);
    let request = json!({"task": "n-queens", "index": 3, "labels": {"team": "red"}});
    let (id, bundle) = exported(&here, &request);
    let path = format!("/v1/runs/{id}");
    let (record, trace) = (here.get(&path).body, here.text(&format!("{path}/trace")));
    let file = at("run.jsonl");
    let exported = done(&["runs", "export", &id, "--out", &file, "--url", &here.url("")]);
    assert_eq!((exported.code, exported.stderr.as_str()), (0, ""));
    let written = fs::read_to_string(&file).unwrap();
    let body = |text: &str| text.lines().skip(1).take(3).map(str::to_owned).collect::<Vec<_>>();
    assert_eq!(body(&written), body(&bundle), "the file is what the route sends");
    drop(here);

    let there = Daemon::start(&[&format!("server.attestation_key_file={key}")]);
    let url = there.url("");
    let imported = done(&["runs", "import", &file, "--url", &url]);
    assert_eq!((imported.code, imported.stdout.trim_end()), (0, id.as_str()));

    let mut arrived = there.get(&path).body;
    let mark = arrived["imported"].take();
    assert_eq!((&mark["run"], mark["node"].is_string()), (&json!(id), true), "{mark}");
    let fields = arrived.as_object_mut().unwrap();
    fields.remove("imported");
    fields.insert("updated_at".to_owned(), record["updated_at"].clone());
    assert_eq!(arrived, record);
    assert_eq!(there.text(&format!("{path}/trace")), trace);
    assert_eq!(done(&["runs", "verify-chain", &id, "--url", &url]).code, 0);
    let shown_run = done(&["runs", "show", &id, "--url", &url]).stdout;
    assert!(shown_run.contains("not judged here"), "{shown_run}");

    // Once more, as a client does that got no answer.
    let again = import(&there, &written);
    assert_eq!((again.status, &again.body["id"]), (200, &json!(id)), "{again:?}");

    // It is attested as what it is here, and leaves again with its origin.
    let (statement, public) = (at("statement.json"), public.as_str().unwrap().to_owned());
    let attested = done(&["runs", "attest", &id, "--out", &statement, "--url", &url]);
    assert_eq!(attested.code, 0, "{}", attested.stderr);
    let verify = ["attest", "verify", &statement, "--key", &public, "--output", "json"];
    assert_eq!(done(&verify).json(0)["record"]["imported"], mark);
    let onward = there.text(&format!("{path}/export"));
    let head: Value = serde_json::from_str(onward.lines().next().unwrap()).unwrap();
    assert_eq!((&head["node"], &head["labels"]), (&mark["node"], &json!({"team": "red"})));

    // A fork would take over verdicts that nobody here has given.
    there.post(&format!("{path}/fork?seq=3")).refused(409, None, &["imported", "retry"]);
}

#[test]
fn a_bundle_that_is_not_whole_is_refused_with_its_record() {
    let here = Daemon::start(&[]);
    let (id, bundle) = exported(&here, &json!({"task": "n-queens", "index": 0, "fanout": 1}));
    here.get("/v1/runs/run_0/export").refused(404, None, &["run_0"]);
    let open = here.submitted(&long_run());
    here.get(&format!("{open}/export")).refused(409, None, &["is not over"]);
    here.get(&format!("/v1/runs/{id}/export?as=pdf")).refused(400, Some("as"), &["bundle"]);
    here.get(&format!("/v1/runs/{id}/export?content=true")).refused(
        400,
        Some("content"),
        &["as=otel"],
    );
    drop(here);

    let there = Daemon::start(&[]);
    let lines: Vec<&str> = bundle.split_inclusive('\n').collect();
    let last = lines.len() - 3;
    let changed = lines[2].replace("started", "stirred");
    let text = [&lines[..2].concat(), &changed, &lines[3..].concat()].map(String::as_str).concat();
    for (text, parts) in [
        (text, vec!["record 1 of the bundle is broken", "the chain leads to"]),
        (lines[..4].concat(), vec!["ends after record 2 of", "cut off"]),
        (lines[..lines.len() - 1].concat(), vec!["cut off"]),
        ([lines[0], lines[1], lines[3]].concat(), vec!["record 1 of the bundle is broken"]),
        (bundle.replacen("\"version\":1", "\"version\":7", 1), vec!["version 7", "up to 1"]),
        (bundle.replacen("\"resumed\":0", "\"resumed\":1", 1), vec!["digest at the end"]),
        ("\u{1f}\u{8b}".to_owned(), vec!["no bundle", "runs export"]),
        ("{}".to_owned(), vec!["no bundle"]),
        (String::new(), vec!["no bundle"]),
    ] {
        import(&there, &text).refused(422, None, &parts);
    }

    // What only somebody can have made who computes chains.
    let head = |_: &mut Value| ();
    let finished = |seq: u64, content: String| {
        if seq == last as u64 { content.replace("\"answer\":", "\"other\":") } else { content }
    };
    let wider = |seq: u64, content: String| {
        let wide = content.replacen("\"fanout\":1", "\"fanout\":4000000000", 1);
        if seq == 0 { wide } else { content }
    };
    let line = |seq: u64, content: String| {
        if seq == 2 { content.replacen("\"action\":\"", "\"action\":\"x", 1) } else { content }
    };
    let second = |from: &'static str, to: String| {
        move |seq: u64, content: String| {
            if seq == 2 { content.replacen(from, &to, 1) } else { content }
        }
    };
    let unmarked = |seq: u64, content: String| {
        if seq != last as u64 {
            return content;
        }
        content.replacen("\"assurance\":\"verified\",", "", 1).replace("\"answer\":", "\"x\":")
    };
    let labelled = |seq: u64, content: String| {
        let named = content.replacen("\"notes\":[", "\"labels\":{\"a b\":\"\"},\"notes\":[", 1);
        if seq == 0 { named } else { content }
    };
    let deep = format!("\"depth\":0,\"x\":{}{}", "[".repeat(500), "]".repeat(500));
    for (text, parts) in [
        (forged(&bundle, head, unmarked), vec!["the answer or its verdict is not"]),
        (forged(&bundle, head, second("\"depth\":0", "\"depth\":7".to_owned())), vec!["its depth"]),
        (forged(&bundle, head, second("\"step\"", "\"leap\"".to_owned())), vec!["does not know"]),
        (
            forged(&bundle, head, second("\"step\"", "\"finished\"".to_owned())),
            vec!["follow the end"],
        ),
        (forged(&bundle, head, second("\"depth\":0", deep)), vec!["recursion limit"]),
        (forged(&bundle, head, labelled), vec!["record 0", "not a name for a label"]),
        (forged(&bundle, |head| head["created_ms"] = json!(1), same), vec!["1970", "before"]),
        (forged(&bundle, |head| head["node"] = json!("x".repeat(2_000)), same), vec!["`node`"]),
        (forged(&bundle, head, finished), vec!["the answer or its verdict is not"]),
        (forged(&bundle, head, wider), vec!["record 0", "4000000000 trajectories side by side"]),
        (forged(&bundle, head, line), vec!["record 2 of the bundle is broken"]),
        (forged(&bundle, |head| head["status"] = json!("unverified"), same), vec!["say verified"]),
        (forged(&bundle, |head| head["status"] = json!("running"), same), vec!["not over"]),
        (forged(&bundle, |head| head["created_ms"] = json!(u64::MAX / 2), same), vec!["to come"]),
        (forged(&bundle, |head| head["labels"] = json!({"a b": "c"}), same), vec!["label"]),
    ] {
        import(&there, &text).refused(422, None, &parts);
    }
    assert_eq!(there.get("/v1/runs").body["runs"], json!([]), "nothing of it stays");

    // The bundle itself is in order, and another run does not take its place.
    assert_eq!(import(&there, &bundle).status, 201);
    let other = |seq: u64, content: String| {
        let noted = content.replacen("\"notes\":[", "\"notes\":[\"forged\",", 1);
        if seq == 0 { noted } else { content }
    };
    import(&there, &forged(&bundle, |_| (), other)).refused(409, None, &[&id, "other content"]);
    let kept = there.text(&format!("/v1/runs/{id}/export"));
    assert_eq!(kept.lines().nth(1), bundle.lines().nth(1), "the first one stays");
}

#[test]
fn an_import_is_bounded_and_needs_an_admins_key() {
    let here = Daemon::start(&[]);
    let (id, bundle) = exported(&here, &json!({"task": "n-queens", "index": 0}));
    drop(here);

    let small = Daemon::start(&["server.import_bytes_max=1024"]);
    import(&small, &bundle).refused(413, None, &["1024", "server.import_bytes_max"]);
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("bundle.jsonl");
    fs::write(&file, &bundle).unwrap();
    let refused = done(&["runs", "import", shown(&file), "--url", &small.url("")]);
    assert!(refused.code == 1 && refused.stderr.contains("import_bytes_max"), "{}", refused.stderr);
    done(&["runs", "import", shown(Path::new("/no/such/file")), "--url", &small.url("")])
        .refused(&["/no/such/file"]);
    drop(small);

    let keyed = Keyed::start(&[("ada", ""), ("root", ", admin=true")], &[]);
    let post = |key: &str| -> Answer {
        let request = keyed.daemon.client.post(keyed.daemon.url("/v1/runs/import"));
        request.bearer_auth(key).body(bundle.clone()).send().unwrap().into()
    };
    post("ada").refused(403, None, &["admin = true"]);
    assert_eq!(post("root").status, 201);
    let path = format!("/v1/runs/{id}");
    keyed.get("ada", &path).refused(404, None, &[&id]);
    assert_eq!(keyed.get("root", &path).body["id"], json!(id));
}

#[test]
fn an_imported_run_brings_no_agents() {
    let here = Daemon::start(&[]);
    let (id, bundle) = exported(&here, &json!({"task": "n-queens", "index": 0, "fanout": 1}));
    drop(here);
    let folder = tempfile::tempdir().unwrap();
    let trap = folder.path().join("trap");

    // Its recorded executor is a program of the forger's.
    let program = json!({
        "command": ["touch", shown(&trap)], "processes": 1, "timeout_ms": 1000,
        "start_timeout_ms": 1000, "line_bytes_max": 1000, "restarts_max": 1,
        "restart_window_ms": 1000, "pass_env": [],
    });
    let own = r#"{"name":"reference","agents":{"reference":{"implementation":"reference"}}}"#;
    let theirs = json!({"name": "process", "agents": {"process": {
        "implementation": "process", "options": {"program": program},
    }}});
    let forger = |seq: u64, content: String| {
        if seq > 0 {
            return content;
        }
        assert!(content.contains(own), "{content}");
        let content = content.replace(own, &theirs.to_string());
        content.replace("\"executor\":\"reference\"", "\"executor\":\"process\"")
    };
    let there = Daemon::start(&[]);
    let arrived = import(&there, &forged(&bundle, |_| (), forger));
    assert_eq!(arrived.status, 201, "{arrived:?}");
    assert_eq!(arrived.body["agents"]["executor"], "process");

    let path = format!("/v1/runs/{id}");
    let retry = there.post_text(&format!("{path}/retry"), r#"{"force": true}"#);
    assert_eq!(retry.status, 202, "{retry:?}");
    let record = there.finished(retry.location.as_deref().unwrap());
    assert_eq!(record["agents"]["executor"], "reference", "{record}");
    assert_eq!(record["status"], "verified", "{record}");
    let turn = there.post_text(&format!("{path}/steps/2/try"), r#"{"role": "executor"}"#);
    assert_eq!(turn.body["agents"]["executor"], "reference", "{turn:?}");
    assert!(!trap.exists(), "no program of the bundle was started");
}

#[test]
fn a_run_leaves_as_spans_and_as_a_row() {
    let folder = tempfile::tempdir().unwrap();
    let out = shown(&folder.path().join("bench")).to_owned();
    let daemon = Daemon::start(&[]);
    let request = json!({"task": "n-queens", "index": 3, "fanout": 1});
    let record = daemon.finished(&daemon.submitted(&request));
    let id = record["id"].as_str().unwrap();

    let spans_of = |query: &str| -> Vec<Value> {
        let text = daemon.text(&format!("/v1/runs/{id}/export?as=otel{query}"));
        let requests = text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let spans = requests.map(|request| {
            let scope = &request["resourceSpans"][0]["scopeSpans"][0];
            scope["spans"].as_array().unwrap().clone()
        });
        spans.flatten().collect()
    };
    let spans = spans_of("");
    let (root, steps) = spans.split_first().unwrap();
    assert_eq!(root["name"], "invoke_workflow prime");
    assert_eq!(json!(steps.len()), record["proposals"]);
    let attribute = |span: &Value, key: &str| -> Value {
        let all = span["attributes"].as_array().unwrap();
        all.iter().find(|one| one["key"] == key).map_or(Value::Null, |one| one["value"].clone())
    };
    for span in steps {
        assert_eq!((&span["traceId"], &span["parentSpanId"]), (&root["traceId"], &root["spanId"]));
        assert_eq!(span["traceId"].as_str().map(str::len), Some(32));
        assert_eq!(span["spanId"].as_str().map(str::len), Some(16));
        let name = attribute(span, "gen_ai.operation.name");
        assert_eq!(name, json!({"stringValue": "invoke_agent"}));
        assert_eq!(span["events"][0]["name"], "gen_ai.evaluation.result");
    }
    assert_eq!(attribute(&steps[0], "gen_ai.output.messages"), Value::Null, "only when asked");
    let told = attribute(&spans_of("&content=true")[1], "gen_ai.output.messages");
    assert!(told["stringValue"].as_str().unwrap().contains("place"), "{told}");

    let row: Value =
        serde_json::from_str(&daemon.text(&format!("/v1/runs/{id}/export?as=dataset"))).unwrap();
    let arguments = ["bench", "export", "--task", "n-queens", "--difficulty", "easy"];
    let more = ["--instances", "4", "--format", "jsonl", "--out", &out];
    let made = done(&[&arguments[..], &more].concat());
    assert_eq!(made.code, 0, "{}", made.stderr);
    let file = folder.path().join("bench/data/n-queens/easy.jsonl");
    let expected = fs::read_to_string(file).unwrap();
    let expected: Value = serde_json::from_str(expected.lines().nth(3).unwrap()).unwrap();
    for (column, value) in expected.as_object().unwrap() {
        assert_eq!(&row[column], value, "{column}");
    }
    assert_eq!((&row["run"], &row["status"]), (&json!(id), &json!("verified")));
    let actions = row["actions"].as_array().unwrap();
    assert_eq!(json!(actions.len()), record["steps"], "{row}");
}

#[test]
fn an_overview_counts_imported_runs_apart() {
    let here = Daemon::start(&[]);
    let (_, bundle) = exported(&here, &json!({"task": "n-queens", "index": 1, "fanout": 1}));
    drop(here);

    let there = Daemon::start(&[]);
    there.finished(&there.submitted(&json!({"task": "bubble-sort", "fanout": 1})));
    assert_eq!(import(&there, &bundle).status, 201);
    let is_noted = |body: &Value| body["total"]["imported"] == 1 && body["total"]["open"] == 0;
    let overview = there.until("/v1/overview", is_noted);
    let total = &overview["total"];
    assert_eq!((&total["runs"], &total["verified"]), (&json!(1), &json!(1)), "{total}");
    let task = |name: &str| {
        let tasks = overview["tasks"].as_array().unwrap();
        let task = tasks.iter().find(|task| task["name"] == name).unwrap();
        (task["runs"].clone(), task["imported"].clone(), task["steps"].clone())
    };
    assert_eq!(task("n-queens"), (json!(0), json!(1), json!(0)));
    assert_eq!((task("bubble-sort").0, task("bubble-sort").1), (json!(1), json!(0)));
    assert_eq!(overview["models"].to_string().matches("imported)").count(), 0);
    let text = done(&["runs", "overview", "--url", &there.url("")]).stdout;
    assert!(text.contains("1 imported"), "{text}");
}

/// JSON takes many times its size once it is read: a record of 16 MB would take hundreds.
#[test]
fn a_record_that_would_fill_the_memory_is_refused() {
    let here = Daemon::start(&[]);
    let (_, bundle) = exported(&here, &json!({"task": "n-queens", "index": 0, "fanout": 1}));
    drop(here);
    let there = Daemon::start(&[]);
    let large = |of: u64| {
        move |seq: u64, content: String| {
            let zeros = "0,".repeat(8_000_000);
            let longer = format!("{},\"x\":[{zeros}0]}}", content.strip_suffix('}').unwrap());
            if seq == of { longer } else { content }
        }
    };
    for record in [1, 2] {
        let refused = import(&there, &forged(&bundle, |_| (), large(record)));
        let part = format!("record {record} of the bundle has 160");
        refused.refused(413, None, &[&part, "at most 8388608", "server.body_bytes_max"]);
        assert_eq!(refused.body["error"]["code"], "record_too_large");
    }
    assert_eq!(import(&there, &bundle).status, 201);
}
