//! The parser of a task against its GBNF grammar and its regular expression, on reference actions
//! and near misses.

use std::collections::{BTreeMap, HashMap};

use regex::Regex;

use super::pattern::Bounds;
use super::suite::suite;
use super::*;

suite! { parser_and_grammar_accept_the_same_lines }

/// Actions of a trace that are tested.
const LINES_MAX: usize = 3_000;

/// A GBNF grammar as a regular expression: literals are escaped and rules inlined. Independent of
/// the forms.
fn regex_of(grammar: &str) -> Regex {
    let rules: BTreeMap<&str, &str> =
        grammar.lines().map(|line| line.split_once(" ::= ").expect("one rule a line")).collect();
    let expanded = expand(rules["action"], &rules);
    Regex::new(&format!("^(?:{expanded})$")).expect("a regular expression")
}

fn expand(rule: &str, rules: &BTreeMap<&str, &str>) -> String {
    let mut out = String::new();
    let mut chars = rule.chars().peekable();

    while let Some(c) = chars.next() {
        match c {
            '"' => {
                let mut literal = String::new();
                while let Some(c) = chars.next().filter(|c| *c != '"') {
                    literal.push(if c == '\\' {
                        chars.next().expect("an escaped character")
                    } else {
                        c
                    });
                }
                out += &regex::escape(&literal);
            }
            '[' => {
                out.push('[');
                for c in chars.by_ref() {
                    out.push(c);
                    if c == ']' {
                        break;
                    }
                }
            }
            ' ' => {}
            c if c.is_ascii_lowercase() => {
                let mut name = String::from(c);
                while let Some(c) = chars.next_if(char::is_ascii_lowercase) {
                    name.push(c);
                }
                out += &format!("(?:{})", expand(rules[name.as_str()], rules));
            }

            // Repetition counts, alternatives and groups look the same in a regular expression.
            c => out.push(c),
        }
    }
    out
}

/// The line with one character deleted, inserted or replaced.
fn near(line: &str) -> Vec<String> {
    let mut lines =
        vec![format!("{line} "), format!(" {line}"), line.to_uppercase(), String::new()];

    for (at, c) in line.char_indices() {
        let end = at + c.len_utf8();
        lines.push(format!("{}{}", &line[..at], &line[end..]));
        for put in ["0", "7", "-", " ", "x", ")", "/", "?"] {
            lines.push(format!("{}{put}{}", &line[..at], &line[at..]));
            lines.push(format!("{}{put}{}", &line[..at], &line[end..]));
        }
    }
    lines
}

/// The grammar accepts any number of sixteen digits; the parser rejects those beyond 2^53.
fn has_huge_number(line: &str) -> bool {
    line.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() >= 16)
}

fn parser_and_grammar_accept_the_same_lines(task: &'static dyn AnyTask) {
    let spec = task.spec();
    let grammar = regex_of(&pattern::gbnf(spec.actions));
    let expression =
        Regex::new(&format!("^{}$", pattern::regex(spec.actions))).expect("a regular expression");

    let page: Vec<Option<Regex>> = spec
        .page
        .actions
        .iter()
        .map(|action| {
            action
                .regex
                .map(|regex| Regex::new(&format!("^(?:{regex})$")).expect("a regular expression"))
        })
        .collect();

    let mut within: HashMap<Bounds, Regex> = HashMap::new();
    for difficulty in Difficulty::ALL {
        let mut machine = task.generate(difficulty, 11).start();
        let input = machine.problem().input().to_string();
        let (mut line, mut state) = (String::new(), Vec::new());
        for place in 0..LINES_MAX {
            state.clear();
            machine.write_state(&mut state);
            let bounds = Bounds::of([input.as_bytes(), &state]);
            if !machine.advance(&mut line) {
                break;
            }

            let bounded = within
                .entry(bounds)
                .or_insert_with(|| regex_of(&pattern::gbnf_within(spec.actions, Some(bounds))));
            assert!(bounded.is_match(&line), "{}: {line:?} is within {bounds:?}", spec.slug);

            assert!(
                pattern::parse(spec.actions, &line).is_some(),
                "{}: {line:?} is parsed",
                spec.slug
            );
            assert!(grammar.is_match(&line), "{}: {line:?} is in the grammar {grammar}", spec.slug);
            assert!(expression.is_match(&line), "{}: {line:?} matches {expression}", spec.slug);

            if place % 50 > 0 {
                continue;
            }

            for mutant in near(&line).iter().filter(|mutant| !has_huge_number(mutant)) {
                let parsed = pattern::parse(spec.actions, mutant).is_some();
                assert_eq!(parsed, grammar.is_match(mutant), "{}: {mutant:?}", spec.slug);
                assert_eq!(
                    parsed,
                    expression.is_match(mutant),
                    "{}: {mutant:?}, {expression}",
                    spec.slug
                );

                // If the page gives a pattern for every form, the parser accepts nothing else.
                let allowed = page
                    .iter()
                    .any(|regex| regex.as_ref().is_none_or(|regex| regex.is_match(mutant)));
                assert!(!parsed || allowed, "{}: {mutant:?} is not one of the page", spec.slug);
            }
        }
    }
}
