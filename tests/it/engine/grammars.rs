//! The tasks' action grammars hold a model to lines that the tasks' parsers take.

use prime_bench::tasks::{self, pattern};
use prime_engine::{Engine, Finish, Isolation, Request};

use super::{ask, fixture, request, spec};

#[test]
fn whatever_a_random_model_writes_under_a_grammar_is_an_action_line() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    for task in tasks::all() {
        let forms = task.spec().actions;
        let grammar = format!("root ::= action\n{}", pattern::gbnf(forms));
        let requests: Vec<_> = (0..24)
            .map(|seed| Request { grammar: Some(grammar.as_str().into()), max_tokens: 80, ..request("x", seed) })
            .collect();
        for answer in ask(&engine, requests) {
            let generation = answer.expect("generated");
            // A line of any length need not come to its end by chance.
            if generation.finish == Finish::Length && forms.iter().any(|form| form.contains("]+>")) {
                continue;
            }
            assert_eq!(generation.finish, Finish::EndOfText, "{}: {:?}", task.spec().slug, generation.text);
            // A number of sixteen digits may be one that no state can hold: that line is refused, not misread.
            let is_huge = generation.text.split(' ').any(|word| word.len() >= 16);
            let is_action = pattern::parse(forms, &generation.text).is_some();
            assert!(is_action || is_huge, "{}: {:?}", task.spec().slug, generation.text);
        }
    }
}
