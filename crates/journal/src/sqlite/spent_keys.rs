//! Idempotency keys of removed runs. A client may repeat its request long after the run was removed: without the key, the
//! repetition would be a second run.

use rusqlite::{Transaction, params};

use crate::{JournalError, Retention};

/// Keeps the key of a run that is about to be removed, if it has one.
pub(super) fn keep(transaction: &Transaction<'_>, run: i64, retention: &Retention) -> Result<(), JournalError> {
    if retention.keep_keys_ms == 0 {
        return Ok(());
    }
    let until = retention.now_ms.saturating_add(retention.keep_keys_ms);
    let sql = "INSERT INTO spent_key (owner, key, fingerprint, run, until_ms)
        SELECT owner, key, fingerprint, id, ?2 FROM run WHERE no = ?1 AND key IS NOT NULL";
    let values = params![run, i64::try_from(until).unwrap_or(i64::MAX)];
    match transaction.prepare_cached(sql)?.execute(values).map_err(JournalError::from) {
        // The row is damaged.
        Err(JournalError::Refused(_)) => Ok(()),
        kept => kept.map(drop),
    }
}

/// Removes keys whose time is over, at most `limit`. Returns how many.
pub(super) fn expire(transaction: &Transaction<'_>, now_ms: u64, limit: i64) -> Result<i64, JournalError> {
    let sql = "DELETE FROM spent_key WHERE (owner, key) IN
        (SELECT owner, key FROM spent_key WHERE until_ms <= ?1 ORDER BY until_ms LIMIT ?2)";
    let now = i64::try_from(now_ms).unwrap_or(i64::MAX);
    let removed = transaction.prepare_cached(sql)?.execute(params![now, limit])?;
    Ok(i64::try_from(removed).unwrap_or(i64::MAX))
}
