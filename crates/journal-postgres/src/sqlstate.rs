//! What to do about each of PostgreSQL's error codes (SQLSTATE): one table, by class, with the
//! codes that differ from their class.
//!
//! An accepted run must not fail for what passes. So a write is refused only for what it holds, and
//! the journal is damaged only where the server says that stored data are.

/// What follows from an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Decision {
    /// Another session was in the way. The connection is as good as before.
    RetryHere,
    /// The connection, its session or the server cannot be used: a new connection may be to
    /// another server.
    Reconnect,
    /// Trying again at once is useless, but somebody will make room, or repair the disk.
    Wait,
    /// Something was there already, or belongs to another node.
    Conflict,
    /// The write is at fault, and will be whenever it is sent.
    Refuse,
    /// The server or the role has to be set up differently: this is how. Writes wait for it.
    Configure(&'static str),
    /// Stored data are damaged.
    Damaged,
}

use Decision::{Configure, Conflict, Damaged, Reconnect, Refuse, RetryHere, Wait};

const URL: &str = "check the URL (journal.url) and the server's pg_hba.conf";
const RIGHTS: &str = "grant the role these rights";
const TABLES: &str =
    "check the search_path in the URL (journal.url); if tables are gone, restore a backup";
const PARAMETERS: &str =
    "check the parameters in the URL (journal.url) and those of the role and the database";
const FOREIGN: &str = "a trigger or rule that is not this program's does that: remove it";
const LIMITS: &str = "raise the server's limit that it names";

/// Codes of five characters stand for themselves, codes of two for the rest of their class.
const TABLE: &[(&str, Decision)] = &[
    // Successes and warnings are not errors: a session that takes them for errors is out of step.
    ("00", Reconnect),
    ("01", Reconnect),
    ("02", Reconnect),
    ("03", Reconnect),
    ("08", Reconnect),
    ("09", Configure(FOREIGN)),
    // Above all, a prepared statement that a change of the tables made unusable.
    ("0A", Reconnect),
    ("0B", Reconnect),
    ("0F", Reconnect),
    ("0L", Configure(RIGHTS)),
    ("0P", Configure(RIGHTS)),
    ("0Z", Reconnect),
    ("10", Refuse),
    ("20", Refuse),
    ("21", Refuse),
    ("22", Refuse),
    // The path of a setting.
    ("22023", Configure(PARAMETERS)),
    ("23", Refuse),
    // A unique index.
    ("23505", Conflict),
    ("24", Reconnect),
    // A read-only server (25006) was the primary before a failover; a transaction was ended for
    // being idle (25P03) or long (25P04).
    ("25", Reconnect),
    // PgBouncer gave the session to a server that does not know its prepared statements.
    ("26", Reconnect),
    ("27", Configure(FOREIGN)),
    ("28", Configure(URL)),
    ("2B", Configure(RIGHTS)),
    ("2D", Reconnect),
    ("2F", Configure(FOREIGN)),
    ("34", Reconnect),
    ("38", Configure(FOREIGN)),
    ("39", Configure(FOREIGN)),
    ("3B", Reconnect),
    ("3D", Configure(URL)),
    ("3F", Configure(TABLES)),
    // Serialisation failures (40001) and deadlocks (40P01).
    ("40", RetryHere),
    ("40002", Refuse),
    // It is unknown whether the statement was completed.
    ("40003", Reconnect),
    ("42", Configure(TABLES)),
    ("42501", Configure(RIGHTS)),
    // Prepared statements and cursors that a pooler shares between sessions.
    ("42P03", Reconnect),
    ("42P05", Reconnect),
    ("44", Configure(FOREIGN)),
    ("53", Wait),
    ("53200", Reconnect),
    ("53300", Reconnect),
    ("53400", Configure(LIMITS)),
    ("54", Refuse),
    // A database that takes no connections now, among others.
    ("55", Reconnect),
    ("55006", RetryHere),
    ("55P02", Configure(PARAMETERS)),
    // lock_timeout.
    ("55P03", RetryHere),
    // Shutdowns, crashes and starts (57P01 to 57P03), and sessions ended for being idle (57P05).
    ("57", Reconnect),
    // statement_timeout, or somebody's cancellation.
    ("57014", RetryHere),
    ("57P04", Configure(URL)),
    ("58", Wait),
    ("58P03", Configure(LIMITS)),
    // A snapshot that is too old.
    ("72", RetryHere),
    ("F0", Configure(PARAMETERS)),
    ("HV", Configure(FOREIGN)),
    ("P0", Configure(FOREIGN)),
    // This program's own: the commit does not match the leases.
    ("PR", Conflict),
    // An internal error, such as a tuple that was updated concurrently, does not prove damage.
    ("XX", Reconnect),
    ("XX001", Damaged),
    ("XX002", Damaged),
];

/// What to do about an error with this code. One that no class describes may pass.
pub(super) fn decide(code: &str) -> Decision {
    let find = |key: &str| TABLE.iter().find(|(known, _)| *known == key);
    let named = find(code).or_else(|| find(code.get(..2)?));
    named.map_or(Reconnect, |(_, decision)| *decision)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Codes that PostgreSQL reports, each with what must follow. Every row of the table is met.
    #[test]
    fn every_row_decides() {
        let cases: &[(&str, &[&str])] = &[
            ("RetryHere", &["40000", "40001", "40P01", "55006", "55P03", "57014", "72000"]),
            (
                "Reconnect",
                &[
                    "00000", "01000", "02000", "03000", "08000", "08001", "08003", "08004",
                    "08006", "08007", "08P01", "0A000", "0B000", "0F000", "0Z000", "24000",
                    "25000", "25001", "25006", "25P01", "25P02", "25P03", "25P04", "26000",
                    "2D000", "34000", "3B000", "3B001", "40003", "42P03", "42P05", "53200",
                    "53300", "55000", "55P04", "57000", "57P01", "57P02", "57P03", "57P05",
                    "XX000", "ZZ123", "",
                ],
            ),
            ("Wait", &["53000", "53100", "58000", "58030", "58P01", "58P02"]),
            ("Conflict", &["23505", "PR001"]),
            (
                "Refuse",
                &[
                    "10608", "20000", "21000", "22000", "22003", "22021", "22P05", "23000",
                    "23502", "23503", "23514", "40002", "54000", "54001", "54023",
                ],
            ),
            (
                "Configure",
                &[
                    "09000", "0L000", "0LP01", "0P000", "22023", "27000", "28000", "28P01",
                    "2BP01", "2F000", "38000", "39000", "3D000", "3F000", "42000", "42501",
                    "42601", "42703", "42883", "42P01", "44000", "53400", "55P02", "57P04",
                    "58P03", "F0000", "HV000", "P0001",
                ],
            ),
            ("Damaged", &["XX001", "XX002"]),
        ];

        let mut met = BTreeSet::new();
        for (expected, codes) in cases {
            for code in *codes {
                let decided = format!("{:?}", decide(code));
                assert!(decided.starts_with(expected), "{code}: {decided}, not {expected}");

                let row = [*code, code.get(..2).unwrap_or_default()];
                met.extend(
                    row.into_iter().filter(|key| TABLE.iter().any(|(known, _)| known == key)),
                );
            }
        }

        let rows: BTreeSet<_> = TABLE.iter().map(|(key, _)| *key).collect();
        assert_eq!(rows.len(), TABLE.len(), "a code has two rows");
        assert_eq!(met, rows, "a row without a case");
    }
}
