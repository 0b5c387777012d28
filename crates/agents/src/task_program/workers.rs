//! Threads that compute the answers of modules. Several modules can share them. Owners are served
//! in turn, and so are the modules, so that many or slow requests hold up no others.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;

use futures::channel::oneshot;

use super::module::Fault;
use crate::FairQueue;

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
        // A cancelled turn does not wait for its answer.
        if !self.reply.is_canceled() {
            drop(self.reply.send((self.compute)()));
        }
    }
}

struct Queue {
    /// Within an owner, modules take turns.
    jobs: FairQueue<u64, Job>,
    is_over: bool,
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Computes answers until the workers are dropped.
    fn work(&self) {
        let mut queue = self.queue();
        loop {
            let is_waiting = |queue: &mut Queue| !queue.jobs.is_ready() && !queue.is_over;
            queue =
                self.changed.wait_while(queue, is_waiting).unwrap_or_else(PoisonError::into_inner);
            if queue.is_over {
                return;
            }

            let Some((owner, job)) = queue.jobs.take() else { continue };
            // Unlocked while the answer is computed: the other threads wait for the next job.
            drop(queue);
            job.run();
            queue = self.queue();
            queue.jobs.done(&owner);
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
    /// Starts threads, of which one owner may occupy `share_max` at once. One that cannot be started
    /// is left out: jobs fail if there is none.
    pub fn start(name: &str, threads: u32, share_max: u32) -> Self {
        let queue = Queue { jobs: FairQueue::new(share_max as usize), is_over: false };
        let shared = Arc::new(Shared { queue: Mutex::new(queue), changed: Condvar::new() });
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
            shared.queue().is_over = true;
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

    /// Adds a job of this owner.
    pub fn add(&self, owner: &Arc<str>, module: u64, job: Job) {
        let mut queue = self.shared.queue();
        if !queue.is_over {
            queue.jobs.push(owner, module, job);
            self.shared.changed.notify_one();
        }
    }
}

impl Drop for Workers {
    fn drop(&mut self) {
        let mut queue = self.shared.queue();
        queue.is_over = true;
        queue.jobs.retain(|_| false);
        drop(queue);
        self.shared.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_owner_whose_jobs_never_end_leaves_a_thread_to_the_others() {
        let workers = Workers::start("m", 2, 1);
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        let (started, is_started) = std::sync::mpsc::channel();
        let mut held = Vec::new();
        for module in 0..3 {
            let started = started.clone();
            let (end, is_to_end) = std::sync::mpsc::channel::<()>();
            let (job, answered) = Job::new(move || {
                let _ = started.send(());
                let _ = is_to_end.recv();
                Ok(Vec::new())
            });
            held.push((end, answered));
            workers.add(&ada, module, job);
        }
        is_started.recv().expect("it begins");
        for module in 0..3 {
            let (job, answered) = Job::new(|| Ok(b"bob".to_vec()));
            workers.add(&bob, module, job);
            let answer = futures::executor::block_on(answered).expect("a thread is left");
            assert_eq!(answer.expect("an answer"), b"bob");
        }
    }

    #[test]
    fn what_is_left_when_the_workers_end_is_not_answered() {
        let workers = Workers::start("m", 1, 1);
        let nobody: Arc<str> = "".into();
        let (started, is_started) = std::sync::mpsc::channel();
        let (end, is_to_end) = std::sync::mpsc::channel::<()>();
        let (first, answered) = Job::new(move || {
            started.send(()).expect("somebody waits");
            let _ = is_to_end.recv();
            Ok(Vec::new())
        });
        let (second, never) = Job::new(|| Ok(Vec::new()));
        workers.add(&nobody, 0, first);
        is_started.recv().expect("it begins");
        workers.add(&nobody, 0, second);
        drop(workers);
        assert!(futures::executor::block_on(never).is_err());
        drop(end);
        assert!(futures::executor::block_on(answered).expect("what began ends").is_ok());
    }
}
