//! The transport over standard input and output: one message, or one batch, per line.

use std::collections::VecDeque;
use std::io;
use std::sync::{Arc, Mutex as StdMutex, PoisonError};

use rmcp::RoleServer;
use rmcp::model::{ClientJsonRpcMessage, ErrorCode};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::sync::Mutex;

use super::json_rpc::{Message, Received, error, lossy_refused, read, takes_batches};
use crate::guard::without_byte_order_mark;

/// Longest line.
const LINE_BYTES_MAX: usize = 16 << 20;

/// Responses that are sent together.
struct Batch {
    /// The ids of requests without a response yet.
    open: Vec<Value>,
    responses: Vec<Value>,
}

#[derive(Default)]
struct Session {
    batches: Vec<Batch>,
    /// True if the negotiated version has batches.
    takes_batches: bool,
}

impl Session {
    /// Notes a message to the client. Returns what to send now.
    fn outgoing(&mut self, message: Value) -> Option<Value> {
        if let Some(version) = message["result"]["protocolVersion"].as_str() {
            self.takes_batches = takes_batches(version);
        }
        if message.get("method").is_some() {
            return Some(message);
        }

        let id = &message["id"];
        let of_batch = self.batches.iter().position(|batch| batch.open.contains(id));
        let Some(batch) = of_batch else { return Some(message) };
        let open = &mut self.batches[batch].open;
        open.retain(|open| open != id);
        let is_last = open.is_empty();
        self.batches[batch].responses.push(message);
        is_last.then(|| self.batches.swap_remove(batch).responses.into())
    }
}

struct Output<W> {
    writer: W,
    /// Whole lines; the first may be partly written.
    pending: Vec<u8>,
}

impl<W: AsyncWrite + Unpin> Output<W> {
    fn add(&mut self, message: &Value) {
        self.pending.extend_from_slice(message.to_string().as_bytes());
        self.pending.push(b'\n');
    }

    /// Dropped before it is ready, it leaves what was not written for the next call.
    async fn flush(&mut self) -> io::Result<()> {
        while !self.pending.is_empty() {
            let count = self.writer.write(&self.pending).await?;
            if count == 0 {
                return Err(io::ErrorKind::WriteZero.into());
            }
            self.pending.drain(..count);
        }
        self.writer.flush().await
    }
}

/// Lines from a reader and to a writer.
pub struct Lines<R, W> {
    reader: BufReader<R>,
    line: Vec<u8>,
    /// True if the current line is too long; the rest of it is skipped.
    is_too_long: bool,
    has_ended: bool,
    received: VecDeque<ClientJsonRpcMessage>,
    /// Errors that are not in the output yet.
    refusals: Vec<Value>,
    session: Arc<StdMutex<Session>>,
    output: Arc<Mutex<Output<W>>>,
}

impl<R: AsyncRead + Unpin, W: AsyncWrite + Unpin> Lines<R, W> {
    pub fn new(reader: R, writer: W) -> Self {
        Self {
            reader: BufReader::new(reader),
            line: Vec::new(),
            is_too_long: false,
            has_ended: false,
            received: VecDeque::new(),
            refusals: Vec::new(),
            session: Arc::default(),
            output: Arc::new(Mutex::new(Output { writer, pending: Vec::new() })),
        }
    }

    /// Reads up to the end of a line. Dropped before it is ready, it loses nothing. Returns whether
    /// there is a line.
    async fn read_line(&mut self) -> io::Result<bool> {
        loop {
            let bytes = self.reader.fill_buf().await?;
            if bytes.is_empty() {
                self.has_ended = true;
                return Ok(self.is_too_long || !self.line.is_empty());
            }

            let end = bytes.iter().position(|byte| *byte == b'\n');
            let count = end.map_or(bytes.len(), |end| end + 1);
            if self.line.len() + count > LINE_BYTES_MAX {
                self.is_too_long = true;
                self.line.clear();
            }
            if !self.is_too_long {
                self.line.extend_from_slice(&bytes[..count]);
            }
            self.reader.consume(count);
            if end.is_some() {
                return Ok(true);
            }
        }
    }

    fn take_line(&mut self) {
        let line = std::mem::take(&mut self.line);
        if std::mem::take(&mut self.is_too_long) {
            let message = format!("the message has more than {LINE_BYTES_MAX} bytes");
            self.refusals.push(error(ErrorCode::INVALID_REQUEST, None, &message));
            return;
        }
        let line = without_byte_order_mark(&line);
        if line.trim_ascii().is_empty() {
            return;
        }

        // Once parsed, such an integer has lost its digits, and equals others.
        if let Some(refusal) = lossy_refused(line) {
            self.refusals.push(refusal);
            return;
        }

        let mut session = self.session.lock().unwrap_or_else(PoisonError::into_inner);
        match read(line, session.takes_batches) {
            Received::One(Message::Valid { parsed, .. }) => self.received.push_back(*parsed),
            Received::One(Message::Refused(error)) => self.refusals.push(error),
            Received::One(Message::Ignored) => {}
            Received::Batch(messages) => {
                let mut batch = Batch { open: Vec::new(), responses: Vec::new() };
                for message in messages {
                    match message {
                        Message::Valid { id, parsed, .. } => {
                            batch.open.extend(id);
                            self.received.push_back(*parsed);
                        }
                        Message::Refused(error) => batch.responses.push(error),
                        Message::Ignored => {}
                    }
                }

                if !batch.open.is_empty() {
                    session.batches.push(batch);
                } else if !batch.responses.is_empty() {
                    self.refusals.push(batch.responses.into());
                }
            }
        }
    }

    async fn send_refusals(&mut self) -> io::Result<()> {
        let mut output = self.output.lock().await;
        for refusal in self.refusals.drain(..) {
            output.add(&refusal);
        }
        output.flush().await
    }
}

impl<R, W> Transport<RoleServer> for Lines<R, W>
where
    R: AsyncRead + Send + Unpin,
    W: AsyncWrite + Send + Unpin + 'static,
{
    type Error = io::Error;

    fn send(
        &mut self,
        message: TxJsonRpcMessage<RoleServer>,
    ) -> impl Future<Output = io::Result<()>> + Send + 'static {
        let (session, output) = (Arc::clone(&self.session), Arc::clone(&self.output));
        async move {
            let message = serde_json::to_value(&message)?;
            let due = {
                let mut session = session.lock().unwrap_or_else(PoisonError::into_inner);
                session.outgoing(message)
            };

            let mut output = output.lock().await;
            if let Some(due) = due {
                output.add(&due);
            }
            output.flush().await
        }
    }

    // Called again after it was dropped: what it holds between two waits is in the fields.
    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleServer>> {
        loop {
            if let Err(error) = self.send_refusals().await {
                tracing::debug!("cannot answer the client: {error}");
                return None;
            }
            if let Some(message) = self.received.pop_front() {
                return Some(message);
            }
            if self.has_ended {
                return None;
            }

            match self.read_line().await {
                Ok(true) => self.take_line(),
                Ok(false) => {}
                Err(error) => {
                    tracing::error!("cannot read the client's messages: {error}");
                    return None;
                }
            }
        }
    }

    async fn close(&mut self) -> io::Result<()> {
        let mut output = self.output.lock().await;
        output.flush().await?;
        output.writer.shutdown().await
    }
}

#[cfg(test)]
#[path = "stdio_tests.rs"]
mod tests;
