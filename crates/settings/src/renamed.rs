//! Keys that were renamed. An old name is refused with the new one.

use serde_json::Value;

use super::schema::child;

/// Old and new names. An old name is recognised only in tables that have the new one.
const RENAMED: [(&str, &str); 10] = [
    ("answer_bytes_max", "response_bytes_max"),
    ("asks_when_clean", "ask_on_clean_steps"),
    ("chat", "chat_template"),
    ("highest", "tau_max"),
    ("keep_bytes", "retention_bytes"),
    ("keep_days", "retention_days"),
    ("kept_max", "cached_sequences_max"),
    ("kv", "kv_cache"),
    ("lowest", "tau_min"),
    ("window_ms", "group_commit_ms"),
];

/// The new name of a key of this table.
pub(super) fn new_name(table: &Value, key: &str) -> Option<&'static str> {
    RENAMED
        .into_iter()
        .find(|(old, new)| *old == key && child(table, new).is_some())
        .map(|(_, new)| new)
}
