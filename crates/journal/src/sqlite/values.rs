//! Values of columns: the conversions that several files need.

use rusqlite::Row;

use crate::chain::ChainHash;
use crate::error::JournalError;

pub(super) fn refused(reason: String) -> JournalError {
    JournalError::Refused(reason)
}

pub(super) fn signed(number: u64, what: &str) -> Result<i64, JournalError> {
    i64::try_from(number).map_err(|_| refused(format!("{what} {number} is too large")))
}

pub(super) fn hash(bytes: &[u8]) -> Result<ChainHash, JournalError> {
    let bytes = bytes
        .try_into()
        .map_err(|_| JournalError::Damaged(format!("a hash of {} bytes", bytes.len())))?;
    Ok(ChainHash(bytes))
}

pub(super) fn unsigned(row: &Row<'_>, column: usize) -> Result<u64, JournalError> {
    let value: i64 = row.get(column)?;
    u64::try_from(value).map_err(|_| {
        JournalError::Damaged(format!("the number {value}, which must not be negative"))
    })
}

pub(super) fn blob<'r>(row: &'r Row<'_>, column: usize) -> Result<&'r [u8], JournalError> {
    row.get_ref(column)?.as_blob().map_err(|error| JournalError::Damaged(error.to_string()))
}
