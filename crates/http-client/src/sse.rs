//! A parser of server-sent events (WHATWG HTML, section 9.2) over a blocking reader. Unlike most,
//! it reports comments, which the daemon sends as keep-alives, and says when all received data has
//! been consumed.

use std::io::{BufRead as _, BufReader, Error, ErrorKind, Read};

/// Maximum bytes of a line: a record with a large answer has tens of megabytes.
const LINE_BYTES_MAX: usize = 256 << 20;

/// A block between two empty lines.
#[derive(Debug, PartialEq, Eq)]
pub enum Message {
    /// An event with data.
    Event {
        /// The event id, if it is a number.
        id: Option<u64>,
        /// The event's type; empty if the stream names none.
        name: String,
        /// The data; several lines are joined by newlines.
        data: String,
    },
    /// A comment, sent to keep the connection alive.
    KeepAlive,
}

/// A stream of server-sent events.
pub struct Events<R: Read> {
    reader: BufReader<R>,
}

impl<R: Read> Events<R> {
    /// Reads events from a response's body.
    pub fn new(reader: R) -> Self {
        Self { reader: BufReader::with_capacity(64 << 10, reader) }
    }

    /// Returns whether all received data has been consumed, so that reading the next message may
    /// block.
    pub fn is_drained(&self) -> bool {
        self.reader.buffer().is_empty()
    }

    /// A line without its newline; `None` at the end of the stream, where an unterminated line is
    /// dropped.
    fn line(&mut self) -> Result<Option<String>, Error> {
        let mut line = Vec::new();
        self.reader.by_ref().take(LINE_BYTES_MAX as u64).read_until(b'\n', &mut line)?;

        if line.pop() != Some(b'\n') {
            // Without its newline, a line has either ended with the stream or reached the limit.
            if line.len() + 1 >= LINE_BYTES_MAX {
                return Err(Error::new(
                    ErrorKind::InvalidData,
                    format!("a line has more than {LINE_BYTES_MAX} bytes"),
                ));
            }
            return Ok(None);
        }

        if line.last() == Some(&b'\r') {
            line.pop();
        }
        String::from_utf8(line).map(Some).map_err(|error| Error::new(ErrorKind::InvalidData, error))
    }

    /// The next message; `None` at the end of the stream. A truncated event is dropped.
    ///
    /// # Errors
    /// The connection breaks, or the data is not UTF-8.
    pub fn next_message(&mut self) -> Result<Option<Message>, Error> {
        let (mut id, mut name, mut data) = (None, String::new(), None::<String>);
        while let Some(line) = self.line()? {
            // An empty line ends an event; one without data is not dispatched.
            if line.is_empty() {
                if let Some(data) = data {
                    return Ok(Some(Message::Event { id, name, data }));
                }
                name.clear();
                continue;
            }

            let (field, value) = line.split_once(':').unwrap_or((&line, ""));
            let value = value.strip_prefix(' ').unwrap_or(value);

            match field {
                // A line that begins with a colon. Within an event it says nothing.
                "" if id.is_none() && name.is_empty() && data.is_none() => {
                    return Ok(Some(Message::KeepAlive));
                }
                "id" => id = value.parse().ok(),
                "event" => value.clone_into(&mut name),
                "data" => match &mut data {
                    Some(data) => *data += &format!("\n{value}"),
                    None => data = Some(value.to_owned()),
                },
                _ => {}
            }
        }
        Ok(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(text: &str) -> Vec<Message> {
        let mut events = Events::new(text.as_bytes());
        std::iter::from_fn(|| events.next_message().unwrap()).collect()
    }

    fn event(id: Option<u64>, name: &str, data: &str) -> Message {
        Message::Event { id, name: name.to_owned(), data: data.to_owned() }
    }

    #[test]
    fn events_have_ids_names_and_data() {
        let text = "id: 1\nevent: started\ndata: {}\n\n: alive\n\n\
                    id:2\r\nevent:step\r\ndata:{\"a\": 1}\r\n\r\n\
                    event: result\ndata: x\ndata: y\n\n";

        let expected = [
            event(Some(1), "started", "{}"),
            Message::KeepAlive,
            event(Some(2), "step", "{\"a\": 1}"),
            event(None, "result", "x\ny"),
        ];
        assert_eq!(all(text), expected);
    }

    #[test]
    fn truncated_events_are_dropped() {
        let whole = "id: 1\nevent: started\ndata: {}\n\n";
        for end in 0..whole.len() {
            assert_eq!(all(&whole[..end]), [], "{end} bytes");
        }

        assert_eq!(
            all(&format!("{whole}id: 2\nevent: step\ndata: {{")),
            [event(Some(1), "started", "{}")]
        );
        assert!(Events::new(&b"data: \xff\n\n"[..]).next_message().is_err());
    }
}
