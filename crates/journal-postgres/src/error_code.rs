//! Maps PostgreSQL's errors to [`JournalError`], and decides which of them justify a retry.

use deadpool_postgres::PoolError;
use tokio_postgres::error::SqlState;

use prime_journal::JournalError;

/// An error of one attempt.
#[derive(Debug)]
pub(super) enum Failure {
    /// The answer is unknown, or the server cannot serve at present: try again.
    Connection(String),
    /// [`super::schema`]'s function refused a commit, or something was there already. Nothing was
    /// changed.
    Conflict(String),
    /// A commit would exceed the limit on open runs, of which there are `open`. Nothing was
    /// changed.
    Full {
        open: u64,
    },
    /// A commit may exceed the limit on open runs: it must count them while no other commit accepts
    /// any. Nothing was changed.
    Crowded,
    Final(JournalError),
}

impl Failure {
    /// The error for a caller that does not retry.
    pub(super) fn into_error(self, database: &str) -> JournalError {
        match self {
            Self::Final(error) => error,
            Self::Connection(reason) => JournalError::NotWritable(format!("{database}: {reason}")),
            Self::Conflict(reason) => JournalError::Refused(reason),
            Self::Full { .. } | Self::Crowded => {
                JournalError::Refused("too many runs are open".to_owned())
            }
        }
    }
}

impl From<JournalError> for Failure {
    fn from(error: JournalError) -> Self {
        Self::Final(error)
    }
}

impl From<tokio_postgres::Error> for Failure {
    fn from(error: tokio_postgres::Error) -> Self {
        let Some(database) = error.as_db_error() else {
            // The client exposes no kind, so its texts decide. Some errors say that a value has an
            // unexpected type. All others concern the connection, such as a message out of turn
            // when it is cut: then it is unknown whether a commit was applied.
            let text = error.to_string();
            let is_value = ["serializing", "column", "parameters", "rows", "encoding"]
                .iter()
                .any(|part| text.contains(part));
            return if is_value {
                Self::Final(JournalError::Damaged(with_sources(&error)))
            } else {
                Self::Connection(with_sources(&error))
            };
        };

        let code = database.code();
        match code.code() {
            // Its detail is a number.
            "PR002" => {
                let open = database.detail().and_then(|open| open.parse().ok()).unwrap_or_default();
                return Self::Full { open };
            }
            "PR003" => return Self::Crowded,
            _ => {}
        }

        let mut reason = format!("{} (PostgreSQL error {})", database.message(), code.code());
        if let Some(detail) = database.detail() {
            reason = format!("{reason}: {detail}");
        }

        judge(code, reason)
    }
}

fn judge(code: &SqlState, reason: String) -> Failure {
    // PR001 is this program's own: the commit does not match the leases.
    if code.code() == "PR001" || *code == SqlState::UNIQUE_VIOLATION {
        return Failure::Conflict(reason);
    }

    if [SqlState::IO_ERROR, SqlState::DISK_FULL, SqlState::OUT_OF_MEMORY].contains(code) {
        return Failure::Final(JournalError::NotWritable(reason));
    }
    // The class, by the first two characters.
    match &code.code()[..2] {
        // Connections, read-only servers, deadlocks, too many connections, shutdown and start.
        "08" | "25" | "40" | "53" | "57" => Failure::Connection(reason),
        "28" | "3D" | "3F" => {
            Failure::Final(JournalError::NotWritable(format!("{reason}: check the URL")))
        }
        "42" if *code == SqlState::INSUFFICIENT_PRIVILEGE => Failure::Final(
            JournalError::NotWritable(format!("{reason}: grant the role these rights")),
        ),
        "22" | "23" | "54" => Failure::Final(JournalError::Refused(reason)),
        _ => Failure::Final(JournalError::Damaged(reason)),
    }
}

impl From<PoolError> for Failure {
    fn from(error: PoolError) -> Self {
        match error {
            PoolError::Backend(error) if error.as_db_error().is_some() => error.into(),
            PoolError::Backend(error) => Self::Connection(with_sources(&error)),
            PoolError::Timeout(_) => {
                Self::Connection("no connection within the time limit".to_owned())
            }
            other => Self::Connection(other.to_string()),
        }
    }
}

/// An error with its causes: the client's own messages are short.
fn with_sources(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let cause_text = cause.to_string();
        if !text.contains(&cause_text) {
            text = format!("{text}: {cause_text}");
        }
        source = cause.source();
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_are_mapped() {
        let cases = [
            ("PR001", "Conflict"),
            ("23505", "Conflict"),
            ("08006", "Connection"),
            ("57P01", "Connection"),
            ("57P03", "Connection"),
            ("53300", "Connection"),
            ("40P01", "Connection"),
            ("25006", "Connection"),
            ("53100", "Final(NotWritable"),
            ("58030", "Final(NotWritable"),
            ("42501", "Final(NotWritable"),
            ("28P01", "Final(NotWritable"),
            ("22021", "Final(Refused"),
            ("54000", "Final(Refused"),
            ("42P01", "Final(Damaged"),
            ("XX001", "Final(Damaged"),
        ];
        for (code, expected) in cases {
            let failure = format!("{:?}", judge(&SqlState::from_code(code), "said so".to_owned()));
            assert!(failure.starts_with(expected), "{code}: {failure}");
        }
    }
}
