//! The order of the root package's modules, which no compiler enforces, and the crates that may use
//! `unsafe`.

use std::fs;
use std::path::{Path, PathBuf};

use regex::Regex;

/// Each module, from the bottom up, and the modules that it may import beside itself. `runtime` and
/// `report` are crates that the package re-exports.
const MAY_IMPORT: [(&str, &str); 14] = [
    ("backoff", ""),
    ("http_client", ""),
    ("sse", ""),
    ("settings", ""),
    ("shipped_model", "settings"),
    ("agents", "settings backoff http_client"),
    ("metrics", "agents runtime"),
    ("telemetry", "agents runtime"),
    ("evaluation", "agents runtime http_client"),
    ("app", "settings agents runtime report shipped_model"),
    ("runs", "settings agents runtime report metrics telemetry app"),
    ("loadtest", "settings agents runtime report metrics evaluation app runs"),
    ("daemon", "settings agents runtime report metrics telemetry app runs"),
    (
        "cli",
        "backoff http_client shipped_model sse settings agents runtime report metrics telemetry evaluation app runs \
         loadtest daemon",
    ),
];

/// What tests within a module may import as well: the stub server of a model.
const IN_TESTS: [(&str, &str); 1] = [("agents", "evaluation")];

/// The crates that opt out of the workspace's lint against `unsafe`.
const UNSAFE: [&str; 4] = ["crates/allocator", "crates/cuda", "crates/engine", "crates/kernels"];

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

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

fn allowed<'t>(table: &[(&str, &'t str)], module: &str) -> Option<&'t str> {
    table.iter().find(|(name, _)| *name == module).map(|(_, allowed)| *allowed)
}

/// The imports of a file that the table does not allow; `file` lies below `src`.
fn breaches(file: &str, text: &str) -> Vec<String> {
    let module = file.split('/').next().unwrap_or_default().trim_end_matches(".rs");
    let rule = allowed(&MAY_IMPORT, module)
        .unwrap_or_else(|| panic!("src/{file}: add `{module}` to tests/it/layers.rs"));
    let in_tests = allowed(&IN_TESTS, module).unwrap_or_default();
    let is_test_file = file.contains("/tests/") || file.ends_with("/tests.rs");
    let import = Regex::new(r"\bcrate::(\w+|\{)").expect("a valid expression");
    let mut is_test = is_test_file;
    let mut found = Vec::new();
    for (line, code) in text.lines().enumerate() {
        is_test |= code.trim() == "#[cfg(test)]";
        let code = code.split("//").next().unwrap_or_default();
        for imported in import
            .captures_iter(code)
            .map(|captures| captures.get(1).map_or("", |name| name.as_str()))
        {
            let is_allowed = |rule: &str| rule.split(' ').any(|name| name == imported);
            if imported != module && !is_allowed(rule) && !(is_test && is_allowed(in_tests)) {
                let place = format!("src/{file}:{}", line + 1);
                found.push(format!(
                    "{place}: `{module}` imports `crate::{imported}`, but may import only: {rule}"
                ));
            }
        }
    }
    found
}

#[test]
fn no_module_imports_upwards() {
    let source = root().join("src");
    let mut found = Vec::new();
    let mut count = 0;
    for path in rust_files(&source) {
        let file = path.strip_prefix(&source).expect("below src").to_str().expect("plain names");
        if !["lib.rs", "main.rs"].contains(&file) {
            found.extend(breaches(file, &fs::read_to_string(&path).expect("readable")));
            count += 1;
        }
    }
    assert!(count > 80, "only {count} files");
    assert!(found.is_empty(), "imports against the order of the modules:\n{}", found.join("\n"));
}

#[test]
fn breaches_are_found_and_named() {
    let text = "use prime_settings::Run;\nfn f() -> prime_service::app::App {}\n// crate::cli::x\nuse crate::{cli};\n";
    let found = breaches("metrics/x.rs", text);
    assert_eq!(found.len(), 3, "{found:?}");
    assert!(found[1].contains(
        "src/metrics/x.rs:2: `metrics` imports `prime_service::app`, but may import only: agents runtime"
    ));
    assert!(
        found[2].contains("src/metrics/x.rs:4: `metrics` imports `crate::{`"),
        "groups are not read: name one module"
    );
    let in_tests =
        "use prime_runtime::Run;\n#[cfg(test)]\nmod tests {\n    use prime_stub_server;\n}\n";
    assert_eq!(breaches("agents/x.rs", in_tests).len(), 1);
    assert_eq!(breaches("agents/x/tests.rs", "use prime_stub_server;"), Vec::<String>::new());
}

#[test]
fn only_four_crates_may_use_unsafe() {
    let crates = fs::read_dir(root().join("crates"))
        .expect("the crates")
        .map(|entry| entry.expect("an entry").path());
    for path in crates.chain([root().to_owned()]) {
        let name =
            path.strip_prefix(root()).expect("below the root").to_str().expect("plain names");
        let manifest = fs::read_to_string(path.join("Cargo.toml")).expect("a manifest");
        assert!(
            manifest.contains("[lints]\nworkspace = true"),
            "{name} does not take the workspace's lints"
        );
        if UNSAFE.contains(&name) {
            continue;
        }
        // The lint denies `unsafe` unless it is named in an attribute.
        for file in rust_files(&path.join("src")) {
            let text = fs::read_to_string(&file).expect("readable");
            assert!(
                !text.contains("unsafe_code"),
                "{} opts out of the lint against unsafe",
                file.display()
            );
        }
    }
}
