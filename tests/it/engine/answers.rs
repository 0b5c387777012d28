//! Answers of an engine.

use std::sync::Arc;

use crossbeam_channel::unbounded;
use prime_engine::{
    Device, Engine, EngineError, EngineSpec, Finish, Generation, Isolation, KvPool, Request,
    Sampling,
};
use prime_engine_testing::{END, teacher_forced};

use super::{PATIENCE, ask, collect, fixture, one, request, spec, submit_all};

#[test]
fn the_same_seed_gives_the_same_text_alone_and_in_company() {
    let fixture = fixture();
    // On a GPU, the kernels themselves depend on the size of a batch, and choices change: an H100
    // failed here.
    let on_cpu =
        EngineSpec { device: Device::Cpu.into(), ..spec(&fixture.model, Isolation::Thread) };
    let engine = Engine::start(on_cpu).expect("started");

    let alone = one(&engine, request("the answer is ", 7)).expect("generated");

    let requests = (0..8).map(|n| {
        request(if n % 2 == 0 { "the answer is " } else { "a longer prompt: 1 2 3 " }, 7 + n / 2)
    });
    let together: Vec<Generation> = ask(&engine, requests.collect())
        .into_iter()
        .collect::<Result<_, _>>()
        .expect("all generated");

    // The shape of a batch changes the low bits of the logits, which with so few tokens changes no
    // choice.
    assert_eq!(together[0].tokens, alone.tokens);
    assert_ne!(together[2].tokens, alone.tokens, "another seed");
    assert_ne!(together[1].tokens, alone.tokens, "another prompt");
    assert_eq!(alone.prompt_tokens, 15, "14 bytes and the begin-of-text token");

    let status = engine.status();
    assert!(status.ready && status.worker_pid.is_none() && status.in_flight == 0, "{status:?}");
    assert!(status.model.contains("tiny random") && !status.device.is_empty(), "{status:?}");
    assert_eq!((status.context_tokens, status.turn_tokens_max), (2048, 2048));
}

#[test]
fn an_answer_is_counted_before_it_arrives() {
    let fixture = fixture();
    for isolation in [Isolation::Thread, Isolation::Process] {
        let engine = Arc::new(Engine::start(spec(&fixture.model, isolation)).expect("started"));
        let mut generated = 0;

        for seed in 0..20 {
            let (sender, answers) = unbounded();
            let asked = Arc::clone(&engine);
            engine.submit(request("a turn", seed), move |result| {
                let counts = asked.status().counts;
                // The last clone must not be dropped here: the engine would wait for this thread.
                drop(asked);
                drop(sender.send((result, counts)));
            });

            let (result, counts) = answers.recv_timeout(PATIENCE).expect("an answer in time");
            generated += result.expect("generated").tokens.len() as u64;
            assert_eq!(
                (counts.generated_tokens, counts.live),
                (generated, 0),
                "{isolation:?}: {counts:?}"
            );
        }
    }
}

#[test]
fn greedy_choices_do_not_depend_on_the_seed() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let greedy = |seed| Request {
        sampling: Sampling { temperature: 0.0, top_p: 1.0, seed },
        ..request("x", seed)
    };
    let texts = ask(&engine, vec![greedy(1), greedy(2)]);
    assert_eq!(
        texts[0].as_ref().expect("generated").tokens,
        texts[1].as_ref().expect("generated").tokens
    );
}

#[test]
fn a_grammar_constrains_every_way_of_sampling() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let grammar: Arc<str> = r#"root ::= "a" [0-9] [0-9] "\n""#.into();
    let samplings = (0..32).map(|seed| Sampling {
        temperature: if seed % 4 == 0 { 0.0 } else { 1.5 },
        top_p: if seed % 4 == 1 { 0.3 } else { 1.0 },
        seed,
    });

    let requests: Vec<Request> = samplings
        .map(|sampling| Request {
            grammar: Some(Arc::clone(&grammar)),
            sampling,
            ..request("say: ", 0)
        })
        .collect();

    let mut texts = std::collections::BTreeSet::new();
    for generation in ask(&engine, requests) {
        let generation = generation.expect("generated");
        let bytes = generation.text.as_bytes();
        assert!(
            matches!(bytes, [b'a', x, y, b'\n'] if x.is_ascii_digit() && y.is_ascii_digit()),
            "{:?}",
            generation.text
        );
        assert_eq!((generation.finish, generation.tokens.last()), (Finish::EndOfText, Some(&END)));
        texts.insert(generation.text);
    }
    assert!(texts.len() > 8, "{texts:?}");
}

#[test]
fn logprobs_are_those_of_a_teacher_forced_pass() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let free = (0..4).map(|seed| request("what comes next? ", seed));
    let tempered = (4..6).map(|seed| Request {
        sampling: Sampling { temperature: 0.3, top_p: 0.5, seed },
        grammar: Some("root ::= [a-z]+".into()),
        ..request("what comes next? ", seed)
    });

    for generation in ask(&engine, free.chain(tempered).collect()) {
        let generation = generation.expect("generated");
        let exact = teacher_forced(&fixture.model, "what comes next? ", &generation.tokens)
            .expect("recomputed");
        assert_eq!(exact.len(), generation.logprobs.len());
        for (got, exact) in generation.logprobs.iter().zip(&exact) {
            assert!((f64::from(*got) - exact).abs() < 2e-2, "{got} instead of {exact}");
        }
    }

    let without = one(&engine, Request { logprobs: false, ..request("x", 0) }).expect("generated");
    assert!(without.logprobs.is_empty() && !without.tokens.is_empty());
}

#[test]
fn lengths_are_limited_and_impossible_ones_refused() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let endless = Request { grammar: Some("root ::= [a-z]*  [A-Z]".into()), ..request("x", 0) };
    let greedy = Sampling::GREEDY;

    for max_tokens in [1, 2, 9] {
        let generation = one(&engine, Request { max_tokens, sampling: greedy, ..endless.clone() })
            .expect("generated");
        if generation.finish == Finish::Length {
            assert_eq!(generation.tokens.len(), max_tokens as usize);
        }
    }

    assert_eq!(
        one(&engine, request(&"y".repeat(2047), 0)),
        Err(EngineError::PromptTooLong { tokens: 2048, limit: 2048 })
    );

    let long = Request { max_tokens: 100, ..request(&"y".repeat(2040), 0) };
    let fits = one(&engine, long).expect("the whole pool for one turn");
    assert!(
        fits.prompt_tokens == 2041 && fits.tokens.len() <= 7,
        "the prompt leaves room for seven tokens"
    );

    assert!(matches!(
        one(&engine, Request { max_tokens: 0, ..request("x", 0) }),
        Err(EngineError::BadRequest { .. })
    ));
}

#[test]
fn wrong_grammars_fail_alone() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let wrong = [
        "root ::= ",
        "root ::= missing",
        "branch ::= \"a\"",
        "root ::= root \"a\" | \"b\"",
        "root ::= \"a\"{999999}",
        "root ::= (((",
        "\0root",
    ];

    let mut requests = vec![request("x", 1)];
    requests.extend(
        wrong.iter().map(|text| Request { grammar: Some((*text).into()), ..request("x", 1) }),
    );
    requests.push(request("x", 1));

    let answers = ask(&engine, requests);
    assert!(answers[0].is_ok() && answers[answers.len() - 1].is_ok());
    for (text, answer) in wrong.iter().zip(&answers[1..]).skip(1) {
        assert!(matches!(answer, Err(EngineError::Grammar { .. })), "{text:?}: {answer:?}");
    }

    // The empty rule is valid: the text ends at once.
    assert_eq!(answers[1].as_ref().map(|g| g.text.as_str()), Ok(""));
}

#[test]
fn more_requests_than_sequences_and_cells_are_all_answered() {
    let fixture = fixture();
    let small = EngineSpec {
        context_tokens: 512,
        sequences_max: 4,
        batch_tokens: 16,
        ..spec(&fixture.model, Isolation::Process)
    };
    let engine = Engine::start(small).expect("started");

    let requests = (0..60).map(|n| request(&"z".repeat(1 + 7 * (n % 40)), n as u64)).collect();
    for (index, answer) in ask(&engine, requests).into_iter().enumerate() {
        let generation = answer.expect("generated");
        assert_eq!(generation.prompt_tokens as usize, 2 + 7 * (index % 40));
    }

    assert_eq!(engine.status().in_flight, 0);
    assert_eq!(engine.status().restarts, 0);
}

#[test]
fn processes_and_threads_give_the_same() {
    let fixture = fixture();
    let thread = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let process = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    for seed in 0..4 {
        assert_eq!(one(&thread, request("same? ", seed)), one(&process, request("same? ", seed)));
    }
}

#[tokio::test]
async fn generate_waits_without_blocking_and_shutdown_answers() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let (a, b) = futures::join!(engine.generate(request("a", 1)), engine.generate(request("b", 1)));
    assert!(a.is_ok() && b.is_ok());

    let pending = submit_all(
        &engine,
        (0..40).map(|seed| Request { max_tokens: 200, ..request("x", seed) }).collect(),
    );

    engine.shutdown();
    let answers = collect(&pending, 40);
    assert!(answers.contains(&Err(EngineError::Shutdown)), "{answers:?}");
    assert_eq!(engine.generate(request("late", 1)).await, Err(EngineError::Shutdown));
    assert!(!engine.status().ready && engine.status().worker_pid.is_none());
}

#[test]
fn a_split_pool_gives_each_sequence_its_part() {
    let fixture = fixture();
    let split = EngineSpec {
        kv: KvPool::Split,
        context_tokens: 1024,
        ..spec(&fixture.model, Isolation::Process)
    };
    let engine = Engine::start(split).expect("started");
    assert_eq!(engine.status().turn_tokens_max, 256, "8 parts of 1024 are rounded up to 256");

    let requests = (0..30).map(|n| request(&"s".repeat(1 + 11 * (n % 20)), n as u64)).collect();
    assert!(ask(&engine, requests).iter().all(Result::is_ok));

    assert_eq!(
        one(&engine, request(&"s".repeat(255), 0)),
        Err(EngineError::PromptTooLong { tokens: 256, limit: 256 })
    );
}
