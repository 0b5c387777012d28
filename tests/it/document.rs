//! The OpenAPI document against the daemon that serves it.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;

use regex::Regex;

use crate::daemon::Daemon;
use crate::unsafe_code::rust_files;

/// Routes that the document does not describe: the page to read it with, the studio, and the one
/// whose protocol describes itself.
const UNDESCRIBED: [&str; 6] =
    ["/", "/docs", "/docs/{file:.*}", "/studio", "/studio/{path:.*}", "/mcp"];

/// The patterns of all resources, from the sources.
fn resources() -> BTreeSet<String> {
    let resource = Regex::new(r#"resource\(\s*"(/[^"]*)""#).unwrap();
    let mut found = BTreeSet::new();
    for path in rust_files(Path::new("crates/daemon/src")) {
        let text = fs::read_to_string(path).unwrap();
        found.extend(resource.captures_iter(&text).map(|found| found[1].to_owned()));
    }
    found
}

/// A pattern in the document's notation.
fn without_expressions(pattern: &str) -> String {
    Regex::new(r"\{(\w+):[^}]*\}").unwrap().replace_all(pattern, "{$1}").into_owned()
}

/// The status and lower-case headers of the response to a request without a body.
fn asked(daemon: &Daemon, method: &str, path: &str) -> (u16, BTreeMap<String, String>) {
    let mut connection = TcpStream::connect(&daemon.address).unwrap();
    let host = &daemon.address;
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
    );
    connection.write_all(head.as_bytes()).unwrap();

    let mut answer = Vec::new();
    connection.read_to_end(&mut answer).unwrap();
    let answer = String::from_utf8_lossy(&answer);

    let mut lines = answer.lines().take_while(|line| !line.is_empty());
    let status = lines
        .next()
        .and_then(|line| line.split(' ').nth(1))
        .unwrap_or_else(|| panic!("{method} {path}"));

    let headers = lines.filter_map(|line| line.split_once(": "));
    (
        status.parse().unwrap(),
        headers.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect(),
    )
}

#[test]
fn the_document_has_exactly_the_routes_that_are_served() {
    let daemon = Daemon::start(&[]);
    let document = daemon.get("/openapi.json").body;
    let described: BTreeMap<String, BTreeSet<String>> = document["paths"]
        .as_object()
        .unwrap()
        .iter()
        .map(|(path, item)| {
            let methods = item.as_object().unwrap().keys().map(|method| method.to_uppercase());
            (path.clone(), methods.collect())
        })
        .collect();

    let resources = resources();
    let served: BTreeSet<_> = resources
        .iter()
        .filter(|pattern| !UNDESCRIBED.contains(&pattern.as_str()))
        .map(|pattern| without_expressions(pattern))
        .collect();
    assert_eq!(described.keys().cloned().collect::<BTreeSet<_>>(), served);

    let parameter = Regex::new(r"\{\w+\}").unwrap();
    for (path, methods) in &described {
        let example = parameter.replace_all(path, "x");
        for method in ["DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE"] {
            let (status, headers) = asked(&daemon, method, &example);
            let place = format!("{method} {path}");
            assert!(headers.contains_key("x-request-id"), "{place}");
            if methods.contains(method) {
                let said = &document["paths"][path][method.to_lowercase()]["responses"]
                    [status.to_string()];
                assert!(said.is_object(), "{place} answers {status}, which is not described");
                assert_ne!(status, 405, "{place}");
            } else if method == "HEAD" && methods.contains("GET") {
                let (as_get, of_get) = asked(&daemon, "GET", &example);
                assert_eq!(
                    (status, headers.get("content-type")),
                    (as_get, of_get.get("content-type")),
                    "{place}"
                );
            } else {
                let allowed =
                    methods.iter().map(|method| if method == "GET" { "GET, HEAD" } else { method });
                let allowed = allowed.collect::<Vec<_>>().join(", ");
                assert_eq!((status, headers.get("allow")), (405, Some(&allowed)), "{place}");
            }
        }
    }

    for page in ["/", "/docs", "/docs/", "/studio", "/studio/", "/mcp"] {
        asked(&daemon, "GET", page);
    }
    let metrics = daemon.text("/metrics");
    for pattern in resources {
        assert!(
            metrics.contains(&format!("route=\"{pattern}\"")),
            "{pattern} is not counted by its name"
        );
    }
}

#[test]
fn the_page_needs_nothing_from_other_hosts() {
    let daemon = Daemon::start(&[]);
    let (status, headers) = asked(&daemon, "GET", "/docs");
    assert_eq!((status, headers["location"].as_str()), (308, "/docs/"));
    let (_, headers) = asked(&daemon, "GET", "/docs/");
    assert!(headers["content-type"].starts_with("text/html"), "{headers:?}");
    let policy = &headers["content-security-policy"];
    assert!(policy.contains("default-src 'self'") && !policy.contains("http"), "{policy}");

    let page = daemon.text("/docs/");
    let reference = Regex::new(r#"(?:src|href)="([^"]*)""#).unwrap();
    let files: BTreeSet<_> =
        reference.captures_iter(&page).map(|found| found[1].to_owned()).collect();
    assert!(files.len() > 4, "{files:?}");
    for file in &files {
        assert!(!file.contains("//"), "{file} is elsewhere");
        let (status, headers) =
            asked(&daemon, "GET", &format!("/docs/{}", file.trim_start_matches("./")));
        assert_eq!((status, &headers["content-security-policy"]), (200, policy), "{file}");
    }
    let start = daemon.text("/docs/swagger-initializer.js");
    assert!(start.contains(r#""url": "/openapi.json""#), "{start}");
    assert!(
        start.contains(r#""validatorUrl": "none""#),
        "a validator would be asked elsewhere: {start}"
    );
    assert_eq!(asked(&daemon, "GET", "/docs/other.js").0, 404);
}

/// A request's status, content type and body.
fn scraped(daemon: &Daemon, accept: &str) -> (String, String) {
    let response =
        daemon.client.get(daemon.url("/metrics")).header("Accept", accept).send().unwrap();
    let content_type = response.headers()["content-type"].to_str().unwrap().to_owned();
    (content_type, response.text().unwrap())
}

#[test]
fn metrics_have_the_format_that_is_asked_for_and_every_series_of_the_board() {
    let daemon = Daemon::start(&[]);
    let (content_type, text) = scraped(&daemon, "*/*");
    assert_eq!(content_type, "text/plain; version=0.0.4; charset=utf-8");
    assert!(
        text.contains("\n# TYPE prime_runs_total counter\n") && !text.contains("# EOF"),
        "{text}"
    );

    let (content_type, open) = scraped(&daemon, "application/openmetrics-text; version=1.0.0");
    assert_eq!(content_type, "application/openmetrics-text; version=1.0.0; charset=utf-8");
    assert!(open.contains("\n# TYPE prime_runs counter\n") && open.ends_with("# EOF\n"), "{open}");

    let samples: BTreeSet<_> =
        text.lines().filter_map(|line| line.split(['{', ' ']).next()).collect();
    let board = fs::read_to_string("config/grafana.json").unwrap();
    let name = Regex::new(r"\b(?:prime|process)_[a-z0-9_]+\{").unwrap();
    let asked: BTreeSet<_> =
        name.find_iter(&board).map(|found| found.as_str().trim_end_matches('{')).collect();
    assert!(asked.len() > 20, "{asked:?}");
    // This daemon has no engine, no GPU, no webhook, and no other daemon at its journal.
    let of_others = ["prime_engine_", "prime_gpu_", "prime_cluster_", "prime_webhook_"];
    let absent = |name: &&&str| !of_others.iter().any(|prefix| name.starts_with(prefix));
    let missing: Vec<_> =
        asked.iter().filter(absent).filter(|name| !samples.contains(**name)).collect();
    assert!(missing.is_empty(), "{missing:?} have no series before their first event");
}
