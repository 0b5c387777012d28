//! `study`: run, interrupted, reported and compared, on executors without a model.

use std::collections::BTreeSet;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use prime_bench::tasks;
use prime_settings::Settings;
use serde_json::{Value, json};

use crate::binary::{SCRIPTED, done, file, prime, shown};

/// Two systems on two tasks; the first makes mistakes that nobody checks.
const STUDY: &str = r#"
[study]
name = "pair"
description = "Checked against unchecked."
[ask]
tasks = ["tower-of-hanoi", "bubble-sort"]
difficulties = ["easy"]
instances = INSTANCES
[[system]]
name = "unchecked"
verifier = "none"
set = { "run.fanout" = 1, "run.max_rounds" = 1, "agents.executor.error_rate" = 0.05 }
[[system]]
name = "checked"
"#;

fn study(instances: u32) -> String {
    STUDY.replace("INSTANCES", &instances.to_string())
}

/// Keys of the records of a file.
fn keys(path: &Path) -> Vec<String> {
    let text = std::fs::read_to_string(path).expect("records");
    let key = |line: &str| {
        let record: Value = serde_json::from_str(line).expect("a record");
        format!("{} {} {}", record["system"], record["task"], record["index"])
    };
    text.lines().map(key).collect()
}

fn run(study: &Path, records: &Path) -> crate::binary::Done {
    done(&[&["study", "run", shown(study), "--records", shown(records)][..], &SCRIPTED].concat())
}

#[test]
fn a_study_is_run_widened_reported_and_compared() {
    let (folder, path) = file("pair.toml", &study(3));
    let records = folder.path().join("pair.jsonl");
    let first = run(&path, &records);
    assert!(first.code == 0 && first.stderr.contains("12 of 12 runs to do"), "{}", first.stderr);

    std::fs::write(&path, study(5)).expect("written");
    let second = run(&path, &records);
    assert!(second.stderr.contains("8 of 20 runs to do"), "{}", second.stderr);
    let third = run(&path, &records);
    assert!(third.stderr.contains("0 of 20 runs to do"), "{}", third.stderr);

    let all = keys(&records);
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (20, 20));

    let out = folder.path().join("report");
    let report =
        done(&["study", "report", shown(&records), "--out", shown(&out), "--study", shown(&path)]);
    assert!(
        report.code == 0 && report.stdout.contains("of 20 runs"),
        "{}{}",
        report.stdout,
        report.stderr
    );
    let page = std::fs::read_to_string(out.join("report.html")).expect("the page");
    assert!(page.contains("unchecked → checked") && page.contains("Method"));
    assert!(
        out.join("tables/summary.tex").is_file() && out.join("figures/categories.svg").is_file()
    );
    assert!(out.join("records.parquet").is_file());

    let compared = done(&["study", "compare", "unchecked", "checked", shown(&records)]);
    assert!(
        compared.code == 0 && compared.stdout.contains("tower-of-hanoi"),
        "{}",
        compared.stderr
    );

    // A study is as good as itself.
    let same = done(&["study", "compare", shown(&records), shown(&records)]);
    assert!(
        same.code == 0 && same.stdout.contains("left: checked → right: checked"),
        "{}{}",
        same.stdout,
        same.stderr
    );
}

#[test]
fn a_part_of_a_study_is_reported_without_its_pairs() {
    let (folder, path) =
        file("pair.toml", &(study(2) + "[report]\npairs = [[\"unchecked\", \"checked\"]]\n"));
    let (records, out) = (folder.path().join("part.jsonl"), folder.path().join("report"));
    let arguments =
        ["study", "run", shown(&path), "--records", shown(&records), "--system", "checked"];
    let part = done(&[&arguments[..], &SCRIPTED].concat());
    assert_eq!(part.code, 0, "{}", part.stderr);

    let report = ["study", "report", shown(&records), "--out", shown(&out)];
    let whole = done(&[&report[..], &["--study", shown(&path)]].concat());
    assert!(
        whole.stderr.contains("are not compared: the records have no runs of `unchecked`"),
        "{}",
        whole.stderr
    );
    assert!(whole.code == 0 && out.join("report.html").is_file(), "{}", whole.stderr);

    done(&[&report[..], &["--pair", "unchecked=checked"]].concat())
        .refused(&["no system `unchecked`", "`checked`"]);
}

#[test]
fn a_killed_study_goes_on_without_repeating_or_losing_a_run() {
    let (folder, path) = file("pair.toml", &study(60));
    let records = folder.path().join("pair.jsonl");

    // Killed after the first records, several times.
    for _ in 0..3 {
        let arguments = [
            &["study", "run", shown(&path), "--records", shown(&records), "--concurrent", "1"][..],
            &SCRIPTED,
        ];
        let mut child = prime(&arguments.concat()).spawn().expect("the binary starts");
        let before = if records.exists() { keys_so_far(&records) } else { 0 };
        while keys_so_far(&records) == before && child.try_wait().expect("a child").is_none() {
            std::thread::yield_now();
        }
        child.kill().expect("killed");
        child.wait().expect("ended");
    }

    let last = run(&path, &records);
    assert_eq!(last.code, 0, "{}", last.stderr);
    let all = keys(&records);
    assert_eq!((all.len(), all.iter().collect::<BTreeSet<_>>().len()), (240, 240));
}

/// Whole lines of a file that grows.
fn keys_so_far(path: &Path) -> usize {
    std::fs::File::open(path).map_or(0, |file| BufReader::new(file).lines().count())
}

#[test]
fn mistakes_are_named() {
    let (folder, path) = file("pair.toml", &study(3).replace("tower-of-hanoi", "hanoi"));
    done(&["study", "check", shown(&path)])
        .refused(&["pair.toml: ask.tasks: unknown task \"hanoi\"", "tower-of-hanoi"]);

    std::fs::write(&path, study(3)).expect("written");
    let records = folder.path().join("pair.jsonl");
    let refused =
        |arguments: &[&str], parts: &[&str]| done(&[&["study"], arguments].concat()).refused(parts);
    refused(&["run", shown(&path), "--system", "none"], &["--system none", "unchecked, checked"]);
    refused(&["report", shown(&records)], &["pair.jsonl", "No such file"]);
    std::fs::write(&records, "{\"schema\": 99}\n").expect("written");
    refused(&["report", shown(&records)], &["pair.jsonl, line 1", "schema 99"]);
    std::fs::write(&records, "").expect("written");
    refused(&["report", shown(&records)], &["no records"]);
    refused(&["report", shown(&records), "--show", "T999"], &["no table or figure `T999`"]);
    refused(&["compare", "a", "b"], &["two files of records"]);

    // The verifier would see what the study does not allow.
    let seen = study(3) + "verifier = \"reference\"\n";
    std::fs::write(&path, seen).expect("written");
    std::fs::remove_file(&records).expect("removed");
    refused(
        &["run", shown(&path), "--records", shown(&records), SCRIPTED[0], SCRIPTED[1]],
        &["system `checked`", "sees transition", "study.kinds"],
    );
}

#[test]
fn shipped_studies_are_good() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let listed = done(&["study", "list", shown(&root.join("studies"))]);
    assert!(
        listed.code == 0
            && listed.stdout.contains("smoke")
            && !listed.stdout.contains("cannot be used")
    );

    let runs = |file: &str| {
        done(&["study", "show", shown(&root.join(file)), "--output", "json"]).json(0)["runs"]
            .clone()
    };

    let engines = Settings::default().engines;
    let is_known =
        |slug: &str| engines.values().any(|engine| engine.has_learnt(slug) == Some(true));
    let known = tasks::all().filter(|task| is_known(task.spec().slug)).count();
    // The null executor is asked those whose choices can be listed: 24-game and n-queens.
    assert!(is_known("24-game") && is_known("n-queens"));
    assert_eq!(
        runs("studies/headline.toml"),
        3 * 200 * (known * 2 + 2),
        "the headline is of all tasks that the shipped models know"
    );
    assert_eq!(runs("studies/cells.toml"), 3 * 12 * (known * 3 + 2), "so are the cells");

    let schema = done(&["study", "schema"]).json(0);
    assert!(schema["properties"]["system"].is_object());
}

#[test]
fn a_plan_estimates_from_a_trial() {
    let (folder, path) = file("pair.toml", &study(10));
    let records = folder.path().join("pair.jsonl");
    let arguments = [
        "study",
        "plan",
        shown(&path),
        "--records",
        shown(&records),
        "--trial",
        "2",
        "--output",
        "json",
    ];
    let plan = done(&[&arguments[..], &SCRIPTED].concat()).json(0);

    assert_eq!(
        (plan["to_do"].as_u64(), plan["systems"][0]["trial_runs"].as_u64()),
        (Some(40), Some(2))
    );
    assert!(
        plan["total"]["proposals"].as_f64().is_some_and(|proposals| proposals > 40.0),
        "{plan}"
    );
    assert!(!records.exists(), "a plan records nothing");
}

#[test]
fn the_documentation_has_every_column() {
    let columns = done(&["study", "schema", "--records"]);
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/study-records.md");
    let page = std::fs::read_to_string(page).expect("the page");
    assert!(
        columns.code == 0 && page.contains(&columns.stdout),
        "update docs/study-records.md:\n{}",
        columns.stdout
    );
}

#[test]
fn a_study_starts_no_run_any_more_when_it_has_cost_enough() {
    let text = "[study]\nname = \"dear\"\nnull = false\n[ask]\ntasks = [\"gcd-euclidean\"]\n\
                difficulties = [\"easy\"]\ninstances = 3\n[[system]]\nname = \"prime\"\n\
                set = { \"run.fanout\" = 1 }\n";
    let (folder, path) = file("dear.toml", text);
    let records = folder.path().join("dear.jsonl");
    let run = |options: &[&str]| {
        let study = ["study", "run", shown(&path), "--records", shown(&records)];
        done(&[&study[..], &["--concurrent", "1"], options].concat())
    };
    let lines = || std::fs::read_to_string(&records).map_or(0, |text| text.lines().count());

    let refused = run(&["--price-max", "1"]);
    assert!(refused.code == 2 && refused.stderr.contains("--prompt-price"), "{}", refused.stderr);
    for bad in ["NaN", "-1", "much"] {
        let refused = run(&["--price-max", bad, "--prompt-price", "1"]);
        assert!(
            refused.code == 2 && refused.stderr.contains("give a number"),
            "{}",
            refused.stderr
        );
    }
    assert_eq!(lines(), 0);

    // A generated token costs 1, and each run generates some.
    let priced = |max: &str| run(&["--completion-price", "1e6", "--price-max", max]);
    let stopped = priced("1");
    assert_eq!((stopped.code, lines()), (1, 1), "{}", stopped.stderr);
    assert!(stopped.stderr.contains("2 runs are left"), "{}", stopped.stderr);
    let again = priced("1");
    assert_eq!((again.code, lines()), (1, 1), "{}", again.stderr);
    assert!(again.stderr.contains("have cost"), "{}", again.stderr);

    let whole = priced("1e9");
    assert_eq!((whole.code, lines()), (0, 3), "{}", whole.stderr);
}

#[test]
fn a_study_counts_configured_prices() {
    let text = "[study]\nname = \"dear\"\nnull = false\n[ask]\ntasks = [\"gcd-euclidean\"]\n\
                difficulties = [\"easy\"]\ninstances = 3\n[[system]]\nname = \"prime\"\n\
                set = { \"run.fanout\" = 1 }\n";
    let (folder, path) = file("dear.toml", text);
    let (_prices, prices) =
        file("prices.toml", "[engines.numbers.price]\nprompt = 0.0\ncompletion = 1000000.0\n");
    let records = folder.path().join("dear.jsonl");
    let run = |options: &[&str]| {
        let study = ["study", "run", shown(&path), "--records", shown(&records)];
        let fixed = ["--concurrent", "1", "--config", shown(&prices), "--output", "json"];
        done(&[&study[..], &fixed, options].concat())
    };

    let stopped = run(&["--price-max", "1"]).json(1);
    assert_eq!((&stopped["recorded"], &stopped["stopped"]), (&json!(1), &json!("price_max")));
    let again = run(&["--price-max", "1"]).json(1);
    assert_eq!((&again["recorded"], &again["stopped"]), (&json!(0), &json!("price_max")));

    // The option's prices are those of all models.
    let whole = run(&["--price-max", "1", "--completion-price", "0"]).json(0);
    assert_eq!((&whole["recorded"], &whole["stopped"]), (&json!(2), &Value::Null));

    let text = std::fs::read_to_string(&records).unwrap();
    for record in text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap()) {
        assert_eq!(record["cost"].as_f64(), record["completion_tokens"].as_f64(), "{record}");
    }
}
