//! What a caller is told about its request besides the answer.

use std::sync::{Arc, Mutex};

use prime_engine::{Engine, Following, Isolation, Progress, Request};

use super::{ask, fixture, request, spec};

#[test]
fn a_turn_tells_what_was_sent_and_what_is_written_so_far() {
    let fixture = fixture();
    for isolation in [Isolation::Thread, Isolation::Process] {
        let engine = Engine::start(spec(&fixture.model, isolation)).expect("started");
        let told: Arc<Mutex<Vec<Progress>>> = Arc::default();
        let kept = Arc::clone(&told);
        let following = Following {
            watch: Some(Arc::new(move |progress| kept.lock().expect("unpoisoned").push(progress))),
            with_sent: true,
        };

        let long = Request {
            max_tokens: 1_500,
            ignore_end: true,
            ..request(&"a long prompt: ".repeat(6), 3)
        };
        let answer = futures::executor::block_on(engine.generate_followed(long, following));
        let answer = answer.expect("generated");

        // A token a byte, after the one that begins a text.
        let sent = answer.sent.expect("asked for");
        assert_eq!(sent.tokens.len(), 91);
        assert!(sent.text.ends_with("prompt: a long prompt: "), "{:?}", sent.text);

        let told = told.lock().expect("unpoisoned");
        // Before the prompt is computed.
        let first = Progress { prompt_tokens: 91, ..Progress::default() };
        assert_eq!(told.first(), Some(&first));
        // How often it tells more depends on the machine; every text is a part of the answer, and
        // none comes before the prompt is computed.
        for progress in told.iter() {
            assert_eq!(progress.prompt_tokens, 91);
            assert!(progress.prompt_computed <= 91);
            assert!(progress.text.is_empty() || progress.prompt_computed == 91, "{progress:?}");
            assert!(answer.text.contains(&progress.text), "{:?}", progress.text);
        }
        for pair in told.windows(2) {
            assert!(pair[0].prompt_computed <= pair[1].prompt_computed, "{pair:?}");
            // A long text is told by its end.
            assert!(pair[0].text.len() <= pair[1].text.len(), "{pair:?}");
            assert_ne!(pair[0], pair[1], "nothing new");
        }

        let silent = futures::executor::block_on(engine.generate(request("a turn", 3)));
        assert!(silent.expect("generated").sent.is_none());
    }
}

#[test]
fn nothing_is_told_after_the_answer() {
    let fixture = fixture();
    let engine = Engine::start(spec(&fixture.model, Isolation::Process)).expect("started");
    let order: Arc<Mutex<Vec<&str>>> = Arc::default();
    let (told, answered) = (Arc::clone(&order), Arc::clone(&order));
    let following = Following {
        watch: Some(Arc::new(move |_| told.lock().expect("unpoisoned").push("told"))),
        with_sent: false,
    };
    let long = Request { max_tokens: 40, ..request(&"a long prompt: ".repeat(30), 3) };
    futures::executor::block_on(async {
        engine.generate_followed(long, following).await.expect("generated");
        answered.lock().expect("unpoisoned").push("answered");
    });

    // Another turn's answer comes after everything that the first one was told.
    ask(&engine, vec![request("another turn", 1)]).remove(0).expect("generated");
    let order = order.lock().expect("unpoisoned");
    assert_eq!((order.first(), order.last()), (Some(&"told"), Some(&"answered")), "{order:?}");
    assert_eq!(order.iter().filter(|event| **event == "answered").count(), 1);
}
