//! Maps SQLite's error codes to [`JournalError`].

use rusqlite::ffi;

use crate::error::JournalError;

impl From<rusqlite::Error> for JournalError {
    fn from(error: rusqlite::Error) -> Self {
        let rusqlite::Error::SqliteFailure(failure, _) = &error else {
            // A column of an unexpected type.
            return Self::Damaged(error.to_string());
        };

        let code = failure.extended_code;
        let reason = format!("{error} (SQLite error {code})");
        // These extended codes mean something other than their group, the low byte.
        match code {
            // Nothing of the transaction was committed: its last frame was not written. Without
            // these codes, their group would be a failed disk.
            ffi::SQLITE_IOERR_WRITE
            | ffi::SQLITE_IOERR_SHMOPEN
            | ffi::SQLITE_IOERR_SHMSIZE
            | ffi::SQLITE_IOERR_SHMMAP
            | ffi::SQLITE_IOERR_NOMEM => return Self::NotWritable(reason),
            ffi::SQLITE_IOERR_READ
            | ffi::SQLITE_IOERR_SHORT_READ
            | ffi::SQLITE_IOERR_DATA
            | ffi::SQLITE_IOERR_CORRUPTFS => return Self::Damaged(reason),
            _ => {}
        }

        match code & 0xff {
            ffi::SQLITE_FULL
            | ffi::SQLITE_READONLY
            | ffi::SQLITE_CANTOPEN
            | ffi::SQLITE_PERM
            | ffi::SQLITE_AUTH
            | ffi::SQLITE_BUSY
            | ffi::SQLITE_LOCKED
            | ffi::SQLITE_PROTOCOL
            | ffi::SQLITE_NOMEM => Self::NotWritable(reason),
            // Failed syncs, above all.
            ffi::SQLITE_IOERR => Self::DiskFailed(reason),
            ffi::SQLITE_CONSTRAINT | ffi::SQLITE_TOOBIG => Self::Refused(reason),
            // CORRUPT, NOTADB, and an unexpected schema.
            _ => Self::Damaged(reason),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_codes_are_mapped() {
        let cases = [
            (ffi::SQLITE_FULL, "cannot be written"),
            (ffi::SQLITE_READONLY, "cannot be written"),
            (ffi::SQLITE_READONLY_DBMOVED, "cannot be written"),
            (ffi::SQLITE_IOERR_WRITE, "cannot be written"),
            (ffi::SQLITE_IOERR_SHMSIZE, "cannot be written"),
            (ffi::SQLITE_CANTOPEN, "cannot be written"),
            (ffi::SQLITE_CANTOPEN_ISDIR, "cannot be written"),
            (ffi::SQLITE_PERM, "cannot be written"),
            (ffi::SQLITE_BUSY_SNAPSHOT, "cannot be written"),
            (ffi::SQLITE_IOERR_FSYNC, "disk failed"),
            (ffi::SQLITE_IOERR_DIR_FSYNC, "disk failed"),
            (ffi::SQLITE_IOERR_TRUNCATE, "disk failed"),
            (ffi::SQLITE_IOERR_READ, "damaged"),
            (ffi::SQLITE_IOERR_SHORT_READ, "damaged"),
            (ffi::SQLITE_CORRUPT, "damaged"),
            (ffi::SQLITE_CORRUPT_INDEX, "damaged"),
            (ffi::SQLITE_NOTADB, "damaged"),
            (ffi::SQLITE_ERROR, "damaged"),
            (ffi::SQLITE_CONSTRAINT_UNIQUE, "refused"),
            (ffi::SQLITE_TOOBIG, "refused"),
        ];
        for (code, meaning) in cases {
            let error =
                rusqlite::Error::SqliteFailure(ffi::Error::new(code), Some("said so".to_owned()));
            let message = JournalError::from(error).to_string();
            assert!(message.contains(meaning), "{code}: {message}");
            assert!(message.contains(&format!("said so (SQLite error {code})")), "{message}");
        }
    }
}
