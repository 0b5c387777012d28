//! A worker slot of the pool: runs one process, gives it turns one at a time, and restarts it when
//! it exits.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use super::child::{ChildProcess, LaunchSpec};
use super::fault::ProcessFault;
use super::restart_policy::RestartPolicy;
use crate::{AgentError, Failure};
use prime_settings::Program;

/// A turn for a process.
pub(super) struct Job {
    pub id: u64,
    /// The request, newline included; empty to ask only whether the process has started.
    pub request: Vec<u8>,
    /// Receives the answer line. Closed when the turn is cancelled.
    pub reply: oneshot::Sender<Result<Vec<u8>, AgentError>>,
}

pub(super) struct Slot {
    launch: Arc<LaunchSpec>,
    timeout_ms: u64,
    start_timeout_ms: u64,
    window_ms: u64,
    jobs: mpsc::UnboundedReceiver<Job>,
    restarts: RestartPolicy,
    /// Why the last process was lost.
    last_fault: Option<ProcessFault>,
    /// Holds every process from start to termination, so that none leaks when a future is dropped.
    running: Option<ChildProcess>,
}

type Started = Result<(), ProcessFault>;

impl Slot {
    pub fn new(
        launch: Arc<LaunchSpec>,
        program: &Program,
        jobs: mpsc::UnboundedReceiver<Job>,
    ) -> Self {
        let window = Duration::from_millis(program.restart_window_ms);
        Self {
            launch,
            timeout_ms: program.timeout_ms,
            start_timeout_ms: program.start_timeout_ms,
            window_ms: program.restart_window_ms,
            jobs,
            restarts: RestartPolicy::new(program.restarts_max, window),
            last_fault: None,
            running: None,
        }
    }

    /// Serves turns until the pool is dropped, which drops the sender of `stop`.
    pub async fn run(mut self, mut stop: watch::Receiver<()>) {
        tokio::select! {
            biased;
            _ = stop.changed() => {}
            () = self.serve() => {}
        }

        if let Some(running) = self.running.take() {
            running.shut_down().await;
        }
    }

    async fn serve(&mut self) {
        // Started before the first turn, which then need not wait for it.
        let mut started = self.start().await;
        while let Some(job) = self.next(&mut started).await {
            // Cancelled while queued.
            if job.reply.is_closed() {
                continue;
            }

            // A job that only asks is told why the process did not start, without another try.
            if started.is_err() && !job.request.is_empty() {
                started = self.start().await;
            }
            match &started {
                Ok(()) if job.request.is_empty() => drop(job.reply.send(Ok(Vec::new()))),
                Ok(()) => started = self.turn(job).await,
                // A cancelled turn needs no error.
                Err(fault) => drop(job.reply.send(Err(fault.clone().error(&self.launch.agent)))),
            }
        }
    }

    /// Waits for the next turn; a process that exits or writes while idle is replaced.
    async fn next(&mut self, started: &mut Started) -> Option<Job> {
        loop {
            let Some(running) = self.running.as_mut() else { return self.jobs.recv().await };
            let fault = tokio::select! {
                biased;
                fault = running.unsolicited() => fault,
                job = self.jobs.recv() => return job,
            };

            self.terminate(fault).await;
            *started = self.start().await;
        }
    }

    /// Starts a process, with backoff if it is a restart.
    async fn start(&mut self) -> Started {
        let wait = self.restarts.delay(Instant::now()).map_err(|rest| self.exhausted(rest))?;
        sleep(wait).await;
        let result = self.launch().await;

        if let Err(fault) = &result {
            tracing::warn!(agent = &*self.launch.agent, "cannot start a process: {}", fault.reason);
        }
        result
    }

    async fn launch(&mut self) -> Started {
        let running = self.running.insert(ChildProcess::start(&self.launch)?);
        let handshake = running.handshake(&self.launch);
        let answered = timeout(Duration::from_millis(self.start_timeout_ms), handshake).await;
        let late = |_| {
            let ms = self.start_timeout_ms;
            let reason = format!(
                "it did not answer the handshake within {ms} ms; raise `start_timeout_ms` if it \
                 needs longer"
            );
            Err(ProcessFault::new(Failure::Timeout, reason))
        };

        match answered.unwrap_or_else(late) {
            Ok(()) => Ok(()),
            Err(fault) => Err(self.terminate(fault).await),
        }
    }

    /// Gives a turn to the running process.
    async fn turn(&mut self, mut job: Job) -> Started {
        let running = self.running.as_mut().expect("invariant: a turn needs a running process");
        let exchange =
            timeout(Duration::from_millis(self.timeout_ms), running.exchange(job.id, &job.request));

        let answered = tokio::select! {
            biased;
            () = job.reply.closed() => None,
            answered = exchange => Some(answered),
        };

        let late = |_| {
            let ms = self.timeout_ms;
            let reason = format!(
                "it did not answer within {ms} ms and was killed; raise `timeout_ms` if it needs \
                 longer"
            );
            Err(ProcessFault::new(Failure::Timeout, reason))
        };

        // A cancelled turn needs no answer.
        match answered.map(|answered| answered.unwrap_or_else(late)) {
            Some(Ok(line)) => {
                drop(job.reply.send(Ok(line)));
                return Ok(());
            }
            Some(Err(fault)) => {
                let fault = self.terminate(fault).await;
                drop(job.reply.send(Err(fault.error(&self.launch.agent))));
            }
            // Killed, because its late answer would be taken for another turn's. Not counted as a
            // fault.
            None => {
                running.kill().await;
                self.running = None;
            }
        }
        self.start().await
    }

    /// Terminates the process after a fault; returns the fault with the exit status.
    async fn terminate(&mut self, fault: ProcessFault) -> ProcessFault {
        self.restarts.record(Instant::now());
        let Some(running) = &mut self.running else { return fault };
        let fault = running.terminate(fault).await;
        self.running = None;

        tracing::warn!(agent = &*self.launch.agent, "lost a process: {}", fault.reason);
        self.last_fault = Some(fault.clone());
        fault
    }

    fn exhausted(&self, rest: Duration) -> ProcessFault {
        let (failure, last) = match &self.last_fault {
            Some(fault) => (fault.failure, fault.reason.as_str()),
            None => (Failure::Died, "unknown"),
        };

        let (window, rest) = (self.window_ms, rest.as_millis());
        let reason = format!(
            "it failed more than `restarts_max` times within {window} ms and is not restarted for \
             {rest} ms; last failure: {last}"
        );
        ProcessFault::new(failure, reason)
    }
}
