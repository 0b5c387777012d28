//! Values in bf16: the upper half of an f32, kept as its bits.

/// A value in bf16.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[repr(transparent)]
pub struct Bf16(pub(crate) u16);

impl Bf16 {
    /// The nearest value, halves to even. Infinities stay; a NaN may become an infinity, which a
    /// caller that checks for finite losses notices as well.
    #[inline(always)]
    pub(crate) fn nearest(value: f32) -> Self {
        let bits = value.to_bits();
        // Just under half of the dropped part, plus one if the kept part is odd: ties go to even.
        Self((bits.wrapping_add(0x7fff + (bits >> 16 & 1)) >> 16) as u16)
    }

    /// The same value as an f32, exactly.
    #[inline(always)]
    pub(crate) fn widened(self) -> f32 {
        f32::from_bits(u32::from(self.0) << 16)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounding_is_that_of_a_library() {
        let mut state = 1u32;
        for _ in 0..100_000 {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            let value = f32::from_bits(state);
            if value.is_finite() {
                assert_eq!(
                    Bf16::nearest(value).0,
                    half::bf16::from_f32(value).to_bits(),
                    "{value}"
                );
            }
        }
        assert_eq!(Bf16::nearest(f32::INFINITY).widened(), f32::INFINITY);
        assert_eq!(Bf16::nearest(-1.5).widened(), -1.5);
    }
}
