//! The configuration from a user's view: precedence, errors and their messages, the shipped files,
//! the reference.

use std::fs;
use std::path::{Path, PathBuf};

use prime_bench::tasks::Kind;
use prime_protocol::Limits;
use prime_protocol::Role;
use prime_settings::{
    DEFAULT_TOML, LogLevel, Placement, Settings, implementations, reference_markdown,
};

const NO_FILES: &[PathBuf] = &[];

fn environment(pairs: &[(&str, &str)]) -> impl Iterator<Item = (String, String)> {
    pairs
        .iter()
        .map(|(name, value)| ((*name).to_owned(), (*value).to_owned()))
        .collect::<Vec<_>>()
        .into_iter()
}

fn sets(arguments: &[&str]) -> Vec<String> {
    arguments.iter().map(|argument| (*argument).to_owned()).collect()
}

/// Loads with these `--set` arguments only.
fn with_sets(arguments: &[&str]) -> Result<Settings, String> {
    Settings::load(NO_FILES, environment(&[]), &sets(arguments)).map_err(|error| error.to_string())
}

/// Loads with this text as a config file; `FILE` in the message replaces its path.
fn with_file(text: &str) -> Result<Settings, String> {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    fs::write(&path, text).unwrap();
    let path_text = path.display().to_string();
    Settings::load(&[path], environment(&[]), &[])
        .map_err(|error| error.to_string().replace(&path_text, "FILE"))
}

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

    assert_eq!(settings.agents.verifier.kinds, [Kind::Terminal, Kind::Transition]);
    assert_eq!(settings.log.level, LogLevel::Debug);
    assert_eq!(settings.run.budget.wall_ms, 1_000);
    assert_eq!(settings.server.bind.to_string(), "[::1]:80");
    assert_eq!(settings.runtime.placement, Placement::Own);
    assert_eq!(settings.engines["big"].model, Path::new("a=b.gguf"));
    assert_eq!(settings.engines["big"].context_tokens, settings.engines["tiny"].context_tokens);
    assert_eq!(settings.run.top_p, 1.0);
}

#[test]
fn unknown_keys_name_their_source_and_the_nearest_right_key() {
    let message = with_file("\n[run]\nfanout = 4\nmax_round = 3").unwrap_err();
    assert!(
        message.starts_with("FILE:4: unknown key `run.max_round`; did you mean `run.max_rounds`?"),
        "{message}"
    );

    let variables = environment(&[("PRIME__RUN__FANUOT", "4")]);
    let message = Settings::load(NO_FILES, variables, &[]).unwrap_err().to_string();
    assert!(message.contains("variable PRIME__RUN__FANUOT: unknown key `run.fanuot`"), "{message}");
    assert!(message.contains("did you mean `run.fanout`?"), "{message}");

    for (argument, nearest) in [
        ("run.fan_out=4", "run.fanout"),
        ("fanout=4", "run.fanout"),
        ("run.bugdet.steps=4", "run.budget"),
        ("engines.tiny.modle=x", "engines.tiny.model"),
        ("engines.big.Device=cpu", "engines.big.device"),
        ("agents.verifier.kind=[]", "agents.verifier.kinds"),
        ("agent.executor.engine=x", "agents"),
        ("presets.mine.fan_out=4", "presets.mine.fanout"),
        ("presets.mine.budget.step=4", "presets.mine.budget.steps"),
        ("run.fanout.value=4", "must be an integer"),
    ] {
        let message = with_sets(&[argument]).unwrap_err();
        assert!(message.starts_with(&format!("--set {argument}: ")), "{message}");
        assert!(message.contains(nearest), "{message}");
    }

    let message = with_sets(&["run.colour=4"]).unwrap_err();
    assert!(message.contains("known: ") && message.contains("max_rounds"), "{message}");
}

#[test]
fn wrong_types_name_key_value_expectation_and_source() {
    assert_eq!(
        with_file("[run]\nfanout = \"eight\"").unwrap_err(),
        "FILE:2: `run.fanout` is the text \"eight\", but must be an integer from 1 to 256"
    );
    for (argument, found, expected) in [
        ("run.fanout=8.0", "the float 8.0", "an integer"),
        ("run.fanout=1e9", "the float 1000000000.0", "an integer"),
        ("run.fanout=true", "the boolean true", "an integer"),
        ("run.fanout=", "the text \"\"", "an integer"),
        ("run.fanout=8\nseed=1", "the text \"8\\nseed=1\"", "an integer"),
        ("run=8", "is 8", "a table"),
        ("run.tau_soft=low", "the text \"low\"", "a number from"),
        ("agents.verifier.kinds=format", "the text \"format\"", "a list"),
        ("agents.verifier.kinds=[1]", "is 1", "\"format\""),
        ("log.level=3", "is 3", "one of \"off\""),
        ("engines.tiny=model.gguf", "the text", "a table"),
        ("server.bind=7433", "is 7433", "an IP address and port"),
    ] {
        let message = with_sets(&[argument]).unwrap_err();
        assert!(message.starts_with(&format!("--set {argument}: ")), "{message}");
        assert!(message.contains(found) && message.contains(expected), "{message}");
    }
}

#[test]
fn values_out_of_range_are_refused() {
    for argument in [
        "run.fanout=0",
        "run.fanout=-1",
        "run.fanout=257",
        "run.fanout=1000000000",
        "run.fanout=99999999999999999999999999",
        "run.fanout=-99999999999999999999999999",
        "run.max_rounds=0",
        "run.max_rounds=101",
        "run.retries_max=-1",
        "run.attempts_max=0",
        "run.pops_max=-1",
        "run.tau_soft=-0.1",
        "run.tau_hard=nan",
        "run.tau_hard=inf",
        "run.temperature=2.1",
        "run.top_p=0",
        "run.top_p=1.01",
        "run.seed=-1",
        "run.confidence=1.5",
        "run.snapshot_every_frames=0",
        "run.budget.steps=0",
        "run.budget.tokens=-1",
        "run.budget.wall_ms=0",
        "run.reward.task=-1",
        "agents.executor.error_rate=1.1",
        "agents.executor.max_tokens=0",
        "agents.executor.engine=''",
        "agents.verifier.kinds=[]",
        "engines.tiny.model=''",
        "engines.tiny.device=GPU-1",
        "engines.tiny.device=pci:65",
        "engines.tiny.device=[]",
        "engines.tiny.device=['CUDA0', 'GPU-1']",
        "engines.tiny.context_tokens=0",
        "engines.tiny.sequences_max=257",
        "engines.tiny.batch_tokens=0",
        "engines.tiny.threads=-1",
        "engines.tiny.deadline_ms=0",
        "engines.tiny.start_timeout_ms=0",
        "engines.tiny.restart_window_ms=0",
        "runtime.cells=1025",
        "runtime.in_flight_max=0",
        "runtime.restarts_max=-1",
        "runtime.restart_window_ms=0",
        "server.bind=localhost",
        "server.body_bytes_max=1",
        "server.queue_max=-1",
        "engines.Big.model=x",
        "presets.Mine.fanout=1",
        "presets.mine.fanout=0",
        "presets.mine.max_rounds=101",
        "presets.mine.temperature=2.1",
        "presets.mine.top_p=0",
        "presets.mine.budget.tokens=0",
    ] {
        let message = with_sets(&[argument]).unwrap_err();
        assert!(message.starts_with(&format!("--set {argument}: ")), "{message}");
        assert!(message.contains("but must be"), "{message}");
    }
}

#[test]
fn the_ends_of_ranges_are_allowed() {
    let arguments = [
        "run.fanout=1",
        "run.fanout=256",
        "run.max_rounds=100",
        "run.retries_max=0",
        "run.top_p=0.01",
        "run.temperature=0",
        "run.seed=9223372036854775807",
        "run.budget.tokens=0",
        "run.confidence=1",
        "runtime.cells=0",
        "server.bind=0.0.0.0:0",
    ];
    for argument in arguments {
        with_sets(&[argument]).unwrap();
    }
}

/// A number without both bounds could silently be truncated to its type.
#[test]
fn every_number_of_the_schema_has_both_ends() {
    fn walk(schema: &serde_json::Value, at: &str) {
        if matches!(schema["type"].as_str(), Some("integer" | "number")) {
            assert!(
                schema["minimum"].is_number() || schema["exclusiveMinimum"].is_number(),
                "{at}"
            );
            assert!(schema["maximum"].is_number(), "{at}");
        }
        for (key, below) in schema["properties"].as_object().into_iter().flatten() {
            assert!(below["description"].is_string(), "{at}.{key} has no documentation");
            walk(below, &format!("{at}.{key}"));
        }
        if schema["additionalProperties"].is_object() {
            walk(&schema["additionalProperties"], &format!("{at}.<name>"));
        }
    }
    walk(&Settings::schema(), "");
}

#[test]
fn unknown_names_list_the_known_ones() {
    let names = |role| implementations(role).iter().map(|known| known.name).collect::<Vec<_>>();
    let (executors, verifiers, coordinators) =
        (names(Role::Executor), names(Role::Verifier), names(Role::Coordinator));
    for (key, known) in [
        ("agents.executor.implementation", &executors[..]),
        ("agents.verifier.implementation", &verifiers),
        ("agents.coordinator.implementation", &coordinators),
        ("presets.mine.executor", &executors),
        ("presets.mine.verifier", &verifiers),
        ("presets.mine.coordinator", &coordinators),
        ("engines.tiny.isolation", &["process", "thread"]),
        ("agents.executor.engine", &["tiny"]),
    ] {
        // Agents with a pool or a program need further options.
        for name in known.iter().filter(|name| !["openai", "process"].contains(name)) {
            with_sets(&[&format!("{key}={name}")]).unwrap();
        }
        let message = with_sets(&[&format!("{key}=xyzzy")]).unwrap_err();
        assert!(
            message.contains("`xyzzy`, which is not known") && message.contains(&known.join(", ")),
            "{message}"
        );
    }
    let message = with_sets(&["agents.executor.implementation=lama"]).unwrap_err();
    assert!(message.contains("did you mean `llama`?"), "{message}");
    let message = with_sets(&["agents.verifier.kinds=[\"invariants\"]"]).unwrap_err();
    assert!(message.contains("did you mean `invariant`?"), "{message}");
    let message = with_sets(&["engines.queens.model=prime-quens"]).unwrap_err();
    assert!(message.contains("`engines.queens.model` names `prime-quens`"), "{message}");
    assert!(message.contains("did you mean `prime-queens`?"), "{message}");
    with_sets(&["engines.queens.model=my/prime-queens.gguf"]).unwrap();
}

#[test]
fn values_that_do_not_fit_each_other_name_both() {
    for (arguments, parts) in [
        (&["run.tau_soft=0.5"][..], ["`run.tau_hard` is 0.3", "`run.tau_soft`, which is 0.5"]),
        (
            &["engines.tiny.batch_tokens=32"],
            ["`engines.tiny.batch_tokens` is 32", "`sequences_max` (64)"],
        ),
        (
            &["engines.tiny.context_tokens=256"],
            ["`engines.tiny.batch_tokens` is 512", "`context_tokens` (256)"],
        ),
        (
            &["agents.executor.max_tokens=32768"],
            [
                "`agents.executor.max_tokens` is 32768",
                "`engines.queens.context_tokens`, which is 32768",
            ],
        ),
    ] {
        let message = with_sets(arguments).unwrap_err();
        assert!(parts.iter().all(|part| message.contains(part)), "{message}");
    }
    with_sets(&["run.tau_soft=0.5", "run.tau_hard=0.5"]).unwrap();
    let message = with_sets(&["presets.mine.budget.wall_ms=600001"]).unwrap_err();
    let (own, all) =
        ("`presets.mine.budget.wall_ms` is 600001", "`run.budget.wall_ms`, which is 600000");
    assert!(message.contains(own) && message.contains(all), "{message}");
    with_sets(&["presets.mine.budget.wall_ms=600000"]).unwrap();
    with_sets(&["presets.mine.budget.tokens=999999999999", "run.budget.tokens=0"]).unwrap();

    let message = with_file("[engines.big]\ndevice = \"CUDA0\"").unwrap_err();
    assert_eq!(
        message,
        "FILE:2: `engines.big.model` is missing; add `model = \"path/to/model.gguf\"`"
    );
}

#[test]
fn files_that_are_missing_or_no_toml_are_named() {
    let missing = PathBuf::from("no/such/file.toml");
    let message = Settings::load(&[missing], environment(&[]), &[]).unwrap_err().to_string();
    assert!(message.contains("no/such/file.toml") && message.contains("--config"), "{message}");

    let message = with_file("[run]\nfanout = 8\n{\"json\": true}\n").unwrap_err();
    assert!(message.starts_with("FILE:3: not valid TOML: "), "{message}");
    let message = with_file("[run]\nseed = 1\nseed = 2\n").unwrap_err();
    assert!(
        message.contains("FILE:3: not valid TOML") && message.contains("duplicate"),
        "{message}"
    );

    for argument in ["run.fanout", "=4", "run..fanout=4", "", "."] {
        let message = with_sets(&[argument]).unwrap_err();
        assert!(message.contains("section.key=value"), "{message}");
    }
}

#[test]
fn an_error_counts_even_if_a_later_layer_overrides_it() {
    let message = with_sets(&["run.fanout=0", "run.fanout=8"]).unwrap_err();
    assert!(message.starts_with("--set run.fanout=0: "), "{message}");
}

#[test]
fn renamed_keys_are_refused_with_their_new_names() {
    for (set, new) in [
        ("agents.executor.chat=true", "agents.executor.chat_template"),
        ("agents.coordinator.asks_when_clean=true", "agents.coordinator.ask_on_clean_steps"),
        ("agents.coordinator.adaptive.lowest=0.1", "agents.coordinator.adaptive.tau_min"),
        ("agents.coordinator.adaptive.highest=1.0", "agents.coordinator.adaptive.tau_max"),
        ("engines.tiny.kv=shared", "engines.tiny.kv_cache"),
        ("engines.tiny.kept_max=1", "engines.tiny.cached_sequences_max"),
        ("pools.gpu.answer_bytes_max=5000", "pools.gpu.response_bytes_max"),
        ("journal.window_ms=1", "journal.group_commit_ms"),
        ("journal.keep_days=1", "journal.retention_days"),
        ("journal.keep_bytes=1", "journal.retention_bytes"),
    ] {
        let key = set.split('=').next().unwrap();
        let expected = format!("--set {set}: `{key}` was renamed; use `{new}` instead");
        assert_eq!(with_sets(&[set]).unwrap_err(), expected);
    }
    let message = with_sets(&["run.chat=1"]).unwrap_err();
    assert!(
        message.contains("unknown key `run.chat`"),
        "only where the new name exists: {message}"
    );
}

#[test]
fn model_paths_in_a_file_are_relative_to_its_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("my.toml");
    fs::write(
        &path,
        "[engines.a]\nmodel = \"a.gguf\"\n[engines.b]\nmodel = \"/models/b.gguf\"\n[engines.d]\nmodel = \"prime-tiny\"",
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
    assert_eq!(agents.verifier.kinds, [Kind::Format, Kind::Invariant, Kind::Terminal]);
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
fn the_reference_page_is_up_to_date() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/configuration.md");
    let page = fs::read_to_string(path).unwrap_or_default();
    assert!(
        page == reference_markdown(),
        "docs/configuration.md is stale; run `prime-agents config schema --markdown > docs/configuration.md`"
    );
}

const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

#[test]
fn keys_are_a_list_of_tables() {
    let zeros = "0".repeat(64);
    let file = format!(
        "[[server.keys]]\nname = \"ci\"\nsha256 = \"{ABC}\"\nconcurrent_max = 4\n[[server.keys]]\nname = \"b-2\"\nsha256 = \
         \"{zeros}\""
    );
    let settings = with_file(&file).unwrap();
    let keys = &settings.server.keys;
    let of =
        |at: usize| (keys[at].name.as_str(), keys[at].sha256.to_string(), keys[at].concurrent_max);
    assert_eq!(
        (keys.len(), of(0), of(1)),
        (2, ("ci", ABC.to_owned(), Some(4)), ("b-2", zeros, None))
    );
    settings.validate().unwrap();
    assert_eq!(with_file(&settings.to_toml()).unwrap().server, settings.server);
    let set = format!("server.keys=[{{name=\"a\",sha256=\"{ABC}\"}}]");
    assert_eq!(with_sets(&[&set]).unwrap().server.keys[0].name, "a");
}

#[test]
fn mistakes_in_keys_are_named() {
    let upper = ABC.to_uppercase();
    for (text, parts) in [
        (
            format!("name = \"a\"\nsha256 = \"{ABC}\"\nsha = 1"),
            &["FILE:4: unknown key `server.keys.sha`"][..],
        ),
        (
            format!("nmae = \"a\"\nsha256 = \"{ABC}\""),
            &["FILE:2", "did you mean `server.keys.name`?"],
        ),
        (
            format!("name = \"a b\"\nsha256 = \"{ABC}\""),
            &["FILE:2: `server.keys.name` is the text \"a b\"", "lower-case letters"],
        ),
        (format!("name = \"\"\nsha256 = \"{ABC}\""), &["FILE:2: `server.keys.name`"]),
        (format!("name = 5\nsha256 = \"{ABC}\""), &["FILE:2: `server.keys.name` is 5", "a text"]),
        (
            "name = \"a\"\nsha256 = \"abc\"".to_owned(),
            &["FILE:3: `server.keys.sha256`", "64 hexadecimal digits", "key new"],
        ),
        ("name = \"a\"".to_owned(), &["`server.keys.sha256` is missing", "[[server.keys]]"]),
        (format!("sha256 = \"{ABC}\""), &["`server.keys.name` is missing"]),
        (
            format!("name = \"a\"\nsha256 = \"{ABC}\"\nconcurrent_max = -1"),
            &[
                "FILE:4: `server.keys.concurrent_max` is -1, but must be an integer from 0 to 1000000",
            ],
        ),
        (
            format!(
                "name = \"a\"\nsha256 = \"{ABC}\"\n[[server.keys]]\nname = \"b\"\nsha256 = \"{upper}\""
            ),
            &["`server.keys` has \"a\" and \"b\"", "of its own"],
        ),
    ] {
        let message = with_file(&format!("[[server.keys]]\n{text}")).unwrap_err();
        for part in parts {
            assert!(message.contains(part), "{part:?} is missing in {message:?}");
        }
    }
    let message = with_file("[server]\nkeys = [5]").unwrap_err();
    assert!(message.contains("`server.keys` is 5, but must be a table"), "{message}");
    let message = with_sets(&["server.keys=abc"]).unwrap_err();
    assert!(message.contains("but must be a list of tables (`[[section]]`)"), "{message}");
}
