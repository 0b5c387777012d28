//! The sizes of a model that determine its memory, from the file's header.

use crate::Adapter;
use crate::gguf::{Header, Tensor};

/// Bytes of an element of the KV pool: llama.cpp's default of 16 bits.
const KV_ELEMENT_BYTES: u64 = 2;

/// Sizes of a model. What the header omits is 0; llama.cpp refuses such a file later.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct ModelShape {
    /// Weights of each layer, in bytes.
    pub(crate) layers: Vec<u64>,
    /// The embedding table, in bytes; it stays on the host when the model is on GPUs.
    pub(crate) embedding: u64,
    /// The output layer, in bytes; if it is tied to the embedding table, GPUs get a copy.
    pub(crate) output: u64,
    /// Whether the output layer is tied to the embedding table.
    pub(crate) is_tied: bool,
    /// Keys and values of one token in each layer, in bytes.
    pub(crate) kv: Vec<u64>,
    /// Tokens of the vocabulary.
    pub(crate) vocabulary: u64,
    /// The larger width of residual stream and attention, in elements.
    pub(crate) width: u64,
    /// Heads of a layer's attention.
    pub(crate) heads: u64,
    /// Width of the feed-forward layers active per token, in elements.
    pub(crate) hidden: u64,
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

        let kv = (0..count).map(|layer| {
            let heads = of_layer("attention.head_count_kv", layer)
                .or_else(|| of_layer("attention.head_count", layer));
            product([heads.unwrap_or(0), keys.saturating_add(values), KV_ELEMENT_BYTES])
        });

        let mut shape = Self {
            kv: kv.collect(),
            layers: vec![0; count],
            is_tied: true,
            vocabulary: number("vocab_size").max(header.vocabulary),
            width: embedding_length.max(product([heads, keys])),
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
        let layer = tensor
            .name
            .strip_prefix("blk.")
            .and_then(|rest| rest.split('.').next()?.parse::<usize>().ok());
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

    /// Weights on GPUs if the model is there.
    pub(crate) fn on_gpus(&self) -> u64 {
        sum(&self.layers).saturating_add(self.output)
    }
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
    use prime_engine_testing::TinyModel;

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
        // A token has 128 keys and 128 values of two bytes in each layer.
        assert_eq!(shape.kv, [512; 4]);
        assert_eq!((shape.vocabulary, shape.width, shape.hidden), (259, 128, 384));
        assert_eq!(shape.on_host() - shape.on_gpus(), shape.embedding);
    }

    #[test]
    fn a_tied_output_is_copied_to_the_gpu() {
        let tensors =
            [("token_embd.weight", 700), ("output_norm.weight", 5), ("blk.0.attn_q.weight", 30)];
        let tied = ModelShape::new(&header(&[("block_count", &[1])], &tensors));
        assert_eq!((tied.on_host(), tied.on_gpus()), (735, 735));

        let own = [&tensors[..], &[("output.weight", 600)]].concat();
        let untied = ModelShape::new(&header(&[("block_count", &[1])], &own));
        assert_eq!((untied.on_host(), untied.on_gpus()), (1335, 635));
    }

    #[test]
    fn kv_heads_may_be_fewer_or_wider_or_differ_by_layer() {
        let base: [(&str, &[u64]); 3] =
            [("block_count", &[3]), ("embedding_length", &[64]), ("attention.head_count", &[8])];
        let tensors = [("blk.0.x", 1), ("blk.1.x", 1), ("blk.2.x", 1)];
        let kv = |more: &[(&str, &[u64])]| {
            ModelShape::new(&header(&[&base[..], more].concat(), &tensors)).kv
        };

        assert_eq!(kv(&[]), [256; 3], "8 heads of 8, keys and values, 2 bytes");
        assert_eq!(kv(&[("attention.head_count_kv", &[2])]), [64; 3]);
        assert_eq!(kv(&[("attention.head_count_kv", &[2, 0, 4])]), [64, 0, 128]);

        let wide: [(&str, &[u64]); 3] = [
            ("attention.head_count_kv", &[1]),
            ("attention.key_length", &[192]),
            ("attention.value_length", &[128]),
        ];
        assert_eq!(kv(&wide), [640; 3]);
        let shape = ModelShape::new(&header(&[&base[..], &wide].concat(), &tensors));
        assert_eq!(shape.width, 8 * 192);
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
