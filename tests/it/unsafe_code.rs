//! The crates that may use `unsafe`.

use std::fs;
use std::path::{Path, PathBuf};

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
