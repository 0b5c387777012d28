//! Threads that judge, and the queue before them. It is bounded and refuses; owners take turns, and
//! no owner may fill it. Work that nobody waits for any more leaves the queue, or is told to stop.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};

use tokio::sync::oneshot;

use prime_agent_set::FairQueue;

/// Most requests that wait, in total and per owner. Each holds its body.
const QUEUE_MAX: usize = 64;
const OWNER_QUEUE_MAX: usize = 32;
/// Cores per thread that computes. Few threads, because runs come first.
const CORES_PER_THREAD: usize = 4;
/// Threads that wait, and how many of them one owner may occupy.
const WAITING_THREADS: usize = 8;
const OWNER_WAITING_MAX: usize = 2;

/// Too many requests wait already.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueFull;

/// Becomes true when nobody waits for a result any more.
#[derive(Clone, Default)]
pub struct Abandoned(Arc<AtomicBool>);

impl Abandoned {
    pub fn is_so(&self) -> bool {
        self.0.load(Ordering::Acquire)
    }
}

struct Job {
    abandoned: Abandoned,
    work: Box<dyn FnOnce() + Send>,
}

struct Queue {
    jobs: FairQueue<(), Job>,
    is_closed: bool,
}

impl Queue {
    fn push(&mut self, owner: &str, job: Job) -> Result<(), QueueFull> {
        let jobs = &mut self.jobs;
        if jobs.waiting() >= QUEUE_MAX || jobs.waiting_of(owner) >= OWNER_QUEUE_MAX {
            return Err(QueueFull);
        }
        jobs.push(&Arc::from(owner), (), job);
        Ok(())
    }

    fn remove_abandoned(&mut self) {
        self.jobs.retain(|job| !job.abandoned.is_so());
    }
}

struct Shared {
    queue: Mutex<Queue>,
    changed: Condvar,
}

impl Shared {
    fn queue(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Works until the pool is closed.
    fn work(&self) {
        let mut queue = self.queue();
        loop {
            let is_waiting = |queue: &mut Queue| !queue.jobs.is_ready() && !queue.is_closed;
            queue =
                self.changed.wait_while(queue, is_waiting).unwrap_or_else(PoisonError::into_inner);
            if queue.is_closed {
                return;
            }

            let Some((owner, job)) = queue.jobs.take() else { continue };
            drop(queue);
            (job.work)();
            queue = self.queue();
            queue.jobs.done(&owner);
        }
    }
}

/// The threads. They end when it is dropped.
pub struct Pool(Arc<Shared>);

impl Pool {
    /// Threads that compute: one for every four cores.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn computing() -> std::io::Result<Self> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        let count = cores.div_ceil(CORES_PER_THREAD);
        Self::with_threads(count, count)
    }

    /// Threads that mostly wait for programs and modules. An owner whose programs hang leaves most
    /// of them to the others.
    ///
    /// # Errors
    /// When one cannot be started.
    pub fn waiting() -> std::io::Result<Self> {
        Self::with_threads(WAITING_THREADS, OWNER_WAITING_MAX)
    }

    fn with_threads(count: usize, owner_max: usize) -> std::io::Result<Self> {
        let queue = Queue { jobs: FairQueue::new(owner_max), is_closed: false };
        let pool = Self(Arc::new(Shared { queue: Mutex::new(queue), changed: Condvar::new() }));
        for _ in 0..count {
            let shared = Arc::clone(&pool.0);
            let run = move || shared.work();
            std::thread::Builder::new().name("verify".to_owned()).spawn(run)?;
        }
        Ok(pool)
    }

    /// Has a thread do work for an owner. Dropping the ticket abandons the work.
    ///
    /// # Errors
    /// When too many wait.
    pub fn submit<T: Send + 'static>(
        &self,
        owner: &str,
        work: impl FnOnce(&Abandoned) -> T + Send + 'static,
    ) -> Result<Ticket<T>, QueueFull> {
        let (reply, result) = oneshot::channel();
        let abandoned = Abandoned::default();

        let flag = abandoned.clone();
        let work = Box::new(move || {
            // A panic is the ticket's error, not the thread's end.
            let result = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| work(&flag)));
            drop(result.map(|result| reply.send(result)));
        });

        self.0.queue().push(owner, Job { abandoned: abandoned.clone(), work })?;

        self.0.changed.notify_one();
        Ok(Ticket { result, _waiter: Waiter { abandoned, shared: Arc::clone(&self.0) } })
    }
}

impl Drop for Pool {
    fn drop(&mut self) {
        self.0.queue().is_closed = true;
        self.0.changed.notify_all();
    }
}

/// Waits for a result.
pub struct Ticket<T> {
    result: oneshot::Receiver<T>,
    _waiter: Waiter,
}

impl<T> Ticket<T> {
    /// The result; `None` if the work panicked or the pool was closed.
    pub async fn result(mut self) -> Option<T> {
        (&mut self.result).await.ok()
    }
}

/// Abandons the work when dropped.
struct Waiter {
    abandoned: Abandoned,
    shared: Arc<Shared>,
}

impl Drop for Waiter {
    fn drop(&mut self) {
        self.abandoned.0.store(true, Ordering::Release);
        self.shared.queue().remove_abandoned();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;

    /// A pool whose one thread is held until the sender is dropped.
    fn held() -> (Pool, std::sync::mpsc::Sender<()>, Ticket<()>) {
        let pool = Pool::with_threads(1, 1).unwrap();
        let (begun, begins) = channel();
        let (hold, released) = channel::<()>();

        let ticket = pool
            .submit("holder", move |_| {
                begun.send(()).unwrap();
                released.recv().unwrap_or_default();
            })
            .unwrap();

        begins.recv().unwrap();
        (pool, hold, ticket)
    }

    #[actix_web::test]
    async fn owners_take_turns() {
        let (pool, hold, held) = held();
        let (tell, told) = channel();
        let submit = |owner: &'static str| {
            let tell = tell.clone();
            pool.submit(owner, move |_| tell.send(owner).unwrap()).unwrap()
        };

        let tickets = ["ada", "ada", "ada", "bob", "cy", "bob"].map(submit);

        drop(hold);
        held.result().await.unwrap();
        for ticket in tickets {
            ticket.result().await.unwrap();
        }

        assert_eq!(told.try_iter().collect::<Vec<_>>(), ["ada", "bob", "cy", "ada", "bob", "ada"]);
    }

    #[actix_web::test]
    async fn an_owner_whose_work_never_ends_leaves_a_thread_to_the_others() {
        let pool = Pool::with_threads(3, 2).unwrap();
        let (begun, begins) = channel();
        let mut held = Vec::new();
        for _ in 0..4 {
            let begun = begun.clone();
            let (hold, released) = channel::<()>();
            let work = move |_: &Abandoned| {
                begun.send(()).unwrap_or_default();
                released.recv().unwrap_or_default();
            };
            held.push((hold, pool.submit("ada", work).unwrap()));
        }
        begins.recv().unwrap();
        begins.recv().unwrap();

        assert_eq!(pool.submit("bob", |_| 1).unwrap().result().await, Some(1));
        assert_eq!(pool.submit("bob", |_| 2).unwrap().result().await, Some(2));
        assert!(begins.try_recv().is_err(), "two are an owner's share");
    }

    #[actix_web::test]
    async fn the_queue_refuses_and_no_owner_fills_it() {
        let (pool, _hold, _held) = held();
        let submit = |owner: &str| pool.submit(owner, |_| ());

        let mut of_ada: Vec<_> = (0..OWNER_QUEUE_MAX).map(|_| submit("ada").unwrap()).collect();
        assert!(submit("ada").is_err());

        let of_bob: Vec<_> = (OWNER_QUEUE_MAX..QUEUE_MAX).map(|_| submit("bob").unwrap()).collect();
        assert!(submit("cy").is_err());

        of_ada.pop();
        assert!(submit("cy").is_ok(), "what nobody waits for has left the queue");
        drop(of_bob);
    }

    #[actix_web::test]
    async fn work_is_told_that_nobody_waits_for_it() {
        let pool = Pool::with_threads(1, 1).unwrap();
        let (begun, begins) = channel();
        let (ended, ends) = channel();

        let ticket = pool.submit("ada", move |abandoned| {
            begun.send(()).unwrap();
            while !abandoned.is_so() {
                std::thread::yield_now();
            }
            ended.send(()).unwrap();
        });

        begins.recv().unwrap();
        drop(ticket);
        ends.recv().unwrap();
    }

    #[actix_web::test]
    async fn a_panic_ends_no_thread() {
        let pool = Pool::with_threads(1, 1).unwrap();

        let panics = pool.submit("ada", |_| panic!("broken")).unwrap();
        assert_eq!(panics.result().await, None::<()>);
        assert_eq!(pool.submit("ada", |_| 7).unwrap().result().await, Some(7));
    }
}
