use std::fs::File;
use std::path::Path;

use parquet::file::reader::{FileReader as _, SerializedFileReader};
use parquet::record::{Field, Row};
use prime_bench::dataset::Selection;
use prime_bench::judge::single::{Verification, VerifyRequest, judge};
use prime_bench::tasks::find;
use serde_json::{Value, json};

use super::*;

const SEED: u64 = 7;

fn options(kind: Kind, asks: &[Ask]) -> Options {
    Options { kind, asks: asks.to_vec(), steps_max: 5, lines_max: 200, benchmark_inputs: true }
}

fn selection() -> Selection {
    Selection {
        difficulties: vec![Difficulty::Easy, Difficulty::Medium],
        instances: 2,
        base_seed: SEED,
    }
}

/// The rows of a written file, by a reader of Parquet.
fn read(folder: &Path, name: &str) -> Vec<Value> {
    let file = File::open(folder.join("data").join(format!("{name}.parquet"))).expect("a file");
    let reader = SerializedFileReader::new(file).expect("Parquet");
    reader.get_row_iter(None).expect("rows").map(|row| row_as_json(&row.expect("a row"))).collect()
}

fn row_as_json(row: &Row) -> Value {
    row.get_column_iter().map(|(name, field)| (name.clone(), as_json(field))).collect()
}

fn as_json(field: &Field) -> Value {
    match field {
        Field::Str(text) => text.as_str().into(),
        Field::Int(number) => (*number).into(),
        Field::Long(number) => (*number).into(),
        Field::Double(number) => (*number).into(),
        Field::Group(row) => row_as_json(row),
        Field::ListInternal(list) => list.elements().iter().map(as_json).collect(),
        other => panic!("{other:?} is in no table"),
    }
}

fn made(
    tasks: &[&str],
    options: &Options,
    recorded: Vec<Recorded>,
) -> (tempfile::TempDir, Summary) {
    let folder = tempfile::tempdir().expect("a folder");
    let tasks: Vec<_> = tasks.iter().map(|slug| find(slug).expect("listed")).collect();
    let summary =
        write(folder.path(), &tasks, &selection(), options, recorded, 2, &|| ()).expect("written");
    (folder, summary)
}

fn content<'r>(row: &'r Value, column: &str, role: &str) -> &'r str {
    let messages = row[column].as_array().expect("messages");
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!(role)), "{column}");
    messages[0]["content"].as_str().expect("a text")
}

#[test]
fn steps_are_those_of_the_reference() {
    let (folder, summary) =
        made(&["bubble-sort", "tower-of-hanoi"], &options(Kind::Sft, &[Ask::Step]), Vec::new());
    assert_eq!(summary.files, 2);

    let rows = read(folder.path(), "tower-of-hanoi");
    assert!(rows.len() > 4 && rows.len() <= 20, "{}", rows.len());

    for row in &rows {
        assert_eq!(
            (&row["style"], &row["base_seed"], &row["task"]),
            (&json!("compact"), &json!(SEED), &json!("tower-of-hanoi"))
        );
        assert_eq!(row["phase"], if row["difficulty"] == "easy" { 1 } else { 2 });

        assert!(content(row, "prompt", "user").starts_with("tower-of-hanoi "), "{row}");

        let line = content(row, "completion", "assistant").rsplit('\n').next().expect("a line");
        let mut state = find("tower-of-hanoi").expect("listed").generate_at(row).start();
        (0..row["step"].as_u64().expect("a number"))
            .for_each(|_| assert!(state.follow_reference()));
        assert_eq!(state.reference().as_deref(), Some(line));
    }

    let card = std::fs::read_to_string(folder.path().join("README.md")).expect("a card");
    let files = "- split: train\n    path:\n    - data/bubble-sort.parquet\n    - data/tower-of-hanoi.parquet\n---\n";
    assert!(card.contains(files) && card.contains("base seed 7,"), "{card}");
}

#[test]
fn what_the_benchmark_has_is_left_out() {
    let fresh = Options { benchmark_inputs: false, ..options(Kind::Sft, &[Ask::Step]) };
    let (folder, summary) = made(&["bubble-sort", "tower-of-hanoi"], &fresh, Vec::new());

    // The levels have 3 to 14 discs and six pairs of pegs, and the benchmark 71 of these 72.
    assert_eq!((summary.of_benchmark, &summary.exhausted[..]), (4, &["tower-of-hanoi"][..]));
    assert_eq!((summary.files, summary.left_out), (1, 0));
    assert!(!read(folder.path(), "bubble-sort").is_empty());
    assert!(!folder.path().join("data/tower-of-hanoi.parquet").exists());

    let card = std::fs::read_to_string(folder.path().join("README.md")).expect("a card");
    assert!(card.contains("4 of them, whose inputs the benchmark has, are left out."), "{card}");
}

/// The instance that a row names.
trait At {
    fn generate_at(&self, row: &Value) -> std::sync::Arc<dyn Problem>;
}

impl At for &'static dyn prime_bench::tasks::AnyTask {
    fn generate_at(&self, row: &Value) -> std::sync::Arc<dyn Problem> {
        let level =
            row["difficulty"].as_str().and_then(|level| level.parse().ok()).expect("a level");
        let index =
            row["index"].as_u64().and_then(|index| u32::try_from(index).ok()).expect("an index");
        InstanceId::new(*self, level, index, SEED).expect("an instance").problem()
    }
}

#[test]
fn whole_traces_pass_the_judge_and_long_ones_are_left_out() {
    let asks = [Ask::Whole(Style::Baseline), Ask::Whole(Style::Sorting)];
    let (folder, summary) =
        made(&["bubble-sort", "n-queens"], &options(Kind::Sft, &asks), Vec::new());
    assert_eq!(summary.rows + summary.left_out, 8);

    let rows = read(folder.path(), "n-queens");
    for row in &rows {
        // The sorting template suits no puzzle.
        assert!(row["style"] == "baseline" || row["style"] == "structured", "{row}");

        let text = content(row, "completion", "assistant");
        let answer = text
            .split("<answer>\n")
            .nth(1)
            .and_then(|rest| rest.strip_suffix("\n</answer>"))
            .expect("an answer");

        let request = json!({
            "task": "n-queens",
            "difficulty": row["difficulty"],
            "index": row["index"],
            "base_seed": SEED,
            "answer": serde_json::from_str::<Value>(answer).expect("JSON"),
        });
        let request: VerifyRequest = serde_json::from_value(request).expect("a request");

        assert!(
            matches!(judge(&request), Ok(Verification::Answer(verdict)) if verdict.right),
            "{answer}"
        );
    }
}

#[test]
fn what_is_rejected_is_wrong_and_what_is_chosen_is_right() {
    let (folder, _) =
        made(&["bubble-sort", "n-queens"], &options(Kind::Dpo, &[Ask::Step]), Vec::new());
    for task in ["bubble-sort", "n-queens"] {
        let rows = read(folder.path(), task);

        assert!(rows.len() > 4, "{task}: {}", rows.len());
        for row in rows {
            let (chosen, rejected) =
                (content(&row, "chosen", "assistant"), content(&row, "rejected", "assistant"));

            assert_ne!(chosen, rejected);
            assert_eq!(
                chosen.lines().count(),
                rejected.lines().count(),
                "the derivation is the same"
            );
            assert!(row["rejected_v_tenths"].as_u64().expect("a number") > 0, "{row}");
            assert_eq!(row["source"], "reference");
        }
    }
}

#[test]
fn prompts_have_the_columns_of_reward_functions() {
    let asks = [Ask::Whole(Style::Structured(Components::ALL))];
    let (folder, summary) = made(&["bubble-sort"], &options(Kind::Grpo, &asks), Vec::new());
    assert_eq!((summary.rows, summary.left_out), (4, 0));

    for row in read(folder.path(), "bubble-sort") {
        let label: Value =
            serde_json::from_str(row["label"].as_str().expect("a text")).expect("JSON");

        for name in ["task", "difficulty", "index", "base_seed"] {
            assert_eq!(label[name], row[name], "{name}");
            assert_eq!(row["extra_info"][name], row[name], "{name}");
        }

        assert_eq!(row["reward_model"], json!({"style": "rule", "ground_truth": row["label"]}));
        assert!(content(&row, "prompt", "user").contains("<actions>"));
    }
}

/// A trace in which the second of two lines at the first state was rejected, and one at the next is
/// alone.
const TRACE: &str = r#"{"seq":0,"event":"accepted","run":"run_1","spec":{"task":"bubble-sort","instance":"bubble-sort/easy/003","input":{"a":[2,1]},"plan":{}}}
{"seq":1,"event":"started"}
{"seq":2,"event":"step","round":0,"trajectory":0,"depth":0,"action":"swap 0 1","applicable":true,"score":0.6,"violations":["x"],"state":STATE}
{"seq":3,"event":"step","round":0,"trajectory":0,"depth":0,"action":"cmp 0 1","derivation":"2 1","applicable":true,"score":0,"violations":[],"state":STATE}
{"seq":4,"event":"step","round":0,"trajectory":1,"depth":0,"action":"swap 0 1","applicable":true,"score":0.6,"violations":["x"],"state":STATE}
"#;

#[test]
fn pairs_of_a_run_are_two_lines_in_one_state() {
    let start = find("bubble-sort")
        .expect("listed")
        .read_input(&json!({"a": [2, 1]}))
        .expect("an input")
        .start();
    let recorded =
        read_trace(&TRACE.replace("STATE", &start.state().to_string()), Preference::Verdict)
            .expect("a trace");
    assert_eq!((recorded.run.as_str(), recorded.pairs.len()), ("run_1", 1));

    let (folder, summary) = made(&[], &options(Kind::Dpo, &[Ask::Step]), vec![recorded]);
    assert_eq!((summary.files, summary.rows), (1, 1));

    let rows = read(folder.path(), "runs");
    assert_eq!(content(&rows[0], "chosen", "assistant"), "2 1\ncmp 0 1");
    assert_eq!(content(&rows[0], "rejected", "assistant"), "swap 0 1");
    assert_eq!(content(&rows[0], "prompt", "user"), compact(start.as_ref()));
    assert_eq!(
        (&rows[0]["rejected_v_tenths"], &rows[0]["difficulty"], &rows[0]["source"]),
        (&json!(6), &json!("easy"), &json!("run_1"))
    );
    assert_eq!((&rows[0]["chosen_score"], &rows[0]["rejected_score"]), (&json!(0.0), &json!(-0.6)));
}

/// Five proposals in one state, none of them clean: V 0.6, 1.2, 0.6 (the first line again), 0.2 and
/// 1.2 (a refused line).
const FAULTY: &str = r#"{"seq":0,"event":"accepted","run":"run_2","spec":{"task":"bubble-sort","instance":"input","input":{"a":[2,1]},"plan":{}}}
{"seq":1,"event":"step","action":"swap 0 1","applicable":true,"score":0.6,"state":STATE}
{"seq":2,"event":"step","action":"done","applicable":true,"score":1.2,"state":STATE}
{"seq":3,"event":"step","action":"swap 0 1","applicable":true,"score":0.6,"state":STATE}
{"seq":4,"event":"step","action":"cmp 0 1","applicable":true,"score":0.2,"state":STATE}
{"seq":5,"event":"step","action":"","exhausted":true,"applicable":false,"score":1.0,"state":STATE}
"#;

#[test]
fn scores_prefer_the_lesser_fault_where_no_line_is_clean() {
    let start = find("bubble-sort")
        .expect("listed")
        .read_input(&json!({"a": [2, 1]}))
        .expect("an input")
        .start();

    let trace = FAULTY.replace("STATE", &start.state().to_string());

    let pairs = |preference| {
        let pairs = read_trace(&trace, preference).expect("a trace").pairs;
        pairs.into_iter().map(|pair| (pair.chosen, pair.rejected, pair.scores)).collect::<Vec<_>>()
    };
    assert!(pairs(Preference::Verdict).is_empty(), "no line is clean");

    let text = |line: &str| line.to_owned();
    let near = |found: &[(String, String, [f64; 2])], wanted: &[(&str, &str, [f64; 2])]| {
        assert_eq!(found.len(), wanted.len(), "{found:?}");
        for ((chosen, rejected, scores), (right, wrong, numbers)) in found.iter().zip(wanted) {
            assert_eq!((chosen, rejected), (&text(right), &text(wrong)));
            assert!(
                scores.iter().zip(numbers).all(|(found, wanted)| (found - wanted).abs() < 1e-9),
                "{scores:?}"
            );
        }
    };

    let by = |margin, consistency| pairs(Preference::Score { margin, consistency });
    near(
        &by(0.1, 0.0),
        &[("cmp 0 1", "swap 0 1", [-0.2, -0.6]), ("cmp 0 1", "done", [-0.2, -1.2])],
    );
    near(&by(0.5, 0.0), &[("cmp 0 1", "done", [-0.2, -1.2])]);

    // Half of the proposals say `swap 0 1`: with λ = 2 their agreement outweighs the fault.
    near(&by(0.1, 2.0), &[("swap 0 1", "cmp 0 1", [0.4, 0.3]), ("swap 0 1", "done", [0.4, -0.7])]);
    near(
        &by(0.4, 0.0),
        &[("cmp 0 1", "swap 0 1", [-0.2, -0.6]), ("cmp 0 1", "done", [-0.2, -1.2])],
    );
}

#[test]
fn what_is_no_trace_is_refused_with_a_reason() {
    let refused = |text: &str| {
        read_trace(text, Preference::Verdict).map(|_| ()).expect_err("refused").to_string()
    };
    assert!(refused("{\"event\":\"started\"}\nnonsense").contains("line 2"));
    assert!(refused("").contains("accepted"));
    assert!(refused(&TRACE.replace(",\"state\":STATE", "")).contains("--no-states"));
    assert!(
        refused(
            &TRACE
                .replace("\"task\":\"bubble-sort\"", "\"task\":\"problem\"")
                .replace("STATE", "{}")
        )
        .contains("own")
    );
    assert!(refused(&TRACE.replace("STATE", "{\"a\":1}")).contains("version"));
}
