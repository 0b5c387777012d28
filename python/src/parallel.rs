//! Work on several threads, which live during a call only, so that the process may fork.

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use pyo3::prelude::*;

use crate::errors::value_error;
use crate::values::integer;

/// Most items that a thread takes at once.
const SHARE_MAX: usize = 16;
/// Shares that each thread takes, so that one with long items does not keep the others waiting.
const SHARES: usize = 8;

/// The threads that an argument asks for; 0 or none: the machine's cores.
pub fn threads(given: Option<&Bound<'_, PyAny>>) -> PyResult<usize> {
    let cores = thread::available_parallelism().map_or(1, NonZeroUsize::get);
    let threads = given.map_or(Ok(0), |given| integer("threads", given, 0, 1024))?;
    let threads = usize::try_from(threads).map_err(|error| value_error("threads", error))?;
    Ok(if threads == 0 { cores } else { threads })
}

/// What `of` makes of each item, in order; `least` items are worth a thread. Threads take the next
/// items that are left. A panic in `of` is resumed in the caller.
pub fn map<T: Sync, R: Send>(
    items: &[T],
    threads: usize,
    least: usize,
    of: impl Fn(&T) -> R + Sync,
) -> Vec<R> {
    let threads = threads.min(items.len() / least.max(1));
    if threads <= 1 {
        return items.iter().map(of).collect();
    }

    let share = (items.len() / (threads * SHARES)).clamp(1, SHARE_MAX);
    let next = AtomicUsize::new(0);

    let work = || {
        let mut done = Vec::new();
        loop {
            let start = next.fetch_add(share, Ordering::Relaxed);
            let Some(rest) = items.get(start..).filter(|rest| !rest.is_empty()) else {
                return done;
            };
            done.push((start, rest.iter().take(share).map(&of).collect::<Vec<_>>()));
        }
    };

    let mut shares: Vec<_> = thread::scope(|scope| {
        let workers: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        // All are joined first: otherwise the scope would raise a panic of its own.
        let joined: Vec<_> = workers.into_iter().map(thread::ScopedJoinHandle::join).collect();
        joined
            .into_iter()
            .flat_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    });

    shares.sort_by_key(|(start, _)| *start);
    shares.into_iter().flat_map(|(_, made)| made).collect()
}
