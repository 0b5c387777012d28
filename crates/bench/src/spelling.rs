//! Suggestions for misspelt names.

/// The candidate most similar to `wanted`, whatever its letters' case, or `None` if none is
/// similar.
///
/// A misplaced key (`fanout` for `run.fanout`) counts as similar: the last parts are compared too.
pub fn nearest<'a>(wanted: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted = wanted.to_lowercase();
    let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
    candidates
        .into_iter()
        .filter_map(|candidate| {
            let known = candidate.to_lowercase();
            let whole = strsim::damerau_levenshtein(&wanted, &known);
            let tail = strsim::damerau_levenshtein(&last(&wanted), &last(&known));
            let limit = |text: &str| (text.chars().count() / 3).clamp(1, 4);
            let near = whole <= limit(&wanted) || tail <= limit(&last(&wanted)).min(2);
            // The last part decides, the section breaks ties: `run.fanuot` is `run.fanout`, even if
            // other keys are similar.
            near.then_some((tail.min(whole), whole, candidate))
        })
        .min()
        .map(|(_, _, candidate)| candidate)
}

#[cfg(test)]
mod tests {
    use super::*;

    const KEYS: [&str; 7] = [
        "T90",
        "run",
        "run.fanout",
        "run.max_rounds",
        "run.restarts_max",
        "server.bind",
        "runtime.restarts_max",
    ];

    #[test]
    fn similar_and_misplaced_keys_are_found() {
        for (wanted, right) in [
            ("run.fanuot", "run.fanout"),
            ("run.Fan_Out", "run.fanout"),
            ("run.maxrounds", "run.max_rounds"),
            ("fanout", "run.fanout"),
            ("rnu", "run"),
            ("run_fanout", "run.fanout"),
            ("runtime.restart_max", "runtime.restarts_max"),
            ("t90", "T90"),
            ("sever.bind", "server.bind"),
        ] {
            assert_eq!(nearest(wanted, KEYS), Some(right), "{wanted}");
        }
    }

    #[test]
    fn dissimilar_names_are_not_suggested() {
        for wanted in ["", "colour", "run.colour", "x"] {
            assert_eq!(nearest(wanted, KEYS), None, "{wanted}");
        }
    }
}
