//! Generations under a grammar without some of its lines.

use prime_bench::tasks::{self, Difficulty, pattern};
use prime_engine::{Engine, EngineSpec, Finish, Isolation, Request, Sampling};

use super::{fixture, one, request, shipped_model, spec, worker};

fn last_line(text: &str) -> &str {
    text.rsplit('\n').next().unwrap_or_default()
}

#[test]
fn a_greedy_model_writes_every_line_once_and_then_says_that_none_is_left() {
    let fixture = fixture();
    for isolation in [Isolation::Thread, Isolation::Process] {
        let engine = Engine::start(spec(&fixture.model, isolation)).expect("started");
        for (grammar, count) in [
            ("root ::= \"move \" [0-2] \" to \" [0-2]", 9),
            ("root ::= ([a-z]{0,3} \"\\n\")? (\"done\" | \"cmp \" [0-3])", 5),
        ] {
            let mut excluded: Vec<Box<str>> = Vec::new();
            loop {
                let greedy = Request {
                    grammar: Some(grammar.into()),
                    excluded: excluded.clone(),
                    sampling: Sampling::GREEDY,
                    ..request("the next step: ", 0)
                };
                let generation = one(&engine, greedy).expect("generated");

                if generation.finish == Finish::Exhausted {
                    assert!(
                        generation.text.is_empty()
                            && generation.tokens.is_empty()
                            && generation.logprobs.is_empty()
                    );
                    break;
                }

                assert_eq!(generation.finish, Finish::EndOfText, "{:?}", generation.text);
                assert_eq!(generation.logprobs.len(), generation.tokens.len());

                let line: Box<str> = last_line(&generation.text).into();
                assert!(!excluded.contains(&line), "{isolation:?}: {line:?} again");
                excluded.push(line);
            }
            assert_eq!(excluded.len(), count, "{isolation:?}: {excluded:?}");
        }
    }
}

#[test]
fn a_turn_that_is_exhausted_leaves_the_others_alone() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let only = Request { grammar: Some("root ::= \"yes\"".into()), ..request("well? ", 1) };
    let barred = Request { excluded: vec!["yes".into()], ..only.clone() };
    let requests =
        (0..12).map(|turn| if turn % 2 == 0 { only.clone() } else { barred.clone() }).collect();
    for (turn, generation) in super::ask(&engine, requests).into_iter().enumerate() {
        let generation = generation.expect("generated");
        let expected =
            if turn % 2 == 0 { ("yes", Finish::EndOfText) } else { ("", Finish::Exhausted) };
        assert_eq!((generation.text.as_str(), generation.finish), expected);
    }
}

/// The model was trained to write this line, and is certain of it.
#[test]
fn the_shipped_model_writes_another_line_where_its_own_was_rejected() {
    let spec = EngineSpec {
        name: "shipped".to_owned(),
        model: shipped_model(),
        worker: Some(worker()),
        ..EngineSpec::default()
    };
    let engine = Engine::start(spec).expect("started");
    for task in ["tower-of-hanoi", "n-queens", "bubble-sort"] {
        let task = tasks::find(task).expect("listed");
        let machine = task.generate(Difficulty::Easy, 3).start();
        let forms = task.spec().actions;
        let grammar = format!("root ::= ([^\\n]* \"\\n\")? action\n{}", pattern::gbnf(forms));

        let mut excluded: Vec<Box<str>> = Vec::new();
        for _ in 0..12 {
            let greedy = Request {
                prompt: prime_lessons::compact(machine.as_ref()),
                grammar: Some(grammar.as_str().into()),
                excluded: excluded.clone(),
                sampling: Sampling::GREEDY,
                max_tokens: 128,
                ..request("", 0)
            };

            let generation = one(&engine, greedy).expect("generated");
            let line: Box<str> = last_line(&generation.text).into();
            assert!(!excluded.contains(&line), "{}: {line:?} again", task.spec().slug);

            // Far from what it knows it may ramble until its tokens are spent.
            if generation.finish == Finish::Length {
                break;
            }
            assert_eq!(generation.finish, Finish::EndOfText, "{:?}", generation.text);
            assert!(pattern::parse(forms, &line).is_some(), "{}: {line:?}", task.spec().slug);
            excluded.push(line);
        }

        assert!(excluded.len() > 1, "{}: {excluded:?}", task.spec().slug);
    }
    engine.shutdown();
}
