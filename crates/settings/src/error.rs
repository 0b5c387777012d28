//! Configuration errors. Every message names the key, where it is set, and the fix.

use std::path::PathBuf;

/// A mistake in the configuration. `origin` is where the value was set: `FILE:LINE`, an environment
/// variable or a `--set` argument.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SettingsError {
    /// A file given by `--config` cannot be read.
    #[error(
        "cannot read the config file {}: {cause}; check the path given to --config",
        path.display()
    )]
    Unreadable {
        /// The path as given.
        path: PathBuf,
        /// What the system said.
        cause: std::io::Error,
    },
    /// A file given by `--config` is too long for a configuration.
    #[error(
        "the config file {} is longer than {mib_max} MiB; check the path given to --config",
        path.display()
    )]
    TooLong {
        /// The path as given.
        path: PathBuf,
        /// The limit.
        mib_max: u64,
    },
    /// An environment variable for the configuration is not UTF-8.
    #[error("environment variable {name}: its name or value is not UTF-8; set it again")]
    NotUtf8 {
        /// Its name, with replacement characters.
        name: String,
    },
    /// An environment variable that looks like part of the configuration but is not.
    #[error(
        "environment variable {name} has no effect: parts are separated by two underscores; did \
         you mean {meant}?"
    )]
    SingleUnderscore {
        /// The name as set.
        name: String,
        /// The name with two underscores.
        meant: String,
    },
    /// A role definition cannot be used.
    #[error("{}: {message}", path.display())]
    Definition {
        /// The file.
        path: PathBuf,
        /// What is wrong and what to do.
        message: String,
    },
    /// A file is not TOML.
    #[error("{origin}: not valid TOML: {message}")]
    NotToml {
        /// File and line.
        origin: String,
        /// What the parser said.
        message: String,
    },
    /// An argument of `--set` is not `key=value`.
    #[error(
        "`--set {argument}` is not of the form section.key=value; an example is `--set \
         run.fanout=4`"
    )]
    NotAssignment {
        /// The argument as given.
        argument: String,
    },
    /// A key that does not exist.
    #[error("{origin}: unknown key `{key}`{}", suggestion(nearest.as_deref(), known))]
    UnknownKey {
        /// The dotted key.
        key: String,
        /// Where it is set.
        origin: String,
        /// The most similar known key.
        nearest: Option<Box<str>>,
        /// The known keys, if none is similar.
        known: Vec<String>,
    },
    /// A value of the wrong type.
    #[error("{origin}: `{key}` is {found}, but must be {expected}")]
    WrongType {
        /// The dotted key.
        key: String,
        /// Where it is set.
        origin: String,
        /// Kind and value.
        found: String,
        /// Kind, and range or choices.
        expected: String,
    },
    /// A value of the right type that is not allowed.
    #[error("{origin}: `{key}` is {found}, but must be {expected}")]
    OutOfRange {
        /// The dotted key.
        key: String,
        /// Where it is set.
        origin: String,
        /// The value.
        found: String,
        /// The range.
        expected: String,
    },
    /// A name that is not on its list.
    #[error(
        "{origin}: `{key}` names `{found}`, which is not known{}",
        suggestion(nearest.as_deref(), known)
    )]
    UnknownName {
        /// The dotted key.
        key: String,
        /// Where it is set.
        origin: String,
        /// The name.
        found: String,
        /// The most similar known name.
        nearest: Option<Box<str>>,
        /// All known names.
        known: Vec<String>,
    },
    /// A key without a default is not set.
    #[error("{origin}: `{key}` is missing; add `{example}`")]
    Missing {
        /// The dotted key.
        key: String,
        /// Where its table is.
        origin: String,
        /// An example assignment.
        example: String,
    },
    /// Two conflicting values.
    #[error("{origin}: {message}")]
    Conflict {
        /// Where the first key is set.
        origin: String,
        /// Both keys and values, and the fix.
        message: String,
    },
    /// The layers cannot be merged; the checks above should have found the reason.
    #[error("cannot merge the configuration: {0}")]
    Merge(config::ConfigError),
}

/// The end of a message about an unknown name: the most similar one, or all.
pub(super) fn suggestion(nearest: Option<&str>, known: &[String]) -> String {
    match nearest {
        Some(nearest) if known.is_empty() => format!("; did you mean `{nearest}`?"),
        Some(nearest) => format!("; did you mean `{nearest}`? Known: {}", known.join(", ")),
        None if known.is_empty() => "; it has none".to_owned(),
        None => format!("; known: {}", known.join(", ")),
    }
}
