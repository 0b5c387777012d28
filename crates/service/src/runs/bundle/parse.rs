//! Reads a bundle, and recomputes its chain record by record. Nothing in it is trusted.

use serde::Deserialize;
use sha2::{Digest as _, Sha256};

use super::format::{BundleError, End, FORMAT, Head, VERSION, spec_start};
use prime_journal::{ChainHash, Head as ChainHead, Segment};

/// Bytes of events of a segment.
const SEGMENT_BYTES: usize = 1 << 20;
/// How the formats begin that a bundle may have been compressed with.
const COMPRESSED: [(&[u8], &str); 5] = [
    (b"\x1f\x8b", "gzip"),
    (b"\x28\xb5\x2f\xfd", "zstd"),
    (b"PK\x03\x04", "zip"),
    (b"BZh", "bzip2"),
    (b"\xfd7zXZ", "xz"),
];

/// A bundle whose chain holds.
#[derive(Debug)]
pub(super) struct Parsed {
    pub head: Head,
    /// The spec, word for word.
    pub spec: String,
    /// All events.
    pub segments: Vec<Segment>,
    /// The chain after the last of them.
    pub last: ChainHead,
}

/// The first line, as far as every version has it.
#[derive(Deserialize)]
struct AnyHead {
    bundle: String,
    version: u64,
}

fn no_bundle(reason: impl Into<String>) -> BundleError {
    BundleError::NoBundle(reason.into())
}

fn head(line: &[u8]) -> Result<Head, BundleError> {
    if let Some((_, name)) = COMPRESSED.iter().find(|(start, _)| line.starts_with(start)) {
        return Err(no_bundle(format!("it is compressed ({name}), so decompress it first")));
    }
    let any: AnyHead = serde_json::from_slice(line)
        .map_err(|error| no_bundle(format!("its first line is no head ({error})")))?;
    if any.bundle != FORMAT {
        return Err(no_bundle(format!("it calls itself {:?}, not {FORMAT:?}", any.bundle)));
    }
    if any.version > VERSION.into() {
        return Err(BundleError::Newer(any.version));
    }
    serde_json::from_slice(line).map_err(|error| BundleError::Head(error.to_string()))
}

/// The lines of a bundle, each without its newline.
struct Lines<'b> {
    rest: &'b [u8],
    read: Sha256,
}

impl<'b> Lines<'b> {
    /// The next whole line, which is not yet part of the digest.
    fn peek(&self) -> Option<&'b [u8]> {
        let end = memchr::memchr(b'\n', self.rest)?;
        Some(&self.rest[..end])
    }

    fn next(&mut self) -> Option<&'b [u8]> {
        let line = self.peek()?;
        let (taken, rest) = self.rest.split_at(line.len() + 1);
        self.read.update(taken);
        self.rest = rest;
        Some(line)
    }
}

/// The content of a record's line, after its number and the hash that it claims.
fn record(line: &[u8], seq: u64) -> Result<(&[u8], &str), BundleError> {
    let broken = |reason: &str| BundleError::Broken { record: seq, reason: reason.to_owned() };
    let number = format!(r#"{{"seq":{seq},"chain":""#);
    let rest = line
        .strip_prefix(number.as_bytes())
        .ok_or_else(|| broken("its line does not begin with this number and a hash"))?;
    let (hash, rest) = rest.split_at_checked(64).ok_or_else(|| broken("it has no hash"))?;
    let hash = std::str::from_utf8(hash).map_err(|_| broken("it has no hash"))?;
    let rest = rest.strip_prefix(b"\",").ok_or_else(|| broken("it has no content"))?;
    Ok((rest, hash))
}

/// Reads a bundle whose records have at most `record_bytes_max` bytes each.
///
/// # Errors
/// The first record at which it is wrong.
pub(super) fn parse(bundle: &[u8], record_bytes_max: usize) -> Result<Parsed, BundleError> {
    let mut lines = Lines { rest: bundle, read: Sha256::new() };
    let first = lines.next().ok_or_else(|| head(bundle).err().unwrap_or_else(cut_head))?;
    let head = head(first)?;
    let cut_off = |record| BundleError::CutOff { record, of: head.events };

    let line = lines.next().ok_or_else(cut_head)?;
    let fits = |record, line: &[u8]| {
        let (bytes, limit) = (line.len(), record_bytes_max);
        if bytes <= limit { Ok(()) } else { Err(BundleError::TooLarge { record, bytes, limit }) }
    };
    fits(0, line)?;
    let (content, hash) = record(line, 0)?;
    let no_spec = || BundleError::Broken {
        record: 0,
        reason: "it is not the spec of the run that the head names".to_owned(),
    };
    let spec = content
        .strip_prefix(spec_start(&head.run).as_bytes())
        .and_then(|spec| spec.strip_suffix(b"}"))
        .and_then(|spec| std::str::from_utf8(spec).ok())
        .ok_or_else(no_spec)?;
    let mut last = ChainHead::genesis(spec);
    check(last, hash)?;

    let mut segments = Vec::new();
    let mut pending = Segment::following(last, std::iter::empty::<&[u8]>());
    while last.seq < head.events {
        let seq = last.seq + 1;
        let line = lines.next().ok_or_else(|| cut_off(last.seq))?;
        fits(seq, line)?;
        let (content, hash) = record(line, seq)?;
        let event = [b"{", content].concat();
        last = ChainHead { seq, hash: last.hash.then(&event) };
        check(last, hash)?;

        pending.count += 1;
        pending.hash = last.hash;
        pending.body.extend_from_slice(&event);
        pending.body.push(b'\n');
        if pending.body.len() >= SEGMENT_BYTES {
            let next = Segment::following(last, std::iter::empty::<&[u8]>());
            segments.push(std::mem::replace(&mut pending, next));
        }
    }
    segments.extend(Some(pending).filter(|pending| pending.count > 0));

    let digest = ChainHash(lines.read.clone().finalize().into()).to_string();
    let end = lines.peek().ok_or_else(|| cut_off(last.seq))?;
    let end: End = serde_json::from_slice(end).map_err(|_| {
        BundleError::Head(format!("it says {} events, and more lines follow", head.events))
    })?;
    if end.end != FORMAT || end.sha256 != digest {
        return Err(BundleError::Head("the digest at the end is of other lines".to_owned()));
    }
    lines.next();
    if !lines.rest.is_empty() {
        return Err(no_bundle("more follows its end"));
    }
    if head.chain != last.hash.to_string() {
        return Err(BundleError::Head("its chain is not that of the last record".to_owned()));
    }
    let spec = spec.to_owned();
    Ok(Parsed { head, spec, segments, last })
}

fn cut_head() -> BundleError {
    no_bundle("it ends before its first record")
}

/// Compares the recomputed chain with the hash in a record.
fn check(last: ChainHead, hash: &str) -> Result<(), BundleError> {
    if last.hash.to_string() == hash {
        return Ok(());
    }
    let reason = format!("the chain leads to {}, and {hash} is written there", last.hash);
    Err(BundleError::Broken { record: last.seq, reason })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::runs::bundle::format::line_start;

    /// A bundle of two events, whose hashes and digest were computed with Python's hashlib.
    const BUNDLE: &str = include_str!("testdata/bundle.jsonl");

    fn refused(text: &str) -> String {
        parse(text.as_bytes(), 1 << 20).unwrap_err().to_string()
    }

    /// The bundle with a right digest after a change.
    fn sealed(text: &str) -> String {
        let body: String = text.split_inclusive('\n').take(4).collect();
        let digest = ChainHash(Sha256::digest(&body).into());
        format!("{body}{{\"end\":\"{FORMAT}\",\"sha256\":\"{digest}\"}}\n")
    }

    #[test]
    fn a_whole_bundle_is_read_and_its_chain_recomputed() {
        let parsed = parse(BUNDLE.as_bytes(), 1 << 20).unwrap();
        assert_eq!(parsed.spec, r#"{"task":"x"}"#);
        assert_eq!(parsed.last.seq, 2);
        let events: Vec<_> = parsed.segments.iter().flat_map(Segment::events).collect();
        assert_eq!(events[1], (2, br#"{"event":"step","action":"a"}"#.as_slice()));
        assert_eq!(line_start(2, parsed.last.hash), &BUNDLE.lines().nth(3).unwrap()[..84]);
    }

    #[test]
    fn a_record_that_is_too_large_is_named() {
        let longest = BUNDLE.lines().skip(1).take(3).map(str::len).max().unwrap();
        assert!(parse(BUNDLE.as_bytes(), longest).is_ok());
        let error = parse(BUNDLE.as_bytes(), longest - 1).unwrap_err().to_string();
        assert!(
            error.contains(&format!("has {longest} bytes; at most {}", longest - 1)),
            "{error}"
        );
    }

    #[test]
    fn a_changed_record_is_named() {
        let changed = |from: &str, to: &str| sealed(&BUNDLE.replacen(from, to, 1));
        let cases = [
            (changed(r#""action":"a""#, r#""action":"b""#), "record 2 of the bundle is broken"),
            (changed(r#""task":"x""#, r#""task":"y""#), "record 0 of the bundle is broken"),
            (changed(r#"{"seq":1,"#, r#"{"seq":3,"#), "record 1 of the bundle is broken"),
            (changed(r#""run":"run_1","spec""#, r#""run":"run_2","spec""#), "record 0"),
            (changed(r#""events":2"#, r#""events":1"#), "more lines follow"),
            (changed(r#""node":"n""#, r#""node":1"#), "the head of the bundle is wrong"),
        ];
        for (text, expected) in cases {
            let error = refused(&text);
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let resumed = BUNDLE.replacen(r#""resumed":0"#, r#""resumed":1"#, 1);
        assert!(refused(&resumed).contains("the digest at the end is of other lines"));
    }

    #[test]
    fn what_is_cut_off_newer_compressed_or_something_else_is_said() {
        let lines: Vec<_> = BUNDLE.split_inclusive('\n').collect();
        for (text, expected) in [
            (lines[..3].concat(), "ends after record 1 of 2: it was cut off"),
            (lines[..4].concat(), "ends after record 2 of 2: it was cut off"),
            (BUNDLE.trim_end().to_owned(), "ends after record 2 of 2: it was cut off"),
            (lines[..1].concat(), "it ends before its first record"),
            (String::new(), "no bundle of a run"),
            ("hello\n".to_owned(), "its first line is no head"),
            ("{\"bundle\":\"x\",\"version\":1}\n".to_owned(), "it calls itself \"x\""),
            (BUNDLE.replace("\"version\":1", "\"version\":2"), "version 2, and this program reads"),
            (format!("{BUNDLE}\n"), "more follows its end"),
        ] {
            let error = refused(&text);
            assert!(error.contains(expected), "{expected}: {error}");
        }
        let deep = format!("{{\"bundle\":{}\n", "[".repeat(1 << 20));
        assert!(refused(&deep).contains("its first line is no head"));
        for bomb in [&b"\x1f\x8b\x08\x00rest"[..], b"PK\x03\x04rest", b"\x28\xb5\x2f\xfdrest"] {
            let error = parse(bomb, 1 << 20).unwrap_err().to_string();
            assert!(error.contains("decompress it first"), "{error}");
        }
    }
}
