//! The decoder: forward and backward passes over a batch, written out by hand (llama.cpp's arch `llama`: RMSNorm,
//! RoPE on interleaved pairs, SwiGLU, tied embeddings, no biases).
//!
//! It works in buffers that it keeps between steps, computes what only supervised positions need (the last layer
//! after attention, the logits) at those positions alone, and starts no thread.

use pulp::Arch;

use super::{
    attention,
    batch::Batch,
    kernels::{self, Rotation},
    layout::{LayerSpans, Layout},
    matmul::{View, ViewMut, add_product, product},
    recipe::{Architecture, VOCABULARY},
};

/// What a layer's backward pass needs of its forward pass.
#[derive(Default)]
struct LayerTrace {
    input: Vec<f32>,
    normed: Vec<f32>,
    inverse: Vec<f32>,
    qkv: Vec<f32>,
    probabilities: Vec<f32>,
    /// Attention's output, at the rows that the rest of the layer works on.
    mixed: Vec<f32>,
    middle: Vec<f32>,
    middle_normed: Vec<f32>,
    middle_inverse: Vec<f32>,
    gate_up: Vec<f32>,
    hidden: Vec<f32>,
}

/// A network without its weights: shapes, tables and buffers. One per thread.
pub struct Network {
    arch: Arch,
    layout: Layout,
    rotation: Rotation,
    layers: Vec<LayerTrace>,
    output: Vec<f32>,
    output_normed: Vec<f32>,
    output_inverse: Vec<f32>,
    logits: Vec<f32>,
    gradients: Gradients,
}

#[derive(Default)]
struct Gradients {
    stream: Vec<f32>,
    rows: Vec<f32>,
    normed: Vec<f32>,
    mixed: Vec<f32>,
    hidden: Vec<f32>,
    qkv: Vec<f32>,
    scores: Vec<f32>,
}

/// The loss of each target, in the batch's order, and whether its token was the most likely one.
pub struct Scores {
    pub losses: Vec<f32>,
    pub hits: Vec<bool>,
}

/// Sets the length; what the buffer held is of no interest.
fn resize(buffer: &mut Vec<f32>, len: usize) {
    if buffer.len() < len {
        buffer.resize(len, 0.0);
    }
    buffer.truncate(len);
}

fn resize_zeroed(buffer: &mut Vec<f32>, len: usize) {
    buffer.clear();
    buffer.resize(len, 0.0);
}

impl Network {
    pub fn new(layout: Layout) -> Self {
        let Architecture {
            context, layers, ..
        } = layout.architecture;
        Self {
            arch: Arch::new(),
            rotation: Rotation::new(context, layout.architecture.head_dim()),
            layers: (0..layers).map(|_| LayerTrace::default()).collect(),
            layout,
            output: Vec::new(),
            output_normed: Vec::new(),
            output_inverse: Vec::new(),
            logits: Vec::new(),
            gradients: Gradients::default(),
        }
    }

    /// Losses and hits at the batch's targets.
    pub fn score(&mut self, weights: &[f32], batch: &Batch) -> Scores {
        self.forward(weights, batch);
        self.grade(batch, 0.0)
    }

    /// As `score`, and adds `weight` times the gradient of the summed losses to `gradient`.
    pub fn learn(
        &mut self,
        weights: &[f32],
        batch: &Batch,
        weight: f32,
        gradient: &mut [f32],
    ) -> Scores {
        self.forward(weights, batch);
        let scores = self.grade(batch, weight);
        self.backward(weights, batch, gradient);
        scores
    }

    /// Logits [targets, vocabulary] at the batch's targets.
    #[cfg(all(test, feature = "llama"))]
    pub fn logits(&mut self, weights: &[f32], batch: &Batch) -> &[f32] {
        self.forward(weights, batch);
        &self.logits
    }

    /// Turns the logits into their gradients.
    fn grade(&mut self, batch: &Batch, weight: f32) -> Scores {
        let arch = self.arch;
        let rows = self.logits.chunks_exact_mut(VOCABULARY).zip(&batch.targets);
        let (losses, hits) = rows
            .map(|(row, target)| {
                kernels::cross_entropy(arch, row, usize::from(target.token), weight)
            })
            .unzip();
        Scores { losses, hits }
    }

    fn forward(&mut self, weights: &[f32], batch: &Batch) {
        let arch = self.arch;
        let Architecture {
            d_model, heads, ff, ..
        } = self.layout.architecture;
        let tokens = batch.inputs.len();
        let embedding = &weights[self.layout.embedding.clone()];
        let mut stream = std::mem::take(&mut self.layers[0].input);
        resize(&mut stream, tokens * d_model);
        for (row, &token) in stream.chunks_exact_mut(d_model).zip(&batch.inputs) {
            row.copy_from_slice(&embedding[usize::from(token) * d_model..][..d_model]);
        }
        self.layers[0].input = stream;
        let last = self.layers.len() - 1;
        for index in 0..=last {
            let (trace, rest) = self.layers[index..]
                .split_first_mut()
                .expect("invariant: the layer exists");
            let spans = &self.layout.layers[index];
            resize(&mut trace.normed, tokens * d_model);
            resize(&mut trace.inverse, tokens);
            resize(&mut trace.qkv, tokens * 3 * d_model);
            kernels::rms_norm(
                arch,
                &trace.input,
                &weights[spans.attention_norm.clone()],
                &mut trace.normed,
                &mut trace.inverse,
            );
            product(
                ViewMut::new(&mut trace.qkv, tokens, 3 * d_model),
                View::new(&trace.normed, tokens, d_model),
                View::new(&weights[spans.qkv.clone()], 3 * d_model, d_model).transposed(),
            );
            rotate(&self.rotation, arch, &mut trace.qkv, batch, d_model, 1.0);
            let mixed = &mut trace.mixed;
            resize(mixed, tokens * d_model);
            attention::forward(
                arch,
                batch,
                d_model,
                heads,
                &trace.qkv,
                &mut trace.probabilities,
                mixed,
            );
            if index == last {
                gather(mixed, batch, d_model);
                resize(&mut trace.middle, batch.targets.len() * d_model);
                for (row, target) in trace.middle.chunks_exact_mut(d_model).zip(&batch.targets) {
                    row.copy_from_slice(&trace.input[target.row * d_model..][..d_model]);
                }
            } else {
                trace.middle.clone_from(&trace.input);
            }
            let rows = trace.middle.len() / d_model;
            add_product(
                ViewMut::new(&mut trace.middle, rows, d_model),
                View::new(&trace.mixed, rows, d_model),
                View::new(&weights[spans.attention_output.clone()], d_model, d_model).transposed(),
            );
            resize(&mut trace.middle_normed, rows * d_model);
            resize(&mut trace.middle_inverse, rows);
            resize(&mut trace.gate_up, rows * 2 * ff);
            resize(&mut trace.hidden, rows * ff);
            kernels::rms_norm(
                arch,
                &trace.middle,
                &weights[spans.ff_norm.clone()],
                &mut trace.middle_normed,
                &mut trace.middle_inverse,
            );
            product(
                ViewMut::new(&mut trace.gate_up, rows, 2 * ff),
                View::new(&trace.middle_normed, rows, d_model),
                View::new(&weights[spans.gate_up.clone()], 2 * ff, d_model).transposed(),
            );
            kernels::swiglu(arch, &trace.gate_up, &mut trace.hidden, ff);
            let output = rest
                .first_mut()
                .map_or(&mut self.output, |next| &mut next.input);
            output.clone_from(&trace.middle);
            add_product(
                ViewMut::new(output, rows, d_model),
                View::new(&trace.hidden, rows, ff),
                View::new(&weights[spans.down.clone()], d_model, ff).transposed(),
            );
        }
        let rows = batch.targets.len();
        resize(&mut self.output_normed, rows * d_model);
        resize(&mut self.output_inverse, rows);
        resize(&mut self.logits, rows * VOCABULARY);
        kernels::rms_norm(
            arch,
            &self.output,
            &weights[self.layout.output_norm.clone()],
            &mut self.output_normed,
            &mut self.output_inverse,
        );
        product(
            ViewMut::new(&mut self.logits, rows, VOCABULARY),
            View::new(&self.output_normed, rows, d_model),
            View::new(embedding, VOCABULARY, d_model).transposed(),
        );
    }

    fn backward(&mut self, weights: &[f32], batch: &Batch, gradient: &mut [f32]) {
        let arch = self.arch;
        let Architecture { d_model, heads, .. } = self.layout.architecture;
        let tokens = batch.inputs.len();
        let rows = batch.targets.len();
        let embedding = self.layout.embedding.clone();
        let work = &mut self.gradients;
        add_product(
            ViewMut::new(&mut gradient[embedding.clone()], VOCABULARY, d_model),
            View::new(&self.logits, rows, VOCABULARY).transposed(),
            View::new(&self.output_normed, rows, d_model),
        );
        resize(&mut work.normed, rows * d_model);
        product(
            ViewMut::new(&mut work.normed, rows, d_model),
            View::new(&self.logits, rows, VOCABULARY),
            View::new(&weights[embedding.clone()], VOCABULARY, d_model),
        );
        resize_zeroed(&mut work.rows, rows * d_model);
        let norm = self.layout.output_norm.clone();
        kernels::rms_norm_gradient(
            arch,
            &self.output,
            &weights[norm.clone()],
            &self.output_inverse,
            &work.normed,
            &mut work.rows,
            &mut gradient[norm],
        );
        let last = self.layers.len() - 1;
        for index in (0..=last).rev() {
            let trace = &mut self.layers[index];
            let spans = &self.layout.layers[index];
            if index == last {
                let buffers = FeedForwardBuffers {
                    hidden: &mut work.hidden,
                    normed: &mut work.normed,
                };
                feed_forward_gradient(
                    arch,
                    trace,
                    spans,
                    weights,
                    &mut work.rows,
                    buffers,
                    gradient,
                );
                output_projection_gradient(
                    trace,
                    spans,
                    weights,
                    &work.rows,
                    &mut work.normed,
                    d_model,
                    gradient,
                );
                scatter(&work.rows, &mut work.stream, batch, d_model, tokens);
                scatter(&work.normed, &mut work.mixed, batch, d_model, tokens);
            } else {
                let buffers = FeedForwardBuffers {
                    hidden: &mut work.hidden,
                    normed: &mut work.normed,
                };
                feed_forward_gradient(
                    arch,
                    trace,
                    spans,
                    weights,
                    &mut work.stream,
                    buffers,
                    gradient,
                );
                output_projection_gradient(
                    trace,
                    spans,
                    weights,
                    &work.stream,
                    &mut work.mixed,
                    d_model,
                    gradient,
                );
            }
            resize_zeroed(&mut work.qkv, tokens * 3 * d_model);
            attention::backward(
                arch,
                batch,
                d_model,
                heads,
                &trace.qkv,
                &trace.probabilities,
                &work.mixed,
                &mut work.qkv,
                &mut work.scores,
            );
            rotate(&self.rotation, arch, &mut work.qkv, batch, d_model, -1.0);
            add_product(
                ViewMut::new(&mut gradient[spans.qkv.clone()], 3 * d_model, d_model),
                View::new(&work.qkv, tokens, 3 * d_model).transposed(),
                View::new(&trace.normed, tokens, d_model),
            );
            resize(&mut work.normed, tokens * d_model);
            product(
                ViewMut::new(&mut work.normed, tokens, d_model),
                View::new(&work.qkv, tokens, 3 * d_model),
                View::new(&weights[spans.qkv.clone()], 3 * d_model, d_model),
            );
            kernels::rms_norm_gradient(
                arch,
                &trace.input,
                &weights[spans.attention_norm.clone()],
                &trace.inverse,
                &work.normed,
                &mut work.stream,
                &mut gradient[spans.attention_norm.clone()],
            );
        }
        let gradient = &mut gradient[embedding];
        for (row, &token) in work.stream.chunks_exact(d_model).zip(&batch.inputs) {
            kernels::add(
                arch,
                &mut gradient[usize::from(token) * d_model..][..d_model],
                row,
            );
        }
    }
}

struct FeedForwardBuffers<'a> {
    hidden: &'a mut Vec<f32>,
    normed: &'a mut Vec<f32>,
}

/// `stream` is the gradient of the layer's output and becomes that of its middle; consumes `trace.gate_up`.
fn feed_forward_gradient(
    arch: Arch,
    trace: &mut LayerTrace,
    spans: &LayerSpans,
    weights: &[f32],
    stream: &mut [f32],
    buffers: FeedForwardBuffers<'_>,
    gradient: &mut [f32],
) {
    let d_model = spans.ff_norm.len();
    let ff = spans.down.len() / d_model;
    let rows = stream.len() / d_model;
    resize(buffers.hidden, rows * ff);
    product(
        ViewMut::new(buffers.hidden, rows, ff),
        View::new(stream, rows, d_model),
        View::new(&weights[spans.down.clone()], d_model, ff),
    );
    add_product(
        ViewMut::new(&mut gradient[spans.down.clone()], d_model, ff),
        View::new(stream, rows, d_model).transposed(),
        View::new(&trace.hidden, rows, ff),
    );
    kernels::swiglu_gradient(arch, &mut trace.gate_up, buffers.hidden, ff);
    add_product(
        ViewMut::new(&mut gradient[spans.gate_up.clone()], 2 * ff, d_model),
        View::new(&trace.gate_up, rows, 2 * ff).transposed(),
        View::new(&trace.middle_normed, rows, d_model),
    );
    resize(buffers.normed, rows * d_model);
    product(
        ViewMut::new(buffers.normed, rows, d_model),
        View::new(&trace.gate_up, rows, 2 * ff),
        View::new(&weights[spans.gate_up.clone()], 2 * ff, d_model),
    );
    kernels::rms_norm_gradient(
        arch,
        &trace.middle,
        &weights[spans.ff_norm.clone()],
        &trace.middle_inverse,
        buffers.normed,
        stream,
        &mut gradient[spans.ff_norm.clone()],
    );
}

/// `stream` is the gradient of the layer's middle; `mixed` becomes that of attention's output.
fn output_projection_gradient(
    trace: &LayerTrace,
    spans: &LayerSpans,
    weights: &[f32],
    stream: &[f32],
    mixed: &mut Vec<f32>,
    d_model: usize,
    gradient: &mut [f32],
) {
    let rows = stream.len() / d_model;
    add_product(
        ViewMut::new(
            &mut gradient[spans.attention_output.clone()],
            d_model,
            d_model,
        ),
        View::new(stream, rows, d_model).transposed(),
        View::new(&trace.mixed, rows, d_model),
    );
    resize(mixed, rows * d_model);
    product(
        ViewMut::new(mixed, rows, d_model),
        View::new(stream, rows, d_model),
        View::new(&weights[spans.attention_output.clone()], d_model, d_model),
    );
}

/// Rotates queries and keys; positions start at 0 in every sample.
fn rotate(
    rotation: &Rotation,
    arch: Arch,
    qkv: &mut [f32],
    batch: &Batch,
    d_model: usize,
    direction: f32,
) {
    for sequence in &batch.sequences {
        let rows = qkv[sequence.rows.start * 3 * d_model..sequence.rows.end * 3 * d_model]
            .chunks_exact_mut(3 * d_model);
        for (position, row) in rows.enumerate() {
            rotation.apply(arch, &mut row[..2 * d_model], position, direction);
        }
    }
}

/// Keeps the target rows only; targets are in ascending order, so rows move to the front in place.
fn gather(rows: &mut Vec<f32>, batch: &Batch, d_model: usize) {
    for (to, target) in batch.targets.iter().enumerate() {
        rows.copy_within(
            target.row * d_model..(target.row + 1) * d_model,
            to * d_model,
        );
    }
    rows.truncate(batch.targets.len() * d_model);
}

/// The opposite of `gather`, with zeros elsewhere.
fn scatter(from: &[f32], to: &mut Vec<f32>, batch: &Batch, d_model: usize, tokens: usize) {
    resize_zeroed(to, tokens * d_model);
    for (row, target) in from.chunks_exact(d_model).zip(&batch.targets) {
        to[target.row * d_model..(target.row + 1) * d_model].copy_from_slice(row);
    }
}
