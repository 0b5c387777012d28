//! What an agent returns for a turn: the reply itself, or a future of it.

use std::future::{Future, Ready, ready};
use std::pin::Pin;
use std::task::{Context, Poll};

use futures::future::BoxFuture;

use super::AgentError;

/// An agent's reply to one turn.
///
/// `Now` allocates nothing. `Later` is lazy: it does nothing before it is first polled, so a caller
/// that cannot keep it may drop it and ask again.
pub enum AgentReply<'a, T> {
    /// A reply that is already there.
    Now(Ready<Result<T, AgentError>>),
    /// A reply that the caller must poll for.
    Later(BoxFuture<'a, Result<T, AgentError>>),
}

impl<T> AgentReply<'_, T> {
    /// A reply that is already there.
    pub fn now(result: Result<T, AgentError>) -> Self {
        Self::Now(ready(result))
    }
}

impl<T> Future for AgentReply<'_, T> {
    type Output = Result<T, AgentError>;

    fn poll(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        match self.get_mut() {
            Self::Now(result) => Pin::new(result).poll(context),
            Self::Later(future) => future.as_mut().poll(context),
        }
    }
}
