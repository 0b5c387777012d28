//! Idempotency keys of removed runs. A client may repeat its request long after the run was
//! removed: without the key, the repetition would be a second run.

use rusqlite::{Connection, OptionalExtension as _, params};

use crate::error::JournalError;
use crate::journal::Retention;

/// Most keys kept per owner. Without a bound, an owner that submits and removes runs would fill the
/// journal with them.
pub(super) const OWNER_KEYS_MAX: u32 = 50_000;

/// Keeps the key of a run that is about to be removed. Returns the run's owner if it has a key.
pub(super) fn keep(
    connection: &Connection,
    run: i64,
    retention: &Retention,
) -> Result<Option<String>, JournalError> {
    if retention.keep_keys_ms == 0 {
        return Ok(None);
    }

    let until = retention.now_ms.saturating_add(retention.keep_keys_ms);
    let sql = "INSERT INTO spent_key (owner, key, fingerprint, run, until_ms)
        SELECT owner, key, fingerprint, id, ?2 FROM run WHERE no = ?1 AND key IS NOT NULL RETURNING owner";
    let values = params![run, i64::try_from(until).unwrap_or(i64::MAX)];

    let mut statement = connection.prepare_cached(sql)?;

    match statement.query_row(values, |row| row.get(0)).optional().map_err(JournalError::from) {
        // The row is damaged.
        Err(JournalError::Refused(_)) => Ok(None),
        kept => kept,
    }
}

/// Removes the keys of an owner that expire first, if there are more than `most`. It removes an
/// extra tenth of `most`, because finding them takes long and should not be needed every time.
pub(super) fn trim(connection: &Connection, owner: &str, most: u32) -> Result<(), JournalError> {
    let sql = "SELECT count(*) FROM spent_key WHERE owner = ?1";

    let kept: u32 = connection.prepare_cached(sql)?.query_row([owner], |row| row.get(0))?;
    if kept > most {
        let sql = "DELETE FROM spent_key WHERE owner = ?1 AND key IN
            (SELECT key FROM spent_key WHERE owner = ?1 ORDER BY until_ms LIMIT ?2)";
        connection.prepare_cached(sql)?.execute(params![owner, kept - most + most / 10])?;
    }
    Ok(())
}

/// Removes at most `limit` expired keys. Returns how many.
pub(super) fn expire(
    connection: &Connection,
    now_ms: u64,
    limit: i64,
) -> Result<i64, JournalError> {
    let sql = "DELETE FROM spent_key WHERE (owner, key) IN
        (SELECT owner, key FROM spent_key WHERE until_ms <= ?1 ORDER BY until_ms LIMIT ?2)";

    let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let removed = connection.prepare_cached(sql)?.execute(params![now, limit])?;
    Ok(i64::try_from(removed).unwrap_or(i64::MAX))
}
