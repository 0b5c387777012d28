//! One place of a pool: keeps a process in it, gives it turns one after another, and starts another when one ended.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{mpsc, oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use super::child::{Launch, Running};
use super::fault::Fault;
use super::restarts::Restarts;
use crate::agents::{AgentError, Failure};
use crate::settings::Program;

/// A turn for a process.
pub(super) struct Job {
    pub id: u64,
    /// The request, with the end of its line.
    pub request: Vec<u8>,
    /// Gets the line that answers it. Closed when the turn is given up.
    pub reply: oneshot::Sender<Result<Vec<u8>, AgentError>>,
}

pub(super) struct Slot {
    launch: Arc<Launch>,
    timeout_ms: u64,
    start_timeout_ms: u64,
    window_ms: u64,
    jobs: mpsc::UnboundedReceiver<Job>,
    restarts: Restarts,
    /// What the last process ended of.
    last: Option<Fault>,
    /// Every process is here from its start to its end, so that none is forgotten, wherever the work is interrupted.
    running: Option<Running>,
}

type Started = Result<(), Fault>;

impl Slot {
    pub fn new(launch: Arc<Launch>, program: &Program, jobs: mpsc::UnboundedReceiver<Job>) -> Self {
        let window = Duration::from_millis(program.restart_window_ms);
        Self {
            launch,
            timeout_ms: program.timeout_ms,
            start_timeout_ms: program.start_timeout_ms,
            window_ms: program.restart_window_ms,
            jobs,
            restarts: Restarts::new(program.restarts_max, window),
            last: None,
            running: None,
        }
    }

    /// Serves turns until the pool is dropped, which drops what `stop` listens to.
    pub async fn run(mut self, mut stop: watch::Receiver<()>) {
        tokio::select! {
            biased;
            _ = stop.changed() => {}
            () = self.serve() => {}
        }
        if let Some(running) = self.running.take() {
            running.finish().await;
        }
    }

    async fn serve(&mut self) {
        let mut started = self.start().await;
        while let Some(job) = self.next(&mut started).await {
            // A turn that was given up while it waited here costs nothing.
            if job.reply.is_closed() {
                continue;
            }
            if started.is_err() {
                started = self.start().await;
            }
            match &started {
                Ok(()) => started = self.turn(job).await,
                // Who gave up the turn needs no error.
                Err(fault) => drop(job.reply.send(Err(fault.clone().error(&self.launch.agent)))),
            }
        }
    }

    /// The next turn; until it comes, the process is replaced if it ends or speaks unasked.
    async fn next(&mut self, started: &mut Started) -> Option<Job> {
        loop {
            let Some(running) = self.running.as_mut() else { return self.jobs.recv().await };
            let fault = tokio::select! {
                biased;
                fault = running.unasked() => fault,
                job = self.jobs.recv() => return job,
            };
            self.end(fault).await;
            *started = self.start().await;
        }
    }

    /// Starts a process, after a wait where it is a restart.
    async fn start(&mut self) -> Started {
        let wait = self.restarts.wait(Instant::now()).map_err(|rest| self.exhausted(rest))?;
        sleep(wait).await;
        let result = self.launch().await;
        if let Err(fault) = &result {
            tracing::warn!(agent = &*self.launch.agent, "no process could be started: {}", fault.reason);
        }
        result
    }

    async fn launch(&mut self) -> Started {
        let running = self.running.insert(Running::start(&self.launch)?);
        let greeting = running.greet(&self.launch.hello);
        let greeted = timeout(Duration::from_millis(self.start_timeout_ms), greeting).await;
        let late = |_| {
            let ms = self.start_timeout_ms;
            let reason = format!("it did not answer the greeting within {ms} ms; raise `start_timeout_ms` if it must");
            Err(Fault::new(Failure::Timeout, reason))
        };
        match greeted.unwrap_or_else(late) {
            Ok(()) => Ok(()),
            Err(fault) => Err(self.end(fault).await),
        }
    }

    /// Gives a turn to the process, which is there and greeted.
    async fn turn(&mut self, mut job: Job) -> Started {
        let running = self.running.as_mut().expect("invariant: a turn comes to a process that was started");
        let exchange = timeout(Duration::from_millis(self.timeout_ms), running.exchange(job.id, &job.request));
        let answered = tokio::select! {
            biased;
            () = job.reply.closed() => None,
            answered = exchange => Some(answered),
        };
        let late = |_| {
            let ms = self.timeout_ms;
            let reason = format!("it gave no answer within {ms} ms and was killed; raise `timeout_ms` if it must");
            Err(Fault::new(Failure::Timeout, reason))
        };
        // Who gave up the turn meanwhile needs no answer.
        match answered.map(|answered| answered.unwrap_or_else(late)) {
            Some(Ok(line)) => {
                drop(job.reply.send(Ok(line)));
                return Ok(());
            }
            Some(Err(fault)) => {
                let fault = self.end(fault).await;
                drop(job.reply.send(Err(fault.error(&self.launch.agent))));
            }
            // Its answer would come later, and be taken for that of another turn. This is not its fault.
            None => {
                running.kill().await;
                self.running = None;
            }
        }
        self.start().await
    }

    /// Ends the process after a fault; returns the fault with what the end of the process says.
    async fn end(&mut self, fault: Fault) -> Fault {
        self.restarts.note(Instant::now());
        let Some(running) = &mut self.running else { return fault };
        let fault = running.end(fault).await;
        self.running = None;
        tracing::warn!(agent = &*self.launch.agent, "a process was lost: {}", fault.reason);
        self.last = Some(fault.clone());
        fault
    }

    fn exhausted(&self, rest: Duration) -> Fault {
        let (failure, last) = match &self.last {
            Some(fault) => (fault.failure, fault.reason.as_str()),
            None => (Failure::Died, "unknown"),
        };
        let (window, rest) = (self.window_ms, rest.as_millis());
        let reason = format!(
            "it failed more often than `restarts_max` within {window} ms and is not started for {rest} ms; the last \
             time: {last}"
        );
        Fault::new(failure, reason)
    }
}
