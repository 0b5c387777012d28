//! Tables of systems that differ in factors, parameters and sizes.

use super::*;
use crate::records::Record;
use crate::results::Results;
use crate::testing::{checked_by, record, wrong};

fn table_of(records: &[Record], id: &str) -> Table {
    let results = Results::new(records, &[]).unwrap();
    all_tables(&results, &[])
        .into_iter()
        .find(|table| table.id == id)
        .unwrap_or_else(|| panic!("no table {id}"))
}

fn shown(table: &Table, row: usize, column: &str) -> String {
    let place = table.columns.iter().position(|other| other.name == column);
    table.rows[row][place.unwrap_or_else(|| panic!("no column {column}"))].shown()
}

/// Twenty instances of one task, the first `right` of which are right.
fn system(name: &str, factors: &str, right: u32) -> Vec<Record> {
    let one = |index| {
        let run = Record { factors: Some(factors.to_owned()), ..record(name, "n-queens", index) };
        if index < right { run } else { wrong(run, "carryover") }
    };
    (0..20).map(one).collect()
}

#[test]
fn ablations_are_against_the_system_that_is_otherwise_the_same() {
    let mut records = system("full", "prompt=structured", 18);
    records.extend(system("no examples", "prompt=structured,without=examples", 8));
    records.extend(system("other prompt", "prompt=baseline", 2));

    let table = table_of(&records, "ablation");
    let names: Vec<_> = (0..table.rows.len()).map(|row| shown(&table, row, "without")).collect();
    assert_eq!(names, ["nothing", "examples"]);

    assert_eq!(
        (shown(&table, 0, "change, pp"), shown(&table, 1, "change, pp")),
        (String::new(), "-50.0".to_owned())
    );
    // Ten discordant instances, all for the full system: 2 · 0.5^10 = 0.00195.
    assert_eq!(
        (shown(&table, 1, "p"), shown(&table, 1, "significant")),
        ("0.002".to_owned(), "yes".to_owned())
    );

    // Twelve of twenty runs are wrong, with an error of state.
    assert_eq!(shown(&table, 1, "state errors, %"), "60.0");

    assert!(
        Results::new(&records, &[])
            .is_ok_and(|results| all_tables(&results, &["T59".to_owned()]).is_empty())
    );
}

#[test]
fn a_system_without_its_verifier_is_an_ablation() {
    let unchecked = |records: Vec<Record>| records.into_iter().map(|run| checked_by("", run));
    let mut records = system("full", "x=1", 20);
    records.extend(system("no vote", "x=1,without=vote", 18));
    records.extend(unchecked(system("no verifier", "x=1,without=verifier", 10)));
    records.extend(unchecked(system("neither", "x=1,without=verifier+vote", 6)));

    let table = table_of(&records, "ablation");
    let names: Vec<_> = (0..table.rows.len()).map(|row| shown(&table, row, "without")).collect();
    assert_eq!(names, ["nothing", "vote", "verifier", "verifier + vote"]);
    assert_eq!(shown(&table, 2, "change, pp"), "-50.0");

    let table = table_of(&records, "interactions");
    assert_eq!(shown(&table, 0, "difference, pp"), "-10.0", "-70 together, -10 and -50 alone");
}

#[test]
fn an_interaction_is_what_the_sum_does_not_explain() {
    let mut records = system("full", "x=1", 20);
    records.extend(system("no a", "x=1,without=a", 18));
    records.extend(system("no b", "x=1,without=b", 16));
    records.extend(system("neither", "x=1,without=a+b", 4));

    let table = table_of(&records, "interactions");
    assert_eq!(table.rows.len(), 1);

    // Without a: −10, without b: −20, without both: −80.
    let row = ["sum, pp", "together, pp", "difference, pp"].map(|column| shown(&table, 0, column));
    assert_eq!(row, ["-30.0", "-80.0", "-50.0"]);

    // By instance: 4 of 0, 12 of 1, 2 of 1 − 1 and 2 of 1 − 2; the mean is 0.5, its SD by hand
    // 0.6882, t(19) 2.0930.
    assert_eq!(shown(&table, 0, "95 %"), "-82.2 to -17.8");
}

#[test]
fn an_interaction_is_among_systems_that_saw_the_same_kinds() {
    let of = |kinds: &str, rights: [u32; 4]| -> Vec<Record> {
        let names = ["full", "no a", "no b", "neither"];
        let factors = ["x=1", "x=1,without=a", "x=1,without=b", "x=1,without=a+b"];
        let systems = names.into_iter().zip(factors).zip(rights);
        systems
            .flat_map(|((name, factors), right)| system(name, factors, right))
            .map(|run| checked_by(kinds, run))
            .collect()
    };

    let mut records = of("format,invariant,terminal", [20, 18, 16, 4]);
    let seeing = of("format,transition", [20, 10, 10, 10]);
    // Other instances: a run counts once.
    records.extend(seeing.into_iter().map(|run| Record { index: run.index + 20, ..run }));

    let table = table_of(&records, "interactions");
    assert_eq!(table.rows.len(), 2);
    let sums = [0, 1].map(|row| shown(&table, row, "sum, pp"));
    // Without a and without b: -10 and -20; of those that saw transition -50 each.
    assert_eq!(sums, ["-30.0", "-100.0"]);
}

#[test]
fn sweeps_compare_levels_with_the_default() {
    let mut records = system("PRIME", "G=4,K=5", 10);
    records.extend(system("G 16", "G=16", 20));
    records.extend(
        system("G 2", "G=2", 10)
            .into_iter()
            .map(|run| Record { wall_ms: run.wall_ms * 0.5, ..run }),
    );
    records.extend(
        system("no factor", "K=5", 10).into_iter().map(|run| Record { factors: None, ..run }),
    );

    let table = table_of(&records, "sweeps");
    let levels: Vec<_> = (0..table.rows.len()).map(|row| shown(&table, row, "level")).collect();
    assert_eq!(levels, ["2", "4 (default)", "16"], "numbers ascend, and K has one level only");

    assert_eq!(shown(&table, 0, "time ratio"), "0.50");
    assert_eq!(
        (shown(&table, 2, "change, pp"), shown(&table, 1, "change, pp")),
        ("50.0".to_owned(), String::new())
    );

    let table = table_of(&records, "sensitivity");
    assert_eq!((table.rows.len(), shown(&table, 0, "range, pp")), (1, "50.0".to_owned()));

    let figures =
        crate::figures::all_figures(&Results::new(&records, &[]).unwrap(), &["T78".to_owned()]);
    let ids: Vec<_> = figures.drawn.iter().map(|figure| figure.id.as_str()).collect();
    assert_eq!(ids, ["sweep-g"]);
}

#[test]
fn sizes_have_accuracies_and_laws() {
    let mut records = system("a", "x=1", 0);
    // At size 4 all are right, at 6 half, at 8 a quarter: accuracy = 4 e^(−λ size) with λ = ln 2 /
    // 2 = 0.3466.
    records.truncate(12);

    for (index, run) in (0_u64..).zip(&mut records) {
        run.size = Some(4 + 2 * (index / 4));
        run.right = index % 4 < 4 >> (index / 4);
    }

    let table = table_of(&records, "sizes");
    let rows: Vec<_> =
        (0..3).map(|row| (shown(&table, row, "size"), shown(&table, row, "accuracy, %"))).collect();
    assert_eq!(
        rows,
        [("4", "100.0"), ("6", "50.0"), ("8", "25.0")].map(|(a, b)| (a.to_owned(), b.to_owned()))
    );

    let laws = table_of(&records, "size-laws");
    assert_eq!(
        (shown(&laws, 0, "decay"), shown(&laws, 0, "R²")),
        ("0.3466".to_owned(), "1.000".to_owned())
    );

    assert_eq!(shown(&laws, 0, "hardness"), "0.750");
    // Mean 0.5833, SD 0.3819: 1 − 0.6547.
    assert_eq!(shown(&laws, 0, "consistency"), "0.345");
}

#[test]
fn scaling_laws_are_by_series() {
    let sized = |name: &str, factors: &str, right, parameters| {
        let runs = system(name, factors, right).into_iter();
        runs.map(move |run| Record { parameters: Some(parameters), ..run }).collect::<Vec<_>>()
    };

    // Accuracies 0.25, 0.35, 0.45 and 0.55 at 1, 2, 4 and 8 million: 0.1 by a doubling.
    let mut records = Vec::new();
    for (doublings, right) in (0..4).zip([5, 7, 9, 11]) {
        records.extend(sized(
            &format!("s{doublings}"),
            "prompt=baseline",
            right,
            1_000_000 << doublings,
        ));
    }
    records.extend(sized("alone", "prompt=structured", 3, 1_000_000));

    let table = table_of(&records, "scaling");
    assert_eq!((table.rows.len(), shown(&table, 3, "parameters")), (5, "8,000,000".to_owned()));

    let laws = table_of(&records, "scaling-laws");
    let first = ["series", "law", "b or r", "R²"].map(|column| shown(&laws, 0, column));
    assert_eq!(first, ["prompt=baseline", "a + b log2 N", "0.1000", "1.000"]);

    assert_eq!(laws.rows.len(), 4, "one size has no law");
    assert!(
        shown(&laws, 2, "b or r").starts_with('–'),
        "four sizes are too few for three parameters"
    );
}

#[test]
fn transfer_shows_what_was_held_out() {
    let mut records = Vec::new();
    for (name, trained, sorts, queens) in
        [("sorts", "comparison-sorting", 18, 4), ("everything", "all", 16, 12)]
    {
        let factors = format!("trained_on={trained}");
        records.extend(system(name, &factors, queens));
        let sorting = system(name, &factors, sorts).into_iter();
        records.extend(sorting.map(|run| Record {
            task: "bubble-sort".to_owned(),
            category: "comparison-sorting".to_owned(),
            ..run
        }));
    }

    let table = table_of(&records, "transfer");
    let row = |row| {
        ["comparison-sorting, %", "classic-puzzles, %"].map(|column| shown(&table, row, column))
    };
    assert_eq!(
        (row(0), row(1)),
        (["90.0", "20.0"].map(str::to_owned), ["80.0", "60.0"].map(str::to_owned))
    );

    let table = table_of(&records, "held-out");
    assert_eq!(table.rows.len(), 1);
    let row = ["category", "accuracy, %", "trained on all, %", "difference, pp"]
        .map(|column| shown(&table, 0, column));
    assert_eq!(row, ["classic-puzzles", "20.0", "60.0", "-40.0"]);
}
