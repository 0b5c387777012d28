//! Suggestions for misspelt names in messages.

use prime_bench::spelling::nearest;

/// ` (did you mean …?)` with the most similar known name, or nothing if none is similar.
pub(crate) fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    nearest(name, known).map_or_else(String::new, |known| format!(" (did you mean `{known}`?)"))
}

#[cfg(test)]
mod tests {
    use super::did_you_mean;

    #[test]
    fn only_similar_names_are_suggested() {
        assert_eq!(did_you_mean("prme", ["baseline", "prime"]), " (did you mean `prime`?)");
        assert_eq!(did_you_mean("other", ["baseline", "prime"]), "");
        assert_eq!(did_you_mean("other", []), "");
    }
}
