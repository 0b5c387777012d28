//! Declares the tests of a suite. A suite is a file of functions of one task; each function makes a
//! test for each task, `<suite>::<task>::<function>`, so that a failure names its task and a task
//! can be tested alone.

use std::collections::BTreeSet;

use super::*;

// `suite!`, which takes the names of the functions, and `SLUGS`, written by the build script from
// the pages.
include!(concat!(env!("OUT_DIR"), "/suite.rs"));

/// The tests of one task.
macro_rules! tests {
    ($slug:literal $($function:ident)+) => {
        $(
            #[test]
            fn $function() {
                super::$function($crate::tasks::find($slug).expect("a page has its task"));
            }
        )+
    };
}

pub(crate) use {suite, tests};

/// All tasks and variants.
pub(super) fn every() -> impl Iterator<Item = &'static dyn AnyTask> {
    all().chain(variants())
}

#[test]
fn every_task_has_its_tests() {
    let listed: BTreeSet<_> = every().map(|task| task.spec().slug).collect();
    assert_eq!(listed, SLUGS.iter().copied().collect());
}
