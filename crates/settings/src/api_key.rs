//! One entry of `server.keys`. Holds the hash of a key, never the key.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Longest name of a key, in bytes.
const NAME_BYTES_MAX: usize = 64;

/// One entry of `server.keys`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ApiKey {
    /// The owner: up to 64 lower-case letters, digits, `-` and `_`. Runs submitted with the key
    /// belong to this name.
    #[schemars(extend("format" = "name"))]
    pub name: String,
    /// True if the key may act for all keys: see and change the runs of others, remove finished ones
    /// (`POST /v1/gc`) and reload the configuration (`POST /v1/reload`). Without keys everybody may.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub admin: bool,
    /// SHA-256 of the key, 64 hexadecimal digits. The key itself is not stored.
    #[schemars(with = "String", extend("format" = "sha256"))]
    pub sha256: KeyHash,
    /// Overrides `server.requests_per_second`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub requests_per_second: Option<u32>,
    /// Overrides `server.concurrent_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub concurrent_max: Option<u32>,
    /// Overrides `server.key_open_runs_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub open_runs_max: Option<u32>,
    /// Overrides `queue.key_priority_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = -100, max = 100))]
    pub priority_max: Option<i32>,
    /// Overrides `queue.key_running_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub running_max: Option<u32>,
    /// Overrides `queue.key_runs_per_minute`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000))]
    pub runs_per_minute: Option<u32>,
    /// Overrides `server.key_cost_per_day_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0.0, max = 1_000_000_000.0))]
    pub cost_per_day_max: Option<f64>,
    /// Overrides `journal.key_bytes_max`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 1_000_000_000_000_000_u64))]
    pub journal_bytes_max: Option<u64>,
}

/// Returns whether a text is a valid name: 1 to 64 lower-case letters, digits, `-` and `_`.
pub fn is_name(text: &str) -> bool {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'_';
    (1..=NAME_BYTES_MAX).contains(&text.len()) && text.bytes().all(allowed)
}

/// Names that stand for something else than a key: in reviews, approvals and lists.
pub(super) const RESERVED: [&str; 5] = ["me", "none", "local", "deadline", "cancel"];

/// The SHA-256 of a key.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct KeyHash(pub [u8; 32]);

/// A text is not a hash of 64 hexadecimal digits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a SHA-256: use 64 hexadecimal digits")]
pub struct KeyHashError;

impl FromStr for KeyHash {
    type Err = KeyHashError;

    fn from_str(text: &str) -> Result<Self, KeyHashError> {
        if text.len() != 64 || !text.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Err(KeyHashError);
        }

        // `from_str_radix` would also accept a sign, hence the check of every digit above.
        let mut hash = [0; 32];
        for (byte, digits) in hash.iter_mut().zip(text.as_bytes().chunks_exact(2)) {
            let digits = std::str::from_utf8(digits).map_err(|_| KeyHashError)?;
            *byte = u8::from_str_radix(digits, 16).map_err(|_| KeyHashError)?;
        }

        Ok(Self(hash))
    }
}

impl TryFrom<String> for KeyHash {
    type Error = KeyHashError;

    fn try_from(text: String) -> Result<Self, KeyHashError> {
        text.parse()
    }
}

impl From<KeyHash> for String {
    fn from(hash: KeyHash) -> Self {
        hash.to_string()
    }
}

impl fmt::Display for KeyHash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_are_read_and_written_as_64_digits() {
        let text = "00ff10".to_owned() + &"a5".repeat(29);

        let hash: KeyHash = text.parse().unwrap();
        assert_eq!((hash.0[0], hash.0[1], hash.0[2], hash.0[31]), (0, 255, 16, 0xa5));
        assert_eq!(hash.to_string(), text);
        assert_eq!(text.to_uppercase().parse(), Ok(hash));

        for wrong in
            ["", "00", &"g0".repeat(32), &"+1".repeat(32), &"00".repeat(33), &"é".repeat(32)]
        {
            assert_eq!(wrong.parse::<KeyHash>(), Err(KeyHashError), "{wrong}");
        }
    }
}
