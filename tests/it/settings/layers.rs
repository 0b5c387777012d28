//! Which layer wins and how values are read; validation, hash and TOML of loaded settings.

use std::fs;
use std::path::Path;

use prime_bench::tasks::{Kind, Kinds};
use prime_settings::{LogLevel, Placement, Settings};

use super::{NO_FILES, environment, sets, with_file, with_sets};

#[test]
fn each_layer_overrides_the_one_before() {
    let folder = tempfile::tempdir().unwrap();
    let (first, second) = (folder.path().join("1.toml"), folder.path().join("2.toml"));

    fs::write(&first, "[run]\nfanout = 11\nmax_rounds = 11\nretries_max = 11\nseed = 11").unwrap();
    fs::write(&second, "[run]\nmax_rounds = 12\nretries_max = 12\nseed = 12").unwrap();

    let variables = environment(&[
        ("PRIME__RUN__RETRIES_MAX", "13"),
        ("prime__run__Seed", "13"),
        ("HOME", "/nowhere"),
    ]);
    let settings =
        Settings::load(&[first, second], variables, &sets(&["run.seed=14", "run.seed=15"]))
            .unwrap();

    let run = &settings.run;
    assert_eq!(
        (run.attempts_max, run.fanout, run.max_rounds, run.retries_max, run.seed),
        (32, 11, 12, 13, 15)
    );
}

#[test]
fn values_from_the_environment_and_from_set_are_toml_or_else_text() {
    let variables = environment(&[
        ("PRIME__AGENTS__VERIFIER__KINDS", r#"["terminal", "transition"]"#),
        ("PRIME__LOG__LEVEL", "debug"),
        ("PRIME__RUN__BUDGET__WALL_MS", "1_000"),
        ("PRIME__SERVER__BIND", "[::1]:80"),
    ]);
    let arguments =
        sets(&["runtime.placement=\"own\"", "engines.big={model=\"a=b.gguf\"}", "run.top_p = 1"]);
    let settings = Settings::load(NO_FILES, variables, &arguments).unwrap();

    assert_eq!(
        settings.agents.verifier.kinds,
        Kinds::from_iter([Kind::Terminal, Kind::Transition]).into()
    );
    assert_eq!(settings.log.level, LogLevel::Debug);
    assert_eq!(settings.run.budget.wall_ms, 1_000);
    assert_eq!(settings.server.bind.to_string(), "[::1]:80");
    assert_eq!(settings.runtime.placement, Placement::Own);
    assert_eq!(settings.engines["big"].model, Path::new("a=b.gguf"));
    assert_eq!(settings.engines["big"].context_tokens, settings.engines["tiny"].context_tokens);
    assert_eq!(settings.run.top_p, 1.0);
}

#[test]
fn an_error_counts_even_if_a_later_layer_overrides_it() {
    let message = with_sets(&["run.fanout=0", "run.fanout=8"]).unwrap_err();
    assert!(message.starts_with("--set run.fanout=0: "), "{message}");
}

#[test]
fn model_paths_in_a_file_are_relative_to_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    fs::write(
        &path,
        "[engines.a]\nmodel = \"a.gguf\"\n[engines.b]\nmodel = \"/models/b.gguf\"\n[engines.d]\n\
         model = \"prime-tiny\"",
    )
    .unwrap();

    let settings =
        Settings::load(&[path], environment(&[]), &sets(&["engines.c.model=c.gguf"])).unwrap();

    assert_eq!(settings.engines["a"].model, folder.path().join("a.gguf"));
    assert_eq!(settings.engines["b"].model, Path::new("/models/b.gguf"));
    assert_eq!(settings.engines["c"].model, Path::new("c.gguf"));
    assert_eq!(settings.engines["tiny"].model, Path::new("prime-tiny"));
    assert_eq!(
        settings.engines["d"].model,
        Path::new("prime-tiny"),
        "the built-in model is not a path"
    );
}

#[test]
fn settings_changed_in_code_are_validated() {
    let mut settings = Settings::default();
    settings.validate().unwrap();

    settings.run.fanout = 0;
    let message = settings.validate().unwrap_err().to_string();
    assert_eq!(message, "the settings: `run.fanout` is 0, but must be an integer from 1 to 256");

    settings.run.fanout = 1;
    settings.run.tau_hard = 0.1;
    settings.validate().unwrap_err();
}

#[test]
fn the_hash_is_of_the_effective_values() {
    let hash = Settings::default().hash();
    assert!(hash.len() == 16 && hash.bytes().all(|b| b.is_ascii_hexdigit()), "{hash}");

    assert_eq!(
        with_sets(&["run.fanout=4"]).unwrap().hash(),
        hash,
        "a default written out changes nothing"
    );
    assert_ne!(with_sets(&["run.fanout=9"]).unwrap().hash(), hash);
}

#[test]
fn shown_settings_can_be_loaded() {
    let settings = with_sets(&[
        "engines.big.model=/models/big.gguf",
        "presets.mine.budget={steps=5}",
        "run.seed=7",
    ])
    .unwrap();

    let again: Settings = toml::from_str(&settings.to_toml()).unwrap();
    assert_eq!(again.to_toml(), settings.to_toml());

    // Model paths are relative to the file's folder, so only absolute ones survive a move.
    let mut loaded = with_file(&settings.to_toml()).unwrap();
    for (name, engine) in &mut loaded.engines {
        engine.model.clone_from(&settings.engines[name].model);
    }
    assert_eq!(loaded.to_toml(), settings.to_toml());
}

#[test]
fn thinking_is_a_word_or_a_number_in_every_layer() {
    use prime_settings::Thinking::{AsModel, AtMost, Off};

    for (text, expected) in [
        ("model", AsModel),
        ("off", Off),
        ("\"off\"", Off),
        ("8", AtMost(8)),
        ("1000000", AtMost(1_000_000)),
    ] {
        let settings = with_sets(&[&format!("agents.executor.thinking={text}")]).unwrap();
        assert_eq!(settings.agents.executor.thinking, expected, "{text}");

        let variables = [("PRIME__AGENTS__EXECUTOR__THINKING", text)];
        let settings = Settings::load(NO_FILES, environment(&variables), &[]).unwrap();
        assert_eq!(settings.agents.executor.thinking, expected, "{text}");
    }
    for text in ["0", "1000001", "on", "1.5", "true"] {
        let message = with_sets(&[&format!("agents.executor.thinking={text}")]).unwrap_err();
        assert!(message.contains("\"model\", \"off\", or a number of tokens from 1"), "{message}");
    }
}

#[test]
fn a_string_may_look_like_another_type_outside_of_files() {
    for text in ["2024", "1.5", "true", "1979-05-27"] {
        let settings = with_sets(&[&format!("agents.executor.description={text}")]).unwrap();
        assert_eq!(settings.agents.executor.description, text);

        let variables = [("PRIME__AGENTS__EXECUTOR__DESCRIPTION", text)];
        let settings = Settings::load(NO_FILES, environment(&variables), &[]).unwrap();
        assert_eq!(settings.agents.executor.description, text);
    }

    let quoted = with_sets(&["agents.executor.description=\"2024\""]).unwrap();
    assert_eq!(quoted.agents.executor.description, "2024");
}

#[test]
fn layers_of_an_engine_are_a_word_or_a_number_in_every_layer() {
    use prime_engine::LayerCount::{All, Auto, Count};

    for (text, expected) in [("all", All), ("auto", Auto), ("\"auto\"", Auto), ("20", Count(20))] {
        let settings = with_sets(&[&format!("engines.tiny.gpu_layers={text}")]).unwrap();
        assert_eq!(settings.engines["tiny"].gpu_layers.0, expected, "{text}");

        let variables = [("PRIME__ENGINES__TINY__GPU_LAYERS", text)];
        let settings = Settings::load(NO_FILES, environment(&variables), &[]).unwrap();
        assert_eq!(settings.engines["tiny"].gpu_layers.0, expected, "{text}");
    }
    for (text, expected) in [("true", All), ("false", Count(0)), ("12", Count(12))] {
        let settings = with_sets(&[&format!("engines.tiny.cpu_experts={text}")]).unwrap();
        assert_eq!(settings.engines["tiny"].cpu_experts.0, expected, "{text}");

        let variables = [("PRIME__ENGINES__TINY__CPU_EXPERTS", text)];
        let settings = Settings::load(NO_FILES, environment(&variables), &[]).unwrap();
        assert_eq!(settings.engines["tiny"].cpu_experts.0, expected, "{text}");
    }

    for (set, expected) in [
        ("gpu_layers=some", "\"all\", \"auto\", or a number of layers up to 4096"),
        ("gpu_layers=4097", "\"all\", \"auto\", or a number of layers up to 4096"),
        ("cpu_experts=all", "true, false, or a number of layers up to 4096"),
        ("cpu_experts=-1", "true, false, or a number of layers up to 4096"),
        ("kv_type=q9", "known: f32, f16, bf16, q8_0, q4_0"),
        ("fit=maybe", "known: exact, auto"),
    ] {
        let message = with_sets(&[&format!("engines.tiny.{set}")]).unwrap_err();
        assert!(message.contains(expected), "{set}: {message}");
    }
}
