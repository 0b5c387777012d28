//! The deployment files: systemd's unit and the container images.

use std::collections::BTreeMap;
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use regex::Regex;

use crate::unsafe_code::rust_files;

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).expect(path)
}

/// The settings of a unit, by section. Keys may repeat.
fn unit(text: &str) -> BTreeMap<String, Vec<(String, String)>> {
    let mut sections: BTreeMap<String, Vec<(String, String)>> = BTreeMap::new();
    let mut current = String::new();
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(section) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section.clone_into(&mut current);
            continue;
        }
        let (key, value) =
            line.split_once('=').unwrap_or_else(|| panic!("{line:?} is not a setting"));
        assert!(key.chars().all(|c| c.is_ascii_alphanumeric()), "{line:?}");
        sections.entry(current.clone()).or_default().push((key.to_owned(), value.to_owned()));
    }
    sections
}

#[test]
fn the_unit_notifies_restarts_and_is_confined() {
    let unit = unit(&read("config/prime-agents.service"));
    assert_eq!(unit.keys().collect::<Vec<_>>(), ["Install", "Service", "Unit"]);
    let service = &unit["Service"];
    let value = |key: &str| {
        let found = service.iter().find(|(found, _)| found == key);
        found.unwrap_or_else(|| panic!("{key} is missing")).1.as_str()
    };
    let rows = [
        ("Type", "notify"),
        ("Restart", "on-failure"),
        ("DynamicUser", "yes"),
        ("NoNewPrivileges", "yes"),
        ("ProtectSystem", "strict"),
        ("PrivateTmp", "yes"),
        ("DevicePolicy", "closed"),
        ("ExecReload", "/bin/kill -HUP $MAINPID"),
    ];

    for (key, expected) in rows {
        assert_eq!(value(key), expected, "{key}");
    }

    assert!(value("ExecStart").contains("prime-agents serve"));
    assert!(value("StateDirectory").split(' ').any(|folder| folder == "prime-agents"));
    assert!(value("TimeoutStopSec").parse::<u32>().unwrap() > 5);
    assert!(value("WatchdogSec").parse::<u32>().unwrap() > 1);

    // What would hide the GPUs.
    assert!(
        service.iter().all(|(key, _)| key != "PrivateDevices" && key != "ProtectKernelTunables")
    );
}

#[test]
fn systemd_accepts_the_unit() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("prime-agents.service");

    // It looks for the executable.
    let text = read("config/prime-agents.service");
    fs::write(
        &path,
        text.replace("/opt/prime-agents/bin/prime-agents", env!("CARGO_BIN_EXE_prime-agents")),
    )
    .unwrap();

    let output = match Command::new("systemd-analyze").arg("verify").arg(&path).output() {
        Ok(output) => output,
        Err(error) if error.kind() == ErrorKind::NotFound => {
            eprintln!("skipped: systemd-analyze is not installed");
            return;
        }
        Err(error) => panic!("{error}"),
    };

    let found = String::from_utf8_lossy(&output.stderr);
    let found: Vec<_> =
        found.lines().filter(|line| line.contains("prime-agents.service")).collect();
    assert!(found.is_empty() && output.status.success(), "{found:?}");
}

#[test]
fn the_readme_of_agents_names_every_template_and_definition() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let readme = read("agents/README.md");
    let mut count = 0;
    for role in ["executor", "verifier", "coordinator"] {
        for entry in fs::read_dir(root.join("agents").join(role)).expect(role) {
            let name = entry.expect("an entry").file_name().into_string().expect("a plain name");
            assert!(
                readme.contains(&format!("`{role}/{name}`")),
                "agents/README.md does not name {role}/{name}"
            );
            count += 1;
        }
    }
    assert!(count >= 12, "{count} files");
}

/// The instructions of a Dockerfile with their continuations, without comments.
fn instructions(text: &str) -> Vec<String> {
    let mut instructions = Vec::new();
    let mut open = String::new();
    for line in
        text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#'))
    {
        open += line.trim_end_matches('\\');
        if line.ends_with('\\') {
            open += " ";
        } else {
            instructions.push(std::mem::take(&mut open));
        }
    }
    instructions
}

#[test]
fn the_images_copy_what_there_is_and_run_without_rights() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for path in ["config/Dockerfile", "config/Dockerfile.cuda"] {
        let instructions = instructions(&read(path));
        let of = |word: &str| {
            let prefix = format!("{word} ");
            instructions
                .iter()
                .filter_map(|line| line.strip_prefix(&prefix).map(str::to_owned))
                .collect::<Vec<_>>()
        };

        let mut copied = 0;
        for copy in of("COPY").iter().filter(|copy| !copy.contains("--from=")) {
            let mut words: Vec<&str> =
                copy.split_whitespace().filter(|word| !word.starts_with("--")).collect();
            words.pop();
            for source in words {
                assert!(root.join(source).exists(), "{path} copies {source}, which is not there");
                copied += 1;
            }
        }
        assert!(copied >= 5, "{path}: {copied} paths");

        assert_eq!(of("FROM").len(), 2, "{path}: one stage builds, one runs");
        assert_eq!(of("USER"), ["10001:10001"], "{path}");
        assert_eq!(of("VOLUME"), ["/data"], "{path}");
        let health = of("HEALTHCHECK").concat();
        assert!(
            health.contains("CMD") && health.contains("prime-agents\", \"health\""),
            "{path}: {health}"
        );
        assert_eq!(of("ENTRYPOINT"), ["[\"/opt/prime-agents/bin/prime-agents\"]"], "{path}");

        let build = of("RUN").concat();
        assert!(build.contains("cargo build --release --locked"), "{path}");
        assert_eq!(build.contains("--features cuda"), path.ends_with("cuda"), "{path}");

        // What `scripts/setup` asks for.
        for package in ["cmake", "g++", "make", "libclang-dev"] {
            assert!(build.contains(&format!(" {package}")), "{path} does not install {package}");
        }
    }
}

/// The files outside Rust's own that the sources of the program are compiled with, or their
/// folders where a macro completes the name, as paths from the root.
fn included() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let include = Regex::new(r#"include_(?:str|bytes)!\((?:concat!\()?"([^"]+)""#).unwrap();
    let mut found = Vec::new();
    for folder in ["src", "crates"] {
        for source in rust_files(&root.join(folder)) {
            let name = source.strip_prefix(root).unwrap().to_str().unwrap();
            if name.contains("test") || name.contains("crates/train/") {
                continue;
            }
            // Tests at the end of a file are not compiled into the program.
            let text = fs::read_to_string(&source).unwrap();
            let text = text.split("#[cfg(test)]").next().unwrap();
            for include in include.captures_iter(text) {
                let file = source.parent().unwrap().join(&include[1]);
                let file = fs::canonicalize(&file)
                    .unwrap_or_else(|error| panic!("{}: {error}", file.display()));
                found.push(file.strip_prefix(root.canonicalize().unwrap()).unwrap().to_owned());
            }
        }
    }
    found
}

#[test]
fn the_images_are_built_from_all_that_the_program_includes() {
    let included = included();
    for expected in ["studio/dist/index.html", "config/default.toml", "agents/executor/problem.j2"]
    {
        assert!(included.iter().any(|file| file == Path::new(expected)), "{expected}");
    }

    for path in ["config/Dockerfile", "config/Dockerfile.cuda"] {
        let copied: Vec<PathBuf> = instructions(&read(path))
            .iter()
            .filter_map(|line| line.strip_prefix("COPY "))
            .filter(|copy| !copy.contains("--from="))
            .flat_map(|copy| copy.split_whitespace().map(PathBuf::from).collect::<Vec<_>>())
            .collect();
        let is_copied = |file: &Path| copied.iter().any(|from| file.starts_with(from));
        for file in &included {
            assert!(is_copied(file), "{path} does not copy {}", file.display());
        }
        // What cargo itself reads: the build script, and the settings of llama.cpp's build.
        for file in ["build.rs", ".cargo/config.toml", "scripts/llama.cmake"] {
            assert!(is_copied(Path::new(file)), "{path} does not copy {file}");
        }
    }
}

#[test]
fn the_package_for_debian_has_the_unit_and_what_it_reads() {
    let manifest: toml::Table = read("Cargo.toml").parse().unwrap();
    let deb = manifest["package"]["metadata"]["deb"].as_table().unwrap();
    let assets: BTreeMap<&str, &str> = deb["assets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|asset| (asset[0].as_str().unwrap(), asset[1].as_str().unwrap()))
        .collect();
    assert_eq!(assets["target/debian-files/prime-agents"], "usr/bin/");

    // The unit starts the daemon with this file, which the operator may change.
    let unit = read("config/prime-agents.service");
    assert!(unit.contains("prime-agents serve --config /etc/prime-agents/config.toml\n"));
    assert_eq!(assets["config/debian/config.toml"], "etc/prime-agents/");
    assert_eq!(deb["conf-files"][0].as_str(), Some("/etc/prime-agents/config.toml"));
    let checked =
        crate::binary::done(&["config", "check", "--config", "config/debian/config.toml"]);
    assert_eq!(checked.code, 0, "{}", checked.stderr);
}
