//! What the process has spent: processor time and allocations, read at both ends of a measurement.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use prime_allocator::{Counts, Tally};

/// What the process has spent by a moment.
#[derive(Clone, Copy, Debug)]
pub struct Spent {
    /// Processor time of all threads, user and system.
    pub cpu: Duration,
    /// Where the process counts its allocations.
    pub heap: Option<Counts>,
}

impl Spent {
    pub fn by_now(tally: Option<Tally>) -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::new(u64::try_from(time.tv_sec).unwrap_or(0), u32::try_from(time.tv_nsec).unwrap_or(0));
        Self { cpu, heap: tally.map(Tally::read) }
    }

    /// What was spent since `earlier`.
    #[must_use]
    pub fn since(self, earlier: Self) -> Self {
        let heap = self.heap.zip(earlier.heap).map(|(now, then)| now.since(then));
        Self { cpu: self.cpu.saturating_sub(earlier.cpu), heap }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_takes_processor_time() {
        let before = Spent::by_now(None);
        let mut spent = Duration::ZERO;
        // Ends by itself: whatever the machine does meanwhile, these rounds are charged to this process.
        while spent < Duration::from_millis(2) {
            std::hint::black_box((0..10_000_u64).fold(0, |sum, number| sum ^ number.wrapping_mul(sum | 1)));
            spent = Spent::by_now(None).since(before).cpu;
        }
        assert_eq!(Spent::by_now(None).since(before).heap, None);
    }

    #[test]
    fn blocks_that_were_taken_meanwhile_are_counted() {
        let tally = Tally::start();
        let before = Spent::by_now(tally);
        let kept = std::hint::black_box(vec![0_u8; 1 << 20]);
        let spent = Spent::by_now(tally).since(before);
        assert!(spent.heap.expect("tests have the counting allocator").allocated >= kept.len() as u64);
    }
}
