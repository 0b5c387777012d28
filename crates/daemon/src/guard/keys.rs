//! API keys, which identify the owner of a request. Only hashes are kept; a key itself exists when
//! it is made and when a client presents it.

use std::fmt::Write as _;

use actix_web::http::header::{AUTHORIZATION, HeaderMap};
use rand::rngs::StdRng;
use rand::{RngCore as _, SeedableRng as _};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConditionallySelectable as _, ConstantTimeEq as _};

use crate::error::ApiError;
use prime_settings::{ApiKey, KeyHash};

/// The prefix of every key, so that secret scanners find leaked ones.
const PREFIX: &str = "prime_";
/// Random bytes of a key: 256 bits.
const RANDOM_BYTES: usize = 32;

/// What a request may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rights {
    /// The rights of a probe without a key, where there are keys.
    Stranger,
    /// Its own runs.
    Key,
    /// Everything: a key with `admin`, or anybody without keys.
    Admin,
}

/// The owner of a request: the name of its key, or "" without keys. Every request that reaches a
/// handler has it in its extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owner {
    /// The key's name in the configuration; "" without keys.
    pub name: String,
    /// What the key allows.
    pub rights: Rights,
}

/// A new key. It cannot be recovered later.
#[derive(Clone)]
pub struct NewKey {
    /// The key itself, for the client.
    pub key: String,
    /// Its hash, for the configuration.
    pub sha256: KeyHash,
}

impl NewKey {
    /// A key of 256 random bits from the operating system.
    #[must_use]
    pub fn random() -> Self {
        let mut random = [0; RANDOM_BYTES];
        StdRng::from_os_rng().fill_bytes(&mut random);
        let mut key = PREFIX.to_owned();
        for byte in random {
            write!(key, "{byte:02x}").expect("invariant: writing to a string cannot fail");
        }

        let sha256 = hash(key.as_bytes());
        Self { key, sha256 }
    }
}

fn hash(key: &[u8]) -> KeyHash {
    KeyHash(Sha256::digest(key).into())
}

/// The hashes of all keys, in the order of the configuration.
#[derive(Clone, Debug)]
pub struct Keys(Vec<KeyHash>);

impl Keys {
    /// The keys of the configuration.
    #[must_use]
    pub fn new(keys: &[ApiKey]) -> Self {
        Self(keys.iter().map(|key| key.sha256).collect())
    }

    /// True if requests need no key.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The index in the configuration of the key in `Authorization: Bearer KEY`.
    ///
    /// # Errors
    /// 401 unless there is exactly one key and it is known.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<usize, ApiError> {
        // With two headers, the owner would be ambiguous.
        let mut values = headers.get_all(AUTHORIZATION);
        let (Some(value), None) = (values.next(), values.next()) else {
            return Err(ApiError::unauthorized(
                "a key is needed: send one header `Authorization: Bearer KEY`",
            ));
        };
        let Some(key) = bearer(value.as_bytes()) else {
            return Err(ApiError::unauthorized("the header Authorization must be `Bearer KEY`"));
        };

        let presented = hash(key);
        // Compares all of them in constant time, so that timing reveals nothing.
        let (mut found, mut at) = (Choice::from(0), 0_u64);
        for (place, known) in (0_u64..).zip(&self.0) {
            let same = known.0.ct_eq(&presented.0);
            at.conditional_assign(&place, same);
            found |= same;
        }

        match usize::try_from(at) {
            Ok(at) if bool::from(found) => Ok(at),
            _ => Err(ApiError::unauthorized("this key is unknown: check it, or ask for a new one")),
        }
    }
}

/// The token of a `Bearer` credential; the scheme's case does not matter (RFC 9110).
fn bearer(value: &[u8]) -> Option<&[u8]> {
    let (scheme, token) = value.split_at_checked(b"bearer ".len())?;
    let token = token.trim_ascii();
    (scheme.eq_ignore_ascii_case(b"bearer ") && !token.is_empty()).then_some(token)
}

#[cfg(test)]
mod tests {
    use super::*;
    use actix_web::http::header::HeaderValue;

    /// SHA-256 of "abc" (FIPS 180-2, appendix B.1) and of the 56-byte message of appendix B.2.
    const HASHES: [&str; 2] = [
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad",
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1",
    ];
    const SECOND: &str = "abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq";

    fn keys() -> Keys {
        let key = |(name, sha256): (&str, &str)| ApiKey {
            name: name.to_owned(),
            sha256: sha256.parse().unwrap(),
            ..ApiKey::default()
        };
        Keys::new(&["a", "b"].into_iter().zip(HASHES).map(key).collect::<Vec<_>>())
    }

    fn authenticated(values: &[&str]) -> Result<usize, ApiError> {
        let mut headers = HeaderMap::new();

        for value in values {
            headers.append(AUTHORIZATION, HeaderValue::from_bytes(value.as_bytes()).unwrap());
        }
        keys().authenticate(&headers)
    }

    #[test]
    fn each_key_is_found() {
        assert_eq!(authenticated(&["Bearer abc"]), Ok(0));
        assert_eq!(authenticated(&["bearer   abc "]), Ok(0));
        assert_eq!(authenticated(&[&format!("BEARER {SECOND}")]), Ok(1));
    }

    #[test]
    fn anything_but_a_known_key_is_refused() {
        for values in [
            &[][..],
            &["abc"],
            &["Bearer"],
            &["Bearer "],
            &["Basic abc"],
            &["Bearerabc"],
            &["Bearer abcd"],
            &["Bearer Abc"],
            &["Bearer abc abc"],
            &["Bearer é"],
            &["Bearer abc", "Bearer abc"],
            &[&format!("Bearer {}", HASHES[0])],
        ] {
            let error = authenticated(values).unwrap_err();
            assert_eq!(error.code(), "invalid_api_key", "{values:?}");
        }
    }

    #[test]
    fn new_keys_differ_and_match_their_hash() {
        let (one, other) = (NewKey::random(), NewKey::random());
        assert_ne!(one.key, other.key);
        let digits = one.key.strip_prefix("prime_").unwrap();
        assert!(
            digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()),
            "{digits}"
        );

        let keys = Keys(vec![other.sha256, one.sha256]);
        let mut headers = HeaderMap::new();
        headers
            .insert(AUTHORIZATION, HeaderValue::from_str(&format!("Bearer {}", one.key)).unwrap());
        assert_eq!(keys.authenticate(&headers), Ok(1));
    }
}
