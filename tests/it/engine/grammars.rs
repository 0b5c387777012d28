//! The tasks' action grammars constrain a model to lines that the tasks' parsers accept.

use prime_bench::tasks::{self, pattern};
use prime_engine::{Engine, Finish, Isolation, Request};

use super::{ask, fixture, request, spec};

#[test]
fn a_random_model_under_a_grammar_writes_action_lines() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    for task in tasks::all() {
        let forms = task.spec().actions;
        let grammar = format!("root ::= action\n{}", pattern::gbnf(forms));
        let requests: Vec<_> = (0..24)
            .map(|seed| Request {
                grammar: Some(grammar.as_str().into()),
                max_tokens: 80,
                ..request("x", seed)
            })
            .collect();

        for answer in ask(&engine, requests) {
            let generation = answer.expect("generated");
            // A line of unlimited length may not end by chance.
            if generation.finish == Finish::Length && forms.iter().any(|form| form.contains("]+>"))
            {
                continue;
            }

            assert_eq!(
                generation.finish,
                Finish::EndOfText,
                "{}: {:?}",
                task.spec().slug,
                generation.text
            );

            // No state may be able to hold a number of sixteen digits: the parser refuses that
            // line.
            let is_huge = generation.text.split(' ').any(|word| word.len() >= 16);
            let is_action = pattern::parse(forms, &generation.text).is_some();
            assert!(is_action || is_huge, "{}: {:?}", task.spec().slug, generation.text);
        }
    }
}
