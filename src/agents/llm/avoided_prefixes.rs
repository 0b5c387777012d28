//! Which beginnings the next proposal at a state should avoid. A grammar permits numbers of any length, so a model that is
//! sure of `move 8 2 1` and may not write it again writes `move 8 2 17` next: without more than the excluded lines it would
//! try all of those before another disk.
//!
//! Rejected lines form a tree by their words. A line is avoided with all its continuations; once two successors of a node
//! are avoided, the node is; a form of action is avoided after two of its lines, as long as there is another form.

use std::collections::BTreeMap;

use prime_bench::tasks::pattern;

/// Avoided successors of a node, or rejected lines of a form, after which something else comes first.
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

    /// Adds the shortest prefixes to avoid; whether this node is one. `may_be_avoided` is false at the root and for the only
    /// form of action.
    fn avoid(&self, prefix: &str, may_be_avoided: bool, found: &mut Vec<Box<str>>) -> bool {
        let own = found.len();
        let mut avoided = 0;
        for (word, successor) in &self.successors {
            let longer = if prefix.is_empty() { (*word).to_owned() } else { format!("{prefix} {word}") };
            avoided += usize::from(successor.avoid(&longer, true, found));
        }
        let is_avoided = self.is_rejected || (may_be_avoided && avoided >= TRIED_MAX);
        if is_avoided {
            found.truncate(own);
            found.push(prefix.into());
        }
        is_avoided
    }
}

/// The prefixes to avoid where these lines were rejected; `forms` are those of the task's actions.
pub(super) fn avoided_prefixes<'l>(forms: &[&str], rejected: impl Iterator<Item = &'l str>) -> Vec<Box<str>> {
    let mut root = Node::default();
    let mut of_form = vec![0; forms.len()];
    for line in rejected.filter(|line| !line.is_empty()) {
        if let Some((form, _)) = pattern::parse(forms, line) {
            of_form[form] += 1;
        }
        root.insert(line);
    }
    let mut prefixes = Vec::new();
    // A form is known by its first word. Its lines are together under that word, unless another form shares it.
    let first = |form: &&str| form.split(' ').next().unwrap_or_default().to_owned();
    let verbs: Vec<String> = forms.iter().map(first).collect();
    let lines_of = |verb: &str| -> usize {
        verbs.iter().zip(&of_form).filter(|(other, _)| *other == verb).map(|(_, count)| count).sum()
    };
    let is_tried = |verb: &String| lines_of(verb) >= TRIED_MAX;
    let is_single = |form: &&str| !form.contains('<');
    let spent =
        verbs.iter().zip(forms).filter(|(verb, form)| is_tried(verb) || (is_single(form) && lines_of(verb) > 0));
    let is_other_left = spent.count() < forms.len();
    for (word, node) in &root.successors {
        let verb = (*word).to_owned();
        if is_other_left && verbs.contains(&verb) && is_tried(&verb) {
            prefixes.push(verb.into());
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
        assert_eq!(avoided(&HANOI, &["move 8 2 1", "move 8 2 0", "move 8 1 0"]), ["move 8 1 0", "move 8 2"]);
        assert_eq!(avoided(&HANOI, &["move 8 2 1", "move 8 2 0", "move 8 1 0", "move 8 1 2"]), ["move 8"]);
    }

    #[test]
    fn the_only_form_of_action_is_never_avoided() {
        let lines: Vec<String> =
            (1..5).flat_map(|disk| ["0 1", "0 2", "1 0", "1 2"].map(|pegs| format!("move {disk} {pegs}"))).collect();
        let lines: Vec<&str> = lines.iter().map(String::as_str).collect();
        assert_eq!(avoided(&HANOI, &lines), ["move 1", "move 2", "move 3", "move 4"]);
    }

    #[test]
    fn a_form_gives_way_to_the_others_after_two_lines() {
        assert_eq!(avoided(&SORT, &["cmp 0 1", "cmp 7 8"]), ["cmp"]);
        assert_eq!(avoided(&SORT, &["cmp 0 1", "cmp 7 8", "swap 0 1"]), ["cmp", "swap 0 1"]);
        assert_eq!(avoided(&SORT, &["cmp 0 1", "cmp 7 8", "swap 0 1", "swap 1 2", "pass"]), ["cmp", "pass", "swap"]);
    }

    #[test]
    fn where_every_form_was_tried_none_is_avoided_as_a_whole() {
        let rejected = ["cmp 0 1", "cmp 7 8", "swap 0 1", "swap 1 2", "pass", "done"];
        assert_eq!(avoided(&SORT, &rejected), ["cmp 0 1", "cmp 7 8", "done", "pass", "swap 0 1", "swap 1 2"]);
    }

    #[test]
    fn lines_of_no_form_are_avoided_as_they_are() {
        assert_eq!(avoided(&SORT, &["nonsense", "cmp 0 1"]), ["cmp 0 1", "nonsense"]);
    }
}
