//! Errors of attempts: which of them justify a retry, and what they are as [`JournalError`].

use deadpool_postgres::PoolError;

use super::sqlstate::{Decision, decide};
use prime_journal::JournalError;

/// An error of one attempt.
#[derive(Debug)]
pub(super) enum Failure {
    /// The answer is unknown, or the server cannot serve at present: try again, on another
    /// connection.
    Connection(String),
    /// Another session was in the way, and nothing was changed: try again.
    Contention(String),
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
    /// True if another attempt may succeed.
    pub(super) fn is_passing(&self) -> bool {
        matches!(self, Self::Connection(_) | Self::Contention(_))
    }

    /// The error for a caller that does not retry.
    pub(super) fn into_error(self, database: &str) -> JournalError {
        match self {
            Self::Final(error) => error,
            Self::Connection(reason) => JournalError::NotWritable(format!("{database}: {reason}")),
            Self::Contention(reason) => JournalError::NotWritable(format!(
                "{database}: {reason}: see in pg_stat_activity what other sessions do, and whether \
                 the role's lock_timeout and statement_timeout are long enough"
            )),
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
        let Some(database) = error.as_db_error() else { return of_client(&error) };

        let code = database.code().code();
        match code {
            // Its detail is a number.
            "PR002" => {
                let open = database.detail().and_then(|open| open.parse().ok()).unwrap_or_default();
                return Self::Full { open };
            }
            "PR003" => return Self::Crowded,
            _ => {}
        }

        let mut reason = format!("{} (PostgreSQL error {code})", database.message());
        if let Some(detail) = database.detail() {
            reason = format!("{reason}: {detail}");
        }

        judge(code, reason)
    }
}

/// The failure of an error that the server did not report. The client exposes no kind, so the
/// beginning of its text decides: the rest may be a cause's.
fn of_client(error: &tokio_postgres::Error) -> Failure {
    let text = error.to_string();
    let begins = |parts: &[&str]| parts.iter().any(|part| text.starts_with(part));

    if begins(&["error serializing parameter", "error encoding message", "expected "]) {
        return Failure::Final(JournalError::Refused(with_sources(error)));
    }
    // A value of an unexpected type, or more rows than there can be.
    if begins(&["error deserializing column", "invalid column", "query returned"]) {
        return Failure::Final(JournalError::Damaged(with_sources(error)));
    }

    // All others concern the connection, such as a message out of turn when it is cut: then it is
    // unknown whether a commit was applied.
    Failure::Connection(with_sources(error))
}

fn judge(code: &str, reason: String) -> Failure {
    let error = match decide(code) {
        Decision::RetryHere => return Failure::Contention(reason),
        Decision::Reconnect => return Failure::Connection(reason),
        Decision::Conflict => return Failure::Conflict(reason),
        Decision::Wait => JournalError::NotWritable(reason),
        Decision::Configure(step) => JournalError::NotWritable(format!("{reason}: {step}")),
        Decision::Refuse => JournalError::Refused(reason),
        Decision::Damaged => JournalError::Damaged(reason),
    };
    Failure::Final(error)
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
    fn decisions_become_failures() {
        let cases = [
            ("55P03", "Contention(\"said so\")"),
            ("57P01", "Connection(\"said so\")"),
            ("23505", "Conflict(\"said so\")"),
            ("53100", "Final(NotWritable(\"said so\"))"),
            ("42501", "Final(NotWritable(\"said so: grant the role these rights\"))"),
            ("22021", "Final(Refused(\"said so\"))"),
            ("XX001", "Final(Damaged(\"said so\"))"),
        ];
        for (code, expected) in cases {
            assert_eq!(format!("{:?}", judge(code, "said so".to_owned())), expected, "{code}");
        }
    }
}
