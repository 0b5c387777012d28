//! Options that determine how much memory an engine takes, on the host and on GPUs.

use serde::{Deserialize, Serialize};

/// The type of the keys and values in the KV pool.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum KvType {
    /// 32 bits.
    F32,
    /// 16 bits.
    #[default]
    F16,
    /// 16 bits with the exponent of 32.
    Bf16,
    /// Blocks of 32 values in 8 bits: 8.5 bits each.
    #[serde(rename = "q8_0")]
    Q8_0,
    /// Blocks of 32 values in 4 bits: 4.5 bits each.
    #[serde(rename = "q4_0")]
    Q4_0,
}

impl KvType {
    /// Its name in the configuration.
    pub fn name(self) -> &'static str {
        match self {
            Self::F32 => "f32",
            Self::F16 => "f16",
            Self::Bf16 => "bf16",
            Self::Q8_0 => "q8_0",
            Self::Q4_0 => "q4_0",
        }
    }

    /// Values and bytes of a block.
    pub(crate) fn block(self) -> (u64, u64) {
        match self {
            Self::F32 => (1, 4),
            Self::F16 | Self::Bf16 => (1, 2),
            Self::Q8_0 => (32, 34),
            Self::Q4_0 => (32, 18),
        }
    }

    /// Returns whether several values share a scale; llama.cpp then needs flash attention.
    pub(crate) fn is_quantised(self) -> bool {
        self.block().0 > 1
    }

    /// Bytes of this many values, rounded up.
    pub(crate) fn bytes(self, values: u64) -> u64 {
        let (block, bytes) = self.block();
        values.div_ceil(block).saturating_mul(bytes)
    }
}

/// A number of a model's layers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum LayerCount {
    /// All of them.
    All,
    /// As many as fit.
    Auto,
    /// This many.
    Count(u32),
}

/// What an engine does where it does not fit.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "lowercase")]
pub enum FitMode {
    /// It is refused, with the numbers.
    #[default]
    Exact,
    /// It takes a smaller context, experts on the CPU or fewer layers on the GPUs, in this order.
    Auto,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blocks_are_as_large_as_ggml_has_them() {
        for (kind, bytes) in [
            (KvType::F32, 256),
            (KvType::F16, 128),
            (KvType::Bf16, 128),
            (KvType::Q8_0, 68),
            (KvType::Q4_0, 36),
        ] {
            assert_eq!(kind.bytes(64), bytes, "{}", kind.name());
        }
    }
}
