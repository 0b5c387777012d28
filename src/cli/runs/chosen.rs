//! The options that choose runs in a list and in an overview alike.

use clap::Args;

/// Which runs of the journal are meant.
#[derive(Args)]
pub(super) struct Chosen {
    /// Only runs that asked this model
    #[arg(long, value_name = "NAME")]
    model: Option<String>,
    /// Only runs with this label, whatever its value, or with this value
    #[arg(long, value_name = "NAME[:VALUE]")]
    label: Option<String>,
    /// Only runs of the key with this name, for an admin's key: `*` stands for all keys
    #[arg(long, value_name = "NAME")]
    key: Option<String>,
    /// Only runs accepted at this time or later, as 2026-02-03T04:05:06Z
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only runs accepted before this time
    #[arg(long, value_name = "TIME")]
    before: Option<String>,
}

impl Chosen {
    /// The parameters of a request.
    pub fn query(&self) -> [(&'static str, Option<String>); 5] {
        [
            ("model", self.model.clone()),
            ("label", self.label.clone()),
            ("key", self.key.clone()),
            ("since", self.since.clone()),
            ("before", self.before.clone()),
        ]
    }
}
