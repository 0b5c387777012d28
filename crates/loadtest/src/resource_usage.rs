//! CPU time and allocations of the process, read at both ends of a measurement.

use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

use prime_allocator::{Counts, Tally};

/// Usage since the process started.
#[derive(Clone, Copy, Debug)]
pub struct ResourceUsage {
    /// User and system time of all threads.
    pub cpu: Duration,
    /// `None` if allocations are not counted.
    pub heap: Option<Counts>,
}

impl ResourceUsage {
    pub fn now(tally: Option<Tally>) -> Self {
        let time = clock_gettime(ClockId::ProcessCPUTime);
        let cpu = Duration::new(
            u64::try_from(time.tv_sec).unwrap_or(0),
            u32::try_from(time.tv_nsec).unwrap_or(0),
        );
        Self { cpu, heap: tally.map(Tally::read) }
    }

    /// Usage since `earlier`.
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
    fn work_uses_cpu_time() {
        let before = ResourceUsage::now(None);
        let mut cpu = Duration::ZERO;
        // Terminates however busy the machine is, since these rounds are charged to this process.
        while cpu < Duration::from_millis(2) {
            std::hint::black_box(
                (0..10_000_u64).fold(0, |sum, number| sum ^ number.wrapping_mul(sum | 1)),
            );
            cpu = ResourceUsage::now(None).since(before).cpu;
        }
        assert_eq!(ResourceUsage::now(None).since(before).heap, None);
    }

    #[test]
    fn allocations_are_counted() {
        let tally = Tally::start();
        let before = ResourceUsage::now(tally);
        let kept = std::hint::black_box(vec![0_u8; 1 << 20]);
        let usage = ResourceUsage::now(tally).since(before);
        assert!(
            usage.heap.expect("invariant: tests use the counting allocator").allocated
                >= kept.len() as u64
        );
    }
}
