//! Names that no task has, with suggestions.

use std::cmp::Reverse;

use super::{AnyTask, Category, all, variants};

/// No slug is longer; unknown names are cut to this many characters.
const NAME_MAX: usize = 64;
/// Limit of suggested tasks.
const SUGGESTIONS_MAX: usize = 3;

/// A name that no task has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message(command))]
pub struct UnknownTask {
    /// Cut to 64 characters.
    pub name: String,
}

impl UnknownTask {
    pub(super) fn new(name: &str) -> Self {
        Self { name: name.chars().take(NAME_MAX).collect() }
    }

    /// The tasks that may have been meant. `list` gives the command that lists all tasks, or those
    /// of a category.
    pub fn message(&self, list: impl Fn(Option<Category>) -> String) -> String {
        format!("unknown task {:?}: {}", self.name, suggestion(&self.name, list))
    }
}

fn command(category: Option<Category>) -> String {
    category.map_or("prime-agents bench list".to_owned(), |of| {
        format!("prime-agents bench list --category {of}")
    })
}

fn suggestion(name: &str, list: impl Fn(Option<Category>) -> String) -> String {
    let name = name.to_lowercase().replace([' ', '_'], "-");

    if let Ok(category) = name.parse::<Category>() {
        return format!("that is a category; `{}` names its tasks", list(Some(category)));
    }

    let with_name = containing(&name);
    let categories: Vec<_> =
        Category::ALL.into_iter().filter(|of| of.name().contains(&name)).collect();

    // `sorting` is in no slug, but in the names of three categories.
    if let ([], [first, ..], false) = (&with_name[..], &categories[..], name.is_empty()) {
        let names = categories.iter().map(|of| of.name()).collect::<Vec<_>>().join(", ");
        let list = list(Some(*first));
        return format!(
            "no task, but part of the name of a category ({names}); `{list}` names its tasks"
        );
    }

    let meant = if with_name.is_empty() { Vec::from_iter(nearest(&name)) } else { with_name };
    if meant.is_empty() {
        return format!("`{}` names all", list(None));
    }

    let mut named: Vec<_> =
        meant.iter().take(SUGGESTIONS_MAX).map(|slug| format!("`{slug}`")).collect();
    let further = meant.len().saturating_sub(SUGGESTIONS_MAX);
    let last = if further > 0 {
        Some(format!("one of {further} more with {name:?}"))
    } else {
        named.pop()
    };

    let (first, last) = (named.join(", "), last.unwrap_or_default());
    let either = if first.is_empty() { last } else { format!("{first} or {last}") };
    format!("did you mean {either}? `{}` names all", list(None))
}

fn slugs(tasks: impl Iterator<Item = &'static dyn AnyTask>) -> impl Iterator<Item = &'static str> {
    tasks.map(|task| task.spec().slug)
}

/// Shortest name that is looked for within words, in characters: `all` is not part of
/// `floyd-warshall`, and `kmp` begins a word.
const WITHIN_WORDS_MIN: usize = 4;

/// The slugs that contain a name, the shortest first and variants last.
fn containing(name: &str) -> Vec<&'static str> {
    let is_short = name.chars().count() < WITHIN_WORDS_MIN;
    let with_name = |slug: &&str| {
        let begins_word = || slug.split('-').any(|word| word.starts_with(name));
        !name.is_empty() && if is_short { begins_word() } else { slug.contains(name) }
    };
    let mut found: Vec<_> = slugs(all()).filter(with_name).collect();
    found.sort_by_key(|slug| slug.len());
    found.extend(slugs(variants()).filter(with_name));
    found
}

/// The number of words of a slug that a name has, each part of the name counted once.
fn shared_words(slug: &str, name: &str) -> usize {
    let mut words: Vec<_> = slug.split('-').filter(|word| word.len() > 2).collect();
    // The longest first, so that a shorter word does not use up a part of it.
    words.sort_by_key(|word| Reverse(word.len()));
    let mut rest = name.to_owned();

    let mut is_shared = |word: &&str| {
        let found = rest.contains(word);
        rest = rest.replacen(word, "-", 1);
        found
    };

    words.iter().filter(|word| is_shared(word)).count()
}

/// Least similarity (Jaro-Winkler, 0 to 1) of a name to a slug, or to a word of it, with which it
/// shares no word. Below it lie names that were not misspelt, such as `nope` for `gnome-sort`.
const SIMILARITY_MIN: f64 = 0.8;

/// The slug most like a name: one that shares words with it, then by spelling, of the whole or of a
/// word. `None` if none is like it.
fn nearest(name: &str) -> Option<&'static str> {
    let likeness = |slug: &str| {
        // A misspelt part of a name: `hanio` is `tower-of-hanoi`.
        let part = slug.split('-').map(|word| strsim::jaro_winkler(word, name)).fold(0.0, f64::max);
        (shared_words(slug, name), strsim::jaro_winkler(slug, name).max(part))
    };
    let known = slugs(all().chain(variants())).map(|slug| (likeness(slug), slug));

    // The scores are floats, which have no total order. The shorter slug wins a tie.
    let order = |((words, spelling), slug): &((usize, f64), &str),
                 ((other_words, other_spelling), other): &((usize, f64), &str)| {
        words
            .cmp(other_words)
            .then(spelling.total_cmp(other_spelling))
            .then(other.len().cmp(&slug.len()))
    };

    let ((words, spelling), slug) = known.max_by(order)?;
    (words > 0 || spelling >= SIMILARITY_MIN).then_some(slug)
}

#[cfg(test)]
mod tests {
    use super::NAME_MAX;
    use crate::tasks::find;

    fn message(name: &str) -> String {
        find(name).err().expect("no task").to_string()
    }

    #[test]
    fn an_unknown_name_suggests_the_task_that_was_meant() {
        for (name, meant) in [
            ("hanoi", "tower-of-hanoi"),
            ("Tower of Hanoi", "tower-of-hanoi"),
            ("towers-hanoi", "tower-of-hanoi"),
            ("quicksort", "quick-sort"),
            ("sort_bubble", "bubble-sort"),
            ("buble-sort", "bubble-sort"),
            ("n-quens", "n-queens"),
            ("8-queens", "n-queens"),
            ("sudoko", "sudoku"),
            ("kmp", "kmp-pattern"),
            ("djikstra", "dijkstra"),
            ("hanio", "tower-of-hanoi"),
            ("simplx", "simplex-method"),
        ] {
            let message = message(name);
            assert!(
                message.contains(&format!(": did you mean `{meant}`? `prime-agents bench list`")),
                "{message}"
            );
        }
    }

    #[test]
    fn a_name_that_is_like_no_task_suggests_none() {
        for name in ["nope", "all", "x", "benchmark", "???", ""] {
            let message = message(name);
            assert!(message.ends_with(": `prime-agents bench list` names all"), "{message}");
        }
    }

    #[test]
    fn all_that_may_be_meant_are_suggested() {
        let queens = message("queens");
        assert!(
            queens.contains("did you mean `n-queens` or `n-queens-last-queen`? `prime-agents"),
            "{queens}"
        );

        let sorting = message("sorting");
        assert!(
            sorting.contains("(comparison-sorting, non-comparison-sorting, advanced-sorting)"),
            "{sorting}"
        );

        let sorts = message("sort");
        assert!(
            sorts.contains("`tree-sort` or one of ")
                && sorts.contains(" more with \"sort\"? `prime"),
            "{sorts}"
        );
    }

    #[test]
    fn the_name_of_a_category_is_recognised() {
        for name in ["logic", "comparison-sorting", "Graph Traversal"] {
            let error = message(name);
            assert!(
                error.contains("is a category") && error.contains("bench list --category "),
                "{error}"
            );
        }
    }

    #[test]
    fn long_unknown_names_are_cut() {
        let error = find(&"é".repeat(1 << 20)).err().expect("unknown");
        assert_eq!(error.name.chars().count(), NAME_MAX);
    }
}
