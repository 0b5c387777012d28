//! Draws completions, many at a time: a decoder with a KV cache of its own, so that training can
//! try out its model without exporting it. Completions of one prompt share its part of the cache.

use std::sync::Arc;

use prime_kernels::rows;
use rand_chacha::ChaCha8Rng;

use super::{
    TrainError,
    layout::uniform,
    model_view::ModelView,
    network::{Matrix, NORM_EPSILON, Rotation},
    recipe::Architecture,
    sampler::{Answer, Completion, Request, Sampler, Sampling, Values},
    vocabulary::{BOS, EOS},
};

/// Maximum number of rows of a pass: larger products gain nothing, and activations leave the
/// processor's caches.
const ROWS_MAX: usize = 512;

impl Sampler for Decoder<'_> {
    fn complete(
        &self,
        requests: Vec<Request<'_>>,
        sampling: Sampling,
    ) -> Result<Vec<Vec<Completion>>, TrainError> {
        Ok(self.complete(requests, sampling))
    }
}

/// Keys and values of consecutive positions, by layer: [positions, d_model].
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

/// A sequence that is being written: a prompt, which other sequences share, and its continuation.
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

/// A completion that is being written.
struct Writer {
    /// Index of its request.
    request: usize,
    /// Index among the request's completions.
    place: usize,
    sequence: Sequence,
    stream: ChaCha8Rng,
    /// Tokens that are not in the cache yet: the last one, and a value that was appended to it.
    unread: Vec<u16>,
}

impl<'a> Decoder<'a> {
    pub fn new(model: ModelView<'a>) -> Self {
        Self {
            rotation: Rotation::new(model.architecture.context, model.architecture.head_dim()),
            model,
        }
    }

    /// [`Sampler::complete`], which cannot fail for this sampler.
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

        // Prompts are read in passes of up to ROWS_MAX rows; a longer one is a pass of its own.
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

        // Each round draws one token of every completion that continues.
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
                    writer.unread = write_token(
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
                !completion.has_ended && !completion.query_failed && !is_full
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
            // The prompt's own cache becomes the prefix of its completions.
            let prefix = Arc::new(prompt.own);
            for (place, mut stream) in request.streams.into_iter().enumerate() {
                let completion = &mut done[index][place];
                let unread = write_token(
                    &mut row.to_vec(),
                    sampling,
                    &mut stream,
                    request.values,
                    completion,
                );

                // The context has room for eos after the last token, as in the rounds above.
                let fits = prefix.positions + unread.len() + 1 < self.model.architecture.context;
                if !completion.has_ended
                    && !completion.query_failed
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

    /// Appends tokens, at least one to each sequence, and returns the logits after each sequence's
    /// last token, [sequences, vocabulary].
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
                    // Counted by the layer's keys, as `own.positions` advances after the pass.
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

        // Logits are needed only after each sequence's last token.
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

/// Draws a token and appends it, with the value that it asks for. Returns the tokens that the
/// network has yet to read.
fn write_token(
    row: &mut [f32],
    sampling: Sampling,
    stream: &mut ChaCha8Rng,
    values: Option<&dyn Values>,
    completion: &mut Completion,
) -> Vec<u16> {
    let mut unread = vec![draw(row, sampling, stream, completion)];

    // A completion that has ended looks nothing up.
    if let Some(values) = values.filter(|_| !completion.has_ended) {
        match values.answer(&completion.tokens) {
            Answer::NotAsked => {}
            Answer::Value(tokens) => {
                completion.tokens.extend(&tokens);
                unread.extend(tokens);
            }
            Answer::Nothing => completion.query_failed = true,
        }
    }
    unread
}

/// Draws a token from the logits, which become probabilities, and appends it unless it is eos.
fn draw(
    row: &mut [f32],
    sampling: Sampling,
    stream: &mut ChaCha8Rng,
    completion: &mut Completion,
) -> u16 {
    let is_greedy = sampling.temperature <= 0.0;
    let temperature = if is_greedy { 1.0 } else { sampling.temperature as f32 };

    row.iter_mut().for_each(|logit| *logit /= temperature);
    // The entropy below needs the logits beside the probabilities.
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
