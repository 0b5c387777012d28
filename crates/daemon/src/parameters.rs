//! Parameters in paths and queries.

use actix_web::HttpRequest;
use serde::de::DeserializeOwned;

use super::error::ApiError;
use super::guard::field_of;
use prime_service::requests::parse_time;
use prime_service::runs::check_wanted_label;

/// Longest line of a person, in bytes.
const LINE_BYTES_MAX: usize = 65_536;
/// Entries per page: most, and default.
const PAGE_MAX: u32 = 1_000;
const PAGE: u32 = 100;

/// Checks that the field `line`, by which a person replaces a proposal, is one line.
pub(super) fn check_new_line(line: &str) -> Result<(), ApiError> {
    let refused = |message: String| Err(ApiError::bad_field("line", message));
    if line.trim().is_empty() {
        return refused("is empty: give the line that takes the place of the other".to_owned());
    }
    if line.len() > LINE_BYTES_MAX {
        return refused(format!("has {} bytes; give at most {LINE_BYTES_MAX}", line.len()));
    }
    if line.contains(['\n', '\r']) {
        return refused("has several lines: give one".to_owned());
    }
    Ok(())
}

/// Parses the query string.
pub(super) fn parse_query<T: DeserializeOwned>(request: &HttpRequest) -> Result<T, ApiError> {
    read_query(request.query_string())
}

/// Parses a query string. Errors name the parameter.
pub(super) fn read_query<T: DeserializeOwned>(query: &str) -> Result<T, ApiError> {
    let parameters = serde_urlencoded::Deserializer::new(form_urlencoded::parse(query.as_bytes()));
    serde_path_to_error::deserialize(parameters).map_err(|error| {
        let path = error.path().to_string();
        let error = error.into_inner();
        match field_of(&path, &error.to_string()) {
            Some(name) => {
                let reason = numbers_in_words(&error.to_string());
                ApiError::bad_field(&name, format!("(in the query) {reason}"))
            }
            None => ApiError::bad_request(format!("the query: {error}")),
        }
    })
}

/// Rewords what the standard library says about numbers for users.
pub fn numbers_in_words(text: &str) -> String {
    [
        ("invalid digit found in string", "give a whole number of 0 or more, in digits"),
        ("number too large to fit in target type", "the number is too large"),
        ("number too small to fit in target type", "the number is too small"),
        ("cannot parse integer from empty string", "a number is missing"),
        ("invalid float literal", "give a number"),
        ("cannot parse float from empty string", "a number is missing"),
    ]
    .iter()
    .fold(text.to_owned(), |text, (from, to)| text.replace(from, to))
}

/// The number of entries of a page, from the parameter `limit`.
pub(super) fn page_limit(wanted: Option<u32>) -> Result<u32, ApiError> {
    let limit = wanted.unwrap_or(PAGE);
    if (1..=PAGE_MAX).contains(&limit) {
        Ok(limit)
    } else {
        Err(ApiError::bad_field("limit", format!("is {limit}; give 1 to {PAGE_MAX}")))
    }
}

/// The time of a parameter, in milliseconds since 1970.
pub(super) fn millis(name: &str, time: &str) -> Result<u64, ApiError> {
    let millis = parse_time(time).map_err(|error| {
        ApiError::bad_field(name, format!("must be a time such as 2026-02-03T04:05:06Z: {error}"))
    })?;
    // Nothing is older than 1970.
    Ok(u64::try_from(millis).unwrap_or(0))
}

/// The label that runs are looked for by, from the parameter `label`.
pub(super) fn wanted_label(wanted: String) -> Result<String, ApiError> {
    check_wanted_label(&wanted).map_err(|error| ApiError::bad_field("label", error))?;
    Ok(wanted)
}

/// Reads the number of a step's event in a path.
pub(super) fn step_number(text: &str) -> Result<u64, ApiError> {
    // 404 and not 400: a path that names no event names nothing.
    text.parse().map_err(|_| {
        ApiError::not_found("no_such_step", format!("{text:?} is not the number of an event"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[expect(dead_code, reason = "only errors are looked at")]
    struct Query {
        seq: u64,
        limit: Option<u32>,
        flag: Option<bool>,
    }

    #[test]
    fn errors_name_the_parameter() {
        for (query, field, part) in [
            ("seq=x", "seq", "give a whole number of 0 or more, in digits"),
            ("seq=1&limit=-1", "limit", "give a whole number of 0 or more, in digits"),
            ("seq=99999999999999999999", "seq", "the number is too large"),
            ("seq=1&limit=", "limit", "a number is missing"),
            ("seq=1&flag=maybe", "flag", "`true` or `false`"),
            ("limit=1", "seq", "missing field `seq`"),
            ("seq=1&seq=2", "seq", "duplicate field `seq`"),
            ("seq=1&colour=2", "colour", "unknown field `colour`"),
        ] {
            let error = read_query::<Query>(query).unwrap_err().body().error;
            assert_eq!(error.field.as_deref(), Some(field), "{query}: {}", error.message);
            assert!(error.message.contains(part), "{query}: {}", error.message);
        }
        assert!(read_query::<Query>("seq=1&limit=2&flag=true").is_ok());
    }
}
