//! The shipped configuration files and the reference page.

use std::fs;
use std::path::Path;

use prime_bench::tasks::CheckedKinds;
use prime_protocol::Limits;
use prime_settings::{DEFAULT_TOML, Dialect, Settings, reference_markdown};

use super::environment;

/// The numbers fixed by the specification and the paper.
#[test]
fn the_shipped_defaults_are_the_documented_ones() {
    let settings = Settings::default();
    let mut from_file: toml::Table = toml::from_str(DEFAULT_TOML).unwrap();

    // The other engines have a model of their own and start when needed; the rest is that of the
    // first.
    let engines = from_file["engines"].as_table_mut().unwrap();
    let first = engines["tiny"].as_table().unwrap().clone();
    for (name, other) in engines.iter_mut().filter(|(name, _)| *name != "tiny") {
        let other = other.as_table_mut().unwrap();
        assert_eq!(other["model"].as_str().unwrap(), format!("prime-{name}"));
        assert_eq!(other.keys().collect::<Vec<_>>(), ["idle_stop_ms", "model"]);
        for (key, value) in first.clone() {
            other.entry(key).or_insert(value);
        }
    }

    let from_file: Settings = from_file.try_into().unwrap();
    assert_eq!(settings.to_toml(), from_file.to_toml(), "the shipped file is complete");

    let (run, agents) = (&settings.run, &settings.agents);
    assert_eq!(
        (run.fanout, run.max_rounds, run.retries_max, run.attempts_max, run.pops_max),
        (4, 5, 2, 32, 256)
    );

    let limits = Limits {
        attempts_max: run.attempts_max,
        repetitions_max: run.repetitions_max,
        pops_max: run.pops_max,
        stuck_after: run.stuck_after,
        snapshot_every_frames: run.snapshot_every_frames as usize,
    };
    assert_eq!(limits, Limits::DEFAULT, "the protocol's defaults are those of the configuration");

    assert_eq!(
        (run.tau_soft, run.tau_hard, run.temperature, run.top_p, run.seed),
        (0.3, 0.3, 0.7, 0.95, 42)
    );
    assert_eq!(
        (run.budget.steps, run.budget.wall_ms, run.snapshot_every_frames),
        (16_777_216, 600_000, 256)
    );

    let reward = &run.reward;
    assert_eq!(
        (reward.task, reward.verify, reward.efficiency, reward.format),
        (10.0, 1.0, 0.5, 0.1)
    );

    let (fast, careful) = (&settings.presets["fast"], &settings.presets["careful"]);
    assert_eq!(
        (fast.fanout, fast.max_rounds, careful.fanout, careful.max_rounds),
        (Some(1), Some(1), Some(8), None)
    );

    assert_eq!(agents.executor.implementation, "llama");
    assert_eq!(agents.verifier.kinds, CheckedKinds::Sound);
    assert!(settings.engines["tiny"].device.is_cpu());
    assert!(settings.server.bind.ip().is_loopback());
}

#[test]
fn the_file_for_three_gpus_loads() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/h100x3.toml");
    let settings = Settings::load(&[path], environment(&[]), &[]).unwrap();

    let devices: Vec<_> =
        ["first", "second", "third"].map(|name| settings.engines[name].device.to_string()).into();
    assert_eq!(devices, ["CUDA0", "CUDA1", "CUDA2"]);
    assert!(
        settings
            .agents
            .executor
            .engine
            .all()
            .iter()
            .all(|name| settings.engines.contains_key(name))
    );
}

#[test]
fn the_files_for_servers_load_and_name_their_dialects() {
    for (name, dialect, holds) in [
        ("llama-server", Dialect::LlamaServer, true),
        ("vllm", Dialect::Vllm, true),
        ("sglang", Dialect::Sglang, true),
        ("ollama", Dialect::Ollama, false),
        ("lm-studio", Dialect::LmStudio, false),
        ("hosted", Dialect::Openai, false),
    ] {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("config/servers");
        let path = path.join(format!("{name}.toml"));
        let settings = Settings::load(&[path], environment(&[]), &[]).unwrap();
        let pool = &settings.pools["server"];
        assert_eq!((pool.dialect, pool.applies_grammars()), (dialect, holds), "{name}");
        assert_eq!(settings.agents.executor.grammar, holds, "{name}");
    }
}

#[test]
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let page = fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == reference_markdown(),
        "docs/configuration.md is stale; run `prime-agents config schema --markdown > \
         docs/configuration.md`"
    );
}
