//! Conditions of lists, in SQL.

use rusqlite::types::Value;
use rusqlite::{Connection, ToSql};

use super::assignees;
use crate::error::JournalError;
use crate::journal::Query;

/// The conditions of a list, in SQL, with their values.
#[derive(Clone, Default)]
pub(super) struct Conditions {
    sql: Vec<String>,
    pub(super) values: Vec<Value>,
}

impl Conditions {
    /// The conditions of a query, except its `after`.
    pub(super) fn of(connection: &Connection, query: &Query) -> Result<Self, JournalError> {
        let mut conditions = Self::default();

        for (column, value) in
            [("owner", &query.owner), ("status", &query.status), ("task", &query.task)]
        {
            if let Some(value) = value {
                conditions.add(&format!("r.{column} = ?"), [Value::Text(value.clone())]);
            }
        }

        if query.needs_review {
            conditions.add("r.flagged > r.reviewed", []);
        }
        if let Some(assigned) = &query.assigned {
            assignees::restrict(&mut conditions, connection, assigned, query.needs_review)?;
        }
        if query.in_split {
            conditions.add("r.split IS NOT NULL", []);
        }

        if let Some(since) = query.since_ms {
            let since = i64::try_from(since).unwrap_or(i64::MAX);
            conditions.add("r.created_ms >= ?", [Value::Integer(since)]);
        }
        Ok(conditions)
    }

    pub(super) fn add(&mut self, sql: &str, values: impl IntoIterator<Item = Value>) {
        self.sql.push(sql.to_owned());
        self.values.extend(values);
    }

    pub(super) fn to_sql(&self) -> String {
        if self.sql.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", self.sql.join(" AND "))
        }
    }

    pub(super) fn values(&self) -> Vec<&dyn ToSql> {
        self.values.iter().map(|value| value as &dyn ToSql).collect()
    }
}
