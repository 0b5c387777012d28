//! The search index: narrow rows of facts that filters, orders and sums read, texts, and the
//! trigrams of the texts in FTS5. The first note creates the tables, so that files of earlier
//! versions stay as they are until then.

use rusqlite::types::Value;
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, TransactionBehavior, params};

use super::conditions::Conditions;
use super::queries::Found;
use super::values::unsigned;
use crate::error::JournalError;
use crate::overview::{counted_text, counts_text};
use crate::search::{
    EXAMINED_MAX, Noted, Position, SearchEntry, SearchPage, SearchQuery, SortKey, Unnoted,
    first_place, name_text, names_text, place_of,
};

/// Most trigrams that are looked up: the texts that have them are compared anyway.
const TRIGRAMS_MAX: usize = 32;
/// A search whose trigrams at least this many texts have follows its order and compares each text
/// instead of sorting all of them: the first page is then full soon.
const COMMON_MIN: u32 = 5_000;

/// The version of the tables. Those of another one are made again: all in them is derived.
const VERSION: i64 = 5;

const SCHEMA: &str = "
    DROP TABLE IF EXISTS run_facts;
    DROP TABLE IF EXISTS run_text;
    DROP TABLE IF EXISTS run_trigrams;

    CREATE TABLE run_facts (
        at INTEGER PRIMARY KEY,
        run INTEGER NOT NULL UNIQUE,
        owner TEXT NOT NULL,
        task TEXT NOT NULL,
        status TEXT NOT NULL,
        is_over INTEGER NOT NULL,
        -- Labels were given since it was noted.
        is_stale INTEGER NOT NULL DEFAULT 0,
        outcome TEXT NOT NULL,
        agents TEXT NOT NULL,
        models TEXT NOT NULL,
        labels TEXT NOT NULL,
        is_flagged INTEGER NOT NULL,
        steps INTEGER NOT NULL,
        proposals INTEGER NOT NULL,
        refused INTEGER NOT NULL,
        refusals TEXT NOT NULL,
        tokens INTEGER NOT NULL,
        completion_tokens INTEGER NOT NULL,
        wall_ms INTEGER NOT NULL,
        cost_nanos INTEGER
    ) STRICT;
    CREATE INDEX run_facts_by_steps ON run_facts (steps);
    CREATE INDEX run_facts_by_tokens ON run_facts (tokens);
    CREATE INDEX run_facts_by_wall_ms ON run_facts (wall_ms);
    CREATE TABLE run_text (at INTEGER PRIMARY KEY, body TEXT NOT NULL) STRICT;
    CREATE VIRTUAL TABLE run_trigrams USING fts5 (
        body, content = '', contentless_delete = 1, detail = 'none',
        tokenize = 'trigram case_sensitive 1'
    );
";

/// Whether a run was ever noted in tables of this version.
pub(super) fn has_tables(connection: &Connection) -> Result<bool, JournalError> {
    let sql = "SELECT 1 FROM meta WHERE name = 'search' AND value = ?1";
    Ok(connection.prepare_cached(sql)?.exists([VERSION])?)
}

pub(super) fn note(
    connection: &mut Connection,
    entries: &[SearchEntry],
) -> Result<(), JournalError> {
    // Rolls back when dropped.
    let transaction = connection.transaction_with_behavior(TransactionBehavior::Immediate)?;
    if !has_tables(&transaction)? {
        transaction.execute_batch(SCHEMA)?;
        transaction.execute("REPLACE INTO meta VALUES ('search', ?1)", [VERSION])?;
    }
    for entry in entries {
        note_one(&transaction, entry)?;
    }
    Ok(transaction.commit()?)
}

/// A number as a column holds it; beyond that the largest.
fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

fn note_one(connection: &Connection, entry: &SearchEntry) -> Result<(), JournalError> {
    let sql = "SELECT no, created_ms FROM run WHERE id = ?1";
    let found = connection
        .prepare_cached(sql)?
        .query_row([&entry.run], |row| Ok((row.get::<_, i64>(0)?, unsigned(row, 1))))
        .optional()?;
    let Some((no, created_ms)) = found else { return Ok(()) };
    let at = place_of(created_ms?, no);

    let facts = "
        REPLACE INTO run_facts
            (at, run, owner, task, status, is_over, outcome, agents, models, labels, is_flagged,
             steps, proposals, refused, refusals, tokens, completion_tokens, wall_ms, cost_nanos)
        SELECT ?1, no, owner, task, ?3, is_over, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15,
            ?16
        FROM run WHERE no = ?2";
    connection.prepare_cached(facts)?.execute(params![
        at,
        no,
        entry.status,
        entry.outcome,
        names_text(&entry.agents),
        names_text(&entry.models),
        names_text(&entry.labels),
        entry.is_flagged,
        bounded(entry.steps),
        bounded(entry.proposals),
        bounded(entry.refused),
        counts_text(&entry.refusals),
        bounded(entry.tokens),
        bounded(entry.completion_tokens),
        bounded(entry.wall_ms),
        entry.cost_nanos.map(bounded),
    ])?;

    let is_same: bool = connection
        .prepare_cached("SELECT EXISTS (SELECT 1 FROM run_text WHERE at = ?1 AND body = ?2)")?
        .query_row(params![at, entry.text], |row| row.get(0))?;
    if !is_same {
        forget_text(connection, at)?;
        connection
            .prepare_cached("INSERT INTO run_text (at, body) VALUES (?1, ?2)")?
            .execute(params![at, entry.text])?;
        connection
            .prepare_cached("INSERT INTO run_trigrams (rowid, body) VALUES (?1, ?2)")?
            .execute(params![at, entry.text])?;
    }
    Ok(())
}

fn forget_text(connection: &Connection, at: i64) -> Result<(), JournalError> {
    if connection.prepare_cached("DELETE FROM run_text WHERE at = ?1")?.execute([at])? > 0 {
        connection.prepare_cached("DELETE FROM run_trigrams WHERE rowid = ?1")?.execute([at])?;
    }
    Ok(())
}

/// Removes the entry of a run that is removed.
pub(super) fn forget(connection: &Connection, run: i64) -> Result<(), JournalError> {
    if !has_tables(connection)? {
        return Ok(());
    }
    let sql = "DELETE FROM run_facts WHERE run = ?1 RETURNING at";
    let at: Option<i64> =
        connection.prepare_cached(sql)?.query_row([run], |row| row.get(0)).optional()?;
    at.map_or(Ok(()), |at| forget_text(connection, at))
}

pub(super) fn unnoted(
    connection: &Connection,
    after: Option<i64>,
    limit: u32,
) -> Result<Unnoted, JournalError> {
    let transaction = connection.unchecked_transaction()?;
    let sql = if has_tables(&transaction)? {
        "SELECT r.no, r.id FROM run r LEFT JOIN run_facts s ON s.run = r.no
         WHERE r.no < ?1 AND (s.run IS NULL OR s.is_stale OR r.is_over > s.is_over)
         ORDER BY r.no DESC LIMIT ?2"
    } else {
        "SELECT no, id FROM run WHERE no < ?1 ORDER BY no DESC LIMIT ?2"
    };

    let mut statement = transaction.prepare_cached(sql)?;
    let mut rows = statement.query(params![after.unwrap_or(i64::MAX), limit])?;
    let (mut found, mut last) = (Unnoted::default(), None);
    while let Some(row) = rows.next()? {
        last = Some(row.get(0)?);
        found.ids.push(row.get(1)?);
    }
    found.next = last.filter(|_| found.ids.len() == limit as usize);
    Ok(found)
}

/// The trigrams of terms as a query of FTS5; `None` if no term has one.
fn trigrams(terms: &[String]) -> Option<String> {
    let mut all: Vec<String> = Vec::new();
    for term in terms {
        let letters: Vec<char> = term.chars().collect();
        // A query of FTS5 ends at U+0000, which no text has.
        for part in letters.windows(3).filter(|part| !part.contains(&'\0')) {
            let quoted = part.iter().collect::<String>().replace('"', "\"\"");
            all.push(format!("\"{quoted}\""));
        }
    }
    all.sort_unstable();
    all.dedup();
    // Spread, because neighbours say much the same.
    let every = all.len().div_ceil(TRIGRAMS_MAX).max(1);
    let all: Vec<String> = all.into_iter().step_by(every).collect();
    (!all.is_empty()).then(|| all.join(" AND "))
}

/// The conditions on facts. `at` is the column with a run's place.
pub(super) fn conditions(query: &SearchQuery, at: &str) -> Conditions {
    let mut conditions = Conditions::default();
    let text = |value: &str| Value::Text(value.to_owned());

    let columns = [("owner", &query.owner), ("task", &query.task), ("outcome", &query.outcome)];
    for (column, value) in columns {
        if let Some(value) = value {
            conditions.add(&format!("s.{column} = ?"), [text(value)]);
        }
    }
    if let Some(status) = &query.status {
        // Facts of an open run are from its beginning.
        let sql = "CASE s.is_over WHEN 1 THEN s.status = ?
            ELSE s.run IN (SELECT no FROM run WHERE status = ?) END";
        conditions.add(sql, [text(status), text(status)]);
    }
    let lists = [("agents", &query.agent), ("models", &query.model), ("labels", &query.label)];
    for (column, name) in lists {
        if let Some(name) = name {
            conditions.add(&format!("instr(s.{column}, ?) > 0"), [Value::Text(name_text(name))]);
        }
    }

    if let Some(is_flagged) = query.is_flagged {
        conditions.add("s.is_flagged = ?", [Value::Integer(is_flagged.into())]);
    }
    if let Some(constraint) = &query.constraint {
        let sql = "instr(char(30) || s.refusals, ?) > 0";
        conditions.add(sql, [Value::Text(counted_text(constraint))]);
    }
    if query.needs_review {
        conditions.add("s.run IN (SELECT no FROM run WHERE flagged > reviewed)", []);
    }

    let place = |time_ms| Value::Integer(first_place(time_ms));
    if let Some(since) = query.since_ms {
        conditions.add(&format!("{at} >= ?"), [place(since)]);
    }
    if let Some(before) = query.before_ms {
        conditions.add(&format!("{at} < ?"), [place(before)]);
    }
    let bounds = [
        ("steps >= ?", query.steps_min),
        ("steps <= ?", query.steps_max),
        ("tokens >= ?", query.tokens_min),
        ("tokens <= ?", query.tokens_max),
    ];
    for (sql, bound) in bounds {
        if let Some(bound) = bound {
            conditions.add(&format!("s.{sql}"), [Value::Integer(bounded(bound))]);
        }
    }
    conditions
}

/// The column by which an order goes, if that is not the place.
fn column(sort: SortKey) -> Option<&'static str> {
    match sort {
        SortKey::Created => None,
        SortKey::Steps => Some("s.steps"),
        SortKey::Tokens => Some("s.tokens"),
        SortKey::Duration => Some("s.wall_ms"),
    }
}

/// True if at least [`COMMON_MIN`] texts have these trigrams.
fn is_common(connection: &Connection, matching: &str) -> Result<bool, JournalError> {
    let sql = "SELECT count(*) FROM
        (SELECT 1 FROM run_trigrams WHERE run_trigrams MATCH ?1 LIMIT ?2)";
    let found: u32 = connection
        .prepare_cached(sql)?
        .query_row(params![matching, COMMON_MIN], |row| row.get(0))?;
    Ok(found == COMMON_MIN)
}

/// A search as SQL: the number, the value, the place and whether the text has all terms. With
/// `matching`, it looks at the texts that have these trigrams alone.
fn statement(query: &SearchQuery, matching: Option<String>) -> (String, Vec<Value>) {
    let at = if matching.is_some() { "f.rowid" } else { "s.at" };
    let mut conditions = conditions(query, at);

    let from = match (&matching, query.terms.is_empty()) {
        (_, true) => "run_facts s",
        // In this order, so that the newest come first without sorting.
        (Some(_), false) => {
            "run_trigrams f CROSS JOIN run_facts s ON s.at = f.rowid \
             CROSS JOIN run_text t ON t.at = f.rowid"
        }
        (None, false) => "run_facts s CROSS JOIN run_text t ON t.at = s.at",
    };
    if let Some(matching) = matching {
        conditions.add("run_trigrams MATCH ?", [Value::Text(matching)]);
    }

    let (order, beyond) = if query.ascending { ("ASC", ">") } else { ("DESC", "<") };
    let by = column(query.sort);
    if let Some(after) = query.after {
        let places = [after.value, after.at].map(Value::Integer);
        match by {
            None => conditions.add(&format!("{at} {beyond} ?"), [Value::Integer(after.at)]),
            Some(by) => conditions.add(&format!("({by}, s.at) {beyond} (?, ?)"), places),
        }
    }

    let has_all = match query.terms.len() {
        0 => "1".to_owned(),
        count => vec!["instr(t.body, ?) > 0"; count].join(" AND "),
    };
    let order = match by {
        None => format!("{at} {order}"),
        Some(by) => format!("{by} {order}, s.at {order}"),
    };
    let sql = format!(
        "SELECT s.run, {}, s.at, {has_all} FROM {from} {} ORDER BY {order}",
        by.unwrap_or("0"),
        conditions.to_sql()
    );
    let terms = query.terms.iter().map(|term| Value::Text(term.clone()));
    (sql, terms.chain(conditions.values).collect())
}

pub(super) fn find(
    connection: &Connection,
    query: &SearchQuery,
) -> Result<SearchPage, JournalError> {
    let transaction = connection.unchecked_transaction()?;
    if !has_tables(&transaction)? {
        return Ok(SearchPage::default());
    }

    let matching = trigrams(&query.terms);
    let found = match (&matching, column(query.sort)) {
        (Some(common), Some(_)) if is_common(&transaction, common)? => {
            let found = Places::of(&transaction, query, None)?;
            // Where the texts come late in this order, sorting them ends sooner than looking on.
            if found.is_cut { Places::of(&transaction, query, matching)? } else { found }
        }
        _ => Places::of(&transaction, query, matching)?,
    };

    let mut page = SearchPage { next: found.next, ..SearchPage::default() };
    for run in found.runs {
        // One that an earlier program has removed is still noted.
        let rows = Found::read(&transaction, "WHERE r.no = ?1", &[&run])?;
        let rows = rows.finish(&transaction, None)?;
        if query.shows_entries() {
            page.noted.extend(noted(&transaction, query, run)?);
        }
        page.rows.extend(rows.rows);
        page.damaged.extend(rows.damaged);
    }
    Ok(page)
}

/// What the query looked at in the entry of a run. The text is read only for its terms.
fn noted(
    connection: &Connection,
    query: &SearchQuery,
    run: i64,
) -> Result<Option<Noted>, JournalError> {
    let sql = "SELECT r.id, s.refusals, CASE WHEN ?2 THEN t.body END
        FROM run_facts s JOIN run r ON r.no = s.run LEFT JOIN run_text t ON t.at = s.at
        WHERE s.run = ?1";
    let mut statement = connection.prepare_cached(sql)?;
    let found = statement.query_row(params![run, !query.terms.is_empty()], |row| {
        let refusals: String = row.get(1)?;
        Ok(query.noted(row.get(0)?, &refusals, row.get(2)?))
    });
    Ok(found.optional()?)
}

/// What a statement finds: the numbers of runs.
#[derive(Default)]
struct Places {
    runs: Vec<i64>,
    /// Where the next page begins.
    next: Option<Position>,
    /// True if it looked at as many texts as it may before the page was full.
    is_cut: bool,
}

impl Places {
    fn of(
        transaction: &Connection,
        query: &SearchQuery,
        matching: Option<String>,
    ) -> Result<Self, JournalError> {
        let (sql, values) = statement(query, matching);
        let values: Vec<&dyn ToSql> = values.iter().map(|value| value as &dyn ToSql).collect();
        let mut statement = transaction.prepare_cached(&sql)?;
        let mut rows = statement.query(&values[..])?;

        let (mut found, mut last, mut examined) = (Self::default(), None, 0);
        while let Some(row) = rows.next()? {
            let is_full = found.runs.len() == query.limit as usize;
            if is_full || examined == EXAMINED_MAX {
                found.is_cut = !is_full;
                found.next = last;
                break;
            }
            // Only texts cost more than a place of a list.
            examined += usize::from(!query.terms.is_empty());
            let (run, position, has_all) = read(row)?;
            last = Some(position);
            found.runs.extend(has_all.then_some(run));
        }
        Ok(found)
    }
}

fn read(row: &Row<'_>) -> rusqlite::Result<(i64, Position, bool)> {
    Ok((row.get(0)?, Position { value: row.get(1)?, at: row.get(2)? }, row.get(3)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn terms_become_few_trigrams_whatever_they_are() {
        let of = |terms: &[&str]| {
            trigrams(&terms.iter().map(|term| (*term).to_owned()).collect::<Vec<_>>())
        };
        assert_eq!(of(&[]), None);
        assert_eq!(of(&["ab", "é"]), None);
        assert_eq!(of(&["abcd", "bcd"]).as_deref(), Some(r#""abc" AND "bcd""#));
        assert_eq!(of(&["a\"b\""]).as_deref(), Some(r#""""b""" AND "a""b""#));
        let long: String = ('a'..='z').flat_map(|letter| [letter, 'x', 'é']).collect();
        let count = of(&[&long]).expect("trigrams").matches(" AND ").count() + 1;
        assert!((TRIGRAMS_MAX / 2..=TRIGRAMS_MAX).contains(&count), "{count}");
    }
}
