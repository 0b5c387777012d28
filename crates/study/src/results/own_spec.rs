//! The constant part of a record's task. All that a report knows about a user's task is what
//! records say.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use prime_bench::tasks::page::Page;
use prime_bench::tasks::spec::PaperFigures;
use prime_bench::tasks::{Category, Kinds, Spec, find};

use crate::records::Record;

/// The spec of a record's task. The spec of a user's task is never freed: a report has few of them.
pub(super) fn spec_of(record: &Record) -> &'static Spec {
    static OWN: Mutex<BTreeMap<String, &'static Spec>> = Mutex::new(BTreeMap::new());

    if let Ok(task) = find(&record.task) {
        return task.spec();
    }
    let mut own = OWN.lock().unwrap_or_else(PoisonError::into_inner);
    own.entry(record.task.clone()).or_insert_with(|| own_spec(&record.task))
}

fn own_spec(name: &str) -> &'static Spec {
    let slug: &'static str = Box::leak(name.to_owned().into_boxed_str());
    Box::leak(Box::new(Spec {
        // After all tasks of the benchmark.
        id: u16::MAX,
        slug,
        title: slug,
        category: Category::Own,
        sizes: [""; 3],
        actions: &[],
        constraints: &[],
        sound: Kinds::ALL,
        decisive: &[],
        hidden: &[],
        paper: PaperFigures { steps: 0, baseline: 0.0, prime: 0.0 },
        page: &Page::EMPTY,
    }))
}
