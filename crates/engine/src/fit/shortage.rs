//! A model that does not fit, in words.

use std::fmt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::Bytes;

/// The free memory of a device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FreeMemory {
    /// The device, for messages.
    pub device: String,
    /// Free memory in bytes.
    pub free_bytes: u64,
}

/// A model that does not fit: what the device that lacks most memory needs, and what it has.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shortage {
    /// The model's path.
    pub model: PathBuf,
    /// The device.
    pub device: String,
    /// Memory needed there, including `reserve_bytes`, in bytes.
    pub needed_bytes: u64,
    /// Free memory there, in bytes.
    pub free_bytes: u64,
    /// Weights there, in bytes.
    pub weights_bytes: u64,
    /// The part of the KV pool there, in bytes.
    pub kv_bytes: u64,
    /// Tokens of the whole KV pool.
    pub kv_tokens: u32,
    /// States of recurrent layers and, on the host, saved ones, in bytes.
    pub state_bytes: u64,
    /// Memory for computation, in bytes.
    pub compute_bytes: u64,
    /// Taken by the driver or the process, in bytes.
    pub reserve_bytes: u64,
    /// The largest `context_tokens` that would fit; 0 if none does.
    pub context_tokens_max: u32,
    /// True if the device is the CPU.
    pub on_cpu: bool,
}

impl fmt::Display for Shortage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [needed, free, weights, kv, compute, reserve] = [
            self.needed_bytes,
            self.free_bytes,
            self.weights_bytes,
            self.kv_bytes,
            self.compute_bytes,
            self.reserve_bytes,
        ]
        .map(Bytes);
        let (mapped, holder) =
            if self.on_cpu { (" mapped from the file", "process") } else { ("", "driver") };

        let states = match self.state_bytes {
            0 => String::new(),
            bytes => format!(", states of sequences {}", Bytes(bytes)),
        };

        write!(
            f,
            "model {} does not fit on {}: it needs {needed} (weights {weights}{mapped}, KV pool of \
             {} tokens {kv}{states}, compute {compute}, {holder} {reserve}), and {free} are free; ",
            self.model.display(),
            self.device,
            self.kv_tokens,
        )?;
        if self.context_tokens_max > 0 {
            write!(f, "lower context_tokens to {}, or ", self.context_tokens_max)?;
        }

        f.write_str(if self.on_cpu {
            "use a smaller model or quantisation, or free memory"
        } else {
            "set fit to \"auto\", use a smaller quantisation or more GPUs, or free memory on this \
             one"
        })
    }
}
