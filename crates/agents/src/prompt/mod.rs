//! Prompts from the templates of `agents/`, and the parsing of free answers. The prompts that the
//! built-in models are trained on are in `prime_lessons`.

use std::sync::LazyLock;

use minijinja::{Environment, UndefinedBehavior};

use prime_bench::prompts::TEMPLATES as TEMPLATES_OF_BENCHMARK;
use prime_bench::tasks::pattern::{self, Bounds};
use prime_bench::tasks::spec::Spec;

mod check;
mod examples;
mod feedback;
mod readable;
mod shown;
mod templates;
mod variables;

pub(crate) use feedback::CUT_OFF;
pub use shown::Shown;
pub use templates::{Prompt, TemplateError, Templates};
pub use variables::{History, PromptContext, names};

macro_rules! built_in {
    ($($name:literal),+ $(,)?) => {
        [$(($name, include_str!(concat!("../../agents/", $name)))),+]
    };
}

/// The built-in templates besides the benchmark's own, which are in `prime_bench::prompts`.
const BUILT_IN: [(&str, &str); 8] = built_in![
    "executor/compact.j2",
    "executor/complete.j2",
    "executor/step.j2",
    "verifier/token.j2",
    "verifier/likelihood.j2",
    "verifier/rating.j2",
    "verifier/reward.j2",
    "coordinator/decide.j2",
];

static TEMPLATES: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut templates = Environment::new();
    // A misspelt variable must be an error, not an empty text.
    templates.set_undefined_behavior(UndefinedBehavior::Strict);
    // Models are trained on prompts that end with a newline.
    templates.set_keep_trailing_newline(true);
    // Errors then have line numbers; this costs nothing until one occurs.
    templates.set_debug(true);

    for (name, text) in BUILT_IN.into_iter().chain(TEMPLATES_OF_BENCHMARK) {
        templates
            .add_template(name, text)
            .expect("invariant: the built-in templates parse, as a test shows");
    }
    templates
});

/// The action line of a free answer: the last line that is not blank and does not only open or
/// close a code block, without surrounding whitespace and backquotes.
pub fn last_line(answer: &str) -> &str {
    lines_from_the_end(answer).next().unwrap_or_default()
}

/// The lines of a free answer, the last first, without surrounding whitespace and backquotes. Blank
/// lines and lines that only open or close a code block are left out.
pub(crate) fn lines_from_the_end(answer: &str) -> impl Iterator<Item = &str> {
    // Invisible characters, such as a byte order mark, must not hide a backquote.
    let is_blank = |c: char| {
        c.is_whitespace() || matches!(c, '\0' | '\u{200b}'..='\u{200d}' | '\u{2060}' | '\u{feff}')
    };
    let texts = answer.lines().rev().map(move |line| line.trim_matches(is_blank));
    texts.map(|text| text.trim_matches('`').trim()).filter(|text| !text.is_empty())
}

/// When and how long a free line may come before an action.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FreeLine {
    /// The completion is the action alone.
    Forbidden,
    /// It may have any length.
    Allowed,
    /// It may have up to this many characters.
    AtMost(u32),
}

/// The grammar of an executor's completion: a free line where one is allowed, then one action line
/// of the task.
pub fn grammar(spec: &Spec, free: FreeLine, bounds: Option<Bounds>) -> String {
    completed(free, &pattern::gbnf_within(spec.actions, bounds))
}

/// Like [`grammar`], but the action line is one of these.
pub(crate) fn grammar_of_lines<'l>(
    lines: impl IntoIterator<Item = &'l str>,
    free: FreeLine,
) -> String {
    completed(free, &pattern::gbnf_of_lines(lines))
}

fn completed(free: FreeLine, action: &str) -> String {
    let derivation = match free {
        FreeLine::Forbidden => String::new(),
        FreeLine::Allowed => "([^\\n]* \"\\n\")? ".to_owned(),
        FreeLine::AtMost(characters) => format!("([^\\n]{{0,{characters}}} \"\\n\")? "),
    };
    format!("root ::= {derivation}action\n{action}")
}

/// The grammar of what follows a value that the derivation has looked up: the rest of the
/// derivation, with a further query if `may_read`, and the action line.
pub(crate) fn continued_grammar(spec: &Spec, may_read: bool) -> String {
    let letter = if may_read { "[^\\n]" } else { "[^?\\n]" };
    format!("root ::= {letter}* \"\\n\" action\n{}", pattern::gbnf(spec.actions))
}
