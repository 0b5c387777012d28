//! The environment variables that belong to the configuration, checked for mistakes that would
//! otherwise go unnoticed.

use std::ffi::OsString;

use super::Settings;
use super::error::SettingsError;

/// The prefix of environment variables for the configuration, in any case.
pub(super) const PREFIX: &str = "PRIME__";

/// The part of a variable's name after `PRIME__`.
pub(super) fn key(name: &str) -> Option<&str> {
    let prefix = name.get(..PREFIX.len())?;
    prefix.eq_ignore_ascii_case(PREFIX).then(|| &name[PREFIX.len()..])
}

/// Reads the variables for [`Settings::load`]. Pass `std::env::vars_os()`.
///
/// # Errors
/// A variable of the configuration is not UTF-8, or has a single underscore between its parts and
/// would be ignored.
pub fn read_environment(
    variables: impl Iterator<Item = (OsString, OsString)>,
) -> Result<impl Iterator<Item = (String, String)>, SettingsError> {
    let mut read = Vec::new();
    for (name, value) in variables {
        // Taken before the name is consumed; variables of other programs may hold any bytes.
        let shown = name.to_string_lossy().into_owned();
        let is_ours = key(&shown).is_some();
        match (name.into_string(), value.into_string()) {
            (Ok(name), Ok(value)) => {
                if let Some(meant) = with_double_underscores(&name) {
                    return Err(SettingsError::SingleUnderscore { name, meant });
                }
                read.push((name, value));
            }
            _ if is_ours => return Err(SettingsError::NotUtf8 { name: shown }),
            _ => {}
        }
    }
    Ok(read.into_iter())
}

/// The variable that is probably meant, such as `PRIME__RUN__FANOUT` for `PRIME_RUN_FANOUT`, if the
/// first word after `PRIME_` is a section of the configuration.
fn with_double_underscores(name: &str) -> Option<String> {
    let rest = name.strip_prefix("PRIME_").filter(|rest| !rest.starts_with('_'))?;
    // `PRIME_API_KEY` is not ours: only a section's name tells that the configuration is meant.
    let (section, key) = rest.split_once('_')?;
    let schema = Settings::shared_schema();
    let sections = schema["properties"].as_object()?;
    let is_section = sections.contains_key(&section.to_ascii_lowercase());
    is_section.then(|| format!("{PREFIX}{section}__{}", key.trim_start_matches('_')))
}

#[cfg(test)]
mod tests {
    use std::os::unix::ffi::OsStringExt as _;

    use super::*;

    fn read(name: &str, value: Vec<u8>) -> Result<Vec<(String, String)>, String> {
        let variables = std::iter::once((OsString::from(name), OsString::from_vec(value)));
        read_environment(variables).map(Iterator::collect).map_err(|error| error.to_string())
    }

    #[test]
    fn a_single_underscore_is_a_mistake_before_a_section_only() {
        for (name, meant) in [
            ("PRIME_RUN_FANOUT", "PRIME__RUN__FANOUT"),
            ("PRIME_RUN__FANOUT", "PRIME__RUN__FANOUT"),
            ("PRIME_SERVER_QUEUE_MAX", "PRIME__SERVER__QUEUE_MAX"),
        ] {
            let error = read(name, b"4".to_vec()).unwrap_err();
            assert!(error.contains(name) && error.contains(meant), "{error}");
        }

        for name in [
            "PRIME_API_KEY",
            "PRIME_CHAOS_KILLS",
            "PRIME_RUN",
            "PRIME__RUN__FANOUT",
            "PRIMES_RUN_X",
            "HOME",
        ] {
            assert_eq!(read(name, b"4".to_vec()), Ok(vec![(name.to_owned(), "4".to_owned())]));
        }
    }

    #[test]
    fn only_variables_of_the_configuration_must_be_utf_8() {
        assert_eq!(read("LANG", vec![0xff]), Ok(Vec::new()));
        let error = read("PRIME__LOG__LEVEL", vec![0xff]).unwrap_err();
        assert!(error.contains("PRIME__LOG__LEVEL") && error.contains("UTF-8"), "{error}");
    }
}
