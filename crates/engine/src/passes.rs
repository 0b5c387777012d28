//! Divides what the turns decode in a step into passes through the model.
//!
//! On a CPU llama.cpp has two kinds of attention. With fewer than 64 tokens it computes token by
//! token and skips every cell that a token does not attend to. From 64 on it computes tiles of
//! tokens, which is faster for tokens of one sequence, and slow for tokens of several, because a
//! tile computes the cells of all its tokens. So a long part of one turn is a pass of its own, and
//! everything else shares passes that stay below 64 tokens.

/// Tokens of a pass with tokens of several turns, where tiles do not pay.
pub(super) const MIXED_TOKENS_MAX: usize = 63;

/// Tokens of a turn from which on it has passes of its own.
const OWN_TOKENS_MIN: usize = MIXED_TOKENS_MAX + 1;

/// A part of a turn in a pass: the turn's place among the active ones, and its tokens.
pub(super) type Part = (usize, usize);

/// The passes of a step in which the turn at each place decodes as many tokens as `counts` says, at
/// least 1 each. `own_max` is the most tokens of a pass of one turn, at least 64; without it, one
/// pass has them all.
///
/// The turns that share passes come first: they are the ones that generate.
pub(super) fn divided(counts: &[usize], own_max: Option<usize>) -> Vec<Vec<Part>> {
    let all = || counts.iter().copied().enumerate();
    let Some(own_max) = own_max else { return vec![all().collect()] };

    let mut passes: Vec<Vec<Part>> = Vec::new();
    let mut left = 0;
    for (turn, mut count) in all().filter(|(_, count)| *count < OWN_TOKENS_MIN) {
        while count > 0 {
            if left == 0 {
                passes.push(Vec::new());
                left = MIXED_TOKENS_MAX;
            }
            let part = count.min(left);
            passes.last_mut().expect("invariant: one was added").push((turn, part));
            (count, left) = (count - part, left - part);
        }
    }

    for (turn, count) in all().filter(|(_, count)| *count >= OWN_TOKENS_MIN) {
        // In equal parts, so that none is too short for tiles.
        let parts = count.div_ceil(own_max);
        let sizes = (0..parts).map(|part| count * (part + 1) / parts - count * part / parts);
        passes.extend(sizes.map(|size| vec![(turn, size)]));
    }
    passes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn without_a_limit_everything_is_one_pass() {
        assert_eq!(divided(&[1, 500, 3], None), [[(0, 1), (1, 500), (2, 3)]]);
    }

    #[test]
    fn long_parts_have_passes_of_their_own_after_the_turns_that_generate() {
        for (counts, expected) in [
            (vec![1, 1], vec![vec![(0, 1), (1, 1)]]),
            (vec![63], vec![vec![(0, 63)]]),
            (vec![64], vec![vec![(0, 64)]]),
            (vec![1, 128, 1], vec![vec![(0, 1), (2, 1)], vec![(1, 128)]]),
            // In equal parts.
            (vec![129], vec![vec![(0, 64)], vec![(0, 65)]]),
            (vec![300], vec![vec![(0, 100)], vec![(0, 100)], vec![(0, 100)]]),
            // Short parts fill passes; one may be cut.
            (vec![60, 2, 5], vec![vec![(0, 60), (1, 2), (2, 1)], vec![(2, 4)]]),
        ] {
            assert_eq!(divided(&counts, Some(128)), expected, "{counts:?}");
        }
    }
}
