//! Runs work that computes or blocks on threads where no request waits for it.

use actix_web::web;

use super::error::ApiError;
use prime_service::runs::RunError;

/// Runs blocking work on the blocking pool, within this actix system.
pub(super) async fn in_background<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ApiError> {
    // Agents that are built there start actors, for which the thread needs to know the system.
    let system = actix::System::current();
    let done = web::block(move || {
        actix::System::set_current(system);
        work()
    });
    done.await.map_err(|_| RunError::Draining.into())
}
