//! Noticing that an agent's actor has died, and how often that may happen.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::time::Duration;

use actix::Addr;
use tokio::time::Instant;

use super::messages::Died;
use super::supervisor::Supervisor;
use prime_protocol::Role;

/// A field of every agent's actor: tells the Supervisor when the actor is dropped, whatever the cause.
pub struct Watch {
    pub home: Addr<Supervisor>,
    pub role: Role,
    pub generation: u32,
    reason: Rc<RefCell<String>>,
}

impl Watch {
    pub fn new(home: Addr<Supervisor>, role: Role, generation: u32) -> Self {
        Self { home, role, generation, reason: Rc::default() }
    }

    /// Notes why the actor is about to die.
    pub fn note(&self, reason: String) {
        *self.reason.borrow_mut() = reason;
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        let reason = self.reason.take();
        self.home.do_send(Died { role: self.role, generation: self.generation, reason });
    }
}

/// How many restarts of one agent are tolerated within a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RestartLimit {
    pub restarts_max: u32,
    pub window: Duration,
}

/// The recent restarts of one agent.
#[derive(Debug, Default)]
pub struct RestartLog(VecDeque<Instant>);

impl RestartLog {
    /// Records a restart at `now`; false when there were too many within the window.
    pub fn allows(&mut self, limit: RestartLimit, now: Instant) -> bool {
        while self.0.front().is_some_and(|first| now.duration_since(*first) >= limit.window) {
            self.0.pop_front();
        }
        if self.0.len() >= limit.restarts_max as usize {
            return false;
        }
        self.0.push_back(now);
        true
    }
}

/// The text of a panic.
pub fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned()).unwrap_or_else(|| "panic without a message".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn restarts_are_counted_within_the_window_only() {
        let limit = RestartLimit { restarts_max: 2, window: Duration::from_secs(10) };
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let mut log = RestartLog::default();
        assert!(log.allows(limit, at(0)) && log.allows(limit, at(5)));
        assert!(!log.allows(limit, at(9)), "a third within ten seconds");
        assert!(log.allows(limit, at(10)), "the first is ten seconds old");
    }
}
