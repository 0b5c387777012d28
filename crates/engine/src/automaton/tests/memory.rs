//! Memory: which states are kept and which are dropped.

use super::*;

#[test]
fn a_regular_grammar_has_few_states() {
    let mut automaton = automaton(
        "root ::= ([^\\n]* \"\\n\")? \"cmp \" nat \" \" nat\nnat ::= \"0\" | [1-9] [0-9]{0,3}",
    );
    for round in 0..2 {
        let before = automaton.states.len();
        for text in ["cmp 12 0", "so it is\ncmp 1234 7", "cmp it\ncmp 0 0", "é\ncmp 9 10"] {
            assert!(takes(&mut automaton, text));
        }
        assert!(automaton.states.len() < 60, "{}", automaton.states.len());
        assert!(round == 0 || automaton.states.len() == before, "the second time makes no states");
    }
}

#[test]
fn states_with_the_same_tokens_share_a_mask() {
    let mut automaton = automaton("root ::= [a-z]{10}");
    let first = automaton.start();
    let second = automaton.after(&first, u32::from(b'q')).expect("permitted");
    assert_ne!(first, second);

    let mask = std::ptr::from_ref(automaton.permitted(&first));
    assert_eq!(std::ptr::from_ref(automaton.permitted(&second)), mask);
}

/// Every text of the grammar has its own states, so most must be dropped.
#[test]
fn states_with_a_handle_survive_when_others_are_dropped() {
    let grammar = "root ::= \"(\" root \")\" root | \"[\" root \"]\" root | \"\"";
    let limits = Limits { bytes: 20_000, ..Limits::default() };
    let mut automaton = Automaton::with_limits(grammar, &bytes(), limits).expect("a grammar");

    let deep = |place: u32| -> Vec<u8> {
        (0..12).map(|bit| if place >> bit & 1 == 1 { b'(' } else { b'[' }).collect()
    };
    let closing = |opened: &[u8]| -> Vec<u8> {
        opened.iter().rev().map(|byte| if *byte == b'(' { b')' } else { b']' }).collect()
    };

    let held: Vec<(Vec<u8>, State)> = (0..20)
        .map(|place| deep(place * 199))
        .map(|text| (text.clone(), after(&mut automaton, &text).unwrap()))
        .collect();

    let mut most = 0;
    for place in 0..4096 {
        after(&mut automaton, &deep(place)).expect("permitted");
        most = most.max(automaton.states.len());
    }
    assert!(most < 500, "{most} states at once, of more than 4096");

    for (opened, state) in held {
        assert_eq!(
            after(&mut automaton, &opened).as_ref(),
            Some(&state),
            "it is still the same state"
        );
        assert!(!automaton.is_end(&state));

        let wrong = if opened.last() == Some(&b'(') { b']' } else { b')' };
        assert_eq!(automaton.after(&state, u32::from(wrong)), None);

        let closed = closing(&opened)
            .iter()
            .try_fold(state, |at, byte| automaton.after(&at, u32::from(*byte)));
        assert!(automaton.is_end(&closed.expect("its own brackets close it")));
    }
}

#[test]
fn forced_bytes_stay_correct_when_memory_is_short() {
    let limits = Limits { bytes: 0, ..Limits::default() };
    let grammar = format!("root ::= \"{}\" [01]", "forced ".repeat(50));
    let mut automaton = Automaton::with_limits(&grammar, &bytes(), limits).expect("a grammar");

    let (run, end) = automaton.forced(&automaton.start());
    assert_eq!(run.len(), 350);
    assert_eq!(automaton.permitted(&end).few(), Some(&[u32::from(b'0'), u32::from(b'1')][..]));
}
