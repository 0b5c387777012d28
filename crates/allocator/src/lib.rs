//! Counts what the process takes from its heap, while somebody wants to know.
//!
//! The executable installs [`Counting`] as its allocator. Switched off it costs one relaxed load an
//! allocation; switched on, each thread counts in a place of its own.
#![expect(
    unsafe_code,
    reason = "an allocator is an unsafe trait; every call is handed on to the system's as it came"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};

/// Threads that have a place of their own; further ones share [`SHARED`] places.
const OWN: usize = 960;
const SHARED: usize = 64;

/// The system's allocator, counted.
pub struct Counting;

/// What was taken and given back since the process began to count.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Blocks taken; one that is moved to grow or shrink counts again.
    pub allocations: u64,
    /// Bytes taken.
    pub allocated: u64,
    /// Bytes given back, those included that were taken before the count began.
    pub freed: u64,
}

impl Counts {
    /// Bytes that the heap has more than when the count began; less than none where old blocks were
    /// given back.
    pub fn live(self) -> i64 {
        self.allocated.cast_signed().wrapping_sub(self.freed.cast_signed())
    }

    /// What came after `earlier`.
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
    /// This thread's place; none before its first allocation that counts. Without a destructor, so
    /// that it can be read for as long as the thread allocates.
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
        // Nobody else writes it: two moves instead of a locked addition.
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

// SAFETY: every call goes to the system's allocator with the caller's own arguments, whose promises
// are the caller's; counting touches statics and a thread-local cell only, and allocates nothing.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size(), 0);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(1, layout.size(), 0);
        // SAFETY: the caller's promise is handed on.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, block: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(1, size, layout.size());
        // SAFETY: the caller's promise is handed on.
        unsafe { System.realloc(block, layout, size) }
    }

    unsafe fn dealloc(&self, block: *mut u8, layout: Layout) {
        count(0, 0, layout.size());
        // SAFETY: the caller's promise is handed on.
        unsafe { System.dealloc(block, layout) }
    }
}

/// Counts for as long as the process lives. `None` where [`Counting`] is not the process's
/// allocator.
#[derive(Clone, Copy, Debug)]
pub struct Tally(());

impl Tally {
    /// Switches the count on, and looks whether it counts.
    pub fn start() -> Option<Self> {
        IS_ON.store(true, Ordering::Relaxed);
        let before = Self::of_this_thread();
        drop(std::hint::black_box(Box::new(0_u64)));
        if Self::of_this_thread() == before {
            IS_ON.store(false, Ordering::Relaxed);
            return None;
        }
        Some(Self(()))
    }

    /// Of all threads, those included that have ended.
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
