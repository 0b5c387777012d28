//! The worker's side of the link to the parent: a socket in a process of its own, channels in a thread.

use std::os::unix::net::UnixStream;

use crossbeam_channel::{Receiver, Sender, TryRecvError};
use rustix::io::Errno;
use rustix::net::{RecvFlags, SendFlags};

use super::wire::{Frames, FromWorker, ToWorker, encode};

/// What a port has for the worker.
pub(super) enum Intake {
    /// A frame.
    Frame(ToWorker<'static>),
    /// Nothing at the moment.
    Nothing,
    /// The parent is gone or wants the worker to end.
    Closed,
}

/// Where a worker takes its turns from and puts its answers.
pub(super) trait Port {
    /// The next frame. With `wait` it blocks and never returns [`Intake::Nothing`].
    fn take(&mut self, wait: bool) -> Intake;
    /// Puts an answer on its way at the latest with the next `flush`.
    fn put(&mut self, frame: FromWorker);
    /// Sends what was put.
    fn flush(&mut self);
}

/// A socket pair's end.
pub(super) struct SocketPort {
    socket: UnixStream,
    arrived: Frames,
    chunk: Vec<u8>,
    out: Vec<u8>,
    closed: bool,
}

impl SocketPort {
    pub(super) fn new(socket: UnixStream) -> Self {
        Self { socket, arrived: Frames::default(), chunk: vec![0; 64 << 10], out: Vec::new(), closed: false }
    }
}

impl Port for SocketPort {
    fn take(&mut self, wait: bool) -> Intake {
        loop {
            match self.arrived.next() {
                Ok(Some(frame)) => return Intake::Frame(frame),
                Ok(None) if !self.closed => {}
                Ok(None) | Err(_) => return Intake::Closed,
            }
            let flags = if wait { RecvFlags::empty() } else { RecvFlags::DONTWAIT };
            match rustix::net::recv(&self.socket, &mut self.chunk[..], flags) {
                Ok((_, 0)) => self.closed = true,
                Ok((_, length)) => self.arrived.push(&self.chunk[..length]),
                Err(Errno::AGAIN) => return Intake::Nothing,
                Err(Errno::INTR) => {}
                Err(_) => self.closed = true,
            }
        }
    }

    fn put(&mut self, frame: FromWorker) {
        // A generation is bounded by the context, far below a frame's limit; if it is not, the parent must know.
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
pub(super) struct ChannelPort {
    pub(super) turns: Receiver<ToWorker<'static>>,
    pub(super) answers: Sender<super::listening::Heard>,
}

impl Port for ChannelPort {
    fn take(&mut self, wait: bool) -> Intake {
        if wait {
            return self.turns.recv().map_or(Intake::Closed, Intake::Frame);
        }
        match self.turns.try_recv() {
            Ok(frame) => Intake::Frame(frame),
            Err(TryRecvError::Empty) => Intake::Nothing,
            Err(TryRecvError::Disconnected) => Intake::Closed,
        }
    }

    fn put(&mut self, frame: FromWorker) {
        // Nobody listens any more: `take` will say so.
        let _ = self.answers.send(super::listening::Heard::Frame(frame));
    }

    fn flush(&mut self) {}
}
