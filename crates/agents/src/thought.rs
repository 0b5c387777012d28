//! The thinking of a model, in the form in which it is kept.

/// Longest thinking that is kept with a step, in bytes.
const KEPT_BYTES_MAX: usize = 256 << 10;

/// Estimates from the lengths of the texts how many of the tokens were thinking.
pub(crate) fn estimated_tokens(completion: u64, thought: &str, said: &str) -> u64 {
    let (thought, said) = (thought.chars().count() as u64, said.trim().chars().count() as u64);
    (completion * thought).checked_div(thought + said).unwrap_or(0)
}

/// Thinking of a length that a record can hold; the end of a longer one is left out.
pub(crate) fn kept(mut thought: String) -> String {
    if thought.len() > KEPT_BYTES_MAX {
        let end = (0..=KEPT_BYTES_MAX).rev().find(|at| thought.is_char_boundary(*at));
        thought.truncate(end.unwrap_or(0));
        thought.push('…');
    }
    thought
}

/// Why a model gave no answer, in words.
pub(crate) fn only_thought(tokens: u64, is_truncated: bool) -> String {
    let cut = if is_truncated { ", where it was cut off" } else { "" };
    format!(
        "the model has only thought and answered nothing, in {tokens} tokens{cut}: limit \
         `thinking` or turn it `off`, or raise `max_tokens`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tokens_are_shared_by_length_and_long_thinking_is_cut() {
        assert_eq!(estimated_tokens(40, "hm", "move 1 0 2"), 6);
        assert_eq!(estimated_tokens(40, "", "move"), 0);
        assert_eq!(estimated_tokens(40, "hm", " "), 40);
        assert_eq!(estimated_tokens(40, "", ""), 0);

        let long = "ä".repeat(KEPT_BYTES_MAX / 2 + 1);
        assert_eq!(kept(long).len(), KEPT_BYTES_MAX + '…'.len_utf8());
        assert_eq!(kept("short".to_owned()), "short");
    }
}
