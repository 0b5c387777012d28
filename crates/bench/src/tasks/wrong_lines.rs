//! Wrong lines in the worked examples of the pages, and the constraints that they break.

use super::{Kinds, find};

/// A task, the steps of its example that come before the line, the line, and a constraint that it
/// breaks.
pub type WrongLine = (&'static str, usize, &'static str, &'static str);

/// Asserts that each line breaks its constraint, and that the right line in its place breaks none.
pub fn assert_broken(wrong: &[WrongLine]) {
    for (slug, steps, line, name) in wrong {
        let task = find(slug).expect("listed");
        let input = serde_json::from_str(task.spec().page.example.input).expect("JSON");
        let mut machine = task.read_input(&input).expect("an example is valid").start();
        let followed = (0..*steps).filter(|_| machine.follow_reference()).count();
        assert_eq!(followed, *steps, "{slug}: the example is long enough");
        let right = machine.reference().expect("the example goes on");

        for (line, breaks) in [(*line, true), (right.as_str(), false)] {
            machine
                .propose(line)
                .unwrap_or_else(|refusal| panic!("{slug} step {steps}: {line}: {refusal}"));

            let found: Vec<_> =
                machine.violations(Kinds::ALL).iter(machine.spec()).map(|c| c.name).collect();
            assert_eq!(
                found.contains(name),
                breaks,
                "{slug} step {steps}: {line} breaks {found:?}"
            );
        }
    }
}

/// Lines of a task with this input, in JSON.
pub type OtherLines = (&'static str, &'static str, &'static [&'static str]);

/// Asserts that complete traces other than the algorithm's break nothing without
/// [`Kind::Transition`], and that their answers are right.
///
/// [`Kind::Transition`]: super::Kind::Transition
pub fn assert_right(other: &[OtherLines]) {
    for (slug, input, lines) in other {
        let input = serde_json::from_str(input).expect("JSON");
        let problem = find(slug).expect("listed").read_input(&input).expect("valid");
        let mut machine = problem.start();
        for (at, line) in lines.iter().enumerate() {
            machine
                .propose(line)
                .unwrap_or_else(|refusal| panic!("{slug} line {at}: {line}: {refusal}"));
            let found = machine.violations(Kinds::WITHOUT_TRANSITION);
            assert!(found.is_empty(), "{slug} line {at}: {line} breaks {found:?}");
            machine.commit();
        }

        let answer = machine.answer().unwrap_or_else(|| panic!("{slug}: the trace is complete"));
        assert!(problem.accepts(&answer), "{slug}: {answer}");
        let reference = problem.reference().answer;
        assert_ne!(answer, reference, "{slug}: this is the algorithm's own answer");
    }
}
