//! The transcripts of docs/daemon.md against the daemon: the answers have the same fields.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::daemon::Daemon;

/// The answer that the docs show to a request.
fn shown(path: &str) -> String {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/daemon.md");
    let text = fs::read_to_string(docs).expect("docs/daemon.md");
    let command = format!("$ curl -s $U{path}");
    let mut lines = text.lines().skip_while(|line| *line != command).skip(1);
    lines.next().unwrap_or_else(|| panic!("docs/daemon.md has no `{command}`")).to_owned()
}

fn fields(value: &Value) -> Vec<&String> {
    value.as_object().expect("an object").keys().collect()
}

#[test]
fn probes_answer_what_the_docs_show() {
    let daemon = Daemon::start(&[]);
    for path in ["/livez", "/readyz"] {
        let shown: Value = serde_json::from_str(&shown(path)).expect("whole JSON");
        let answered = daemon.get(path).body;
        assert_eq!(fields(&shown), fields(&answered), "{path}");
        for (name, value) in shown.as_object().expect("an object").iter().filter(|(_, value)| value.is_object()) {
            assert_eq!(fields(value), fields(&answered[name]), "{path}: {name}");
        }
    }
}

#[test]
fn agents_are_listed_as_the_docs_show() {
    let shown = shown("/v1/agents");
    // The list is cut after its first entry.
    let (start, end) = (shown.find('[').expect("a list") + 1, shown.find('}').expect("an entry") + 1);
    let entry: Value = serde_json::from_str(&shown[start..end]).expect("a whole entry");
    let agents = Daemon::start(&[]).get("/v1/agents").body;
    let listed = agents["agents"].as_array().expect("a list");
    let same = listed.iter().find(|agent| agent["name"] == entry["name"]).expect("the agent that the docs name");
    assert_eq!((fields(&entry), &entry["description"]), (fields(same), &same["description"]));
}
