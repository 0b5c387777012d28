//! Counts with their nouns.

/// `1 run`, `2 runs`; `1 retry`, `2 retries`.
pub fn count(number: u64, noun: &str) -> String {
    if number == 1 { format!("1 {noun}") } else { format!("{number} {}", plural(noun)) }
}

/// `runs` of `run`, `retries` of `retry`.
pub fn plural(noun: &str) -> String {
    match noun.strip_suffix('y') {
        // After a vowel the `y` stays, as in `days`.
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{stem}ies"),
        _ => format!("{noun}s"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_agree_with_their_nouns() {
        let cases = [
            (1, "run", "1 run"),
            (0, "run", "0 runs"),
            (2, "retry", "2 retries"),
            (1, "retry", "1 retry"),
            (2, "day", "2 days"),
        ];
        for (number, noun, text) in cases {
            assert_eq!(count(number, noun), text);
        }
    }
}
