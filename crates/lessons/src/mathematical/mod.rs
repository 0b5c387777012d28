//! Mathematics: a lesson a file.

mod long_division;
mod matrix_multiply;
mod symbolic_diff;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<long_division::Of>(),
    AnyLesson::of::<matrix_multiply::Of>(),
    AnyLesson::of::<symbolic_diff::Of>(),
];
