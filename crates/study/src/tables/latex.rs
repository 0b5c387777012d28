//! Tables as LaTeX with booktabs and siunitx.

use super::table::{Cell, ColumnKind, Table, rounded};

fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' | '%' | '$' | '#' | '_' | '{' | '}' => {
                out.push('\\');
                out.push(c);
            }
            '\\' => out += "\\textbackslash{}",
            '~' => out += "\\textasciitilde{}",
            '^' => out += "\\textasciicircum{}",
            '<' => out += "\\textless{}",
            '>' => out += "\\textgreater{}",
            '→' => out += "$\\rightarrow$",
            '−' => out += "$-$",
            '–' => out += "--",
            '±' => out += "$\\pm$",
            'τ' => out += "$\\tau$",
            c => out.push(c),
        }
    }
    out
}

/// Digits that a column needs before and after the point.
fn digits(cells: &[&Cell]) -> (usize, usize) {
    let mut widest = (1, 0);
    for cell in cells {
        let (text, decimals) = match cell {
            Cell::Count(count) => (count.to_string(), 0),
            Cell::Number { value, decimals } => (rounded(*value, *decimals), *decimals),
            Cell::P(p) if *p >= 0.001 => (format!("{p:.3}"), 3),
            _ => continue,
        };
        let whole = text.split('.').next().unwrap_or_default();
        // siunitx counts the sign separately.
        widest = (widest.0.max(whole.trim_start_matches('-').len()), widest.1.max(decimals));
    }
    widest
}

impl Table {
    /// A `table` environment for `booktabs` and `siunitx`: numbers in `S` columns, intervals in
    /// columns of their own.
    pub fn latex(&self) -> String {
        let reasons = self.reasons();

        let specification = |(place, kind): (usize, ColumnKind)| match kind {
            ColumnKind::Text => "l".to_owned(),
            ColumnKind::Interval => "c".to_owned(),
            ColumnKind::Number => {
                let cells: Vec<&Cell> = self.rows.iter().map(|row| &row[place]).collect();
                let (whole, decimals) = digits(&cells);

                let is_signed = cells
                    .iter()
                    .any(|cell| matches!(cell, Cell::Number { value, .. } if *value < 0.0));
                format!("S[table-format={}{whole}.{decimals}]", if is_signed { "-" } else { "" })
            }
        };

        let columns: Vec<String> =
            self.columns.iter().map(|column| column.kind).enumerate().map(specification).collect();
        let header: Vec<String> =
            self.columns.iter().map(|column| format!("{{{}}}", escaped(&column.name))).collect();

        let mut text = format!(
            "% \\usepackage{{booktabs,siunitx}}\n\\begin{{table}}\n\\centering\n\\caption{{{}. {}}}\n\\label{{tab:{}}}\n\
             \\begin{{tabular}}{{{}}}\n\\toprule\n{} \\\\\n\\midrule\n",
            escaped(&self.title),
            escaped(&self.caption),
            self.id,
            columns.join(" "),
            header.join(" & ")
        );

        for row in &self.rows {
            let cell = |(cell, kind): (&Cell, ColumnKind)| {
                let mark = Self::mark_of(&reasons, cell)
                    .map(|mark| format!("$^{{{mark}}}$"))
                    .unwrap_or_default();

                match (cell, kind) {
                    (Cell::Count(count), ColumnKind::Number) => count.to_string(),
                    (Cell::Number { value, decimals }, ColumnKind::Number) => {
                        rounded(*value, *decimals)
                    }
                    (Cell::P(p), ColumnKind::Number) if *p >= 0.001 => cell.plain(""),
                    (Cell::Interval { interval, decimals }, _) => {
                        format!(
                            "[{}, {}]",
                            rounded(interval.low, *decimals),
                            rounded(interval.high, *decimals)
                        )
                    }
                    (Cell::LeftOut(_), _) => format!("{{--{mark}}}"),
                    (cell, ColumnKind::Number) => format!("{{{}}}", escaped(&cell.plain(""))),
                    (cell, _) => escaped(&cell.plain("")),
                }
            };

            let kinds = self.columns.iter().map(|column| column.kind);
            text += &row.iter().zip(kinds).map(cell).collect::<Vec<_>>().join(" & ");
            text += " \\\\\n";
        }

        text += "\\bottomrule\n\\end{tabular}\n";
        for (place, reason) in (1..).zip(&reasons) {
            text += &format!("\\par\\footnotesize $^{{{place}}}$ Left out: {}.\n", escaped(reason));
        }

        text + "\\end{table}\n"
    }
}
