//! Reloading the configuration by request.

use std::path::PathBuf;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::binary::{prime, shown};
use crate::daemon::{Daemon, Home, long_run};

/// A configuration's file and a folder of definitions, beside the journal.
struct Files {
    home: Arc<Home>,
    file: PathBuf,
    definition: PathBuf,
}

impl Files {
    fn new() -> Self {
        let home = Home::new();
        let folder = home.journal().with_file_name("agents");
        let definition = folder.join("verifier/mine.toml");
        std::fs::create_dir_all(definition.parent().unwrap()).unwrap();

        let files = Self { file: home.journal().with_file_name("prime.toml"), home, definition };
        files.define("[\"format\", \"invariant\"]");
        files.configure(&format!("folder = {:?}", shown(&folder)), "");
        files
    }

    fn define(&self, kinds: &str) {
        std::fs::write(&self.definition, format!("implementation = \"rules\"\nkinds = {kinds}\n"))
            .unwrap();
    }

    fn configure(&self, agents: &str, more: &str) {
        let journal = self.home.journal();
        let text = format!(
            "[agents]\n{agents}\n[agents.executor]\nimplementation = \"reference\"\n\
             [agents.verifier]\nimplementation = \"mine\"\n[server]\nbind = \"127.0.0.1:0\"\n\
             {more}\n[journal]\npath = {:?}\n",
            shown(&journal)
        );
        std::fs::write(&self.file, text).unwrap();
    }

    fn start(&self) -> Daemon {
        Daemon::spawn(prime(&["serve", "--config", shown(&self.file)]), &self.home).unwrap()
    }
}

#[test]
fn a_changed_definition_applies_to_new_runs() {
    let files = Files::new();
    let daemon = files.start();
    let short = json!({"task": "dfa-simulation"});
    let first = daemon.finished(&daemon.submitted(&short));
    assert_eq!(first["checked_kinds"], json!(["format", "invariant"]));

    let long = daemon.submitted(&long_run());
    let before = daemon.until(&long, |record| record["status"] == "running");

    let same = daemon.post("/v1/reload");
    assert_eq!(
        (same.status, &same.body["taken"], &same.body["at_next_start"]),
        (200, &json!([]), &json!([]))
    );

    files.define("[\"format\", \"invariant\", \"terminal\"]");
    let taken = daemon.post("/v1/reload");
    assert_eq!((taken.status, &taken.body["taken"]), (200, &json!(["definitions.verifier.mine"])));
    assert_ne!(taken.body["config_hash"], same.body["config_hash"]);

    let next = daemon.finished(&daemon.submitted(&short));
    assert_eq!(next["checked_kinds"], json!(["format", "invariant", "terminal"]));
    assert_eq!(
        (&next["config_hash"], &first["config_hash"]),
        (&taken.body["config_hash"], &same.body["config_hash"])
    );

    let kept = daemon.get(&long).body;
    for field in ["config_hash", "checked_kinds", "agents"] {
        assert_eq!(kept[field], before[field], "{field}: an open run keeps its configuration");
    }
    daemon.until(&long, |record| record["steps"].as_u64() > kept["steps"].as_u64());
}

#[test]
fn an_error_is_named_and_changes_nothing() {
    let files = Files::new();
    let daemon = files.start();
    let hash = |daemon: &Daemon| {
        daemon.submit(&json!({"task": "dfa-simulation"})).body["config_hash"].clone()
    };
    let before = hash(&daemon);

    files.define("[\"format\", \"invariants\"]");
    daemon.post("/v1/reload").refused(
        422,
        None,
        &[shown(&files.definition), "invariants", "stays as it is"],
    );
    assert_eq!(hash(&daemon), before);

    files.define("[\"format\"]\nkind = 3");
    daemon.post("/v1/reload").refused(422, None, &[shown(&files.definition), "kind"]);

    files.define("[\"format\"]");
    std::fs::write(&files.file, "[agents.executor]\nimplementation = \"scriptd\"\n").unwrap();

    let refused = daemon.post("/v1/reload");
    refused.refused(422, None, &[shown(&files.file), "scriptd", "scripted"]);
    assert_eq!(refused.body["error"]["code"], "configuration_refused");
    assert_eq!(hash(&daemon), before);
}

#[test]
fn changes_that_need_a_restart_are_reported_each_time() {
    let files = Files::new();
    let daemon = files.start();
    let folder = files.definition.parent().unwrap().parent().unwrap();
    files.configure(&format!("folder = {:?}", shown(folder)), "burst = 77\nqueue_max = 3");

    let first = daemon.post("/v1/reload").body;
    assert_eq!(
        (&first["taken"], &first["at_next_start"]),
        (&json!(["server.queue_max"]), &json!(["server.burst"]))
    );
    assert_eq!(daemon.get("/readyz").body["live_runs_max"], 3);

    let second: Value = daemon.post("/v1/reload").body;
    assert_eq!(
        (&second["taken"], &second["at_next_start"]),
        (&json!([]), &json!(["server.burst"]))
    );
    assert_eq!(second["config_hash"], first["config_hash"]);
}

#[test]
fn a_key_is_needed_where_there_are_keys() {
    // SHA-256 of "abc" (FIPS 180-2, appendix B.1).
    let sha256 = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    let daemon = Daemon::start(&[&format!(
        "server.keys=[{{name=\"ci\", sha256=\"{sha256}\", admin=true}}]"
    )]);

    daemon.post("/v1/reload").refused(401, None, &["key"]);
    let asked =
        daemon.client.post(daemon.url("/v1/reload")).header("Authorization", "Bearer abc").send();
    assert_eq!(asked.unwrap().status(), 200);
}
