//! `doctor` and `config`.

use std::fs;
use std::net::TcpListener;

use prime_engine_testing::TinyModel;
use serde_json::Value;

use crate::binary::{REFERENCE, done, file, shown};

#[test]
fn the_doctor_says_what_was_found_and_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let bind = format!("server.bind={}", taken.local_addr().unwrap());
    let report =
        done(&["doctor", "--set", "engines.tiny.model=/nowhere/model.gguf", "--set", &bind]);
    assert_eq!(report.code, 1, "{}", report.stdout);

    let line = |part: &str| {
        report
            .stdout
            .lines()
            .find(|line| line.contains(part))
            .unwrap_or_else(|| panic!("{part}: {}", report.stdout))
    };

    assert!(line("cpu:").contains("cores"));
    assert!(
        line("engine tiny").starts_with("FAIL")
            && line("engine tiny").contains("/nowhere/model.gguf")
    );
    assert!(line("port:").starts_with("FAIL") && line("port:").contains("server.bind"));

    drop(taken);
    let report =
        done(&["doctor", "--set", "engines.tiny.model=/nowhere/model.gguf", "--set", &bind]);
    assert!(
        report.stdout.lines().any(|line| line.starts_with("ok") && line.contains("port:")),
        "{}",
        report.stdout
    );
}

#[test]
fn the_doctor_says_what_an_engine_would_take_without_loading_it() {
    let folder = tempfile::tempdir().unwrap();
    let model = folder.path().join("tiny.gguf");
    TinyModel::default().write(&model).unwrap();
    let set = format!("engines.tiny.model={}", shown(&model));
    let line = |part: &str| {
        let report =
            done(
                &[
                    &[
                        "doctor",
                        "--no-load",
                        "--set",
                        &set,
                        "--set",
                        "engines.tiny.kv_cache=shared",
                    ][..],
                    &["--set", "engines.tiny.context_tokens=8192"],
                ]
                .concat(),
            );
        let line = report.stdout.lines().find(|line| line.contains(part)).map(str::to_owned);
        line.unwrap_or_else(|| panic!("{part}: {}", report.stdout))
    };

    let account = line("memory for tiny");
    assert!(account.starts_with("ok"), "{account}");
    // Two layers of 64 keys and 64 values, 16 bits: 512 bytes a token. The weights are 115 392
    // numbers of 32 bits.
    for part in ["weights 0.4 MiB mapped from the file", "KV pool of 8192 tokens 4.0 MiB", "free: "]
    {
        assert!(account.contains(part), "{part}: {account}");
    }

    // The same file with a header that claims a million heads: a terabyte of keys and values.
    let mut bytes = fs::read(&model).unwrap();
    let key = b"attention.head_count_kv";
    let at = bytes.windows(key.len()).position(|window| window == key).unwrap() + key.len() + 4;
    bytes[at..at + 4].copy_from_slice(&1_048_576_u32.to_le_bytes());
    fs::write(&model, bytes).unwrap();
    let refused = line("engine tiny");
    assert!(refused.starts_with("FAIL") && refused.contains("does not fit on cpu"), "{refused}");
}

#[test]
fn the_configuration_shown_is_the_configuration_meant() {
    // A relative model in a file starts at that file's folder, so these are absolute.
    let models = [
        "--set",
        "engines.tiny.model=/m/tiny.gguf",
        "--set",
        "engines.big={model=\"/m/a b.gguf\"}",
    ];
    let changed = [&["--set", "run.fanout=3"][..], &models].concat();
    let shown_first = done(&[&["config", "show"][..], &changed, &REFERENCE].concat());
    assert_eq!(shown_first.code, 0, "{}", shown_first.stderr);
    assert!(shown_first.stdout.contains("fanout = 3"));

    let (_folder, path) = file("shown.toml", &shown_first.stdout);
    let shown_again = done(&["config", "show", "--config", shown(&path)]);
    assert_eq!(shown_again.stdout, shown_first.stdout);

    let check = |arguments: &[&str]| done(&[&["config", "check"], arguments].concat());
    let checked = check(&["--config", shown(&path)]);
    assert_eq!(checked.code, 0);
    assert!(checked.stdout.contains("valid"));
    assert_eq!(
        checked.stdout,
        check(&[&changed[..], &REFERENCE].concat()).stdout,
        "the hash is of the values"
    );
    assert_ne!(checked.stdout, check(&[]).stdout);
}

#[test]
fn the_schema_is_json_and_knows_every_section() {
    let schema: Value = done(&["config", "schema"]).json(0);
    for section in ["agents", "engines", "run", "runtime", "server", "log"] {
        assert!(schema["properties"][section].is_object(), "{section}");
    }
    assert!(done(&["config", "schema", "--markdown"]).stdout.contains("run.fanout"));
}

#[test]
fn help_and_version_are_no_mistakes() {
    for arguments in
        [&["--help"][..], &["--version"], &["run", "--help"], &["config", "show", "--help"]]
    {
        let help = done(arguments);
        assert_eq!((help.code, help.stderr.as_str()), (0, ""), "{arguments:?}");
        assert!(!help.stdout.contains("engine-worker"), "the hidden command is hidden");
    }
}
