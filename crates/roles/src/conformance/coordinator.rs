//! Rules of coordinators: every decision is valid.

use std::sync::Arc;

use async_trait::async_trait;

use super::finding::Findings;
use super::turns::Turn;
use super::{Requirements, drive};
use crate::{AgentError, Coordinator, Ruling};
use prime_protocol::Role;

pub(super) struct Subject(pub Arc<dyn Coordinator>);

#[async_trait]
impl drive::Subject for Subject {
    const ROLE: Role = Role::Coordinator;
    type Answer = Ruling;

    async fn turn(&self, turn: &Turn) -> Result<Ruling, AgentError> {
        self.0.decide(&turn.trajectory, &turn.line, &turn.verdict).await
    }

    fn check(_: &Turn, _: &Ruling, _: &Requirements, _: &mut Findings) {}
}
