//! What runs add up to: one pass over the narrow rows of facts.

use std::collections::HashMap;

use rusqlite::{Connection, Row, ToSql};

use super::search::{conditions, has_tables};
use super::values::unsigned;
use crate::error::JournalError;
use crate::overview::{RefusedLines, RunGroup, Sums, Totals, counts_of};
use crate::search::{SearchQuery, created_ms, day_of, names_of};

/// What tells groups apart in a key, which no name has (`names_text`).
const BETWEEN: char = '\u{1f}';

/// The facts of a run, as its row lends them.
struct Facts<'r> {
    at: i64,
    task: &'r str,
    models: &'r str,
    is_over: bool,
    status: &'r str,
    outcome: &'r str,
    refusals: &'r str,
    sums: Sums,
}

const COLUMNS: &str = "s.at, s.task, s.models, s.is_over, s.status, s.outcome, s.refusals, s.steps,
    s.proposals, s.refused, s.tokens, s.completion_tokens, s.wall_ms";

impl<'r> Facts<'r> {
    fn of(row: &'r Row<'_>) -> Result<Self, JournalError> {
        let text = |column| -> Result<&'r str, JournalError> {
            let found = row.get_ref(column)?.as_str();
            found.map_err(|error| JournalError::Damaged(format!("a run's facts: {error}")))
        };
        Ok(Self {
            at: row.get(0)?,
            task: text(1)?,
            models: text(2)?,
            is_over: row.get(3)?,
            status: text(4)?,
            outcome: text(5)?,
            refusals: text(6)?,
            sums: Sums {
                runs: 1,
                steps: unsigned(row, 7)?,
                proposals: unsigned(row, 8)?,
                refused: unsigned(row, 9)?,
                tokens: unsigned(row, 10)?,
                completion_tokens: unsigned(row, 11)?,
                wall_ms: unsigned(row, 12)?,
            },
        })
    }

    fn group(&self) -> RunGroup {
        RunGroup {
            day: day_of(self.at),
            task: self.task.to_owned(),
            models: names_of(self.models),
            is_over: self.is_over,
            status: self.status.to_owned(),
            outcome: self.outcome.to_owned(),
            sums: Sums::default(),
        }
    }
}

pub(super) fn totals(connection: &Connection, query: &SearchQuery) -> Result<Totals, JournalError> {
    let transaction = connection.unchecked_transaction()?;
    if !has_tables(&transaction)? {
        return Ok(Totals::default());
    }

    let conditions = conditions(query, "s.at");
    let sql = format!("SELECT {COLUMNS} FROM run_facts s {} ORDER BY s.at", conditions.to_sql());
    let values: Vec<&dyn ToSql> = conditions.values();
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut rows = statement.query(&values[..])?;

    let mut groups: HashMap<String, RunGroup> = HashMap::new();
    let mut refused: HashMap<String, RefusedLines> = HashMap::new();
    let (mut key, mut first_ms) = (String::new(), None);
    while let Some(row) = rows.next()? {
        let facts = Facts::of(row)?;
        first_ms = first_ms.or(Some(created_ms(facts.at)));

        key.clear();
        let day = day_of(facts.at).to_string();
        for part in [&day, facts.task, facts.models, facts.status, facts.outcome] {
            key.push_str(part);
            key.push(BETWEEN);
        }
        match groups.get_mut(&key) {
            Some(group) => group.sums.add(&facts.sums),
            None => {
                let group = RunGroup { sums: facts.sums, ..facts.group() };
                groups.insert(key.clone(), group);
            }
        }

        for (constraint, lines) in counts_of(facts.refusals) {
            key.clear();
            key.push_str(facts.task);
            key.push(BETWEEN);
            key.push_str(constraint);
            match refused.get_mut(&key) {
                Some(found) => found.lines = found.lines.saturating_add(lines),
                None => {
                    let (task, constraint) = (facts.task.to_owned(), constraint.to_owned());
                    refused.insert(key.clone(), RefusedLines { task, constraint, lines });
                }
            }
        }
    }

    let mut groups: Vec<(String, RunGroup)> = groups.into_iter().collect();
    groups.sort_unstable_by(|a, b| a.0.cmp(&b.0));
    let groups = groups.into_iter().map(|(_, group)| group).collect();
    let mut refused: Vec<RefusedLines> = refused.into_values().collect();
    refused.sort_unstable_by(|a, b| {
        let name = |of: &RefusedLines| (of.task.clone(), of.constraint.clone());
        b.lines.cmp(&a.lines).then_with(|| name(a).cmp(&name(b)))
    });
    Ok(Totals { groups, refused, first_ms })
}
