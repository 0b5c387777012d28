//! The search index: narrow rows of facts that filters and orders read, and texts beside them. Where
//! the server has `pg_trgm`, an index of trigrams finds texts; else the newest are looked through.

use deadpool_postgres::{Object, Transaction};
use tokio_postgres::Row;
use tokio_postgres::types::ToSql;

use super::error_code::Failure;
use super::queries::{RUNS, run_rows};
use super::text::{decode, encode};
use prime_journal::overview::{counted_text, counts_text};
use prime_journal::search::{EXAMINED_MAX, first_place, name_text, names_text, place_of};
use prime_journal::{Noted, Position, SearchEntry, SearchPage, SearchQuery, SortKey, Unnoted};

/// Created apart from the other tables, because databases of earlier versions do not have them. An
/// extension belongs to the whole database, and may be in any schema. The server may not have it, or
/// this user may not create it.
pub(super) const SCHEMA: &str = r#"
    DROP TABLE IF EXISTS run_facts, run_text;

    CREATE TABLE run_facts (
        at bigint PRIMARY KEY,
        run bigint NOT NULL UNIQUE,
        owner text COLLATE "C" NOT NULL,
        task text COLLATE "C" NOT NULL,
        status text COLLATE "C" NOT NULL,
        is_over boolean NOT NULL,
        -- Labels were given since it was noted.
        is_stale boolean NOT NULL DEFAULT false,
        outcome text COLLATE "C" NOT NULL,
        agents text COLLATE "C" NOT NULL,
        models text COLLATE "C" NOT NULL,
        labels text COLLATE "C" NOT NULL,
        is_flagged boolean NOT NULL,
        steps bigint NOT NULL,
        proposals bigint NOT NULL,
        refused bigint NOT NULL,
        refusals text COLLATE "C" NOT NULL,
        tokens bigint NOT NULL,
        completion_tokens bigint NOT NULL,
        wall_ms bigint NOT NULL,
        cost_nanos bigint
    );
    CREATE INDEX run_facts_by_steps ON run_facts (steps, at);
    CREATE INDEX run_facts_by_tokens ON run_facts (tokens, at);
    CREATE INDEX run_facts_by_wall_ms ON run_facts (wall_ms, at);
    CREATE TABLE run_text (at bigint PRIMARY KEY, body text COLLATE "C" NOT NULL);

    DO $$ DECLARE found text; BEGIN
        CREATE EXTENSION IF NOT EXISTS pg_trgm SCHEMA public;
        SELECT n.nspname INTO found FROM pg_extension e JOIN pg_namespace n ON n.oid = e.extnamespace
            WHERE e.extname = 'pg_trgm';
        EXECUTE format('CREATE INDEX run_text_trigrams ON run_text USING gin (body %I.gin_trgm_ops)', found);
    EXCEPTION WHEN OTHERS THEN
        RAISE NOTICE 'no index of trigrams: %', SQLERRM;
    END $$;
"#;

/// The version of the tables. Those of another one are made again: all in them is derived.
const VERSION: i64 = 5;

/// A value of a condition.
enum Value {
    Text(String),
    Number(i64),
    Flag(bool),
}

impl Value {
    fn text(text: &str) -> Self {
        Self::Text(encode(text).into_owned())
    }

    fn as_sql(&self) -> &(dyn ToSql + Sync) {
        match self {
            Self::Text(text) => text,
            Self::Number(number) => number,
            Self::Flag(flag) => flag,
        }
    }
}

/// Conditions, in SQL with numbered places for their values.
#[derive(Default)]
pub(super) struct Conditions {
    sql: Vec<String>,
    values: Vec<Value>,
}

impl Conditions {
    /// Adds a condition whose `?` stands for the value.
    fn add(&mut self, sql: &str, value: Value) {
        self.values.push(value);
        self.sql.push(sql.replace('?', &format!("${}", self.values.len())));
    }

    pub(super) fn to_sql(&self) -> String {
        if self.sql.is_empty() {
            String::new()
        } else {
            format!("WHERE {}", self.sql.join(" AND "))
        }
    }

    pub(super) fn values(&self) -> Vec<&(dyn ToSql + Sync)> {
        self.values.iter().map(Value::as_sql).collect()
    }
}

/// A number as a column holds it; beyond that the largest.
fn bounded(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}

pub(super) async fn note(client: &mut Object, entries: &[SearchEntry]) -> Result<(), Failure> {
    let transaction = client.transaction().await?;
    for entry in entries {
        note_one(&transaction, entry).await?;
    }
    Ok(transaction.commit().await?)
}

async fn note_one(transaction: &Transaction<'_>, entry: &SearchEntry) -> Result<(), Failure> {
    // Locked, so that a removal of the run waits and removes the entry, too.
    let sql = "SELECT no, created_ms FROM run WHERE id = $1 FOR KEY SHARE";
    let statement = transaction.prepare_cached(sql).await?;
    let Some(row) = transaction.query_opt(&statement, &[&encode(&entry.run)]).await? else {
        return Ok(());
    };
    let (no, created_ms): (i64, i64) = (row.get(0), row.get(1));
    let at = place_of(created_ms.unsigned_abs(), no);

    let sql = "
        INSERT INTO run_facts
            (at, run, owner, task, status, is_over, outcome, agents, models, labels, is_flagged,
             steps, proposals, refused, refusals, tokens, completion_tokens, wall_ms, cost_nanos)
        SELECT $1, no, owner, task, $3, is_over, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15,
            $16
        FROM run WHERE no = $2
        ON CONFLICT (at) DO UPDATE SET
            status = excluded.status, is_over = excluded.is_over, outcome = excluded.outcome,
            agents = excluded.agents, models = excluded.models, labels = excluded.labels,
            is_flagged = excluded.is_flagged, steps = excluded.steps,
            proposals = excluded.proposals, refused = excluded.refused,
            refusals = excluded.refusals, tokens = excluded.tokens,
            completion_tokens = excluded.completion_tokens, wall_ms = excluded.wall_ms,
            cost_nanos = excluded.cost_nanos, is_stale = false";
    let statement = transaction.prepare_cached(sql).await?;
    let [agents, models, labels] =
        [&entry.agents, &entry.models, &entry.labels].map(|names| Value::text(&names_text(names)));
    let (status, outcome) = (Value::text(&entry.status), Value::text(&entry.outcome));
    let refusals = Value::text(&counts_text(&entry.refusals));
    let (steps, proposals, refused) =
        (bounded(entry.steps), bounded(entry.proposals), bounded(entry.refused));
    let (tokens, completion_tokens, wall_ms) =
        (bounded(entry.tokens), bounded(entry.completion_tokens), bounded(entry.wall_ms));
    let cost_nanos = entry.cost_nanos.map(bounded);
    let values: [&(dyn ToSql + Sync); 16] = [
        &at,
        &no,
        status.as_sql(),
        outcome.as_sql(),
        agents.as_sql(),
        models.as_sql(),
        labels.as_sql(),
        &entry.is_flagged,
        &steps,
        &proposals,
        &refused,
        refusals.as_sql(),
        &tokens,
        &completion_tokens,
        &wall_ms,
        &cost_nanos,
    ];
    transaction.execute(&statement, &values).await?;

    let sql = "INSERT INTO run_text (at, body) VALUES ($1, $2)
        ON CONFLICT (at) DO UPDATE SET body = excluded.body WHERE run_text.body <> excluded.body";
    let statement = transaction.prepare_cached(sql).await?;
    transaction.execute(&statement, &[&at, &encode(&entry.text)]).await?;
    Ok(())
}

/// Removes the entry of a run that is removed.
pub(super) const FORGET: &str = "
    WITH gone AS (DELETE FROM run_facts WHERE run = $1 RETURNING at)
    DELETE FROM run_text WHERE at IN (SELECT at FROM gone)";

pub(super) async fn unnoted(
    client: &Object,
    after: Option<i64>,
    limit: u32,
) -> Result<Unnoted, Failure> {
    let sql = "SELECT r.no, r.id FROM run r LEFT JOIN run_facts s ON s.run = r.no
        WHERE r.no < $1 AND (s.run IS NULL OR s.is_stale OR (r.is_over AND NOT s.is_over))
        ORDER BY r.no DESC LIMIT $2";
    let statement = client.prepare_cached(sql).await?;
    let values: [&(dyn ToSql + Sync); 2] = [&after.unwrap_or(i64::MAX), &i64::from(limit)];
    let rows = client.query(&statement, &values).await?;
    let last = rows.last().filter(|_| rows.len() == limit as usize);
    Ok(Unnoted {
        next: last.map(|row| row.get(0)),
        ids: rows.iter().map(|row| decode(row.get(1))).collect(),
    })
}

/// The conditions on facts, without a page's beginning.
pub(super) fn conditions(query: &SearchQuery) -> Conditions {
    let mut conditions = Conditions::default();

    let columns = [("owner", &query.owner), ("task", &query.task), ("outcome", &query.outcome)];
    for (column, value) in columns {
        if let Some(value) = value {
            conditions.add(&format!("s.{column} = ?"), Value::text(value));
        }
    }
    if let Some(status) = &query.status {
        // Facts of an open run are from its beginning.
        let sql = "CASE WHEN s.is_over THEN s.status = ?
            ELSE s.run IN (SELECT no FROM run WHERE status = ?) END";
        conditions.add(sql, Value::text(status));
    }
    let lists = [("agents", &query.agent), ("models", &query.model), ("labels", &query.label)];
    for (column, name) in lists {
        if let Some(name) = name {
            conditions.add(&format!("strpos(s.{column}, ?) > 0"), Value::text(&name_text(name)));
        }
    }

    if let Some(is_flagged) = query.is_flagged {
        conditions.add("s.is_flagged = ?", Value::Flag(is_flagged));
    }
    if let Some(constraint) = &query.constraint {
        let sql = "strpos(E'\\x1e' || s.refusals, ?) > 0";
        conditions.add(sql, Value::text(&counted_text(constraint)));
    }
    if query.needs_review {
        let sql = "EXISTS (SELECT FROM flag WHERE flag.run = s.run AND NOT is_reviewed)";
        conditions.sql.push(sql.to_owned());
    }

    let bounds = [
        ("at >= ?", query.since_ms.map(first_place)),
        ("at < ?", query.before_ms.map(first_place)),
        ("steps >= ?", query.steps_min.map(bounded)),
        ("steps <= ?", query.steps_max.map(bounded)),
        ("tokens >= ?", query.tokens_min.map(bounded)),
        ("tokens <= ?", query.tokens_max.map(bounded)),
    ];
    for (sql, bound) in bounds {
        if let Some(bound) = bound {
            conditions.add(&format!("s.{sql}"), Value::Number(bound));
        }
    }
    conditions
}

/// A text as a pattern that finds it anywhere.
fn pattern(term: &str) -> String {
    let escaped = term.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    format!("%{escaped}%")
}

/// The columns of an order: its value, as a number, and the place.
fn column(sort: SortKey) -> Option<&'static str> {
    match sort {
        SortKey::Created => None,
        SortKey::Steps => Some("s.steps"),
        SortKey::Tokens => Some("s.tokens"),
        SortKey::Duration => Some("s.wall_ms"),
    }
}

async fn has_trigrams(client: &Object) -> Result<bool, Failure> {
    let statement =
        client.prepare_cached("SELECT to_regclass('run_text_trigrams') IS NOT NULL").await?;
    Ok(client.query_one(&statement, &[]).await?.get(0))
}

fn position(row: &Row) -> Position {
    Position { value: row.get(1), at: row.get(2) }
}

pub(super) async fn find(client: &Object, query: &SearchQuery) -> Result<SearchPage, Failure> {
    let mut conditions = conditions(query);
    let (order, beyond) = if query.ascending { ("ASC", ">") } else { ("DESC", "<") };
    let by = column(query.sort);
    if let Some(after) = query.after {
        conditions.values.extend([Value::Number(after.value), Value::Number(after.at)]);
        let count = conditions.values.len();
        let value = by.unwrap_or("0::bigint");
        conditions.sql.push(format!("({value}, s.at) {beyond} (${}, ${count})", count - 1));
        if by.is_none() {
            // Alone, so that the index on places serves it.
            conditions.sql.push(format!("s.at {beyond} ${count}"));
        }
    }
    let value = by.unwrap_or("0::bigint");
    let order = match by {
        None => format!("s.at {order}"),
        Some(by) => format!("{by} {order}, s.at {order}"),
    };

    // Without an index, as many texts as one search may look at, in order.
    let is_bounded = !query.terms.is_empty() && by.is_none() && !has_trigrams(client).await?;
    let facts = format!("SELECT s.run, {value} AS value, s.at FROM run_facts s");
    let (filter, limit) = (conditions.to_sql(), i64::from(query.limit));
    let mut values = conditions.values();
    let patterns: Vec<String> = query.terms.iter().map(|term| pattern(&encode(term))).collect();
    let mut matching = Vec::new();
    for pattern in &patterns {
        values.push(pattern);
        matching.push(format!("t.body LIKE ${}", values.len()));
    }
    let matching = matching.join(" AND ");
    values.push(&limit);
    let most = values.len();

    let sql = if query.terms.is_empty() {
        format!("{facts} {filter} ORDER BY {order} LIMIT ${most}")
    } else if is_bounded {
        format!(
            "SELECT s.run, s.value, s.at FROM ({facts} {filter} ORDER BY {order} LIMIT {EXAMINED_MAX}) s
             JOIN run_text t ON t.at = s.at WHERE {matching} ORDER BY {order} LIMIT ${most}"
        )
    } else {
        let and = if filter.is_empty() { "WHERE" } else { "AND" };
        format!(
            "SELECT s.run, {value}, s.at FROM run_facts s JOIN run_text t ON t.at = s.at
             {filter} {and} {matching} ORDER BY {order} LIMIT ${most}"
        )
    };
    let statement = client.prepare_cached(&sql).await?;
    let rows = client.query(&statement, &values).await?;

    let is_full = rows.len() == query.limit as usize;
    let mut next = rows.last().filter(|_| is_full).map(position);
    if is_bounded && !is_full {
        // The last one that was looked at, if there may be others after it.
        values.truncate(conditions.values.len());
        let last = EXAMINED_MAX - 1;
        let sql = format!("{facts} {filter} ORDER BY {order} OFFSET {last} LIMIT 1");
        let statement = client.prepare_cached(&sql).await?;
        next = client.query_opt(&statement, &values).await?.as_ref().map(position);
    }

    let numbers: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    let sql = format!(
        "{RUNS} JOIN unnest($1::bigint[]) WITH ORDINALITY AS wanted (no, place)
             ON wanted.no = r.no ORDER BY wanted.place"
    );
    let statement = client.prepare_cached(&sql).await?;
    // One that was removed since is left out.
    let found = run_rows(&client.query(&statement, &[&numbers]).await?);
    let noted =
        if query.shows_entries() { noted(client, query, &numbers).await? } else { Vec::new() };
    Ok(SearchPage { rows: found.rows, damaged: found.damaged, noted, next })
}

/// What the query looked at in the entries of runs. The texts are read only for its terms.
async fn noted(client: &Object, query: &SearchQuery, runs: &[i64]) -> Result<Vec<Noted>, Failure> {
    let sql = "SELECT r.id, s.refusals, CASE WHEN $2 THEN t.body END
        FROM run_facts s JOIN run r ON r.no = s.run LEFT JOIN run_text t ON t.at = s.at
        WHERE s.run = ANY($1)";
    let statement = client.prepare_cached(sql).await?;
    let rows = client.query(&statement, &[&runs, &!query.terms.is_empty()]).await?;
    let read = |row: &Row| {
        let text = row.get::<_, Option<String>>(2).map(decode);
        query.noted(decode(row.get(0)), &decode(row.get(1)), text)
    };
    Ok(rows.iter().map(read).collect())
}

/// Makes the tables of a database of an earlier version.
pub(super) async fn create_missing(
    transaction: &tokio_postgres::Transaction<'_>,
) -> Result<(), Failure> {
    let sql = "SELECT FROM meta WHERE name = 'search' AND value = $1";
    if transaction.query_opt(sql, &[&VERSION]).await?.is_none() {
        transaction.batch_execute(SCHEMA).await?;
        let sql = "INSERT INTO meta VALUES ('search', $1)
            ON CONFLICT (name) DO UPDATE SET value = excluded.value";
        transaction.execute(sql, &[&VERSION]).await?;
    }
    Ok(())
}
