//! Divides a batch among turns: generating turns first, then prefill, which must not hold up the
//! others.

/// The number of its pending tokens (at least 1) that each of `turns` may decode: at least 1, for
/// which the batch must have room.
///
/// A generating turn gets all that its next choice needs. Turns in prefill (`true`) share the rest,
/// at most `prefill` tokens of it while any turn generates: short prompts whole, long ones in equal
/// parts.
pub(super) fn allocate(batch: usize, prefill: usize, turns: &[(usize, bool)]) -> Vec<usize> {
    let mut counts = vec![1; turns.len()];
    let generating = turns.iter().filter(|(_, is_filling)| !is_filling).count();
    let filling = counts.len() - generating;

    // Every turn advances by one token, whatever the limits; what is distributed is the rest.
    let room = batch.saturating_sub(counts.len());
    let for_prompts =
        // The token that each prompt gets in any case counts towards the slice.
        if generating == 0 { room } else { prefill.saturating_sub(filling).min(room) };

    let unserved = |wanted: bool| {
        let turns = turns.iter().enumerate();
        turns
            .filter(move |(_, turn)| turn.1 == wanted)
            .map(|(at, (pending, _))| (pending - 1, at))
            .collect::<Vec<_>>()
    };

    let mut prompts = unserved(true);
    let asked = prompts.iter().map(|(pending, _)| pending).sum::<usize>().min(for_prompts);

    // The prompts' slice is set aside first, so that long forced texts do not starve prefill.
    distribute(&mut unserved(false), room - asked, &mut counts);
    distribute(&mut prompts, asked, &mut counts);

    counts
}

/// Distributes `room` max-min fairly: small requests in full, the others in equal parts.
fn distribute(asked: &mut [(usize, usize)], room: usize, counts: &mut [usize]) {
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
    fn batches_are_full_and_no_turn_waits_for_a_long_prompt() {
        let long = (10_000, true);
        for (batch, prefill, turns, expected) in [
            // No turn generates: the whole batch is prefill.
            (512, 64, vec![long], vec![512]),
            (512, 64, vec![(3, true), long, long], vec![3, 254, 255]),
            (512, 64, vec![(100, true), (20, true)], vec![100, 20]),
            // One does: a slice.
            (512, 64, vec![(1, false), long], vec![1, 64]),
            (512, 64, vec![long, (1, false), (10, true)], vec![54, 1, 10]),
            // Tokens forced by a grammar are decoded too.
            (512, 64, vec![(30, false), (1, false), long], vec![30, 1, 64]),
            // However small the batch, every turn advances.
            (4, 64, vec![(9, false), (9, false), long, long], vec![1, 1, 1, 1]),
            (8, 2, vec![(9, false), (9, false), long], vec![3, 3, 2]),
            (3, 1, vec![(1, false), (1, false), (1, false)], vec![1, 1, 1]),
        ] {
            let counts = allocate(batch, prefill, &turns);
            assert_eq!(counts, expected, "{batch} {prefill} {turns:?}");
        }
    }
}
