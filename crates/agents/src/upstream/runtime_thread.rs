//! A dedicated thread with a Tokio runtime that other threads spawn onto. Dropping it cancels its
//! tasks.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::runtime::{Builder, Handle};
use tokio::sync::oneshot;
use tokio::task::{JoinError, JoinHandle};

pub(super) struct RuntimeThread {
    handle: Handle,
    /// Dropping it tells the thread to shut down.
    _stop: oneshot::Sender<()>,
}

impl RuntimeThread {
    /// # Errors
    /// The system is out of threads or file descriptors.
    pub fn start(name: &str) -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();

        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name(name.to_owned()).spawn(move || {
            // Nothing is ever sent: this resolves when the sender is dropped.
            drop(runtime.block_on(stopped));
            // Does not wait for a DNS lookup in progress.
            runtime.shutdown_background();
        })?;

        Ok(Self { handle, _stop: stop })
    }

    /// Spawns a task that is aborted when the returned future is dropped.
    pub fn spawn<T: Send + 'static>(
        &self,
        future: impl Future<Output = T> + Send + 'static,
    ) -> AbortOnDrop<T> {
        AbortOnDrop(self.handle.spawn(future))
    }

    /// Spawns a task that runs until the thread shuts down.
    pub fn spawn_detached(&self, future: impl Future<Output = ()> + Send + 'static) {
        drop(self.handle.spawn(future));
    }
}

/// A task that is aborted with its handle.
pub(super) struct AbortOnDrop<T>(JoinHandle<T>);

impl<T> Future for AbortOnDrop<T> {
    type Output = Result<T, JoinError>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Self::Output> {
        Pin::new(&mut self.0).poll(context)
    }
}

impl<T> Drop for AbortOnDrop<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}
