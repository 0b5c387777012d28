//! The connection of a client as actix-http reads and writes it: with the heads of [`Heads`], and
//! with what [`Expectation`] adds.

use std::io;
use std::mem::MaybeUninit;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use actix_web::rt::net::TcpStream;
use actix_web::web::BytesMut;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

use super::expectation::Expectation;
use super::heads::Heads;

/// Bytes that are read at once.
const READ_BYTES: usize = 8 * 1_024;

/// A client's connection, on its worker's thread.
pub struct ClientStream {
    stream: TcpStream,
    heads: Heads,
    /// Read, but not taken yet.
    read: BytesMut,
    has_ended: bool,
    expectation: Rc<Expectation>,
}

impl ClientStream {
    pub fn new(stream: TcpStream) -> Self {
        Self {
            stream,
            heads: Heads::default(),
            read: BytesMut::new(),
            has_ended: false,
            expectation: Rc::default(),
        }
    }

    pub fn tcp(&self) -> &TcpStream {
        &self.stream
    }

    pub fn expectation(&self) -> &Rc<Expectation> {
        &self.expectation
    }

    fn poll_expectation(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        loop {
            let due = self.expectation.due();
            if due.is_empty() {
                return Poll::Ready(Ok(()));
            }
            match ready!(Pin::new(&mut self.stream).poll_write(context, due))? {
                0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
                count => self.expectation.has_sent(count),
            }
        }
    }
}

impl AsyncRead for ClientStream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        while this.read.is_empty() && !this.has_ended {
            let mut bytes = [MaybeUninit::uninit(); READ_BYTES];
            let mut bytes = ReadBuf::uninit(&mut bytes);
            ready!(Pin::new(&mut this.stream).poll_read(context, &mut bytes))?;

            if bytes.filled().is_empty() {
                this.has_ended = true;
                this.heads.finish(&mut this.read);
            } else {
                this.heads.push(bytes.filled(), &mut this.read);
            }
        }

        let count = this.read.len().min(buffer.remaining());
        buffer.put_slice(&this.read.split_to(count));
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for ClientStream {
    fn poll_write(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.expectation.is_begun() {
            ready!(this.poll_expectation(context))?;
        }
        Pin::new(&mut this.stream).poll_write(context, bytes)
    }

    // actix-http flushes when everything that it had to write is written: that is when something
    // can be put between two responses.
    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_expectation(context))?;
        Pin::new(&mut this.stream).poll_flush(context)
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(context)
    }
}
