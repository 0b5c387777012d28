//! The thinking that a model writes before its answer. No grammar constrains it, and its end is
//! written for the model once its budget is spent.

use prime_reasoning::Form;

use super::Thinking;
use super::kv_cache::Token;

/// The state of one generation until its answer begins.
#[derive(Debug)]
pub(super) struct ThinkingPhase {
    /// The mark that the model has still to write before it thinks at all.
    open: Option<Box<[u8]>>,
    end: Box<[u8]>,
    /// What follows the end before the answer.
    then: Vec<Token>,
    /// The end and what follows it.
    close: Vec<Token>,
    /// Tokens that it may still think; with `None`, only the generation's own limit holds.
    left: Option<u32>,
    /// What it has written, special tokens included.
    written: Vec<u8>,
}

/// What the token just written means.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Thought {
    /// The model is still thinking.
    Continues,
    /// It has ended.
    Ended,
    /// Its budget is spent: it has to be ended.
    Spent,
    /// There is no thinking: the text is the beginning of the answer.
    Absent,
}

impl ThinkingPhase {
    /// A phase that the prompt has opened.
    pub(super) fn opened(
        form: &Form,
        thinking: Thinking,
        tokenized: impl Fn(&str) -> Vec<Token>,
    ) -> Self {
        let left = if let Thinking::AtMost(tokens) = thinking { Some(tokens) } else { None };
        Self {
            open: None,
            end: form.end.as_bytes().into(),
            then: tokenized(&form.then),
            close: tokenized(&format!("{}{}", form.end, form.then)),
            left,
            written: Vec::new(),
        }
    }

    /// A phase that the model may open itself.
    pub(super) fn unless_answered(form: &Form, tokenized: impl Fn(&str) -> Vec<Token>) -> Self {
        let open = Some(form.open.trim_end().as_bytes().into());
        Self { open, ..Self::opened(form, Thinking::AsModel, tokenized) }
    }

    /// The longest thinking in tokens, if it has a budget of its own.
    pub(super) fn budget(&self) -> Option<u32> {
        self.left
    }

    /// Shortens the budget.
    pub(super) fn limit(&mut self, tokens: u32) {
        self.left = self.left.map(|left| left.min(tokens));
    }

    /// Returns whether not a single token may be thought.
    pub(super) fn is_spent(&self) -> bool {
        self.left == Some(0)
    }

    /// What ends the thinking and leads to the answer.
    pub(super) fn close(&self) -> &[Token] {
        &self.close
    }

    /// What leads to the answer after an end that the model has written.
    pub(super) fn then(&self) -> &[Token] {
        // A token may have reached beyond the end.
        if self.written.ends_with(&self.end) { &self.then } else { &[] }
    }

    /// Adds a token with this text.
    pub(super) fn write(&mut self, text: &[u8]) -> Thought {
        let searched = self.written.len().saturating_sub(self.end.len());
        self.written.extend_from_slice(text);

        if let Some(open) = &self.open {
            let begun = self.written.trim_ascii_start();
            if begun.len() < open.len() {
                let may_open = open.starts_with(begun);
                return if may_open { Thought::Continues } else { Thought::Absent };
            }
            if !begun.starts_with(open) {
                return Thought::Absent;
            }
            self.open = None;
        }

        if self.written[searched..].windows(self.end.len()).any(|part| part == &*self.end) {
            return Thought::Ended;
        }
        match &mut self.left {
            Some(left) => {
                *left = left.saturating_sub(1);
                if *left == 0 { Thought::Spent } else { Thought::Continues }
            }
            None => Thought::Continues,
        }
    }

    /// Returns whether the model is thinking, as far as is known by now.
    pub(super) fn has_begun(&self) -> bool {
        self.open.is_none()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A token is a byte.
    fn bytewise(text: &str) -> Vec<Token> {
        text.bytes().map(Token::from).collect()
    }

    fn form() -> Form {
        Form::of_template("<think>").expect("a form")
    }

    /// The first meaning that ends the phase, and after which of the texts.
    fn ended(
        mut phase: ThinkingPhase,
        texts: &[&str],
    ) -> (Option<(usize, Thought)>, ThinkingPhase) {
        let end = texts.iter().enumerate().find_map(|(at, text)| {
            let meaning = phase.write(text.as_bytes());
            (meaning != Thought::Continues).then_some((at, meaning))
        });
        (end, phase)
    }

    #[test]
    fn the_end_is_found_however_its_tokens_are_cut() {
        let opened = || ThinkingPhase::opened(&form(), Thinking::AtMost(100), bytewise);
        for (texts, at, then) in [
            (&["hm", "</think>"][..], 1, "\n\n"),
            (&["hm</", "thi", "nk>"], 2, "\n\n"),
            // The token reaches beyond the end.
            (&["hm", "</think>\n\n"], 1, ""),
        ] {
            let (end, phase) = ended(opened(), texts);
            assert_eq!(end, Some((at, Thought::Ended)), "{texts:?}");
            assert_eq!(phase.then(), bytewise(then), "{texts:?}");
        }
    }

    #[test]
    fn a_budget_is_kept_to_the_token() {
        let opened = |tokens| ThinkingPhase::opened(&form(), Thinking::AtMost(tokens), bytewise);
        let (end, phase) = ended(opened(3), &["a", "b", "c", "d"]);
        assert_eq!(end, Some((2, Thought::Spent)));
        assert_eq!(phase.close(), bytewise("</think>\n\n"));
        assert_eq!(ended(opened(3), &["a", "b", "</think>"]).0, Some((2, Thought::Ended)));
        assert!(opened(0).is_spent());

        let unlimited = ThinkingPhase::opened(&form(), Thinking::AsModel, bytewise);
        assert_eq!(ended(unlimited, &["a"; 50]).0, None);
    }

    #[test]
    fn a_model_may_open_its_thinking_itself() {
        let may = || ThinkingPhase::unless_answered(&form(), bytewise);
        for (texts, expected) in [
            (&["<think>", "hm", "</think>"][..], Some((2, Thought::Ended))),
            (&["\n", "<thi", "nk>\nhm", "</think>"], Some((3, Thought::Ended))),
            (&["move 1 0 2"], Some((0, Thought::Absent))),
            (&["<", "b>"], Some((1, Thought::Absent))),
            (&["<thi"], None),
        ] {
            assert_eq!(ended(may(), texts).0, expected, "{texts:?}");
        }
    }
}
