use std::collections::BTreeSet;

use super::*;

const FILE: &str = r#"
[study]
name = "n-queens"
description = "Two prompts and PRIME."
kinds = ["format", "invariant", "terminal"]
null = false

[ask]
tasks = ["n-queens", "n-queens-last-queen"]
categories = ["automata"]
difficulties = ["hard", "easy"]
instances = 3
base_seeds = [42, 7]
repeats = 2

[[system]]
name = "baseline"
prompt = "baseline"
pool = "mine"

[[system]]
name = "structured"
prompt = "structured"
without = ["examples"]
pool = "mine"

[[system]]
name = "prime"
verifier = "rules"
set = { "run.fanout" = 8, "run.vote" = "weighted" }

[budget]
wall_ms = 120000

[report]
pairs = [["baseline", "prime"]]
show = ["T2", "F12"]
"#;

fn message(text: &str) -> String {
    parse(text, "studies/x.toml").err().expect("a bad study").to_string()
}

#[test]
fn a_study_is_read() {
    let study = parse(FILE, "x").unwrap();

    let slugs: Vec<&str> = study.ask.tasks.iter().map(|task| task.spec().slug).collect();
    assert!(
        slugs.contains(&"n-queens-last-queen") && slugs.contains(&"dfa-simulation"),
        "{slugs:?}"
    );

    assert_eq!(
        study.systems[2].sets,
        ["agents.verifier.implementation=rules", "run.fanout=8", "run.vote=weighted"]
    );

    let one_shot = OneShot {
        style: PromptStyle::Structured,
        without: vec!["examples".to_owned()],
        pool: "mine".into(),
        max_tokens: 4_096,
    };
    assert_eq!(study.systems[1].source, Source::OneShot(one_shot));

    assert_eq!(study.choice.pairs, [("baseline".to_owned(), "prime".to_owned())]);

    let levels: Vec<&str> = study.ask.difficulties.iter().map(|level| level.name()).collect();
    assert_eq!(levels, ["easy", "hard"]);
}

#[test]
fn every_run_is_there_once_and_more_instances_keep_the_keys() {
    let study = parse(FILE, "x").unwrap();
    let keys: BTreeSet<_> = study.runs().map(|run| run.key(&study)).collect();
    assert_eq!(keys.len() as u64, study.runs_count());
    assert_eq!(study.runs_count(), study.ask.tasks.len() as u64 * 2 * 3 * 2 * 2 * 3);

    let wider = parse(&FILE.replace("instances = 3", "instances = 5"), "x").unwrap();
    let more: BTreeSet<_> = wider.runs().map(|run| run.key(&wider)).collect();
    assert!(more.is_superset(&keys));

    let seeds = |study: &Study| {
        study.runs().take(40).map(|run| run.sampling_seed(study)).collect::<Vec<_>>()
    };
    assert_eq!(seeds(&study), seeds(&wider), "seeds do not depend on what else is asked");

    // The systems take turns, with the same seed.
    let first: Vec<_> = study.runs().take(4).collect();
    assert_eq!(first.iter().map(|run| run.system).collect::<Vec<_>>(), [0, 1, 2, 0]);
    assert_eq!(first[0].sampling_seed(&study), first[2].sampling_seed(&study));
    assert_ne!(first[0].sampling_seed(&study), first[3].sampling_seed(&study));
}

#[test]
fn defaults_ask_everything() {
    let study = parse("[study]\nname = \"all\"\n[[system]]\nname = \"prime\"\n", "x").unwrap();
    let of_one_task = parse(
        "[study]\nname = \"one\"\n[ask]\ntasks = [\"bubble-sort\"]\n[[system]]\nname = \"prime\"\n",
        "x",
    )
    .unwrap();
    assert_eq!(of_one_task.runs_count(), 3 * 200);
    let tasks = prime_bench::tasks::all().count() as u64;
    // The null executor is asked the tasks that have choices: 24-game and n-queens.
    assert_eq!(study.runs_count(), (tasks + 2) * 3 * 200);
    assert!(!study.kinds.contains(prime_bench::tasks::Kind::Transition));
}

#[test]
fn excluded_tasks_are_not_asked() {
    let asked = |ask: &str| {
        parse(
            &format!("[study]\nname = \"most\"\n{ask}\n[[system]]\nname = \"prime\"\n"),
            "studies/x.toml",
        )
    };
    let study = asked("[ask]\nexclude = [\"sudoku\", \"n-queens\"]").expect("a study");

    assert!(study.ask.tasks.iter().all(|task| !["sudoku", "n-queens"].contains(&task.spec().slug)));
    assert_eq!(study.ask.tasks.len(), 84);

    for (ask, expected) in [
        ("exclude = [\"sodoku\"]", "ask.exclude: unknown task \"sodoku\": did you mean `sudoku`"),
        (
            "tasks = [\"n-queens\"]\nexclude = [\"sudoku\"]",
            "ask.exclude: `sudoku` is not one of the tasks that are asked",
        ),
        (
            "exclude = [\"sudoku\", \"sudoku\"]",
            "ask.exclude: `sudoku` is not one of the tasks that are asked",
        ),
        ("tasks = [\"sudoku\"]\nexclude = [\"sudoku\"]", "ask.exclude: leaves no task to ask"),
    ] {
        let message = asked(&format!("[ask]\n{ask}")).err().expect("a mistake").to_string();
        assert!(message.contains(expected), "{message}");
    }
}

#[test]
fn mistakes_are_named_with_their_remedy() {
    for (from, to, expected) in [
        (
            "\"n-queens\",",
            "\"n-quens\",",
            "ask.tasks: unknown task \"n-quens\": did you mean `n-queens`",
        ),
        (
            "[\"automata\"]",
            "[\"automat\"]",
            "ask.categories: unknown name `automat` (did you mean `automata`?)",
        ),
        ("\"hard\"", "\"hrad\"", "ask.difficulties: unknown name `hrad` (did you mean `hard`?)"),
        (
            "\"terminal\"",
            "\"terminl\"",
            "study.kinds: unknown name `terminl` (did you mean `terminal`?)",
        ),
        ("instances = 3", "instances = 0", "ask.instances: 0 is not between 1 and 200"),
        ("instances = 3", "instances = 201", "more base seeds give more instances"),
        ("instances = 3", "instnces = 3", "(did you mean `instances`?)"),
        ("repeats = 2", "repeats = 0", "ask.repeats: 0"),
        ("[42, 7]", "[7, 7]", "ask.base_seeds: 7 is there twice"),
        ("[42, 7]", "[]", "ask.base_seeds: name one"),
        ("name = \"structured\"", "name = \"baseline\"", "two systems are called `baseline`"),
        (
            "\"baseline\", \"prime\"",
            "\"baseline\", \"prme\"",
            "unknown name `prme` (did you mean `prime`?)",
        ),
        ("\"baseline\", \"prime\"", "\"prime\", \"prime\"", "`prime` cannot be paired with itself"),
        ("\"F12\"", "\"F122\"", "no table or figure `F122`"),
        (
            "prompt = \"baseline\"",
            "prompt = \"basline\"",
            "unknown prompt `basline` (did you mean `baseline`?)",
        ),
        ("\"examples\"", "\"example\"", "unknown component `example` (did you mean `examples`?)"),
        ("verifier = \"rules\"", "pool = \"mine\"", "system `prime`: `pool` is for a prompt"),
        (
            "verifier = \"rules\"",
            "answers = \"o\"\nverifier = \"rules\"",
            "remove `verifier`, `set`",
        ),
        (
            "verifier = \"rules\"\nset = { \"run.fanout\" = 8, \"run.vote\" = \"weighted\" }",
            "answers = \"o\"",
            "need one base seed",
        ),
        ("verifier = \"rules\"", "max_tokens = 9", "`max_tokens` is for a prompt"),
        ("name = \"n-queens\"", "name = \"N Queens\"", "study.name: `N Queens`"),
        ("wall_ms = 120000", "wall_ms = 0", "budget.wall_ms: 0"),
        ("wall_ms = 120000", "wall_ms = \"long\"", "invalid type"),
        ("[budget]", "[bugdet]", "(did you mean `budget`?)"),
        ("[study]", "[study", "TOML parse error at line 2"),
    ] {
        let text = FILE.replacen(from, to, 1);

        assert_ne!(text, FILE, "{from}");
        let message = message(&text);
        assert!(message.contains(expected) && message.starts_with("studies/x.toml: "), "{message}");
    }
}

#[test]
fn all_mistakes_are_said_at_once() {
    let text =
        FILE.replacen("\"n-queens\",", "\"n-quens\",", 1).replacen("repeats = 2", "repeats = 0", 1);
    assert_eq!(message(&text).lines().count(), 2);
    assert!(message("[study]\nname = \"x\"\n").contains("no system: add [[system]]"));
}

#[test]
fn files_are_relative_to_the_study() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.toml");
    std::fs::write(
        &path,
        "[study]\nname = \"x\"\n[[system]]\nname = \"a\"\nanswers = \"outputs.jsonl\"\n",
    )
    .unwrap();

    let study = load(&path).unwrap();
    assert_eq!(study.systems[0].source, Source::Answers(folder.path().join("outputs.jsonl")));
}

#[test]
fn a_missing_file_is_named_with_the_one_that_may_be_meant() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("headline.toml"), "").unwrap();
    let message = |name: &str| load(&folder.path().join(name)).err().unwrap().to_string();
    assert!(
        message("headlne.toml").ends_with("(did you mean `headline.toml`?)"),
        "{}",
        message("headlne.toml")
    );
    assert!(message("none.json").contains("none.json"));
    assert!(!message("none.json").contains("mean"));
}

#[test]
fn the_schema_describes_every_section() {
    let schema = schema();
    for section in ["study", "ask", "system", "budget", "report"] {
        assert!(schema["properties"].get(section).is_some(), "{section}");
    }
    assert_eq!(schema["additionalProperties"], false);
}

#[test]
fn the_shipped_studies_are_good() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../studies");

    let mut names = BTreeSet::new();
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let study = load(&path).unwrap();
        assert_eq!(path.file_stem().unwrap().to_str(), Some(study.name.as_str()));
        assert!(!study.description.is_empty());
        names.insert(study.name);
    }

    let expected = [
        "ablations",
        "headline",
        "inference",
        "n-queens",
        "scaling",
        "smoke",
        "strategies",
        "sweeps",
        "transfer",
        "verifiers",
    ];
    assert!(expected.iter().all(|name| names.contains(*name)), "{names:?}");
}

/// A study of these tasks with this after it.
fn of(tasks: &str, rest: &str) -> String {
    format!(
        "[study]\nname = \"x\"\n[ask]\ntasks = [{tasks}]\ndifficulties = [\"easy\"]\n\
         instances = 2\n{rest}"
    )
}

#[test]
fn the_null_executor_is_asked_what_has_choices() {
    let prime = "[[system]]\nname = \"prime\"\n";
    let names = |text: &str| -> Vec<String> {
        parse(text, "x").unwrap().systems.into_iter().map(|system| system.name).collect()
    };

    let study = parse(&of("\"n-queens\", \"bubble-sort\"", prime), "x").unwrap();
    let asked: Vec<_> = study.runs().map(|run| run.key(&study)).collect();
    let of_null: Vec<_> = asked.iter().filter(|key| key.system == "uniform").collect();
    assert_eq!((asked.len() as u64, of_null.len()), (study.runs_count(), 2));
    assert!(of_null.iter().all(|key| key.task == "n-queens"), "{of_null:?}");
    assert_eq!(study.systems[1].sets, ["agents.executor.implementation=uniform"]);

    // A sort prescribes its next step: it has no choices.
    assert_eq!(names(&of("\"bubble-sort\"", prime)), ["prime"]);
    let off = of("\"n-queens\"", prime).replace("[study]\n", "[study]\nnull = false\n");
    assert_eq!(names(&off), ["prime"]);
    let own = "[[system]]\nname = \"search\"\nexecutor = \"uniform\"\n";
    assert_eq!(names(&of("\"n-queens\"", own)), ["search"]);
}

#[test]
fn tasks_of_ones_own_need_a_definition() {
    let text = of("\"jugs\"", "[[system]]\nname = \"prime\"\n");
    let message = parse(&text, "x").err().unwrap().to_string();
    assert!(message.contains("unknown task \"jugs\"") && message.contains("`tasks.jugs`"));

    let set = "[study]\nset = { \"tasks.jugs.command\" = [\"jugs\"] }\n";
    let study = parse(&text.replace("[study]\n", set), "x").unwrap();
    assert_eq!((study.ask.own.clone(), study.ask.tasks.len()), (vec!["jugs".to_owned()], 0));
    // Without a program there are no inputs.
    assert_eq!(study.runs_count(), 0);
}

#[test]
fn samples_end_and_are_equal_to_something() {
    let systems = |votes: &str| {
        format!("[[system]]\nname = \"prime\"\n[[system]]\nname = \"votes\"\n{votes}\n")
    };
    let equal = "[budget]\nmatch = \"tokens\"\nprompts = \"all\"\n";
    let text = of("\"bubble-sort\"", &(systems("select = \"majority\"") + equal));
    let study = parse(&text, "x").unwrap();
    assert_eq!(
        (study.matched, study.prompts),
        (Some(Matched { unit: Unit::Tokens, to: "prime".to_owned() }), Prompts::All)
    );
    let samples = Samples { select: Select::Majority, most: None };
    assert_eq!((study.systems[0].samples, study.systems[1].samples), (None, Some(samples)));
    assert_eq!(
        study.systems[1].sets,
        ["run.fanout=1", "run.max_rounds=1", "agents.verifier.implementation=none"]
    );

    let text = of("\"bubble-sort\"", &(systems("matched = true") + equal));
    assert!(parse(&text, "x").unwrap().systems[1].is_matched);

    let computed = "[budget]\nmatch = \"tokens\"";
    for (votes, budget, expected) in [
        ("matched = true", "", "`matched = true` is equal to nothing"),
        ("matched = true", computed, "set `budget.prompts` to `all` or `none`"),
        ("matched = true", "[budget]\nmatch = \"seconds\"", "makes tokens equal, not seconds"),
        ("matched = true\nselect = \"first\"", equal, "for systems of runs without `select`"),
        (
            "matched = true",
            "[budget]\nmatch = \"tokens\"\nprompts = \"all\"\nmatch_to = \"votes\"",
            "`matched = true` is its own measure",
        ),
        ("select = \"majority\"", "", "system `votes`: nothing ends its samples"),
        ("select = \"best\"\nsamples = 3", "", "select: unknown name `best`"),
        ("samples = 3", "", "system `votes`: `samples` says how many"),
        ("select = \"first\"\nsamples = 0", "", "`samples` must be at least 1"),
        ("select = \"refine\"\nsamples = 3", "", "add a `prompt` and a `pool`"),
        ("", "[budget]\nmatch = \"token\"", "budget.match: unknown name `token`"),
        ("", "[budget]\nmatch_to = \"prime\"", "budget.match_to: says whose spending"),
        ("", "[budget]\nmatch = \"tokens\"\nmatch_to = \"prim\"", "did you mean `prime`"),
        ("", "[budget]\nprompts = \"some\"", "budget.prompts: unknown name `some`"),
        (
            "select = \"first\"\nsamples = 2",
            "[budget]\nmatch = \"tokens\"\nmatch_to = \"votes\"",
            "`votes` spends nothing of its own accord",
        ),
    ] {
        let text = of("\"bubble-sort\"", &(systems(votes) + budget));
        let message = message(&text);
        assert!(message.contains(expected), "{expected:?} in {message:?}");
    }
}
