//! Tells an agent that blocks its thread from one that works: its thread's heartbeat stands still.

use std::time::Duration;

use tokio::time::Instant;

use super::heartbeat::Beat;
use prime_protocol::Role;

/// What the watchdog has seen of one thread.
#[derive(Debug, Default)]
pub struct Sighting {
    last: Option<(Beat, Instant)>,
    is_hung: bool,
}

/// What has changed about a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Change {
    /// An agent has worked on the same batch for longer than the limit.
    Hung {
        role: Role,
        since: Instant,
    },
    Recovered,
}

impl Sighting {
    pub fn is_hung(&self) -> bool {
        self.is_hung
    }

    /// Compares the thread's beat with the one at the last look.
    pub fn update(&mut self, beat: Beat, now: Instant, limit: Duration) -> Option<Change> {
        // A new beat restarts the time: the thread makes progress, however busy it is.
        let since = match self.last {
            Some((last, since)) if last == beat => since,
            _ => now,
        };

        self.last = Some((beat, since));
        // Only an agent at work can hang; an idle thread keeps its beat as long as it likes.
        let hung_role = beat.role().filter(|_| now.saturating_duration_since(since) >= limit);
        let was_hung = std::mem::replace(&mut self.is_hung, hung_role.is_some());

        match hung_role {
            Some(role) if !was_hung => Some(Change::Hung { role, since }),
            None if was_hung => Some(Change::Recovered),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heartbeat::Heartbeat;

    const LIMIT: Duration = Duration::from_secs(30);

    #[test]
    fn only_an_agent_that_stays_with_one_batch_hangs() {
        let (heartbeat, mut sighting, start) =
            (Heartbeat::default(), Sighting::default(), Instant::now());
        let mut look = |seconds| {
            sighting.update(heartbeat.read(), start + Duration::from_secs(seconds), LIMIT)
        };

        assert_eq!((look(0), look(100)), (None, None), "nobody works");

        heartbeat.enter(Role::Verifier, 1);
        assert_eq!((look(200), look(229)), (None, None));

        heartbeat.leave();
        heartbeat.enter(Role::Verifier, 1);
        assert_eq!((look(230), look(259)), (None, None), "the next batch");

        let since = start + Duration::from_secs(230);
        assert_eq!(look(260), Some(Change::Hung { role: Role::Verifier, since }));
        assert_eq!(look(300), None, "reported once");

        heartbeat.leave();
        assert_eq!((look(301), look(302)), (Some(Change::Recovered), None));
    }
}
