//! What runs add up to, grouped by the server.

use deadpool_postgres::Object;
use tokio_postgres::Row;

use super::error_code::Failure;
use super::search::{Conditions, conditions};
use super::text::decode;
use prime_journal::search::{IMPORTED, name_text};
use prime_journal::{Adder, Facts, RefusedLines, SearchQuery, Sums, Totals};

/// A sum as a `bigint`; beyond that the largest.
fn sum(value: &str) -> String {
    format!("least(sum({value}), {})::bigint", i64::MAX)
}

/// Groups of runs. The place of a run has its time, in milliseconds, above 20 bits.
fn groups(filter: &str) -> String {
    let columns =
        ["steps", "proposals", "refused", "tokens", "completion_tokens", "wall_ms"].map(sum);
    format!(
        "SELECT (at >> 20) / 86400000, task, models, is_over, status, outcome, min(at), count(*),
            {},
            CASE WHEN count(cost_nanos) > 0 THEN {} END
        FROM run_facts s {filter} GROUP BY 1, 2, 3, 4, 5, 6 ORDER BY 1",
        columns.join(", "),
        sum("cost_nanos")
    )
}

/// What refused lines; `refusals` is a text of `counts_text`.
fn refusals(filter: &str) -> String {
    let lines = sum("split_part(part, E'\\x1f', 2)::bigint");
    let imported = name_text(IMPORTED);
    format!(
        "SELECT task, split_part(part, E'\\x1f', 1), {lines}
        FROM (SELECT task, unnest(string_to_array(refusals, E'\\x1e')) AS part
            FROM (SELECT task, refusals, models FROM run_facts s {filter}) noted
            WHERE position('{imported}' IN models) = 0) parts
        WHERE part <> '' GROUP BY 1, 2 ORDER BY 3 DESC, 1, 2"
    )
}

fn number(row: &Row, column: usize) -> u64 {
    row.get::<_, i64>(column).unsigned_abs()
}

pub(super) async fn totals(client: &mut Object, query: &SearchQuery) -> Result<Totals, Failure> {
    let conditions: Conditions = conditions(query);
    let (filter, values) = (conditions.to_sql(), conditions.values());

    let transaction = client.build_transaction().read_only(true).start().await?;
    let statement = transaction.prepare_cached(&groups(&filter)).await?;
    let groups = transaction.query(&statement, &values).await?;
    let statement = transaction.prepare_cached(&refusals(&filter)).await?;
    let refused = transaction.query(&statement, &values).await?;
    transaction.commit().await?;

    let mut adder = Adder::default();
    for row in &groups {
        let [task, models, status, outcome] = [1, 2, 4, 5].map(|column| decode(row.get(column)));
        let facts = Facts {
            at: row.get(6),
            task: &task,
            models: &models,
            is_over: row.get(3),
            status: &status,
            outcome: &outcome,
            sums: Sums {
                runs: number(row, 7),
                steps: number(row, 8),
                proposals: number(row, 9),
                refused: number(row, 10),
                tokens: number(row, 11),
                completion_tokens: number(row, 12),
                wall_ms: number(row, 13),
                cost_nanos: row.get::<_, Option<i64>>(14).map(i64::unsigned_abs),
            },
        };
        adder.add(&facts, "");
    }

    let line = |row: &Row| RefusedLines {
        task: decode(row.get(0)),
        constraint: decode(row.get(1)),
        lines: number(row, 2),
    };
    Ok(Totals { refused: refused.iter().map(line).collect(), ..adder.totals() })
}
