//! What an exclusion does to the grammars of all tasks.

use std::sync::Arc;

use crate::prompt;
use prime_bench::tasks::spec::Spec;
use prime_bench::tasks::{self, Difficulty};
use prime_engine::automaton::{Automaton, ExclusionState, Exclusions, Vocabulary};
use prime_engine_testing::{END, byte_vocabulary};

/// A task's grammar without one line.
struct Less {
    automaton: Automaton,
    exclusions: Exclusions,
}

impl Less {
    fn new(spec: &Spec, words: &Arc<Vocabulary>, excluded: &[&str]) -> Self {
        let automaton =
            Automaton::new(&prompt::grammar(spec, prompt::FreeLine::Allowed, None), words)
                .expect("a task's grammar");
        Self { automaton, exclusions: Exclusions::new(excluded.iter().copied(), []) }
    }

    fn permitted(&mut self, at: &ExclusionState) -> Vec<u32> {
        self.exclusions.permitted(&mut self.automaton, at).iter().collect()
    }

    fn after(&mut self, at: &ExclusionState, byte: u8) -> Option<ExclusionState> {
        let is_permitted = self.permitted(at).contains(&u32::from(byte));
        let after = self.exclusions.after(&mut self.automaton, at, u32::from(byte));
        after.filter(|_| is_permitted)
    }

    fn takes(&mut self, text: &str) -> bool {
        let start = self.exclusions.start(&self.automaton);
        let end = text.bytes().try_fold(start, |at, byte| self.after(&at, byte));
        end.is_some_and(|at| self.permitted(&at).contains(&END))
    }
}

#[test]
fn excluding_the_reference_action_bars_that_line_alone() {
    let words = byte_vocabulary();
    let mut checked = 0;
    for task in tasks::all() {
        let spec = task.spec();
        let mut machine = task.generate(Difficulty::Easy, 3).start();
        let line = machine.reference().expect("a first step");

        let mut less = Less::new(spec, &words, &[&line]);
        let mut whole = Less::new(spec, &words, &[]);

        let start = less.exclusions.start(&less.automaton);
        assert!(!less.exclusions.is_exhausted(&mut less.automaton, &start), "{}", spec.slug);

        for text in [line.clone(), format!("so\n{line}"), format!("{line}\n{line}")] {
            assert!(whole.takes(&text) && !less.takes(&text), "{}: {text:?}", spec.slug);
        }

        // Every other action remains, after the excluded line as a derivation too.
        let mut others: Vec<String> =
            spec.page.actions.iter().map(|action| action.example.to_owned()).collect();

        for _ in 0..12 {
            let Some(next) = machine.reference() else { break };
            machine.replay(&next).expect("legal");
            others.push(next);
        }

        others.retain(|other| *other != line && whole.takes(other));
        for other in &others {
            for text in [other.clone(), format!("so\n{other}"), format!("{line}\n{other}")] {
                assert!(less.takes(&text), "{}: {text:?} without {line:?}", spec.slug);
            }
        }

        checked += usize::from(!others.is_empty());
        // Along the line, only its own next byte or its end is barred.
        for derivation in ["", "so\n"] {
            let mut at = less.exclusions.start(&less.automaton);
            let mut free = whole.exclusions.start(&whole.automaton);
            let text = format!("{derivation}{line}");

            for next in text.bytes().map(u32::from).chain([END]) {
                let (left, all) = (less.permitted(&at), whole.permitted(&free));
                assert!(
                    all.iter().all(|token| left.contains(token) || *token == next),
                    "{}: {text:?}",
                    spec.slug
                );

                let Some(byte) = u8::try_from(next).ok().filter(|_| left.contains(&next)) else {
                    break;
                };
                at = less.after(&at, byte).expect("permitted");
                free = whole.after(&free, byte).expect("permitted");
            }
        }
    }
    assert!(checked > 80, "nearly every task has other actions: {checked}");
}

/// The maze has four actions; once all are rejected, its grammar says so before anything is
/// written.
#[test]
fn a_grammar_without_any_action_left_is_exhausted_at_once() {
    let words = byte_vocabulary();
    let maze = tasks::find("blind-maze").expect("listed");
    let lines = ["go N", "go E", "go S", "go W"];

    for count in 0..=lines.len() {
        let mut less = Less::new(maze.spec(), &words, &lines[..count]);

        let start = less.exclusions.start(&less.automaton);
        let is_exhausted = less.exclusions.is_exhausted(&mut less.automaton, &start);
        assert_eq!(is_exhausted, count == lines.len(), "without {:?}", &lines[..count]);
    }
}
