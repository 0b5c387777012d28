//! Parallel production of ordered output in bounded memory.

use std::io::{self, Write};
use std::panic::resume_unwind;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread;

/// Bytes per piece of output.
const PIECE: usize = 64 << 10;
/// Pieces that may wait between a worker and the writer.
const WAITING: usize = 64;

enum Piece {
    Bytes(Vec<u8>),
    /// The item is complete.
    End,
}

/// The error of a worker whose writer has stopped; the writer reports its own error.
fn gone<E>(_: E) -> io::Error {
    io::Error::from(io::ErrorKind::BrokenPipe)
}

/// A worker's output.
struct Pieces {
    pending: Vec<u8>,
    pieces: SyncSender<Piece>,
}

impl Pieces {
    fn end_item(&mut self) -> io::Result<()> {
        self.flush()?;
        self.pieces.send(Piece::End).map_err(gone)
    }
}

impl Write for Pieces {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.pending.extend_from_slice(bytes);
        if self.pending.len() >= PIECE {
            self.flush()?;
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        if self.pending.is_empty() {
            return Ok(());
        }
        self.pieces.send(Piece::Bytes(std::mem::take(&mut self.pending))).map_err(gone)
    }
}

fn copy_item(pieces: &Receiver<Piece>, out: &mut dyn Write) -> io::Result<()> {
    loop {
        match pieces.recv().map_err(gone)? {
            Piece::Bytes(bytes) => out.write_all(&bytes)?,
            Piece::End => return Ok(()),
        }
    }
}

/// Calls `produce` for each item on one of `threads` threads, writes the output to `out` in the
/// order of `items`, and calls `finished` after each. Items may be of any length: at most a few
/// megabytes per thread are buffered.
///
/// # Errors
/// The first error of `produce` or of `out`.
///
/// # Panics
/// When `produce` panics.
pub fn ordered<I: Sync>(
    items: &[I],
    threads: usize,
    produce: impl Fn(&I, &mut dyn Write) -> io::Result<()> + Sync,
    out: &mut dyn Write,
    mut finished: impl FnMut(&I),
) -> io::Result<()> {
    let threads = threads.clamp(1, items.len().max(1));
    thread::scope(|scope| {
        let produce = &produce;
        // Worker k of n makes the items k, k + n, …, so that the writer knows whose turn it is.
        let (workers, outputs): (Vec<_>, Vec<_>) = (0..threads)
            .map(|first| {
                let (sender, receiver) = sync_channel(WAITING);
                let worker = scope.spawn(move || {
                    let mut out = Pieces { pending: Vec::new(), pieces: sender };
                    for item in items.iter().skip(first).step_by(threads) {
                        produce(item, &mut out)?;
                        out.end_item()?;
                    }
                    Ok::<(), io::Error>(())
                });
                (worker, receiver)
            })
            .unzip();

        let copied: io::Result<()> = items.iter().enumerate().try_for_each(|(place, item)| {
            copy_item(&outputs[place % threads], out)?;
            finished(item);
            Ok(())
        });
        // Workers that still write notice the closed channel and stop.
        drop(outputs);

        let mut failed = None;
        for worker in workers {
            match worker.join() {
                Ok(Ok(())) => {}
                Ok(Err(error)) => failed = failed.or(Some(error)),
                Err(panic) => resume_unwind(panic),
            }
        }

        match (copied, failed) {
            // The closed channel is the consequence; the worker's error is the cause.
            (Err(error), Some(cause)) if error.kind() == io::ErrorKind::BrokenPipe => Err(cause),
            (copied, _) => copied,
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn items_come_out_in_order_whatever_their_length() {
        let items: Vec<usize> = (0..200).map(|i| (i * 7919) % 1000).collect();
        let mut out = Vec::new();

        let mut finished = Vec::new();

        let produce = |n: &usize, out: &mut dyn Write| {
            (0..n * 100).try_for_each(|_| out.write_all(b"x"))?;
            writeln!(out, "{n}")
        };

        ordered(&items, 5, produce, &mut out, |n| finished.push(*n)).expect("written");

        let text = String::from_utf8(out).expect("text");
        let seen: Vec<usize> = text
            .lines()
            .map(|line| line.trim_start_matches('x').parse().expect("a number"))
            .collect();

        assert_eq!(seen, items);
        assert_eq!(finished, items);
    }

    #[test]
    fn an_error_of_a_worker_or_of_the_writer_ends_the_work() {
        let items: Vec<u32> = (0..50).collect();
        let failing = |n: &u32, out: &mut dyn Write| {
            if *n == 20 { Err(io::Error::other("no more")) } else { writeln!(out, "{n}") }
        };

        let error = ordered(&items, 3, failing, &mut Vec::new(), |_| {}).expect_err("fails");
        assert_eq!(error.to_string(), "no more");

        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::Error::from(io::ErrorKind::StorageFull))
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        let endless =
            |_: &u32, out: &mut dyn Write| (0..100_000).try_for_each(|n| writeln!(out, "{n}"));

        let error = ordered(&items, 3, endless, &mut Full, |_| {}).expect_err("fails");
        assert_eq!(error.kind(), io::ErrorKind::StorageFull);
    }
}
