//! Tells webhooks and metrics of runs that are under way and have told nothing new for long.

use std::sync::Arc;
use std::time::Duration;

use super::service::Runs;

/// Most and least time between two looks.
const LOOK_MAX: Duration = Duration::from_secs(30);
const LOOK_MIN: Duration = Duration::from_millis(100);

/// The time between two looks: a standstill is told at most a tenth late.
fn pause(stuck_ms: u64) -> Duration {
    match stuck_ms {
        0 => LOOK_MAX,
        stuck_ms => Duration::from_millis(stuck_ms / 10).clamp(LOOK_MIN, LOOK_MAX),
    }
}

impl Runs {
    /// The runs of this node that are stuck.
    pub fn stuck_runs(&self) -> usize {
        self.execution().stuck().len()
    }

    /// Writes a message about each standstill, until the daemon drains.
    pub async fn run_standstills(self: Arc<Self>) {
        let mut drained = self.drained();
        loop {
            let look = pause(self.app().settings().server.stuck_ms);
            tokio::select! {
                _ = drained.wait_for(|drained| *drained) => return,
                () = tokio::time::sleep(look) => self.execution().tell_standstills(),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn looks_are_a_tenth_of_the_limit_apart() {
        let pauses = [0, 500, 60_000, 86_400_000].map(|stuck_ms| pause(stuck_ms).as_millis());
        assert_eq!(pauses, [30_000, 100, 6_000, 30_000]);
    }
}
