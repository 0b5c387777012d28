//! The protocol between parent and worker: frames of a length (u32, little-endian) and a postcard
//! body.
//!
//! Both ends are the same binary, so no version is negotiated. Does no I/O.

use std::borrow::Cow;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::request::{EXCLUDED_BYTES_MAX, GRAMMAR_BYTES_MAX, PROMPT_BYTES_MAX};
use super::spec::Fault;
use super::{
    EngineCounts, EngineError, EngineSpec, Format, Generation, Progress, Request, Sampling,
    Thinking,
};

/// Longest body of a frame, in bytes: the longest prompt, grammar and excluded lines, and room for
/// the rest.
const FRAME_BYTES_MAX: usize =
    PROMPT_BYTES_MAX + GRAMMAR_BYTES_MAX + EXCLUDED_BYTES_MAX + (1 << 20);

/// Number of a turn; unique for the life of an engine. A request that is sent again gets a new one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct TurnId(pub(super) u64);

/// Number of a context of a worker; unique for the life of an engine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub(super) struct ContextId(pub(super) u32);

/// A frame from the parent to the worker, which ends when the connection closes.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum ToWorker<'a> {
    /// The first frame: the model to load, or the fixed text of a stub.
    Start { spec: Box<EngineSpec>, fault: Option<Fault>, stub_answer: Option<String> },
    /// Make a context of the model.
    Open { context: ContextId, spec: Box<EngineSpec> },
    /// Free a context; its turns get no answers.
    Close(ContextId),
    /// Generate a text.
    Turn(Turn<'a>),
    /// Drop this turn; it gets no answer.
    Cancel(TurnId),
}

/// A request on its way to the worker.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Turn<'a> {
    pub(super) id: TurnId,
    pub(super) context: ContextId,
    pub(super) group: u64,
    pub(super) space: u64,
    pub(super) prompt: Cow<'a, str>,
    pub(super) format: Cow<'a, Format>,
    pub(super) thinking: Thinking,
    pub(super) grammar: Option<Cow<'a, str>>,
    pub(super) excluded: Cow<'a, [Box<str>]>,
    pub(super) excluded_prefixes: Cow<'a, [Box<str>]>,
    pub(super) stop: Option<char>,
    pub(super) newline_ends: bool,
    pub(super) sampling: Sampling,
    pub(super) max_tokens: u32,
    pub(super) logprobs: bool,
    pub(super) ignore_end: bool,
    /// True if the turn is measured.
    pub(super) timed: bool,
    /// True if its progress is reported.
    pub(super) watched: bool,
    /// True if its answer comes with what was sent to the model.
    pub(super) with_sent: bool,
}

impl<'a> Turn<'a> {
    pub(super) fn new(id: TurnId, context: ContextId, request: &'a Request) -> Self {
        Self {
            id,
            context,
            group: request.group,
            space: request.space,
            prompt: Cow::Borrowed(&request.prompt),
            format: Cow::Borrowed(&request.format),
            thinking: request.thinking,
            grammar: request.grammar.as_deref().map(Cow::Borrowed),
            excluded: Cow::Borrowed(&request.excluded),
            excluded_prefixes: Cow::Borrowed(&request.excluded_prefixes),
            stop: request.stop,
            newline_ends: request.newline_ends,
            sampling: request.sampling,
            max_tokens: request.max_tokens,
            logprobs: request.logprobs,
            ignore_end: request.ignore_end,
            timed: false,
            watched: false,
            with_sent: false,
        }
    }

    pub(super) fn into_owned(self) -> Turn<'static> {
        Turn {
            prompt: Cow::Owned(self.prompt.into_owned()),
            format: Cow::Owned(self.format.into_owned()),
            grammar: self.grammar.map(|text| Cow::Owned(text.into_owned())),
            excluded: Cow::Owned(self.excluded.into_owned()),
            excluded_prefixes: Cow::Owned(self.excluded_prefixes.into_owned()),
            ..self
        }
    }
}

/// A frame from the worker to the parent.
#[derive(Debug, Serialize, Deserialize)]
pub(super) enum FromWorker {
    /// A context is ready: one token was decoded in it.
    Ready { context: ContextId, facts: Facts },
    /// A context cannot be made, or, without one, the model cannot be loaded and the worker ends.
    Refused { context: Option<ContextId>, error: EngineError },
    /// A turn is over.
    Done { id: TurnId, result: Result<Generation, EngineError>, timing: Option<Timing> },
    /// The progress of a watched turn; sent at most five times a second, and before its answer.
    Progress { id: TurnId, progress: Progress },
    /// Counts; sent at least every 100 ms while there are turns, and before the answers that it
    /// counts.
    Counts { context: ContextId, counts: EngineCounts },
}

/// The durations of a turn's phases, in microseconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[expect(clippy::struct_field_names, reason = "units stand in names")]
pub(super) struct Timing {
    /// Time that the turn waited for a sequence in the worker.
    pub(super) queue_us: u64,
    /// Time from then until the first token was chosen.
    pub(super) prefill_us: u64,
    /// Time from the first token until the last.
    pub(super) decode_us: u64,
}

/// What the worker reports once the model is loaded.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(super) struct Facts {
    pub(super) model: String,
    pub(super) device: String,
    pub(super) context_tokens: u32,
    pub(super) turn_tokens_max: u32,
    /// What its user should know about the engine, in words.
    pub(super) notes: Vec<String>,
}

/// A peer that does not speak this protocol.
#[derive(Debug, thiserror::Error)]
#[error("malformed frame on the engine's socket: {0}")]
pub(super) struct WireError(String);

/// Appends a frame to `out`.
pub(super) fn encode(frame: &impl Serialize, out: &mut Vec<u8>) -> Result<(), WireError> {
    let start = out.len();
    // Room for the length, which is only known once the body is written.
    out.extend([0; 4]);
    *out = postcard::to_extend(frame, std::mem::take(out)).map_err(|e| WireError(e.to_string()))?;

    let length = out.len() - start - 4;
    let head = u32::try_from(length).ok().filter(|_| length <= FRAME_BYTES_MAX);
    let head = head.ok_or_else(|| WireError(format!("{length} bytes")))?;
    out[start..start + 4].copy_from_slice(&head.to_le_bytes());
    Ok(())
}

/// Splits a stream of bytes into frames.
#[derive(Debug, Default)]
pub(super) struct Frames {
    bytes: Vec<u8>,
    at: usize,
}

impl Frames {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        // Frames that were read are removed first, so that the buffer never outgrows the longest
        // backlog.
        self.bytes.drain(..std::mem::take(&mut self.at));
        self.bytes.extend_from_slice(bytes);
    }

    /// The next complete frame.
    pub(super) fn next<T: DeserializeOwned>(&mut self) -> Result<Option<T>, WireError> {
        let Some((head, rest)) = self.bytes[self.at..].split_first_chunk::<4>() else {
            return Ok(None);
        };

        let length = u32::from_le_bytes(*head) as usize;
        if length > FRAME_BYTES_MAX {
            return Err(WireError(format!("{length} bytes")));
        }

        let Some(body) = rest.get(..length) else { return Ok(None) };
        let frame = postcard::from_bytes(body).map_err(|e| WireError(e.to_string()))?;
        self.at += 4 + length;
        Ok(Some(frame))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frames_survive_being_cut_anywhere() {
        let request = Request {
            prompt: "née".to_owned(),
            format: Format::Chat { system: Some("be brief".to_owned()) },
            thinking: Thinking::AtMost(9),
            grammar: Some("root ::= \"a\"".into()),
            excluded: vec!["é".into(), "".into()],
            excluded_prefixes: vec!["move 8".into()],
            stop: Some('?'),
            newline_ends: true,
            ignore_end: false,
            group: 9,
            space: 2,
            sampling: Sampling { temperature: 0.5, top_p: 0.9, seed: u64::MAX },
            max_tokens: 7,
            logprobs: true,
        };

        let mut bytes = Vec::new();

        let spec = Box::new(EngineSpec::default());
        encode(
            &ToWorker::Start {
                spec,
                fault: Some(Fault::HangOn("x".to_owned())),
                stub_answer: None,
            },
            &mut bytes,
        )
        .expect("encoded");
        encode(&ToWorker::Turn(Turn::new(TurnId(3), ContextId(5), &request)), &mut bytes)
            .expect("encoded");

        for cut in 0..bytes.len() {
            let mut frames = Frames::default();
            let mut seen = Vec::new();
            for part in [&bytes[..cut], &bytes[cut..]] {
                frames.push(part);
                while let Some(frame) = frames.next::<ToWorker<'static>>().expect("well-formed") {
                    seen.push(frame);
                }
            }

            let [ToWorker::Start { spec, fault: Some(_), stub_answer: None }, ToWorker::Turn(turn)] =
                &seen[..]
            else {
                panic!("{seen:?}")
            };

            assert_eq!(**spec, EngineSpec::default());
            assert_eq!((turn.id, turn.group, turn.space, &*turn.prompt), (TurnId(3), 9, 2, "née"));
            assert_eq!(turn.context, ContextId(5));
            assert_eq!((turn.sampling, turn.thinking), (request.sampling, Thinking::AtMost(9)));
            assert_eq!((&*turn.format, &*turn.excluded), (&request.format, &*request.excluded));
            assert_eq!(
                (&*turn.excluded_prefixes, turn.stop),
                (&*request.excluded_prefixes, Some('?'))
            );
        }
    }

    #[test]
    fn junk_is_an_error_and_allocates_nothing() {
        let mut frames = Frames::default();
        frames.push(&[0xFF; 16]);
        assert!(frames.next::<FromWorker>().is_err());
        let mut frames = Frames::default();
        frames.push(&[2, 0, 0, 0, 0xEE, 0xEE]);
        assert!(frames.next::<FromWorker>().is_err());
    }
}
