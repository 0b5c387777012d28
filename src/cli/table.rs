//! Tables for people: Markdown, or one block for each row where the terminal is too narrow.

use std::fmt;

use comfy_table::presets;

use super::output::columns;
use prime_printable::markdown;

/// Rows under a header.
pub struct Table {
    header: Vec<&'static str>,
    rows: Vec<Vec<String>>,
    /// Columns that are left out on a terminal that is too narrow for them, first one first.
    droppable: &'static [&'static str],
}

impl Table {
    pub fn new<const N: usize>(
        header: [&'static str; N],
        rows: impl IntoIterator<Item = [String; N]>,
    ) -> Self {
        let rows = rows.into_iter().map(Vec::from).collect();
        Self { header: header.into(), rows, droppable: &[] }
    }

    /// The same table, which leaves out these columns where it must, in this order, before it
    /// becomes blocks.
    #[must_use]
    pub fn may_drop(self, columns: &'static [&'static str]) -> Self {
        Self { droppable: columns, ..self }
    }

    /// The table without a column.
    pub fn without(&self, name: &str) -> Self {
        let kept = |place: &usize| self.header[*place] != name;
        let places: Vec<usize> = (0..self.header.len()).filter(kept).collect();
        Self {
            header: places.iter().map(|place| self.header[*place]).collect(),
            rows: self
                .rows
                .iter()
                .map(|row| places.iter().map(|place| row[*place].clone()).collect())
                .collect(),
            droppable: &[],
        }
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
        let fits = |markdown: &str| {
            let width = markdown.lines().map(|line| line.chars().count()).max().unwrap_or_default();
            columns.is_none_or(|columns| width <= columns)
        };

        let markdown = self.markdown();
        if fits(&markdown) {
            return markdown + "\n";
        }

        let mut narrower = self.without("");
        for column in self.droppable {
            narrower = narrower.without(column);
            let markdown = narrower.markdown();
            if fits(&markdown) {
                return markdown + "\n";
            }
        }
        self.blocks()
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
    fn columns_of_less_weight_are_left_out_before_a_table_becomes_blocks() {
        let cells = ["a", "b", "c"].map(str::to_owned);
        let table = Table::new(["id", "one", "two"], [cells]).may_drop(&["two", "one"]);
        let whole = "| id | one | two |\n|----|-----|-----|\n| a  | b   | c   |\n";
        assert_eq!(table.within(Some(18)), whole);
        assert_eq!(table.within(Some(17)), "| id | one |\n|----|-----|\n| a  | b   |\n");
        assert_eq!(table.within(Some(11)), "| id |\n|----|\n| a  |\n");
        assert_eq!(table.within(Some(5)), "id   a\none  b\ntwo  c\n", "all of it, as blocks");
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
