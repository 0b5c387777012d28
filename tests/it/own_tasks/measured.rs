//! `bench` and `study` on tasks of one's own.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{example, program, with_path};
use crate::binary::{Done, prime, shown};
use crate::own_modules::module;

const UNIFORM: &str = "agents.executor.implementation=uniform";

/// A folder with a study of these tasks, and options that define the task `name` as this program on
/// these inputs.
struct Measured {
    folder: TempDir,
    sets: Vec<String>,
}

impl Measured {
    fn new(name: &str, program: &str, inputs: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("inputs.jsonl");
        std::fs::write(&path, inputs).expect("written");
        let sets = vec![
            UNIFORM.to_owned(),
            format!(r#"tasks.{name}.command=["python3", "-B", "{program}"]"#),
            format!("tasks.{name}.inputs={}", shown(&path)),
        ];
        Self { folder, sets }
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn study(&self, tasks: &str, systems: &str) -> PathBuf {
        let path = self.path("study.toml");
        let text = format!(
            "[study]\nname = \"own\"\nnull = false\n[ask]\ntasks = {tasks}\ndifficulties = [\"easy\"]\n\
             instances = 2\n{systems}"
        );
        std::fs::write(&path, text).expect("written");
        path
    }

    fn prime(&self, arguments: &[&str]) -> Done {
        let sets = self.sets.iter().flat_map(|set| ["--set", set.as_str()]);
        let all: Vec<&str> = arguments.iter().copied().chain(sets).collect();
        with_path(prime(&all)).output().expect("the binary starts").into()
    }

    fn run(&self, study: &Path, records: &str) -> Done {
        self.prime(&["study", "run", shown(study), "--records", shown(&self.path(records))])
    }

    fn records(&self, name: &str) -> Vec<Value> {
        let text = std::fs::read_to_string(self.path(name)).expect("records");
        text.lines().map(|line| serde_json::from_str(line).expect("a record")).collect()
    }
}

const SYSTEM: &str = "[[system]]\nname = \"uniform\"\n";

/// The third input is beyond `instances`.
const JUGS: &str = "{\"A\": 3, \"B\": 5, \"goal\": 4}\n\n{\"A\": 2, \"B\": 7, \"goal\": 5}\n\
                    {\"A\": 1, \"B\": 2, \"goal\": 1}\n";

/// `bench solve` on the task jugs, with these settings.
pub(super) fn jugs(sets: &[&str]) -> Done {
    let mut measured = Measured::new("jugs", &example("jugs.py"), JUGS);
    measured.sets.extend(sets.iter().map(|set| (*set).to_owned()));
    measured.prime(&["bench", "solve", "--task", "jugs"])
}

#[test]
fn a_study_asks_tasks_of_ones_own_beside_those_of_the_benchmark() {
    let measured = Measured::new("jugs", &example("jugs.py"), JUGS);
    let systems = "[[system]]\nname = \"unchecked\"\nverifier = \"none\"\n\
                   set = { \"run.fanout\" = 1, \"run.max_rounds\" = 1 }\n"
        .to_owned()
        + SYSTEM;
    let study = measured.study(r#"["jugs", "n-queens"]"#, &systems);

    let done = measured.run(&study, "own.jsonl");
    assert_eq!(done.code, 0, "{}", done.stderr);
    for part in ["jugs: the first 2 of 3 inputs", "8 of 8 runs to do"] {
        assert!(done.stderr.contains(part), "{part}: {}", done.stderr);
    }

    let records = measured.records("own.jsonl");
    let (own, built_in): (Vec<&Value>, Vec<&Value>) =
        records.iter().partition(|record| record["task"] == "jugs");
    assert_eq!((own.len(), built_in.len()), (4, 4));
    let digest = own[0]["task_digest"].as_str().expect("a digest");
    assert!(digest.len() == 64 && built_in.iter().all(|record| record["task_digest"].is_null()));
    for record in own {
        assert_eq!(record["status"], "measured", "{record}");
        assert_eq!(
            (&record["difficulty"], &record["category"], &record["base_seed"]),
            (&json!("given"), &json!("own"), &json!(0))
        );
        assert_eq!(record["task_digest"], digest);
        if record["system"] == "uniform" {
            let answer = if record["index"] == 0 { 4 } else { 5 };
            assert_eq!(record["answer"], json!({"litres": answer}).to_string());
            assert_eq!((&record["right"], &record["accepted"]), (&json!(true), &json!(true)));
        }
    }
    // Nothing is left to do.
    let again = measured.run(&study, "own.jsonl");
    assert!(again.stderr.contains("0 of 8 runs to do"), "{}", again.stderr);

    let (out, file) = (measured.path("report"), measured.path("own.jsonl"));
    let report =
        with_path(prime(&["study", "report", shown(&file), "--out", shown(&out)])).output();
    let report = Done::from(report.expect("the binary starts"));
    assert_eq!(report.code, 0, "{}", report.stderr);
    let tasks = std::fs::read_to_string(out.join("tables/categories.csv"));
    let tasks = tasks.expect("a table");
    assert!(tasks.contains("own,") && tasks.contains("classic-puzzles,"), "{tasks}");
}

#[test]
fn a_walk_that_breaks_a_constraint_gives_no_right_answer() {
    // From 0 to 3 by ones. Every second step breaks a constraint, which nobody looks at.
    let (_program, path) = program(
        "def step(ask):\n    at = ask['state'] + 1\n    bad = [{'name': 'odd', 'severity': 'major'}]\n    \
         return {'state': at, 'choices': ['go'], 'done': at == 3,\n            \
         'violations': bad if ask['input'] == 'odd' and at == 2 else []}",
    );
    let measured = Measured::new("odd", &path, "\"even\"\n\"odd\"\n");
    let study =
        measured.study(r#"["odd"]"#, "[[system]]\nname = \"unchecked\"\nverifier = \"none\"\n");
    let done = measured.run(&study, "own.jsonl");
    assert_eq!(done.code, 0, "{}", done.stderr);

    let mut records = measured.records("own.jsonl");
    records.sort_by_key(|record| record["index"].as_u64());
    let found = |record: &Value| {
        let columns = ["answer", "right", "first_error_step", "severity", "semantic"];
        columns.map(|column| record[column].clone())
    };
    assert_eq!(
        records.iter().map(found).collect::<Vec<_>>(),
        [
            [json!("3"), json!(true), Value::Null, Value::Null, json!("passed")],
            [json!("3"), json!(false), json!(1), json!("major"), json!("failed")],
        ]
    );
}

#[test]
fn a_program_that_dies_is_not_measured() {
    let (_program, path) = program(
        "def step(ask):\n    if ask['input'] == 'die': os._exit(3)\n    \
         return {'state': 1, 'done': True}",
    );
    let mut measured = Measured::new("odd", &path, "\"live\"\n\"die\"\n");
    measured.sets.push("tasks.odd.restarts_max=0".to_owned());
    let study = measured.study(r#"["odd"]"#, SYSTEM);
    let done = measured.run(&study, "own.jsonl");
    assert!(done.stderr.contains("not measured"), "{}", done.stderr);

    let records = measured.records("own.jsonl");
    let died = records.iter().find(|record| record["index"] == 1).expect("a record");
    assert_eq!(
        (&died["status"], &died["right"], &died["result"]),
        (&json!("not_measured"), &json!(false), &json!("not_judged"))
    );
    assert!(died["failure"].as_str().is_some_and(|reason| !reason.is_empty()), "{died}");
}

#[test]
fn inputs_that_cannot_be_used_are_named_with_their_lines() {
    let jugs = |inputs: &str| Measured::new("jugs", &example("jugs.py"), inputs);
    let refused = |measured: &Measured, parts: &[&str]| {
        let study = measured.study(r#"["jugs"]"#, SYSTEM);
        measured.run(&study, "own.jsonl").refused(parts);
        measured.prime(&["bench", "solve", "--task", "jugs"]).refused(parts);
        assert!(!measured.path("own.jsonl").exists());
    };

    let bad =
        "{\"A\": 3, \"B\": 5, \"goal\": 4}\n{\"A\": 3,\n\n{\"A\": 2, \"B\": 4, \"goal\": 3}\n";
    let reason = "line 4: the program refuses the input: 3 litres cannot be measured with 2 and 4";
    refused(&jugs(bad), &["tasks.jugs.inputs: ", "line 2: is not JSON", reason]);
    refused(&jugs("\n"), &["it has no input: write one JSON value a line"]);

    let mut without = jugs("");
    let inputs = without.sets.pop().expect("the inputs");
    refused(&without, &["the task `jugs` has no inputs", "set `tasks.jugs.inputs` to a file"]);
    without.sets.push(inputs.replace("inputs.jsonl", "outputs.jsonl"));
    refused(&without, &["outputs.jsonl: the file cannot be read"]);
    without.sets.pop();
    without.sets.push(format!("tasks.jugs.inputs={}", shown(without.folder.path())));
    refused(&without, &["it is not a regular file"]);

    let measured = jugs(JUGS);
    let study = measured.study(r#"["jug"]"#, SYSTEM);
    measured.run(&study, "own.jsonl").refused(&["unknown task \"jug\"", "needs `tasks.jug`"]);
    let prompt = "[[system]]\nname = \"whole\"\nprompt = \"baseline\"\npool = \"mine\"\n";
    let study = measured.study(r#"["jugs"]"#, prompt);
    measured.run(&study, "own.jsonl").refused(&["system `whole`", "cannot be judged on `jugs`"]);
}

#[test]
fn records_of_different_programs_are_not_read_together() {
    let step = |by: &str| format!("def step(ask):\n    return {{'state': {by}, 'done': True}}");
    let (_one, path) = program(&step("1"));
    let measured = Measured::new("odd", &path, "1\n2\n");
    let study = measured.study(r#"["odd"]"#, SYSTEM);
    assert_eq!(measured.run(&study, "one.jsonl").code, 0);

    // The same program in another folder is the same.
    let (_copy, copy) = program(&step("1"));
    let mut moved = Measured::new("odd", &copy, "1\n2\n");
    let set = moved.sets.remove(1);
    let again = with_path(prime(
        &[
            &["study", "run", shown(&study), "--records", shown(&measured.path("one.jsonl"))][..],
            &["--set", &set, "--set", &moved.sets[0], "--set", &moved.sets[1]],
        ]
        .concat(),
    ));
    let again = Done::from({ again }.output().expect("the binary starts"));
    assert!(again.stderr.contains("0 of 2 runs to do"), "{}", again.stderr);

    std::fs::write(&path, std::fs::read_to_string(&copy).expect("text").replace("': 1,", "': 2,"))
        .expect("written");
    measured
        .run(&study, "one.jsonl")
        .refused(&["uniform on odd/given/00", "another program of the task `odd`"]);
    assert_eq!(measured.run(&study, "two.jsonl").code, 0);
    let (one, two) = (measured.path("one.jsonl"), measured.path("two.jsonl"));
    let out = measured.path("report");
    let report = prime(&["study", "report", shown(&one), shown(&two), "--out", shown(&out)]);
    Done::from({ report }.output().expect("the binary starts")).refused(&[
        "two.jsonl, line 1: the program of the task `odd` is not that of the records before it",
    ]);

    // Another input in the place of one that was measured.
    std::fs::write(measured.path("inputs.jsonl"), "1\n3\n").expect("written");
    let changed = measured.run(&study, "two.jsonl");
    changed.refused(&["uniform on odd/given/001", "of another input", "`tasks.odd.inputs`"]);
}

#[test]
fn bench_solves_the_inputs_of_programs_and_modules() {
    let measured = Measured::new("jugs", &example("jugs.py"), JUGS);
    let solve = ["bench", "solve", "--task", "jugs", "--system", "prime", "--output", "json"];
    let done = measured.prime(&solve);
    // As many as the file has, not the hundred that are asked for by default.
    assert!(done.stderr.contains("1 task, 1 level, 1 system: 3 runs;"), "{}", done.stderr);
    let rows = done.json(0);
    assert_eq!(rows.as_array().map(Vec::len), Some(1));
    assert_eq!((&rows[0]["task"], &rows[0]["difficulty"]), (&json!("jugs"), &json!("given")));
    assert_eq!((&rows[0]["accuracy"]["count"], &rows[0]["accuracy"]["of"]), (&json!(3), &json!(3)));

    let (_module, path) = module("DONE");
    let mut measured = Measured::new("one", "", "{}\n");
    measured.sets[1] = format!("tasks.one.module={}", shown(&path));
    let solve = ["bench", "solve", "--task", "one", "--task", "n-queens", "--instances", "2"];
    let rows = measured.prime(&[&solve[..], &["--output", "json"]].concat()).json(0);
    let row = |row: &Value| {
        let columns = ["task", "difficulty", "system"];
        let [task, level, system] = columns.map(|name| row[name].as_str().unwrap_or("").to_owned());
        (task, level, system, row["accuracy"]["of"].as_u64())
    };
    let expected = [
        ("n-queens", "easy", "single pass", 2),
        ("n-queens", "easy", "PRIME", 2),
        ("one", "given", "single pass", 1),
        ("one", "given", "PRIME", 1),
    ];
    let expected = expected.map(|(task, level, system, of)| {
        (task.to_owned(), level.to_owned(), system.to_owned(), Some(of))
    });
    assert_eq!(rows.as_array().expect("rows").iter().map(row).collect::<Vec<_>>(), expected);
    assert_eq!(rows[3]["accuracy"]["count"], 1);

    measured
        .prime(&["bench", "strategies", "--task", "one"])
        .refused(&["--task one", "tasks of the benchmark only"]);
}

#[test]
fn an_input_to_which_the_program_gives_no_answer_is_named() {
    let (_program, path) = program(
        "def start(ask):\n    return {'error': 'no'} if ask['input'] == 2 else {'state': 0}\n\
         def step(ask):\n    return {'state': 1, 'done': True}",
    );
    let measured = Measured::new("odd", &path, "1\n\n2\n");
    let solve = measured.prime(&["bench", "solve", "--task", "odd"]);
    solve.refused(&["inputs.jsonl: line 3: ", "no"]);
}

#[test]
fn single_steps_are_compared_with_the_hints_of_a_task() {
    // Three steps, of which `go` is right. One of two choices is drawn at each.
    let (_program, path) = program(
        "def start(ask):\n    return {'state': 0, 'choices': ['go', 'stay'], 'hint': 'go'}\n\
         def step(ask):\n    at = ask['state'] + (ask['line'] == 'go')\n    \
         return {'state': at, 'choices': ['go', 'stay'], 'hint': 'go', 'done': at == 3}",
    );
    let mut measured = Measured::new("odd", &path, "1\n2\n");
    let steps = ["bench", "steps", "--task", "odd", "--instances", "40", "--output", "json"];
    let rows = measured.prime(&steps).json(0);
    assert_eq!((&rows[0]["difficulty"], &rows[0]["accuracy"]["of"]), (&json!("given"), &json!(40)));

    measured.sets[0] = UNIFORM.replace("uniform", "reference");
    let rows = measured.prime(&steps).json(0);
    assert_eq!(rows[0]["accuracy"]["count"], 40);

    let jugs = Measured::new("jugs", &example("jugs.py"), JUGS);
    jugs.prime(&["bench", "steps", "--task", "jugs"]).refused(&[
        "jugs: ",
        "inputs.jsonl: line 1",
        "gives no `hint`",
        "`bench solve` needs no hints",
    ]);
}
