//! Counts the heap allocations of the process while counting is switched on.
//!
//! The executable installs [`Counting`] as its allocator. Switched off, it costs one relaxed load
//! per allocation; switched on, each thread counts in a place of its own.
#![warn(missing_docs)]
#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; every call is handed on to the system's as it came"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Threads that have a place of their own; further ones share [`SHARED`] places.
// All places together take 128 KiB.
const OWN: usize = 960;
const SHARED: usize = 64;

/// The system's allocator, counted.
pub struct Counting;

/// Allocations and frees since the process began to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks allocated; a block that is reallocated counts again.
    pub allocations: u64,
    /// Bytes allocated.
    pub allocated: u64,
    /// Bytes freed, including those allocated before the count began.
    pub freed: u64,
}

impl Counts {
    /// Growth of the heap since the count began, in bytes; negative if older blocks were freed.
    pub fn live(self) -> i64 {
        self.allocated.cast_signed().wrapping_sub(self.freed.cast_signed())
    }

    /// The counts since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        Self {
            allocations: self.allocations.wrapping_sub(earlier.allocations),
            allocated: self.allocated.wrapping_sub(earlier.allocated),
            freed: self.freed.wrapping_sub(earlier.freed),
        }
    }
}

/// A thread's counts, on cache lines of their own.
#[repr(align(128))]
struct Place {
    allocations: AtomicU64,
    allocated: AtomicU64,
    freed: AtomicU64,
}

impl Place {
    const fn new() -> Self {
        Self {
            allocations: AtomicU64::new(0),
            allocated: AtomicU64::new(0),
            freed: AtomicU64::new(0),
        }
    }

    fn read(&self) -> Counts {
        Counts {
            allocations: self.allocations.load(Ordering::Relaxed),
            allocated: self.allocated.load(Ordering::Relaxed),
            freed: self.freed.load(Ordering::Relaxed),
        }
    }
}

static IS_ON: AtomicBool = AtomicBool::new(false);
static PLACES: [Place; OWN + SHARED] = [const { Place::new() }; OWN + SHARED];
static THREADS: AtomicUsize = AtomicUsize::new(0);

thread_local! {
    /// This thread's place; `usize::MAX` before its first allocation that counts. Has no
    /// destructor, so that it can be read for as long as the thread allocates.
    static PLACE: Cell<usize> = const { Cell::new(usize::MAX) };
}

/// The place of this thread.
fn place() -> usize {
    PLACE.with(|place| {
        if place.get() == usize::MAX {
            let thread = THREADS.fetch_add(1, Ordering::Relaxed);
            place.set(if thread < OWN { thread } else { OWN + thread % SHARED });
        }
        place.get()
    })
}

fn add(to: &AtomicU64, number: usize, is_own: bool) {
    if is_own {
        // Only this thread writes it: two moves instead of a locked addition.
        to.store(to.load(Ordering::Relaxed).wrapping_add(number as u64), Ordering::Relaxed);
    } else {
        to.fetch_add(number as u64, Ordering::Relaxed);
    }
}

fn count(blocks: usize, taken: usize, freed: usize) {
    if !IS_ON.load(Ordering::Relaxed) {
        return;
    }

    let at = place();
    let (place, is_own) = (&PLACES[at], at < OWN);
    if blocks > 0 {
        add(&place.allocations, blocks, is_own);
        add(&place.allocated, taken, is_own);
    }
    if freed > 0 {
        add(&place.freed, freed, is_own);
    }
}

// SAFETY: every call goes to the system's allocator with the caller's own arguments, for which the
// caller upholds the contract; counting only touches statics and a thread-local cell, and allocates
// nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size(), 0);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size(), 0);
        // SAFETY: the caller upholds the contract.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size, layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, 0, layout.size());
        // SAFETY: the caller upholds the contract.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Proof that the process counts its allocations, which it does until it ends.
#[derive(Clone, Copy, Debug)]
pub struct Tally(());

impl Tally {
    /// Switches counting on. `None` if [`Counting`] is not the process's allocator.
    pub fn start() -> Option<Self> {
        IS_ON.store(true, Ordering::Relaxed);

        let before = Self::of_this_thread();
        // `black_box` keeps the compiler from removing the allocation.
        drop(std::hint::black_box(Box::new(0_u64)));

        if Self::of_this_thread() == before {
            IS_ON.store(false, Ordering::Relaxed);
            return None;
        }
        Some(Self(()))
    }

    /// The counts of all threads, including those that have ended.
    pub fn read(self) -> Counts {
        PLACES.iter().map(Place::read).fold(Counts::default(), |sum, place| Counts {
            allocations: sum.allocations.wrapping_add(place.allocations),
            allocated: sum.allocated.wrapping_add(place.allocated),
            freed: sum.freed.wrapping_add(place.freed),
        })
    }

    fn of_this_thread() -> Counts {
        PLACES[place()].read()
    }
}

#[cfg(test)]
mod tests {
    use std::hint::black_box;

    use super::*;

    #[global_allocator]
    static ALLOCATOR: Counting = Counting;

    #[test]
    fn blocks_and_bytes_are_counted() {
        let tally = Tally::start().expect("it is this binary's allocator");
        let before = Tally::of_this_thread();

        let kept: Vec<Box<[u8; 100]>> = Vec::with_capacity(10);
        let mut kept = black_box(kept);
        kept.extend((0..10).map(|_| Box::new([0_u8; 100])));
        let taken = Tally::of_this_thread().since(before);
        // The vector has ten pointers of eight bytes, and each block a hundred.
        assert_eq!(taken, Counts { allocations: 11, allocated: 1_080, freed: 0 });
        assert_eq!(taken.live(), 1_080);

        kept.truncate(3);
        assert_eq!(Tally::of_this_thread().since(before).live(), 1_080 - 700);
        drop(kept);
        assert_eq!(Tally::of_this_thread().since(before).live(), 0);
        assert!(tally.read().allocations >= Tally::of_this_thread().allocations);
    }

    #[test]
    fn a_block_that_grows_counts_again() {
        Tally::start().expect("it is this binary's allocator");
        let before = Tally::of_this_thread();
        let mut bytes: Vec<u8> = black_box(Vec::with_capacity(100));
        bytes.reserve_exact(1_000);

        let taken = Tally::of_this_thread().since(before);
        assert_eq!(taken, Counts { allocations: 2, allocated: 1_100, freed: 100 });
        drop(bytes);
    }

    #[test]
    fn other_threads_are_in_the_sum() {
        let tally = Tally::start().expect("it is this binary's allocator");
        let before = tally.read();
        std::thread::spawn(|| drop(black_box(vec![0_u8; 1 << 20]))).join().expect("it ends");
        assert!(tally.read().since(before).allocated >= 1 << 20);
    }
}
