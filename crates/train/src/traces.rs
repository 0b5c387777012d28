//! Training samples for an executor: the next step of a reference trace. Knows states and prompts,
//! but no models.

use std::ops::Range;

use prime_lessons::{QUERY_END, Segment};
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::RngCore;

use super::states::States;
use super::trace_steps::TraceSteps;
use super::vocabulary::Vocabulary;
use super::{Attempted, CorrectionPlan, Data, Policy, Sample, Samples, TrainError, words};
use prime_bench::tasks::{Machine, PathDraw, TaskRng};

/// Number of samples drawn from one trace before the next is walked.
const SAMPLES_PER_TRACE: u32 = 12;

/// Number of steps of a task that are drawn to find one whose lesson is not too long.
const TRIES: u32 = 200;

/// Draws steps from the reference traces of some tasks.
pub struct Traces {
    states: States,
    by_form: f64,
    choices: f64,
    vocabulary: Vocabulary,
    /// By task: the trace that samples are drawn from, and the number of those drawn.
    walked: Vec<Option<(TraceSteps, u32)>>,
}

impl Traces {
    /// Finds the tasks that the data names, and their vocabulary.
    ///
    /// # Errors
    /// If there is no task with a name, a task has no lesson or one that is too long for its
    /// levels, or a listed word cannot be a token.
    pub fn new(data: &Data) -> Result<Self, TrainError> {
        let states = States::new(data)?;
        if let Some(task) = states.names().iter().find(|task| !prime_lessons::has_lesson(task)) {
            return Err(TrainError::NoLesson { task: task.clone() });
        }

        let walked = states.names().iter().map(|_| None).collect();
        check_lengths(&states)?;

        let mut traces = Self {
            walked,
            states,
            by_form: data.by_form,
            choices: data.choices,
            vocabulary: Vocabulary::default(),
        };
        // Frequent words are counted in samples, which can be drawn without words.
        traces.vocabulary = words::vocabulary(&mut traces, &data.words)?;
        if traces.states.names().iter().any(|task| prime_lessons::reads_max(task) > 0) {
            check_words(&traces.vocabulary)?;
        }

        Ok(traces)
    }

    /// The state with the reference step; `None` if the state's lesson is too long.
    fn sample(task: usize, machine: &dyn Machine) -> Option<Sample> {
        Some(Self::sample_of(task, machine, prime_lessons::completion(machine)?))
    }

    /// The state with the reference step or, for a share of the samples, any step that is as good.
    fn choice(&self, task: usize, machine: &dyn Machine, rng: &mut TaskRng) -> Option<Sample> {
        if self.choices > 0.0 && rng.chance((self.choices * 1_000.0) as u64, 1_000) {
            let mut others = prime_lessons::alternatives(machine);
            // The last place stands for the reference step.
            let place = rng.index(others.len() + 1);
            if place < others.len() {
                return Some(Self::sample_of(task, machine, others.swap_remove(place)));
            }
        }
        Self::sample(task, machine)
    }

    fn sample_of(task: usize, machine: &dyn Machine, completion: String) -> Sample {
        let appended = appended(machine.spec().slug, &completion);
        Sample { task, prompt: prime_lessons::compact(machine), completion, appended }
    }
}

/// Checks that each task has steps that are taught at the recipe's levels. Steps that are not are
/// drawn again.
fn check_lengths(states: &States) -> Result<(), TrainError> {
    for (task, name) in states.names().iter().enumerate() {
        let mut rng = TaskRng::new(0);
        for held_out in [false, true] {
            if !(0..TRIES).any(|_| {
                !prime_lessons::is_too_long(states.draw(task, held_out, &mut rng).as_ref())
            }) {
                return Err(TrainError::LessonTooLong { task: name.clone() });
            }
        }
    }
    Ok(())
}

/// Byte ranges of the values that the completion looks up.
fn appended(slug: &str, completion: &str) -> Vec<Range<usize>> {
    let mut ranges = Vec::new();
    let mut end = 0;

    for segment in prime_lessons::segments(slug, completion) {
        let (Segment::Written(text) | Segment::Appended(text)) = segment;
        let start = end;
        end += text.len();
        if matches!(segment, Segment::Appended(_)) {
            ranges.push(start..end);
        }
    }

    ranges
}

/// Checks that no word can reach from a query into its value, or from a value into what follows it:
/// a serving engine tokenizes a text together with its values.
fn check_words(vocabulary: &Vocabulary) -> Result<(), TrainError> {
    let ends_text = |word: &&String| word[..word.len() - 1].contains([QUERY_END, ' ']);
    match vocabulary.words().iter().find(ends_text) {
        Some(word) => Err(TrainError::Recipe(format!(
            "data.words: {word:?} could reach over the end of a value that is looked up: leave it out, or the tasks with reads"
        ))),
        None => Ok(()),
    }
}

impl Samples for Traces {
    fn fork(&self) -> Option<Box<dyn Samples + Send>> {
        Some(Box::new(Self {
            states: self.states.clone(),
            by_form: self.by_form,
            choices: self.choices,
            vocabulary: self.vocabulary.clone(),
            walked: self.walked.iter().map(|_| None).collect(),
        }))
    }

    fn begin_pool(&mut self) {
        self.walked.fill_with(|| None);
    }

    fn tasks(&self) -> &[String] {
        self.states.names()
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        let mut rng = TaskRng::new(rng.next_u64());
        // `check_lengths` has found steps whose lessons are short enough.
        loop {
            if let Some(sample) = self.draw_taught(task, held_out, &mut rng) {
                return sample;
            }
        }
    }

    fn attempt(
        &mut self,
        task: usize,
        policy: &Policy<'_>,
        plan: &CorrectionPlan,
        rng: &mut ChaCha8Rng,
    ) -> Option<(Attempted, Vec<Sample>)> {
        let mut draws = TaskRng::new(rng.next_u64());
        let starts = (0..plan.attempts).filter_map(|number| {
            if number % 2 == 0 {
                Some(self.states.instance(task, &mut draws).start())
            } else {
                self.state(task, true, &mut draws)
            }
        });
        let starts: Vec<_> = starts.collect();

        let (attempted, wrong) = policy.attempt(task, starts, plan.proposals, rng);
        let samples =
            wrong.iter().filter_map(|machine| Self::sample(task, machine.as_ref())).collect();

        Some((attempted, samples))
    }
}

impl Traces {
    /// Draws a sample; `None` if the lesson of the state drawn is too long.
    fn draw_taught(&mut self, task: usize, held_out: bool, rng: &mut TaskRng) -> Option<Sample> {
        if held_out || self.by_form == 0.0 {
            return Self::sample(task, self.states.draw(task, held_out, rng).as_ref());
        }

        let is_by_form = rng.chance((self.by_form * 1_000.0) as u64, 1_000);
        let machine = self.state(task, is_by_form, rng)?;
        self.choice(task, machine.as_ref(), rng)
    }

    /// Draws a state of a training instance's trace; `None` if no step of the trace is taught.
    fn state(
        &mut self,
        task: usize,
        is_by_form: bool,
        rng: &mut TaskRng,
    ) -> Option<Box<dyn Machine>> {
        let kept = self.walked[task].take().filter(|(_, drawn)| *drawn < SAMPLES_PER_TRACE);
        let (steps, drawn) = match kept {
            Some(kept) => kept,
            None => {
                let problem = self.states.instance(task, rng);
                // Traces that can be jumped into are too long to be walked.
                let draw = if is_by_form { PathDraw::ByAction } else { PathDraw::Uniform };
                if let Some(machine) = problem.on_path(draw, rng) {
                    return Some(machine);
                }
                (TraceSteps::walk(problem.as_ref(), rng), 0)
            }
        };

        if steps.is_empty() {
            return None;
        }

        let machine =
            if is_by_form { steps.draw_by_form(rng) } else { steps.draw_uniform(rng) }.fork();
        self.walked[task] = Some((steps, drawn + 1));
        Some(machine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{Difficulty, find};

    #[test]
    fn what_a_completion_looks_up_is_known() {
        let mut machine = find("introsort").expect("a task").generate(Difficulty::Easy, 1).start();
        machine.follow_reference();

        let sample = Traces::sample(0, machine.as_ref()).expect("a step that is taught");
        assert!(sample.appended.len() >= 3, "the median of three values: {sample:?}");
        for value in &sample.appended {
            let (before, value) =
                (&sample.completion[..value.start], &sample.completion[value.clone()]);
            assert!(
                before.ends_with('?') && value.starts_with('=') && value.ends_with(' '),
                "{sample:?}"
            );
        }
    }

    #[test]
    fn a_word_that_could_reach_over_a_value_is_refused() {
        let words = |word: &str| Vocabulary::new(vec![word.to_owned()]).expect("a vocabulary");
        for word in ["cmp ", "i=", "5?"] {
            check_words(&words(word)).expect("it ends with its separator");
        }
        for word in ["?=", " lt", "a b"] {
            let message = check_words(&words(word)).expect_err("refused").to_string();
            assert!(message.contains("data.words") && message.contains(word), "{message}");
        }
    }
}
