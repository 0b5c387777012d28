//! The connections: a pool, driven by a thread with a runtime of its own, and retries of work that
//! a lost connection or another session interrupted.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use super::error_code::Failure;
use super::url::Target;
use prime_journal::JournalError;
use prime_retry::Backoff;

/// The pauses between attempts.
const PAUSES: Backoff = Backoff { initial: Duration::from_millis(20), max: Duration::from_secs(1) };
/// Time limit of a single attempt, without the time to connect.
const ATTEMPT_MAX: Duration = Duration::from_secs(30);
const CONNECTIONS_MAX: usize = 8;

/// Attempts of the same work.
pub(super) struct Attempts {
    started: Instant,
    patience: Duration,
    failed: u32,
}

impl Attempts {
    /// Waits for the next attempt. Returns false at once if the patience would be over by then.
    pub(super) async fn pause(&mut self) -> bool {
        let pause = PAUSES.delay(self.failed);
        if self.started.elapsed() + pause > self.patience {
            return false;
        }

        self.failed += 1;
        sleep(pause).await;
        true
    }
}

#[derive(Clone)]
pub(super) struct Session {
    pool: Pool,
    pub(super) handle: Handle,
    /// How long attempts are repeated.
    patience: Duration,
    pub(super) database: String,
}

impl Session {
    pub(super) fn new(target: &Target, handle: Handle, patience: Duration) -> Result<Self, String> {
        let config = ManagerConfig { recycling_method: RecyclingMethod::Fast };

        let connect = target.config.get_connect_timeout().copied();
        let manager = Manager::from_config(target.config.clone(), target.tls.clone(), config);
        let pool = Pool::builder(manager)
            .max_size(CONNECTIONS_MAX)
            .runtime(Runtime::Tokio1)
            .timeouts(Timeouts { wait: Some(ATTEMPT_MAX), create: connect, recycle: connect })
            .build()
            .map_err(|error| error.to_string())?;

        Ok(Self { pool, handle, patience, database: target.shown.clone() })
    }

    pub(super) async fn connection(&self) -> Result<Object, Failure> {
        Ok(self.pool.get().await?)
    }

    /// Runs one attempt with a connection. One that was interrupted does not go back to the pool.
    pub(super) async fn once<T>(
        &self,
        work: impl AsyncFnOnce(&mut Object) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        self.once_within(ATTEMPT_MAX, work).await
    }

    /// Like [`Session::once`], for work that is useless if it takes longer.
    pub(super) async fn once_within<T>(
        &self,
        max: Duration,
        work: impl AsyncFnOnce(&mut Object) -> Result<T, Failure>,
    ) -> Result<T, Failure> {
        let late = |_| Failure::Connection(format!("no answer within {max:?}"));
        let mut connection = timeout(max, self.connection()).await.map_err(late)??;

        let done =
            timeout(max, work(&mut connection)).await.unwrap_or_else(|elapsed| Err(late(elapsed)));
        if matches!(done, Err(Failure::Connection(_))) {
            drop(Object::take(connection));
        }
        done
    }

    /// Repeats `work` while what prevents it may pass, for the session's patience. Only for work
    /// that may be executed twice.
    pub(super) async fn repeat<T>(
        &self,
        mut work: impl AsyncFnMut(&mut Object) -> Result<T, Failure>,
    ) -> Result<T, JournalError> {
        let mut attempts = self.attempts();
        loop {
            match self.once(&mut work).await {
                Ok(done) => return Ok(done),
                Err(failure) if failure.is_passing() && attempts.pause().await => {}
                Err(failure) => return Err(failure.into_error(&self.database)),
            }
        }
    }

    /// Attempts that begin now, for the session's patience.
    pub(super) fn attempts(&self) -> Attempts {
        Attempts { started: Instant::now(), patience: self.patience, failed: 0 }
    }

    pub(super) fn unreachable(&self, reason: &str) -> JournalError {
        JournalError::NotWritable(format!("{}: {reason}", self.database))
    }

    /// Like [`Session::repeat`], from a thread that may block.
    pub(super) fn run<T>(
        &self,
        work: impl AsyncFnMut(&mut Object) -> Result<T, Failure>,
    ) -> Result<T, JournalError> {
        self.handle.block_on(self.repeat(work))
    }
}
