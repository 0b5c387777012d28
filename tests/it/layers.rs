//! Dependencies between the modules of the crate point one way.

use std::fs;
use std::path::{Path, PathBuf};

/// Each module with what it may import beside itself.
const MAY_IMPORT: [(&str, &[&str]); 25] = [
    ("backoff", &[]),
    ("http_client", &[]),
    ("shipped_model", &[]),
    ("sse", &[]),
    ("allocations", &[]),
    ("tasks", &[]),
    ("problems", &["tasks"]),
    ("dataset", &["tasks"]),
    ("judge", &["tasks"]),
    ("protocol", &["tasks"]),
    ("engine", &[]),
    ("journal", &[]),
    ("settings", &["tasks", "protocol", "engine"]),
    ("agents", &["tasks", "protocol", "engine", "settings", "backoff", "http_client"]),
    ("runtime", &["tasks", "protocol", "agents"]),
    ("report", &["tasks", "protocol", "agents", "runtime"]),
    ("metrics", &["tasks", "protocol", "engine", "agents", "runtime"]),
    ("telemetry", &["tasks", "protocol", "agents", "runtime"]),
    ("bench", &["tasks", "dataset", "protocol", "agents", "runtime"]),
    ("app", &["tasks", "protocol", "engine", "settings", "agents", "runtime", "report", "bench", "shipped_model"]),
    (
        "runs",
        &[
            "tasks",
            "problems",
            "protocol",
            "agents",
            "runtime",
            "report",
            "metrics",
            "telemetry",
            "bench",
            "app",
            "journal",
        ],
    ),
    (
        "loadtest",
        &[
            "allocations",
            "tasks",
            "protocol",
            "engine",
            "settings",
            "agents",
            "runtime",
            "report",
            "metrics",
            "bench",
            "app",
            "journal",
            "runs",
        ],
    ),
    (
        "daemon",
        &[
            "tasks",
            "problems",
            "judge",
            "protocol",
            "engine",
            "settings",
            "agents",
            "runtime",
            "report",
            "metrics",
            "telemetry",
            "app",
            "journal",
            "runs",
        ],
    ),
    (
        "cli",
        &[
            "backoff",
            "http_client",
            "sse",
            "tasks",
            "problems",
            "dataset",
            "judge",
            "protocol",
            "engine",
            "settings",
            "agents",
            "runtime",
            "report",
            "metrics",
            "telemetry",
            "bench",
            "app",
            "journal",
            "runs",
            "loadtest",
            "daemon",
            "train",
        ],
    ),
    ("train", &["tasks", "agents::prompt", "agents::exact"]),
];

/// What tests of a module may import on top.
const MAY_IMPORT_IN_TESTS: [(&str, &[&str]); 3] =
    [("train", &["engine", "agents", "protocol"]), ("runtime", &["problems"]), ("agents", &["problems", "bench"])];

/// The Rust sources below a folder.
pub fn rust_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder of sources") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            files.extend(rust_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// The code of a line, without a comment.
fn code_of(line: &str) -> &str {
    line.split_once("//").map_or(line, |(code, _)| code)
}

/// The paths below `crate::` that a text names, with its line numbers, from 1. Groups are taken apart.
fn crate_paths(text: &str) -> Vec<(usize, String)> {
    let code: String = text.lines().flat_map(|line| [code_of(line), "\n"]).collect();
    let mut paths = Vec::new();
    for (at, found) in code.match_indices("crate::") {
        if code[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_') {
            continue;
        }
        let line = code[..at].matches('\n').count() + 1;
        let rest = &code[at + found.len()..];
        let Some(group) = rest.strip_prefix('{') else {
            let end = rest.find(|c: char| !c.is_alphanumeric() && c != '_' && c != ':').unwrap_or(rest.len());
            paths.push((line, rest[..end].to_owned()));
            continue;
        };
        // Items of the outer group only: what an inner group holds lies below its item.
        let mut depth = 0;
        let mut item = String::new();
        for c in group.chars() {
            match c {
                '{' => depth += 1,
                '}' if depth == 0 => break,
                '}' => depth -= 1,
                ',' if depth == 0 => paths.push((line, std::mem::take(&mut item))),
                c if depth == 0 && !c.is_whitespace() => item.push(c),
                _ => {}
            }
        }
        if !item.is_empty() {
            paths.push((line, item));
        }
    }
    paths
}

fn is_below(path: &str, allowed: &str) -> bool {
    path.strip_prefix(allowed).is_some_and(|rest| rest.is_empty() || rest.starts_with("::"))
}

fn entry<'a>(table: &[(&str, &'a [&'a str])], module: &str) -> Option<&'a [&'a str]> {
    table.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed)
}

/// What a file of a module imports against the rule.
fn breaches(module: &str, file: &str, text: &str) -> Vec<String> {
    let allowed = entry(&MAY_IMPORT, module).unwrap_or_else(|| {
        panic!("{file}: the module `{module}` has no place in the order: add it to tests/it/layers.rs")
    });
    let is_test_file = file.contains("/tests/") || file.ends_with("/tests.rs") || file.ends_with("/testing.rs");
    let tests_from = text.lines().position(|line| line.trim() == "#[cfg(test)]").map_or(usize::MAX, |line| line + 1);
    let in_tests = entry(&MAY_IMPORT_IN_TESTS, module).unwrap_or_default();
    let mut breaches = Vec::new();
    for (line, path) in crate_paths(text) {
        let also: &[&str] = if is_test_file || line > tests_from { in_tests } else { &[] };
        if !is_below(&path, module) && !allowed.iter().chain(also).any(|allowed| is_below(&path, allowed)) {
            let rule = if allowed.is_empty() { "nothing of the crate".to_owned() } else { allowed.join(", ") };
            breaches.push(format!("{file}:{line}: `{module}` imports `crate::{path}`, but may import only: {rule}"));
        }
    }
    breaches
}

#[test]
fn no_module_imports_upwards() {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut found = Vec::new();
    let mut looked_at = 0;
    for path in rust_files(&source) {
        let relative = path.strip_prefix(&source).expect("below src");
        let first = relative.components().next().expect("a name").as_os_str().to_str().expect("plain names");
        let module = first.trim_end_matches(".rs");
        if matches!(module, "lib" | "main") {
            continue;
        }
        let file = format!("src/{}", relative.display());
        found.extend(breaches(module, &file, &fs::read_to_string(&path).expect("readable")));
        looked_at += 1;
    }
    assert!(looked_at > 80, "only {looked_at} files");
    assert!(found.is_empty(), "imports against the order of the modules:\n{}", found.join("\n"));
}

#[test]
fn breaches_are_found_and_named() {
    let text = "use crate::tasks::Kind;\n\nfn f() -> crate::agents::Names {}\n// crate::cli::x\nuse crate::{\n    app::App,\n    tasks::{TaskRng, Kind},\n};\n";
    let found = breaches("protocol", "src/protocol/x.rs", text);
    assert_eq!(found.len(), 2, "{found:?}");
    for part in ["src/protocol/x.rs:3", "`protocol` imports `crate::agents::Names`", "only: tasks"] {
        assert!(found[0].contains(part), "{part:?} is missing in {:?}", found[0]);
    }
    assert!(found[1].starts_with("src/protocol/x.rs:5: `protocol` imports `crate::app::App`"), "{found:?}");
    let in_tests = "use crate::agents::prompt;\n#[cfg(test)]\nmod tests {\n    use crate::engine::Engine;\n}\n";
    assert_eq!(breaches("train", "src/train/x.rs", in_tests), Vec::<String>::new());
    assert_eq!(breaches("train", "src/train/x.rs", "use crate::agents::Names;\nuse crate::engine::Engine;").len(), 2);
    assert_eq!(breaches("tasks", "src/tasks/x.rs", "use crate::tasks_of::X;").len(), 1);
}
