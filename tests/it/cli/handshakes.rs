//! Programs and servers that do not answer: found before a run, and by the commands that check.

use serde_json::{Value, json};

use crate::binary::{REFERENCE, done, file, shown};

fn verifier(command: &Value) -> [String; 4] {
    [
        "--set".to_owned(),
        "agents.verifier.implementation=process".to_owned(),
        "--set".to_owned(),
        format!("agents.verifier.program.command={command}"),
    ]
}

/// Commands with a verifier and an executor that needs no model.
fn with(command: &[&str], verifier: &[String]) -> crate::binary::Done {
    let sets: Vec<_> = verifier.iter().map(String::as_str).collect();
    done(&[command, &REFERENCE, &sets].concat())
}

#[test]
fn a_program_that_does_not_start_is_one_message_before_the_run() {
    let missing = verifier(&json!(["python3", "-B", "/nowhere/verifier.py"]));
    let refused = with(&["run", "tower-of-hanoi"], &missing);
    assert_eq!((refused.code, refused.stdout.as_str()), (2, ""), "{}", refused.stderr);
    let errors: Vec<_> = refused.stderr.lines().collect();
    assert_eq!(errors.len(), 1, "one line: {}", refused.stderr);
    assert!(errors[0].contains("verifier `process`"), "{errors:?}");
    assert!(errors[0].contains("/nowhere/verifier.py"), "{errors:?}");
    assert!(!refused.stderr.contains("retrying"), "{}", refused.stderr);
}

#[test]
fn the_checks_start_the_programs_that_are_used() {
    let (_folder, program) =
        file("agent.py", "print('{\"prime\": 1}', flush=True)\ninput()\ninput()\n");
    let good = verifier(&json!(["python3", "-B", shown(&program)]));
    let bad = verifier(&json!(["sh", "-c", "echo hello; read more"]));
    for command in
        [&["agents", "check"][..], &["doctor", "--no-load", "--set", "server.bind=127.0.0.1:0"]]
    {
        let checked = with(command, &good);
        assert_eq!(checked.code, 0, "{}{}", checked.stdout, checked.stderr);
        assert!(checked.stdout.contains("answers the handshake"), "{}", checked.stdout);

        let checked = with(command, &bad);
        assert_eq!(checked.code, 1, "{}{}", checked.stdout, checked.stderr);
        let said = checked.stdout + &checked.stderr;
        assert!(said.contains("verifier `process`") && said.contains("hello"), "{said}");
    }

    // Its section may name a program that no agent runs.
    let unused = ["--set", r#"agents.verifier.program.command=["/nowhere"]"#];
    let checked = done(&[&["agents", "check"][..], &REFERENCE, &unused].concat());
    assert_eq!(checked.code, 0, "{}", checked.stderr);
}

#[test]
fn the_doctor_looks_at_what_the_configuration_uses() {
    let pool = r#"pools.gpu.upstreams=[{url="http://127.0.0.1:9", model="m", concurrent_max=1}]"#;
    let sets = ["--no-load", "--set", "server.bind=127.0.0.1:0", "--set", pool];
    let report = done(&[&["doctor"][..], &sets, &REFERENCE].concat());
    assert_eq!(report.code, 0, "{}", report.stdout);
    assert!(!report.stdout.contains("pool gpu"), "{}", report.stdout);
    assert!(!report.stdout.contains("tiny"), "the reference asks no engine: {}", report.stdout);

    let used =
        ["--set", "agents.executor.implementation=openai", "--set", "agents.executor.pool=gpu"];
    let report = done(&[&["doctor"][..], &sets, &used].concat());
    assert_eq!(report.code, 1, "{}", report.stdout);
    assert!(report.stdout.contains("FAIL  pool gpu"), "{}", report.stdout);
}

#[test]
fn what_commands_find_can_be_read_by_programs() {
    let sets = ["--no-load", "--set", "server.bind=127.0.0.1:0", "--output", "json"];
    let report = done(&[&["doctor"][..], &sets, &REFERENCE].concat()).json(0);
    assert_eq!(report["healthy"], true);
    let port = json!({"what": "port", "ok": true, "detail": "127.0.0.1:0 is free"});
    assert!(report["findings"].as_array().unwrap().contains(&port), "{report}");

    let list = done(&[&["agents", "list", "--output", "json"][..], &REFERENCE].concat()).json(0);
    assert_eq!(
        (&list[0]["role"], &list[0]["configured"]),
        (&json!("executor"), &json!("reference"))
    );
    assert_eq!(list[1]["agents"][0]["name"], "rules");

    let check = done(&[&["agents", "check", "--output", "json"][..], &REFERENCE].concat()).json(0);
    assert_eq!((&check["valid"], &check["findings"]), (&json!(true), &json!([])));

    let valid = done(&["config", "check", "--output", "json"]).json(0);
    assert_eq!(valid["valid"], true);
    assert_eq!(valid["hash"], check_hash());
    let invalid = done(&["config", "check", "--output", "json", "--set", "run.fanout=0"]).json(2);
    assert_eq!(invalid["valid"], false);
    assert!(invalid["error"].as_str().unwrap().contains("run.fanout"), "{invalid}");

    let key = done(&["key", "new", "ci", "--output", "json"]).json(0);
    assert_eq!((&key["name"], &key["admin"]), (&json!("ci"), &json!(false)));
    assert!(key["key"].as_str().unwrap().starts_with("prime_"), "{key}");
}

/// The hash of the default configuration as text has it.
fn check_hash() -> String {
    let text = done(&["config", "check"]).stdout;
    text.trim().rsplit(' ').next().unwrap().to_owned()
}

#[test]
fn a_check_of_the_configuration_refuses_what_a_daemon_would() {
    let check = |sets: &[&str]| {
        let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();
        done(&[&["config", "check"][..], &sets].concat())
    };
    let nightly =
        |request: &str| format!(r#"schedules.nightly={{cron="0 6 * * *",request='{request}'}}"#);
    for (request, part) in [
        (r#"{"task": "bubble-sorr"}"#, "bubble-sorr"),
        (r#"{"task": "bubble-sort", "input": {"n": 3}}"#, "`input`"),
        (r#"{"task": "bubble-sort", "fanout": 0}"#, "`fanout`"),
        (r#"{"task": "bubble-sort", "agents": {"executor": "nobody"}}"#, "`agents.executor`"),
    ] {
        check(&[&nightly(request)]).refused(&["schedules.nightly.request", part]);
    }
    assert_eq!(check(&[&nightly(r#"{"task": "bubble-sort"}"#)]).code, 0);
    let nosuch = nightly(r#"{"task": "nosuch"}"#);
    check(&[&nosuch, "uploads.key_tasks_max=0"]).refused(&["schedules.nightly", "nosuch"]);
    let noted = check(&[&nosuch]);
    assert_eq!(noted.code, 0, "{}", noted.stderr);
    assert!(noted.stderr.contains("must have been uploaded"), "{}", noted.stderr);

    let hook =
        |url: &str| format!(r#"webhooks.ops={{url="{url}", secret_env="PRIME_TEST_UNSET"}}"#);
    check(&[&hook("http://127.0.0.1:9/")]).refused(&["webhooks.ops.url", "allow_private"]);
    let unset = check(&[&hook("https://example.com/")]);
    assert_eq!(unset.code, 0, "{}", unset.stderr);
    assert!(unset.stderr.contains("PRIME_TEST_UNSET, which is not set here"), "{}", unset.stderr);
    check(&["server.bind=0.0.0.0:7433"]).refused(&["server.bind"]);

    let ensemble = "agents.verifier.implementation=ensemble";
    let twice = r#"agents.verifier.ensemble.members=["none","none"]"#;
    check(&[ensemble, twice]).refused(&["two members called `none`"]);
    let split = "agents.split={role=\"verifier\", other=\"process\", share=0.5}";
    check(&[split]).refused(&["agents.split", "`program.command` is empty"]);
    let missing = check(&["server.attestation_key_file=/nowhere/none.pem"]);
    missing.refused(&["server.attestation_key_file", "/nowhere/none.pem"]);
    assert_eq!(missing.stderr.matches("none.pem").count(), 1, "{}", missing.stderr);

    let pool = "pools.mine.upstreams=[{url=\"http://127.0.0.1:9/v1\", model=\"m\", \
                api_key_env=\"PRIME_TEST_UNSET\"}]";
    let asked = ["agents.verifier.implementation=openai", "agents.verifier.pool=mine"];
    let unset = check(&[pool, asked[0], asked[1]]);
    assert_eq!(unset.code, 0, "{}", unset.stderr);
    assert!(unset.stderr.contains("pools.mine.upstreams.api_key_env"), "{}", unset.stderr);
    let many = check(&["server.connections_max=100000"]);
    assert_eq!(many.code, 0, "{}", many.stderr);
}
