//! Mathematics: a lesson a file.

mod long_division;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[AnyLesson::of::<long_division::Of>()];
