//! The worker's connection to its parent: a socket in a child process, channels in a thread.

use std::os::unix::net::UnixStream;

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::wire::{Frames, FromWorker, ToWorker, encode};
use super::worker_output::WorkerEvent;

/// The result of receiving.
pub(super) enum Received {
    Frame(ToWorker<'static>),
    /// No frame has arrived.
    Empty,
    /// The parent is gone or wants the worker to end.
    Closed,
}

/// Where a worker receives turns and sends answers.
pub(super) trait Transport {
    /// The next frame. With `wait` it blocks and never returns [`Received::Empty`].
    fn recv(&mut self, wait: bool) -> Received;
    /// Sends an answer, with the next `flush` at the latest.
    fn send(&mut self, frame: FromWorker);
    /// Sends everything that is buffered.
    fn flush(&mut self);
}

/// One end of a socket pair.
pub(super) struct SocketTransport {
    socket: UnixStream,
    frames: Frames,
    chunk: Vec<u8>,
    out: Vec<u8>,
    closed: bool,
}

impl SocketTransport {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self {
            socket,
            frames: Frames::default(),
            chunk: vec![0; 64 << 10],
            out: Vec::new(),
            closed: false,
        }
    }
}

impl Transport for SocketTransport {
    fn recv(&mut self, wait: bool) -> Received {
        loop {
            // Frames that arrived before the socket closed are still delivered.
            match self.frames.next() {
                Ok(Some(frame)) => return Received::Frame(frame),
                Ok(None) if !self.closed => {}
                Ok(None) | Err(_) => return Received::Closed,
            }

            let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
            match rustix::net::recv(&self.socket, &mut self.chunk[..], flags) {
                Ok((_, 0)) => self.closed = true,
                Ok((_, length)) => self.frames.push(&self.chunk[..length]),
                Err(Errno::AGAIN) => return Received::Empty,
                Err(Errno::INTR) => {}
                Err(_) => self.closed = true,
            }
        }
    }

    fn send(&mut self, frame: FromWorker) {
        // A generation is bounded by the context, far below a frame's limit. If it is not, closing
        // tells the parent.
        if encode(&frame, &mut self.out).is_err() {
            self.closed = true;
        }
    }

    fn flush(&mut self) {
        let mut rest = &self.out[..];
        while !rest.is_empty() && !self.closed {
            match rustix::net::send(&self.socket, rest, SendFlags::NOSIGNAL) {
                Ok(length) => rest = &rest[length..],
                Err(Errno::INTR) => {}
                Err(_) => self.closed = true,
            }
        }
        self.out.clear();
    }
}

/// A pair of channels.
pub(super) struct ChannelTransport {
    pub(super) turns: Receiver<ToWorker<'static>>,
    pub(super) answers: Sender<WorkerEvent>,
}

impl Transport for ChannelTransport {
    fn recv(&mut self, wait: bool) -> Received {
        if wait {
            return self.turns.recv().map_or(Received::Closed, Received::Frame);
        }
        match self.turns.try_recv() {
            Ok(frame) => Received::Frame(frame),
            Err(TryRecvError::Empty) => Received::Empty,
            Err(TryRecvError::Disconnected) => Received::Closed,
        }
    }

    fn send(&mut self, frame: FromWorker) {
        // Without a listener, `recv` reports that the channel closed.
        let _ = self.answers.send(WorkerEvent::Frame(frame));
    }

    fn flush(&mut self) {}
}
