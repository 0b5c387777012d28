//! What runs add up to, grouped by the server.

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::error_code::Failure;
use super::search::{Conditions, conditions};
use super::text::decode;
use prime_journal::search::{created_ms, names_of};
use prime_journal::{RefusedLines, RunGroup, SearchQuery, Sums, Totals};

/// The place of a run has its time above 20 bits. Sums of `bigint` are `numeric`.
const GROUPS: &str = "
    SELECT (s.at >> 20) / 86400000, s.task, s.models, s.is_over, s.status, s.outcome, min(s.at),
        count(*), sum(s.steps)::bigint, sum(s.proposals)::bigint, sum(s.refused)::bigint,
        sum(s.tokens)::bigint, sum(s.completion_tokens)::bigint, sum(s.wall_ms)::bigint
    FROM run_facts s";

const REFUSED: &str = "
    SELECT s.task, split_part(part, E'\\x1f', 1), sum(split_part(part, E'\\x1f', 2)::bigint)::bigint
    FROM (SELECT s.task, unnest(string_to_array(s.refusals, E'\\x1e')) AS part FROM run_facts s";

fn number(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).unsigned_abs()
}

fn group(row: &Row) -> RunGroup {
    RunGroup {
        day: number(row, 0),
        task: decode(row.get(1)),
        models: names_of(&decode(row.get(2))),
        is_over: row.get(3),
        status: decode(row.get(4)),
        outcome: decode(row.get(5)),
        sums: Sums {
            runs: number(row, 7),
            steps: number(row, 8),
            proposals: number(row, 9),
            refused: number(row, 10),
            tokens: number(row, 11),
            completion_tokens: number(row, 12),
            wall_ms: number(row, 13),
        },
    }
}

pub(super) async fn totals(client: &mut Object, query: &SearchQuery) -> Result<Totals, Failure> {
    let conditions: Conditions = conditions(query);
    let (filter, values) = (conditions.to_sql(), conditions.values());

    let transaction = client.build_transaction().read_only(true).start().await?;
    let sql = format!("{GROUPS} {filter} GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1, 2, 3, 4, 5, 6");
    let statement = transaction.prepare_cached(&sql).await?;
    let groups = transaction.query(&statement, &values).await?;

    let sql = format!("{REFUSED} {filter}) s WHERE part <> '' GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2");
    let statement = transaction.prepare_cached(&sql).await?;
    let refused = transaction.query(&statement, &values).await?;
    transaction.commit().await?;

    let line = |row: &Row| RefusedLines {
        task: decode(row.get(0)),
        constraint: decode(row.get(1)),
        lines: number(row, 2),
    };
    Ok(Totals {
        first_ms: groups.iter().map(|row| row.get(6)).min().map(created_ms),
        groups: groups.iter().map(group).collect(),
        refused: refused.iter().map(line).collect(),
    })
}
