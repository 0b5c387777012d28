//! Threads that compute the answers of modules. Several modules can share them: each is served in
//! turn, so that one with many requests, or slow ones, does not hold up the others.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use futures::channel::oneshot;

use super::module::Fault;

type Answer = Result<Vec<u8>, Fault>;

/// An answer to compute.
pub(super) struct Job {
    compute: Box<dyn FnOnce() -> Answer + Send>,
    reply: oneshot::Sender<Answer>,
}

impl Job {
    /// A job, and where its answer arrives. Nothing arrives if it is dropped.
    pub fn new(
        compute: impl FnOnce() -> Answer + Send + 'static,
    ) -> (Self, oneshot::Receiver<Answer>) {
        let (reply, answered) = oneshot::channel();
        (Self { compute: Box::new(compute), reply }, answered)
    }

    fn run(self) {
        // Nobody waits for the answer to a turn that was cancelled.
        if !self.reply.is_canceled() {
            drop(self.reply.send((self.compute)()));
        }
    }
}

#[derive(Default)]
struct Queues {
    /// The modules that have jobs, in the order in which they are served.
    turns: VecDeque<u64>,
    jobs: HashMap<u64, VecDeque<Job>>,
    is_over: bool,
}

impl Queues {
    fn add(&mut self, module: u64, job: Job) {
        let jobs = self.jobs.entry(module).or_default();
        if jobs.is_empty() {
            self.turns.push_back(module);
        }
        jobs.push_back(job);
    }

    fn next(&mut self) -> Option<Job> {
        let module = self.turns.pop_front()?;
        let jobs = self.jobs.get_mut(&module)?;
        let job = jobs.pop_front();
        if jobs.is_empty() {
            self.jobs.remove(&module);
        } else {
            self.turns.push_back(module);
        }
        job
    }
}

#[derive(Default)]
struct Shared {
    queues: Mutex<Queues>,
    changed: Condvar,
}

impl Shared {
    fn queues(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes answers until the workers are dropped.
    fn work(&self) {
        loop {
            let is_waiting = |queues: &mut Queues| queues.turns.is_empty() && !queues.is_over;
            let mut queues = self
                .changed
                .wait_while(self.queues(), is_waiting)
                .unwrap_or_else(PoisonError::into_inner);
            if queues.is_over {
                return;
            }
            let job = queues.next();
            // Unlocked before the answer is computed: the other threads wait for the next job.
            drop(queues);
            job.into_iter().for_each(Job::run);
        }
    }
}

/// Threads that end when this is dropped; jobs that are left are dropped, too.
pub(super) struct Workers {
    shared: Arc<Shared>,
    modules: AtomicU64,
    threads: u32,
}

impl Workers {
    /// Starts threads. One that cannot be started is left out: jobs fail if there is none.
    pub fn start(name: &str, threads: u32) -> Self {
        let shared = Arc::new(Shared::default());
        let mut started = 0;
        for _ in 0..threads.max(1) {
            let working = Arc::clone(&shared);
            let thread = thread::Builder::new().name(format!("{name}-module"));
            match thread.spawn(move || working.work()) {
                Ok(_) => started += 1,
                Err(error) => tracing::warn!(name, %error, "no further thread for a task's module"),
            }
        }
        if started == 0 {
            shared.queues().is_over = true;
        }
        Self { shared, modules: AtomicU64::new(0), threads }
    }

    /// The number of threads that was asked for.
    pub fn threads(&self) -> u32 {
        self.threads
    }

    /// A number for a module.
    pub fn next_number(&self) -> u64 {
        self.modules.fetch_add(1, Ordering::Relaxed)
    }

    pub fn add(&self, module: u64, job: Job) {
        let mut queues = self.shared.queues();
        if !queues.is_over {
            queues.add(module, job);
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let mut queues = self.shared.queues();
        queues.is_over = true;
        (queues.turns, queues.jobs) = Default::default();
        drop(queues);
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn modules_are_served_in_turn() {
        let mut queues = Queues::default();
        let mut answers = Vec::new();
        for (module, name) in [(1, "a1"), (1, "a2"), (1, "a3"), (2, "b1"), (3, "c1"), (2, "b2")] {
            let (job, answered) = Job::new(move || Ok(name.into()));
            queues.add(module, job);
            answers.push(answered);
        }

        let mut order = Vec::new();
        while let Some(job) = queues.next() {
            order.push(String::from_utf8((job.compute)().expect("an answer")).expect("text"));
        }
        assert_eq!(order, ["a1", "b1", "c1", "a2", "b2", "a3"]);
        assert!(queues.jobs.is_empty());
    }

    #[test]
    fn what_is_left_when_the_workers_end_is_not_answered() {
        let workers = Workers::start("m", 1);
        let (started, is_started) = std::sync::mpsc::channel();
        let (end, is_to_end) = std::sync::mpsc::channel::<()>();
        let (first, answered) = Job::new(move || {
            started.send(()).expect("somebody waits");
            let _ = is_to_end.recv();
            Ok(Vec::new())
        });
        let (second, never) = Job::new(|| Ok(Vec::new()));
        workers.add(0, first);
        is_started.recv().expect("it begins");
        workers.add(0, second);
        drop(workers);
        assert!(futures::executor::block_on(never).is_err());
        drop(end);
        assert!(futures::executor::block_on(answered).expect("what began ends").is_ok());
    }
}
