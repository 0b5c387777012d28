//! Drafts what a turn writes next: the tokens that followed the last ones where they occurred
//! before in its own text.
//!
//! A draft is decoded together with the token that is due, and each of its tokens counts only if
//! sampling arrives at the same one. So it changes how much a pass computes, and never the text.

use std::collections::HashMap;

use super::super::kv_cache::Token;
use super::Sequence;

/// Lengths of the runs of tokens that must have occurred before; a longer run is a better sign.
const LONG: usize = 3;
const SHORT: usize = 2;

/// Tokens of the first draft, and of the longest.
const LENGTH_FIRST: usize = 4;
const LENGTH_MAX: usize = 12;

/// Number of useless drafts after which a draft needs a long run.
const MISSES_MAX: u32 = 2;

/// Finds drafts in the text of one turn.
#[derive(Debug)]
pub(super) struct Drafting {
    /// For each run of tokens, the place in the text after its last occurrence.
    long: HashMap<[Token; LONG], usize>,
    short: HashMap<[Token; SHORT], usize>,
    /// Number of tokens whose runs are recorded.
    known: usize,
    /// Most tokens of the next draft.
    length: usize,
    /// Useless drafts in a row.
    misses: u32,
}

impl Default for Drafting {
    fn default() -> Self {
        let (long, short) = (HashMap::new(), HashMap::new());
        Self { long, short, known: 0, length: LENGTH_FIRST, misses: 0 }
    }
}

impl Drafting {
    /// A draft of at most `most` tokens that follows the text, which only grows between calls;
    /// empty where its last tokens are new.
    pub(super) fn draft<'t>(&mut self, text: &'t [Token], most: usize) -> &'t [Token] {
        // The run at the end of the text is looked up, and has no next token yet.
        for end in self.known..text.len() {
            if let Some(run) = text[..end].last_chunk::<LONG>() {
                self.long.insert(*run, end);
            }
            if let Some(run) = text[..end].last_chunk::<SHORT>() {
                self.short.insert(*run, end);
            }
        }
        self.known = text.len();

        let long = text.last_chunk::<LONG>().and_then(|run| self.long.get(run));
        let short = || text.last_chunk::<SHORT>().and_then(|run| self.short.get(run));
        let found = long.or_else(|| if self.misses < MISSES_MAX { short() } else { None });
        let follows = found.map_or(&[][..], |place| &text[*place..]);
        &follows[..follows.len().min(most).min(self.length)]
    }

    /// Learns how many tokens of a draft were right: the next one is a little longer.
    pub(super) fn verified(&mut self, drafted: usize, right: usize) {
        if drafted == 0 {
            return;
        }
        self.misses = if right == 0 { self.misses.saturating_add(1) } else { 0 };
        self.length = if right == drafted {
            (self.length * 2).min(LENGTH_MAX)
        } else {
            (right + 1).min(LENGTH_MAX)
        };
    }
}

impl Sequence {
    /// Tokens of the draft in the batch.
    pub(crate) fn draft_length(&self) -> usize {
        self.draft.len()
    }

    /// Drafts what may follow the first `end` tokens, if they are all of the text so far.
    pub(super) fn prepare_draft(&mut self, end: usize, room: usize) {
        self.draft.clear();
        let is_at_choice = end == self.tokens.len() && self.finish.is_none();
        let Some(drafting) = self.drafting.as_mut().filter(|_| is_at_choice) else { return };
        // The token that is chosen after the draft needs a place too.
        let most = room.min(self.tokens_max.saturating_sub(end + 1));
        let draft = drafting.draft(&self.tokens, most);
        let length = match &mut self.grammar {
            Some(grammar) if self.thinking.is_none() => grammar.permitted_length(draft),
            _ => draft.len(),
        };
        self.draft.extend_from_slice(&draft[..length]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_draft_is_what_followed_the_last_tokens_before() {
        let mut drafting = Drafting::default();
        assert!(drafting.draft(&[], 9).is_empty());
        assert!(drafting.draft(&[1, 2, 3, 4, 5, 6], 9).is_empty(), "nothing stands twice");
        assert_eq!(drafting.draft(&[1, 2, 3, 4, 5, 6, 2, 3], 9), [4, 5, 6, 2]);
        assert_eq!(drafting.draft(&[1, 2, 3, 4, 5, 6, 2, 3], 2), [4, 5]);
        assert!(drafting.draft(&[1, 2, 3, 4, 5, 6, 2, 3, 9, 9], 0).is_empty());
    }

    #[test]
    fn a_long_run_decides_before_a_short_one_that_stood_later() {
        // 1 2 3 was followed by 7; 2 3, later, by 8.
        let text = [1, 2, 3, 7, 5, 2, 3, 8, 1, 2, 3];
        assert_eq!(Drafting::default().draft(&text, 1), [7]);
        // The last place counts.
        let text = [2, 3, 7, 2, 3, 8, 4, 2, 3];
        assert_eq!(Drafting::default().draft(&text, 1), [8]);
    }

    #[test]
    fn a_text_that_repeats_itself_is_continued_only_as_far_as_it_is_known() {
        assert_eq!(Drafting::default().draft(&[5, 5, 5, 5], 9), [5]);
        assert_eq!(Drafting::default().draft(&[1, 2, 1, 2, 1, 2], 9), [1, 2]);
    }

    #[test]
    fn drafts_grow_while_they_are_right_and_shrink_when_they_are_wrong() {
        let text: Vec<Token> = (0..40).chain(0..10).collect();
        let mut drafting = Drafting::default();
        assert_eq!(drafting.draft(&text, 99).len(), 4);
        drafting.verified(4, 4);
        assert_eq!(drafting.draft(&text, 99).len(), 8);
        drafting.verified(8, 8);
        assert_eq!(drafting.draft(&text, 99).len(), 12);
        drafting.verified(12, 2);
        assert_eq!(drafting.draft(&text, 99).len(), 3);
        drafting.verified(3, 0);
        assert_eq!(drafting.draft(&text, 99).len(), 1);
        // No draft says nothing.
        drafting.verified(0, 0);
        assert_eq!(drafting.draft(&text, 99).len(), 1);
    }

    #[test]
    fn after_misses_only_a_long_run_gives_a_draft() {
        let (short, long) = ([4, 1, 2, 9, 5, 1, 2], [1, 2, 3, 9, 1, 2, 3]);
        let mut drafting = Drafting::default();
        drafting.verified(1, 0);
        drafting.verified(1, 0);
        assert!(drafting.draft(&short, 9).is_empty());

        let mut drafting = Drafting::default();
        drafting.verified(1, 0);
        drafting.verified(1, 0);
        assert_eq!(drafting.draft(&long, 9), [9]);
    }
}
