//! Draws completions, many at a time: a decoder with a KV cache of its own, so that training can try out what it trains without
//! exporting it. Samples of one prompt share its part of the cache.

use std::sync::Arc;

use burn::tensor::{Device, Tensor, TensorData};
use rand_chacha::ChaCha8Rng;

use super::{
    layout::uniform,
    model::{LAYER_TENSORS, Network, floats},
    ops::{self, dot, exponentials, maximum},
    rl::objective::{self, policy},
    vocabulary::{BOS, EOS},
};

/// Most rows of a pass: beyond it, larger products gain nothing, and activations leave the caches.
const ROWS_MAX: usize = 512;

/// A prompt, and how many completions are drawn from it.
pub struct Request<'a> {
    pub prompt: &'a [u16],
    /// A random stream for each completion.
    pub streams: Vec<ChaCha8Rng>,
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
    /// Without its end.
    pub tokens: Vec<u16>,
    /// ln π of each token and, where it has ended, of its end, at the temperature of the draw (1 where that is 0).
    pub logprobs: Vec<f32>,
    /// Entropy of the policy before each of them, in nats.
    pub entropies: Vec<f32>,
    /// The model ended it; otherwise it became too long.
    pub has_ended: bool,
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

/// The network and weights that completions are drawn from.
pub struct Decoder<'a> {
    network: &'a Network,
    weights: &'a [Tensor<2>],
    vocabulary: usize,
    device: Device,
}

/// A completion under way.
struct Writer {
    request: usize,
    sequence: Sequence,
    stream: ChaCha8Rng,
    last: u16,
    place: usize,
}

impl<'a> Decoder<'a> {
    pub fn new(network: &'a Network, weights: &'a [Tensor<2>]) -> Self {
        Self { network, weights, vocabulary: weights[0].dims()[0], device: weights[0].device() }
    }

    /// The completions of each request, in the order of its streams. The prompts, bos excluded, and what is drawn must fit the
    /// context: completions end there.
    pub fn complete(&self, requests: Vec<Request<'_>>, sampling: Sampling) -> Vec<Vec<Completion>> {
        let architecture = self.network.architecture();
        let mut done: Vec<Vec<Completion>> =
            requests.iter().map(|request| vec![Completion::default(); request.streams.len()]).collect();
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
                let tokens: Vec<[u16; 1]> = chunk.iter().map(|writer| [writer.last]).collect();
                let mut sequences: Vec<&mut Sequence> = chunk.iter_mut().map(|writer| &mut writer.sequence).collect();
                let inputs: Vec<&[u16]> = tokens.iter().map(<[u16; 1]>::as_slice).collect();
                let mut logits = self.extend(&mut sequences, &inputs);
                for (writer, row) in chunk.iter_mut().zip(logits.chunks_exact_mut(self.vocabulary)) {
                    writer.last = draw(row, sampling, &mut writer.stream, &mut done[writer.request][writer.place]);
                }
            }
            writers.retain(|writer| {
                let completion = &mut done[writer.request][writer.place];
                let is_full = completion.logprobs.len() >= sampling.tokens_max
                    || writer.sequence.positions() + 2 >= architecture.context;
                !completion.has_ended && !is_full
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
        let layers = self.network.architecture().layers;
        let empty = Arc::new(Cache::new(layers));
        let fresh = || Sequence { prefix: Arc::clone(&empty), own: Cache::new(layers) };
        let mut prompts: Vec<Sequence> = batch.iter().map(|_| fresh()).collect();
        let texts: Vec<Vec<u16>> = batch.iter().map(|(_, request)| [&[BOS], request.prompt].concat()).collect();
        let inputs: Vec<&[u16]> = texts.iter().map(Vec::as_slice).collect();
        let mut sequences: Vec<&mut Sequence> = prompts.iter_mut().collect();
        let logits = self.extend(&mut sequences, &inputs);
        for (((index, request), prompt), row) in
            batch.into_iter().zip(prompts).zip(logits.chunks_exact(self.vocabulary))
        {
            let prefix = Arc::new(prompt.own);
            for (place, mut stream) in request.streams.into_iter().enumerate() {
                let completion = &mut done[index][place];
                let last = draw(&mut row.to_vec(), sampling, &mut stream, completion);
                if !completion.has_ended && sampling.tokens_max > 1 {
                    let sequence = Sequence { prefix: Arc::clone(&prefix), own: Cache::new(layers) };
                    writers.push(Writer { request: index, sequence, stream, last, place });
                }
            }
        }
    }

    /// Appends tokens, at least one to each sequence; returns the logits behind the last of each, [sequences, vocabulary].
    fn extend(&self, sequences: &mut [&mut Sequence], tokens: &[&[u16]]) -> Vec<f32> {
        let architecture = self.network.architecture();
        let (d_model, head_dim) = (architecture.d_model, architecture.head_dim());
        let scale = 1.0 / (head_dim as f32).sqrt();
        let rows: usize = tokens.iter().map(|tokens| tokens.len()).sum();
        let matrix = |values: Vec<f32>, rows: usize| {
            Tensor::<2>::from_data(TensorData::new(values, [rows, d_model]), &self.device)
        };
        let ids: Vec<i64> = tokens.iter().flat_map(|tokens| tokens.iter().map(|token| i64::from(*token))).collect();
        let ids = Tensor::from_data(TensorData::new(ids, [rows]), &self.device);
        let mut stream = self.weights[0].clone().select(0, ids);
        for layer in 0..architecture.layers {
            let first = 1 + layer * LAYER_TENSORS;
            let [gain, query, key, value, output, ff_gain, gate, up, down] = self.weights[first..first + LAYER_TENSORS]
                .as_array()
                .expect("invariant: a layer has that many tensors")
                .clone();
            let x = ops::norm(stream.clone(), gain);
            let queries = floats(x.clone().matmul(query));
            let keys = floats(x.clone().matmul(key));
            let values = floats(x.matmul(value));
            let mut mixed = vec![0.0; rows * d_model];
            let mut row = 0;
            for (sequence, tokens) in sequences.iter_mut().zip(tokens) {
                for _ in *tokens {
                    let span = row * d_model..(row + 1) * d_model;
                    let [own_keys, own_values] = &mut sequence.own.layers[layer];
                    let own = own_keys.len() / d_model;
                    let position = sequence.prefix.positions + own;
                    let mut key = keys[span.clone()].to_vec();
                    self.network.rotation().turn(&mut key, position);
                    own_keys.extend(key);
                    own_values.extend(&values[span.clone()]);
                    let mut query = queries[span.clone()].to_vec();
                    self.network.rotation().turn(&mut query, position);
                    query.iter_mut().for_each(|value| *value *= scale);
                    let [prefix_keys, prefix_values] = &sequence.prefix.layers[layer];
                    let keys = [prefix_keys.as_slice(), own_keys.as_slice()];
                    let values = [prefix_values.as_slice(), own_values.as_slice()];
                    attend(&query, keys, values, head_dim, &mut mixed[span]);
                    row += 1;
                }
            }
            let middle = stream + matrix(mixed, rows).matmul(output);
            let x = ops::norm(middle.clone(), ff_gain);
            let hidden = ops::swiglu(x.clone().matmul(gate), x.matmul(up));
            stream = middle + hidden.matmul(down);
        }
        let mut end = 0;
        let mut last = Vec::with_capacity(tokens.len());
        for (sequence, tokens) in sequences.iter_mut().zip(tokens) {
            sequence.own.positions += tokens.len();
            end += tokens.len();
            last.push(end as i64 - 1);
        }
        let last = Tensor::from_data(TensorData::new(last, [tokens.len()]), &self.device);
        let gain = self.weights[self.weights.len() - 1].clone();
        floats(ops::norm(stream.select(0, last), gain).matmul(self.weights[0].clone().transpose()))
    }
}

/// Attention of one row over keys and values that lie in two parts; d_model numbers a position.
fn attend(query: &[f32], keys: [&[f32]; 2], values: [&[f32]; 2], head_dim: usize, mixed: &mut [f32]) {
    let d_model = query.len();
    let mut scores = Vec::with_capacity((keys[0].len() + keys[1].len()) / d_model);
    for head in (0..d_model).step_by(head_dim) {
        let span = head..head + head_dim;
        scores.clear();
        for part in keys {
            scores.extend(part.chunks_exact(d_model).map(|key| dot(&query[span.clone()], &key[span.clone()])));
        }
        let most = maximum(&scores);
        let inverse = 1.0 / exponentials(&mut scores, most);
        let mixed = &mut mixed[span.clone()];
        let rows = values.iter().flat_map(|part| part.chunks_exact(d_model));
        for (score, value) in scores.iter().zip(rows) {
            let share = score * inverse;
            mixed.iter_mut().zip(&value[span.clone()]).for_each(|(mixed, value)| *mixed += share * value);
        }
    }
}

/// Draws a token from the logits, which become probabilities, and appends it unless it is the end.
fn draw(row: &mut [f32], sampling: Sampling, stream: &mut ChaCha8Rng, completion: &mut Completion) -> u16 {
    let is_greedy = sampling.temperature <= 0.0;
    let temperature = if is_greedy { 1.0 } else { sampling.temperature as f32 };
    policy(row, temperature, EOS);
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
    completion.logprobs.push(row[token].max(f32::MIN_POSITIVE).ln());
    completion.entropies.push(objective::entropy(row));
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
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::{
        batch::{Batch, Encoded, Sample},
        layout::Layout,
        model::tensors,
        recipe::Architecture,
        vocabulary::Vocabulary,
    };

    const TINY: Architecture = Architecture { d_model: 32, layers: 2, heads: 2, ff: 48, context: 64 };

    fn stream(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed)
    }

    /// A random network whose logits differ enough to make draws interesting.
    fn setting() -> (Network, Vec<Tensor<2>>) {
        let layout = Layout::new(TINY, Vocabulary::default().size());
        let weights = layout.initialize(3).iter().map(|weight| weight * 3.0).collect::<Vec<_>>();
        (Network::new(TINY), tensors(&layout, &weights, &Device::flex()))
    }

    fn bytes(text: &str) -> Vec<u16> {
        text.bytes().map(u16::from).collect()
    }

    #[test]
    fn log_probabilities_are_those_that_training_computes() {
        let (network, weights) = setting();
        let decoder = Decoder::new(&network, &weights);
        let prompts = ["sort 3 1 2", "a", "another prompt that is longer"].map(bytes);
        let requests = prompts.iter().map(|prompt| Request { prompt, streams: (0..4).map(stream).collect() }).collect();
        let sampling = Sampling { temperature: 1.0, tokens_max: 12 };
        let drawn = decoder.complete(requests, sampling);
        let mut seen = 0;
        for (prompt, completions) in prompts.iter().zip(&drawn) {
            for completion in completions {
                // What is not text cannot be put into a sample; its tokens are checked nevertheless.
                let encoded = Encoded::drawn(0, prompt.clone(), completion.tokens.clone());
                let mut batch = Batch::default();
                batch.push(&encoded, TINY.context).expect("fits");
                let scores = network.score(&weights, &batch);
                for (loss, logprob) in scores.losses.iter().zip(&completion.logprobs) {
                    assert!((loss + logprob).abs() < 1e-3, "{loss} is not {logprob}");
                    seen += 1;
                }
            }
        }
        assert!(seen > 60, "{seen}");
    }

    #[test]
    fn tokens_are_drawn_as_often_as_the_policy_says() {
        let (network, weights) = setting();
        let decoder = Decoder::new(&network, &weights);
        let prompt = bytes("p");
        let mut batch = Batch::default();
        batch.push(&Encoded::new(&Sample::written(0, "p", ""), &Vocabulary::default()), TINY.context).expect("fits");
        let mut row = floats(network.logits(&weights, &batch));
        policy(&mut row, 0.7, EOS);
        let draws = 4_000;
        let requests = vec![Request { prompt: &prompt, streams: (0..draws).map(stream).collect() }];
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
        let (network, weights) = setting();
        let decoder = Decoder::new(&network, &weights);
        let (one, other) = (bytes("one prompt"), bytes("other"));
        let sampling = Sampling { temperature: 1.0, tokens_max: 9 };
        let alone = decoder.complete(vec![Request { prompt: &one, streams: vec![stream(5)] }], sampling);
        let together = decoder.complete(
            vec![
                Request { prompt: &other, streams: vec![stream(1), stream(2)] },
                Request { prompt: &one, streams: vec![stream(4), stream(5)] },
            ],
            sampling,
        );
        assert_eq!(alone[0][0].tokens, together[1][1].tokens);
        assert_ne!(together[1][0].tokens, together[1][1].tokens);
    }

    #[test]
    fn greedy_completions_end_with_the_context() {
        let (network, weights) = setting();
        let prompt = bytes("to the end");
        let requests = vec![Request { prompt: &prompt, streams: vec![stream(1)] }];
        let sampling = Sampling { temperature: 0.0, tokens_max: usize::MAX };
        let drawn = Decoder::new(&network, &weights).complete(requests, sampling);
        let completion = &drawn[0][0];
        assert!(completion.has_ended || completion.tokens.len() + prompt.len() + 2 == TINY.context, "{completion:?}");
    }
}
