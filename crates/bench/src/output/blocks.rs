//! The marks of a text's parts: tags, and fenced blocks.

use std::sync::LazyLock;

use regex::Regex;

use prime_reasoning::is_quoted;

/// A part that a tag begins or ends.
pub struct Tagged<'t> {
    pub inside: &'t str,
    /// It begins with its opening tag.
    pub is_opened: bool,
    /// It ends with its own closing tag.
    pub is_closed: bool,
    /// Its opening tag stands within a sentence.
    pub is_inline: bool,
}

impl Tagged<'_> {
    /// Returns whether the tag may be named rather than used.
    pub fn may_be_mention(&self) -> bool {
        !self.is_opened || (self.is_inline && !self.is_closed)
    }
}

struct Tag {
    start: usize,
    end: usize,
    closes: bool,
    is_answer: bool,
}

/// Returns whether a letter stands shortly before the end of a text, on the same line and after any
/// tag.
fn follows_words(text: &str) -> bool {
    /// Bytes looked at: a line may be as long as the text, and have as many tags.
    const NEAR: usize = 80;
    let mut near = text.bytes().rev().take(NEAR).take_while(|byte| !matches!(byte, b'\n' | b'>'));
    // Bytes beyond ASCII are letters of other languages, mostly.
    near.any(|byte| byte.is_ascii_alphabetic() || !byte.is_ascii())
}

/// The tags of a text, in order.
pub struct Tags<'t> {
    text: &'t str,
    tags: Vec<Tag>,
}

impl<'t> Tags<'t> {
    pub fn of(text: &'t str) -> Self {
        static TAGS: LazyLock<Regex> = LazyLock::new(|| {
            Regex::new(r"(?i)<(/?)(actions|answer)>")
                .expect("invariant: the pattern is right, as every test shows")
        });

        let tags = TAGS.find_iter(text).filter(|tag| !is_quoted(text, &tag.range()));
        let tags = tags.map(|tag| {
            let name = tag.as_str().to_ascii_lowercase();
            Tag {
                start: tag.start(),
                end: tag.end(),
                closes: name.starts_with("</"),
                is_answer: name.ends_with("answer>"),
            }
        });
        Self { text, tags: tags.collect() }
    }

    /// The end of the last tag.
    pub fn end(&self) -> usize {
        self.tags.last().map_or(0, |tag| tag.end)
    }

    /// The parts of answers or of actions, in order. A part ends at the next tag of any name, so
    /// that a tag that is only named in a sentence does not swallow what follows.
    pub fn parts(&self, of_answer: bool) -> Vec<Tagged<'t>> {
        let mut parts = Vec::new();
        let is_own = |tag: &Tag, closes: bool| tag.is_answer == of_answer && tag.closes == closes;

        for place in 0..=self.tags.len() {
            let before = place.checked_sub(1).map(|before| &self.tags[before]);
            let after = self.tags.get(place);
            let is_opened = before.is_some_and(|tag| is_own(tag, false));
            let is_closed = after.is_some_and(|tag| is_own(tag, true));
            if !is_opened && !is_closed {
                continue;
            }

            let from = before.map_or(0, |tag| tag.end);
            let inside = &self.text[from..after.map_or(self.text.len(), |tag| tag.start)];
            let is_inline = before.is_some_and(|tag| follows_words(&self.text[..tag.start]));
            parts.push(Tagged { inside, is_opened, is_closed, is_inline });
        }
        parts
    }
}

/// A fenced block.
pub struct Fenced<'t> {
    pub language: &'t str,
    pub content: &'t str,
    /// Its end in the text.
    pub end: usize,
}

impl Fenced<'_> {
    /// Returns whether it is a program, whose lines are not actions.
    pub fn is_program(&self) -> bool {
        let language = self.language.to_ascii_lowercase();
        matches!(
            language.as_str(),
            "python"
                | "py"
                | "python3"
                | "rust"
                | "rs"
                | "c"
                | "cpp"
                | "c++"
                | "java"
                | "go"
                | "javascript"
                | "js"
                | "typescript"
                | "ts"
                | "ruby"
                | "haskell"
                | "latex"
                | "mermaid"
                | "diff"
                | "html"
                | "xml"
                | "sql"
        )
    }
}

/// The fenced blocks of a text, in order. An unclosed last one counts; one that is opened and
/// closed on a line ends there.
pub fn fenced(text: &str) -> Vec<Fenced<'_>> {
    const FENCE: &str = "```";

    let mut blocks = Vec::new();
    let mut at = 0;
    while let Some(open) = text[at..].find(FENCE) {
        // A fence may be longer, to hold shorter ones.
        let start = at + open;
        let length = text[start..].bytes().take_while(|byte| *byte == b'`').count();
        let fence = &text[start..start + length];
        let body = start + length;

        let line_end = text[body..].find('\n').map_or(text.len(), |end| body + end);
        let first = &text[body..line_end];
        let (language, content, end) = if let Some(close) = first.find(fence) {
            ("", body..body + close, body + close + length)
        } else {
            let from = (line_end + 1).min(text.len());
            let close = text[from..].find(fence).map_or(text.len(), |close| from + close);
            (first.trim(), from..close, (close + length).min(text.len()))
        };

        blocks.push(Fenced { language, content: &text[content], end });
        at = end;
    }
    blocks
}
