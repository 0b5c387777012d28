//! The sizes of a model that determine its memory, from the file's header.

use crate::Adapter;
use crate::gguf::{Header, Tensor};

/// Bytes of an element of a recurrent layer's state.
const STATE_ELEMENT_BYTES: u64 = 4;

/// Sizes of a model. What the header omits is 0; llama.cpp refuses such a file later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelShape {
    /// Weights of each layer, in bytes.
    pub(crate) layers: Vec<u64>,
    /// The part of them that is experts, of which a token uses a few, in bytes.
    pub(crate) experts: Vec<u64>,
    /// The embedding table, in bytes; it stays on the host when the model is on GPUs.
    pub(crate) embedding: u64,
    /// The output layer, in bytes; if it is tied to the embedding table, GPUs get a copy.
    pub(crate) output: u64,
    /// True if the output layer is tied to the embedding table.
    pub(crate) is_tied: bool,
    /// Keys and values of one token in each layer, in elements.
    pub(crate) kv: Vec<u64>,
    /// Lengths of a head's keys and values.
    pub(crate) head: [u64; 2],
    /// The state of one sequence in each layer, in bytes; 0 where the layer only attends.
    pub(crate) state: Vec<u64>,
    /// The context that the model was trained for, in tokens.
    pub(crate) context: u64,
    /// Tokens of the vocabulary.
    pub(crate) vocabulary: u64,
    /// The larger width of residual stream and attention, in elements.
    pub(crate) width: u64,
    /// Heads of a layer's attention.
    pub(crate) heads: u64,
    /// Width of the feed-forward layers active per token, in elements.
    pub(crate) hidden: u64,
}

/// What the recurrent layers of a model remember of one sequence, in bytes; 0 if it has none.
pub fn sequence_state_bytes(header: &Header) -> u64 {
    sum(&ModelShape::new(header).state)
}

impl ModelShape {
    pub(crate) fn new(header: &Header) -> Self {
        let numbers = |key: &str| header.numbers(&format!("{}.{key}", header.architecture));
        let number =
            |key: &str| numbers(key).and_then(|all| all.iter().copied().max()).unwrap_or(0);

        // A list has a number per layer; a single number applies to all.
        let of_layer = |key: &str, layer: usize| match numbers(key) {
            Some([one]) => Some(*one),
            Some(all) => all.get(layer).copied(),
            None => None,
        };

        // A header may claim any number of layers, but each of them has a tensor.
        let count =
            usize::try_from(number("block_count")).unwrap_or(usize::MAX).min(header.tensors.len());

        let embedding_length = number("embedding_length");
        let heads = number("attention.head_count");
        let head = embedding_length.checked_div(heads).unwrap_or(0);
        let length =
            |key: &str| numbers(key).map_or(head, |all| all.iter().copied().max().unwrap_or(0));
        let (keys, values) = (length("attention.key_length"), length("attention.value_length"));

        let parts = LayerParts::of(header, count);
        let kv = |layer: usize| {
            let heads = of_layer("attention.head_count_kv", layer)
                .or_else(|| of_layer("attention.head_count", layer));
            let is_used = !parts[layer].is_recurrent || parts[layer].attends;
            if is_used { product([heads.unwrap_or(0), keys.saturating_add(values)]) } else { 0 }
        };
        let state = state_elements(&number, heads);

        let mut shape = Self {
            kv: (0..count).map(kv).collect(),
            head: [keys, values],
            state: parts
                .iter()
                .map(
                    |part| {
                        if part.is_recurrent { product([state, STATE_ELEMENT_BYTES]) } else { 0 }
                    },
                )
                .collect(),
            context: number("context_length"),
            layers: vec![0; count],
            experts: vec![0; count],
            is_tied: true,
            vocabulary: number("vocab_size").max(header.vocabulary),
            width: embedding_length.max(product([heads, keys])).max(number("ssm.inner_size")),
            heads,
            hidden: number("feed_forward_length")
                .max(product([number("expert_used_count"), number("expert_feed_forward_length")])),
            ..Self::default()
        };

        header.tensors.iter().for_each(|tensor| shape.add(tensor));
        if shape.is_tied {
            shape.output = shape.output.saturating_add(shape.embedding);
        }
        shape
    }

    fn add(&mut self, tensor: &Tensor) {
        let layer = layer_of(tensor).map(|(layer, _)| layer);
        if let (Some(layer), true) = (layer, is_of_experts(tensor))
            && let Some(experts) = self.experts.get_mut(layer)
        {
            *experts = experts.saturating_add(tensor.bytes);
        }
        let part = match layer.and_then(|layer| self.layers.get_mut(layer)) {
            Some(layer) => layer,
            None if tensor.name == "token_embd.weight" => &mut self.embedding,
            None => &mut self.output,
        };
        *part = part.saturating_add(tensor.bytes);
        self.is_tied &= tensor.name != "output.weight";
    }

    /// The same model with its weights loaded already.
    pub(crate) fn without_weights(self) -> Self {
        let layers = vec![0; self.layers.len()];
        Self { layers, embedding: 0, output: 0, ..self }
    }

    /// Counts adapters as weights. A file that cannot be read counts nothing: it is refused where
    /// it is checked.
    pub(crate) fn add_adapters(&mut self, adapters: &[Adapter]) {
        for adapter in adapters {
            let bytes = std::fs::metadata(&adapter.path).map_or(0, |file| file.len());
            self.output = self.output.saturating_add(bytes);
        }
    }

    /// Weights if the model is on the host, mapped from the file.
    pub(crate) fn on_host(&self) -> u64 {
        let output =
            if self.is_tied { self.output.saturating_sub(self.embedding) } else { self.output };
        sum(&self.layers).saturating_add(output).saturating_add(self.embedding)
    }
}

/// The layer that a tensor belongs to, and its name there.
fn layer_of(tensor: &Tensor) -> Option<(usize, &str)> {
    let (layer, name) = tensor.name.strip_prefix("blk.")?.split_once('.')?;
    Some((layer.parse().ok()?, name))
}

/// Returns whether a tensor has the weights of experts, as the pattern that keeps them on the CPU
/// says.
fn is_of_experts(tensor: &Tensor) -> bool {
    let name = layer_of(tensor).map_or("", |(_, name)| name);
    ["ffn_up", "ffn_down", "ffn_gate", "ffn_gate_up"].into_iter().any(|part| {
        let kind = name.strip_prefix(part).and_then(|rest| rest.strip_suffix(".weight"));
        matches!(kind, Some("_exps" | "_chexps"))
    })
}

/// What a layer consists of, by its tensors.
#[derive(Clone, Copy, Default)]
struct LayerParts {
    is_recurrent: bool,
    /// True if it has keys of its own, in addition to recurrent parts.
    attends: bool,
}

impl LayerParts {
    fn of(header: &Header, count: usize) -> Vec<Self> {
        let mut all = vec![Self::default(); count];
        for (layer, name) in header.tensors.iter().filter_map(layer_of) {
            let Some(part) = all.get_mut(layer) else { continue };
            part.is_recurrent |= ["ssm_", "shortconv.", "time_mix_"]
                .into_iter()
                .any(|prefix| name.starts_with(prefix));
            part.attends |= name.starts_with("attn_k.");
        }
        all
    }
}

/// Elements of the state of one sequence in a recurrent layer, by the keys of its kind, as
/// llama.cpp counts them: what convolutions remember, and the state itself.
fn state_elements(number: &impl Fn(&str) -> u64, heads: u64) -> u64 {
    let width = number("embedding_length");
    let wkv = number("wkv.head_size");
    if wkv > 0 {
        let shifted = match number("token_shift_count") {
            0 => 2,
            count => count,
        };
        return product([width, shifted.saturating_add(wkv)]);
    }

    let short = number("shortconv.l_cache");
    if short > 0 {
        return product([width, short - 1]);
    }

    let convolved = number("ssm.conv_kernel").saturating_sub(1);
    let delta = number("kda.head_dim");
    if delta > 0 {
        let inner = product([heads, delta]);
        return sum(&[product([3, convolved, inner]), product([delta, inner])]);
    }

    let (inner, state) = (number("ssm.inner_size"), number("ssm.state_size"));
    let inputs = inner.saturating_add(product([2, number("ssm.group_count"), state]));
    sum(&[product([convolved, inputs]), product([state, inner])])
}

/// The sum, saturating.
pub(crate) fn sum(all: &[u64]) -> u64 {
    all.iter().copied().fold(0, u64::saturating_add)
}

/// The product, saturating.
pub(crate) fn product<const N: usize>(all: [u64; N]) -> u64 {
    all.into_iter().fold(1, u64::saturating_mul)
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_engine_testing::{Architecture, TinyModel};

    use crate::gguf::read;

    fn header(numbers: &[(&str, &[u64])], tensors: &[(&str, u64)]) -> Header {
        let tensor = |(name, bytes): &(&str, u64)| Tensor {
            name: (*name).to_owned(),
            bytes: *bytes,
            ..Tensor::default()
        };
        Header {
            architecture: "llama".to_owned(),
            numbers: numbers
                .iter()
                .map(|(key, all)| (format!("llama.{key}"), all.to_vec()))
                .collect(),
            vocabulary: 1000,
            tensors: tensors.iter().map(tensor).collect(),
            ..Header::default()
        }
    }

    #[test]
    fn sizes_are_read_from_a_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("million.gguf");
        TinyModel::MILLION.write(&path).unwrap();

        let shape = ModelShape::new(&read(&path).unwrap());

        // Width 128, 4 layers, 4 heads, hidden 384, vocabulary 259, 32-bit weights:
        // a layer has 2 norms, 4 squares and 3 of 128 x 384.
        let layer = 4 * (2 * 128 + 4 * 128 * 128 + 3 * 128 * 384);
        assert_eq!(shape.layers, [layer; 4]);
        assert_eq!(
            (shape.embedding, shape.output, shape.is_tied),
            (4 * 128 * 259, 4 * (128 * 259 + 128), false)
        );
        // A token has 128 keys and 128 values in each layer.
        assert_eq!(shape.kv, [256; 4]);
        assert_eq!((&shape.state[..], shape.context), (&[0; 4][..], 4096));
        assert_eq!((shape.vocabulary, shape.width, shape.hidden), (259, 128, 384));
        assert_eq!(shape.on_host(), 4 * layer + shape.output + shape.embedding);
    }

    #[test]
    fn a_tied_output_is_copied_to_the_gpu() {
        let tensors =
            [("token_embd.weight", 700), ("output_norm.weight", 5), ("blk.0.attn_q.weight", 30)];
        let tied = ModelShape::new(&header(&[("block_count", &[1])], &tensors));
        assert_eq!((tied.on_host(), tied.output), (735, 705));

        let own = [&tensors[..], &[("output.weight", 600)]].concat();
        let untied = ModelShape::new(&header(&[("block_count", &[1])], &own));
        assert_eq!((untied.on_host(), untied.output), (1335, 605));
    }

    #[test]
    fn kv_heads_may_be_fewer_or_wider_or_differ_by_layer() {
        let base: [(&str, &[u64]); 3] =
            [("block_count", &[3]), ("embedding_length", &[64]), ("attention.head_count", &[8])];
        let tensors = [("blk.0.x", 1), ("blk.1.x", 1), ("blk.2.x", 1)];
        let kv = |more: &[(&str, &[u64])]| {
            ModelShape::new(&header(&[&base[..], more].concat(), &tensors)).kv
        };

        assert_eq!(kv(&[]), [128; 3], "8 heads of 8, keys and values");
        assert_eq!(kv(&[("attention.head_count_kv", &[2])]), [32; 3]);
        assert_eq!(kv(&[("attention.head_count_kv", &[2, 0, 4])]), [32, 0, 64]);

        let wide: [(&str, &[u64]); 3] = [
            ("attention.head_count_kv", &[1]),
            ("attention.key_length", &[192]),
            ("attention.value_length", &[128]),
        ];
        assert_eq!(kv(&wide), [320; 3]);
        let shape = ModelShape::new(&header(&[&base[..], &wide].concat(), &tensors));
        assert_eq!(shape.width, 8 * 192);
    }

    #[test]
    fn recurrent_layers_have_a_state_and_no_keys() {
        let folder = tempfile::tempdir().unwrap();
        let shape = |architecture: Architecture| {
            let path = folder.path().join(architecture.name());
            architecture.write(&path).unwrap();
            ModelShape::new(&read(&path).unwrap())
        };

        // Two KV heads of 16, keys and values: 64 elements. A convolution over 3 tokens keeps two
        // of 64 elements, in 4 bytes.
        let lfm = shape(Architecture::Lfm2);
        assert_eq!((&lfm.kv[..], &lfm.state[..]), (&[0, 64, 0, 64][..], &[512, 0, 512, 0][..]));

        // Three tokens of 128 + 2 * 16 inputs, and 16 times 128 elements of state.
        let mamba = 4 * (3 * 160 + 16 * 128);
        let both = shape(Architecture::FalconH1);
        assert_eq!((&both.kv[..], &both.state[..]), (&[64; 4][..], &[mamba; 4][..]));
        let pure = shape(Architecture::Mamba2);
        assert_eq!((&pure.kv[..], &pure.state[..]), (&[0; 4][..], &[mamba; 4][..]));

        // Two shifted tokens of 64, and 64 elements for each of 64.
        let rwkv = shape(Architecture::Rwkv7);
        assert_eq!((&rwkv.kv[..], &rwkv.state[..]), (&[0; 4][..], &[4 * 64 * 66; 4][..]));

        // Experts: gate, up and down of 64 by 32, four of them, in 4 bytes.
        let delta = shape(Architecture::Qwen3Next);
        assert_eq!((&delta.kv[..], &delta.experts[..]), (&[0, 64, 0, 64][..], &[98_304; 4][..]));
        assert_eq!(delta.state[..2], [4 * (3 * 128 + 16 * 64), 0]);
    }

    #[test]
    fn only_the_experts_used_per_token_count() {
        let of = |numbers: &[(&str, &[u64])]| ModelShape::new(&header(numbers, &[])).hidden;
        assert_eq!(of(&[("feed_forward_length", &[100])]), 100);
        assert_eq!(of(&[("expert_used_count", &[8]), ("expert_feed_forward_length", &[30])]), 240);
    }

    #[test]
    fn absurd_claims_of_a_header_cost_nothing() {
        let shape = ModelShape::new(&header(
            &[("block_count", &[u64::MAX]), ("embedding_length", &[u64::MAX])],
            &[],
        ));
        assert_eq!((shape.layers.len(), shape.kv.len()), (0, 0));
    }
}
