//! Comparison sorts: a lesson a file.

mod bubble_sort;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[AnyLesson::of::<bubble_sort::Of>()];
