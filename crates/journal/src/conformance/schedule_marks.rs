//! The marks of schedules.

use super::fixtures::{Make, Store};

fn mark(store: &dyn Store, schedule: &str) -> Option<u64> {
    store.journal().schedule_marks().mark(schedule).unwrap()
}

fn set_mark(store: &dyn Store, schedule: &str, done_ms: u64) {
    store.journal().schedule_marks().set_mark(schedule, done_ms).unwrap();
}

pub fn schedules_are_marked_one_by_one(make: Make<'_>) {
    let mut store = make();
    assert_eq!(mark(store.as_ref(), "nightly"), None);

    // A clock that is set back sets a mark back, too.
    for done_ms in [1_000, 2_000, 500, 0] {
        set_mark(store.as_ref(), "nightly", done_ms);
        assert_eq!(mark(store.as_ref(), "nightly"), Some(done_ms));
        assert_eq!(mark(store.as_ref(), "hourly"), None);
        store.reopen();
        assert_eq!(mark(store.as_ref(), "nightly"), Some(done_ms));
    }

    set_mark(store.as_ref(), "hourly", 7);
    let marks = (mark(store.as_ref(), "hourly"), mark(store.as_ref(), "nightly"));
    assert_eq!(marks, (Some(7), Some(0)));
}
