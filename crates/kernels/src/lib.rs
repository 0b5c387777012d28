//! Inner loops of training on a CPU: matrix products of bf16 or f32 values with f32 sums, and
//! row-wise operations on f32.
//!
//! Products of bf16 values run on AMX tiles, on AVX-512 BF16 or in portable code, whichever the
//! processor has ([`Unit::best`]). All three multiply the values exactly and sum in f32; they
//! differ in the order of summation alone, so that results agree to rounding. Products of f32
//! values run on AVX-512 or in portable code; row-wise loops are compiled twice, for AVX-512 and
//! for any processor.
//!
//! Dimensions are multiples of [`BLOCK`], except that fewer rows may suffice
//! ([`Element::padded_rows`]). Callers pad with zeros, which contribute nothing to a sum.

#![warn(missing_docs)]
#![allow(
    clippy::cast_possible_truncation,
    clippy::inline_always,
    reason = "numeric code: halves of words are cut off on purpose, and inner loops must inline to be compiled for wide registers"
)]

mod bf16;
mod element;
mod packing;
mod product;
#[cfg(test)]
mod product_test;
pub mod rows;
#[cfg(test)]
mod rows_test;
mod single;
mod unit;
mod wide;
#[cfg(target_arch = "x86_64")]
mod x86;

pub use bf16::Bf16;
pub use element::{round_into, rounded};
pub use product::{Element, Left, Mode, Packed};
pub use unit::Unit;

/// Rows, columns and inner dimensions of products are multiples of this.
pub const BLOCK: usize = 32;

/// The next multiple of [`BLOCK`].
pub const fn padded(length: usize) -> usize {
    length.next_multiple_of(BLOCK)
}
