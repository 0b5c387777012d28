//! Divides a batch among turns: those that generate first, then prompts, none of which may keep the others waiting.

/// How many of its pending tokens (at least 1) each turn gets, in their order; at least 1 each, which the batch has room for.
///
/// A turn that generates gets all that it needs for its next choice. Prompts (`true`) share what is left, and of it at most
/// `prefill` tokens if somebody generates: short ones whole, long ones equal parts.
pub(super) fn shares(batch: usize, prefill: usize, turns: &[(usize, bool)]) -> Vec<usize> {
    let mut counts = vec![1; turns.len()];
    let generating = turns.iter().filter(|(_, is_filling)| !is_filling).count();
    let filling = counts.len() - generating;
    let room = batch.saturating_sub(counts.len());
    let for_prompts = if generating == 0 { room } else { prefill.saturating_sub(filling).min(room) };
    let missing = |wanted: bool| {
        let turns = turns.iter().enumerate();
        turns.filter(move |(_, turn)| turn.1 == wanted).map(|(at, (pending, _))| (pending - 1, at)).collect::<Vec<_>>()
    };
    let mut prompts = missing(true);
    let asked = prompts.iter().map(|(pending, _)| pending).sum::<usize>().min(for_prompts);
    level(&mut missing(false), room - asked, &mut counts);
    level(&mut prompts, asked, &mut counts);
    counts
}

/// Gives out `room`: to those that ask for little all of it, to the others equal parts.
fn level(asked: &mut [(usize, usize)], room: usize, counts: &mut [usize]) {
    asked.sort_unstable();
    let mut left = room;
    for (place, (pending, at)) in asked.iter().enumerate() {
        let part = left / (asked.len() - place);
        let given = part.min(*pending);
        counts[*at] += given;
        left -= given;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_full_and_nobody_waits_for_a_long_prompt() {
        let long = (10_000, true);
        for (batch, prefill, turns, expected) in [
            // Nobody generates: the whole batch is for prompts.
            (512, 64, vec![long], vec![512]),
            (512, 64, vec![(3, true), long, long], vec![3, 254, 255]),
            (512, 64, vec![(100, true), (20, true)], vec![100, 20]),
            // Somebody does: a slice.
            (512, 64, vec![(1, false), long], vec![1, 64]),
            (512, 64, vec![long, (1, false), (10, true)], vec![54, 1, 10]),
            // Tokens that a grammar forced go along.
            (512, 64, vec![(30, false), (1, false), long], vec![30, 1, 64]),
            // However small the batch, everybody moves.
            (4, 64, vec![(9, false), (9, false), long, long], vec![1, 1, 1, 1]),
            (8, 2, vec![(9, false), (9, false), long], vec![3, 3, 2]),
            (3, 1, vec![(1, false), (1, false), (1, false)], vec![1, 1, 1]),
        ] {
            let counts = shares(batch, prefill, &turns);
            assert_eq!(counts, expected, "{batch} {prefill} {turns:?}");
        }
    }
}
