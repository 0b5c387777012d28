//! Ctrl-C in commands that work on the main thread.

use std::io::{self, BufRead, Read};
use std::process::exit;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use anyhow::Context as _;
use tokio::runtime::Builder;
use tokio::signal::unix::{SignalKind, signal};

use super::output::write_note;

/// Exit code after Ctrl-C, as shells report SIGINT.
pub const INTERRUPTED: u8 = 130;

/// From now on, calls `then` at each Ctrl-C, on a thread of its own.
fn listen(mut then: impl FnMut() + Send + 'static) -> anyhow::Result<()> {
    let runtime = Builder::new_current_thread().enable_all().build()?;
    let mut signals = {
        // A signal's handler registers with the runtime that is entered.
        let _entered = runtime.enter();
        signal(SignalKind::interrupt()).context("Ctrl-C cannot be handled")?
    };

    let wait = async move {
        while signals.recv().await.is_some() {
            then();
        }
    };

    thread::Builder::new().name("interrupt".to_owned()).spawn(move || runtime.block_on(wait))?;
    Ok(())
}

/// At Ctrl-C, ends the process with what `note` says: for work whose files appear only when they
/// are complete.
///
/// # Errors
/// When SIGINT cannot be handled.
pub fn end_with(note: impl Fn() -> String + Send + 'static) -> anyhow::Result<()> {
    listen(move || {
        write_note(format_args!("{}", note()));
        exit(INTERRUPTED.into());
    })
}

/// Whether Ctrl-C was pressed. The second one ends the process.
#[derive(Clone)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// # Errors
    /// When SIGINT cannot be handled.
    pub fn start() -> anyhow::Result<Self> {
        let is_set = Arc::new(AtomicBool::new(false));
        let set = Arc::clone(&is_set);
        listen(move || {
            if set.swap(true, Ordering::Relaxed) {
                exit(INTERRUPTED.into());
            }
        })?;
        Ok(Self(is_set))
    }

    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The lines of `input` up to Ctrl-C.
    pub fn until<R: BufRead>(&self, input: R) -> UntilInterrupt<R> {
        UntilInterrupt { input, interrupt: self.clone(), is_in_line: false }
    }
}

/// Ends between two lines once Ctrl-C was pressed.
pub struct UntilInterrupt<R> {
    input: R,
    interrupt: Interrupt,
    is_in_line: bool,
}

impl<R: BufRead> BufRead for UntilInterrupt<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.interrupt.is_set() && !self.is_in_line { Ok(&[]) } else { self.input.fill_buf() }
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
    use super::*;

    #[test]
    fn an_interrupted_input_ends_after_the_line_under_way() {
        let interrupt = Interrupt(Arc::default());
        let mut input = interrupt.until(&b"one\ntwo\nthree\n"[..]);
        let mut text = String::new();
        input.read_line(&mut text).unwrap();
        assert_eq!(input.read(&mut [0; 1]).unwrap(), 1);
        interrupt.0.store(true, Ordering::Relaxed);
        input.read_line(&mut text).unwrap();
        assert_eq!(text, "one\nwo\n");
        assert_eq!(input.read_line(&mut text).unwrap(), 0, "the third line is left");
    }
}
