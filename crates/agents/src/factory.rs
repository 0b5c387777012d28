//! Factories: agents are made as often as needed, because one whose actor dies is replaced.

use std::sync::Arc;

/// Makes agents of one kind that share their expensive parts.
pub type Factory<A> = Arc<dyn Fn() -> Arc<A> + Send + Sync>;
