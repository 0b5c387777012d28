//! Progress of the agents on one thread, for the watchdog. Only that thread writes it, so that a
//! beat costs a load and two stores and reads no clock.

use std::sync::atomic::{AtomicU64, Ordering};

use prime_protocol::Role;
use prime_roles::AgentSetId;

#[derive(Debug, Default)]
pub struct Heartbeat {
    /// Low bits: the role at work plus one, or 0. High bits: the number of batches so far.
    beat: AtomicU64,
    /// The set of the agent that worked last.
    agents: AtomicU64,
}

const ROLE_BITS: u32 = 2;
const ROLE_MASK: u64 = (1 << ROLE_BITS) - 1;

/// A reading of a [`Heartbeat`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Beat(u64);

impl Heartbeat {
    /// An agent of this role and set starts to work on a batch.
    pub fn enter(&self, role: Role, agents: AgentSetId) {
        // Load and store instead of `fetch_add`: there is one writer.
        let count = self.beat.load(Ordering::Relaxed) >> ROLE_BITS;
        self.beat.store((count + 1) << ROLE_BITS | (role as u64 + 1), Ordering::Relaxed);
        self.switch(agents);
    }

    /// The agent of another set takes over within the batch.
    pub fn switch(&self, agents: AgentSetId) {
        self.agents.store(agents, Ordering::Relaxed);
    }

    /// The set of the agent that worked last.
    pub fn agents(&self) -> AgentSetId {
        self.agents.load(Ordering::Relaxed)
    }

    /// No agent is working.
    pub fn leave(&self) {
        self.beat.store(self.beat.load(Ordering::Relaxed) & !ROLE_MASK, Ordering::Relaxed);
    }

    pub fn read(&self) -> Beat {
        Beat(self.beat.load(Ordering::Relaxed))
    }
}

impl Beat {
    /// The role that is working, if any.
    pub fn role(self) -> Option<Role> {
        Role::ALL.into_iter().find(|role| *role as u64 + 1 == self.0 & ROLE_MASK)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_batch_is_a_new_beat_with_its_role() {
        let heartbeat = Heartbeat::default();
        let mut beats = vec![heartbeat.read()];
        for role in Role::ALL {
            heartbeat.enter(role, 1);
            assert_eq!(heartbeat.read().role(), Some(role));
            beats.push(heartbeat.read());
            heartbeat.leave();
            assert_eq!(heartbeat.read().role(), None);
            beats.push(heartbeat.read());
        }

        assert!(beats.iter().enumerate().all(|(at, beat)| !beats[..at].contains(beat)));
    }
}
