//! Numbers with their nouns.

/// `1 run`, `2 runs`; `1 retry`, `2 retries`.
pub fn count(number: u64, noun: &str) -> String {
    match noun.strip_suffix('y') {
        _ if number == 1 => format!("1 {noun}"),
        Some(stem) if !stem.ends_with(['a', 'e', 'o', 'u']) => format!("{number} {stem}ies"),
        _ => format!("{number} {noun}s"),
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
