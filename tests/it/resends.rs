//! Messages to webhooks that were given up: people see them, with the reasons, and send them again.

use serde_json::{Value, json};

use crate::binary::done;
use crate::daemon::Daemon;
use crate::owners::Keyed;
use crate::webhooks::{next, receiver, webhook};

fn run() -> Value {
    json!({"task": "dfa-simulation"})
}

fn until_given_up(daemon: &Daemon, messages: u64) -> Value {
    let is_so = |body: &Value| body["webhooks"][0]["given_up"] == messages;
    daemon.until("/v1/webhooks", is_so)["webhooks"][0].clone()
}

#[test]
fn what_was_given_up_is_listed_with_the_reason_and_sent_again() {
    // Two messages are refused at all of their four attempts.
    let (url, messages) = receiver(&[500, 500, 500, 500, 500, 500, 500, 500, 204]);
    let daemon = Daemon::start(&[&webhook("ops", &url, ", events=[\"run.ended\"]")]);
    assert_eq!(daemon.get("/v1/webhooks").body["webhooks"][0]["last_failure"], Value::Null);
    daemon.finished(&daemon.submitted(&run()));
    until_given_up(&daemon, 1);
    daemon.finished(&daemon.submitted(&run()));

    let webhook = until_given_up(&daemon, 2);
    assert_eq!((&webhook["name"], &webhook["host"]), (&json!("ops"), &json!("127.0.0.1")));
    assert_eq!((&webhook["events"], &webhook["waiting"]), (&json!(["run.ended"]), &json!(0)));
    let reason = webhook["last_failure"]["reason"].as_str().unwrap();
    assert!(reason.contains("status 500") && !reason.contains('\u{1b}'), "{reason}");

    // Page by page, in the order in which they were written.
    let path = "/v1/webhooks/ops/messages";
    let first = daemon.get(&format!("{path}?limit=1")).body;
    let after = first["next"].as_u64().expect("another page");
    let second = daemon.get(&format!("{path}?limit=1&after={after}")).body;
    assert_eq!(second["next"], Value::Null);
    let message = &first["messages"][0];
    assert_eq!((&message["type"], &message["state"]), (&json!("run.ended"), &json!("given_up")));
    assert_eq!(message["failed_attempts"], 4);
    assert!(
        message["happened_at"].as_str().unwrap()
            < second["messages"][0]["happened_at"].as_str().unwrap()
    );
    assert_eq!(daemon.get(&format!("{path}?state=waiting")).body["messages"], json!([]));
    let attempts: Vec<_> = (0..8).map(|_| next(&messages)).collect();
    assert_eq!(attempts.len(), 8);

    // One by its id, then the rest.
    let id = second["messages"][0]["id"].clone();
    let named = daemon.post_text("/v1/webhooks/ops/resend", &json!({"ids": [id]}).to_string());
    assert_eq!((named.status, &named.body["messages"]), (200, &json!(1)), "{named:?}");
    assert_eq!(next(&messages).verified()["data"]["run"], second["messages"][0]["run"]);
    until_given_up(&daemon, 1);
    let text = done(&["webhooks", "list", "--url", &daemon.url("")]).stdout;
    assert!(text.contains("ops") && text.contains("127.0.0.1"), "{text}");
    let listed =
        done(&["webhooks", "messages", "ops", "--output", "json", "--url", &daemon.url("")]);
    let listed: Value = serde_json::from_str(&listed.stdout).unwrap();
    assert_eq!(listed["messages"][0]["id"], message["id"]);
    let all = done(&["webhooks", "resend", "ops", "--url", &daemon.url("")]);
    assert_eq!((all.code, all.stdout.as_str()), (0, "1 messages to ops are sent again\n"));
    assert_eq!(next(&messages).verified()["data"]["run"], message["run"]);
    until_given_up(&daemon, 0);
    assert_eq!(daemon.post("/v1/webhooks/ops/resend").body["messages"], 0);
}

#[test]
fn requests_about_webhooks_are_checked() {
    let keyed = Keyed::start(
        &[("ada", ""), ("root", ", admin=true")],
        &[&webhook("ops", "http://127.0.0.1:1/", "")],
    );
    for path in ["/v1/webhooks", "/v1/webhooks/ops/messages"] {
        keyed.get("ada", path).refused(403, None, &["admin = true"]);
        assert_eq!(keyed.get("root", path).status, 200, "{path}");
    }
    let resend = |key: &str, name: &str, body: &Value| {
        keyed.post(key, &format!("/v1/webhooks/{name}/resend"), body)
    };
    resend("ada", "ops", &json!({})).refused(403, None, &["admin = true"]);
    resend("root", "other", &json!({})).refused(404, None, &["no webhook \"other\""]);
    resend("root", "ops", &json!({"id": []})).refused(400, Some("id"), &[]);
    resend("root", "ops", &json!({"ids": null})).refused(400, Some("ids"), &["null"]);
    let many = vec!["x"; 1_001];
    resend("root", "ops", &json!({ "ids": many })).refused(400, Some("ids"), &["at most 1000"]);
    keyed.get("root", "/v1/webhooks/ops/messages?state=sent").refused(400, Some("state"), &[]);
    keyed.get("root", "/v1/webhooks/other/messages").refused(404, None, &["other"]);
}
