//! Steps that wait for approval: which (`policy`), those of a run in memory (`waits`), what users see
//! of them (`record`), and what is decided about them, by people or by their `deadlines`.

pub(super) mod deadlines;
pub(super) mod decide;
pub(super) mod policy;
pub(super) mod record;
pub(super) mod waits;
