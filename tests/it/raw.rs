//! HTTP over a bare socket, for slow, numerous or misbehaving clients.
#![allow(clippy::disallowed_methods, reason = "these tests measure other processes, in real time")]

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use crate::daemon::PATIENCE;

/// One connection.
pub struct Raw {
    pub stream: TcpStream,
    /// Bytes after the last response.
    rest: Vec<u8>,
}

/// A response and its time, from the first byte sent to the last byte read.
pub struct Timed {
    pub status: u16,
    pub head: String,
    pub body: Vec<u8>,
    pub took: Duration,
}

impl Raw {
    pub fn connect(address: &str) -> Self {
        Self::of(TcpStream::connect(address).expect("connected"))
    }

    pub fn of(stream: TcpStream) -> Self {
        stream.set_nodelay(true).unwrap();
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        Self { stream, rest: Vec::new() }
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).unwrap();
    }

    /// Sends a request and reads the response, which must have a length.
    pub fn ask(&mut self, request: &[u8]) -> Timed {
        let began = Instant::now();
        self.send(request);
        let end = self
            .read_until(|bytes| bytes.windows(4).position(|four| four == b"\r\n\r\n"))
            .expect("a head")
            + 4;

        let head =
            String::from_utf8(self.rest.drain(..end).collect()).unwrap().to_ascii_lowercase();
        let status =
            head.split(' ').nth(1).and_then(|status| status.parse().ok()).expect("a status");
        let length: usize =
            field(&head, "content-length").and_then(|value| value.parse().ok()).expect("a length");

        self.read_until(|bytes| (bytes.len() >= length).then_some(length)).expect("the body");
        let body = self.rest.drain(..length).collect();
        Timed { status, head, body, took: began.elapsed() }
    }

    fn read_until(&mut self, found: impl Fn(&[u8]) -> Option<usize>) -> io::Result<usize> {
        let mut buffer = [0; 8_192];
        loop {
            if let Some(at) = found(&self.rest) {
                return Ok(at);
            }
            match self.stream.read(&mut buffer)? {
                0 => return Err(io::ErrorKind::UnexpectedEof.into()),
                count => self.rest.extend_from_slice(&buffer[..count]),
            }
        }
    }
}

/// The value of a header in a lower-case head.
pub fn field<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim)
}

/// The bytes of `GET path`.
pub fn get(path: &str) -> Vec<u8> {
    format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").into_bytes()
}

/// The bytes of `POST path` with a body of JSON.
pub fn post(path: &str, body: &str) -> Vec<u8> {
    let length = body.len();
    format!(
        "POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}
