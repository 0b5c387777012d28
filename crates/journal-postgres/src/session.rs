//! The connections: a pool, driven by a thread with a runtime of its own, and retries of work that
//! a lost connection interrupted.

use std::time::Duration;

use deadpool_postgres::{Manager, ManagerConfig, Object, Pool, RecyclingMethod, Runtime, Timeouts};
use tokio::runtime::Handle;
use tokio::time::{Instant, sleep, timeout};

use super::error_code::Failure;
use super::url::Target;
use prime_journal::JournalError;

/// The first pause between attempts, and the longest.
const PAUSE_MIN: Duration = Duration::from_millis(20);
const PAUSE_MAX: Duration = Duration::from_secs(1);
/// Time limit of a single attempt, without the time to connect.
const ATTEMPT_MAX: Duration = Duration::from_secs(30);
const CONNECTIONS_MAX: usize = 8;

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

    /// Repeats `work` while the server cannot be reached, for the session's patience. Only for work
    /// that may be executed twice.
    pub(super) async fn repeat<T>(
        &self,
        mut work: impl AsyncFnMut(&mut Object) -> Result<T, Failure>,
    ) -> Result<T, JournalError> {
        let started = Instant::now();
        let mut pause = PAUSE_MIN;
        loop {
            match self.once(&mut work).await {
                Ok(done) => return Ok(done),
                Err(Failure::Connection(_)) if started.elapsed() + pause <= self.patience => {}
                Err(failure) => return Err(failure.into_error(&self.database)),
            }
            sleep(pause).await;
            pause = (pause * 2).min(PAUSE_MAX);
        }
    }

    pub(super) fn patience(&self) -> Duration {
        self.patience
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
