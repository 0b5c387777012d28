//! The processor time of this process, by which runs are compared because it does not depend on the
//! machine's other work.

use rustix::time::{ClockId, clock_gettime};

/// Processor seconds of this process, all threads together.
pub fn cpu_s() -> f64 {
    let time = clock_gettime(ClockId::ProcessCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
