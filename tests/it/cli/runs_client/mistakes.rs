//! Keys, ids and places that are wrong, and what is said then.

use std::net::TcpListener;

use super::{command, runs, server_of, submitted};
use crate::binary::{Done, done, file, shown};
use crate::daemon::{Daemon, is_over};

#[test]
fn keys_come_from_the_environment_alone() {
    // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let daemon = Daemon::start(&[&format!("server.keys=[{{name=\"ci\", sha256=\"{sha256}\"}}]")]);
    let with_key = |key: &str| -> Done {
        command(&daemon, &["list"]).env("PRIME_API_KEY", key).output().unwrap().into()
    };
    assert_eq!(with_key("abc").code, 0);
    for key in ["", "abd"] {
        let refused = with_key(key);
        refused.failed(&["PRIME_API_KEY", "status 401"]);
        assert!(key.is_empty() || !refused.stderr.contains(key), "the key is not repeated");
    }

    runs(&daemon, &["watch", "run_1"]).failed(&["PRIME_API_KEY", "status 401"]);
    with_key("a c\n").refused(&["PRIME_API_KEY", "visible ASCII"]);
    runs(&daemon, &["list", "--api-key", "abc"]).refused(&["--api-key"]);
}

#[test]
fn runs_that_are_not_there_and_mistakes() {
    let daemon = Daemon::start(&[]);
    let id = submitted(&daemon, &["n-queens"]);
    let prefix = &id[..id.len() - 1];

    for arguments in [
        &["show"][..],
        &["watch"],
        &["trace"],
        &["cancel"],
        &["fork", "--seq", "1"],
        &["verify-chain"],
    ] {
        for unknown in ["run_0", prefix] {
            runs(&daemon, &[arguments, &[unknown]].concat()).failed(&[
                unknown,
                "status 404",
                "no_such_run",
            ]);
        }
        runs(&daemon, &[arguments, &["../gc"]].concat()).refused(&["../gc", "whole id"]);
        runs(&daemon, arguments).refused(&["<ID>"]);
    }

    runs(&daemon, &["submit", "n-quens"]).failed(&[
        "n-quens",
        "did you mean `n-queens`?",
        "status 400",
    ]);
    runs(&daemon, &["submit", "n-queens", "--fanout", "257"]).failed(&["fanout", "256"]);
    runs(&daemon, &["submit", "n-queens", "--temperature", "nan"]).refused(&["--temperature"]);
    runs(&daemon, &["submit"]).refused(&["<TASK>"]);

    let (_folder, path) = file("broken.json", "{");
    runs(&daemon, &["submit", "n-queens", "--input", shown(&path)]).refused(&[
        "--input",
        shown(&path),
        "JSON",
    ]);
    runs(&daemon, &["submit", "n-queens", "--input", "/nowhere.json"])
        .refused(&["/nowhere.json", "cannot be read"]);

    done(&["runs", "list", "--url", "https://localhost"])
        .refused(&["--url https://localhost", "http://HOST:PORT"]);
    done(&["runs", "list", "--set", "server.bind=127.0.0.1:0"]).refused(&["server.bind", "--url"]);
    done(&["runs"]).refused(&["submit", "verify-chain"]);

    assert!(is_over(&daemon.finished(&format!("/v1/runs/{id}"))), "and the daemon goes on");
}

#[test]
fn a_daemon_that_is_gone_or_none_is_named() {
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (url, bind) = (format!("http://{free}"), format!("server.bind={free}"));
    for arguments in [
        &["list"][..],
        &["show", "run_1"],
        &["watch", "run_1"],
        &["trace", "run_1"],
        &["cancel", "run_1"],
        &["gc"],
        &["submit", "n-queens", "--wait"],
    ] {
        for place in [["--url", &url], ["--set", &bind]] {
            done(&[&["runs"], arguments, &place].concat()).failed(&[
                &url,
                "does not answer",
                "prime-agents serve",
            ]);
        }
    }

    let redirect = "302 Found\r\nLocation: http://127.0.0.1:1/";
    for head in ["404 Not Found", "500 Internal Server Error", redirect] {
        let (url, server) = server_of(vec![(head, "<html>".to_owned())]);
        let asked = done(&["runs", "show", "run_1", "--url", &url]);
        asked.failed(&[&url, &head[..3], "is --url right?"]);
        server.join().unwrap();
    }

    for body in ["<html>", "", r#"{"runs": [], "#] {
        let (url, server) = server_of(vec![("200 OK", body.to_owned())]);
        done(&["runs", "list", "--output", "json", "--url", &url])
            .failed(&[&url, "cannot be read"]);
        server.join().unwrap();
    }
}
