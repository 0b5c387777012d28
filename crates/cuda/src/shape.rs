//! A network's shape, the layout of its weights, and batches.

/// A llama-architecture decoder with tied embeddings and no biases.
#[derive(Debug, Clone)]
pub struct Shape {
    pub d_model: usize,
    pub heads: usize,
    pub ff: usize,
    /// Number of tokens of the vocabulary.
    pub tokens: usize,
    /// Cosine and sine of each pair of a head at each position, [positions, head_dim / 2].
    pub angles: Vec<[f32; 2]>,
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
    pub embedding: usize,
    pub layers: Vec<LayerStarts>,
    pub output_norm: usize,
    /// Length of the vector.
    pub len: usize,
}

#[derive(Debug, Clone, Copy)]
pub struct LayerStarts {
    pub attention_norm: usize,
    /// [queries, keys, values; d]
    pub qkv: usize,
    pub attention_output: usize,
    pub ff_norm: usize,
    /// [gate, up; d]
    pub gate_up: usize,
    pub down: usize,
}

/// A batch of samples, one after another.
#[derive(Debug, Clone, Copy)]
pub struct Input<'a> {
    pub tokens: &'a [u16],
    /// Length of each sample.
    pub lengths: &'a [usize],
    /// Rows whose next token is supervised, and that token. A row occurs at most once.
    pub targets: &'a [(usize, u16)],
}

/// For each target, the loss in nats, and true if the target is the only most likely token.
pub type Scores = (Vec<f32>, Vec<bool>);
