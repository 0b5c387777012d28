//! The transcripts of docs/http-api.md against the daemon: the answers have the same fields.

use std::fs;
use std::path::Path;

use regex::Regex;
use serde_json::Value;

use crate::daemon::Daemon;
use crate::unsafe_code::rust_files;

/// The rest of the command that starts like this, and the answer that the docs show to it.
fn exchange(command: &str) -> (String, String) {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/http-api.md");
    let text = fs::read_to_string(docs).expect("docs/http-api.md");
    let mut lines = text.lines().skip_while(|line| !line.starts_with(command));

    let shown = lines.next().and_then(|line| line.strip_prefix(command)).zip(lines.next());
    let (rest, answer) = shown.unwrap_or_else(|| panic!("docs/http-api.md has no `{command}`"));
    (rest.to_owned(), answer.to_owned())
}

/// The answer that the docs show to a request.
fn shown(path: &str) -> String {
    exchange(&format!("$ curl -s $U{path}")).1
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
        for (name, value) in
            shown.as_object().expect("an object").iter().filter(|(_, value)| value.is_object())
        {
            assert_eq!(fields(value), fields(&answered[name]), "{path}: {name}");
        }
    }
}

#[test]
fn agents_are_listed_as_the_docs_show() {
    let shown = shown("/v1/agents");

    // The list is cut after its first entry.
    let start = shown.find('[').expect("a list") + 1;
    let mut entries = serde_json::Deserializer::from_str(&shown[start..]).into_iter::<Value>();
    let entry = entries.next().expect("an entry").expect("a whole entry");

    let agents = Daemon::start(&[]).get("/v1/agents").body;
    let listed = agents["agents"].as_array().expect("a list");
    let same = listed
        .iter()
        .find(|agent| agent["name"] == entry["name"])
        .expect("the agent that the docs name");
    assert_eq!((fields(&entry), &entry["description"]), (fields(same), &same["description"]));
}

#[test]
fn steps_are_judged_as_the_docs_show() {
    let daemon = Daemon::start(&[]);
    let (request, shown) = exchange("$ curl -s -d '{\"task\": \"bubble-sort\", \"input\"");

    let (request, path) = request.split_once("' $U").expect("a body and a path");
    let answered =
        daemon.post_text(path, &format!("{{\"task\": \"bubble-sort\", \"input\"{request}")).body;
    assert_eq!(answered, serde_json::from_str::<Value>(&shown).expect("whole JSON"));

    // Which steps of a run are flagged depends on the verifiers and on the seeds of the scripted
    // errors.
    let reviewed = Daemon::start(&[
        "agents.executor.implementation=scripted",
        "agents.verifier.implementation=panel",
    ]);
    let run =
        reviewed.submitted(&serde_json::json!({"task": "bubble-sort", "index": 3, "fanout": 1}));
    reviewed.finished(&run);
    let (_, shown) = exchange("$ curl -s \"$U/v1/runs/run_1a1ff63b154c2d02f2d6290eb7c/reviews");
    let answered = reviewed.get(&format!("{run}/reviews?limit=1")).body;
    assert_eq!(answered, serde_json::from_str::<Value>(&shown).expect("whole JSON"));
}

#[test]
fn every_test_that_the_docs_name_exists() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let docs: String = ["docs/daemon.md", "docs/operations.md"]
        .iter()
        .map(|page| fs::read_to_string(root.join(page)).expect(page))
        .collect();

    let mut files: Vec<_> = ["tests/it", "src", "crates"]
        .iter()
        .flat_map(|folder| rust_files(&root.join(folder)))
        .collect();
    for entry in fs::read_dir(root.join("tests/cluster")).expect("a folder") {
        files.push(entry.expect("an entry").path());
    }

    let named =
        Regex::new(r"`([\w/]+\.(?:rs|py))`:\s+((?:`\w+`(?:,\s+)?)+)").expect("a valid expression");

    let mut count = 0;
    for group in named.captures_iter(&docs) {
        let texts: Vec<_> = files
            .iter()
            .filter(|path| path.ends_with(&group[1]))
            .map(|path| fs::read_to_string(path).expect("a source"))
            .collect();

        for name in group[2].split('`').filter(|name| name.contains('_')) {
            let found = texts.iter().any(|text| {
                [" fn", " def", "\nfn"].iter().any(|word| text.contains(&format!("{word} {name}(")))
            });
            assert!(found, "the docs name the test `{name}` of {}, which is not there", &group[1]);
            count += 1;
        }
    }

    assert!(count > 30, "only {count} tests are named");
}
