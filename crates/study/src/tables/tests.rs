use super::*;
use crate::records::Record;
use crate::results::Results;
use crate::statistics::Interval;
use crate::testing::{record, wrong};

fn table_of(records: &[Record], id: &str) -> Table {
    let results = Results::new(records, &[]).unwrap();
    let tables = all_tables(&results, &[]);
    tables.into_iter().find(|table| table.id == id).unwrap_or_else(|| panic!("no table {id}"))
}

/// The cell of a row and of a column, by name.
fn cell<'t>(table: &'t Table, row: usize, column: &str) -> &'t Cell {
    let place = table.columns.iter().position(|other| other.name == column);
    &table.rows[row][place.unwrap_or_else(|| panic!("no column {column}"))]
}

/// Twenty instances, of which the first system gets 10 right and the second 19, including all that
/// the first gets.
fn one_task() -> Vec<Record> {
    let mut records = Vec::new();
    for index in 0..20 {
        let base = record("base", "n-queens", index);
        records.push(if index < 10 { wrong(base, "index") } else { base });
        let prime = record("prime", "n-queens", index);
        records.push(if index == 0 { wrong(prime, "ordering") } else { prime });
    }
    records
}

#[test]
fn the_summary_has_wilsons_interval_for_one_task() {
    let summary = table_of(&one_task(), "summary");
    assert_eq!(cell(&summary, 0, "accuracy, %"), &Cell::Number { value: 50.0, decimals: 1 });
    // Wilson of 10/20: 29.9 to 70.1 (Newcombe 1998).
    assert_eq!(cell(&summary, 0, "95 %").shown(), "29.9 to 70.1");
}

#[test]
fn instances_with_the_same_input_count_once_for_the_interval() {
    let mut records = one_task();
    // The twenty instances have eight inputs.
    for run in &mut records {
        run.input_digest = Some(format!("{:016x}", run.index % 8));
    }

    let summary = table_of(&records, "summary");
    assert_eq!(cell(&summary, 0, "instances").shown(), "20 (8 inputs)");
    assert_eq!(cell(&summary, 0, "accuracy, %"), &Cell::Number { value: 50.0, decimals: 1 });
    // Wilson of 4/8: 21.5 to 78.5 (Newcombe's formula by hand).
    assert_eq!(cell(&summary, 0, "95 %").shown(), "21.5 to 78.5");
}

#[test]
fn one_task_is_compared_by_mcnemar() {
    let comparison = table_of(&one_task(), "comparison");
    assert_eq!(cell(&comparison, 0, "gain, pp").shown(), "45.0");

    // Nine discordant instances, all for the second system: 2 · 0.5^9.
    assert!(matches!(cell(&comparison, 0, "p"), Cell::P(p) if (p - 2.0 / 512.0).abs() < 1e-12));

    assert_eq!(cell(&comparison, 0, "significant").shown(), "yes");
    assert!(
        matches!(cell(&comparison, 0, "d_z"), Cell::LeftOut(reason) if reason.contains("at least 2 pairs"))
    );
}

#[test]
fn tests_without_enough_discordance_are_left_out_with_the_reason() {
    let records: Vec<Record> =
        one_task().into_iter().filter(|record| record.index % 3 == 0).collect();

    let tasks = table_of(&records, "tasks-base-prime");
    let reason = "needs at least 6 discordant instances, has 3";

    assert_eq!(cell(&tasks, 0, "p"), &Cell::LeftOut(reason.to_owned()));
    assert_eq!(tasks.reasons(), [reason]);
    assert!(tasks.markdown().contains(&format!("(1) Left out: {reason}.")));

    assert!(
        tasks.csv().contains(&format!("p: {reason}; \"\"p, Holm\"\""))
            || tasks.csv().contains(reason)
    );
}

#[test]
fn too_many_unmeasured_pairs_stop_all_tests() {
    let mut records = one_task();
    for record in records.iter_mut().filter(|record| record.system == "prime" && record.index > 17)
    {
        record.status = crate::records::Status::NotMeasured;
    }

    let comparison = table_of(&records, "comparison");
    assert_eq!(cell(&comparison, 0, "dropped"), &Cell::Count(2));
    assert!(
        matches!(cell(&comparison, 0, "p"), Cell::LeftOut(reason) if reason.contains("2 of 20 pairs"))
    );
}

#[test]
fn errors_are_shares_of_wrong_runs() {
    let errors = table_of(&one_task(), "error-types");
    assert_eq!(cell(&errors, 0, "wrong runs"), &Cell::Count(10));
    assert_eq!(cell(&errors, 0, "index, %").shown(), "100.0");

    let severities = table_of(&one_task(), "severities");
    assert_eq!(cell(&severities, 0, "major, % of wrong").shown(), "100.0");
    assert_eq!(cell(&severities, 0, "major, % of runs").shown(), "50.0");

    let first = table_of(&one_task(), "first-errors");
    assert_eq!(cell(&first, 0, "mean, %").shown(), "40.0");
}

#[test]
fn the_constraints_that_refused_most_are_named_for_each_system() {
    let mut records = one_task();
    for record in records.iter_mut().filter(|record| record.system == "prime") {
        record.refused = Some(match record.index {
            0 => "{\"column\":3,\"row\":1}".to_owned(),
            1 => "{\"diagonal\":4}".to_owned(),
            _ => "{}".to_owned(),
        });
    }

    let table = table_of(&records, "refusals");
    let shown: Vec<Vec<String>> =
        table.rows.iter().map(|row| row.iter().map(Cell::shown).collect()).collect();
    assert_eq!(
        shown,
        [
            ["prime", "diagonal", "4", "50.0", "1", "1"],
            ["prime", "column", "3", "37.5", "1", "1"],
            ["prime", "row", "1", "12.5", "1", "1"],
        ]
    );
}

#[test]
fn retries_are_pooled() {
    // 44 proposals, 3 retries on 2 steps, 1 backtrack: 40 accepted steps.
    let retries = table_of(&one_task(), "retries");
    assert_eq!(cell(&retries, 0, "retries, %").shown(), "6.82");
    assert_eq!(cell(&retries, 0, "steps retried, %").shown(), "5.00");
    assert_eq!(cell(&retries, 0, "retries a retried step").shown(), "1.50");
    assert_eq!(cell(&retries, 0, "backtracks, %").shown(), "2.27");
}

#[test]
fn formats_write_the_same_values_in_their_own_way() {
    let table = Table {
        id: "t".to_owned(),
        paper: "Table 0",
        title: "A & B".to_owned(),
        caption: "50 % of <x>".to_owned(),
        columns: vec![
            Column::text("name, of"),
            Column::number("x, %"),
            Column::interval("95 %"),
            Column::number("p"),
        ],
        rows: vec![
            vec![
                Cell::Text("a|\"b\"_1".to_owned()),
                Cell::number(-0.04, 1),
                Cell::interval(Interval { low: -1.25, high: 12.5 }, 1),
                Cell::P(0.000_2),
            ],
            vec![
                Cell::Empty,
                Cell::number(123.456, 1),
                Cell::LeftOut("no data".to_owned()),
                Cell::LeftOut("no data".to_owned()),
            ],
        ],
    };

    assert_eq!(
        table.csv(),
        "\"name, of\",\"x, %\",\"95 %, low\",\"95 %, high\",p,left out\r\n\
         \"a|\"\"b\"\"_1\",-0.04,-1.25,12.5,0.0002,\r\n,123.456,,,,95 %: no data; p: no data\r\n"
    );

    insta::assert_snapshot!("markdown", table.markdown());
    insta::assert_snapshot!("latex", table.latex());
}

#[test]
fn unknown_numbers_name_the_nearest() {
    assert_eq!(check_items(&["T2".to_owned(), "F21".to_owned()]), Ok(()));
    let error = check_items(&["T611".to_owned()]).unwrap_err().to_string();
    assert!(error.contains("`T611`") && error.contains("did you mean `T61`"), "{error}");
}

#[test]
fn people_read_separators_and_programs_do_not() {
    let table = Table {
        id: "many".to_owned(),
        paper: "none",
        title: "Many".to_owned(),
        caption: String::new(),
        columns: vec![Column::number("runs"), Column::number("ms")],
        rows: vec![vec![Cell::Count(1_234_567), Cell::number(12_345.67, 1)]],
    };
    assert!(table.markdown().contains("| 1,234,567 | 12,345.7 |"), "{}", table.markdown());
    assert!(table.csv().ends_with("\r\n1234567,12345.67\r\n"), "{}", table.csv());
    assert!(table.latex().contains("1234567 & 12345.7 "), "{}", table.latex());
}
