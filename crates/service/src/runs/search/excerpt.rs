//! Excerpts: where the terms of a search stand in the texts of a run that it found.

use std::ops::Range;

use serde::Serialize;
use utoipa::ToSchema;

use super::entry::texts_of;
use crate::runs::record::RunRecord;
use crate::runs::spec::RunSpec;
use prime_journal::RunRow;
use prime_printable::is_escaped;

/// Maximum excerpts of a run.
const EXCERPTS_MAX: usize = 3;
/// Characters of an excerpt, and how many of them stand before what was searched.
const CHARACTERS_MAX: usize = 120;
const CHARACTERS_BEFORE: usize = 30;
/// What stands in place of what an excerpt leaves out.
const CUT: &str = "…";

/// A part of a run that searches look at. What a list shows anyway comes last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum SearchedPart {
    /// The answer.
    Answer,
    /// The input; the definition of a custom problem.
    Input,
    /// A committed line, in lowercase.
    Line,
    /// The name of the instance.
    Instance,
    /// The task's slug.
    Task,
    /// The run's id.
    Id,
    /// The run that it continues or tries again.
    Origin,
}

/// A piece of an excerpt.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct ExcerptPiece {
    /// The text, with spaces in place of control and direction characters.
    pub text: String,
    /// True if it was searched for.
    pub is_match: bool,
}

/// Where a search found words of its text.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
pub struct Excerpt {
    /// What the pieces are a part of.
    pub part: SearchedPart,
    /// The excerpt in pieces, up to 120 characters together; `…` where it was cut.
    pub pieces: Vec<ExcerptPiece>,
}

/// A text to look terms up in.
struct Searched {
    part: SearchedPart,
    text: String,
    lower: String,
    /// For each byte of `lower`, where its character begins in `text`.
    origins: Vec<usize>,
}

impl Searched {
    fn new(part: SearchedPart, text: &str) -> Self {
        let text: String = text.replace(|c: char| c.is_control() || is_escaped(c), " ");
        let (mut lower, mut origins) = (String::with_capacity(text.len()), Vec::new());
        for (at, character) in text.char_indices() {
            lower.extend(character.to_lowercase());
            origins.resize(lower.len(), at);
        }
        Self { part, text, lower, origins }
    }

    /// Where a term stands in the text.
    fn places<'s>(&'s self, term: &'s str) -> impl Iterator<Item = Range<usize>> + 's {
        self.lower.match_indices(term).map(|(at, term)| {
            let last = self.origins[at + term.len() - 1];
            let end = self.text[last..].chars().next().map_or(last, |c| last + c.len_utf8());
            self.origins[at]..end
        })
    }

    fn has(&self, term: &str) -> bool {
        self.lower.contains(term)
    }

    /// The part of the text that is shown for a term in it.
    fn window(&self, term: &str) -> Range<usize> {
        let found = self.places(term).next().map_or(0, |place| place.start);
        let before = self.text[..found].char_indices().rev();
        let start = before.take(CHARACTERS_BEFORE).last().map_or(found, |(at, _)| at);
        let mut rest = self.text[start..].char_indices();
        let end = rest.nth(CHARACTERS_MAX).map_or(self.text.len(), |(at, _)| start + at);
        start..end
    }

    /// The excerpt at a window, with all terms marked that it shows; removes them from `left`.
    fn excerpt(&self, window: &Range<usize>, terms: &[&str], left: &mut Vec<&str>) -> Excerpt {
        let mut marks = Vec::new();
        for term in terms {
            let places = self.places(term);
            let shown = places
                .map(|place| place.start.max(window.start)..place.end.min(window.end))
                .filter(|place| !place.is_empty());
            let before = marks.len();
            marks.extend(shown);
            if marks.len() > before {
                left.retain(|other| other != term);
            }
        }
        marks.sort_by_key(|mark| mark.start);
        Excerpt { part: self.part, pieces: self.pieces(window, &marks) }
    }

    /// The pieces of a window; marks that overlap are one piece.
    fn pieces(&self, window: &Range<usize>, marks: &[Range<usize>]) -> Vec<ExcerptPiece> {
        let mut pieces: Vec<ExcerptPiece> = Vec::new();
        let mut at = window.start;
        if at > 0 {
            pieces.push(ExcerptPiece { text: CUT.to_owned(), is_match: false });
        }
        let mut add = |text: &str, is_match| match pieces.last_mut() {
            _ if text.is_empty() => {}
            Some(last) if last.is_match == is_match => last.text.push_str(text),
            _ => pieces.push(ExcerptPiece { text: text.to_owned(), is_match }),
        };

        for mark in marks {
            add(&self.text[at..mark.start.max(at)], false);
            add(&self.text[mark.start.max(at)..mark.end.max(at)], true);
            at = mark.end.max(at);
        }
        add(&self.text[at..window.end], false);
        if window.end < self.text.len() {
            add(CUT, false);
        }
        pieces
    }
}

/// Where these terms stand in a run, by its row and the text that was noted of it: as few excerpts
/// as show each term once, up to three.
pub(in crate::runs) fn excerpts(row: &RunRow, noted: &str, terms: &[String]) -> Vec<Excerpt> {
    let spec = serde_json::from_str::<RunSpec>(&row.spec);
    let (Ok(spec), Ok(record)) = (spec, RunRecord::of_row(row)) else { return Vec::new() };
    let texts = texts_of(row, &spec, &record.result);
    let lines =
        noted.split('\n').skip(texts.len()).map(|line| Searched::new(SearchedPart::Line, line));
    let texts = texts.iter().map(|(part, text)| Searched::new(*part, text));
    let mut all: Vec<Searched> = texts.chain(lines).collect();
    all.sort_by_key(|text| text.part);

    let terms = terms.iter().map(String::as_str).filter(|term| !term.is_empty());
    let terms: Vec<&str> = terms.collect();
    let mut left: Vec<&str> = terms.clone();
    let mut excerpts = Vec::new();
    while excerpts.len() < EXCERPTS_MAX {
        // The text with most of the terms that no excerpt shows yet; of several, the first.
        let count = |text: &&Searched| left.iter().filter(|term| text.has(term)).count();
        let Some(best) = all.iter().rev().max_by_key(count) else { break };
        let Some(term) = left.iter().find(|term| best.has(term)) else { break };
        let window = best.window(term);
        excerpts.push(best.excerpt(&window, &terms, &mut left));
    }
    excerpts
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The excerpt of a text for terms, with matches in brackets.
    fn shown(text: &str, terms: &[&str]) -> String {
        let searched = Searched::new(SearchedPart::Line, text);
        let mut left = terms.to_vec();
        let excerpt = searched.excerpt(&searched.window(terms[0]), terms, &mut left);
        assert_eq!(left, [""; 0], "all terms are shown");
        let piece = |piece: &ExcerptPiece| {
            if piece.is_match { format!("[{}]", piece.text) } else { piece.text.clone() }
        };
        excerpt.pieces.iter().map(piece).collect()
    }

    #[test]
    fn what_was_searched_is_marked_whatever_its_case() {
        assert_eq!(shown("cmp 0 1", &["0"]), "cmp [0] 1");
        assert_eq!(shown("Größe XL", &["größe"]), "[Größe] XL");
        assert_eq!(shown("aXbXc", &["x"]), "a[X]b[X]c");
        // Marks that overlap or touch are one.
        assert_eq!(shown("abcde", &["bc", "cd"]), "a[bcd]e");
        assert_eq!(shown("aaa", &["a", "aa"]), "[aaa]");
        // A character whose lowercase has two, and one with more bytes in lowercase.
        assert_eq!(shown("\u{130}x", &["i"]), "[\u{130}]x");
        assert_eq!(shown("\u{23a}\u{23a}b", &["b"]), "\u{23a}\u{23a}[b]");
    }

    #[test]
    fn an_excerpt_is_short_and_has_no_control_or_direction_characters() {
        let long = format!("{}needle{}", "a".repeat(500), "b".repeat(500));
        let expected = format!("…{}[needle]{}…", "a".repeat(30), "b".repeat(84));
        assert_eq!(shown(&long, &["needle"]), expected);
        let term = "é".repeat(200);
        assert_eq!(shown(&term, &[&term]), format!("[{}]…", "é".repeat(120)));
        assert_eq!(shown("a\u{1b}[2J\u{202e}b\tc", &["b"]), "a [2J [b] c");
    }
}
