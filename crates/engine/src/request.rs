//! Requests and generations.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::EngineError;

/// How the next token is chosen from the logits: grammar, then temperature, then top-p, then a
/// draw.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Sampling {
    /// 0 selects the likeliest token; otherwise logits are divided by it. 0..=100.
    pub temperature: f32,
    /// Draw among the likeliest tokens that together have this probability; above 0 and at most 1.
    pub top_p: f32,
    /// Seed of this request's random numbers. The same seed and logits give the same tokens.
    pub seed: u64,
}

impl Sampling {
    /// The likeliest token, always.
    pub const GREEDY: Self = Self { temperature: 0.0, top_p: 1.0, seed: 0 };
}

/// How a prompt is presented to the model.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Format {
    /// Verbatim: the model continues it.
    #[default]
    Raw,
    /// A user message in the chat template of the model's file: the model answers it.
    Chat {
        /// The system message.
        system: Option<String>,
    },
}

/// How much the model of a chat may think before its answer. How it thinks is recognised by its
/// template; a model whose template has no thinking is asked as it is.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Thinking {
    /// As the model and its template do. Where the template opens the thinking, a grammar begins
    /// after it. Thinking counts towards `max_tokens`.
    #[default]
    AsModel,
    /// Not at all: by the template's own variable, else by a block that is closed at once.
    Off,
    /// For at most this many tokens, which do not count towards `max_tokens`. Then its end is
    /// written for the model, and the answer begins.
    AtMost(u32),
}

/// One text to continue or to answer.
#[derive(Debug, Clone, PartialEq)]
pub struct Request {
    /// The text before the generated one. Special tokens in it are recognised, and a begin-of-text
    /// token is added if the model asks for one.
    pub prompt: String,
    /// How the prompt is presented: as a text to continue, or as a message to answer.
    pub format: Format,
    /// How much the model may think; only in a chat.
    pub thinking: Thinking,
    /// A GBNF grammar with a rule `root` that constrains the generated text. The most recently used
    /// grammars stay compiled, by their text. Never use one that a client sent.
    pub grammar: Option<Arc<str>>,
    /// Lines that the text must not end with: what follows its last newline equals none of them.
    /// Requires a grammar; at most [`EXCLUDED_LINES_MAX`] lines, of [`EXCLUDED_BYTES_MAX`] bytes in
    /// total.
    pub excluded: Vec<Box<str>>,
    /// Prefixes that the text's last line must not have; they count towards the same limits.
    pub excluded_prefixes: Vec<Box<str>>,
    /// Ends the text with the first token that contains this character, even if the grammar
    /// requires more. ASCII; requires a grammar.
    pub stop: Option<char>,
    /// True if a newline ends the text where the grammar permits the end and no newline: models
    /// that write lines end them with newlines. Without a grammar it has no effect.
    pub newline_ends: bool,
    /// How tokens are sampled.
    pub sampling: Sampling,
    /// Most tokens to generate, at least 1; an end-of-text token counts.
    pub max_tokens: u32,
    /// True if log-probabilities are returned.
    pub logprobs: bool,
    /// Never end the text before `max_tokens`: for measurements that need texts of equal length.
    pub ignore_end: bool,
    /// When more requests wait than there are sequences, admission is round-robin over groups.
    pub group: u64,
    /// Requests of different spaces share no cached prefix, as if each space had the engine for
    /// itself: what one has computed must not make another one cheaper where costs are compared.
    pub space: u64,
}

/// Longest prompt that is sent to a worker, including its system message, in bytes.
pub(super) const PROMPT_BYTES_MAX: usize = 16 << 20;
/// Longest grammar, in bytes.
pub(super) const GRAMMAR_BYTES_MAX: usize = 256 << 10;
/// Most excluded lines of a request.
pub const EXCLUDED_LINES_MAX: usize = 4096;
/// Most bytes of a request's excluded lines in total.
pub const EXCLUDED_BYTES_MAX: usize = 256 << 10;
/// Deepest nesting of parentheses in a grammar, because parsers recurse.
const GRAMMAR_DEPTH_MAX: usize = 128;

impl Request {
    pub(super) fn check(&self) -> Result<(), EngineError> {
        let bad = |detail: String| Err(EngineError::BadRequest { detail });
        if self.max_tokens == 0 {
            return bad("max_tokens is 0, ask for at least 1".to_owned());
        }

        let Sampling { temperature, top_p, .. } = self.sampling;
        // Both ranges are negated tests, which refuse NaN as well.
        if !(0.0..=100.0).contains(&temperature) {
            return bad(format!("temperature is {temperature}, set it to 0..=100"));
        }
        if !(top_p > 0.0 && top_p <= 1.0) {
            return bad(format!("top_p is {top_p}, set it above 0 and to at most 1"));
        }

        let system =
            if let Format::Chat { system: Some(system) } = &self.format { system.len() } else { 0 };
        let bytes = self.prompt.len().saturating_add(system);
        if bytes > PROMPT_BYTES_MAX {
            return bad(format!(
                "the prompt has {bytes} bytes, shorten it to at most {PROMPT_BYTES_MAX}"
            ));
        }

        let excluded = self.excluded.iter().chain(&self.excluded_prefixes);
        let (lines, bytes) =
            (excluded.clone().count(), excluded.map(|line| line.len()).sum::<usize>());
        if lines > 0 && self.grammar.is_none() {
            return bad(format!(
                "{lines} lines are excluded, but there is no grammar to take them from: set one"
            ));
        }
        if lines > EXCLUDED_LINES_MAX {
            return bad(format!(
                "{lines} lines are excluded, exclude at most {EXCLUDED_LINES_MAX}"
            ));
        }
        if bytes > EXCLUDED_BYTES_MAX {
            return bad(format!(
                "the excluded lines have {bytes} bytes, exclude at most {EXCLUDED_BYTES_MAX}"
            ));
        }

        if let Some(stop) = self.stop {
            if self.grammar.is_none() {
                return bad(format!(
                    "the text shall stop at {stop:?}, but there is no grammar: set one"
                ));
            }
            if !stop.is_ascii() {
                return bad(format!("the text shall stop at {stop:?}, which is not ASCII"));
            }
        }

        self.grammar.as_deref().map_or(Ok(()), check_grammar)
    }
}

/// Refuses grammars that are too large or nested too deep to parse.
fn check_grammar(text: &str) -> Result<(), EngineError> {
    let bad = |detail: String| Err(EngineError::Grammar { detail });
    if text.len() > GRAMMAR_BYTES_MAX {
        return bad(format!(
            "it has {} bytes, shorten it to at most {GRAMMAR_BYTES_MAX}",
            text.len()
        ));
    }

    let mut depth = 0_usize;
    // The quote, bracket or line end that closes the current literal, class or comment.
    let mut inside: Option<u8> = None;
    let mut bytes = text.bytes();

    while let Some(byte) = bytes.next() {
        match (inside, byte) {
            (_, 0) => return bad("it has a NUL byte".to_owned()),
            // An escaped character closes nothing.
            (Some(b'"' | b']'), b'\\') => drop(bytes.next()),
            (Some(end), _) if byte == end => inside = None,
            (None, b'"') => inside = Some(b'"'),
            (None, b'[') => inside = Some(b']'),
            (None, b'#') => inside = Some(b'\n'),
            (None, b'(') => depth += 1,
            (None, b')') => depth = depth.saturating_sub(1),
            (Some(_) | None, _) => {}
        }
        if depth > GRAMMAR_DEPTH_MAX {
            return bad(format!("parentheses are nested deeper than {GRAMMAR_DEPTH_MAX}"));
        }
    }
    Ok(())
}

/// Why a generation ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum Finish {
    /// The model generated an end-of-text token.
    EndOfText,
    /// `max_tokens` were generated.
    Length,
    /// The last token has the character to stop at.
    Stopped,
    /// Every text that the grammar permits, or that it permits after the tokens generated so far,
    /// ends with an excluded line. Detected before the first token, unless the rest of a text
    /// depends on its earlier lines.
    Exhausted,
}

/// What a model was sent, as it saw it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sent {
    /// The text of the prompt's tokens: with chat template and special tokens; invalid UTF-8 is
    /// replaced by U+FFFD.
    pub text: String,
    /// The prompt's tokens, including a begin-of-text token.
    pub tokens: Vec<u32>,
}

/// A generated text.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Generation {
    /// The text; invalid UTF-8 is replaced by U+FFFD.
    pub text: String,
    /// The generated tokens, including an end-of-text token.
    pub tokens: Vec<u32>,
    /// ln p of each of `tokens` under the model at temperature 1, before the grammar; empty unless
    /// asked for.
    pub logprobs: Vec<f32>,
    /// Tokens of the prompt, including a begin-of-text token.
    pub prompt_tokens: u32,
    /// Tokens of the prompt that were in the KV cache.
    pub cached_tokens: u32,
    /// What the model thought before `text`, without its marks.
    pub thought: String,
    /// Tokens of the thinking, its end included; none of them is in `tokens`.
    pub thought_tokens: u32,
    /// Why it ended.
    pub finish: Finish,
    /// What was sent, if the caller wants to know.
    pub sent: Option<Box<Sent>>,
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> Request {
        Request {
            prompt: String::new(),
            format: Format::Raw,
            thinking: Thinking::AsModel,
            grammar: None,
            excluded: Vec::new(),
            excluded_prefixes: Vec::new(),
            stop: None,
            newline_ends: false,
            sampling: Sampling::GREEDY,
            max_tokens: 1,
            logprobs: false,
            ignore_end: false,
            group: 0,
            space: 0,
        }
    }

    #[test]
    fn sampling_parameters_out_of_range_are_refused() {
        let sampling = |temperature, top_p| Sampling { temperature, top_p, seed: 0 };
        let wrong = [
            Request { max_tokens: 0, ..request() },
            Request { sampling: sampling(-1.0, 1.0), ..request() },
            Request { sampling: sampling(f32::NAN, 1.0), ..request() },
            Request { sampling: sampling(1.0, 0.0), ..request() },
            Request { sampling: sampling(1.0, f32::NAN), ..request() },
        ];

        assert_eq!(request().check(), Ok(()));
        for request in wrong {
            assert!(matches!(request.check(), Err(EngineError::BadRequest { .. })), "{request:?}");
        }
    }

    #[test]
    fn the_system_message_counts_towards_the_prompt() {
        let chat = |bytes| Format::Chat { system: Some("x".repeat(bytes)) };
        let prompt = "y".repeat(PROMPT_BYTES_MAX - 10);
        assert_eq!(
            Request { prompt: prompt.clone(), format: chat(10), ..request() }.check(),
            Ok(())
        );

        let long = Request { prompt, format: chat(11), ..request() };
        assert!(matches!(long.check(), Err(EngineError::BadRequest { .. })));
    }

    #[test]
    fn excluded_lines_need_a_grammar_and_are_bounded() {
        let lines = |count: usize, bytes: usize| vec!["x".repeat(bytes).into_boxed_str(); count];
        let held = Request { grammar: Some("root ::= \"a\"".into()), ..request() };
        for (excluded, is_taken) in [
            (lines(EXCLUDED_LINES_MAX, EXCLUDED_BYTES_MAX / EXCLUDED_LINES_MAX), true),
            (lines(EXCLUDED_LINES_MAX + 1, 1), false),
            (lines(1, EXCLUDED_BYTES_MAX + 1), false),
        ] {
            let checked = Request { excluded, ..held.clone() }.check();
            assert_eq!(checked.is_ok(), is_taken, "{checked:?}");
        }

        let prefixed = Request { excluded_prefixes: lines(EXCLUDED_LINES_MAX, 1), ..held.clone() };
        assert_eq!(prefixed.check(), Ok(()));
        assert!(Request { excluded: lines(1, 1), ..prefixed }.check().is_err(), "both count");

        let free = Request { excluded: lines(1, 1), ..request() }.check().expect_err("no grammar");
        assert!(free.to_string().contains("no grammar"), "{free}");
    }

    #[test]
    fn a_character_to_stop_at_is_ascii_and_needs_a_grammar() {
        let held = Request { grammar: Some("root ::= \"a\"".into()), stop: Some('?'), ..request() };
        assert_eq!(held.check(), Ok(()));
        for wrong in
            [Request { grammar: None, ..held.clone() }, Request { stop: Some('é'), ..held }]
        {
            assert!(matches!(wrong.check(), Err(EngineError::BadRequest { .. })), "{wrong:?}");
        }
    }

    #[test]
    fn a_grammar_that_nests_too_deep_is_refused() {
        let grammar = format!("root ::= {}\"a\"{}", "(".repeat(20_000), ")".repeat(20_000));
        let request = Request { grammar: Some(grammar.into()), ..request() };
        assert!(matches!(request.check(), Err(EngineError::Grammar { .. })));
    }

    #[test]
    fn parentheses_in_literals_classes_and_comments_do_not_nest() {
        let rule = r#"rule ::= "(\"(" [(\]] # ((
"#;
        let grammar = format!("root ::= rule\n{}", rule.repeat(200));
        let request = Request { grammar: Some(grammar.into()), ..request() };
        assert_eq!(request.check(), Ok(()));
    }
}
