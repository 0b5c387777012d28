//! Cached tokens are not computed again, and results stay right: common prefixes, rollback,
//! history, forced tokens.

use std::sync::Arc;

use prime_engine::{
    Engine, EngineCounts, EngineSpec, Finish, FlashAttention, Generation, Isolation, KvPool,
    Request, Sampling,
};
use prime_engine_testing::teacher_forced;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{Fixture, ask, collect, fixture, one, request, spec, submit_all, wait_for};

/// Largest difference of a log-probability from that of a token-by-token pass: the order of sums
/// and the 16-bit KV pool account for up to 0.01.
const TOLERANCE: f64 = 0.05;

fn started(fixture: &Fixture, kv: KvPool) -> Engine {
    let spec = spec(&fixture.model, Isolation::Process);
    Engine::start(EngineSpec { kv, context_tokens: 8 * 512, ..spec }).expect("started")
}

/// The counts once the engine is idle.
fn counts(engine: &Engine) -> EngineCounts {
    wait_for(engine, |status| {
        status.in_flight == 0 && status.counts.live == 0 && status.counts.queued == 0
    })
    .counts
}

/// Prompt tokens that were computed.
fn computed(counts: &EngineCounts) -> u64 {
    counts.prompt_tokens - counts.shared_tokens
}

fn head(bytes: usize, seed: u64) -> String {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    (0..bytes).map(|_| char::from(rng.random_range(b'a'..=b'z'))).collect()
}

fn assert_right(fixture: &Fixture, prompt: &str, generation: &Generation, what: &str) {
    let right = teacher_forced(&fixture.model, prompt, &generation.tokens).expect("computed");
    for (got, right) in generation.logprobs.iter().zip(&right) {
        assert!((f64::from(*got) - right).abs() < TOLERANCE, "{what}: {got} instead of {right}");
    }
    assert_eq!(generation.logprobs.len(), right.len(), "{what}");
}

#[test]
fn a_prefix_common_to_many_turns_is_computed_once() {
    const TURNS: usize = 8;
    let fixture = fixture();
    for kv in [KvPool::Shared, KvPool::Split] {
        let engine = started(&fixture, kv);
        let head = head(300, 1);
        let prompts: Vec<String> = (0..TURNS).map(|turn| format!("{head} {turn}")).collect();
        let requests = prompts.iter().map(|prompt| request(prompt, 7)).collect();
        let results = ask(&engine, requests);

        for (prompt, result) in prompts.iter().zip(&results) {
            assert_right(&fixture, prompt, result.as_ref().expect("generated"), &format!("{kv:?}"));
        }

        let counts = counts(&engine);
        let computed = computed(&counts);
        // Once the begin token, the head and a space, and the last token of each turn.
        assert_eq!(
            (counts.prompt_tokens, computed),
            (303 * TURNS as u64, 302 + TURNS as u64),
            "{kv:?}: {counts:?}"
        );

        // A turn of another run finds it, too, until it is evicted.
        one(&engine, request(&format!("{head} of another run"), 7)).expect("generated");
        let later = self::counts(&engine);
        assert_eq!(self::computed(&later), computed + 14, "{kv:?}: {later:?}");
    }
}

#[test]
fn answers_are_right_with_and_without_flash_attention() {
    let fixture = fixture();
    for flash_attention in [FlashAttention::Auto, FlashAttention::On, FlashAttention::Off] {
        let engine = EngineSpec { flash_attention, ..spec(&fixture.model, Isolation::Process) };
        let engine = Engine::start(engine).expect("started");
        let prompt = head(200, 2);
        let generation = one(&engine, request(&prompt, 7)).expect("generated");
        assert_right(&fixture, &prompt, &generation, &format!("{flash_attention:?}"));
    }
}

#[test]
fn a_retry_computes_one_token_of_its_prompt() {
    let fixture = fixture();
    for kv in [KvPool::Shared, KvPool::Split] {
        let engine = started(&fixture, kv);
        let prompt = head(200, 2);
        let greedy = Request { sampling: Sampling::GREEDY, ..request(&prompt, 0) };
        let first = one(&engine, greedy.clone()).expect("generated");

        let before = counts(&engine);
        // A rejected answer is rolled back, and another is generated.
        for seed in 0..5 {
            let again = one(&engine, request(&prompt, seed)).expect("generated");
            assert_right(&fixture, &prompt, &again, &format!("{kv:?}, retry {seed}"));
        }

        let again = one(&engine, greedy).expect("generated");
        let fresh = one(
            &started(&fixture, kv),
            Request { sampling: Sampling::GREEDY, ..request(&prompt, 0) },
        );
        for (again, others) in again
            .logprobs
            .iter()
            .zip(first.logprobs.iter().zip(&fresh.expect("generated").logprobs))
        {
            let difference = (again - others.0).abs().max((again - others.1).abs());
            assert!(
                f64::from(difference) < TOLERANCE,
                "{kv:?}: off by {difference} after rollbacks"
            );
        }

        let after = counts(&engine);
        assert_eq!(computed(&after) - computed(&before), 6, "{kv:?}: {after:?}");
    }
}

#[test]
fn a_history_that_grows_and_shrinks_is_computed_step_by_step() {
    let fixture = fixture();
    for kv in [KvPool::Shared, KvPool::Split] {
        let engine = started(&fixture, kv);
        let mut histories = vec![head(100, 3)];
        for step in 0..6_u64 {
            let history = histories.last().expect("one");
            let before = counts(&engine);
            let line = one(&engine, Request { grammar: Some(letters()), ..request(history, step) })
                .expect("generated");
            assert_right(&fixture, history, &line, &format!("{kv:?}, step {step}"));
            let after = counts(&engine);
            if step > 0 {
                let computed = computed(&after) - computed(&before);
                // The last token of the answer was not decoded, and a line feed follows.
                assert!(
                    computed <= 2,
                    "{kv:?}, step {step}: {computed} tokens of the prompt were computed again"
                );
            }

            histories.push(format!("{history}{}\n", line.text));
            if step == 3 {
                // A pop of two steps.
                histories.truncate(3);
            }
        }
    }
}

/// Lower-case letters, of any number.
fn letters() -> Arc<str> {
    "root ::= [a-z]+".into()
}

#[test]
fn forced_tokens_are_appended_in_one_decode_and_have_log_probabilities() {
    let fixture = fixture();
    let engine = started(&fixture, KvPool::Shared);
    let grammar: Arc<str> = "root ::= \"move the disk from \" [AB] \" to the peg \" [CD]".into();
    let greedy = Request {
        grammar: Some(grammar),
        sampling: Sampling::GREEDY,
        max_tokens: 60,
        ..request("x", 0)
    };

    let generation = one(&engine, greedy.clone()).expect("generated");
    let text = &generation.text;
    assert!(text.starts_with("move the disk from ") && text.len() == 33, "{text:?}");
    assert_eq!((generation.tokens.len(), generation.finish), (34, Finish::EndOfText));
    assert_right(&fixture, "x", &generation, "forced");

    let counts = counts(&engine);
    // Two letters are sampled, everything else including the end is forced; one decode before each
    // choice and one for the log-probability of the end.
    assert_eq!(
        (counts.generated_tokens, counts.forced_tokens, counts.decodes),
        (34, 32, 3),
        "{counts:?}"
    );

    // Without log-probabilities the end needs no decode.
    let plain = one(&engine, Request { logprobs: false, ..greedy.clone() }).expect("generated");
    assert_eq!((&plain.text, plain.tokens), (text, generation.tokens));
    assert_eq!(self::counts(&engine).decodes, 5);

    // A grammar with only one text needs no decode at all.
    let only =
        Request { grammar: Some("root ::= \"yes\"".into()), logprobs: false, ..greedy.clone() };
    assert_eq!(one(&engine, only.clone()).expect("generated").text, "yes");
    assert_eq!(self::counts(&engine).decodes, 5);

    let cut = one(&engine, Request { max_tokens: 2, ..only }).expect("generated");
    assert_eq!((cut.text.as_str(), cut.finish), ("ye", Finish::Length));

    // A text that is cut within forced tokens has the log-probabilities of its tokens.
    let cut = one(&engine, Request { max_tokens: 7, ..greedy }).expect("generated");
    assert_eq!((cut.text.as_str(), cut.finish), ("move th", Finish::Length));
    assert_right(&fixture, "x", &cut, "cut");
}

#[test]
fn a_group_of_many_turns_delays_another_group_by_one_round() {
    let fixture = fixture();
    let spec = EngineSpec { sequences_max: 2, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(spec).expect("started");
    let many =
        (0..60_u64).map(|turn| Request { group: 1, ..request(&format!("turn {turn}"), turn) });
    let few = (0..2).map(|turn| Request { group: 2, ..request(&format!("other {turn}"), turn) });

    let answers = submit_all(&engine, many.chain(few).collect());
    let order: Vec<usize> = answers.iter().map(|(index, _)| index).collect();
    let last = order.iter().rposition(|index| *index >= 60).expect("answered");

    // The worker has four turns when the others arrive; of those that wait, every second one is the
    // other group's.
    assert!(last <= 12, "the other group's last turn was the {last}th to end");
}

#[test]
fn a_long_prompt_does_not_hold_up_short_turns() {
    let fixture = fixture();
    let spec = spec(&fixture.model, Isolation::Process);
    let engine = Engine::start(EngineSpec { context_tokens: 4096, prefill_tokens: 16, ..spec })
        .expect("started");
    let warm = one(&engine, Request { max_tokens: 1, ..request("x", 0) }).expect("generated");
    assert_eq!(warm.tokens.len(), 1);

    let long = Request { max_tokens: 1, ..request(&head(2000, 4), 0) };
    let short = (1..4).map(|seed| Request {
        grammar: Some(letters()),
        ..request(&format!("short {seed}"), seed)
    });

    let answers = submit_all(&engine, std::iter::once(long).chain(short).collect());
    let order: Vec<usize> = answers.iter().map(|(index, _)| index).collect();
    // The short turns generate 24 tokens each, while the long one needs 125 slices.
    assert_eq!(order.last(), Some(&0), "{order:?}");
}

#[tokio::test]
async fn a_cancelled_turn_is_not_computed_to_its_end() {
    let fixture = fixture();
    let spec = EngineSpec { sequences_max: 1, ..spec(&fixture.model, Isolation::Process) };
    let engine = Engine::start(EngineSpec { context_tokens: 4096, ..spec }).expect("started");
    let endless: Arc<str> = "root ::= many many many many\nmany ::= [a-z]{1000}".into();
    let endless = Request { grammar: Some(endless), max_tokens: 4000, ..request("x", 0) };

    {
        let mut first = Box::pin(engine.generate(endless.clone()));
        let mut second = Box::pin(engine.generate(endless));
        futures::future::select(&mut first, futures::future::ready(())).await;
        futures::future::select(&mut second, futures::future::ready(())).await;
        let engine = engine.clone();
        let started = move || {
            wait_for(&engine, |status| status.counts.live == 1 && status.counts.queued == 1)
        };
        tokio::task::spawn_blocking(started).await.expect("started");
    }

    let counts = counts(&engine);
    assert_eq!((counts.cancelled, counts.generated_tokens), (2, 0), "{counts:?}");
    assert!(counts.decodes < 3000, "{counts:?}");
    assert!(engine.generate(request("y", 1)).await.is_ok());
}

#[test]
fn answers_stay_right_under_random_sharing_and_eviction() {
    let fixture = fixture();
    for (kv, seed) in [(KvPool::Shared, 1), (KvPool::Split, 2)] {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let spec = spec(&fixture.model, Isolation::Process);
        // Too small to cache much: 4 sequences for turns and 2 that only cache.
        let context_tokens = if kv == KvPool::Shared { 500 } else { 6 * 256 };
        let spec = EngineSpec { kv, context_tokens, sequences_max: 4, kept_max: 2, ..spec };
        let engine = Engine::start(spec).expect("started");

        let heads: Vec<String> = (0..4).map(|at| head(20 + 30 * at, 10 + at as u64)).collect();
        let mut prompts = Vec::new();
        for _ in 0..80 {
            let head = &heads[rng.random_range(0..heads.len())];
            let cut = rng.random_range(1..=head.len());
            prompts.push(format!("{}{}", &head[..cut], rng.random_range(0..20)));
        }

        let requests: Vec<Request> = prompts
            .iter()
            .zip(0..)
            .map(|(prompt, seed)| {
                let grammar = rng.random_bool(0.3).then(|| "root ::= (\"forced \" [ab])+".into());
                Request {
                    grammar,
                    group: rng.random_range(0..3),
                    max_tokens: rng.random_range(1..40),
                    ..request(prompt, seed)
                }
            })
            .collect();

        let results = collect(&submit_all(&engine, requests), prompts.len());
        for (prompt, result) in prompts.iter().zip(&results) {
            assert_right(
                &fixture,
                prompt,
                result.as_ref().expect("generated"),
                &format!("{kv:?}, {prompt:?}"),
            );
        }

        let counts = counts(&engine);
        assert!(
            counts.shared_tokens > 0 && counts.evictions + counts.rollbacks > 0,
            "{kv:?}: {counts:?}"
        );
    }
}
