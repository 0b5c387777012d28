//! A report as one self-contained HTML page. Everything is readable without JavaScript; a small
//! script sorts tables, shows values at the pointer and the keyboard, and saves figures.

use minijinja::context;
use minijinja::value::Value;

use super::Report;
use crate::figures::Figure;
use crate::tables::{Cell, ColumnKind, Table};

const TEMPLATE: &str = include_str!("page.html");

fn figure(figure: &Figure) -> Value {
    let panels = figure.files().map(|(file, svg)| {
        // The drawing's texts are already escaped.
        context! { file, svg => Value::from_safe_string(svg.to_owned()) }
    });
    context! {
        id => figure.id,
        paper => figure.paper,
        title => figure.title,
        caption => figure.caption,
        table => figure.table,
        panels => panels.collect::<Vec<_>>(),
        is_wide => figure.panels.len() > 1,
    }
}

fn cell(reasons: &[&str], cell: &Cell) -> Value {
    let mark = Table::mark_of(reasons, cell);

    context! {
        text => match cell { Cell::LeftOut(_) => "–".to_owned(), cell => cell.shown() },
        sort => cell.sort_value(),
        mark,
        is_not_significant => matches!(cell, Cell::Text(text) if text == "n.s."),
    }
}

fn table(table: &Table) -> Value {
    let reasons = table.reasons();

    let columns = table.columns.iter().map(|column| {
        context! { name => column.name, is_text => column.kind == ColumnKind::Text }
    });

    let rows =
        table.rows.iter().map(|row| row.iter().map(|it| cell(&reasons, it)).collect::<Vec<_>>());

    context! {
        id => table.id,
        paper => table.paper,
        title => table.title,
        caption => table.caption,
        columns => columns.collect::<Vec<_>>(),
        rows => rows.collect::<Vec<_>>(),
        reasons,
    }
}

/// Renders the page.
pub fn page(report: &Report) -> String {
    let values = context! {
        study => report.study,
        result => report.result,
        left_out => report.left_out,
        method => report.method,
        remarks => report.remarks,
        figures => report.figures.iter().map(figure).collect::<Vec<_>>(),
        tables => report.tables.iter().map(table).collect::<Vec<_>>(),
    };

    prime_page::render(TEMPLATE, values)
}
