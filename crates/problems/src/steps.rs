//! The lines of a trace as a persistent list: snapshots share their common prefix.

use std::sync::Arc;

use serde_json::Value;

/// What a step was read as.
#[derive(Clone, Debug, PartialEq)]
pub struct Read {
    /// The value.
    pub value: Value,
    /// Its parts, as shapes count them.
    pub parts: u64,
}

/// Lines of a trace, newest on top.
#[derive(Clone, Debug, Default)]
pub struct Steps(Option<Arc<Step>>);

#[derive(Debug)]
struct Step {
    line: Box<str>,
    /// `None`: the line itself.
    read: Option<Read>,
    below: Steps,
    /// Number of lines up to this one.
    count: u64,
    /// Bytes of the lines up to this one.
    bytes: usize,
    /// Bytes of the longest line up to this one.
    longest: usize,
    /// Parts of the values of the lines up to this one.
    parts: u64,
    /// Parts of the largest of these.
    largest: u64,
}

impl Steps {
    /// Adds a line with what it was read as; `None` for the line itself.
    pub fn push(&mut self, line: &str, read: Option<Read>) {
        let below = std::mem::take(self);
        *self = Self(Some(Arc::new(Step {
            line: line.into(),
            count: below.count() + 1,
            bytes: below.bytes() + line.len(),
            longest: below.longest().max(line.len()),
            parts: below.parts() + read.as_ref().map_or(0, |read| read.parts),
            largest: below.largest().max(read.as_ref().map_or(0, |read| read.parts)),
            read,
            below,
        })));
    }

    /// Number of lines.
    pub fn count(&self) -> u64 {
        self.0.as_ref().map_or(0, |top| top.count)
    }

    /// Bytes of all lines together.
    pub fn bytes(&self) -> usize {
        self.0.as_ref().map_or(0, |top| top.bytes)
    }

    /// Bytes of the longest line.
    pub fn longest(&self) -> usize {
        self.0.as_ref().map_or(0, |top| top.longest)
    }

    /// Parts of the values of all lines; 0 where lines are texts.
    pub fn parts(&self) -> u64 {
        self.0.as_ref().map_or(0, |top| top.parts)
    }

    /// Parts of the largest value that a line was read as.
    pub fn largest(&self) -> u64 {
        self.0.as_ref().map_or(0, |top| top.largest)
    }

    /// Newest first: each line is linked to the one before.
    fn newest(&self) -> impl Iterator<Item = &Step> {
        std::iter::successors(self.0.as_deref(), |step| step.below.0.as_deref())
    }

    /// The lines in their order.
    pub fn lines(&self) -> Vec<&str> {
        let mut lines: Vec<&str> = self.newest().map(|step| step.line.as_ref()).collect();
        lines.reverse();
        lines
    }

    /// The lines with what they were read as, newest first.
    pub fn newest_first(&self) -> impl Iterator<Item = (&str, Option<&Read>)> {
        self.newest().map(|step| (step.line.as_ref(), step.read.as_ref()))
    }
}

impl Drop for Steps {
    /// Drops line by line, because dropping a long chain must not recurse. Ends at the first line
    /// that a copy still shares.
    fn drop(&mut self) {
        let mut next = self.0.take();
        while let Some(mut step) = next.and_then(Arc::into_inner) {
            next = step.below.0.take();
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn copies_share_their_beginning_and_go_their_own_ways() {
        let mut one = Steps::default();
        one.push("a", None);
        let mut two = one.clone();
        one.push("bcd", None);
        two.push("ef", Some(Read { value: json!([1]), parts: 2 }));

        assert_eq!((one.lines(), two.lines()), (vec!["a", "bcd"], vec!["a", "ef"]));
        assert_eq!((one.count(), one.bytes(), one.longest()), (2, 4, 3));
        assert_eq!((two.parts(), two.largest(), one.parts()), (2, 2, 0));
        let newest: Vec<_> =
            two.newest_first().map(|(line, read)| (line, read.is_some())).collect();
        assert_eq!(newest, [("ef", true), ("a", false)]);
        assert_eq!(Steps::default().lines(), Vec::<&str>::new());
    }

    #[test]
    fn a_long_trace_is_dropped_without_recursion() {
        let mut steps = Steps::default();
        for _ in 0..300_000 {
            steps.push("step", None);
        }
        let copy = steps.clone();
        drop(steps);

        assert_eq!(copy.count(), 300_000);
        drop(copy);
    }
}
