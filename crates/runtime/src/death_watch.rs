//! Reports the death of an agent's actor to its Supervisor.

use std::any::Any;
use std::cell::RefCell;
use std::rc::Rc;

use actix::Recipient;

use super::messages::Died;
use prime_protocol::Role;
use prime_roles::AgentSetId;

/// A field of every agent's actor: sends [`Died`] when the actor is dropped, for whatever reason.
pub struct DeathWatch {
    supervisor: Recipient<Died>,
    role: Role,
    generation: u32,
    /// The set of the agent at work, and what happened.
    reason: Rc<RefCell<(Option<AgentSetId>, String)>>,
}

impl DeathWatch {
    pub fn new(supervisor: Recipient<Died>, role: Role, generation: u32) -> Self {
        Self { supervisor, role, generation, reason: Rc::default() }
    }

    /// Sets the reason that the message will carry, with the set of the agent at work.
    pub fn set_reason(&self, agents: AgentSetId, reason: String) {
        *self.reason.borrow_mut() = (Some(agents), reason);
    }
}

impl Drop for DeathWatch {
    fn drop(&mut self) {
        let (agents, reason) = self.reason.take();
        self.supervisor.do_send(Died {
            role: self.role,
            generation: self.generation,
            agents,
            reason,
        });
    }
}

/// The message of a panic.
// The two payloads of `panic!`: a literal, and a formatted message.
pub fn panic_text(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<&str>().map(|text| (*text).to_owned());
    text.or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panic without a message".to_owned())
}
