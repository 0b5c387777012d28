//! Suggestions for misspelt names.

/// `; did you mean …?` with the most similar known name, or nothing if none is similar.
pub(crate) fn did_you_mean<'k>(name: &str, known: impl IntoIterator<Item = &'k str>) -> String {
    let wanted = name.to_lowercase();
    let distance = |known: &&str| strsim::damerau_levenshtein(&wanted, &known.to_lowercase());
    let limit = (wanted.chars().count() / 3).clamp(1, 4);
    let nearest = known.into_iter().map(|known| (distance(&known), known)).min();
    match nearest {
        Some((distance, nearest)) if distance <= limit => format!(" (did you mean `{nearest}`?)"),
        _ => String::new(),
    }
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
