//! Automata: a lesson a file.

mod dfa_simulation;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[AnyLesson::of::<dfa_simulation::Of>()];
