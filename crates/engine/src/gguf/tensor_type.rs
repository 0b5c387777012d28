//! Sizes of ggml's types of metadata values and tensor elements.

/// Bytes of a metadata value of fixed size.
pub(super) fn scalar_bytes(kind: u32) -> Option<u64> {
    match kind {
        0 | 1 | 7 => Some(1),
        2 | 3 => Some(2),
        4..=6 => Some(4),
        10..=12 => Some(8),
        _ => None,
    }
}

/// Elements and bytes of one block of a tensor type (ggml's `type_traits`).
pub(super) fn block_size(kind: u32) -> Option<(u64, u64)> {
    Some(match kind {
        0 | 26 => (1, 4),
        1 | 25 | 30 => (1, 2),
        2 | 20 => (32, 18),
        3 => (32, 20),
        6 => (32, 22),
        7 => (32, 24),
        8 => (32, 34),
        10 => (256, 84),
        11 => (256, 110),
        12 => (256, 144),
        13 => (256, 176),
        14 => (256, 210),
        16 => (256, 66),
        17 => (256, 74),
        18 => (256, 98),
        23 => (256, 136),
        24 => (1, 1),
        27 | 28 => (1, 8),
        39 => (32, 17),
        _ => return None,
    })
}
