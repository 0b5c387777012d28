//! A streamed answer, put together from its parts as if it had come at once. Pure.

use serde_json::{Map, Value, json};

use super::response::{ResponseError, message};
use crate::written::{Hearer, Written};

/// Maximum parts of an answer: this many for each token that it may have, and [`PARTS_BEYOND`]
/// more. A server that sends more does not stop where it was told to.
const PARTS_PER_TOKEN: u64 = 8;
const PARTS_BEYOND: u64 = 256;

/// The parts so far.
#[derive(Debug, Default)]
pub(super) struct Streamed {
    /// What has arrived of an unfinished line.
    line: Vec<u8>,
    is_chat: bool,
    has_choice: bool,
    is_done: bool,
    content: String,
    reasoning: String,
    /// Entries of the lists that the parts continue, by their path in the choice.
    lists: Map<String, Value>,
    finish_reason: Value,
    usage: Value,
    model: Value,
    /// Parts that have a text.
    parts: u64,
    parts_max: Option<u64>,
}

/// The lists of a choice that the parts continue.
const LISTS: [&str; 4] =
    ["/logprobs/content", "/logprobs/token_logprobs", "/logprobs/top_logprobs", "/token_ids"];

impl Streamed {
    /// An answer of at most this many tokens, if that is known.
    pub fn new(is_chat: bool, tokens_max: Option<u64>) -> Self {
        let parts_max = tokens_max
            .map(|most| most.saturating_mul(PARTS_PER_TOKEN).saturating_add(PARTS_BEYOND));
        Self { is_chat, parts_max, ..Self::default() }
    }

    /// Returns whether the server has said that this is all.
    pub fn is_done(&self) -> bool {
        self.is_done
    }

    /// Tokens that were certainly written, because each part has at least one.
    pub fn tokens(&self) -> u64 {
        self.parts.min(self.parts_max.unwrap_or(u64::MAX))
    }

    /// Takes the next bytes of the body.
    ///
    /// # Errors
    /// The bytes are not events of an answer, or there are too many of them.
    pub fn push(&mut self, bytes: &[u8], hearer: Option<&Hearer>) -> Result<(), ResponseError> {
        let mut rest = bytes;
        while let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            self.line.extend_from_slice(&rest[..end]);
            rest = &rest[end + 1..];
            let line = std::mem::take(&mut self.line);
            self.take(&line, hearer)?;
        }
        self.line.extend_from_slice(rest);
        Ok(())
    }

    fn take(&mut self, line: &[u8], hearer: Option<&Hearer>) -> Result<(), ResponseError> {
        let line = line.trim_ascii();
        // Other fields and comments carry nothing of an answer.
        let Some(data) = line.strip_prefix(b"data:").map(<[u8]>::trim_ascii) else {
            // A server that fails may fall back to plain JSON.
            return match serde_json::from_slice::<Value>(line) {
                Ok(value) => self.part(&value, hearer),
                Err(_) => Ok(()),
            };
        };
        if data == b"[DONE]" {
            self.is_done = true;
            return Ok(());
        }
        let part: Value =
            serde_json::from_slice(data).map_err(|error| ResponseError::NotJson(error.column()))?;
        self.part(&part, hearer)
    }

    fn part(&mut self, part: &Value, hearer: Option<&Hearer>) -> Result<(), ResponseError> {
        if let Some(error) = part.get("error").filter(|error| !error.is_null()) {
            return Err(ResponseError::Error(message(error)));
        }
        if part["usage"].is_object() {
            self.usage = part["usage"].clone();
        }
        if part["model"].is_string() {
            self.model = part["model"].clone();
        }
        let Some(choice) = part.pointer("/choices/0") else { return Ok(()) };
        self.has_choice = true;

        if !choice["finish_reason"].is_null() {
            self.finish_reason = choice["finish_reason"].clone();
            // Some servers close without `[DONE]`; what is left is the usage.
        }
        for place in LISTS {
            let Some(Value::Array(more)) = choice.pointer(place) else { continue };
            let list = self.lists.entry(place).or_insert_with(|| json!([]));
            list.as_array_mut().into_iter().for_each(|list| list.extend(more.iter().cloned()));
        }

        // A server that does not stream sends a whole message instead of a part.
        let message = [choice.get("delta"), choice.get("message")].into_iter().flatten().next();
        let message = message.unwrap_or(choice);
        let text = |names: &[&str]| names.iter().find_map(|name| message[*name].as_str());
        let thought = text(&["reasoning_content", "reasoning"]).unwrap_or_default();
        let said = text(&["content", "text"]).unwrap_or_default();

        self.reasoning.push_str(thought);
        self.content.push_str(said);
        if let Some(hearer) = hearer {
            if !thought.is_empty() {
                hearer.tell(Written::Thought(thought));
            }
            if !said.is_empty() {
                hearer.tell(Written::Text(said));
            }
        }

        self.parts += u64::from(!thought.is_empty() || !said.is_empty());
        match self.parts_max {
            Some(most) if self.parts > most => Err(ResponseError::Endless(self.parts)),
            _ => Ok(()),
        }
    }

    /// The answer as it would have come at once.
    ///
    /// # Errors
    /// The answer has broken off, or there is none.
    pub fn into_answer(mut self) -> Result<Value, ResponseError> {
        // A line without its end may be the last one.
        let line = std::mem::take(&mut self.line);
        self.take(&line, None)?;

        if !self.has_choice {
            return Err(if self.is_done { ResponseError::NoChoice } else { ResponseError::Empty });
        }
        if !self.is_done && self.finish_reason.is_null() {
            return Err(ResponseError::HalfStream(self.tokens()));
        }

        let mut choice = json!({ "finish_reason": self.finish_reason });
        if self.is_chat {
            // A missing content is a different finding from an empty one.
            let has_content = !self.content.is_empty() || self.reasoning.is_empty();
            choice["message"] = json!({
                "content": has_content.then_some(self.content),
                "reasoning_content": self.reasoning,
            });
        } else {
            choice["text"] = self.content.into();
        }
        for (place, list) in self.lists {
            let mut at = &mut choice;
            for name in place.trim_start_matches('/').split('/') {
                at = &mut at[name];
            }
            *at = list;
        }
        Ok(json!({ "choices": [choice], "usage": self.usage, "model": self.model }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(events: &str, tokens_max: Option<u64>) -> Result<Value, ResponseError> {
        // The answer is the same however the bytes are cut.
        let mut answers = [1, 7, events.len().max(1)].map(|size| {
            let mut streamed = Streamed::new(true, tokens_max);
            let pushed =
                events.as_bytes().chunks(size).try_for_each(|part| streamed.push(part, None));
            pushed.and_then(|()| streamed.into_answer())
        });
        assert!(answers.windows(2).all(|two| two[0] == two[1]), "{answers:?}");
        std::mem::replace(&mut answers[0], Ok(Value::Null))
    }

    #[test]
    fn parts_make_the_whole_answer() {
        let events = concat!(
            ": keep-alive\n\nevent: message\n",
            "data: {\"model\": \"m\", \"choices\": [{\"delta\": {\"role\": \"assistant\"}}]}\n\n",
            "data: {\"choices\": [{\"delta\": {\"reasoning_content\": \"h\"}}]}\r\n\r\n",
            "data: {\"choices\": [{\"delta\": {\"reasoning\": \"m\"}}]}\n\n",
            "data: {\"choices\": [{\"delta\": {\"content\": \"mö\"}, \"token_ids\": [4], ",
            "\"logprobs\": {\"content\": [{\"logprob\": -0.5}]}}]}\n\n",
            "data: {\"choices\": [{\"delta\": {\"content\": \"ve\"}, \"token_ids\": [5, 6], ",
            "\"logprobs\": {\"content\": [{\"logprob\": -1.5}]}, ",
            "\"finish_reason\": \"stop\"}]}\n\n",
            "data: {\"choices\": [], \"usage\": {\"prompt_tokens\": 3}}\n\ndata: [DONE]\n\n",
        );
        let expected = json!({
            "choices": [{
                "finish_reason": "stop",
                "message": {"content": "möve", "reasoning_content": "hm"},
                "logprobs": {"content": [{"logprob": -0.5}, {"logprob": -1.5}]},
                "token_ids": [4, 5, 6],
            }],
            "usage": {"prompt_tokens": 3},
            "model": "m",
        });
        assert_eq!(read(events, Some(1)), Ok(expected));
    }

    #[test]
    fn streams_that_are_no_answers_are_named() {
        let one = "data: {\"choices\": [{\"delta\": {\"content\": \"a\"}}]}\n\n";
        for (events, expected) in [
            (String::new(), ResponseError::Empty),
            ("data: [DONE]\n\n".to_owned(), ResponseError::NoChoice),
            (one.repeat(3), ResponseError::HalfStream(3)),
            (format!("{one}data: {{\"choi"), ResponseError::NotJson(6)),
            (
                format!("{one}data: {{\"error\": {{\"message\": \"no slot\"}}}}\n\n"),
                ResponseError::Error("no slot".to_owned()),
            ),
            // Two tokens were asked for: 2 · 8 + 256 parts are taken.
            (one.repeat(273), ResponseError::Endless(273)),
        ] {
            assert_eq!(read(&events, Some(2)), Err(expected), "{events:.80}");
        }
        assert!(matches!(read(&one.repeat(272), Some(2)), Err(ResponseError::HalfStream(272))));
    }
}
