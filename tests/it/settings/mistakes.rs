//! Mistakes in keys and values: each message names source, key and remedy.

use std::path::PathBuf;

use prime_protocol::Role;
use prime_settings::{Settings, implementations};

use super::{NO_FILES, environment, with_file, with_sets};

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
fn prices_are_finite_and_not_negative() {
    let pool = "upstreams = [{url = \"http://h/v1\", model = \"m\"}]\n";
    for (price, found) in [
        ("-1", "-1"),
        ("-0.5", "the float -0.5"),
        ("nan", "the float NaN"),
        ("inf", "the float inf"),
        ("1e10", "the float 10000000000.0"),
    ] {
        let text = format!("[pools.p]\n{pool}[pools.p.price]\nprompt = {price}\ncompletion = 0");
        let expected = format!(
            "FILE:4: `pools.p.price.prompt` is {found}, but must be a number from 0.0 to \
             1000000000.0"
        );
        assert_eq!(with_file(&text).unwrap_err(), expected);
        for key in ["engines.tiny.price.cached", "run.budget.cost", "server.key_cost_per_day_max"] {
            let message = with_sets(&[&format!("{key}={price}")]).unwrap_err();
            assert!(message.contains(&format!("`{key}` is {found}, but must be")), "{message}");
        }
    }
    let message = with_sets(&["engines.tiny.price.prompt=1"]).unwrap_err();
    assert!(message.contains("price.completion") || message.contains("`completion`"), "{message}");

    let free = with_sets(&["engines.tiny.price={prompt=0, completion=0.0}"]).unwrap();
    assert_eq!(free.engines["tiny"].price.unwrap().cached, None);
    free.validate().unwrap();
    assert_eq!(with_file(&free.to_toml()).unwrap().engines, free.engines);

    let sets = ["run.budget.cost=2.5", "presets.fast.budget.cost=3"];
    let message = with_sets(&sets).unwrap_err();
    let part =
        "`presets.fast.budget.cost` is 3, but must be at most `run.budget.cost`, which is 2.5";
    assert!(message.contains(part), "{message}");
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
        ("log.level=3", "`3`, which is not known", "off"),
        ("engines.tiny=model.gguf", "the text", "a table"),
        ("server.bind=7433", "the text \"7433\"", "an IP address and port"),
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
        for name in known.iter().filter(|name| !["openai", "process", "reward"].contains(name)) {
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
    let completions = |preset: u32| {
        let preset = format!("presets.mine.budget.completion_tokens={preset}");
        with_sets(&["run.budget.completion_tokens=1000", &preset])
    };
    completions(1_000).unwrap();
    let message = completions(1_001).unwrap_err();
    assert!(message.contains("`presets.mine.budget.completion_tokens` is 1001"), "{message}");

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
