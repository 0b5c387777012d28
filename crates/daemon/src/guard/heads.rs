//! Changes the heads of requests before actix-http reads them, in two ways that it has no setting
//! for:
//!
//! - `Upgrade` is ignored. RFC 9110 (7.8) lets a server do so, and clients rely on it: Java's
//!   client and Apache's offer `h2c` or `TLS/1.2` with ordinary requests. actix-http would close
//!   such a connection, and take what follows a request for a WebSocket as its body, whatever
//!   length it says.
//! - `Expect: 100-continue` is renamed, because actix-http answers it with 100 before any rule has
//!   seen the request. [`Expectation`](super::expectation::Expectation) answers it when the body is
//!   asked for.
//!
//! Where a head begins is decided by actix-http's own decoder, which reads along: if the two
//! disagreed about where a body ends, a client could hide a request in it.

use actix_http::Request;
use actix_http::h1::{Codec, Message, MessageType};
use actix_web::web::BytesMut;
use tokio_util::codec::Decoder as _;

/// What `Expect: 100-continue` is called after the change.
pub const EXPECT_CONTINUE: &str = "x-expect";

/// Heads that are longer pass unchanged. actix-http refuses them.
const HEAD_BYTES_MAX: usize = 256 * 1_024;

enum Place {
    /// Between requests, or in a head.
    Head,
    Body,
    /// The decoder has failed, as actix-http's own is about to, or reads until the connection ends.
    Opaque,
}

/// The bytes of one connection, in their order.
pub struct Heads {
    decoder: Codec,
    place: Place,
    /// What was passed on of the present head.
    head: BytesMut,
    /// Bytes that are not passed on yet: the beginning of a line that may have to be changed.
    held: BytesMut,
    /// True if the request line has begun.
    has_begun: bool,
    /// True if the beginning of the present line was passed on.
    in_line: bool,
}

impl Default for Heads {
    fn default() -> Self {
        Self {
            decoder: Codec::default(),
            place: Place::Head,
            head: BytesMut::new(),
            held: BytesMut::new(),
            has_begun: false,
            in_line: false,
        }
    }
}

impl Heads {
    /// Takes bytes as they come, and appends those that may be read now to `out`.
    pub fn push(&mut self, bytes: &[u8], out: &mut BytesMut) {
        self.held.extend_from_slice(bytes);
        loop {
            let goes_on = match self.place {
                Place::Opaque => {
                    out.unsplit(self.held.split());
                    false
                }
                Place::Body => self.pass_body(out),
                Place::Head => self.pass_line(out),
            };
            if !goes_on {
                return;
            }
        }
    }

    /// The connection has ended: what is held will not be completed.
    pub fn finish(&mut self, out: &mut BytesMut) {
        self.place = Place::Opaque;
        self.push(&[], out);
    }

    /// Returns whether the body has ended.
    fn pass_body(&mut self, out: &mut BytesMut) -> bool {
        let (before, came) = (out.len(), self.held.len());
        out.extend_from_slice(&self.held);

        loop {
            match self.decoder.decode(&mut self.held) {
                Ok(Some(Message::Chunk(Some(_)))) => {}
                Ok(Some(Message::Chunk(None))) => {
                    out.truncate(before + came - self.held.len());
                    self.place = Place::Head;
                    return true;
                }
                Ok(None) => {
                    // The decoder may keep bytes that it cannot use yet; they are passed on when
                    // it can.
                    out.truncate(before + came - self.held.len());
                    return false;
                }
                Ok(Some(Message::Item(_))) | Err(_) => {
                    self.held.clear();
                    self.place = Place::Opaque;
                    return false;
                }
            }
        }
    }

    /// Passes a line of a head, or what is sure to be unchanged of one. Returns whether there may
    /// be more to pass.
    fn pass_line(&mut self, out: &mut BytesMut) -> bool {
        let Some(end) = self.held.iter().position(|byte| *byte == b'\n') else {
            if self.head.len() + self.held.len() > HEAD_BYTES_MAX {
                self.place = Place::Opaque;
                return true;
            }
            if self.in_line || !self.may_change() {
                self.in_line |= !self.held.is_empty();
                self.has_begun |= !self.held.is_empty();
                let part = self.held.split();
                self.pass(&part, out);
            }
            return false;
        };

        let line = self.held.split_to(end + 1);
        let was_in_line = std::mem::take(&mut self.in_line);
        if was_in_line {
            self.pass(&line, out);
            return true;
        }

        let is_blank = matches!(&line[..], b"\n" | b"\r\n");
        if is_blank {
            self.pass(&line, out);
            // Blank lines before a request line mean nothing.
            if self.has_begun {
                self.end_head();
            }
        } else if self.has_begun {
            self.pass(&changed(&line), out);
        } else {
            self.has_begun = true;
            self.pass(&line, out);
        }
        true
    }

    fn pass(&mut self, bytes: &[u8], out: &mut BytesMut) {
        self.head.extend_from_slice(bytes);
        out.extend_from_slice(bytes);
    }

    /// True if what is held may be the beginning of a line that is changed, or of a blank one.
    fn may_change(&self) -> bool {
        if matches!(&self.held[..], b"" | b"\r") {
            return true;
        }
        self.has_begun
            && CHANGED.iter().any(|name| {
                let length = name.len().min(self.held.len());
                let is_alike = self.held[..length].eq_ignore_ascii_case(&name.as_bytes()[..length]);
                is_alike && self.held.get(name.len()).is_none_or(|after| *after == b':')
            })
    }

    fn end_head(&mut self) {
        self.has_begun = false;
        let decoded: Option<Message<Request>> = self.decoder.decode(&mut self.head).ok().flatten();

        self.place = match (decoded, self.decoder.message_type()) {
            (Some(Message::Item(_)), MessageType::None) => Place::Head,
            (Some(Message::Item(_)), MessageType::Payload) => Place::Body,
            _ => Place::Opaque,
        };
        self.head.clear();
    }
}

/// The fields that are changed.
const CHANGED: [&str; 3] = ["upgrade", "connection", "expect"];

/// What becomes of the line of a field.
fn changed(line: &[u8]) -> Vec<u8> {
    let unchanged = line.to_vec();
    let Some(colon) = line.iter().position(|byte| *byte == b':') else { return unchanged };
    let (name, value) = (&line[..colon], &line[colon + 1..]);

    if name.eq_ignore_ascii_case(b"upgrade") {
        return Vec::new();
    }
    if name.eq_ignore_ascii_case(b"connection") {
        let is_upgrade = |option: &&[u8]| option.trim_ascii().eq_ignore_ascii_case(b"upgrade");
        let options: Vec<_> = value.split(|byte| *byte == b',').collect();
        if !options.iter().any(is_upgrade) {
            return unchanged;
        }

        let kept: Vec<_> = options.into_iter().filter(|option| !is_upgrade(option)).collect();
        if kept.iter().all(|option| option.trim_ascii().is_empty()) {
            return Vec::new();
        }
        let kept = kept.join(&b',');
        return [name, b":", kept.trim_ascii_end(), b"\r\n"].concat();
    }
    if name.eq_ignore_ascii_case(b"expect")
        && value.trim_ascii().eq_ignore_ascii_case(b"100-continue")
    {
        return [EXPECT_CONTINUE.as_bytes(), b":", value].concat();
    }
    unchanged
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What comes out when the bytes come in pieces of this length.
    fn passed(text: &str, piece: usize) -> String {
        let mut heads = Heads::default();
        let mut out = BytesMut::new();
        for piece in text.as_bytes().chunks(piece) {
            heads.push(piece, &mut out);
        }
        heads.finish(&mut out);
        String::from_utf8(out.to_vec()).unwrap()
    }

    #[actix_web::test]
    async fn heads_lose_upgrades_however_they_are_cut() {
        for (given, kept) in [
            // Nothing to change.
            (
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n",
            ),
            // Java's client.
            (
                "GET / HTTP/1.1\r\nConnection: Upgrade, HTTP2-Settings\r\nHost: a\r\n\
                 HTTP2-Settings: AAEA\r\nUpgrade: h2c\r\n\r\n",
                "GET / HTTP/1.1\r\nConnection: HTTP2-Settings\r\nHost: a\r\n\
                 HTTP2-Settings: AAEA\r\n\r\n",
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nupgrade:TLS/1.2\r\nCONNECTION: upgrade\r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
            ),
            (
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive ,UPGRADE , \r\n\r\n",
                "GET / HTTP/1.1\r\nHost: a\r\nConnection: keep-alive ,\r\n\r\n",
            ),
            // Lines that only begin alike.
            (
                "GET /upgrade: HTTP/1.1\r\nHost: a\r\nUpgrade-Insecure-Requests: 1\r\nConnections: upgrade\r\n\r\n",
                "GET /upgrade: HTTP/1.1\r\nHost: a\r\nUpgrade-Insecure-Requests: 1\r\nConnections: upgrade\r\n\r\n",
            ),
            // Bodies are not heads, chunked ones included; what follows them is.
            (
                "POST / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nContent-Length: 14\r\n\r\n\
                 \r\nUpgrade: x\r\nGET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 14\r\n\r\n\
                 \r\nUpgrade: x\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            ),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                 c\r\nUpgrade: x\r\n\r\n0\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\nUpgrade: x\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n\
                 c\r\nUpgrade: x\r\n\r\n0\r\n\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            ),
            // Lines may end with a line feed alone.
            ("GET / HTTP/1.1\nHost: a\nUpgrade: x\n\n", "GET / HTTP/1.1\nHost: a\n\n"),
            (
                "POST / HTTP/1.1\r\nHost: a\r\nexpect: 100-Continue\r\n\r\n",
                "POST / HTTP/1.1\r\nHost: a\r\nx-expect: 100-Continue\r\n\r\n",
            ),
            // What the decoder refuses passes as it is, and so does what follows.
            (
                "GET / HTTP/1.1\r\nbad header\r\n\r\nUpgrade: x\r\n",
                "GET / HTTP/1.1\r\nbad header\r\n\r\nUpgrade: x\r\n",
            ),
            // An end within a line.
            ("GET / HTTP/1.1\r\nUpgr", "GET / HTTP/1.1\r\nUpgr"),
        ] {
            for piece in [1, 2, 3, 5, 7, 1_000] {
                assert_eq!(passed(given, piece), kept, "{given:?} in pieces of {piece}");
            }
        }
    }

    #[actix_web::test]
    async fn a_part_of_a_line_waits_only_if_it_may_change() {
        let mut heads = Heads::default();
        let mut out = BytesMut::new();
        for (piece, passed) in [
            ("GE", "GE"),
            ("T / HTTP/1.1\r\nHo", "T / HTTP/1.1\r\nHo"),
            ("st: a\r\nUp", "st: a\r\n"),
            ("side: x", "Upside: x"),
            ("\r\nConnection: upgr", "\r\n"),
            ("ade\r\n", ""),
        ] {
            heads.push(piece.as_bytes(), &mut out);
            assert_eq!(&out.split()[..], passed.as_bytes(), "after {piece:?}");
        }
    }
}
