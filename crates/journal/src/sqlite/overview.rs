//! What runs add up to: one pass over the narrow rows of facts.

use rusqlite::{Connection, Row, ToSql};

use super::search::{conditions, has_tables};
use super::values::unsigned;
use crate::adder::{Adder, Facts};
use crate::error::JournalError;
use crate::overview::{Sums, Totals};
use crate::search::SearchQuery;

const COLUMNS: &str = "s.at, s.task, s.models, s.is_over, s.status, s.outcome, s.refusals, s.steps,
    s.proposals, s.refused, s.tokens, s.completion_tokens, s.wall_ms, s.cost_nanos";

fn text<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r str, JournalError> {
    let found = row.get_ref(column)?.as_str();
    found.map_err(|error| JournalError::Damaged(format!("the facts of a run: {error}")))
}

fn facts<'r>(row: &'r Row<'_>) -> Result<Facts<'r>, JournalError> {
    Ok(Facts {
        at: row.get(0)?,
        task: text(row, 1)?,
        models: text(row, 2)?,
        is_over: row.get(3)?,
        status: text(row, 4)?,
        outcome: text(row, 5)?,
        sums: Sums {
            runs: 1,
            steps: unsigned(row, 7)?,
            proposals: unsigned(row, 8)?,
            refused: unsigned(row, 9)?,
            tokens: unsigned(row, 10)?,
            completion_tokens: unsigned(row, 11)?,
            wall_ms: unsigned(row, 12)?,
            cost_nanos: row.get::<_, Option<i64>>(13)?.map(i64::unsigned_abs),
        },
    })
}

pub(super) fn totals(connection: &Connection, query: &SearchQuery) -> Result<Totals, JournalError> {
    let transaction = connection.unchecked_transaction()?;
    if !has_tables(&transaction)? {
        return Ok(Totals::default());
    }

    let conditions = conditions(query, "s.at");
    // In the order of the table, which is that of creation.
    let sql = format!("SELECT {COLUMNS} FROM run_facts s {} ORDER BY s.at", conditions.to_sql());
    let values: Vec<&dyn ToSql> = conditions.values();
    let mut statement = transaction.prepare_cached(&sql)?;
    let mut rows = statement.query(&values[..])?;

    let mut adder = Adder::default();
    while let Some(row) = rows.next()? {
        adder.add(&facts(row)?, text(row, 6)?);
    }
    Ok(adder.totals())
}
