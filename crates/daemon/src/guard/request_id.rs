//! Request ids, which tie a response to the log.

use actix_web::http::header::{HeaderMap, HeaderName, HeaderValue};
use rand::rngs::StdRng;
use rand::{Rng as _, SeedableRng as _};

/// The header, of requests and responses.
pub const X_REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// Longest id accepted from a client, in bytes.
const BYTES_MAX: usize = 64;

/// The id of a request; in its extensions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RequestId(String);

impl RequestId {
    /// The client's id if it consists of 1 to 64 letters, digits, `-`, `_` and `.`; otherwise a new
    /// one.
    #[must_use]
    pub fn of(headers: &HeaderMap) -> Self {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.');

        let given = headers.get(X_REQUEST_ID).and_then(|value| value.to_str().ok());
        match given.filter(|id| (1..=BYTES_MAX).contains(&id.len()) && id.bytes().all(plain)) {
            Some(id) => Self(id.to_owned()),
            None => Self(format!("req_{:032x}", StdRng::from_os_rng().random::<u128>())),
        }
    }

    /// The id as it is sent back in the header `x-request-id`.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub(super) fn to_header(&self) -> HeaderValue {
        HeaderValue::from_str(&self.0).expect("invariant: an id has only plain characters")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_ids_are_accepted_and_others_replaced() {
        let of = |value: &[u8]| {
            let headers =
                HeaderMap::from_iter([(X_REQUEST_ID, HeaderValue::from_bytes(value).unwrap())]);
            RequestId::of(&headers).0
        };
        for id in ["a", "4f7c-A_b.9", &"x".repeat(64)] {
            assert_eq!(of(id.as_bytes()), id);
        }

        let mut made = vec![RequestId::of(&HeaderMap::new()).0];
        for id in [&b""[..], b"a b", b"a\"b", b"\xff\xfe", "x".repeat(65).as_bytes()] {
            made.push(of(id));
        }
        assert!(made.iter().all(|id| id.len() == 36 && id.starts_with("req_")), "{made:?}");
        made.sort();
        made.dedup();
        assert_eq!(made.len(), 6, "all differ");
    }
}
