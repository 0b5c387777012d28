//! Tables for people: Markdown, or one block for each row where the terminal is too narrow.

use std::fmt;

use comfy_table::presets;

use super::output::columns;
use prime_printable::markdown;

/// Rows under a header.
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
}

impl Table {
    pub fn new<const N: usize>(
        header: [&'static str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        Self { header: header.into(), rows: rows.into_iter().map(Vec::from).collect() }
    }

    fn markdown(&self) -> String {
        let mut table = comfy_table::Table::new();
        table.load_preset(presets::ASCII_MARKDOWN);
        table.set_header(&self.header);
        // What models, users and files wrote is text, not Markdown.
        table.add_rows(self.rows.iter().map(|row| row.iter().map(|cell| markdown(cell))));
        table.to_string()
    }

    /// A line for each cell, and an empty line between rows.
    fn blocks(&self) -> String {
        let width = self.header.iter().map(|name| name.chars().count()).max().unwrap_or_default();
        let block = |row: &Vec<String>| {
            let cells = self.header.iter().zip(row).filter(|(_, cell)| !cell.is_empty());
            cells.fold(String::new(), |block, (name, cell)| {
                block + &format!("{name:<width$}  {cell}\n")
            })
        };
        self.rows.iter().map(block).collect::<Vec<_>>().join("\n")
    }

    /// The table within `columns`; `None` sets no limit.
    fn within(&self, columns: Option<usize>) -> String {
        let markdown = self.markdown();
        let width = markdown.lines().map(|line| line.chars().count()).max().unwrap_or_default();
        if columns.is_some_and(|columns| width > columns) { self.blocks() } else { markdown + "\n" }
    }
}

impl fmt::Display for Table {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.within(columns()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cells_are_text_and_not_markdown() {
        let table = Table::new(["a", "b"], [["<b>x|y".to_owned(), "[l](u)".to_owned()]]);
        assert_eq!(
            table.within(None),
            "| a        | b       |\n|----------|---------|\n| \\<b>x\\|y | \\[l](u) |\n"
        );
    }

    #[test]
    fn a_table_that_does_not_fit_is_a_block_for_each_row() {
        let cell = str::to_owned;
        let table = Table::new(
            ["task", "accuracy"],
            [[cell("n-queens"), cell("1.0")], [cell("24-game"), cell("")]],
        );
        let markdown = "| task     | accuracy |\n|----------|----------|\n| n-queens | 1.0      |\n\
             | 24-game  |          |\n";
        assert_eq!(table.within(None), markdown);
        assert_eq!(table.within(Some(23)), markdown);
        assert_eq!(
            table.within(Some(22)),
            "task      n-queens\naccuracy  1.0\n\ntask      24-game\n"
        );
    }
}
