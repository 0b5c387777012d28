//! The place of each weight in the flat parameter vector of checkpoints and exports. Matrices are
//! row-major [out, in], as in a GGUF file.

use std::ops::Range;

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use super::recipe::Architecture;

#[derive(Debug, Clone)]
pub struct LayerSpans {
    pub attention_norm: Range<usize>,
    /// Rows: query, key, value; each d_model rows.
    pub qkv: Range<usize>,
    pub attention_output: Range<usize>,
    pub ff_norm: Range<usize>,
    /// Rows: gate, up; each ff rows.
    pub gate_up: Range<usize>,
    pub down: Range<usize>,
}

/// One tensor that the optimizer updates, within the flat vector.
#[derive(Debug, Clone, Copy)]
pub struct Part {
    pub start: usize,
    /// Shape in the flat vector, [out, in] for a projection.
    pub rows: usize,
    pub columns: usize,
}

#[derive(Debug, Clone)]
pub struct Layout {
    pub architecture: Architecture,
    /// Number of tokens of the vocabulary.
    pub tokens: usize,
    /// Token embedding, also the output projection.
    pub embedding: Range<usize>,
    pub layers: Vec<LayerSpans>,
    pub output_norm: Range<usize>,
    /// Number of parameters.
    pub len: usize,
}

impl Layout {
    pub fn new(architecture: Architecture, tokens: usize) -> Self {
        let Architecture { d_model, layers, ff, .. } = architecture;
        let mut len = 0;

        let mut take = |size: usize| {
            let start = len;
            len += size;
            start..len
        };

        let embedding = take(tokens * d_model);
        let layers = (0..layers)
            .map(|_| LayerSpans {
                attention_norm: take(d_model),
                qkv: take(3 * d_model * d_model),
                attention_output: take(d_model * d_model),
                ff_norm: take(d_model),
                gate_up: take(2 * ff * d_model),
                down: take(d_model * ff),
            })
            .collect();

        let output_norm = take(d_model);
        Self { architecture, tokens, embedding, layers, output_norm, len }
    }

    /// The tensors, in order: the embedding; per layer attention norm, query, key, value, output,
    /// feed-forward norm, gate, up and down; the output norm.
    pub fn parts(&self) -> Vec<Part> {
        let Architecture { d_model, ff, .. } = self.architecture;
        let gain = |span: &Range<usize>| Part { start: span.start, rows: 1, columns: d_model };
        let matrix = |start: usize, rows: usize, columns: usize| Part { start, rows, columns };

        let mut parts = vec![matrix(self.embedding.start, self.tokens, d_model)];
        for layer in &self.layers {
            parts.push(gain(&layer.attention_norm));
            parts.extend((0..3).map(|index| {
                matrix(layer.qkv.start + index * d_model * d_model, d_model, d_model)
            }));
            parts.push(matrix(layer.attention_output.start, d_model, d_model));
            parts.push(gain(&layer.ff_norm));
            parts.extend(
                (0..2).map(|index| matrix(layer.gate_up.start + index * ff * d_model, ff, d_model)),
            );
            parts.push(matrix(layer.down.start, d_model, ff));
        }

        parts.push(gain(&self.output_norm));
        parts
    }

    /// Random weights: norm gains 1, matrices normal with variance in inverse proportion to their
    /// input width, and projections into the residual stream scaled down so that its variance does
    /// not grow with depth.
    pub fn initialize(&self, seed: u64) -> Vec<f32> {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let mut weights = vec![1.0; self.len];
        let Architecture { d_model, ff, .. } = self.architecture;

        let narrow = |width: usize| 1.0 / (width as f64).sqrt();
        // Two projections of each layer add to the stream.
        let residual = 1.0 / (2.0 * self.layers.len() as f64).sqrt();

        let mut fill = |span: &Range<usize>, deviation: f64| {
            for weight in &mut weights[span.clone()] {
                *weight = (deviation * normal(&mut rng)) as f32;
            }
        };

        fill(&self.embedding, 0.05);
        for layer in &self.layers {
            fill(&layer.qkv, narrow(d_model));
            fill(&layer.attention_output, narrow(d_model) * residual);
            fill(&layer.gate_up, narrow(d_model));
            fill(&layer.down, narrow(ff) * residual);
        }

        weights
    }
}

/// A uniform number in (0, 1].
pub fn uniform(rng: &mut ChaCha8Rng) -> f64 {
    ((rng.next_u64() >> 11) + 1) as f64 / (1u64 << 53) as f64
}

/// Shuffles items.
pub fn shuffle<T>(items: &mut [T], rng: &mut ChaCha8Rng) {
    for index in (1..items.len()).rev() {
        // `uniform` excludes 0 and includes 1, so 0 to `index` are equally likely.
        let other = ((1.0 - uniform(rng)) * (index + 1) as f64) as usize;
        items.swap(index, other.min(index));
    }
}

fn normal(rng: &mut ChaCha8Rng) -> f64 {
    (-2.0 * uniform(rng).ln()).sqrt() * (std::f64::consts::TAU * uniform(rng)).cos()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand_chacha::rand_core::SeedableRng;

    use super::*;

    #[test]
    fn all_orders_are_equally_likely() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut orders: BTreeMap<[u8; 3], u32> = BTreeMap::new();
        for _ in 0..6_000 {
            let mut items = [0, 1, 2];
            shuffle(&mut items, &mut rng);
            *orders.entry(items).or_default() += 1;
        }
        // 1,000 of each are expected, with a standard deviation of 29.
        assert_eq!(orders.len(), 6);
        assert!(orders.values().all(|count| (880..1_120).contains(count)), "{orders:?}");
    }

    #[test]
    fn spans_tile_the_vector() {
        let layout = Layout::new(Architecture::default(), 259);
        assert_eq!(layout.len, 259 * 128 + 4 * (4 * 128 * 128 + 3 * 128 * 384 + 2 * 128) + 128);
        assert_eq!(layout.output_norm.end, layout.len);
        assert_eq!(layout.initialize(1), layout.initialize(1));
        assert_ne!(layout.initialize(1), layout.initialize(2));
    }
}
