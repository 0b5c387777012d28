//! Cards as files, and whose they are.

use std::fs;

use serde_json::json;
use tempfile::TempDir;

use super::*;
use crate::registry::{AgentSet, RegistryError, Resources};
use prime_settings::Settings;

fn row() -> CardRow {
    let none = Proportion::new(0, 0);
    CardRow {
        task: None,
        difficulty: None,
        steps: StepRates {
            false_rejects: none,
            false_accepts: Proportion::new(3, 40),
            false_accepts_garbage: none,
            by_error: Vec::new(),
            failed: 0,
            failure: None,
            probability_right: None,
            probability_wrong: None,
        },
        runs: RunRates {
            false_rejects: none,
            false_accepts: Proportion::new(1, 20),
            by_error: Vec::new(),
            failed: 0,
            failure: None,
            too_long: 0,
        },
        first_error: FirstErrorScore::new(none, none),
        cost: VerdictCost { prompt_tokens: 0.0, completion_tokens: 0.0, micros_per_step: 1.5 },
    }
}

fn settings(verifier: &str) -> Settings {
    let mut settings = Settings::built_in();
    "reference".clone_into(&mut settings.agents.executor.implementation);
    settings.agents.verifier.choose(verifier);
    settings
}

/// The card of this verifier, in a file.
fn written(folder: &TempDir, verifier: &str, change: impl FnOnce(&mut Value)) -> String {
    let settings = settings(verifier);
    let agents = AgentSet::from_settings(&settings, &Resources::default()).unwrap();
    let identity = agents.verifier_identity(&settings).unwrap();
    let tasks = vec!["n-queens".to_owned(), "sudoku".to_owned()];
    let card = VerifierCard::new(verifier, identity, tasks, Vec::new(), 7, (100, 10), vec![row()]);

    let mut value = serde_json::to_value(card).unwrap();
    change(&mut value);
    let path = folder.path().join("card.json");
    fs::write(&path, value.to_string()).unwrap();
    path.display().to_string()
}

/// The agents with this verifier and card.
fn loaded(verifier: &str, card: &str) -> Result<AgentSet, RegistryError> {
    let mut settings = settings(verifier);
    card.clone_into(&mut settings.agents.verifier.card);
    AgentSet::from_settings(&settings, &Resources::default())
}

fn refused(verifier: &str, card: &str) -> String {
    loaded(verifier, card).err().expect("the card cannot be used").to_string()
}

#[test]
fn results_quote_the_card_of_the_configured_verifier() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "rules", |_| {});

    let agents = loaded("rules", &path).unwrap();
    let quote = agents.recorded().unwrap().card.clone().expect("a card");
    assert_eq!((quote.file, quote.tasks), (path, 2));
    assert_eq!(quote.sha256.len(), 64);
    assert_eq!(quote.step_false_accepts, Proportion::new(3, 40));
    assert_eq!(quote.run_false_accepts, Proportion::new(1, 20));

    let without = loaded("rules", "").unwrap();
    assert_eq!(without.recorded().unwrap().card, None);
    // The card does not change what a later process builds.
    assert_eq!(without.recorded().unwrap().verifier, agents.recorded().unwrap().verifier);
}

#[test]
fn a_card_of_another_verifier_is_refused_by_the_names_of_both() {
    let folder = TempDir::new().unwrap();
    let path = written(&folder, "rules", |_| {});

    let error = refused("strict", &path);
    for part in [
        "agents.verifier.card",
        path.as_str(),
        "a card of `rules` (rules, kinds sound)",
        "the verifier is `strict` (rules, kinds format, invariant, transition, terminal)",
        "prime-agents bench verifier strict --card FILE",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
}

#[test]
fn a_card_of_another_version_or_form_is_refused() {
    let folder = TempDir::new().unwrap();

    let path = written(&folder, "rules", |card| card["format"] = json!(2));
    let error = refused("rules", &path);
    assert!(error.contains("format 2, and this is prime-agents"), "{error}");
    assert!(error.contains("measure the verifier again"), "{error}");

    let path = written(&folder, "rules", |card| card["version"] = json!("0.0.1"));
    let error = refused("rules", &path);
    assert!(error.contains("a card of prime-agents 0.0.1, format 1"), "{error}");
}

#[test]
fn what_is_no_card_is_refused() {
    let folder = TempDir::new().unwrap();
    let missing = folder.path().join("none.json").display().to_string();
    assert!(refused("rules", &missing).contains("cannot be read"));

    let path = written(&folder, "rules", |card| card["results"] = json!([]));
    assert!(refused("rules", &path).contains("it has no results"));

    for text in ["", "{}", "[1]", "{\"format\": 1, \"version\": \"0.1.0\"}"] {
        fs::write(&path, text).unwrap();
        let error = refused("rules", &path);
        assert!(error.contains("is not a verifier card"), "{text}: {error}");
    }
}

#[test]
fn another_verifier_of_a_run_does_not_have_the_sections_card() {
    let mut settings = settings("rules");
    "card.json".clone_into(&mut settings.agents.verifier.card);
    assert_eq!(settings.verifier_card(), Some("card.json"));
    settings.agents.verifier.choose("rules");
    assert_eq!(settings.verifier_card(), Some("card.json"));
    settings.agents.verifier.choose("strict");
    assert_eq!(settings.verifier_card(), None);
}

#[test]
fn the_f1_of_first_errors_is_the_harmonic_mean() {
    // 2 · 0.5 · 0.75 / 1.25.
    let score = FirstErrorScore::new(Proportion::new(5, 10), Proportion::new(3, 4));
    assert!((score.f1.unwrap() - 0.6).abs() < 1e-12, "{score:?}");

    let nothing = FirstErrorScore::new(Proportion::new(0, 10), Proportion::new(0, 4));
    assert_eq!(nothing.f1, Some(0.0));
    assert_eq!(FirstErrorScore::new(Proportion::new(5, 10), Proportion::new(0, 0)).f1, None);
}
