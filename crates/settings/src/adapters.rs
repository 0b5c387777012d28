//! The adapters of an agent: one for all tasks, and those of single tasks.

use std::collections::{BTreeMap, BTreeSet};

use prime_bench::tasks;

/// The adapters that an agent's options name.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct AgentAdapters<'a> {
    /// The adapter of all other tasks; empty = none.
    pub own: &'a str,
    /// How strongly each is applied; 1 = as it was trained.
    pub scale: f64,
    /// By task or category; empty = none.
    pub by_task: &'a BTreeMap<String, String>,
}

/// Returns whether an entry, a slug or a category, names the task.
pub(super) fn includes(entry: &str, task: &str) -> bool {
    entry == task || tasks::find(task).is_ok_and(|task| entry == task.spec().category.name())
}

impl<'a> AgentAdapters<'a> {
    /// The adapter for a task, if it has one: the task's, else its category's, else the agent's.
    pub fn of_task(&self, task: &str) -> Option<&'a str> {
        let of_category = || self.by_task.iter().find(|(entry, _)| includes(entry, task));
        let named = self.by_task.get_key_value(task).or_else(of_category);
        let adapter = named.map_or(self.own, |(_, adapter)| adapter.as_str());
        (!adapter.is_empty()).then_some(adapter)
    }

    /// All adapters, and `None` if some task has no adapter.
    pub fn all(&self) -> BTreeSet<Option<&'a str>> {
        let named = self.by_task.values().map(String::as_str);
        let all = named.chain([self.own]);
        all.map(|adapter| (!adapter.is_empty()).then_some(adapter)).collect()
    }

    /// The first key that is neither a task nor a category.
    pub(super) fn unknown_task(&self) -> Option<&'a str> {
        let is_known = |entry: &str| tasks::all().any(|task| includes(entry, task.spec().slug));
        self.by_task.keys().map(String::as_str).find(|entry| !is_known(entry))
    }
}

/// The default scale: adapters apply as they were trained.
pub(super) const fn full() -> f64 {
    1.0
}

/// Returns whether adapters are applied as they were trained.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes references")]
#[expect(clippy::float_cmp, reason = "the default is written exactly")]
pub(super) fn is_full(scale: &f64) -> bool {
    *scale == full()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_comes_before_its_category_and_that_before_all_others() {
        let by_task = [("union-find", "one"), ("graph", "two"), ("n-queens", "")];
        let by_task = by_task.map(|(task, adapter)| (task.to_owned(), adapter.to_owned())).into();
        let adapters = AgentAdapters { own: "rest", scale: 1.0, by_task: &by_task };

        let category = tasks::find("union-find").unwrap().spec().category.name();
        for (task, expected) in
            [("union-find", Some("one")), ("n-queens", None), ("bubble-sort", Some("rest"))]
        {
            assert_eq!(adapters.of_task(task), expected, "{task} ({category})");
        }

        assert_eq!(adapters.all(), BTreeSet::from([None, Some("one"), Some("two"), Some("rest")]));
        assert_eq!(
            AgentAdapters { own: "", scale: 1.0, by_task: &BTreeMap::new() }.all(),
            BTreeSet::from([None])
        );
    }

    #[test]
    fn a_category_serves_its_tasks_and_a_wrong_key_is_found() {
        let category = tasks::find("bubble-sort").unwrap().spec().category.name();
        let by_task = BTreeMap::from([(category.to_owned(), "sorts".to_owned())]);
        let adapters = AgentAdapters { own: "", scale: 1.0, by_task: &by_task };
        assert_eq!(adapters.of_task("bubble-sort"), Some("sorts"));
        assert_eq!((adapters.of_task("sudoku"), adapters.unknown_task()), (None, None));

        let by_task = BTreeMap::from([("bubble-sorts".to_owned(), "x".to_owned())]);
        let adapters = AgentAdapters { own: "", scale: 1.0, by_task: &by_task };
        assert_eq!(adapters.unknown_task(), Some("bubble-sorts"));
    }
}
