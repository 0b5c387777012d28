//! The decoder draws from the distribution that training computes, and ends completions where it
//! should.

use prime_kernels::Bf16;
use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use crate::{
    batch::Batch,
    decoder::Decoder,
    layout::Layout,
    model_view::ModelView,
    network::{Network, Weights, Workspace},
    recipe::Architecture,
    rl::objective::{self, policy},
    sample::{Encoded, Sample},
    sampler::{Answer, Request, Sampling, Values},
    vocabulary::{EOS, Vocabulary},
};

const TINY: Architecture = Architecture { d_model: 64, layers: 2, heads: 2, ff: 96, context: 64 };

fn stream(seed: u64) -> ChaCha8Rng {
    ChaCha8Rng::seed_from_u64(seed)
}

/// A random network whose logits differ enough to tell tokens apart.
struct Setting {
    layout: Layout,
    weights: Weights<f32>,
    rounded: Weights<Bf16>,
}

impl Setting {
    fn new() -> Self {
        let layout = Layout::new(TINY, Vocabulary::default().size());
        let weights = layout.initialize(3).iter().map(|weight| weight * 1.7).collect::<Vec<_>>();
        Self {
            weights: Weights::of(&layout, &weights),
            rounded: Weights::of(&layout, &weights),
            layout,
        }
    }

    fn decoder(&self) -> Decoder<'_> {
        Decoder::new(ModelView::new(&self.layout, &self.weights))
    }

    /// Calls `see` with the index of each target and its logits.
    fn each_logits(&self, batch: &Batch, see: impl FnMut(usize, &mut [f32])) {
        Network::new(&self.layout).each_logits(
            &self.weights,
            batch,
            &mut Workspace::default(),
            see,
        );
    }
}

fn bytes(text: &str) -> Vec<u16> {
    text.bytes().map(u16::from).collect()
}

#[test]
fn log_probabilities_are_those_that_training_computes() {
    let setting = Setting::new();
    let rounded = Decoder::new(ModelView::new(&setting.layout, &setting.rounded));
    let prompts = ["sort 3 1 2", "a", "another prompt that is longer"].map(bytes);

    for (decoder, tolerance) in [(setting.decoder(), 1e-3), (rounded, 0.3)] {
        let requests = prompts
            .iter()
            .map(|prompt| Request { prompt, streams: (0..4).map(stream).collect(), values: None })
            .collect();
        let drawn = decoder.complete(requests, Sampling { temperature: 1.0, tokens_max: 12 });

        let mut seen = 0;
        for (prompt, completions) in prompts.iter().zip(&drawn) {
            for completion in completions {
                // Not made from a text, because drawn bytes need not be UTF-8.
                let encoded = Encoded::drawn(0, prompt.clone(), completion.tokens.clone());
                let mut batch = Batch::default();
                batch.push(&encoded, TINY.context).expect("fits");

                let drawn: Vec<_> = completion.logprobs.iter().zip(&completion.entropies).collect();
                setting.each_logits(&batch, |place, row| {
                    // A completion that became too long has no end.
                    let Some((logprob, entropy)) = drawn.get(place) else { return };
                    let wanted = policy(row, 1.0, batch.targets[place].token);
                    assert!((wanted - **logprob).abs() < tolerance, "{wanted} is not {logprob}");
                    let wanted = objective::entropy(row);
                    assert!((wanted - **entropy).abs() < tolerance, "{wanted} is not {entropy}");
                    seen += 1;
                });
            }
        }
        assert!(seen > 60, "{seen}");
    }
}

#[test]
fn tokens_are_drawn_as_often_as_the_policy_says() {
    let setting = Setting::new();
    let decoder = setting.decoder();
    let prompt = bytes("p");
    let mut batch = Batch::default();

    batch
        .push(&Encoded::new(&Sample::written(0, "p", ""), &Vocabulary::default()), TINY.context)
        .expect("fits");
    let mut row = Vec::new();
    setting.each_logits(&batch, |_, logits| row = logits.to_vec());
    policy(&mut row, 0.7, EOS);

    let draws = 4_000;
    let requests =
        vec![Request { prompt: &prompt, streams: (0..draws).map(stream).collect(), values: None }];
    let drawn = decoder.complete(requests, Sampling { temperature: 0.7, tokens_max: 1 });

    let mut counts = vec![0.0; row.len()];
    for completion in &drawn[0] {
        counts[usize::from(completion.tokens.first().copied().unwrap_or(EOS))] += 1.0;
    }
    // Five standard deviations of a count, for the tokens that occur at all.
    for (p, count) in row.iter().zip(counts) {
        let expected = f64::from(*p) * draws as f64;
        assert!((count - expected).abs() <= 5.0 * expected.sqrt() + 1.0, "{count} of {expected}");
    }
}

#[test]
fn a_completion_depends_on_its_own_stream_alone() {
    let setting = Setting::new();
    let decoder = setting.decoder();
    let (one, other) = (bytes("one prompt"), bytes("other"));
    let sampling = Sampling { temperature: 1.0, tokens_max: 9 };

    let alone = decoder
        .complete(vec![Request { prompt: &one, streams: vec![stream(5)], values: None }], sampling);
    let together = decoder.complete(
        vec![
            Request { prompt: &other, streams: vec![stream(1), stream(2)], values: None },
            Request { prompt: &one, streams: vec![stream(4), stream(5)], values: None },
        ],
        sampling,
    );

    assert_eq!(alone[0][0].tokens, together[1][1].tokens);
    assert_ne!(together[1][0].tokens, together[1][1].tokens);
}

#[test]
fn greedy_completions_end_with_the_context() {
    let setting = Setting::new();
    let prompt = bytes("to the end");
    let requests = vec![Request { prompt: &prompt, streams: vec![stream(1)], values: None }];
    let sampling = Sampling { temperature: 0.0, tokens_max: usize::MAX };
    let drawn = setting.decoder().complete(requests, sampling);
    let completion = &drawn[0][0];
    assert!(
        completion.has_ended || completion.tokens.len() + prompt.len() + 2 == TINY.context,
        "{completion:?}"
    );
}

#[test]
fn the_first_token_may_be_the_last_that_fits() {
    let setting = Setting::new();
    // With bos, one token and eos, this prompt fills the context.
    let prompt = bytes(&"x".repeat(TINY.context - 3));
    let requests =
        vec![Request { prompt: &prompt, streams: (0..8).map(stream).collect(), values: None }];
    let sampling = Sampling { temperature: 1.0, tokens_max: usize::MAX };

    for completion in &setting.decoder().complete(requests, sampling)[0] {
        assert!(completion.has_ended || completion.tokens.len() == 1, "{completion:?}");
    }
}

/// Answers after every two drawn tokens; its value has three.
struct AfterTwo(Answer);

impl Values for AfterTwo {
    fn answer(&self, written: &[u16]) -> Answer {
        let is_asked = written.len() % 5 == 2;
        if is_asked { self.0.clone() } else { Answer::NotAsked }
    }
}

/// Each token is also drawn alone, from a prompt that contains all tokens before it.
#[test]
fn what_follows_a_value_is_drawn_as_from_a_prompt_with_it() {
    let setting = Setting::new();
    let decoder = setting.decoder();
    let prompt = bytes("values");
    let sampling = Sampling { temperature: 0.0, tokens_max: 12 };

    let value = bytes("=7 ");
    let values = AfterTwo(Answer::Value(value.clone()));
    let drawn = decoder.complete(
        vec![Request { prompt: &prompt, streams: vec![stream(1)], values: Some(&values) }],
        sampling,
    );

    let completion = &drawn[0][0];
    assert!(completion.tokens.len() > 12, "random weights seldom end a text: {completion:?}");

    let mut drawn = 0;
    for (place, token) in completion.tokens.iter().enumerate() {
        if place % 5 >= 2 {
            assert_eq!(*token, value[place % 5 - 2], "{place}");
            continue;
        }

        let whole = [&prompt[..], &completion.tokens[..place]].concat();
        let request = Request { prompt: &whole, streams: vec![stream(1)], values: None };
        let next = decoder.complete(vec![request], Sampling { temperature: 0.0, tokens_max: 1 });
        assert_eq!(next[0][0].tokens, [*token], "{place}");
        drawn += 1;
    }

    assert_eq!(completion.logprobs.len(), drawn + usize::from(completion.has_ended));
}

#[test]
fn a_query_without_an_answer_stops_the_completion() {
    let setting = Setting::new();
    let prompt = bytes("values");
    let values = AfterTwo(Answer::Nothing);
    let request = Request { prompt: &prompt, streams: vec![stream(1)], values: Some(&values) };

    let drawn =
        setting.decoder().complete(vec![request], Sampling { temperature: 0.0, tokens_max: 12 });

    let completion = &drawn[0][0];
    assert_eq!(
        (completion.tokens.len(), completion.query_failed, completion.has_ended),
        (2, true, false)
    );
}
