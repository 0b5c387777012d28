//! `bench verifier` and the cards that it writes: measured, shown, quoted, refused.

use std::fs;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use crate::binary::{REFERENCE, done, file, run, shown};
use prime_stub_server::StubServer;

/// A few steps and traces.
const FEW: [&str; 6] = ["--task", "n-queens", "--instances", "4", "--traces", "5"];

fn measured(arguments: &[&str]) -> Value {
    done(&[&["bench", "verifier", "--output", "json"], &FEW[..], arguments].concat()).json(0)
}

/// The figures of all tasks and levels of each card, by the verifier's name.
fn overall(figures: &Value, name: &str) -> Value {
    let cards = figures["cards"].as_array().expect("cards");
    let card = cards.iter().find(|card| card["name"] == name).expect("its card");
    card["results"][0].clone()
}

fn counts(share: &Value) -> (u64, u64) {
    (share["count"].as_u64().expect("a count"), share["of"].as_u64().expect("a total"))
}

#[test]
fn verifiers_are_measured_on_the_same_steps_and_runs() {
    let figures = measured(&["reference", "none", "panel"]);
    assert_eq!(figures["cards"].as_array().expect("cards").len(), 3);

    let reference = overall(&figures, "reference");
    assert_eq!(counts(&reference["steps"]["false_rejects"]), (0, 4));
    assert_eq!(counts(&reference["steps"]["false_accepts_garbage"]), (0, 4));
    assert_eq!(counts(&reference["steps"]["false_accepts"]).0, 0);
    assert_eq!(counts(&reference["runs"]["false_rejects"]), (0, 5));
    assert_eq!(counts(&reference["runs"]["false_accepts"]).0, 0);
    assert_eq!(reference["first_error"]["f1"], 1.0, "it finds each first error");

    let none = overall(&figures, "none");
    for rates in [&none["steps"], &none["runs"]] {
        let (accepted, of) = counts(&rates["false_accepts"]);
        assert!(accepted == of && of > 0, "{rates}");
        assert_eq!(counts(&rates["false_rejects"]).0, 0);
    }
    assert_eq!(none["first_error"]["f1"], 0.0, "it finds no error");
    // The same material for all.
    let of = |figures: &Value| counts(&figures["runs"]["false_accepts"]).1;
    assert_eq!(of(&none), of(&reference));

    let origins: Vec<&Value> = none["steps"]["by_error"]
        .as_array()
        .expect("errors")
        .iter()
        .map(|rate| &rate["origin"])
        .collect();
    assert!(origins.contains(&&json!("random")) && origins.contains(&&json!("adversarial")));
}

/// Writes the card of a verifier below a folder.
fn card(folder: &TempDir, name: &str, arguments: &[&str]) -> String {
    let path = folder.path().join("card.json");
    let path = shown(&path).to_owned();
    let written = [&["bench", "verifier", name, "--card", &path], &FEW[..], arguments].concat();
    let done = done(&written);
    assert_eq!(done.code, 0, "{}", done.stderr);
    path
}

fn parsed(path: &str) -> Value {
    serde_json::from_str(&fs::read_to_string(path).expect("a card")).expect("JSON")
}

/// A card without its times, which differ from one machine to the next.
fn without_times(mut card: Value) -> Value {
    for row in card["results"].as_array_mut().expect("rows") {
        row["cost"]["micros_per_step"] = json!(0);
    }
    card
}

#[test]
fn a_card_is_shown_and_made_into_pages() {
    let folder = TempDir::new().expect("a folder");
    let path = card(&folder, "rules", &[]);
    assert_eq!(without_times(parsed(&path)), without_times(parsed(&card(&folder, "rules", &[]))));

    let shown_card = done(&["bench", "verifier", "--show", &path, "--output", "json"]).json(0);
    assert_eq!(shown_card["cards"][0], parsed(&path));

    let text = done(&["bench", "verifier", "--show", &path, "--details"]);
    assert_eq!(text.code, 0, "{}", text.stderr);
    for part in ["wrong runs accepted", "rules, kinds sound", "adversarial", "base seed 7"] {
        assert!(text.stdout.contains(part), "{part}: {}", text.stdout);
    }

    for (name, start) in
        [("card.md", "# How often verifiers are wrong"), ("card.html", "<!DOCTYPE")]
    {
        let page = folder.path().join(name);
        let made = done(&["bench", "verifier", "--show", &path, "--report", shown(&page)]);
        assert_eq!(made.code, 0, "{}", made.stderr);
        let page = fs::read_to_string(&page).expect("a page");
        assert!(page.starts_with(start) && page.contains("first-error F1"), "{page}");
    }
}

#[test]
fn a_result_quotes_the_card_of_its_verifier() {
    let folder = TempDir::new().expect("a folder");
    let path = card(&folder, "rules", &[]);
    let named = format!("agents.verifier.card={path}");

    let asked = ["n-queens", "--difficulty", "easy", "--set", &named];
    let result = run(&[&asked[..], &REFERENCE]).json(0);
    let quoted = &result["verification"]["card"];
    assert_eq!((&quoted["file"], &quoted["tasks"]), (&json!(path), &json!(1)));
    assert_eq!(quoted["run_false_accepts"], parsed(&path)["results"][0]["runs"]["false_accepts"]);
    assert_eq!(quoted["sha256"].as_str().map(str::len), Some(64));

    let text = done(&[&["run"], &asked[..], &REFERENCE].concat());
    assert!(text.stdout.contains("with a wrong answer and"), "{}", text.stdout);

    // A card that is configured says nothing about another verifier.
    let strict = "agents.verifier.implementation=strict";
    done(&[&["run"], &asked[..], &REFERENCE, &["--set", strict]].concat())
        .refused(&["is a card of `rules`", "the verifier is `strict`"]);
    let kinds = "agents.verifier.kinds=[\"format\"]";
    done(&[&["run"], &asked[..], &REFERENCE, &["--set", kinds]].concat())
        .refused(&["(rules, kinds sound)", "(rules, kinds format)"]);

    // A definition has a card of its own, whatever its name, and does not inherit the section's.
    let verifiers = folder.path().join("verifier");
    fs::create_dir(&verifiers).expect("a folder");
    let rules = "implementation = \"rules\"\n";
    fs::write(verifiers.join("bare.toml"), rules).expect("a definition");
    fs::write(verifiers.join("mine.toml"), format!("{rules}card = \"{path}\"\n")).expect("one");
    let agents = format!("agents.folder={}", shown(folder.path()));
    let quoted_by = |name: &str| {
        let chosen = format!("agents.verifier.implementation={name}");
        let sets = ["--set", &agents, "--set", &chosen];
        run(&[&asked[..3], &REFERENCE, &sets]).json(0)["verification"]["card"]["file"].clone()
    };
    assert_eq!((quoted_by("mine"), quoted_by("bare")), (json!(path), Value::Null));

    // Measuring does not need the card that it is about to write.
    let missing = ["--set", "agents.verifier.card=missing.json"];
    assert_eq!(parsed(&card(&folder, "rules", &missing))["name"], "rules");
    done(&[&["run"], &asked[..3], &REFERENCE, &missing[..]].concat()).refused(&[
        "agents.verifier.card",
        "missing.json",
        "cannot be read",
    ]);
}

#[test]
fn what_cannot_be_measured_or_shown_is_refused() {
    done(&["bench", "verifier", "stric"]).refused(&["stric", "did you mean `strict`?"]);
    done(&["bench", "verifier", "--task", "bubble-sorting"]).refused(&["bubble-sorting"]);
    done(&["bench", "verifier", "rules", "strict", "--card", "x.json"])
        .refused(&["--card writes the card of one verifier", "rules, strict"]);
    done(&["bench", "verifier", "rules", "--show", "x.json"]).refused(&["--show"]);

    let (_folder, path) =
        file("card.json", r#"{"format": 9, "version": "7.0.0", "name": "rules"}"#);
    done(&["bench", "verifier", "--show", shown(&path)])
        .refused(&["prime-agents 7.0.0, format 9", "measure the verifier again"]);
    let (_folder, path) = file("card.json", "[]");
    done(&["bench", "verifier", "--show", shown(&path)]).refused(&["is not a verifier card"]);
}

#[test]
fn a_verifier_cannot_claim_kinds_that_it_does_not_check() {
    let folder = TempDir::new().expect("a folder");
    let verifiers = folder.path().join("verifier");
    fs::create_dir(&verifiers).expect("a folder");
    let text = "implementation = \"reward\"\npool = \"scores\"\nkinds = [\"transition\"]\n";
    fs::write(verifiers.join("mine.toml"), text).expect("a definition");

    let agents = format!("agents.folder={}", shown(folder.path()));
    done(&["bench", "verifier", "mine", "--set", &agents]).refused(&[
        "mine.toml",
        "kinds",
        "reward",
    ]);
}

#[test]
fn a_reward_models_answers_are_unrefuted() {
    let stub = StubServer::start(|body| {
        let line = body["text_2"].as_str().unwrap_or_default();
        if line.is_empty() { "0.1".to_owned() } else { "0.9".to_owned() }
    })
    .expect("a port");
    let pool = format!("pools.scores.upstreams=[{{url=\"{}\", model=\"m\"}}]", stub.url);
    let sets = [
        pool.as_str(),
        "pools.scores.api=score",
        "agents.verifier.implementation=reward",
        "agents.verifier.pool=scores",
    ];
    let sets: Vec<&str> = sets.iter().flat_map(|set| ["--set", set]).collect();

    let result = run(&[&["n-queens", "--difficulty", "easy"], &sets, &REFERENCE]).json(1);
    assert_eq!((&result["assurance"], &result["correct"]), (&json!("unrefuted"), &json!(true)));
    assert_eq!(result["verification"]["methods"], json!(["reward"]));

    let figures = measured(&sets);
    let reward = overall(&figures, "reward");
    let (accepted, of) = counts(&reward["runs"]["false_accepts"]);
    assert!(accepted == of && of > 0, "a model that likes everything: {reward}");
    assert_eq!(counts(&reward["steps"]["false_accepts_garbage"]).0, 0, "lines are refused before");
}

#[test]
fn the_published_card_is_what_its_command_makes() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/results");
    let published = parsed(shown(&root.join("verifier-rules.json")));

    // One of its tasks: the figures of a task do not depend on the others.
    let task = published["tasks"][0].as_str().expect("a task");
    let folder = TempDir::new().expect("a folder");
    let path = folder.path().join("card.json");
    let number = |key: &str| published[key].to_string();
    let mut arguments = vec!["bench", "verifier", "rules", "--task", task, "--card", shown(&path)];
    let (instances, traces) = (number("instances"), number("traces"));
    arguments.extend(["--instances", &instances, "--traces", &traces]);
    for level in ["easy", "medium"] {
        arguments.extend(["--difficulty", level]);
    }
    assert_eq!(done(&arguments).code, 0);

    let rows = |card: Value| -> Vec<Value> {
        let rows = without_times(card)["results"].as_array().expect("rows").clone();
        rows.into_iter().filter(|row| row["task"] == task).collect()
    };
    let made = parsed(shown(&path));
    assert_eq!(made["verifier"], published["verifier"]);
    assert_eq!(rows(made), rows(published.clone()));
}
