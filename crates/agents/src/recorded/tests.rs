//! Records survive the journal and the next process's configuration.

use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::pools::Environment;
use crate::registry::{AgentSet, configured_names};
use prime_bench::tasks::{Difficulty, find};
use prime_protocol::{Limits, Trajectory};

fn settings(sets: &[&str]) -> Settings {
    let sets: Vec<_> = sets.iter().map(|set| (*set).to_owned()).collect();
    Settings::load(&[], std::iter::empty(), &sets).unwrap()
}

fn recorded(settings: &Settings) -> RecordedAgents {
    let resources = Resources {
        model_digests: [("tiny".to_owned(), "abc".to_owned())].into(),
        ..Resources::default()
    };
    RecordedAgents::of(settings, &resources).unwrap()
}

/// An environment in which `sh` can be found.
fn environment() -> Environment {
    Arc::new(|name| (name == "PATH").then(|| "/usr/bin:/bin".to_owned()))
}

const POOL: &str =
    "pools.p.upstreams=[{url=\"http://127.0.0.1:1/v1\", model=\"m\", concurrent_max=1}]";

/// Configurations with every kind of part.
const CONFIGURATIONS: [&[&str]; 8] = [
    &[],
    &[
        "agents.executor.implementation=scripted",
        "agents.executor.error_rate=0.30000000000000004",
        "agents.verifier.kinds=[\"format\"]",
        "run.tau_soft=0.25",
        "run.retries_max=7",
    ],
    &[
        "agents.executor.implementation=instruct",
        "agents.verifier.implementation=judge",
        "agents.coordinator.implementation=chair",
    ],
    &[
        "agents.executor.implementation=escalation",
        "agents.executor.escalation.small=scripted",
        "agents.executor.escalation.large=reference",
        "agents.verifier.implementation=panel",
        "agents.coordinator.implementation=adaptive",
        "agents.coordinator.adaptive.gain=0.125",
    ],
    &[
        "agents.executor.implementation=process",
        "agents.executor.program.command=[\"sh\", \"-c\", \"true\"]",
        "agents.verifier.implementation=reference",
    ],
    &[
        "agents.executor.implementation=openai",
        "agents.executor.pool=p",
        "agents.executor.temperature=0.5",
        POOL,
    ],
    &[
        "agents.executor.implementation=replay",
        "agents.executor.lines=[\"a\", \"b\"]",
        "agents.verifier.implementation=none",
    ],
    // An implementation as the locator takes its options from the verifier's section too.
    &[
        "agents.executor.implementation=reference",
        "agents.verifier.engine=tiny",
        "agents.verifier.verdict=token",
        "run.locate=llama",
    ],
];

#[test]
fn records_survive_the_journal_and_every_other_configuration() {
    for kept in CONFIGURATIONS {
        let kept = settings(kept);
        let record = recorded(&kept);

        let read: RecordedAgents =
            serde_json::from_str(&serde_json::to_string(&record).unwrap()).unwrap();
        assert_eq!(read, record);
        assert_eq!(record.names(), configured_names(&kept));

        for present in CONFIGURATIONS {
            let mut present = settings(present);
            present.pools = kept.pools.clone();

            let restored = record.restore(&present, &environment()).unwrap();
            assert_eq!(recorded(&restored), record);
            assert_eq!(
                restored.run.budget, present.run.budget,
                "only what the agents use is from the record"
            );
        }
    }
}

#[test]
fn a_record_says_what_the_agents_use_and_no_more() {
    let record =
        recorded(&settings(&["agents.executor.implementation=scripted", "run.tau_soft=0.25"]));

    let expected = json!({
        "version": 1,
        "executor": {"name": "scripted", "agents": {
            "scripted": {
                "implementation": "scripted",
                "options": {"error_rate": 0.1, "latency_ms": 0},
            },
        }},
        "verifier": {"name": "rules", "agents": {
            "rules": {
                "implementation": "rules",
                "options": {"kinds": "sound"},
            },
        }},
        "coordinator": {
            "name": "threshold",
            "agents": {"threshold": {"implementation": "threshold"}},
        },
        "thresholds": {"tau_soft": 0.25, "tau_hard": 0.5, "retries_max": 3},
    });

    let mut found = serde_json::to_value(&record).unwrap();
    let run = Settings::default().run;
    assert_eq!(found["thresholds"]["tau_hard"], json!(run.tau_hard));
    assert_eq!(found["thresholds"]["retries_max"], json!(run.retries_max));
    found["thresholds"] = expected["thresholds"].clone();
    assert_eq!(found, expected);
}

#[test]
fn prompts_are_recorded_with_what_they_import() {
    let mut kept = settings(&["agents.executor.prompt=step"]);
    let record = recorded(&kept);
    let names: Vec<_> = record.templates.keys().map(String::as_str).collect();
    assert_eq!(names, ["benchmark/parts.j2", "executor/step.j2"]);

    let engines = [
        ("advanced", None),
        ("automata", None),
        ("sorts", None),
        ("structures", None),
        ("symbols", None),
        ("machines", None),
        ("numbers", None),
        ("large", None),
        ("tables", None),
        ("puzzles", None),
        ("hybrids", None),
        ("queens", None),
        ("routes", None),
        ("tiny", Some("abc")),
    ];
    let engines = engines.map(|(name, digest)| (name.to_owned(), digest.map(str::to_owned)));
    assert_eq!(record.engines, engines.into());

    // The prompt is edited before the next process starts.
    let recorded_text = kept.definitions.templates["executor/step.j2"].text.clone();
    kept.definitions.templates.get_mut("executor/step.j2").unwrap().text = "{{ state }}".to_owned();

    let restored = record.restore(&kept, &environment()).unwrap();
    assert_eq!(restored.definitions.templates["executor/step.j2"].text, recorded_text);
}

/// The folder of definitions is found from the working directory, which belongs to the whole
/// process: the test runs itself again in a folder whose definition cannot be used.
#[test]
fn the_prompts_of_a_record_do_not_depend_on_the_working_directory() {
    const NAME: &str =
        "recorded::tests::the_prompts_of_a_record_do_not_depend_on_the_working_directory";
    const INNER: &str = "PRIME_TEST_IN_ANOTHER_FOLDER";

    if std::env::var_os(INNER).is_some() {
        assert!(Settings::load(&[], std::iter::empty(), &[]).is_err(), "the folder is read");

        let mut kept = Settings::built_in();
        let engine = kept.engines["tiny"].clone();
        kept.engines.insert("mine".to_owned(), engine);
        kept.agents.executor.engine = "mine".into();
        let prompts = recorded(&kept).executor_prompts().unwrap();

        let problem = prime_bench::tasks::find("bubble-sort").unwrap();
        let problem = problem.generate(prime_bench::tasks::Difficulty::Easy, 3);
        let at = Trajectory::new(problem.start(), &Limits::DEFAULT);
        let asked = prompts.of(None, &at).unwrap().expect("a model was asked");
        assert_eq!(asked.prompt, prime_lessons::compact(at.machine.as_ref()));
        return;
    }

    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir_all(folder.path().join("agents/executor")).unwrap();
    std::fs::write(
        folder.path().join("agents/executor/own.toml"),
        "implementation = \"llama\"\nengine = \"mine\"\n",
    )
    .unwrap();
    let inner = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", NAME])
        .env(INNER, "1")
        .current_dir(folder.path())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&inner.stdout);
    assert!(inner.status.success() && said.contains("1 passed"), "{said}");
}

#[test]
fn the_record_of_a_run_names_the_engine_of_its_task() {
    let kept = settings(&[
        "agents.verifier.implementation=llama",
        "agents.verifier.engine=[\"sorts\", \"tiny\"]",
        "agents.coordinator.implementation=llama",
        "agents.coordinator.engine=sorts",
    ]);
    let all = recorded(&kept);
    let of = |task: &str| all.for_task(task, &kept.engines);

    let asked = |record: &RecordedAgents| {
        let (verifier, coordinator) =
            (&record.verifier.agents["llama"], &record.coordinator.agents["llama"]);
        let agents = [&record.executor.agents["llama"], verifier, coordinator];
        agents.map(|agent| agent.options["engine"].as_str().unwrap().to_owned())
    };

    // What each model has learnt is in the recipe beside it.
    let hanoi = of("tower-of-hanoi");
    assert_eq!(asked(&hanoi), ["tiny", "tiny", "sorts"]);
    assert_eq!(
        hanoi.engines,
        [("sorts".to_owned(), None), ("tiny".to_owned(), Some("abc".to_owned()))].into()
    );
    assert_eq!(
        asked(&of("turing-machine")),
        ["automata", "sorts", "sorts"],
        "the first, where none has learnt it"
    );
    assert_eq!(hanoi.for_task("tower-of-hanoi", &kept.engines), hanoi);

    let mut present = kept.clone();
    present.engines.remove("automata");
    assert!(hanoi.restore(&present, &environment()).is_ok(), "an engine that is not asked may go");
    assert!(all.restore(&present, &environment()).is_err());
}

#[test]
fn a_definition_that_has_changed_or_gone_is_taken_from_the_record() {
    let kept = settings(&[
        "agents.executor.implementation=reference",
        "agents.verifier.implementation=strict",
    ]);
    let record = recorded(&kept);
    let strict = kept.definitions.verifiers["strict"].options.clone();

    let mut present = settings(&["agents.executor.implementation=reference"]);
    present.definitions.verifiers.remove("strict");

    let restored = record.restore(&present, &environment()).unwrap();
    assert_eq!(restored.agent::<VerifierAgent>("strict").unwrap().options.kinds, strict.kinds);

    let agents = AgentSet::from_settings(&restored, &Resources::default()).unwrap();
    let problem = find("bubble-sort").unwrap().generate(Difficulty::Easy, 1);
    assert_eq!(
        (agents.names().verifier.as_str(), agents.basis(problem.as_ref()).kinds()),
        ("strict", strict.kinds.of(problem.spec()))
    );
}

#[test]
fn missing_parts_are_named_with_their_agent_and_the_remedy() {
    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.jsonl");
    std::fs::write(&trace, "{}\n").unwrap();
    let replay = [
        "agents.executor.implementation=replay".to_owned(),
        format!("agents.executor.recording={}", trace.display()),
    ];
    let replay = recorded(&settings(&[&replay[0], &replay[1]]));
    std::fs::write(&trace, "{}\n{}\n").unwrap();

    let llama = recorded(&settings(&["agents.executor.engine=tiny"]));

    let mut without_engine = settings(&["agents.executor.implementation=reference"]);
    without_engine.engines.clear();

    let pool = recorded(&settings(CONFIGURATIONS[5]));
    let mut other_pool = settings(CONFIGURATIONS[5]);
    other_pool.pools.get_mut("p").unwrap().upstreams[0].model = "other".to_owned();

    let mut program = recorded(&settings(CONFIGURATIONS[4]));
    let command =
        &mut program.executor.agents.get_mut("process").unwrap().options["program"]["command"];
    *command = json!(["no-such-program-of-this-test"]);

    let later = RecordedAgents { version: 3, ..llama.clone() };
    let mut unknown = llama.clone();
    unknown.coordinator.agents.get_mut("threshold").unwrap().implementation = "oracle".to_owned();

    let present = Settings::default();
    for (record, present, expected) in [
        (
            &llama,
            &without_engine,
            "executor `llama`: engine `tiny` is not configured; add [engines.tiny] with the model \
             whose SHA-256 is abc",
        ),
        (
            &pool,
            &present,
            "executor `openai`: pool `p` is not configured; add [pools.p] with servers of m",
        ),
        (
            &pool,
            &other_pool,
            "executor `openai`: pool `p` has changed: the run was accepted with m; restore \
             [pools.p]",
        ),
        (
            &program,
            &present,
            "executor `process`: its program no-such-program-of-this-test does not exist",
        ),
        (&replay, &present, "executor `replay`: recording "),
        (&later, &present, "the agents were recorded in form 3"),
        (
            &unknown,
            &present,
            "coordinator `threshold`: this version has no implementation `oracle`",
        ),
    ] {
        let error = record.restore(present, &environment()).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }

    let other = llama.other_model("tiny", Some("def")).to_string();
    assert_eq!(
        other,
        "executor `llama`: engine `tiny` has another model, whose SHA-256 is def; configure \
         [engines.tiny] with the model whose SHA-256 is abc"
    );
}

#[test]
fn the_digest_of_a_split_model_covers_all_parts() {
    let folder = tempfile::tempdir().unwrap();
    let parts = [1, 2].map(|part| folder.path().join(format!("m-0000{part}-of-00002.gguf")));
    std::fs::write(&parts[0], "a").unwrap();
    std::fs::write(&parts[1], "bc").unwrap();

    // SHA-256 of "abc".
    let whole = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
    assert_eq!(parts.map(|part| model_digest(&part).unwrap()), [whole; 2]);
}

#[test]
fn file_digests_are_sha_256() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("abc");
    std::fs::write(&file, "abc").unwrap();
    // FIPS 180-2, appendix B.1.
    assert_eq!(
        file_digest(&file).unwrap(),
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"
    );
    assert!(file_digest(&folder.path().join("none")).is_err());
}

#[test]
fn a_node_meets_the_needs_of_a_record_exactly_when_it_can_restore_it() {
    let digest = |name: &str| (name == "tiny").then(|| "abc".to_owned());
    let mut needing = 0;
    for kept in CONFIGURATIONS {
        let record = recorded(&settings(kept));
        let needs = record.needs();
        needing += usize::from(!needs.is_empty());
        for present in CONFIGURATIONS {
            let mut present = settings(present);

            let mut without_engines = present.clone();
            without_engines.engines.clear();

            for present in [&present, &without_engines] {
                let met = needs_met(&needs, present, &environment(), digest);
                let is_met = needs.iter().all(|need| met.contains(need));
                assert_eq!(
                    is_met,
                    record.restore(present, &environment()).is_ok(),
                    "{needs:?} in {met:?}"
                );
            }

            if let Some(pool) = present.pools.get_mut("p") {
                pool.upstreams[0].model = "other".to_owned();
                let met = needs_met(&needs, &present, &environment(), digest);
                assert_eq!(
                    needs.iter().any(|need| need.starts_with("pool")),
                    !needs.iter().all(|need| met.contains(need))
                );
            }
        }
    }
    assert_eq!(needing, 5, "engines, those of definitions and of locators, a program, a pool");
}

#[test]
fn needs_are_texts_that_people_read() {
    let needs = |sets: &[&str]| recorded(&settings(sets)).needs();
    assert_eq!(needs(CONFIGURATIONS[1]), [""; 0]);
    assert_eq!(needs(CONFIGURATIONS[4]), ["program sh"]);

    let pool = needs(CONFIGURATIONS[5]);
    assert!(pool.len() == 1 && pool[0].starts_with("pool `p` of m with options "), "{pool:?}");

    let engines = needs(&["agents.executor.engine=[\"sorts\", \"tiny\"]"]);
    assert_eq!(engines, ["engine `sorts`", "engine `tiny` with the model whose SHA-256 is abc"]);

    // Another model of the same name, or none that can be read.
    for digest in [Some("abd"), None] {
        let digest = |_: &str| digest.map(str::to_owned);
        assert_eq!(
            needs_met(&engines, &Settings::default(), &environment(), digest),
            ["engine `sorts`"]
        );
    }

    let folder = tempfile::tempdir().unwrap();
    let trace = folder.path().join("trace.jsonl");
    std::fs::write(&trace, "{}\n").unwrap();
    let recording = format!("agents.executor.recording={}", trace.display());
    let replay = needs(&["agents.executor.implementation=replay", &recording]);

    // The SHA-256 of "{}\n".
    let digest = "ca3d163bab055381827226140568f3bef7eaac187cebd76878e0b63e9e442356";
    assert_eq!(replay, [format!("recording {} with SHA-256 {digest}", trace.display())]);
    let met = || needs_met(&replay, &Settings::default(), &environment(), |_| None);
    assert_eq!(met(), replay);

    std::fs::write(&trace, "{}\n{}\n").unwrap();
    assert_eq!(met(), [""; 0]);
}

#[test]
fn a_locator_is_recorded_and_restored() {
    let kept = settings(&["agents.executor.implementation=reference", "run.locate=strict"]);
    let record = recorded(&kept);
    let locator = record.locator.as_ref().unwrap();
    assert_eq!((record.version, locator.name.as_str()), (2, "strict"));
    assert_eq!(locator.agents["strict"].implementation, "rules");
    assert_eq!(record.names().locator.as_deref(), Some("strict"));

    // The definition has gone, and the present configuration has another locator.
    let mut present =
        settings(&["agents.executor.implementation=reference", "run.locate=reference"]);
    present.definitions.verifiers.remove("strict");
    let restored = record.restore(&present, &environment()).unwrap();
    assert_eq!(restored.locator(), Some("strict"));
    let agents = AgentSet::from_settings(&restored, &Resources::default()).unwrap();
    assert_eq!(agents.names().locator.as_deref(), Some("strict"));
    let note = "locator `strict` ran the algorithm beside the executor";
    assert!(agents.notes().iter().any(|said| said.starts_with(note)), "{:?}", agents.notes());

    // A run that was accepted without one never gets one.
    let without = recorded(&settings(&["agents.executor.implementation=reference"]));
    assert_eq!(without.version, 1);
    assert_eq!(without.restore(&present, &environment()).unwrap().locator(), None);
}

#[test]
fn the_missing_engine_of_a_locator_is_named() {
    let record = recorded(&settings(CONFIGURATIONS[7]));
    assert_eq!(record.needs(), ["engine `tiny` with the model whose SHA-256 is abc"]);
    let mut present = settings(&["agents.executor.implementation=reference"]);
    present.engines.remove("tiny");
    present.agents.verifier.engine = "sorts".into();
    let error = record.restore(&present, &environment()).unwrap_err().to_string();
    assert!(error.starts_with("verifier `llama`: engine `tiny` is not configured"), "{error}");
}
