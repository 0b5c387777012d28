//! The label by which a study's runs are found among those of a daemon.

use prime_printable::is_escaped;

/// Its name.
pub const STUDY_LABEL: &str = "study";

/// Characters of its value that a daemon takes.
const VALUE_MAX: usize = 128;

/// Its value for the runs of a system: `STUDY: SYSTEM`, without what a daemon refuses.
pub fn study_label(study: &str, system: &str) -> String {
    let text = format!("{study}: {system}");
    text.chars().filter(|c| !c.is_control() && !is_escaped(*c)).take(VALUE_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_is_one_that_daemons_take() {
        assert_eq!(study_label("headline", "single\npass\u{202e}"), "headline: singlepass");
        assert_eq!(study_label("x", &"é".repeat(200)).chars().count(), 128);
    }
}
