//! The page, what it needs a key for, the progress of a run, and reports.

use serde_json::{Value, json};

use super::{ERRING, erring, trace};
use crate::daemon::{Daemon, Home, server_sent};

/// SHA-256 of "abc" (FIPS 180-2, appendix B.1), of which the key is the text.
const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn progress_ends_with_the_run_and_its_spec_is_that_of_the_trace() {
    let daemon = Daemon::start(&ERRING);
    let run = daemon.submitted(&erring());

    let events = server_sent(&daemon.text(&format!("{run}/progress")));
    let (last, name, data) = events.last().unwrap();
    let record: Value = serde_json::from_str(data).unwrap();

    let finished = daemon.finished(&run);
    assert_eq!(
        (name.as_str(), &record["status"], json!(last)),
        ("record", &finished["status"], finished["events"].clone())
    );
    assert!(events.is_sorted_by_key(|(seq, ..)| *seq), "{events:?}");
    assert_eq!(daemon.get(&format!("{run}/spec")).body, trace(&daemon, &run)[0]["spec"]);
}

#[test]
fn the_page_needs_no_key_and_what_it_asks_for_does() {
    let home = Home::new();
    let keys = format!(r#"server.keys=[{{name="a",sha256="{ABC}"}}]"#);
    let daemon = Daemon::start_in(&home, &["agents.executor.implementation=reference", &keys]);
    for path in ["/studio/", "/studio/runs/run_1", "/studio/files/studio.js"] {
        let response = daemon.client.get(daemon.url(path)).send().unwrap();
        assert_eq!(response.status(), 200, "{path}");
        let policy = response.headers()["content-security-policy"].to_str().unwrap();
        assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{policy}");
        assert_eq!(response.headers()["x-content-type-options"], "nosniff");
        assert_eq!(response.headers()["cache-control"], "no-cache");
    }

    for path in
        ["/v1/runs", "/v1/runs/x/tree", "/v1/compare?a=x&b=y", "/metrics", "/docs/", "/studiox"]
    {
        daemon.get(path).refused(401, None, &["key"]);
    }

    let response = daemon.client.get(daemon.url("/v1/runs")).bearer_auth("abc").send().unwrap();
    let of_data =
        (response.status().as_u16(), response.headers()["cache-control"].to_str().unwrap());
    assert_eq!(of_data, (200, "no-store"));
}

#[test]
fn reports_are_those_of_the_folder() {
    let home = Home::new();
    let folder = home.journal().with_file_name("reports");
    std::fs::create_dir_all(folder.join("smoke/tables")).unwrap();
    for name in ["smoke/report.html", "smoke/tables/accuracy.csv", "smoke/notes.txt"] {
        std::fs::write(folder.join(name), name).unwrap();
    }

    let daemon = Daemon::start_in(&home, &[&format!("server.reports={}", folder.display())]);
    let list = daemon.get("/v1/reports").body;
    assert_eq!((&list["configured"], &list["has_more"]), (&json!(true), &json!(false)));
    let [report] = list["reports"].as_array().unwrap().as_slice() else { panic!("{list}") };
    assert_eq!((&report["path"], &report["bytes"]), (&json!("smoke/report.html"), &json!(17)));

    assert_eq!(daemon.text("/v1/reports/smoke/report.html"), "smoke/report.html");
    assert_eq!(daemon.text("/v1/reports/smoke/tables/accuracy.csv"), "smoke/tables/accuracy.csv");

    for missing in
        ["smoke/notes.txt", "smoke", "../journal.db", "smoke/%2e%2e/%2e%2e/journal.db", "none.html"]
    {
        daemon.get(&format!("/v1/reports/{missing}")).refused(404, None, &[]);
    }

    std::fs::remove_dir_all(&folder).unwrap();
    daemon.get("/v1/reports").refused(404, None, &["server.reports", "cannot be read"]);

    let other = Daemon::start(&[]);
    assert_eq!(other.get("/v1/reports").body["configured"], false);
    other.get("/v1/reports/smoke/report.html").refused(404, None, &["no report"]);
}
