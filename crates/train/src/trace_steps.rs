//! The steps of one trace, kept by the form of their completions: steps that are rare in a trace
//! but decide it would hardly ever be drawn uniformly. Knows lessons, but no models.

use std::collections::BTreeMap;

use prime_bench::tasks::{Machine, Problem, TaskRng};

/// Number of steps kept of each form, and of the trace as a whole.
const OF_FORM_MAX: usize = 4;
const UNIFORM_MAX: usize = 16;

/// Maximum number of forms; steps of further ones are only drawn as steps of the trace.
const FORMS_MAX: usize = 128;

/// After this many steps, the form is that of the action alone, which is known without computing
/// the derivation.
const DERIVED_MAX: u64 = 4_000;

/// A uniform sample of the steps seen so far.
struct Reservoir {
    kept: Vec<Box<dyn Machine>>,
    size: usize,
    seen: u64,
}

impl Reservoir {
    fn new(size: usize) -> Self {
        Self { kept: Vec::new(), size, seen: 0 }
    }

    fn see(&mut self, machine: &dyn Machine, rng: &mut TaskRng) {
        self.seen += 1;
        if self.kept.len() < self.size {
            self.kept.push(machine.fork());
        } else {
            // Algorithm R: the n-th step replaces a kept one with probability size / n.
            let place = usize::try_from(rng.below(self.seen)).unwrap_or(usize::MAX);
            if let Some(kept) = self.kept.get_mut(place) {
                *kept = machine.fork();
            }
        }
    }

    fn draw(&self, rng: &mut TaskRng) -> &dyn Machine {
        self.kept[rng.index(self.kept.len())].as_ref()
    }
}

/// The steps of one trace.
pub struct TraceSteps {
    uniform: Reservoir,
    by_form: Vec<Reservoir>,
}

impl TraceSteps {
    /// Walks the whole reference trace. Steps that are not taught are left out.
    pub fn walk(problem: &dyn Problem, rng: &mut TaskRng) -> Self {
        let mut uniform = Reservoir::new(UNIFORM_MAX);
        let mut by_form: BTreeMap<String, Reservoir> = BTreeMap::new();
        let mut machine = problem.start();
        let mut step = 0;
        let mut before = String::new();

        while let Some(action) = machine.reference() {
            step += 1;
            let previous = std::mem::replace(&mut before, verb(&action).to_owned());

            if prime_lessons::is_too_long(machine.as_ref()) {
                machine.follow_reference();
                continue;
            }

            uniform.see(machine.as_ref(), rng);
            let derivation = if step <= DERIVED_MAX {
                prime_lessons::derivation(machine.as_ref())
            } else {
                None
            };

            let form = form_of(&previous, &derivation.unwrap_or_default(), &action);
            let is_known = by_form.contains_key(&form);
            if is_known || by_form.len() < FORMS_MAX {
                let reservoir = by_form.entry(form).or_insert_with(|| Reservoir::new(OF_FORM_MAX));
                reservoir.see(machine.as_ref(), rng);
            }

            machine.follow_reference();
        }

        Self { uniform, by_form: by_form.into_values().collect() }
    }

    /// Returns whether no step of the trace is taught.
    pub fn is_empty(&self) -> bool {
        self.by_form.is_empty()
    }

    /// A step; all are equally likely.
    pub fn draw_uniform(&self, rng: &mut TaskRng) -> &dyn Machine {
        self.uniform.draw(rng)
    }

    /// A step of a form; all forms are equally likely.
    pub fn draw_by_form(&self, rng: &mut TaskRng) -> &dyn Machine {
        self.by_form[rng.index(self.by_form.len())].draw(rng)
    }
}

/// The verb of an action: its first word, or nothing if that is a number.
fn verb(action: &str) -> &str {
    action
        .split(' ')
        .next()
        .filter(|word| word.starts_with(char::is_alphabetic))
        .unwrap_or_default()
}

/// The form of a completion: its derivation with numbers and names, which are runs of letters and
/// digits, replaced by `0` and repetitions dropped, then the action with each digit replaced by
/// `0`. Words stay: they have at least two letters, all in lower case. Some steps are few in a
/// trace however long it is, and have forms of their own: the first action after one of another
/// verb (`before`), which begins a phase; actions with a number after a long carry or before one;
/// and those with numbers that have more digits than most.
fn form_of(before: &str, derivation: &str, action: &str) -> String {
    let verb = verb(action);
    let has = |ending: &str| {
        action.split(|c: char| !c.is_ascii_digit()).any(|number| number.ends_with(ending))
    };

    if let Some(ending) = ["000", "999", "00", "99"].into_iter().find(|ending| has(ending)) {
        return format!("{verb} {ending}");
    }

    let start = if before == verb { String::new() } else { format!("{before}>") };
    let mut form = start.into_bytes();
    let phase = form.len();

    for part in derivation
        .as_bytes()
        .chunk_by(|a, b| a.is_ascii_alphanumeric() && b.is_ascii_alphanumeric())
    {
        let is_word = part.len() > 1 && part.iter().all(u8::is_ascii_lowercase);
        let is_sign = !part[0].is_ascii_alphanumeric();
        form.extend(if is_word || is_sign { part } else { b"0" });
        drop_repetition(&mut form, phase);
    }

    form.push(b'\n');
    form.extend(action.bytes().map(|byte| if byte.is_ascii_digit() { b'0' } else { byte }));
    String::from_utf8_lossy(&form).into_owned()
}

/// Maximum length of a part of a form whose repetition is dropped, in bytes.
const REPEATED_MAX: usize = 6;

/// Drops the end of a form if it repeats what is directly before it, without going back beyond
/// `start`.
fn drop_repetition(form: &mut Vec<u8>, start: usize) {
    for length in 1..=REPEATED_MAX.min((form.len() - start) / 2) {
        let end = form.len() - length;
        if form[end..] == form[end - length..end] {
            form.truncate(end);
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{Difficulty, find};

    #[test]
    fn numbers_do_not_make_a_form() {
        assert_eq!(form_of("swap", "+12>+03 greater ", "swap 10 11"), "+0>+0 greater \nswap 00 00");
        assert_eq!(
            form_of("swap", "+12>+03 greater ", "swap 9 10"),
            "+0>+0 greater \nswap 0 00",
            "but their lengths do"
        );
        assert_eq!(form_of("done", "", "done"), "\ndone");
    }

    #[test]
    fn names_and_repetitions_do_not_make_a_form() {
        let forms =
            ["a12<b07<", "a12<b07<c30<d4<", "k1<"].map(|line| form_of("take", line, "take"));
        assert_eq!(forms, ["0<\ntake"; 3]);
        assert_eq!(form_of("take", "a12<b07>c8<", "take"), "0<0>0<\ntake", "but another sign does");
        assert_eq!(form_of("take", "more...", "take"), "more.\ntake");
    }

    #[test]
    fn the_first_action_of_a_phase_makes_a_form() {
        assert_eq!(form_of("sum", "8520 3", "place 258 3"), "sum>0 0\nplace 000 0");
        assert_eq!(form_of("place", "8520 3", "place 258 3"), "0 0\nplace 000 0");
        // Actions of numbers alone have no verb.
        assert_eq!((verb("3 4"), verb("-1 4"), verb("place 3")), ("", "", "place"));
    }

    #[test]
    fn a_number_after_a_long_carry_makes_a_form() {
        assert_eq!(form_of("count", "0010", "count 100 9"), "count 00");
        assert_eq!(form_of("count", "0001", "count 1000 9"), "count 000");
        assert_eq!(form_of("place", "9910 8910", "place 199 198"), "place 99");
        assert_eq!(form_of("count", "0510", "count 150 9"), "0\ncount 000 0");
    }

    #[test]
    fn the_last_step_of_a_trace_is_drawn_as_often_as_any_other_form() {
        let task = find("bubble-sort").expect("a task");
        let problem = task.generate(Difficulty::Hard, 5);
        let mut rng = TaskRng::new(3);
        let steps = TraceSteps::walk(problem.as_ref(), &mut rng);

        let is_last = |machine: &dyn Machine| machine.reference().as_deref() == Some("done");
        let last = (0..2_000).filter(|_| is_last(steps.draw_by_form(&mut rng))).count();

        let expected = 2_000 / steps.by_form.len();
        assert!(last > expected / 2 && last < expected * 2, "{last}, expected about {expected}");
        // It is one step of hundreds.
        assert!(steps.uniform.seen > 200);
    }
}
