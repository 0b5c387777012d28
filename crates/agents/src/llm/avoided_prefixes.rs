//! Which prefixes the next proposal at a state should avoid. A grammar permits numbers of any
//! length, so a model that is sure of `move 8 2 1` and may not write it again writes `move 8 2 17`
//! next: if only rejected lines were excluded, it would try all of these before another disk.
//!
//! Rejected lines form a tree by their words. A line is avoided with all its continuations; once
//! two successors of a node are avoided, so is the node; a form of action is avoided after two of
//! its lines, as long as there is another form.

use std::collections::BTreeMap;

/// Avoided successors of a node, or rejected lines of a form, after which something else comes
/// first.
const TRIED_MAX: usize = 2;

#[derive(Default)]
struct Node<'l> {
    is_rejected: bool,
    successors: BTreeMap<&'l str, Node<'l>>,
}

impl<'l> Node<'l> {
    fn insert(&mut self, line: &'l str) {
        let mut at = self;
        for word in line.split(' ') {
            at = at.successors.entry(word).or_default();
        }
        at.is_rejected = true;
    }

    /// Number of rejected lines at this node and below.
    fn lines(&self) -> usize {
        usize::from(self.is_rejected) + self.successors.values().map(Self::lines).sum::<usize>()
    }

    /// Adds the shortest prefixes to avoid to `found` and returns whether this node is one of them.
    /// `may_be_avoided` is false for a form of action, which may be the only one left.
    fn avoid(&self, prefix: &str, may_be_avoided: bool, found: &mut Vec<Box<str>>) -> bool {
        let own = found.len();
        let mut avoided = 0;
        for (word, successor) in &self.successors {
            let longer =
                if prefix.is_empty() { (*word).to_owned() } else { format!("{prefix} {word}") };
            avoided += usize::from(successor.avoid(&longer, true, found));
        }

        let is_avoided = self.is_rejected || (may_be_avoided && avoided >= TRIED_MAX);
        // One shorter prefix replaces those found below this node.
        if is_avoided {
            found.truncate(own);
            found.push(prefix.into());
        }
        is_avoided
    }
}

/// The prefixes to avoid where these lines were rejected; `forms` are those of the task's actions.
pub(super) fn avoided_prefixes<'l>(
    forms: &[&str],
    rejected: impl Iterator<Item = &'l str>,
) -> Vec<Box<str>> {
    let mut root = Node::default();
    rejected.filter(|line| !line.is_empty()).for_each(|line| root.insert(line));

    // A form of action is known by its first word; forms that share it count as one.
    let verb = |form: &str| form.split(' ').next().unwrap_or_default().to_owned();

    let is_spent = |form: &&str| {
        let lines = root.successors.get(verb(form).as_str()).map_or(0, Node::lines);
        // A form without fields is a single line.
        lines >= TRIED_MAX || (lines > 0 && !form.contains('<'))
    };

    let is_other_left = !forms.iter().all(is_spent);
    let mut prefixes = Vec::new();

    for (word, node) in &root.successors {
        let is_verb = forms.iter().any(|form| verb(form) == **word);
        if is_other_left && is_verb && node.lines() >= TRIED_MAX {
            prefixes.push((*word).into());
        } else {
            node.avoid(word, false, &mut prefixes);
        }
    }
    prefixes
}

#[cfg(test)]
mod tests {
    use super::*;

    const SORT: [&str; 4] = ["cmp <nat> <nat>", "swap <nat> <nat>", "pass", "done"];
    const HANOI: [&str; 1] = ["move <nat> <digit> <digit>"];

    fn avoided(forms: &[&str], rejected: &[&str]) -> Vec<String> {
        avoided_prefixes(forms, rejected.iter().copied()).iter().map(ToString::to_string).collect()
    }

    #[test]
    fn a_rejected_line_is_avoided_with_its_continuations() {
        assert_eq!(avoided(&HANOI, &[]), Vec::<String>::new());
        assert_eq!(avoided(&HANOI, &["move 8 2 1"]), ["move 8 2 1"]);
    }

    #[test]
    fn two_avoided_successors_make_a_prefix() {
        assert_eq!(avoided(&HANOI, &["move 8 2 1", "move 8 2 0"]), ["move 8 2"]);
        assert_eq!(
            avoided(&HANOI, &["move 8 2 1", "move 8 2 0", "move 8 1 0"]),
            ["move 8 1 0", "move 8 2"]
        );
        assert_eq!(
            avoided(&HANOI, &["move 8 2 1", "move 8 2 0", "move 8 1 0", "move 8 1 2"]),
            ["move 8"]
        );
    }

    #[test]
    fn the_only_form_of_action_is_never_avoided() {
        let lines: Vec<String> = (1..5)
            .flat_map(|disk| ["0 1", "0 2", "1 0", "1 2"].map(|pegs| format!("move {disk} {pegs}")))
            .collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(avoided(&HANOI, &lines), ["move 1", "move 2", "move 3", "move 4"]);
    }

    #[test]
    fn a_form_gives_way_to_the_others_after_two_lines() {
        assert_eq!(avoided(&SORT, &["cmp 0 1", "cmp 7 8"]), ["cmp"]);
        assert_eq!(avoided(&SORT, &["cmp 0 1", "cmp 7 8", "swap 0 1"]), ["cmp", "swap 0 1"]);
        assert_eq!(
            avoided(&SORT, &["cmp 0 1", "cmp 7 8", "swap 0 1", "swap 1 2", "pass"]),
            ["cmp", "pass", "swap"]
        );
    }

    #[test]
    fn where_every_form_was_tried_none_is_avoided_as_a_whole() {
        let rejected = ["cmp 0 1", "cmp 7 8", "swap 0 1", "swap 1 2", "pass", "done"];
        assert_eq!(
            avoided(&SORT, &rejected),
            ["cmp 0 1", "cmp 7 8", "done", "pass", "swap 0 1", "swap 1 2"]
        );
    }

    #[test]
    fn lines_of_no_form_are_avoided_as_they_are() {
        assert_eq!(avoided(&SORT, &["nonsense", "cmp 0 1"]), ["cmp 0 1", "nonsense"]);
    }
}
