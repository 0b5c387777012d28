//! Requests to stop: Ctrl-C (SIGINT), and SIGTERM, which `timeout`, CI and Slurm send. Both end a
//! command in the same way: what is done is kept and shown.

use std::future::pending;
use std::io::{self, BufRead, Read};
use std::process::exit;
use std::sync::atomic::{AtomicU8, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

use anyhow::Context as _;
use tokio::runtime::Builder;
use tokio::signal::unix::SignalKind;
use tokio::sync::watch;

use super::output::write_note;
use prime_daemon::stop_signals::{StopSignal, handle_file_size_signal};

/// Which signal asked the command to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stop {
    Interrupt,
    Terminate,
}

impl Stop {
    /// 128 plus the signal's number, as shells report it.
    pub fn exit_code(self) -> u8 {
        match self {
            Self::Interrupt => 130,
            Self::Terminate => 143,
        }
    }

    fn from_exit_code(code: u8) -> Option<Self> {
        [Self::Interrupt, Self::Terminate].into_iter().find(|stop| stop.exit_code() == code)
    }
}

/// A request to stop; number 0 stands for none yet.
#[derive(Clone, Copy)]
struct Request {
    number: u64,
    stop: Stop,
}

/// The last request since the command first listened.
static LAST: Mutex<Option<watch::Receiver<Request>>> = Mutex::new(None);

/// The number of the last request that a part of the command acted upon.
static HANDLED: AtomicU64 = AtomicU64::new(0);

/// The requests to stop that no part of the command has acted upon yet. One that arrives between
/// two listeners is the second one's, because the signals' default action is gone by then.
pub struct Stops {
    last: watch::Receiver<Request>,
    handled: u64,
}

impl Stops {
    /// A signal that was ignored at the start stays ignored. A file that reaches a limit on sizes
    /// is an error of its write from now on.
    ///
    /// # Errors
    /// When the signals cannot be handled.
    pub fn listen() -> anyhow::Result<Self> {
        let mut last = LAST.lock().unwrap_or_else(PoisonError::into_inner);
        let last = match &*last {
            Some(last) => last.clone(),
            None => last.insert(receive()?).clone(),
        };
        Ok(Self { last, handled: HANDLED.load(Ordering::SeqCst) })
    }

    /// Waits for the next one, which the caller acts upon.
    pub async fn next(&mut self) -> Stop {
        let request = self.seen().await;
        HANDLED.fetch_max(request.number, Ordering::SeqCst);
        request.stop
    }

    /// Waits for the next one. It stays open for others.
    async fn seen(&mut self) -> Request {
        let handled = self.handled;
        let Ok(request) = self.last.wait_for(|last| last.number > handled).await.map(|last| *last)
        else {
            // The thread that receives signals lasts as long as the process.
            return pending().await;
        };
        self.handled = request.number;
        request
    }
}

/// Receives the signals on a thread of its own for the rest of the process. A request that follows
/// one that nobody has acted upon yet ends the process: the command is busy and cannot end itself.
fn receive() -> anyhow::Result<watch::Receiver<Request>> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let (mut interrupts, mut terminations) = {
        // A signal's handler registers with the runtime that is entered.
        let _entered = runtime.enter();
        handle_file_size_signal();
        let signals = |kind, name: &str| {
            StopSignal::listen(kind).with_context(|| format!("{name} cannot be handled"))
        };
        (signals(SignalKind::interrupt(), "Ctrl-C")?, signals(SignalKind::terminate(), "SIGTERM")?)
    };

    let (sender, receiver) = watch::channel(Request { number: 0, stop: Stop::Interrupt });
    let forward = async move {
        loop {
            let stop = tokio::select! {
                () = interrupts.recv() => Stop::Interrupt,
                () = terminations.recv() => Stop::Terminate,
            };
            let before = sender.borrow().number;
            if HANDLED.load(Ordering::SeqCst) < before {
                exit(stop.exit_code().into());
            }
            sender.send_replace(Request { number: before + 1, stop });
        }
    };

    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || -> () { runtime.block_on(forward) })?;
    Ok(receiver)
}

/// From now on, calls `then` at each request to stop, on a thread of its own.
fn listen(mut then: impl FnMut(Stop) + Send + 'static) -> anyhow::Result<()> {
    let mut stops = Stops::listen()?;
    on_thread(async move {
        loop {
            then(stops.next().await);
        }
    })
}

/// Awaits `work` on a thread of its own.
fn on_thread(work: impl Future<Output = ()> + Send + 'static) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().build()?;
    thread::Builder::new().name("interrupt".to_owned()).spawn(move || runtime.block_on(work))?;
    Ok(())
}

/// When asked to stop, ends the process with what `note` says: for work whose files appear only
/// when they are complete.
///
/// # Errors
/// When the signals cannot be handled.
pub fn end_with(note: impl Fn() -> String + Send + 'static) -> anyhow::Result<()> {
    listen(move |stop| {
        write_note(format_args!("{}", note()));
        exit(stop.exit_code().into());
    })
}

/// Until it is dropped, a request to stop ends the process after `cleanup`: for a part of a command
/// that waits for something else and has nothing to show.
pub struct EndsEarly(Arc<AtomicU8>);

/// What becomes of an [`EndsEarly`]: whichever of the other two comes first.
const WAITING: u8 = 0;
const ENDING: u8 = 1;
const OVER: u8 = 2;

impl EndsEarly {
    /// # Errors
    /// When the signals cannot be handled.
    pub fn with(cleanup: impl Fn() + Send + 'static) -> anyhow::Result<Self> {
        let state = Arc::new(AtomicU8::new(WAITING));
        let ends_early = Self(Arc::clone(&state));
        let mut stops = Stops::listen()?;
        on_thread(async move {
            let Request { number, stop } = stops.seen().await;
            // Once this part is over, the request is for what the command does next.
            if becomes(&state, ENDING) {
                HANDLED.fetch_max(number, Ordering::SeqCst);
                cleanup();
                exit(stop.exit_code().into());
            }
        })?;
        Ok(ends_early)
    }
}

impl Drop for EndsEarly {
    fn drop(&mut self) {
        if becomes(&self.0, OVER) {
            return;
        }
        // The process ends: an error that the cleanup causes must not be what it reports.
        loop {
            thread::park();
        }
    }
}

/// True if the state was still open, and is this one now.
fn becomes(state: &AtomicU8, next: u8) -> bool {
    state.compare_exchange(WAITING, next, Ordering::Relaxed, Ordering::Relaxed).is_ok()
}

/// Notes that the command was asked to stop. The second request ends the process.
#[derive(Clone)]
pub struct Interrupt {
    /// The exit code of the [`Stop`]; 0 while there is none.
    code: Arc<AtomicU8>,
}

impl Interrupt {
    /// # Errors
    /// When the signals cannot be handled.
    pub fn start() -> anyhow::Result<Self> {
        let interrupt = Self { code: Arc::default() };
        let code = Arc::clone(&interrupt.code);
        listen(move |stop| {
            if code.swap(stop.exit_code(), Ordering::Relaxed) != 0 {
                exit(stop.exit_code().into());
            }
        })?;
        Ok(interrupt)
    }

    /// The request to stop, if there was one.
    pub fn stop(&self) -> Option<Stop> {
        Stop::from_exit_code(self.code.load(Ordering::Relaxed))
    }

    /// The lines of `input` until the command is asked to stop.
    pub fn until<R: BufRead>(&self, input: R) -> UntilInterrupt<R> {
        UntilInterrupt { input, interrupt: self.clone(), is_in_line: false }
    }
}

/// Ends between two lines once the command was asked to stop.
pub struct UntilInterrupt<R> {
    input: R,
    interrupt: Interrupt,
    is_in_line: bool,
}

impl<R: BufRead> BufRead for UntilInterrupt<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.interrupt.stop().is_some() && !self.is_in_line {
            Ok(&[])
        } else {
            self.input.fill_buf()
        }
    }

    fn consume(&mut self, amount: usize) {
        if amount > 0 {
            // The last byte consumed tells whether a line is still incomplete.
            let last =
                self.input.fill_buf().ok().and_then(|buffer| buffer.get(amount - 1).copied());
            self.is_in_line = last != Some(b'\n');
        }
        self.input.consume(amount);
    }
}

impl<R: BufRead> Read for UntilInterrupt<R> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let read = self.fill_buf()?.read(into)?;
        self.consume(read);
        Ok(read)
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use rustix::process::{Signal, getpid, kill_process};

    use super::*;

    #[test]
    fn an_interrupted_input_ends_after_the_line_under_way() {
        let interrupt = Interrupt { code: Arc::default() };
        let mut input = interrupt.until(&b"one\ntwo\nthree\n"[..]);
        let mut text = String::new();
        input.read_line(&mut text).unwrap();
        assert_eq!(input.read(&mut [0; 1]).unwrap(), 1);
        interrupt.code.store(Stop::Terminate.exit_code(), Ordering::Relaxed);
        input.read_line(&mut text).unwrap();
        assert_eq!(text, "one\nwo\n");
        assert_eq!(input.read_line(&mut text).unwrap(), 0, "the third line is left");
    }

    #[test]
    fn a_request_between_two_listeners_is_for_the_second() {
        drop(EndsEarly::with(|| unreachable!("this part is over")).unwrap());
        kill_process(getpid(), Signal::INT).unwrap();

        let mut stops = Stops::listen().unwrap();
        assert_eq!(block_on(stops.next()), Stop::Interrupt);
    }
}
