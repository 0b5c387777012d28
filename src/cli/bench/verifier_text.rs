//! Verifier cards as tables: for the terminal, as Markdown and as an HTML page.

use minijinja::context;
use minijinja::value::Value;

use crate::cli::output::count;
use crate::cli::table::Table;
use prime_agent_set::card::{CardRow, ErrorRate, VerifierCard};
use prime_bench::interval::Proportion;
use prime_printable::markdown as cell;

const TEMPLATE: &str = include_str!("verifier.html");

/// A table before it has a form.
struct Cells<const N: usize> {
    title: &'static str,
    header: [&'static str; N],
    rows: Vec<[String; N]>,
}

impl<const N: usize> Cells<N> {
    fn table(&self) -> Table {
        Table::new(self.header, self.rows.iter().cloned())
    }

    fn markdown(&self) -> String {
        let line = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));
        let mut text = line(self.header.iter().map(|name| (*name).to_owned()).collect());
        text += &line(vec!["---".to_owned(); N]);
        for row in &self.rows {
            text += &line(row.iter().map(|text| cell(text).into_owned()).collect());
        }
        format!("## {}\n\n{text}", self.title)
    }

    fn html(&self) -> Value {
        let rows: Vec<Vec<String>> = self.rows.iter().map(|row| row.to_vec()).collect();
        context! { title => self.title, header => self.header.to_vec(), rows => rows }
    }
}

/// As in `3 of 120: 2.5 (0.9–7.1)`, in per cent with the 95 % interval.
fn share(share: Proportion) -> String {
    if share.of == 0 {
        return "-".to_owned();
    }
    format!("{} of {}: {}", share.count, share.of, share.text())
}

fn f1(row: &CardRow) -> String {
    row.first_error.f1.map_or("-".to_owned(), |f1| format!("{f1:.3}"))
}

/// One row for each verifier.
fn summary(cards: &[VerifierCard]) -> Cells<8> {
    let row = |card: &VerifierCard| {
        let all = card.overall()?;
        Some([
            card.name.clone(),
            share(all.runs.false_accepts),
            share(all.runs.false_rejects),
            share(all.steps.false_accepts),
            share(all.steps.false_accepts_garbage),
            share(all.steps.false_rejects),
            f1(all),
            (all.steps.failed + all.runs.failed).to_string(),
        ])
    };
    Cells {
        title: "Summary",
        header: [
            "verifier",
            "wrong runs accepted % (95 %)",
            "right runs rejected % (95 %)",
            "wrong steps accepted % (95 %)",
            "unreadable steps accepted % (95 %)",
            "right steps rejected % (95 %)",
            "first-error F1",
            "failed",
        ],
        rows: cards.iter().filter_map(row).collect(),
    }
}

/// What verdicts cost.
fn cost(cards: &[VerifierCard]) -> Cells<6> {
    let probability =
        |given: Option<f64>| given.map_or("-".to_owned(), |given| format!("{given:.3}"));
    let row = |card: &VerifierCard| {
        let all = card.overall()?;
        Some([
            card.name.clone(),
            format!("{:.1}", all.cost.micros_per_step),
            format!("{:.0}", all.cost.prompt_tokens),
            format!("{:.1}", all.cost.completion_tokens),
            probability(all.steps.probability_right),
            probability(all.steps.probability_wrong),
        ])
    };
    Cells {
        title: "Cost of a step",
        header: [
            "verifier",
            "µs",
            "prompt tokens",
            "completion tokens",
            "p of right steps",
            "p of wrong steps",
        ],
        rows: cards.iter().filter_map(row).collect(),
    }
}

/// How much of each type of error was accepted.
fn errors(cards: &[VerifierCard]) -> Cells<5> {
    let mut rows = Vec::new();
    for card in cards {
        let Some(all) = card.overall() else { continue };
        let (steps, runs) = (&all.steps.by_error, &all.runs.by_error);
        let mut kinds: Vec<_> =
            steps.iter().chain(runs).map(|rate| (rate.origin, rate.error)).collect();
        kinds.sort_unstable();
        kinds.dedup();

        for (origin, error) in kinds {
            let of = |rates: &[ErrorRate]| {
                let found = rates.iter().find(|rate| (rate.origin, rate.error) == (origin, error));
                found.map_or("-".to_owned(), |rate| share(rate.false_accepts))
            };
            rows.push([
                card.name.clone(),
                origin.name().to_owned(),
                error.name().to_owned(),
                of(steps),
                of(runs),
            ]);
        }
    }
    Cells {
        title: "Types of errors",
        header: [
            "verifier",
            "origin",
            "error",
            "wrong steps accepted % (95 %)",
            "wrong runs accepted % (95 %)",
        ],
        rows,
    }
}

/// A row for each task and level.
fn details(cards: &[VerifierCard]) -> Cells<8> {
    let rows = cards.iter().flat_map(|card| {
        let rows = card.results.iter().filter(|row| row.task.is_some());
        rows.map(|row| {
            [
                card.name.clone(),
                row.task.clone().unwrap_or_default(),
                row.difficulty.map(|level| level.name().to_owned()).unwrap_or_default(),
                share(row.runs.false_accepts),
                share(row.runs.false_rejects),
                share(row.steps.false_accepts),
                share(row.steps.false_rejects),
                f1(row),
            ]
        })
    });
    Cells {
        title: "Tasks and levels",
        header: [
            "verifier",
            "task",
            "level",
            "wrong runs accepted % (95 %)",
            "right runs rejected % (95 %)",
            "wrong steps accepted % (95 %)",
            "right steps rejected % (95 %)",
            "first-error F1",
        ],
        rows: rows.collect(),
    }
}

/// Which verifier each card is about, and on what it was measured.
fn about(cards: &[VerifierCard]) -> Vec<String> {
    let about = |card: &VerifierCard| {
        let levels: Vec<_> = card.difficulties.iter().map(|level| level.name()).collect();
        format!(
            "{}: {}; prime-agents {}; {}, {}; base seed {}; {} instances and {} traces of \
             each origin per task and level",
            card.name,
            card.verifier,
            card.version,
            count(card.tasks.len() as u64, "task"),
            levels.join(", "),
            card.base_seed,
            card.instances,
            card.traces
        )
    };
    let too_long =
        cards.iter().filter_map(|card| card.overall()).map(|all| all.runs.too_long).max();
    let left_out = too_long
        .filter(|count| *count > 0)
        .map(|count| format!("no runs on {count} instances whose traces have more than 200 steps"));
    cards.iter().map(about).chain(left_out).collect()
}

/// The cards for the terminal, the summary first.
pub fn text(cards: &[VerifierCard], notes: &[String], with_details: bool) -> String {
    let mut text = format!("{}\n{}", summary(cards).table(), cost(cards).table());
    if with_details {
        text += &format!("\n{}\n{}", errors(cards).table(), details(cards).table());
    }
    for note in about(cards).iter().chain(notes) {
        text += &format!("- {note}\n");
    }
    text
}

const TITLE: &str = "How often verifiers are wrong";

/// The cards as a Markdown page.
pub fn markdown(cards: &[VerifierCard], notes: &[String]) -> String {
    let mut text = format!("# {TITLE}\n\n");
    for note in about(cards).iter().chain(notes) {
        text += &format!("- {}\n", cell(note));
    }
    let tables = [summary(cards).markdown(), errors(cards).markdown(), details(cards).markdown()];
    for table in tables {
        text += &format!("\n{table}");
    }
    text
}

/// The cards as an HTML page.
pub fn page(cards: &[VerifierCard], notes: &[String]) -> String {
    let notes: Vec<String> = about(cards).into_iter().chain(notes.iter().cloned()).collect();
    let tables =
        [summary(cards).html(), cost(cards).html(), errors(cards).html(), details(cards).html()];
    prime_page::render(TEMPLATE, context! { title => TITLE, notes => notes, tables => tables })
}
