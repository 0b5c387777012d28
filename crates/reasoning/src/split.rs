//! Separates the reasoning in an output from the answer: what a model writes there is not an
//! answer, whether the block is closed or was cut off.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

use crate::families::{FAMILIES, Family};

/// Begins a message of GPT-OSS's format (harmony); the channel's name follows.
pub(crate) const CHANNEL: &str = "<|channel|>";
/// What ends such a message.
const MESSAGE_ENDS: [&str; 4] = ["<|end|>", "<|return|>", "<|call|>", START];
/// Begins the header of such a message, with the name of its role.
const START: &str = "<|start|>";

static MARKS: LazyLock<Regex> = LazyLock::new(|| {
    let families = FAMILIES.iter().flat_map(|family| family.opens.iter().chain(family.closes));
    let mut marks: Vec<String> = families.map(|mark| regex::escape(mark)).collect();
    // The longest first, because the first alternative that matches is taken.
    marks.sort_by_key(|mark| std::cmp::Reverse(mark.len()));
    // Tokens that a server has not taken out too.
    Regex::new(&format!(
        r"(?i){}|<\|channel\|>\s*[a-z]*|<[|｜][^<>|｜\s]{{1,40}}[|｜]>|<end_of_turn>|<eos>|</?s>",
        marks.join("|")
    ))
    .expect("invariant: the marks are escaped, as every test shows")
});

/// Returns whether a mark is named rather than used: it stands between backquotes.
pub fn is_quoted(text: &str, mark: &Range<usize>) -> bool {
    text[..mark.start].ends_with('`') && text[mark.end..].starts_with('`')
}

/// GPT-OSS's format after a server has dropped its marks but not the names:
/// `analysisWe need …assistantfinal…`.
fn without_marks(text: &str) -> Option<Split<'_>> {
    let rest = text.trim_start().strip_prefix("analysis")?;
    let of = |thought: &str, said| Split { said: Cow::Borrowed(said), thought: thought.to_owned() };
    if let Some(at) = rest.rfind("assistantfinal") {
        return Some(of(&rest[..at], &rest[at + "assistantfinal".len()..]));
    }
    // Cut off; a sentence would continue with a blank.
    rest.starts_with(char::is_uppercase).then(|| of(rest, ""))
}

/// An output in two parts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Split<'t> {
    /// The text without its reasoning, and without tokens that a server should have taken out.
    pub said: Cow<'t, str>,
    /// The reasoning without its marks, one block per paragraph; empty if there is none.
    pub thought: String,
}

/// The text that counts so far, and what hides the rest.
struct Reader<'t> {
    text: &'t str,
    kept: String,
    /// What is hidden, without its marks.
    thought: String,
    /// Where the text that is not yet kept begins.
    from: usize,
    /// The family whose reasoning is being read.
    within: Option<&'static Family>,
    /// True if messages have channels, of which only `final` counts.
    has_channels: bool,
    in_final: bool,
    /// True if the names of a role and a channel are being read, up to `<|message|>`.
    in_header: bool,
}

impl Reader<'_> {
    fn is_shown(&self) -> bool {
        self.within.is_none() && (!self.has_channels || self.in_final)
    }

    /// Keeps what was shown up to a place, and continues after the mark there.
    fn keep(&mut self, mark: &Range<usize>) {
        let part = &self.text[self.from..mark.start];
        if self.is_shown() {
            self.kept.push_str(part);
            // What a mark separates is not one line.
            self.kept.push('\n');
        } else if !self.in_header {
            think(&mut self.thought, part);
        }
        self.from = mark.end;
    }

    /// Takes what was kept so far for reasoning.
    fn unkeep(&mut self) {
        let kept = std::mem::take(&mut self.kept);
        think(&mut self.thought, &kept);
    }

    fn read(&mut self, mark: &Range<usize>) {
        let name = self.text[mark.clone()].to_lowercase();
        let name = name.as_str();

        if let Some(channel) = name.strip_prefix(CHANNEL) {
            self.keep(mark);
            // Without an own mark, what comes before the first channel is reasoning.
            if !std::mem::replace(&mut self.has_channels, true) {
                self.unkeep();
            }
            self.within = None;
            self.in_final = channel.trim() == "final";
            self.in_header = true;
            return;
        }

        if let Some(family) = self.within {
            if family.closes.contains(&name) {
                self.keep(mark);
                self.within = None;
            }
            return;
        }

        if self.has_channels && MESSAGE_ENDS.contains(&name) {
            self.keep(mark);
            self.in_final = false;
            self.in_header = name == START;
            return;
        }

        if !self.is_shown() {
            self.keep(mark);
            self.in_header = false;
            return;
        }

        let opened = FAMILIES.iter().find(|family| family.opens.contains(&name));
        // `<|end|>` closes reasoning, but alone it ends a message like any other token.
        let closes = |family: &&Family| family.closes_alone && family.closes.contains(&name);
        let closed = !MESSAGE_ENDS.contains(&name) && FAMILIES.iter().any(|family| closes(&family));
        let is_sentence =
            FAMILIES.iter().any(|family| !family.closes_alone && family.closes.contains(&name));

        if opened.is_some() {
            self.keep(mark);
            self.within = opened;
        } else if closed {
            self.keep(mark);
            self.unkeep();
        } else if !is_sentence {
            self.keep(mark);
        }
    }
}

/// Adds a block to the reasoning.
fn think(thought: &mut String, block: &str) {
    let block = block.trim();
    // The name of a channel is followed by a mark of its own, without text between them.
    if block.is_empty() {
        return;
    }
    if !thought.is_empty() {
        thought.push_str("\n\n");
    }
    thought.push_str(block);
}

/// The text without its reasoning, and without tokens that a server should have taken out.
pub fn without_reasoning(text: &str) -> Cow<'_, str> {
    split(text).said
}

/// The reasoning in a text that is nothing else, without its marks.
pub fn thought(text: &str) -> String {
    let split = split(text);
    let mut thought = split.thought;
    think(&mut thought, &split.said);
    thought
}

/// Splits an output into its reasoning and what it says.
pub fn split(text: &str) -> Split<'_> {
    if let Some(split) = without_marks(text) {
        return split;
    }

    let mut marks =
        MARKS.find_iter(text).map(|mark| mark.range()).filter(|mark| !is_quoted(text, mark));
    let Some(first) = marks.next() else {
        return Split { said: Cow::Borrowed(text), thought: String::new() };
    };

    let mut reader = Reader {
        text,
        kept: String::new(),
        thought: String::new(),
        from: 0,
        within: None,
        has_channels: false,
        in_final: false,
        in_header: false,
    };
    reader.read(&first);
    marks.for_each(|mark| reader.read(&mark));

    reader.keep(&(text.len()..text.len()));
    Split { said: Cow::Owned(reader.kept), thought: reader.thought }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinking_and_what_is_said_are_told_apart() {
        for (text, thought, said) in [
            ("move 1 0 2", "", "move 1 0 2"),
            ("<think>\nhm\n</think>\n\nmove 1 0 2", "hm", "move 1 0 2"),
            // The template has opened it.
            ("so be it</think>move 1 0 2", "so be it", "move 1 0 2"),
            // It was cut off.
            ("<think>\nhm, wh", "hm, wh", ""),
            ("[THINK]a[/THINK]move 1 0 2", "a", "move 1 0 2"),
            ("<think>a</think>move 1\n<think>b</think>move 2", "a\n\nb", "move 1\n\nmove 2"),
            (
                "<|channel|>analysis<|message|>We need it.<|end|><|start|>assistant\
                 <|channel|>final<|message|>move 1 0 2<|return|>",
                "We need it.",
                "move 1 0 2",
            ),
            ("<|channel|>analysis<|message|>We ne", "We ne", ""),
            ("analysisWe need it.assistantfinalmove 1 0 2", "We need it.", "move 1 0 2"),
            ("analysisWe ne", "We ne", ""),
            ("<think></think>move 1 0 2", "", "move 1 0 2"),
            (
                "a tag such as `<think>` is not thinking",
                "",
                "a tag such as `<think>` is not thinking",
            ),
        ] {
            let found = split(text);
            assert_eq!((found.thought.as_str(), found.said.trim()), (thought, said), "{text:?}");
        }
    }
}
