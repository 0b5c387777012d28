//! Takes the reasoning out of an output: what a model writes there is no answer, whether the block
//! is closed or was cut off.

use std::borrow::Cow;
use std::ops::Range;
use std::sync::LazyLock;

use regex::Regex;

/// How a family of models marks its reasoning.
struct Family {
    opens: &'static [&'static str],
    closes: &'static [&'static str],
    /// Whether the end mark alone means that all before it was reasoning: many templates put the
    /// opening mark into the prompt. Not so where the mark is a sentence.
    closes_alone: bool,
}

const fn family(opens: &'static [&'static str], closes: &'static [&'static str]) -> Family {
    Family { opens, closes, closes_alone: true }
}

const FAMILIES: [Family; 21] = [
    // DeepSeek-R1, Qwen3, GLM, MiniMax, Kimi, Nemotron, Phi, Granite 3.3 and most others.
    family(&["<think>"], &["</think>"]),
    family(&["<thinking>"], &["</thinking>"]),
    // EXAONE Deep.
    family(&["<thought>"], &["</thought>"]),
    family(&["<thoughts>"], &["</thoughts>"]),
    family(&["<reasoning>"], &["</reasoning>"]),
    family(&["<reflection>"], &["</reflection>"]),
    family(&["<analysis>"], &["</analysis>"]),
    family(&["<scratchpad>"], &["</scratchpad>"]),
    family(&["<inner_monologue>"], &["</inner_monologue>"]),
    // Seed-OSS, which tells its budget within.
    family(&["<seed:think>"], &["</seed:think>"]),
    // LongCat.
    family(&["<longcat_think>"], &["</longcat_think>"]),
    // Magistral.
    family(&["[think]"], &["[/think]"]),
    // Kimi-VL.
    family(&["◁think▷"], &["◁/think▷"]),
    // Solar Open, whose end mark is that of any message.
    family(&["<|think|>"], &["<|/think|>", "<|end_think|>", "<|end|>"]),
    // Command A Reasoning.
    family(&["<|start_thinking|>"], &["<|end_thinking|>"]),
    // OpenThinker, Sky-T1.
    family(&["<|begin_of_thought|>"], &["<|end_of_thought|>"]),
    // s1.
    family(&["<|im_start|>think"], &["<|im_start|>answer"]),
    // Gemma 4, and MedGemma.
    family(&["<|channel>thought"], &["<channel|>"]),
    family(&["<unused94>thought"], &["<unused95>"]),
    // Apriel.
    family(&["here are my reasoning steps:"], &["[begin final response]"]),
    // Granite 3.2.
    Family {
        opens: &["here is my thought process:", "here's my thought process:"],
        closes: &["here is my response:", "here's my response:"],
        closes_alone: false,
    },
];

/// Begins a message of GPT-OSS's format (harmony); the channel's name follows.
const CHANNEL: &str = "<|channel|>";
/// What ends such a message.
const MESSAGE_ENDS: [&str; 4] = ["<|end|>", "<|return|>", "<|call|>", "<|start|>"];

static MARKS: LazyLock<Regex> = LazyLock::new(|| {
    let families = FAMILIES.iter().flat_map(|family| family.opens.iter().chain(family.closes));
    let mut marks: Vec<String> = families.map(|mark| regex::escape(mark)).collect();
    // The longest first, because the first alternative that matches is taken.
    marks.sort_by_key(|mark| std::cmp::Reverse(mark.len()));
    // Tokens that a server has not taken out, too.
    Regex::new(&format!(
        r"(?i){}|<\|channel\|>\s*[a-z]*|<[|｜][^<>|｜\s]{{1,40}}[|｜]>|<end_of_turn>|<eos>|</?s>",
        marks.join("|")
    ))
    .expect("invariant: the marks are escaped, as every test shows")
});

/// Whether a mark is named rather than used: it stands between backquotes.
pub(super) fn is_quoted(text: &str, mark: &Range<usize>) -> bool {
    text[..mark.start].ends_with('`') && text[mark.end..].starts_with('`')
}

/// GPT-OSS's format after a server has dropped its marks but not the names:
/// `analysisWe need …assistantfinal…`.
fn without_marks(text: &str) -> Option<&str> {
    let rest = text.trim_start().strip_prefix("analysis")?;
    if let Some(at) = rest.rfind("assistantfinal") {
        return Some(&rest[at + "assistantfinal".len()..]);
    }
    // Cut off; a sentence would go on with a blank.
    rest.starts_with(char::is_uppercase).then_some("")
}

/// The text that counts so far, and what hides the rest.
struct Reader<'t> {
    text: &'t str,
    kept: String,
    /// Where the text that is not yet kept begins.
    from: usize,
    /// The family whose reasoning is being read.
    within: Option<&'static Family>,
    /// Whether messages have channels, of which only `final` counts.
    has_channels: bool,
    in_final: bool,
}

impl Reader<'_> {
    fn is_shown(&self) -> bool {
        self.within.is_none() && (!self.has_channels || self.in_final)
    }

    /// Keeps what was shown up to a place, and continues after the mark there.
    fn keep(&mut self, mark: &Range<usize>) {
        if self.is_shown() {
            self.kept.push_str(&self.text[self.from..mark.start]);
            // What a mark separates is not one line.
            self.kept.push('\n');
        }
        self.from = mark.end;
    }

    fn read(&mut self, mark: &Range<usize>) {
        let name = self.text[mark.clone()].to_lowercase();
        let name = name.as_str();

        if let Some(channel) = name.strip_prefix(CHANNEL) {
            self.keep(mark);
            // Without an own mark, what comes before the first channel is reasoning.
            if !std::mem::replace(&mut self.has_channels, true) {
                self.kept.clear();
            }
            self.within = None;
            self.in_final = channel.trim() == "final";
            return;
        }

        if let Some(family) = self.within {
            if family.closes.contains(&name) {
                self.from = mark.end;
                self.within = None;
            }
            return;
        }

        if self.has_channels && MESSAGE_ENDS.contains(&name) {
            self.keep(mark);
            self.in_final = false;
            return;
        }

        if !self.is_shown() {
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
            self.kept.clear();
            self.from = mark.end;
        } else if !is_sentence {
            self.keep(mark);
        }
    }
}

/// The text without its reasoning, and without tokens that a server should have taken out.
pub fn without_reasoning(text: &str) -> Cow<'_, str> {
    if let Some(last) = without_marks(text) {
        return Cow::Borrowed(last);
    }

    let mut marks =
        MARKS.find_iter(text).map(|mark| mark.range()).filter(|mark| !is_quoted(text, mark));
    let Some(first) = marks.next() else { return Cow::Borrowed(text) };

    let mut reader = Reader {
        text,
        kept: String::new(),
        from: 0,
        within: None,
        has_channels: false,
        in_final: false,
    };
    reader.read(&first);
    marks.for_each(|mark| reader.read(&mark));

    reader.keep(&(text.len()..text.len()));
    Cow::Owned(reader.kept)
}
