//! `docs/paper.md`: every table and figure of the paper, in its order, with a command that exists
//! and ours that exist.

use std::collections::BTreeSet;
use std::path::Path;

use clap::Parser as _;

use super::Arguments;
use prime_study::tables::ITEMS;

const PAGE: &str = include_str!("../../docs/paper.md");
/// Tables and figures of the paper.
const COUNTS: [(char, usize); 2] = [('T', 90), ('F', 31)];

/// The cells of each row: number, caption, command, ours.
fn rows() -> Vec<[&'static str; 4]> {
    let cells = |line: &'static str| {
        let cells: Vec<&str> = line.trim_matches('|').split(" | ").map(str::trim).collect();
        cells.try_into().unwrap_or_else(|cells| panic!("{cells:?}"))
    };
    PAGE.lines()
        .filter(|line| line.starts_with("| T") || line.starts_with("| F"))
        .map(cells)
        .collect()
}

/// Texts between backticks.
fn code(text: &'static str) -> impl Iterator<Item = &'static str> {
    text.split('`').skip(1).step_by(2)
}

#[test]
fn all_tables_and_figures_are_there_in_order() {
    for (kind, count) in COUNTS {
        let numbers: Vec<_> = rows()
            .into_iter()
            .map(|[number, ..]| number)
            .filter(|it| it.starts_with(kind))
            .collect();
        let expected: Vec<_> = (1..=count).map(|number| format!("{kind}{number}")).collect();
        assert_eq!(numbers, expected);
    }
}

#[test]
fn every_row_has_a_command_that_parses_or_a_reason() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    for [number, caption, command, ours] in rows() {
        assert!(!caption.is_empty() && !ours.is_empty(), "{number}");
        let Some(line) = code(command).next() else {
            assert_eq!(command, "–", "{number}");
            continue;
        };

        let parsed = Arguments::try_parse_from(line.split(' '));
        let is_version =
            |error: &clap::Error| error.kind() == clap::error::ErrorKind::DisplayVersion;
        assert!(
            parsed.as_ref().err().is_none_or(is_version),
            "{number}: {line}: {:?}",
            parsed.err()
        );

        for file in line
            .split(' ')
            .map(Path::new)
            .filter(|file| file.extension().is_some_and(|it| it == "toml"))
        {
            assert!(root.join(file).is_file(), "{number}: {}", file.display());
        }
    }
}

#[test]
fn what_studies_show_exists_and_is_asked_for() {
    let known: BTreeSet<&str> = ITEMS.iter().flat_map(|item| item.ours).copied().collect();
    for [number, _, command, ours] in
        rows().into_iter().filter(|[_, _, command, _]| command.contains("study run"))
    {
        // What follows the link is a remark.
        let (names, _) =
            ours.split_once(" in [study.md]").unwrap_or_else(|| panic!("{number}: {ours}"));
        assert!(code(names).count() > 0, "{number}");
        for name in code(names) {
            assert!(known.contains(name), "{number}: {name}");
        }

        let line = code(command).next().unwrap_or_default();
        let file = line.split(' ').next_back().unwrap_or_default();
        let study =
            prime_study::definition::load(&Path::new(env!("CARGO_MANIFEST_DIR")).join(file))
                .unwrap();

        let shown = |name| {
            let asked = |item: &&prime_study::tables::Item| {
                study.choice.show.is_empty()
                    || study.choice.show.iter().any(|number| number == item.number)
            };
            ITEMS.iter().filter(asked).any(|item| item.ours.contains(&name))
        };

        assert!(code(names).all(shown), "{number}: {file} does not show {names}");
    }
}

#[test]
fn links_into_results_lead_to_a_table_or_a_figure() {
    let docs = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs");
    let links: BTreeSet<&str> =
        PAGE.split("](").skip(1).filter_map(|rest| Some(rest.split_once(')')?.0)).collect();

    let results: Vec<_> = links.into_iter().filter_map(|link| link.split_once(".html#")).collect();
    assert!(!results.is_empty());

    for (report, anchor) in results {
        let page = std::fs::read_to_string(docs.join(format!("{report}.html"))).unwrap();
        assert!(page.contains(&format!("id=\"{anchor}\"")), "{report}: {anchor}");
    }
}
