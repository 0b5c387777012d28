//! Numbers in binary as lessons write them: lowest bit first, several numbers interleaved.

/// The lowest `count` bits of the numbers, a group for each bit: `[3, 8]` in 4 bits is
/// `10 10 00 01`.
pub fn interleaved<const N: usize>(numbers: [usize; N], count: usize) -> String {
    let group =
        |place: usize| -> String { numbers.iter().map(|number| digit(*number, place)).collect() };
    (0..count).map(group).collect::<Vec<_>>().join(" ")
}

fn digit(number: usize, place: usize) -> char {
    if bit(number, place) { '1' } else { '0' }
}

/// number + 1 without changing the kept bits: a group for each bit of the result, the carry second.
pub fn increment_around(number: usize, count: usize, is_kept: impl Fn(usize) -> bool) -> String {
    let mut carry = true;
    let group = |place: usize| {
        let before = bit(number, place);
        let after = before ^ (carry && !is_kept(place));
        // A kept bit passes the carry on.
        carry &= before || is_kept(place);
        format!("{}{}", u8::from(after), u8::from(carry))
    };
    (0..count).map(group).collect::<Vec<_>>().join(" ")
}

/// Returns whether the bit of weight 2^`place` is set.
pub fn bit(number: usize, place: usize) -> bool {
    // Places past the width of a word hold no bit, and a shift by them must not wrap around.
    u32::try_from(place)
        .ok()
        .and_then(|place| number.checked_shr(place))
        .is_some_and(|rest| rest % 2 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bits_stand_lowest_first() {
        assert_eq!(interleaved([3, 8], 4), "10 10 00 01");
        assert_eq!(increment_around(3, 4, |_| false), "01 01 10 00", "4");
        assert_eq!(
            increment_around(3, 4, |place| place == 2),
            "01 01 01 10",
            "8: the third bit stays"
        );

        assert!(!bit(usize::MAX, 64));
    }
}
