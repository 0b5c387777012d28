//! The engine's automata accept exactly what the tasks' parsers accept, for the action grammar of
//! every task.

use prime_agent_set::llm::report_grammar;
use prime_agent_set::prompt;
use prime_bench::tasks::{self, Difficulty, pattern};
use prime_engine::automaton::{Automaton, State};
use prime_engine_testing::{accepts, byte_vocabulary};

/// Actions checked of each trace; for one in `MUTANTS_EVERY` of them, mutants are checked too.
const LINES_MAX: usize = 400;
const MUTANTS_EVERY: usize = 40;

fn walk(automaton: &mut Automaton, text: &str) -> Option<State> {
    text.bytes().try_fold(automaton.start(), |state, byte| automaton.after(&state, u32::from(byte)))
}

fn takes(automaton: &mut Automaton, text: &str) -> bool {
    walk(automaton, text).is_some_and(|state| automaton.is_end(&state))
}

/// Every variant of the line with one character replaced, removed or inserted.
fn near(line: &str) -> Vec<String> {
    let mut lines = vec![String::new(), format!("{line} "), format!("{line}\n")];
    for (at, c) in line.char_indices() {
        let (before, after) = (&line[..at], &line[at + c.len_utf8()..]);
        lines.push(format!("{before}{after}"));
        for put in ['0', '7', '-', ' ', 'x', 'Z', ')', '/', '?', '\n', 'é'] {
            lines.push(format!("{before}{put}{after}"));
            lines.push(format!("{before}{put}{c}{after}"));
        }
    }
    lines
}

/// A number of sixteen digits may overflow: the grammar accepts it and the parser does not.
fn has_huge_number(line: &str) -> bool {
    line.split(|c: char| !c.is_ascii_digit()).any(|digits| digits.len() >= 16)
}

#[test]
fn automata_accept_the_lines_that_parsers_accept() {
    let words = byte_vocabulary();
    for task in tasks::all().chain(tasks::variants()) {
        let (slug, forms) = (task.spec().slug, task.spec().actions);
        let grammar = format!("root ::= action\n{}", pattern::gbnf(forms));

        let mut lines =
            Automaton::new(&grammar, &words).unwrap_or_else(|error| panic!("{slug}: {error}"));
        let mut completions =
            Automaton::new(&prompt::grammar(task.spec(), prompt::FreeLine::Allowed, None), &words)
                .expect("a grammar");

        for difficulty in [Difficulty::Easy, Difficulty::Hard] {
            let mut machine = task.generate(difficulty, 11).start();
            let mut line = String::new();

            for place in 0..LINES_MAX {
                if !machine.advance(&mut line) {
                    break;
                }
                assert!(takes(&mut lines, &line), "{slug}: {line:?}");
                assert!(takes(&mut completions, &line), "{slug}: {line:?} without a line in front");
                assert!(
                    takes(&mut completions, &format!("12 > é, {line}\n{line}")),
                    "{slug}: {line:?} behind a line"
                );

                if place % MUTANTS_EVERY > 0 {
                    continue;
                }

                for mutant in near(&line).iter().filter(|mutant| !has_huge_number(mutant)) {
                    let is_action = pattern::parse(forms, mutant).is_some();
                    assert_eq!(takes(&mut lines, mutant), is_action, "{slug}: {mutant:?}");
                }
            }
        }
    }
}

#[test]
fn every_path_through_an_automaton_is_an_action_line() {
    let words = byte_vocabulary();
    for task in tasks::all() {
        let (slug, forms) = (task.spec().slug, task.spec().actions);
        let grammar = format!("root ::= action\n{}", pattern::gbnf(forms));
        let mut automaton = Automaton::new(&grammar, &words).expect("a grammar");

        for choice in 0..20_u32 {
            let mut state = automaton.start();
            let mut text = Vec::new();
            // Another sequence of choices each time, up to the first permitted end.
            for step in 0..60_u32 {
                if automaton.is_end(&state) {
                    break;
                }
                let permitted: Vec<u32> = automaton.permitted(&state).iter().collect();
                let token = permitted[(choice * 7 + step * 3) as usize % permitted.len()];
                text.extend_from_slice(words.piece(token));
                state = automaton.after(&state, token).expect("a permitted token");
            }

            let text = String::from_utf8(text).expect("actions are ASCII");
            assert!(
                !automaton.is_end(&state) || pattern::parse(forms, &text).is_some(),
                "{slug}: {text:?}"
            );
        }
    }
}

#[test]
fn the_automaton_of_a_report_accepts_reports() {
    let grammar = report_grammar(2);
    let clean = "Constraint 1: PASS - kept\nConstraint 2: PASS - schön\nOverall: VALID\n\
         Violation Score: 0.0";
    let broken = "Constraint 1: FAIL - it is not\nConstraint 2: PASS - x\nOverall: INVALID\n\
         Violation Score: 0.65";
    assert_eq!((accepts(&grammar, clean), accepts(&grammar, broken)), (Ok(true), Ok(true)));

    for wrong in
        [&clean.replace("PASS", "FAIL"), &broken.replace("0.65", "0.0"), &clean[1..], &clean[..60]]
    {
        assert_eq!(accepts(&grammar, wrong), Ok(false), "{wrong}");
    }

    let error = accepts("root ::= a", "a").map_err(|error| error.to_string());
    assert_eq!(error, Err("line 1: rule `a` is not defined".to_owned()));
}
