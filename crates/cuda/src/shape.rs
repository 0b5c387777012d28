//! A network's shape, the layout of its weights, and batches.

/// A llama-architecture decoder with tied embeddings and no biases.
#[derive(Debug, Clone)]
pub struct Shape {
    /// d: width of the residual stream.
    pub d_model: usize,
    /// Number of attention heads per layer.
    pub heads: usize,
    /// Width of the SwiGLU feed-forward.
    pub ff: usize,
    /// Number of tokens of the vocabulary.
    pub tokens: usize,
    /// Cosine and sine of each pair of a head at each position, [positions, head_dim / 2].
    pub angles: Vec<[f32; 2]>,
    /// Where each tensor begins in the flat vector.
    pub starts: Starts,
}

impl Shape {
    /// Tokens of the output projection, with padding.
    pub(super) fn vocabulary(&self) -> usize {
        self.tokens.next_multiple_of(64)
    }
}

/// The start of each tensor in the flat vector of weights. Matrices are row-major [out, in].
#[derive(Debug, Clone)]
pub struct Starts {
    /// The token embedding, [tokens; d], also the output projection.
    pub embedding: usize,
    /// The tensors of each layer, from the first.
    pub layers: Vec<LayerStarts>,
    /// Gains of the norm after the last layer, d values.
    pub output_norm: usize,
    /// Length of the vector.
    pub len: usize,
}

/// The start of each tensor of a layer.
#[derive(Debug, Clone, Copy)]
pub struct LayerStarts {
    /// Gains of the norm before attention, d values.
    pub attention_norm: usize,
    /// [queries, keys, values; d]
    pub qkv: usize,
    /// The projection of the heads' outputs, [d; d].
    pub attention_output: usize,
    /// Gains of the norm before the feed-forward, d values.
    pub ff_norm: usize,
    /// [gate, up; d]
    pub gate_up: usize,
    /// The projection out of the feed-forward, [d; ff].
    pub down: usize,
}

/// A batch of samples, one after another.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    /// The samples' tokens, one sample after another.
    pub tokens: &'a [u16],
    /// Length of each sample.
    pub lengths: &'a [usize],
    /// Rows whose next token is supervised, and that token. A row occurs at most once.
    pub targets: &'a [(usize, u16)],
}

/// For each target, the loss in nats, and true if the target is the only most likely token.
pub type Scores = (Vec<f32>, Vec<bool>);
