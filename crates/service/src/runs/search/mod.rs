//! Finding runs: the entry of each in the journal's search index (`entry`), excerpts of what a
//! search found (`excerpt`), the runs that have changed since (`changed`), the task that notes them
//! (`indexer`), and whether it has noted all of them (`indexed`).

pub(super) mod changed;
mod entry;
mod excerpt;
pub(super) mod indexed;
mod indexer;

pub use entry::searched_text;
pub(super) use excerpt::excerpts;
pub use excerpt::{Excerpt, ExcerptPiece, SearchedPart};
