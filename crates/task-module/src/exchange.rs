//! Where a module and its host exchange a request and its answer. A module has one thread and
//! answers one request.

use std::sync::{Mutex, PoisonError};

static REQUEST: Mutex<Vec<u8>> = Mutex::new(Vec::new());
static ANSWER: Mutex<Vec<u8>> = Mutex::new(Vec::new());

/// The address in the module's memory, which has 32 bits.
#[expect(clippy::cast_possible_truncation, reason = "only a module with 32 bits is ever asked")]
fn address(bytes: &[u8]) -> u32 {
    bytes.as_ptr().addr() as u32
}

/// Makes room for a request of this many bytes.
pub fn room(length: u32) -> u32 {
    let mut request = REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    *request = vec![0; length as usize];
    address(&request)
}

/// The place of the answer to the request: its address in the upper half, its length in the lower.
pub fn answered(answer: impl FnOnce(&[u8]) -> Vec<u8>) -> u64 {
    let request = REQUEST.lock().unwrap_or_else(PoisonError::into_inner);
    let mut told = ANSWER.lock().unwrap_or_else(PoisonError::into_inner);
    *told = answer(&request);
    (u64::from(address(&told)) << 32) | told.len() as u64
}
