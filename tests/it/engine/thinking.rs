//! Models that think before their answer: a tiny model whose template opens the thinking, so that
//! all the mechanics of one are there, with llama.cpp underneath.

use prime_engine::{Engine, EngineError, Finish, Format, Generation, Isolation, Request, Thinking};
use prime_engine_testing::TinyModel;

use super::{Fixture, ask, one, request, spec};

/// A template that opens the thinking; each byte is a token.
const TEMPLATE: &str = "{{ messages[-1].content }}|<think>\n";
/// Ends the thinking: `</think>` and an empty line.
const CLOSING: u32 = 10;
const GRAMMAR: &str = "root ::= \"move \" [0-9]";

fn thinker() -> Fixture {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let model = folder.path().join("thinker.gguf");
    TinyModel::default().write_with_template(&model, TEMPLATE).expect("model written");
    Fixture { _folder: folder, model }
}

fn chat(thinking: Thinking, seed: u64) -> Request {
    Request {
        format: Format::Chat { system: None },
        thinking,
        grammar: Some(GRAMMAR.into()),
        ..request("Which disk is to be moved now, and where?", seed)
    }
}

fn is_action(text: &str) -> bool {
    text.strip_prefix("move ")
        .is_some_and(|digit| digit.len() == 1 && digit.bytes().all(|byte| byte.is_ascii_digit()))
}

#[test]
fn a_budget_is_kept_and_the_grammar_begins_after_it() {
    let fixture = thinker();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let found = ask(&engine, (0..8).map(|seed| chat(Thinking::AtMost(12), seed)).collect());

    let mut spent = 0;
    for generation in found {
        let generation = generation.expect("a generation");
        let Generation { text, tokens, logprobs, thought_tokens, finish, .. } = &generation;
        assert!(is_action(text), "{generation:?}");
        // The answer's own tokens: its six characters and the end.
        assert_eq!((tokens.len(), logprobs.len(), *finish), (7, 7, Finish::EndOfText));
        // Twelve, or fewer where the model ended its thinking itself.
        assert!(*thought_tokens <= 12 + CLOSING, "{generation:?}");
        spent += u32::from(*thought_tokens == 12 + CLOSING);
    }
    assert!(spent > 0, "a model of random weights rarely ends its thinking");
}

#[test]
fn thinking_turned_off_is_closed_at_once() {
    let fixture = thinker();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let [open, off] = [Thinking::AtMost(1), Thinking::Off]
        .map(|thinking| one(&engine, chat(thinking, 3)).expect("a generation"));

    assert_eq!(off.prompt_tokens, open.prompt_tokens + CLOSING, "the prompt has the end");
    assert_eq!((off.thought_tokens, off.thought.as_str()), (0, ""));
    assert!(is_action(&off.text) && is_action(&open.text), "{off:?}, {open:?}");
    assert!(open.thought_tokens <= 1 + CLOSING);
}

#[test]
fn thinking_without_a_budget_is_a_part_of_the_generation() {
    let fixture = thinker();
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    for seed in 0..4 {
        let asked = Request { max_tokens: 40, ..chat(Thinking::AsModel, seed) };
        let found = one(&engine, asked).expect("a generation");
        let all = found.thought_tokens + u32::try_from(found.tokens.len()).expect("few");
        assert!(all <= 40 + CLOSING, "{found:?}");
        // Cut off within its thinking, or an answer of the grammar after it.
        let is_cut = found.finish == Finish::Length && found.text.is_empty();
        assert!(is_cut || "move 0".starts_with(&found.text) || is_action(&found.text), "{found:?}");
    }
}

#[test]
fn a_cached_prefix_changes_nothing() {
    let fixture = thinker();
    let asked =
        || Request { sampling: prime_engine::Sampling::GREEDY, ..chat(Thinking::AtMost(20), 0) };
    let engine = Engine::start(spec(&fixture.model, Isolation::Thread)).expect("started");
    let first = one(&engine, asked()).expect("a generation");
    let second = one(&engine, asked()).expect("a generation");

    assert_eq!((first.cached_tokens, first.thought_tokens), (0, second.thought_tokens));
    assert_eq!((&first.text, &first.thought), (&second.text, &second.thought));
    assert_eq!(second.cached_tokens, second.prompt_tokens - 1, "all but the last one");
}

#[test]
fn a_context_too_small_for_an_answer_after_thinking_is_refused() {
    let fixture = thinker();
    let small = prime_engine::EngineSpec {
        context_tokens: 256,
        sequences_max: 1,
        ..spec(&fixture.model, Isolation::Thread)
    };
    let engine = Engine::start(small).expect("started");
    // 239 bytes, eight of the template, whose last newline is not rendered, and ten of the end are
    // one too many.
    let long = Request { prompt: "x".repeat(239), ..chat(Thinking::AtMost(12), 0) };
    let found = one(&engine, long);
    assert!(matches!(found, Err(EngineError::PromptTooLong { .. })), "{found:?}");

    // Room for a short answer alone: nothing is thought.
    let brief =
        Request { prompt: "Go".to_owned(), max_tokens: 300, ..chat(Thinking::AtMost(12), 0) };
    let found = one(&engine, brief).expect("a generation");
    assert_eq!((found.thought_tokens, is_action(&found.text)), (CLOSING, true), "{found:?}");
}
