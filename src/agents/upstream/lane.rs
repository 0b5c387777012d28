//! A thread with a runtime of its own, in which others have work done. Ends when it is dropped, and all its work with it.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};

/// See the module.
pub(super) struct Lane {
    handle: Handle,
    /// Dropping it tells the thread to end.
    _stop: oneshot::Sender<()>,
}

impl Lane {
    /// # Errors
    /// When the system has no thread or no descriptors left.
    pub fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Nothing is ever sent: this ends when the other side is dropped.
            drop(runtime.block_on(stopped));
            // A name that is being resolved is not waited for.
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, _stop: stop })
    }

    /// Does work there. Dropping what is returned ends the work.
    pub fn run<T: Send + 'static>(&self, work: impl Future<Output = T> + Send + 'static) -> Errand<T> {
        Errand(self.handle.spawn(work))
    }

    /// Has work done there until the thread ends.
    pub fn keep(&self, work: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(work));
    }
}

/// Work that is done in a lane.
pub(super) struct Errand<T>(JoinHandle<T>);

impl<T> Future for Errand<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for Errand<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
