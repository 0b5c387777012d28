//! The lines of a trace as a persistent list: snapshots share their common prefix.

use std::sync::Arc;

/// Lines of a trace, newest on top.
#[derive(Clone, Debug, Default)]
pub struct Steps(Option<Arc<Step>>);

#[derive(Debug)]
struct Step {
    line: Box<str>,
    below: Steps,
    /// Number of lines up to this one.
    count: u64,
    /// Bytes of the lines up to this one.
    bytes: usize,
    /// Bytes of the longest line up to this one.
    longest: usize,
}

impl Steps {
    pub fn push(&mut self, line: &str) {
        let below = std::mem::take(self);
        *self = Self(Some(Arc::new(Step {
            line: line.into(),
            count: below.count() + 1,
            bytes: below.bytes() + line.len(),
            longest: below.longest().max(line.len()),
            below,
        })));
    }

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

    /// The lines in their order.
    pub fn lines(&self) -> Vec<&str> {
        // Each line is linked to the one before.
        let top = self.0.as_deref();
        let mut lines: Vec<&str> = std::iter::successors(top, |step| step.below.0.as_deref())
            .map(|step| step.line.as_ref())
            .collect();
        lines.reverse();
        lines
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
    use super::*;

    #[test]
    fn copies_share_their_beginning_and_go_their_own_ways() {
        let mut one = Steps::default();
        one.push("a");
        let mut two = one.clone();
        one.push("bcd");
        two.push("ef");

        assert_eq!((one.lines(), two.lines()), (vec!["a", "bcd"], vec!["a", "ef"]));
        assert_eq!((one.count(), one.bytes(), one.longest()), (2, 4, 3));
        assert_eq!(Steps::default().lines(), Vec::<&str>::new());
    }

    #[test]
    fn a_long_trace_is_dropped_without_recursion() {
        let mut steps = Steps::default();
        for _ in 0..300_000 {
            steps.push("step");
        }
        let copy = steps.clone();
        drop(steps);

        assert_eq!(copy.count(), 300_000);
        drop(copy);
    }
}
