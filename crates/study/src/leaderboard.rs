//! A leaderboard: the systems of one study, perhaps of several makers, on the instances that its
//! file asks.

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet};

use prime_printable::printable_line;

use crate::definition::Study;
use crate::records::{Evidence, Record, short_digest};
use crate::results::{Accuracy, Instance, Results, SystemResults, over_instances};
use crate::tables::{Cell, Column, Table};

/// The systems of a study, best first.
#[derive(Debug)]
pub struct Leaderboard {
    /// A table for each worth of verdicts.
    pub tables: Vec<Table>,
    /// Instances that the study asks.
    pub instances: usize,
    /// Runs that are left out because the study does not ask for them.
    pub left_out: usize,
}

/// The instances of a study, each with its task's slug.
type Asked<'s> = BTreeSet<(&'s str, Instance)>;

/// A system's line.
struct Row<'r> {
    name: &'r str,
    /// The weakest of its verdicts, which may differ by task.
    evidence: Evidence,
    runs: Vec<&'r Record>,
    accuracy: Accuracy,
    tokens: f64,
    seconds: f64,
}

impl Row<'_> {
    fn is_complete(&self, asked: usize) -> bool {
        self.accuracy.n == asked
    }

    fn label(&self) -> String {
        let warning = self.evidence.warning();
        let name = printable_line(self.name);
        if warning.is_empty() { name.into_owned() } else { format!("{name} ({warning})") }
    }

    /// Its model; of several, their number, because their digests do not fit a table.
    fn model(&self) -> String {
        let digest = self.runs.iter().find_map(|run| run.model_digest.as_deref());
        match digest.map_or(0, |digest| digest.split(", ").count()) {
            0..=MODELS_SHOWN => short_digest(digest),
            count => format!("{count} models"),
        }
    }
}

/// Most models of a system that are named.
const MODELS_SHOWN: usize = 3;

fn asked_by(study: &Study) -> Asked<'_> {
    let instance = |run: crate::definition::AskedRun| {
        let difficulty = run.task.given().is_none().then_some(run.difficulty);
        let instance = Instance { difficulty, base_seed: run.base_seed, index: run.index };
        (run.task.spec().slug, instance)
    };
    study.runs().map(instance).collect()
}

/// The line of a system, whose results are divided by the worth of its verdicts.
fn row<'r>(parts: &[&'r SystemResults<'r>]) -> Row<'r> {
    let runs: Vec<&Record> = parts.iter().flat_map(|part| part.runs.iter().copied()).collect();
    let mean = |of: &dyn Fn(&Record) -> f64| {
        runs.iter().map(|run| of(run)).sum::<f64>() / runs.len().max(1) as f64
    };
    let values: Vec<_> = parts.iter().flat_map(|part| part.values(|_, _| true)).collect();
    let strength = |evidence: Evidence| {
        Evidence::CLAIMS.iter().rev().position(|claim| *claim == evidence).unwrap_or(usize::MAX)
    };
    let evidence = parts.iter().map(|part| part.evidence).min_by_key(|part| strength(*part));
    Row {
        name: &parts[0].name,
        evidence: evidence.unwrap_or(Evidence::Nothing),
        accuracy: over_instances(&values),
        tokens: mean(&|run| (run.prompt_tokens + run.completion_tokens) as f64),
        seconds: mean(&|run| run.wall_ms / 1e3),
        runs,
    }
}

/// Complete systems first, then by accuracy, then by the tokens that they need for it.
fn order(asked: usize) -> impl Fn(&Row<'_>, &Row<'_>) -> Ordering {
    move |one, other| {
        let complete = other.is_complete(asked).cmp(&one.is_complete(asked));
        let accuracy = other.accuracy.mean.total_cmp(&one.accuracy.mean);
        let tokens = one.tokens.total_cmp(&other.tokens);
        complete.then(accuracy).then(tokens).then_with(|| one.name.cmp(other.name))
    }
}

fn program(runs: &[&Record]) -> String {
    let programs: BTreeSet<_> = runs
        .iter()
        .map(|run| match &run.commit {
            Some(commit) => format!("{} ({})", run.version, commit.get(..8).unwrap_or(commit)),
            None => run.version.clone(),
        })
        .collect();
    printable_line(&programs.into_iter().collect::<Vec<_>>().join(", ")).into_owned()
}

fn cells(place: usize, row: &Row<'_>, asked: usize) -> Vec<Cell> {
    let Row { runs, accuracy, tokens, seconds, .. } = row;
    let wrong = runs.iter().filter(|run| run.accepted && !run.right).count();
    vec![
        if row.is_complete(asked) { Cell::count(place) } else { Cell::Empty },
        Cell::Text(row.label()),
        Cell::Text(row.model()),
        Cell::percent(accuracy.mean),
        Cell::percent_interval(&accuracy.interval),
        Cell::Text(format!("{} of {asked}", accuracy.n)),
        Cell::count(wrong),
        Cell::number(*tokens, 0),
        Cell::number(*seconds, 1),
        Cell::Text(program(runs)),
    ]
}

fn table(evidence: Evidence, mut rows: Vec<Row<'_>>, asked: usize) -> Table {
    rows.sort_by(order(asked));
    let title = if evidence == Evidence::Nothing {
        "Without a verifier".to_owned()
    } else {
        format!("The verifier looked at {}", evidence.heading())
    };
    Table {
        id: format!("leaderboard-{}", evidence.slug()),
        paper: "",
        title,
        caption:
            "Share of the study's instances with a right answer, with its 95 % interval, clustered \
             by task; then the instances that were measured, the wrong answers that the system's own \
             verifier accepted, and tokens of prompts and completions and seconds of a run. A \
             system whose verdicts differ in worth by task is in the table of the weakest. Only \
             systems that were measured on all instances have a place."
                .to_owned(),
        columns: vec![
            Column::number("place"),
            Column::text("system"),
            Column::text("model"),
            Column::number("right, %"),
            Column::interval("95 %"),
            Column::text("instances"),
            Column::number("accepted, wrong"),
            Column::number("tokens"),
            Column::number("seconds"),
            Column::text("program"),
        ],
        rows: rows.iter().enumerate().map(|(at, row)| cells(at + 1, row, asked)).collect(),
    }
}

/// Ranks the systems that the records are of. Systems whose verdicts differ in worth are never in
/// one table; those without a verifier have one of their own.
pub fn leaderboard(study: &Study, records: &[Record]) -> Leaderboard {
    let asked = asked_by(study);
    let is_asked = |record: &Record| {
        record.study == study.name && asked.contains(&(record.task.as_str(), Instance::of(record)))
    };
    let kept: Vec<Record> = records.iter().filter(|record| is_asked(record)).cloned().collect();

    let results = Results::new(&kept, &[]).expect("invariant: no pair is named");
    let mut parts: BTreeMap<&str, Vec<&SystemResults<'_>>> = BTreeMap::new();
    for system in &results.systems {
        parts.entry(&system.name).or_default().push(system);
    }
    let mut rows: BTreeMap<Evidence, Vec<Row<'_>>> = BTreeMap::new();
    for row in parts.values().map(|parts| row(parts)) {
        rows.entry(row.evidence).or_default().push(row);
    }
    let mut of =
        |evidence: Evidence| rows.remove(&evidence).map(|rows| table(evidence, rows, asked.len()));
    let tables =
        Evidence::CLAIMS.into_iter().chain([Evidence::Nothing]).filter_map(&mut of).collect();

    Leaderboard { tables, instances: asked.len(), left_out: records.len() - kept.len() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::definition::parse;
    use crate::testing::{checked_by, record, wrong};

    const STUDY: &str = r#"
[study]
name = "test"

[ask]
tasks = ["n-queens"]
difficulties = ["easy"]
instances = 4
base_seeds = [7]

[[system]]
name = "prime"
"#;

    fn rows(table: &Table) -> Vec<(Cell, String, Cell)> {
        let name = |cell: &Cell| match cell {
            Cell::Text(text) => text.clone(),
            other => panic!("{other:?}"),
        };
        table.rows.iter().map(|row| (row[0].clone(), name(&row[1]), row[3].clone())).collect()
    }

    #[test]
    fn systems_are_ranked_where_they_were_measured_on_all_instances() {
        let study = parse(STUDY, "test.toml").unwrap();
        let four = |system: &str| (0..4).map(|index| record(system, "n-queens", index)).collect();
        let mut dear: Vec<Record> = four("dear");
        dear.iter_mut().for_each(|run| run.prompt_tokens = 9_000);
        let mut worse: Vec<Record> = four("worse");
        worse[2] = wrong(worse[2].clone(), "index");
        let mut records = [dear, worse, four("good")].concat();
        // Right on all that it was asked, which is not all.
        records.extend((0..3).map(|index| record("partial", "n-queens", index)));
        // Another instance than the study's.
        records.push(record("good", "n-queens", 9));

        let board = leaderboard(&study, &records);
        assert_eq!((board.instances, board.left_out), (4, 1));
        let [table] = &board.tables[..] else { panic!("{:?}", board.tables) };
        let place = |place: usize| Cell::count(place);
        assert_eq!(
            rows(table),
            [
                (place(1), "good".to_owned(), Cell::percent(1.0)),
                (place(2), "dear".to_owned(), Cell::percent(1.0)),
                (place(3), "worse".to_owned(), Cell::percent(0.75)),
                (Cell::Empty, "partial".to_owned(), Cell::percent(1.0)),
            ]
        );
    }

    #[test]
    fn verdicts_of_different_worth_have_tables_of_their_own() {
        let study = parse(STUDY, "test.toml").unwrap();
        let records = [
            record("sound", "n-queens", 0),
            checked_by("format,transition", record("oracle", "n-queens", 0)),
            checked_by("", record("none", "n-queens", 0)),
        ];

        let board = leaderboard(&study, &records);
        let ids: Vec<_> = board.tables.iter().map(|table| table.id.as_str()).collect();
        assert_eq!(ids, ["leaderboard-sound", "leaderboard-transition", "leaderboard-unchecked"]);
    }

    #[test]
    fn a_system_is_ranked_by_its_weakest_verdicts_on_all_its_instances() {
        let study = parse(STUDY, "test.toml").unwrap();
        let checked = |kinds: &str, index| checked_by(kinds, record("mixed", "n-queens", index));
        let mut records: Vec<Record> =
            (0..3).map(|index| checked("format,invariant", index)).collect();
        records.push(checked("format,transition", 3));
        records[0].model_digest = Some(["a 1", "b 2", "c 3", "d 4"].join(", "));

        let board = leaderboard(&study, &records);
        let [table] = &board.tables[..] else { panic!("{:?}", board.tables) };
        assert_eq!(table.id, "leaderboard-transition");
        assert_eq!(table.rows[0][0], Cell::count(1));
        assert_eq!(table.rows[0][2], Cell::Text("4 models".to_owned()));
    }

    #[test]
    fn what_others_wrote_is_made_printable() {
        let study = parse(STUDY, "test.toml").unwrap();
        let board = leaderboard(&study, &[record("a\u{1b}[2J", "n-queens", 0)]);
        assert!(!rows(&board.tables[0])[0].1.contains('\u{1b}'));
    }
}
