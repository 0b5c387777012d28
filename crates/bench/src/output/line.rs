//! One normal form of an action line: the decoration that models put around it is removed, but only
//! where the line is not an action as it stands, and only if an action is left.

use std::borrow::Cow;
use std::sync::LazyLock;

use regex::Regex;

use crate::tasks::{Machine, Refusal, pattern};

/// Forms of one line that are tried: the layers of decoration may be told apart in several ways.
const FORMS_MAX: usize = 48;

/// Bytes of the longest line whose decoration is looked for: terms have up to 20,000 symbols.
const DECORATED_MAX: usize = 1 << 16;

/// Marks that surround a whole line, in pairs.
const AROUND: [(&str, &str); 22] = [
    ("***", "***"),
    ("**", "**"),
    ("__", "__"),
    ("```", "```"),
    ("``", "``"),
    ("`", "`"),
    ("*", "*"),
    ("_", "_"),
    ("\"", "\""),
    ("'", "'"),
    ("“", "”"),
    ("„", "“"),
    ("‘", "’"),
    ("«", "»"),
    ("「", "」"),
    ("$$", "$$"),
    ("$", "$"),
    ("\\(", "\\)"),
    ("\\[", "\\]"),
    ("<action>", "</action>"),
    ("<step>", "</step>"),
    ("<code>", "</code>"),
];

/// Characters that end a sentence or an entry of a list.
const AFTER: [char; 5] = ['.', '。', ';', ',', '；'];

/// Marks that may stand before a line: bullets, arrows, numbers, and labels in several languages.
static BEFORE: LazyLock<Regex> = LazyLock::new(|| {
    let labels = "next action|next step|next move|final action|action|step|move|line|output|\
                  aktion|schritt|zug|étape|etape|action suivante|coup|paso|acción|accion|\
                  movimiento|passo|azione|mossa|ação|acao|шаг|действие|ход|步骤|動作|动作|行动|\
                  操作|下一步|手順|ステップ|アクション|行動|단계|행동|동작";
    Regex::new(&format!(
        r"(?ix)^(?:
            [-*+•‣◦·–—→⇒➜]\s+ | >\s* | \#{{1,6}}\s+ |
            \(\d{{1,9}}\)\s* | \[\d{{1,9}}\]\s* | \#\d{{1,9}}[.:)]?\s+ |
            \d{{1,9}}(?:[.):]\s+|[、．）：]\s*) | 第\s*\d{{1,9}}\s*步\s*[:：]?\s* |
            [*_]{{0,3}}(?:{})\s*\#?\d{{0,9}}\s*(?:[*_]{{1,3}}\s*[:：]|[:：][*_]{{0,3}}|[.)]\s)\s*
        )",
        labels.replace(' ', r"\ ")
    ))
    .expect("invariant: the pattern is right, as every test shows")
});

/// White space, and what is as invisible: byte order marks, NUL, zero-width characters.
fn is_blank(character: char) -> bool {
    character.is_whitespace()
        || matches!(character, '\0' | '\u{feff}' | '\u{200b}'..='\u{200f}' | '\u{2060}')
}

/// The text without white space, byte order marks and NUL around it.
pub fn trimmed(text: &str) -> &str {
    text.trim_matches(is_blank)
}

/// The content of `\name{…}` around the whole line.
fn in_command(line: &str) -> Option<&str> {
    let rest = line.strip_prefix('\\')?;
    let (name, rest) = rest.split_once('{')?;
    let is_known = matches!(
        name,
        "boxed" | "fbox" | "text" | "texttt" | "textbf" | "mathrm" | "mathtt" | "mathbf" | "verb"
    );
    rest.strip_suffix('}').filter(|_| is_known)
}

/// The line without its outermost decoration, in each way in which it may be told apart.
fn peeled(line: &str) -> impl Iterator<Item = &str> {
    let around = AROUND
        .iter()
        .find_map(|(open, close)| line.strip_prefix(open)?.strip_suffix(close))
        .or_else(|| in_command(line));
    let before = BEFORE.find(line).map(|before| &line[before.end()..]);
    [line.strip_suffix(AFTER), around, before].into_iter().flatten().map(trimmed)
}

/// The line with single blanks; `None` if it has them already.
fn with_single_blanks(line: &str) -> Option<String> {
    let words: Vec<&str> = line.split(is_blank).filter(|word| !word.is_empty()).collect();
    let joined = words.join(" ");
    (joined != line).then_some(joined)
}

/// The action in a model's line, and true if it has one. A line that is an action as it stands is
/// taken unchanged, however it looks; a line without an action is only trimmed.
pub fn action_line(line: &str, is_action: impl Fn(&str) -> bool) -> (Cow<'_, str>, bool) {
    let line = trimmed(line);
    // All forms are parts of the line, so their places tell them apart.
    let mut forms = vec![line];
    let mut tried = 0;
    while let Some(form) = forms.get(tried).copied().filter(|_| tried < FORMS_MAX) {
        tried += 1;
        if is_action(form) {
            return (Cow::Borrowed(form), true);
        }
        if line.len() > DECORATED_MAX {
            break;
        }
        if let Some(spaced) = with_single_blanks(form).filter(|spaced| is_action(spaced)) {
            return (Cow::Owned(spaced), true);
        }
        for next in peeled(form) {
            if !forms.iter().any(|form| std::ptr::eq(*form, next)) {
                forms.push(next);
            }
        }
    }
    (Cow::Borrowed(line), false)
}

/// Proposes a model's line to a machine, in the form that [`action_line`] gives it, and returns
/// that form. The first try is the line itself, so a clean line costs nothing more.
///
/// # Errors
/// Like [`Machine::propose`].
pub fn propose<'l>(
    machine: &mut dyn Machine,
    line: &'l str,
) -> (Cow<'l, str>, Result<(), Refusal>) {
    let proposed = machine.propose(line);
    if proposed != Err(Refusal::Unparsable) {
        return (Cow::Borrowed(line), proposed);
    }

    let forms = machine.spec().actions;
    match action_line(line, |line| pattern::parse(forms, line).is_some()) {
        (said, true) if said != line => {
            let proposed = machine.propose(&said);
            (said, proposed)
        }
        (said, _) => (said, proposed),
    }
}
