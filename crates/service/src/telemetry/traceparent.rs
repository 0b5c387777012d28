//! The header `traceparent` of W3C Trace Context: which trace a request belongs to.

use std::fmt;
use std::str::FromStr;

/// A caller's place in its trace. Ids are never all zero.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceParent {
    /// The id of the trace.
    pub trace_id: [u8; 16],
    /// The caller's span.
    pub parent_id: [u8; 8],
    /// Bit 0: the caller records the trace. The other bits are passed on.
    pub flags: u8,
}

/// An invalid header. The standard says to begin a new trace then, as if there were no header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "no traceparent: give VERSION-TRACE-PARENT-FLAGS as 2, 32, 16 and 2 small hexadecimal digits, ids not all zero"
)]
pub struct NotTraceParent;

impl TraceParent {
    /// Returns whether the caller records the trace.
    pub fn is_sampled(&self) -> bool {
        self.flags & 1 == 1
    }
}

/// Reads `N` bytes from exactly `2 * N` lower-case hexadecimal digits.
fn bytes<const N: usize>(text: &str) -> Option<[u8; N]> {
    let digit = |digit: u8| match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        _ => None,
    };
    if text.len() != 2 * N {
        return None;
    }

    let pairs = text.as_bytes().chunks_exact(2);
    let mut bytes = [0; N];
    for (byte, pair) in bytes.iter_mut().zip(pairs) {
        *byte = digit(pair[0])? << 4 | digit(pair[1])?;
    }
    Some(bytes)
}

fn parse(header: &str) -> Option<TraceParent> {
    let mut parts = header.trim_matches([' ', '\t']).split('-');
    let [version] = bytes(parts.next()?)?;
    let trace_id = bytes(parts.next()?)?;
    let parent_id = bytes(parts.next()?)?;
    let [flags] = bytes(parts.next()?)?;

    // Later versions may add parts; this one has none, and 255 is not a version.
    let has_more = parts.next().is_some();
    let is_known = version != 0xff && (version != 0 || !has_more);
    (is_known && trace_id != [0; 16] && parent_id != [0; 8]).then_some(TraceParent {
        trace_id,
        parent_id,
        flags,
    })
}

impl FromStr for TraceParent {
    type Err = NotTraceParent;
    fn from_str(header: &str) -> Result<Self, NotTraceParent> {
        parse(header).ok_or(NotTraceParent)
    }
}

impl fmt::Display for TraceParent {
    /// The header's value, in version 00.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hex = |f: &mut fmt::Formatter<'_>, bytes: &[u8]| {
            bytes.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
        };
        f.write_str("00-")?;
        hex(f, &self.trace_id)?;
        f.write_str("-")?;
        hex(f, &self.parent_id)?;
        write!(f, "-{:02x}", self.flags)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The example of the standard.
    const EXAMPLE: &str = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";

    #[test]
    fn the_standards_example_is_read_and_written() {
        let parent: TraceParent = EXAMPLE.parse().unwrap();
        assert_eq!((parent.trace_id[0], parent.trace_id[15]), (0x0a, 0x9c));
        assert_eq!((parent.parent_id[0], parent.parent_id[7]), (0xb7, 0x31));
        assert!(parent.is_sampled());
        assert_eq!(parent.to_string(), EXAMPLE);
    }

    #[test]
    fn what_may_differ_may_differ() {
        let rows = [
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-02", false),
            ("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-03", true),
            (" 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01\t", true),
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", true),
            ("cc-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-what-comes-later", true),
        ];
        for (header, is_sampled) in rows {
            let parent: TraceParent =
                header.parse().unwrap_or_else(|error| panic!("{header:?}: {error}"));
            assert_eq!(parent.is_sampled(), is_sampled, "{header:?}");
        }
    }

    #[test]
    fn what_is_no_header_is_refused() {
        let rows = [
            "",
            "00",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-00000000000000000000000000000000-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319cc-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-1",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
            "0-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00_0af7651916cd43dd8448eb211c80319c_b7ad6b7169203331_01",
            "00-ääääääääääääääää-b7ad6b7169203331-01",
        ];
        for header in rows {
            assert_eq!(header.parse::<TraceParent>(), Err(NotTraceParent), "{header:?}");
        }
    }
}
