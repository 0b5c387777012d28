//! Several consecutive segments of a run in one row. The row has the hash of the last;
//! `segment.parts` has the hash before the first, and how many events each of them has (LEB128).
//! The other hashes follow from the events.

use crate::chain::ChainHash;
use crate::records::Segment;

/// Bytes of bodies that are joined in one row.
pub(super) const BYTES_MAX: usize = 64 << 10;
const HASH_BYTES: usize = 32;

/// `segment.parts` of the segments of a row.
pub(super) fn parts(before: ChainHash, counts: impl IntoIterator<Item = u32>) -> Vec<u8> {
    let mut parts = before.0.to_vec();
    for mut count in counts {
        while count > 0x7f {
            parts.push(0x80 | count.to_le_bytes()[0]);
            count >>= 7;
        }
        parts.push(count.to_le_bytes()[0]);
    }
    parts
}

fn counts(mut encoded: &[u8]) -> Option<Vec<u32>> {
    let mut counts = Vec::new();
    while !encoded.is_empty() {
        let mut count = 0_u32;
        for shift in (0..).step_by(7) {
            let (byte, rest) = encoded.split_first()?;
            encoded = rest;
            // More than 32 bits are damage.
            count |= u32::from(byte & 0x7f).checked_shl(shift)?;
            if byte & 0x80 == 0 {
                break;
            }
        }
        counts.push(count);
    }
    Some(counts)
}

/// Splits a row's segment into those that were committed. One that does not match its hash stays
/// whole, so that the chain shows where the damage begins at the earliest.
///
/// # Errors
/// When the parts are not those of this segment.
pub(super) fn split(joined: Segment, parts: &[u8]) -> Result<Vec<Segment>, String> {
    let damaged = || "its parts are not those of its events".to_owned();
    let (before, encoded) = parts.split_first_chunk::<HASH_BYTES>().ok_or_else(damaged)?;
    let counts = counts(encoded).ok_or_else(damaged)?;

    if counts.iter().map(|count| u64::from(*count)).sum::<u64>() != u64::from(joined.count)
        || counts.contains(&0)
    {
        return Err(damaged());
    }

    let mut rest = &joined.body[..];
    let (mut first_seq, mut hash) = (joined.first_seq, ChainHash(*before));
    let mut segments = Vec::with_capacity(counts.len());

    for count in counts {
        let mut length = 0;
        for line in rest.split_inclusive(|byte| *byte == b'\n').take(count as usize) {
            length += line.len();
            hash = hash.then(line.strip_suffix(b"\n").unwrap_or(line));
        }

        let (body, later) = rest.split_at(length);
        rest = later;
        segments.push(Segment { first_seq, count, body: body.to_vec(), hash });
        first_seq += u64::from(count);
    }

    Ok(if rest.is_empty() && hash == joined.hash { segments } else { vec![joined] })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::conformance::{events, row};
    use crate::verifier::ChainVerifier;

    /// Segments of these sizes, the row that joins them, and its parts.
    fn joined(sizes: &[u32]) -> (Vec<Segment>, Segment, Vec<u8>) {
        let mut head = row("r").head;

        let segments: Vec<_> = sizes
            .iter()
            .map(|size| {
                let segment = events(head, u64::from(*size));
                head = segment.head();
                segment
            })
            .collect();

        let body = segments.iter().flat_map(|segment| segment.body.clone()).collect();
        let whole = Segment { first_seq: 1, count: sizes.iter().sum(), body, hash: head.hash };
        (segments, whole, parts(row("r").head.hash, sizes.iter().copied()))
    }

    #[test]
    fn segments_come_back() {
        for sizes in [&[1][..], &[1, 1, 1], &[127, 128, 1], &[300, 1, 20_000]] {
            let (segments, whole, parts) = joined(sizes);
            assert!(split(whole, &parts).unwrap() == segments, "{sizes:?}");
        }
        assert_eq!(
            counts(&parts(ChainHash([0; 32]), [u32::MAX, 0])[32..]),
            Some(vec![u32::MAX, 0])
        );
    }

    #[test]
    fn damage_is_shown_by_the_chain_of_the_whole_row() {
        let (_, whole, parts) = joined(&[2, 1, 3]);
        for at in 0..whole.body.len() {
            let mut changed = whole.clone();
            changed.body[at] ^= 1;

            let found = split(changed, &parts).unwrap();

            let mut verifier = ChainVerifier::new("r", &row("r").spec);
            let damage = found.iter().try_for_each(|segment| verifier.follow(segment)).unwrap_err();
            assert_eq!(damage.seq, 1, "byte {at}");
        }
    }

    #[test]
    fn parts_of_other_events_are_damage() {
        let (_, whole, parts) = joined(&[2, 1, 3]);
        for parts in
            [&[][..], &parts[..31], &parts[..32], &parts[..34], &[&parts[..], &[1]].concat()]
        {
            assert!(split(whole.clone(), parts).is_err(), "{parts:?}");
        }

        let endless = [&parts[..32], &[0x80; 40]].concat();
        assert!(split(whole, &endless).is_err());
    }
}
