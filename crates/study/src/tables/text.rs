//! Tables as CSV and Markdown.

use prime_printable::markdown;

use super::table::{Cell, ColumnKind, Table};

fn quoted(text: &str) -> String {
    if text.contains([',', '"', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

impl Table {
    /// RFC 4180, with unrounded numbers. An interval takes two columns; the last column says why
    /// values are left out.
    pub fn csv(&self) -> String {
        let mut header = Vec::new();
        for column in &self.columns {
            match column.kind {
                ColumnKind::Interval => {
                    header.extend(["low", "high"].map(|end| format!("{}, {end}", column.name)));
                }
                ColumnKind::Text | ColumnKind::Number => header.push(column.name.clone()),
            }
        }

        let has_reasons = !self.reasons().is_empty();
        if has_reasons {
            header.push("left out".to_owned());
        }

        let mut lines = vec![header];
        for row in &self.rows {
            let mut line = Vec::new();
            let mut reasons = Vec::new();

            for (column, cell) in self.columns.iter().zip(row) {
                let is_interval = column.kind == ColumnKind::Interval;

                match cell {
                    Cell::Interval { interval, .. } => {
                        line.extend([interval.low, interval.high].map(|end| format!("{end:?}")));
                        continue;
                    }
                    Cell::Number { value, .. } | Cell::P(value) => line.push(format!("{value:?}")),
                    Cell::LeftOut(reason) => {
                        reasons.push(format!("{}: {reason}", column.name));
                        line.push(String::new());
                    }
                    Cell::Count(count) => line.push(count.to_string()),
                    Cell::Text(_) | Cell::Empty => line.push(cell.plain("")),
                }
                // The second column of an interval that is left out.
                if is_interval {
                    line.push(String::new());
                }
            }

            if has_reasons {
                line.push(reasons.join("; "));
            }
            lines.push(line);
        }

        let text = |line: &Vec<String>| {
            line.iter().map(|cell| quoted(cell)).collect::<Vec<_>>().join(",") + "\r\n"
        };
        lines.iter().map(text).collect()
    }

    /// A pipe table with title, caption and reasons.
    pub fn markdown(&self) -> String {
        // Line ends within a text mean nothing here.
        let escaped = |text: &str| {
            let words: Vec<_> = text.split_whitespace().collect();
            markdown(&words.join(" ")).into_owned()
        };
        let row = |cells: Vec<String>| format!("| {} |\n", cells.join(" | "));

        let reasons = self.reasons();

        let mut text = format!("### {}\n\n", escaped(&self.title));
        text += &row(self.columns.iter().map(|column| escaped(&column.name)).collect());
        let align = |kind| if kind == ColumnKind::Text { ":--" } else { "--:" };
        text += &row(self.columns.iter().map(|column| align(column.kind).to_owned()).collect());

        for cells in &self.rows {
            let cell = |cell: &Cell| {
                let mark = Self::mark_of(&reasons, cell)
                    .map_or_else(String::new, |mark| format!(" ({mark})"));
                escaped(&cell.plain(&mark))
            };
            text += &row(cells.iter().map(cell).collect());
        }

        text += &format!("\n{}\n", escaped(&self.caption));
        for (place, reason) in (1..).zip(reasons) {
            text += &format!("\n({place}) Left out: {}.\n", escaped(reason));
        }

        text
    }
}
