//! Draws completions, many at a time: a decoder with a KV cache of its own, so that training can
//! try out what it trains without exporting it. Samples of one prompt share its part of the cache.

use std::sync::Arc;

use prime_kernels::rows;
use rand_chacha::ChaCha8Rng;

use super::{
    TrainError,
    layout::uniform,
    model_view::ModelView,
    network::{Matrix, NORM_EPSILON, Rotation},
    recipe::Architecture,
    vocabulary::{BOS, EOS},
};

/// Most rows of a pass: beyond it, larger products gain nothing, and activations leave the caches.
const ROWS_MAX: usize = 512;

/// A prompt, and how many completions are drawn from it.
pub struct Request<'a> {
    pub prompt: &'a [u16],
    /// A random stream for each completion.
    pub streams: Vec<ChaCha8Rng>,
    /// What its completions can look up.
    pub values: Option<&'a dyn Values>,
}

/// What stands at the addresses of a state.
pub trait Values {
    /// The answer to what is written of a completion so far.
    fn answer(&self, written: &[u16]) -> Answer;
}

/// What follows the tokens of a completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// They do not end with a query.
    NotAsked,
    /// These tokens are appended.
    Value(Vec<u16>),
    /// Nothing has that address, or too much was asked for: the completion stops here.
    Nothing,
}

/// How completions are drawn.
#[derive(Debug, Clone, Copy)]
pub struct Sampling {
    /// 0 takes the most likely token.
    pub temperature: f64,
    /// Most tokens of a completion, its end included.
    pub tokens_max: usize,
}

/// A completion that was drawn.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completion {
    /// Without its end, with the values that it looked up.
    pub tokens: Vec<u16>,
    /// ln π of each token that was drawn and, where it has ended, of its end, at the temperature of
    /// the draw (1 where that is 0).
    pub logprobs: Vec<f32>,
    /// Entropy of the policy before each of them, in nats.
    pub entropies: Vec<f32>,
    /// The model ended it; otherwise it became too long, or asked in vain.
    pub has_ended: bool,
    /// Its last query has no answer.
    pub asks_in_vain: bool,
}

/// Draws completions from a policy.
pub trait Sampler {
    /// The completions of each request, in the order of its streams. The prompts, bos excluded, and
    /// what is drawn must fit the context: completions end there.
    ///
    /// # Errors
    /// If the sampler is another program's, and has failed.
    fn complete(
        &self,
        requests: Vec<Request<'_>>,
        sampling: Sampling,
    ) -> Result<Vec<Vec<Completion>>, TrainError>;
}

impl Sampler for Decoder<'_> {
    fn complete(
        &self,
        requests: Vec<Request<'_>>,
        sampling: Sampling,
    ) -> Result<Vec<Vec<Completion>>, TrainError> {
        Ok(self.complete(requests, sampling))
    }
}

/// The keys and values of some positions, by layer: [positions, d_model].
#[derive(Debug, Clone, Default)]
struct Cache {
    layers: Vec<[Vec<f32>; 2]>,
    positions: usize,
}

impl Cache {
    fn new(layers: usize) -> Self {
        Self { layers: vec![[Vec::new(), Vec::new()]; layers], positions: 0 }
    }
}

/// A sequence that is being written: a prompt that others share, and its own continuation.
struct Sequence {
    prefix: Arc<Cache>,
    own: Cache,
}

impl Sequence {
    fn positions(&self) -> usize {
        self.prefix.positions + self.own.positions
    }
}

/// Draws completions from a network.
pub struct Decoder<'a> {
    model: ModelView<'a>,
    rotation: Rotation,
}

/// A completion under way.
struct Writer {
    request: usize,
    sequence: Sequence,
    stream: ChaCha8Rng,
    /// What was written and not yet read: the last token, and a value that was appended to it.
    unread: Vec<u16>,
    place: usize,
}

impl<'a> Decoder<'a> {
    pub fn new(model: ModelView<'a>) -> Self {
        Self {
            rotation: Rotation::new(model.architecture.context, model.architecture.head_dim()),
            model,
        }
    }

    /// [`Sampler::complete`], which cannot fail here.
    pub fn complete(&self, requests: Vec<Request<'_>>, sampling: Sampling) -> Vec<Vec<Completion>> {
        let context = self.model.architecture.context;
        let mut done: Vec<Vec<Completion>> = requests
            .iter()
            .map(|request| vec![Completion::default(); request.streams.len()])
            .collect();
        let values: Vec<Option<&dyn Values>> =
            requests.iter().map(|request| request.values).collect();
        let mut writers = Vec::new();
        let mut waiting = requests.into_iter().enumerate().peekable();
        while let Some((first, request)) = waiting.next() {
            let mut batch = vec![(first, request)];
            let mut rows = batch[0].1.prompt.len() + 1;
            while let Some((_, next)) = waiting.peek()
                && rows + next.prompt.len() < ROWS_MAX
            {
                rows += next.prompt.len() + 1;
                batch.extend(waiting.next());
            }
            self.begin(batch, sampling, &mut done, &mut writers);
        }
        while !writers.is_empty() {
            for chunk in writers.chunks_mut(ROWS_MAX) {
                let mut sequences = Vec::with_capacity(chunk.len());
                let mut inputs: Vec<&[u16]> = Vec::with_capacity(chunk.len());
                for writer in chunk.iter_mut() {
                    sequences.push(&mut writer.sequence);
                    inputs.push(&writer.unread);
                }
                let mut logits = self.extend(&mut sequences, &inputs);
                for (writer, row) in
                    chunk.iter_mut().zip(logits.chunks_exact_mut(self.model.vocabulary))
                {
                    let completion = &mut done[writer.request][writer.place];
                    writer.unread = written(
                        row,
                        sampling,
                        &mut writer.stream,
                        values[writer.request],
                        completion,
                    );
                }
            }
            writers.retain(|writer| {
                let completion = &mut done[writer.request][writer.place];
                let is_full = completion.logprobs.len() >= sampling.tokens_max
                    || writer.sequence.positions() + writer.unread.len() + 1 >= context;
                !completion.has_ended && !completion.asks_in_vain && !is_full
            });
        }
        done
    }

    /// Reads prompts and draws the first token of their completions.
    fn begin(
        &self,
        batch: Vec<(usize, Request<'_>)>,
        sampling: Sampling,
        done: &mut [Vec<Completion>],
        writers: &mut Vec<Writer>,
    ) {
        let layers = self.model.architecture.layers;
        let empty = Arc::new(Cache::new(layers));
        let fresh = || Sequence { prefix: Arc::clone(&empty), own: Cache::new(layers) };
        let mut prompts: Vec<Sequence> = batch.iter().map(|_| fresh()).collect();
        let texts: Vec<Vec<u16>> =
            batch.iter().map(|(_, request)| [&[BOS], request.prompt].concat()).collect();
        let inputs: Vec<&[u16]> = texts.iter().map(Vec::as_slice).collect();
        let mut sequences: Vec<&mut Sequence> = prompts.iter_mut().collect();
        let logits = self.extend(&mut sequences, &inputs);
        for (((index, request), prompt), row) in
            batch.into_iter().zip(prompts).zip(logits.chunks_exact(self.model.vocabulary))
        {
            let prefix = Arc::new(prompt.own);
            for (place, mut stream) in request.streams.into_iter().enumerate() {
                let completion = &mut done[index][place];
                let unread =
                    written(&mut row.to_vec(), sampling, &mut stream, request.values, completion);
                let fits = prefix.positions + unread.len() < self.model.architecture.context;
                if !completion.has_ended
                    && !completion.asks_in_vain
                    && sampling.tokens_max > 1
                    && fits
                {
                    let sequence =
                        Sequence { prefix: Arc::clone(&prefix), own: Cache::new(layers) };
                    writers.push(Writer { request: index, sequence, stream, unread, place });
                }
            }
        }
    }

    /// Appends tokens, at least one to each sequence; returns the logits behind the last of each,
    /// [sequences, vocabulary].
    fn extend(&self, sequences: &mut [&mut Sequence], tokens: &[&[u16]]) -> Vec<f32> {
        let Architecture { d_model, ff, layers, .. } = self.model.architecture;
        let head_dim = self.model.architecture.head_dim();
        let scale = 1.0 / (head_dim as f32).sqrt();
        let count: usize = tokens.iter().map(|tokens| tokens.len()).sum();
        let embedding = self.model.weights.embedding();
        let mut stream = Vec::with_capacity(count * d_model);
        for token in tokens.iter().copied().flatten() {
            stream.extend_from_slice(&embedding[usize::from(*token) * d_model..][..d_model]);
        }
        let mut normed = vec![0.0; count * d_model];
        let mut mixed = vec![0.0; count * d_model];
        let mut hidden = vec![0.0; count * ff];
        let mut scores = Vec::new();
        for layer in 0..layers {
            let [attention_norm, ff_norm] = self.model.weights.norms(layer);
            rows::norm(&stream, attention_norm, NORM_EPSILON, &mut normed);
            let mut qkv = self.model.project(Matrix::Qkv(layer), &normed);
            let mut lines = qkv.chunks_exact_mut(3 * d_model).zip(mixed.chunks_exact_mut(d_model));
            for (sequence, tokens) in sequences.iter_mut().zip(tokens) {
                for (line, mixed) in lines.by_ref().take(tokens.len()) {
                    let [own_keys, own_values] = &mut sequence.own.layers[layer];
                    let angles =
                        self.rotation.angles(sequence.prefix.positions + own_keys.len() / d_model);
                    let (query, line) = line.split_at_mut(d_model);
                    let (key, value) = line.split_at_mut(d_model);
                    rows::rotate(query, angles, scale, 1.0);
                    rows::rotate(key, angles, 1.0, 1.0);
                    own_keys.extend_from_slice(key);
                    own_values.extend_from_slice(value);
                    let [prefix_keys, prefix_values] = &sequence.prefix.layers[layer];
                    let keys = [prefix_keys.as_slice(), own_keys.as_slice()];
                    let values = [prefix_values.as_slice(), own_values.as_slice()];
                    rows::attend(query, keys, values, head_dim, &mut scores, mixed);
                }
            }
            rows::add_scaled(&mut stream, &self.model.project(Matrix::Output(layer), &mixed), 1.0);
            rows::norm(&stream, ff_norm, NORM_EPSILON, &mut normed);
            rows::swiglu_values(
                &self.model.project(Matrix::GateUp(layer), &normed),
                ff,
                &mut hidden,
            );
            rows::add_scaled(&mut stream, &self.model.project(Matrix::Down(layer), &hidden), 1.0);
        }
        let mut end = 0;
        let mut last = Vec::with_capacity(tokens.len() * d_model);
        for (sequence, tokens) in sequences.iter_mut().zip(tokens) {
            sequence.own.positions += tokens.len();
            end += tokens.len();
            last.extend_from_slice(&stream[(end - 1) * d_model..end * d_model]);
        }
        let normed = &mut normed[..last.len()];
        rows::norm(&last, self.model.weights.output_norm(), NORM_EPSILON, normed);
        self.model.project(Matrix::Logits, normed)
    }
}

/// Draws a token, and appends the value that it asks for; both are returned.
fn written(
    row: &mut [f32],
    sampling: Sampling,
    stream: &mut ChaCha8Rng,
    values: Option<&dyn Values>,
    completion: &mut Completion,
) -> Vec<u16> {
    let mut unread = vec![draw(row, sampling, stream, completion)];
    if let Some(values) = values.filter(|_| !completion.has_ended) {
        match values.answer(&completion.tokens) {
            Answer::NotAsked => {}
            Answer::Value(tokens) => {
                completion.tokens.extend(&tokens);
                unread.extend(tokens);
            }
            Answer::Nothing => completion.asks_in_vain = true,
        }
    }
    unread
}

/// Draws a token from the logits, which become probabilities, and appends it unless it is the end.
fn draw(
    row: &mut [f32],
    sampling: Sampling,
    stream: &mut ChaCha8Rng,
    completion: &mut Completion,
) -> u16 {
    let is_greedy = sampling.temperature <= 0.0;
    let temperature = if is_greedy { 1.0 } else { sampling.temperature as f32 };
    row.iter_mut().for_each(|logit| *logit /= temperature);
    let logits = row.to_vec();
    let log_sum = rows::log_softmax(row);
    let token = if is_greedy {
        let better = |best: usize, index: usize| if row[index] > row[best] { index } else { best };
        (1..row.len()).fold(0, better)
    } else {
        let mut left = uniform(stream) as f32;
        let chosen = row.iter().position(|p| {
            left -= p;
            left <= 0.0
        });
        // Rounding can leave a remainder.
        chosen.or_else(|| row.iter().rposition(|p| *p > 0.0)).unwrap_or(usize::from(EOS))
    };
    completion.logprobs.push(logits[token] - log_sum);
    // H = −Σ p ln p, and ln p = logit − ln of the sum.
    completion.entropies.push((log_sum - rows::inner(row, &logits)).max(0.0));
    let token = token as u16;
    if token == EOS {
        completion.has_ended = true;
    } else {
        completion.tokens.push(token);
    }
    token
}

#[cfg(test)]
mod tests {
    use prime_kernels::Bf16;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::{
        batch::{Batch, Encoded, Sample},
        layout::Layout,
        network::{Network, Weights, Workspace},
        rl::objective::{self, policy},
        vocabulary::Vocabulary,
    };

    const TINY: Architecture =
        Architecture { d_model: 64, layers: 2, heads: 2, ff: 96, context: 64 };

    fn stream(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    /// A random network whose logits differ enough to make draws interesting.
    struct Setting {
        layout: Layout,
        weights: Weights<f32>,
        rounded: Weights<Bf16>,
    }

    impl Setting {
        fn new() -> Self {
            let layout = Layout::new(TINY, Vocabulary::default().size());
            let weights =
                layout.initialize(3).iter().map(|weight| weight * 1.7).collect::<Vec<_>>();
            Self {
                weights: Weights::of(&layout, &weights),
                rounded: Weights::of(&layout, &weights),
                layout,
            }
        }

        fn decoder(&self) -> Decoder<'_> {
            Decoder::new(ModelView::new(&self.layout, &self.weights))
        }

        /// Calls `see` with each target's place and logits.
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
                .map(|prompt| Request {
                    prompt,
                    streams: (0..4).map(stream).collect(),
                    values: None,
                })
                .collect();
            let drawn = decoder.complete(requests, Sampling { temperature: 1.0, tokens_max: 12 });
            let mut seen = 0;
            for (prompt, completions) in prompts.iter().zip(&drawn) {
                for completion in completions {
                    // What is not text cannot be put into a sample; its tokens are checked
                    // nevertheless.
                    let encoded = Encoded::drawn(0, prompt.clone(), completion.tokens.clone());
                    let mut batch = Batch::default();
                    batch.push(&encoded, TINY.context).expect("fits");
                    let drawn: Vec<_> =
                        completion.logprobs.iter().zip(&completion.entropies).collect();
                    setting.each_logits(&batch, |place, row| {
                        // A completion that became too long has no end.
                        let Some((logprob, entropy)) = drawn.get(place) else { return };
                        let wanted = policy(row, 1.0, batch.targets[place].token);
                        assert!(
                            (wanted - **logprob).abs() < tolerance,
                            "{wanted} is not {logprob}"
                        );
                        let wanted = objective::entropy(row);
                        assert!(
                            (wanted - **entropy).abs() < tolerance,
                            "{wanted} is not {entropy}"
                        );
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
        let requests = vec![Request {
            prompt: &prompt,
            streams: (0..draws).map(stream).collect(),
            values: None,
        }];
        let drawn = decoder.complete(requests, Sampling { temperature: 0.7, tokens_max: 1 });
        let mut counts = vec![0.0; row.len()];
        for completion in &drawn[0] {
            counts[usize::from(completion.tokens.first().copied().unwrap_or(EOS))] += 1.0;
        }
        // Five standard deviations of a count, for the tokens that occur at all.
        for (p, count) in row.iter().zip(counts) {
            let expected = f64::from(*p) * draws as f64;
            assert!(
                (count - expected).abs() <= 5.0 * expected.sqrt() + 1.0,
                "{count} of {expected}"
            );
        }
    }

    #[test]
    fn a_completion_depends_on_its_own_stream_alone() {
        let setting = Setting::new();
        let decoder = setting.decoder();
        let (one, other) = (bytes("one prompt"), bytes("other"));
        let sampling = Sampling { temperature: 1.0, tokens_max: 9 };
        let alone = decoder.complete(
            vec![Request { prompt: &one, streams: vec![stream(5)], values: None }],
            sampling,
        );
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

    /// Answers after two tokens of its own, with a value of three.
    struct AfterTwo(Answer);

    impl Values for AfterTwo {
        fn answer(&self, written: &[u16]) -> Answer {
            let is_asked = written.len() % 5 == 2;
            if is_asked { self.0.clone() } else { Answer::NotAsked }
        }
    }

    /// A completion is drawn in the same way from a prompt that has all before it.
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
            let next =
                decoder.complete(vec![request], Sampling { temperature: 0.0, tokens_max: 1 });
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
        let drawn = setting
            .decoder()
            .complete(vec![request], Sampling { temperature: 0.0, tokens_max: 12 });
        let completion = &drawn[0][0];
        assert_eq!(
            (completion.tokens.len(), completion.asks_in_vain, completion.has_ended),
            (2, true, false)
        );
    }
}
