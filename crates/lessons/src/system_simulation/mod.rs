//! Simulated systems: a lesson a file.

mod assembly_line;
mod packet_routing;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[AnyLesson::of::<packet_routing::Of>(), AnyLesson::of::<assembly_line::Of>()];
