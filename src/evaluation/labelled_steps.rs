//! Labelled steps: right ones from reference traces, and mutations of them. A step is wrong if the
//! reference verifier rejects it.

use prime_agent_set::{ReferenceVerifier, Verifier as _};
use prime_bench::tasks::sampling::state_on_trace;
use prime_bench::tasks::{AnyTask, Difficulty, Machine, TaskRng};
use prime_protocol::{Limits, Score, Trajectory};

/// Lines tried per mutation.
const LINES_MAX: usize = 32;
/// Numbers from 0 to this one are tried in place of any number.
const NUMBER_SMALL: u32 = 3;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Label {
    /// The step of the reference.
    Right,
    /// Wrong, but it parses and can be applied.
    Applicable,
    /// It does not parse or cannot be applied.
    Garbage,
}

/// A proposed step at its state: the machine holds it as its candidate, or refused it.
pub struct Labelled {
    pub trajectory: Trajectory,
    pub line: String,
    pub label: Label,
}

/// How a right step becomes a wrong one.
#[derive(Clone, Copy)]
enum Mutation {
    /// The next step: one is skipped.
    Early,
    /// The same step again, after it was committed.
    Repeated,
    /// One number differs.
    Changed,
    /// One word differs, is missing or is swapped with its neighbour; or one letter differs.
    Reworded,
    /// The documented example of some action.
    OtherAction,
    /// Another choice, where the task is a search.
    OtherChoice,
}

/// Every variant of the line with one number replaced by a near or small one.
fn changed(line: &str) -> Vec<String> {
    let mut lines = Vec::new();
    let is_digit = |c: char| c.is_ascii_digit();
    let mut end = 0;

    while let Some(start) = line[end..].find(is_digit).map(|at| end + at) {
        end = line[start..].find(|c| !is_digit(c)).map_or(line.len(), |length| start + length);

        // Larger numbers are neither sizes nor indices.
        let Ok(number) = line[start..end].parse::<u32>() else { continue };

        let near = [number.saturating_sub(1), number.saturating_add(1)];
        for other in (0..=NUMBER_SMALL).chain(near).filter(|other| *other != number) {
            let changed = format!("{}{other}{}", &line[..start], &line[end..]);
            if !lines.contains(&changed) {
                lines.push(changed);
            }
        }
    }
    lines
}

/// The alternatives at one place of a task's forms, as `=` and `!` of `<=|!>`.
fn alternatives<'f>(forms: &[&'f str]) -> Vec<Vec<&'f str>> {
    let fields = forms
        .iter()
        .flat_map(|form| form.split('<').skip(1))
        .filter_map(|rest| rest.split('>').next());

    let words = fields.filter(|field| !field.starts_with('[') && field.contains('|'));
    words.map(|field| field.split('|').collect()).collect()
}

/// Every variant of the line with one word replaced, removed or swapped with its neighbour, or one
/// letter replaced.
fn reworded(line: &str, forms: &[&str]) -> Vec<String> {
    let words: Vec<&str> = line.split(' ').collect();

    let with = |at: usize, word: &str| {
        let mut words = words.clone();
        words[at] = word;
        words.join(" ")
    };

    let groups = alternatives(forms);
    let mut lines = Vec::new();
    for (at, word) in words.iter().enumerate() {
        let others = groups
            .iter()
            .filter(|group| group.contains(word))
            .flatten()
            .filter(|other| *other != word);
        lines.extend(others.map(|other| with(at, other)));

        lines.push(with(at, "-"));

        let mut fewer = words.clone();
        fewer.remove(at);
        lines.push(fewer.join(" "));

        if at > 0 {
            let mut exchanged = words.clone();
            exchanged.swap(at - 1, at);
            lines.push(exchanged.join(" "));
        }
    }

    let letters = line.char_indices().filter(|(_, c)| c.is_ascii_alphabetic());
    // ASCII letters are one byte each, so `at + 1` is a character boundary.
    lines.extend(letters.map(|(at, c)| {
        // The next letter, wrapping around.
        let next = match c {
            'z' => 'a',
            'Z' => 'A',
            c => char::from_u32(u32::from(c) + 1).unwrap_or('a'),
        };
        format!("{}{next}{}", &line[..at], &line[at + 1..])
    }));

    lines.retain(|other| other != line && !other.is_empty());
    lines
}

impl Mutation {
    const ALL: [Self; 6] = [
        Self::Early,
        Self::Repeated,
        Self::Changed,
        Self::Reworded,
        Self::OtherAction,
        Self::OtherChoice,
    ];

    /// The state at which the mutated lines are proposed, and the lines.
    fn of(self, machine: &dyn Machine, right: &str) -> (Box<dyn Machine>, Vec<String>) {
        let mut after = machine.fork();
        let lines = match self {
            Self::Early => {
                after.follow_reference();
                return (machine.fork(), after.reference().into_iter().collect());
            }
            Self::Repeated => {
                after.follow_reference();
                vec![right.to_owned()]
            }
            Self::Changed => changed(right),
            Self::Reworded => reworded(right, machine.spec().actions),
            Self::OtherAction => {
                machine.spec().page.actions.iter().map(|action| action.example.to_owned()).collect()
            }
            Self::OtherChoice => machine.choices().unwrap_or_default(),
        };

        (after, lines)
    }
}

/// Lines that cannot be taken for the right one.
fn garbage(right: &str, rng: &mut TaskRng) -> Vec<String> {
    let mut lines = vec![
        "no action".to_owned(),
        format!("The next step is {right}."),
        format!("x{right}"),
        format!("{right} {right}"),
    ];
    lines.rotate_left(rng.index(4));
    lines
}

fn labelled(machine: Box<dyn Machine>, line: String, is_right: bool) -> Labelled {
    let limits =
        Limits { attempts_max: 1, pops_max: 0, snapshot_every_frames: 1, ..Limits::DEFAULT };

    let mut trajectory = Trajectory::new(machine, &limits);
    let label = match (trajectory.machine.propose(&line), is_right) {
        (Ok(()), true) => Label::Right,
        (Ok(()), false) => Label::Applicable,
        (Err(_), _) => Label::Garbage,
    };
    Labelled { trajectory, line, label }
}

/// Whether the reference verifier rejects the step.
async fn is_wrong(step: &Labelled) -> bool {
    let verdict = ReferenceVerifier.judge(&step.trajectory, &step.line).await;
    verdict.is_ok_and(|verdict| verdict.score > Score::ZERO)
}

/// A wrong step that can be applied; `None` if no mutation yields one.
async fn applicable(machine: &dyn Machine, right: &str, rng: &mut TaskRng) -> Option<Labelled> {
    let mut mutations = Mutation::ALL;
    rng.shuffle(&mut mutations);

    for mutation in mutations {
        let (machine, mut lines) = mutation.of(machine, right);
        rng.shuffle(&mut lines);
        // Only some variants: each costs a fork of the machine and a verdict.
        for line in lines.into_iter().take(LINES_MAX) {
            let step = labelled(machine.fork(), line, false);
            if step.label == Label::Applicable && is_wrong(&step).await {
                return Some(step);
            }
        }
    }
    None
}

/// For each of `count` states of reference traces, drawn from the thousand base seeds that start at
/// `base_seed`: the right step, a wrong one that can be applied, if there is one, and one that
/// cannot.
pub async fn labelled_steps(
    task: &dyn AnyTask,
    difficulty: Difficulty,
    count: u32,
    base_seed: u64,
) -> Vec<Labelled> {
    let mut rng = TaskRng::new(base_seed);
    let mut steps = Vec::new();
    for _ in 0..count {
        let machine = state_on_trace(task, difficulty, base_seed, &mut rng);
        let Some(right) = machine.reference() else { continue };

        steps.extend(applicable(machine.as_ref(), &right, &mut rng).await);
        let refused =
            garbage(&right, &mut rng).into_iter().map(|line| labelled(machine.fork(), line, false));
        steps.extend(refused.into_iter().find(|step| step.label == Label::Garbage));

        steps.push(labelled(machine, right, true));
    }
    steps
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks;

    #[tokio::test]
    async fn every_task_has_right_wrong_and_unreadable_steps() {
        let mut without = Vec::new();
        for task in tasks::all() {
            let steps = labelled_steps(task, Difficulty::Easy, 3, 7).await;

            let of = |label| steps.iter().filter(|step| step.label == label).count();
            let slug = task.spec().slug;
            assert_eq!((of(Label::Right), of(Label::Garbage)), (3, 3), "{slug}");

            if of(Label::Applicable) == 0 {
                without.push(slug);
            }

            for step in &steps {
                assert_eq!(
                    is_wrong(step).await,
                    step.label != Label::Right,
                    "{slug}: {}",
                    step.line
                );

                let mut machine = step.trajectory.machine.fork();
                assert_eq!(
                    machine.propose(&step.line).is_ok(),
                    step.label != Label::Garbage,
                    "{slug}: {}",
                    step.line
                );
            }
        }
        assert_eq!(without, Vec::<&str>::new(), "tasks without a wrong step that can be applied");
    }

    #[test]
    fn words_come_from_the_forms() {
        assert_eq!(
            alternatives(&["p <nat> <=|!>", "<[a|b]+> <N|E>"]),
            [vec!["=", "!"], vec!["N", "E"]]
        );
        let lines = reworded("p 3 =", &["p <nat> <=|!>"]);
        assert_eq!(
            lines,
            ["- 3 =", "3 =", "p - =", "p =", "3 p =", "p 3 !", "p 3 -", "p 3", "p = 3", "q 3 ="]
        );
        assert_eq!(reworded("zZ", &[]), ["-", "aZ", "zA"]);
    }

    #[test]
    fn numbers_are_changed_one_at_a_time() {
        assert_eq!(changed("done"), Vec::<String>::new());
        assert_eq!(
            changed("cmp 0 17"),
            [
                "cmp 1 17", "cmp 2 17", "cmp 3 17", "cmp 0 0", "cmp 0 1", "cmp 0 2", "cmp 0 3",
                "cmp 0 16", "cmp 0 18"
            ]
        );
    }

    #[tokio::test]
    async fn the_same_seed_draws_the_same_steps() {
        let task = tasks::find("bubble-sort").unwrap();
        let lines = async |seed| {
            let steps = labelled_steps(task, Difficulty::Easy, 8, seed).await;
            steps.into_iter().map(|step| step.line).collect::<Vec<_>>()
        };
        assert_eq!(lines(7).await, lines(7).await);
        assert_ne!(lines(7).await, lines(8).await);
    }
}
