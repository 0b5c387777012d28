//! The marks of schedules.

use super::fixtures::Make;

pub fn schedules_are_marked_one_by_one(make: Make<'_>) {
    let mut store = make();
    let mark =
        |store: &super::Store, name: &str| store.journal().schedule_marks().mark(name).unwrap();
    assert_eq!(mark(&store, "nightly"), None);

    // A clock that is set back sets a mark back, too.
    for done_ms in [1_000, 2_000, 500, 0] {
        store.journal().schedule_marks().set_mark("nightly", done_ms).unwrap();
        assert_eq!(mark(&store, "nightly"), Some(done_ms));
        assert_eq!(mark(&store, "hourly"), None);
        store.reopen();
        assert_eq!(mark(&store, "nightly"), Some(done_ms));
    }

    store.journal().schedule_marks().set_mark("hourly", 7).unwrap();
    assert_eq!((mark(&store, "hourly"), mark(&store, "nightly")), (Some(7), Some(0)));
}
