//! `study compare`: two systems, or two studies, on the same instances.

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use clap::{Args, ValueHint};

use super::read_records;
use crate::cli::output::print;
use prime_study::records::{Record, Records};
use prime_study::report::{Choice, Report};

#[derive(Args)]
pub struct CompareArguments {
    /// A system, or a file of records
    left: String,
    /// A system, or a file of records
    right: String,
    /// Files of records that have both systems; not for two files
    #[arg(value_hint = ValueHint::FilePath)]
    records: Vec<PathBuf>,
}

/// Records whose systems are called `NAME: SYSTEM`, so that two studies can be told apart.
fn renamed(path: &Path, name: &str) -> anyhow::Result<Vec<Record>> {
    let mut records = read_records(&[path.to_owned()])?.records;
    records.iter_mut().for_each(|record| record.system = format!("{name}: {}", record.system));
    Ok(records)
}

/// Names of the systems, in the order of the records.
fn systems(records: &[Record]) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for record in records {
        if !names.contains(&record.system) {
            names.push(record.system.clone());
        }
    }
    names
}

/// Two studies: systems of the same name, or the only ones.
fn studies(left: &Path, right: &Path) -> anyhow::Result<(Records, Choice)> {
    let (mut records, other) = (renamed(left, "left")?, renamed(right, "right")?);
    let (lefts, rights) = (systems(&records), systems(&other));

    let same = lefts.iter().filter_map(|name| {
        let counterpart = name.replacen("left", "right", 1);
        rights.contains(&counterpart).then(|| (name.clone(), counterpart))
    });
    let mut pairs: Vec<(String, String)> = same.collect();
    // Studies with one system each are compared even if the names differ.
    if let ([], [left], [right]) = (&pairs[..], &lefts[..], &rights[..]) {
        pairs.push((left.clone(), right.clone()));
    }

    anyhow::ensure!(
        !pairs.is_empty(),
        "{} and {} have no system of the same name: {}; {}",
        left.display(),
        right.display(),
        lefts.join(", "),
        rights.join(", ")
    );

    records.extend(other);
    Ok((Records::from(records), Choice { pairs, ..Choice::default() }))
}

pub fn compare(arguments: &CompareArguments) -> anyhow::Result<ExitCode> {
    let (left, right) = (Path::new(&arguments.left), Path::new(&arguments.right));
    let (records, choice) = if arguments.records.is_empty() {
        anyhow::ensure!(
            left.is_file() && right.is_file(),
            "give two files of records, or two systems and the files that have their records"
        );
        studies(left, right)?
    } else {
        let pairs = vec![(arguments.left.clone(), arguments.right.clone())];
        (read_records(&arguments.records)?, Choice { pairs, ..Choice::default() })
    };

    let choice = Choice { show: vec!["T45".to_owned(), "T43".to_owned()], ..choice };
    let report = Report::new(&records.records, records.torn_bytes, &choice)?;

    let is_pair = |id: &str| id == "comparison" || id.starts_with("tasks-");
    let tables = report
        .tables
        .iter()
        .filter(|table| is_pair(&table.id))
        .map(prime_study::tables::Table::markdown);
    let remarks = report.remarks.iter().map(|remark| format!("- {remark}\n"));

    print(tables.collect::<Vec<_>>().join("\n") + &remarks.collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}
