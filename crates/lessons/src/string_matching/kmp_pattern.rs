//! KMP Pattern: nothing to derive; the view shows the two letters that are compared next.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::string_matching::kmp_pattern::{Instance, KmpPattern, Phase, State};

use crate::Lesson;

pub struct KmpPatternLesson;

impl Lesson for KmpPatternLesson {
    type Task = KmpPattern;

    fn view(instance: &Instance, state: &State) -> String {
        let letter = |letters: &[u8], place: usize| {
            letters.get(place).map_or('-', |letter| char::from(*letter))
        };

        let phase = if state.phase == Phase::Pattern { 'p' } else { 't' };
        let (subject, pattern) = (instance.subject(state.phase), instance.pattern.as_bytes());

        format!(
            "{phase} {} {} {}{}",
            state.i,
            state.k,
            letter(subject, state.i),
            letter(pattern, state.k)
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        KmpPattern::reference(instance, state).map(|_| String::new())
    }
}
