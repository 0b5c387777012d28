//! Compression of the bodies of segments and snapshots, the same in all stores.

use zstd::bulk::{Compressor, decompress};
use zstd::zstd_safe::{CParameter, compress_bound};

use crate::error::JournalError;

/// Shorter bodies are stored plain: the frame headers would outweigh the gain.
const COMPRESSED_FROM: usize = 512;
/// zstd's fastest regular level: commits wait for it.
const ZSTD_LEVEL: i32 = 1;
/// Longest body before compression. SQLite's own limit is 1,000,000,000.
const BODY_BYTES_MAX: usize = 256 << 20;

/// How a body is stored. The numbers are part of the stores' formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Packing {
    /// As it is.
    Plain,
    /// Compressed with Zstandard, with a checksum.
    Zstd,
}

impl Packing {
    /// The number that stands for it in a store.
    pub fn number(self) -> i16 {
        match self {
            Self::Plain => 0,
            Self::Zstd => 1,
        }
    }

    /// The packing of a number; `None` for an unknown one.
    pub fn of_number(number: i64) -> Option<Self> {
        match number {
            0 => Some(Self::Plain),
            1 => Some(Self::Zstd),
            _ => None,
        }
    }
}

/// A body as stored in its columns.
pub struct Packed<'a> {
    /// How `body` is stored.
    pub packing: Packing,
    /// Length before compression.
    pub bytes: i64,
    /// The bytes to store.
    pub body: &'a [u8],
}

/// Compresses bodies, reusing its buffers.
pub struct Packer {
    compressor: Compressor<'static>,
    buffer: Vec<u8>,
}

impl Packer {
    /// A packer with empty buffers.
    ///
    /// # Errors
    /// The compressor cannot be set up.
    pub fn new() -> std::io::Result<Self> {
        let mut compressor = Compressor::new(ZSTD_LEVEL)?;
        // Without a checksum, a flipped bit could decompress to other bytes.
        compressor.set_parameter(CParameter::ChecksumFlag(true))?;
        Ok(Self { compressor, buffer: Vec::new() })
    }

    /// # Errors
    /// `Refused` if the body is too long.
    pub fn pack<'a>(&'a mut self, body: &'a [u8]) -> Result<Packed<'a>, JournalError> {
        let bytes = i64::try_from(body.len())
            .ok()
            .filter(|_| body.len() <= BODY_BYTES_MAX)
            .ok_or_else(|| {
                JournalError::Refused(format!(
                    "a body of {} bytes is longer than {BODY_BYTES_MAX}",
                    body.len()
                ))
            })?;

        if body.len() >= COMPRESSED_FROM {
            self.buffer.clear();
            self.buffer.reserve(compress_bound(body.len()));
            let packed = self.compressor.compress_to_buffer(body, &mut self.buffer);
            if packed.map_err(|error| JournalError::NotWritable(format!("zstd: {error}")))?
                < body.len()
            {
                return Ok(Packed { packing: Packing::Zstd, bytes, body: &self.buffer });
            }
        }
        Ok(Packed { packing: Packing::Plain, bytes, body })
    }
}

/// Reverses [`Packer::pack`].
///
/// # Errors
/// When the body is damaged.
pub fn unpack(packing: Packing, bytes: i64, body: &[u8]) -> Result<Vec<u8>, String> {
    let length = usize::try_from(bytes).ok().filter(|length| *length <= BODY_BYTES_MAX);
    let length = length.ok_or_else(|| format!("a body cannot have {bytes} bytes"))?;

    let plain = match packing {
        Packing::Plain => body.to_vec(),
        Packing::Zstd => decompress(body, length)
            .map_err(|error| format!("its body cannot be decompressed: {error}"))?,
    };

    if plain.len() == length {
        Ok(plain)
    } else {
        Err(format!("its body has {} bytes, not {length}", plain.len()))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::conformance::random;

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]
        #[test]
        fn bodies_come_back(bodies in prop::collection::vec((0_usize..3_000, 1_u8..=255), 1..4)) {
            let mut packer = Packer::new().unwrap();
            for (length, modulus) in bodies {
                let body: Vec<u8> = random(1, length).into_iter().map(|byte| byte % modulus).collect();

                let packed = packer.pack(&body).unwrap();
                prop_assert!(packed.body.len() <= body.len());
                prop_assert_eq!(unpack(packed.packing, packed.bytes, packed.body), Ok(body));
            }
        }
    }

    #[test]
    fn long_bodies_that_shrink_are_compressed() {
        let mut packer = Packer::new().unwrap();
        for (length, expected) in [(0, Packing::Plain), (511, Packing::Plain), (512, Packing::Zstd)]
        {
            assert_eq!(packer.pack(&vec![b'a'; length]).unwrap().packing, expected, "{length}");
        }

        let noise = random(7, 1_024);
        assert_eq!(packer.pack(&noise).unwrap().packing, Packing::Plain);

        let message = packer.pack(&vec![0; BODY_BYTES_MAX + 1]).err().unwrap().to_string();
        assert!(message.contains("268435457"), "{message}");
    }

    #[test]
    fn every_changed_byte_of_a_compressed_body_is_found() {
        let body = b"{\"line\":\"LOOK 3 4\"}\n".repeat(40);
        let mut packer = Packer::new().unwrap();
        let packed = packer.pack(&body).unwrap();
        for at in 0..packed.body.len() {
            let mut changed = packed.body.to_vec();
            changed[at] ^= 0x10;
            let unpacked = unpack(packed.packing, packed.bytes, &changed);
            assert!(
                unpacked.is_err() || unpacked.as_ref() == Ok(&body),
                "byte {at}: other content"
            );
        }

        // Wrong lengths are damage, too.
        for bytes in [-1, 0, 799, 801, i64::MAX] {
            assert!(unpack(packed.packing, bytes, packed.body).is_err(), "{bytes}");
        }
        assert!(unpack(Packing::Plain, 3, b"ab").is_err());
    }
}
