//! The entries of a batch: which segments it holds, in order. 48 bytes each, little-endian: the
//! run's number, the number of the first event, the number of events, the bytes of the body, the
//! hash.

use sha2::{Digest as _, Sha256};

use super::values::refused;
use crate::chain::{ChainHash, Head};
use crate::error::JournalError;
use crate::records::Segment;

const BYTES: usize = 48;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Entry {
    pub(super) run: i64,
    pub(super) first_seq: u64,
    pub(super) count: u32,
    /// Bytes of its body, which follows that of the entry before.
    pub(super) length: usize,
    pub(super) hash: ChainHash,
}

impl Entry {
    pub(super) fn of(run: i64, segment: &Segment) -> Self {
        let Segment { first_seq, count, ref body, hash } = *segment;
        Self { run, first_seq, count, length: body.len(), hash }
    }

    /// # Errors
    /// `Refused` if a number is too large for the format.
    pub(super) fn encode(&self, entries: &mut Vec<u8>) -> Result<(), JournalError> {
        let too_large = |what: &str| {
            refused(format!("run {}, events from {}: {what}", self.run, self.first_seq))
        };

        let run =
            u32::try_from(self.run).map_err(|_| too_large("the run's number is too large"))?;
        let first =
            u32::try_from(self.first_seq).map_err(|_| too_large("their numbers are too large"))?;
        let length = u32::try_from(self.length).map_err(|_| too_large("their body is too long"))?;

        for number in [run, first, self.count, length] {
            entries.extend_from_slice(&number.to_le_bytes());
        }
        entries.extend_from_slice(&self.hash.0);
        Ok(())
    }

    pub(super) fn head(&self) -> Head {
        Head { seq: (self.first_seq + u64::from(self.count)).saturating_sub(1), hash: self.hash }
    }

    /// Its segment, with its body.
    pub(super) fn segment(&self, body: &[u8]) -> Segment {
        Segment {
            first_seq: self.first_seq,
            count: self.count,
            body: body.to_vec(),
            hash: self.hash,
        }
    }
}

/// Detects damaged entries, which would give events to another run.
pub(super) fn digest(entries: &[u8]) -> [u8; 32] {
    Sha256::digest(entries).into()
}

/// # Errors
/// When they differ from what was written.
pub(super) fn decode(entries: &[u8], expected: &[u8]) -> Result<Vec<Entry>, String> {
    if digest(entries) != expected {
        return Err("its entries do not match their digest".to_owned());
    }
    let (entries, []) = entries.as_chunks::<BYTES>() else {
        return Err("its last entry is cut".to_owned());
    };

    let number = |entry: &[u8; BYTES], at: usize| {
        u32::from_le_bytes([entry[4 * at], entry[4 * at + 1], entry[4 * at + 2], entry[4 * at + 3]])
    };

    let entry = |entry: &[u8; BYTES]| {
        let mut hash = [0; 32];
        hash.copy_from_slice(&entry[16..]);
        Entry {
            run: number(entry, 0).into(),
            first_seq: number(entry, 1).into(),
            count: number(entry, 2),
            length: number(entry, 3) as usize,
            hash: ChainHash(hash),
        }
    };

    Ok(entries.iter().map(entry).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(run: i64, first_seq: u64) -> Entry {
        Entry {
            run,
            first_seq,
            count: 3,
            length: 70_000,
            hash: ChainHash([run.to_le_bytes()[0]; 32]),
        }
    }

    #[test]
    fn entries_come_back() {
        let all = [entry(1, 1), entry(i64::from(u32::MAX >> 1), 7), entry(3, u64::from(u32::MAX))];
        let mut encoded = Vec::new();
        all.iter().for_each(|entry| entry.encode(&mut encoded).unwrap());
        assert_eq!(encoded.len(), all.len() * BYTES);
        assert_eq!(decode(&encoded, &digest(&encoded)), Ok(all.to_vec()));
        assert_eq!(decode(&[], &digest(&[])), Ok(Vec::new()));
        assert_eq!(all[1].head().seq, 9);
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        for entry in [
            entry(-1, 1),
            entry(1 << 32, 1),
            entry(1, 1 << 32),
            Entry { length: 1 << 32, ..entry(1, 1) },
        ] {
            let refused = entry.encode(&mut Vec::new());
            assert!(matches!(refused, Err(JournalError::Refused(_))), "{entry:?}");
        }
    }

    #[test]
    fn every_changed_bit_and_every_cut_is_found() {
        let mut encoded = Vec::new();

        entry(5, 9).encode(&mut encoded).unwrap();
        let digest = digest(&encoded);
        for bit in 0..8 * BYTES {
            let mut changed = encoded.clone();
            changed[bit / 8] ^= 1 << (bit % 8);
            assert!(decode(&changed, &digest).is_err(), "bit {bit}");
        }

        for length in 0..BYTES {
            assert!(decode(&encoded[..length], &digest).is_err(), "{length} bytes");
        }

        assert!(
            decode(&encoded[..40], &self::digest(&encoded[..40])).is_err(),
            "cut before its digest was made"
        );
    }
}
