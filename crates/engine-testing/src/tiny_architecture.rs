//! Tiny models with random weights of architectures whose sequences cannot be rolled back token by
//! token: with recurrent layers, or with a sliding window.

use std::io;
use std::path::Path;

use super::gguf_file::{Fill, NewTensor, VOCABULARY, Value, byte_tokenizer, write_file};

/// An architecture of llama.cpp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Architecture {
    /// LFM2: short convolutions, and attention in every other layer.
    Lfm2,
    /// Granite 4: Mamba 2, and attention in every other layer.
    GraniteHybrid,
    /// Mamba 2 alone.
    Mamba2,
    /// Falcon-H1: Mamba 2 and attention side by side in every layer.
    FalconH1,
    /// Qwen3-Next: gated delta nets, attention in every other layer, experts.
    Qwen3Next,
    /// RWKV 7.
    Rwkv7,
    /// Gemma 3: attention over a window of 32 tokens in every other layer.
    Gemma3,
}

/// Width of the residual stream.
const WIDTH: u32 = 64;
const LAYERS: u32 = 4;
const HEADS: u32 = 4;
const KV_HEADS: u32 = 2;
/// Width of an attention head.
const HEAD: u32 = 16;
/// Width of the feed-forward part.
const HIDDEN: u32 = 96;
/// Width of a Mamba 2 layer: llama.cpp supports twice the residual stream only.
const INNER: u32 = 128;
const STATE: u32 = 16;
/// Heads of a Mamba 2 layer.
const STATE_HEADS: u32 = 8;
const CONVOLUTION: u32 = 4;
const EXPERTS: u32 = 4;
const EXPERT_HIDDEN: u32 = 32;
/// Width of RWKV's heads: llama.cpp's kernel for the CPU computes nothing shorter.
const RWKV_HEAD: u32 = 64;
/// Rank of RWKV's small matrices.
const RANK: u32 = 8;
/// Tokens that Gemma 3's layers with a window attend to.
pub const WINDOW: u32 = 32;

impl Architecture {
    /// All of them.
    pub const ALL: [Self; 7] = [
        Self::Lfm2,
        Self::GraniteHybrid,
        Self::Mamba2,
        Self::FalconH1,
        Self::Qwen3Next,
        Self::Rwkv7,
        Self::Gemma3,
    ];

    /// llama.cpp's name.
    pub fn name(self) -> &'static str {
        match self {
            Self::Lfm2 => "lfm2",
            Self::GraniteHybrid => "granitehybrid",
            Self::Mamba2 => "mamba2",
            Self::FalconH1 => "falcon-h1",
            Self::Qwen3Next => "qwen3next",
            Self::Rwkv7 => "rwkv7",
            Self::Gemma3 => "gemma3",
        }
    }

    /// Writes a model of about a hundred thousand parameters as a GGUF file.
    ///
    /// # Errors
    /// Those of creating and writing the file.
    pub fn write(self, path: &Path) -> io::Result<()> {
        let mut tensors = Tensors(Vec::new());
        tensors.of_model(self);
        write_file(path, &self.metadata(), &tensors.0, 1)
    }

    /// True if a layer is recurrent instead of attending.
    fn is_recurrent(self, layer: u32) -> bool {
        match self {
            Self::Mamba2 | Self::Rwkv7 => true,
            Self::Lfm2 | Self::GraniteHybrid | Self::Qwen3Next => layer.is_multiple_of(2),
            Self::FalconH1 | Self::Gemma3 => false,
        }
    }

    fn metadata(self) -> Vec<(String, Value)> {
        let mut all = vec![
            ("general.architecture".to_owned(), Value::Text(self.name().to_owned())),
            ("general.name".to_owned(), Value::Text(format!("tiny random {}", self.name()))),
        ];
        let mut add = |key: &str, value| all.push((format!("{}.{key}", self.name()), value));
        let heads = |layer| if self.is_recurrent(layer) { 0 } else { KV_HEADS.cast_signed() };

        add("context_length", Value::Number(4096));
        add("embedding_length", Value::Number(WIDTH));
        add("block_count", Value::Number(LAYERS));
        add("vocab_size", Value::Number(VOCABULARY));
        add("feed_forward_length", Value::Number(if self == Self::Mamba2 { 0 } else { HIDDEN }));
        add("attention.layer_norm_rms_epsilon", Value::Real(1e-5));
        add("attention.layer_norm_epsilon", Value::Real(1e-5));

        match self {
            Self::Mamba2 | Self::Rwkv7 => add("attention.head_count", Value::Number(0)),
            Self::Lfm2 | Self::GraniteHybrid => {
                add("attention.head_count", Value::Number(HEADS));
                let heads = (0..LAYERS).map(heads).collect();
                add("attention.head_count_kv", Value::Numbers(heads));
                add("rope.dimension_count", Value::Number(HEAD));
            }
            Self::FalconH1 | Self::Qwen3Next | Self::Gemma3 => {
                add("attention.head_count", Value::Number(HEADS));
                add("attention.head_count_kv", Value::Number(KV_HEADS));
                add("attention.key_length", Value::Number(HEAD));
                add("attention.value_length", Value::Number(HEAD));
                add("rope.dimension_count", Value::Number(HEAD));
            }
        }

        match self {
            Self::Lfm2 => add("shortconv.l_cache", Value::Number(3)),
            Self::GraniteHybrid | Self::Mamba2 | Self::FalconH1 => {
                add("ssm.conv_kernel", Value::Number(CONVOLUTION));
                add("ssm.inner_size", Value::Number(INNER));
                add("ssm.state_size", Value::Number(STATE));
                add("ssm.time_step_rank", Value::Number(STATE_HEADS));
                add("ssm.group_count", Value::Number(1));
            }
            Self::Qwen3Next => {
                add("ssm.conv_kernel", Value::Number(CONVOLUTION));
                add("ssm.inner_size", Value::Number(HEADS * STATE));
                add("ssm.state_size", Value::Number(STATE));
                add("ssm.time_step_rank", Value::Number(HEADS));
                add("ssm.group_count", Value::Number(KV_HEADS));
                add("full_attention_interval", Value::Number(2));
                add("expert_count", Value::Number(EXPERTS));
                add("expert_used_count", Value::Number(2));
                add("expert_feed_forward_length", Value::Number(EXPERT_HIDDEN));
                add("expert_shared_feed_forward_length", Value::Number(EXPERT_HIDDEN));
            }
            Self::Rwkv7 => {
                add("wkv.head_size", Value::Number(RWKV_HEAD));
                add("token_shift_count", Value::Number(2));
                for matrix in ["decay", "iclr", "value_residual_mix", "gate"] {
                    add(&format!("attention.{matrix}_lora_rank"), Value::Number(RANK));
                }
            }
            Self::Gemma3 => {
                add("attention.sliding_window", Value::Number(WINDOW));
                add("attention.sliding_window_pattern", Value::Number(2));
            }
        }

        all.extend(byte_tokenizer());
        all
    }
}

/// The tensors so far.
struct Tensors(Vec<NewTensor>);

/// The fill of a matrix whose products keep their scale.
fn matrix(inputs: u32) -> Fill {
    Fill::Normal(1.0 / (inputs as f32).sqrt())
}

impl Tensors {
    fn add(&mut self, name: &str, shape: &[u32], fill: Fill) {
        self.0.push(NewTensor::new(name, shape, fill));
    }

    fn of_model(&mut self, architecture: Architecture) {
        self.add("token_embd.weight", &[WIDTH, VOCABULARY], Fill::Normal(1.0));
        // Peaked, so that greedy choices do not hang on the last bits of sums.
        self.add("output.weight", &[WIDTH, VOCABULARY], Fill::Normal(0.5));
        let norm =
            if architecture == Architecture::Lfm2 { "token_embd_norm" } else { "output_norm" };
        self.add(&format!("{norm}.weight"), &[WIDTH], Fill::Same(1.0));
        if architecture == Architecture::Rwkv7 {
            self.add("output_norm.bias", &[WIDTH], Fill::Normal(0.1));
            self.add("token_embd_norm.weight", &[WIDTH], Fill::Same(1.0));
            self.add("token_embd_norm.bias", &[WIDTH], Fill::Normal(0.1));
        }

        for layer in 0..LAYERS {
            let block = format!("blk.{layer}.");
            self.add(&format!("{block}attn_norm.weight"), &[WIDTH], Fill::Same(1.0));
            match architecture {
                Architecture::Rwkv7 => self.of_rwkv(&block),
                Architecture::Mamba2 => self.of_mamba(&block),
                Architecture::FalconH1 => {
                    self.of_mamba(&block);
                    self.of_attention(&block, WIDTH, false);
                    // llama.cpp reads the norm without a suffix.
                    self.of_feed_forward(&block, "ffn_norm");
                }
                Architecture::GraniteHybrid => {
                    if architecture.is_recurrent(layer) {
                        self.of_mamba(&block);
                    } else {
                        self.of_attention(&block, WIDTH, false);
                    }
                    self.of_feed_forward(&block, "ffn_norm.weight");
                }
                Architecture::Lfm2 => {
                    if architecture.is_recurrent(layer) {
                        self.of_short_convolution(&block);
                    } else {
                        self.of_attention(&block, WIDTH, true);
                    }
                    self.of_feed_forward(&block, "ffn_norm.weight");
                }
                Architecture::Qwen3Next => {
                    if architecture.is_recurrent(layer) {
                        self.of_delta_net(&block);
                    } else {
                        // The queries come with their gates.
                        self.of_attention(&block, 2 * WIDTH, true);
                    }
                    self.of_experts(&block);
                }
                Architecture::Gemma3 => {
                    self.of_attention(&block, WIDTH, true);
                    for norm in ["post_attention_norm", "post_ffw_norm"] {
                        self.add(&format!("{block}{norm}.weight"), &[WIDTH], Fill::Same(1.0));
                    }
                    self.of_feed_forward(&block, "ffn_norm.weight");
                }
            }
        }
    }

    fn of_attention(&mut self, block: &str, queries: u32, has_norms: bool) {
        let kv = KV_HEADS * HEAD;
        self.add(&format!("{block}attn_q.weight"), &[WIDTH, queries], matrix(WIDTH));
        self.add(&format!("{block}attn_k.weight"), &[WIDTH, kv], matrix(WIDTH));
        self.add(&format!("{block}attn_v.weight"), &[WIDTH, kv], matrix(WIDTH));
        self.add(&format!("{block}attn_output.weight"), &[WIDTH, WIDTH], matrix(WIDTH));
        if has_norms {
            for name in ["attn_q_norm", "attn_k_norm"] {
                self.add(&format!("{block}{name}.weight"), &[HEAD], Fill::Same(1.0));
            }
        }
    }

    fn of_feed_forward(&mut self, block: &str, norm: &str) {
        self.add(&format!("{block}{norm}"), &[WIDTH], Fill::Same(1.0));
        self.add(&format!("{block}ffn_gate.weight"), &[WIDTH, HIDDEN], matrix(WIDTH));
        self.add(&format!("{block}ffn_up.weight"), &[WIDTH, HIDDEN], matrix(WIDTH));
        self.add(&format!("{block}ffn_down.weight"), &[HIDDEN, WIDTH], matrix(HIDDEN));
    }

    fn of_experts(&mut self, block: &str) {
        let (width, hidden) = (WIDTH, EXPERT_HIDDEN);
        self.add(&format!("{block}post_attention_norm.weight"), &[width], Fill::Same(1.0));
        self.add(&format!("{block}ffn_gate_inp.weight"), &[width, EXPERTS], matrix(width));
        self.add(&format!("{block}ffn_gate_inp_shexp.weight"), &[width], matrix(width));
        for (kind, lengths) in [("exps", &[EXPERTS][..]), ("shexp", &[])] {
            let shape = |from: u32, to: u32| [&[from, to], lengths].concat();
            let name = |part: &str| format!("{block}ffn_{part}_{kind}.weight");
            self.add(&name("gate"), &shape(width, hidden), matrix(width));
            self.add(&name("up"), &shape(width, hidden), matrix(width));
            self.add(&name("down"), &shape(hidden, width), matrix(hidden));
        }
    }

    fn of_mamba(&mut self, block: &str) {
        let convolved = INNER + 2 * STATE;
        let projected = INNER + convolved + STATE_HEADS;
        let mut add =
            |name: &str, shape: &[u32], fill| self.add(&(block.to_owned() + name), shape, fill);
        add("ssm_in.weight", &[WIDTH, projected], matrix(WIDTH));
        add("ssm_conv1d.weight", &[CONVOLUTION, convolved], Fill::Normal(0.5));
        add("ssm_conv1d.bias", &[convolved], Fill::Normal(0.1));
        add("ssm_dt.bias", &[STATE_HEADS], Fill::Between(-3.0, 0.0));
        add("ssm_a", &[1, STATE_HEADS], Fill::Between(-1.0, -0.1));
        add("ssm_d", &[1, STATE_HEADS], Fill::Normal(1.0));
        add("ssm_norm.weight", &[INNER, 1], Fill::Same(1.0));
        add("ssm_out.weight", &[INNER, WIDTH], matrix(INNER));
    }

    fn of_short_convolution(&mut self, block: &str) {
        let mut add =
            |name: &str, shape: &[u32], fill| self.add(&(block.to_owned() + name), shape, fill);
        add("shortconv.conv.weight", &[3, WIDTH], Fill::Normal(0.6));
        add("shortconv.in_proj.weight", &[WIDTH, 3 * WIDTH], matrix(WIDTH));
        add("shortconv.out_proj.weight", &[WIDTH, WIDTH], matrix(WIDTH));
    }

    fn of_delta_net(&mut self, block: &str) {
        let (keys, values) = (KV_HEADS * STATE, HEADS * STATE);
        let mut add =
            |name: &str, shape: &[u32], fill| self.add(&(block.to_owned() + name), shape, fill);
        add("attn_qkv.weight", &[WIDTH, 2 * keys + values], matrix(WIDTH));
        add("attn_gate.weight", &[WIDTH, values], matrix(WIDTH));
        add("ssm_conv1d.weight", &[CONVOLUTION, 2 * keys + values], Fill::Normal(0.5));
        add("ssm_dt.bias", &[HEADS], Fill::Between(-3.0, 0.0));
        add("ssm_a", &[HEADS], Fill::Between(-1.0, -0.1));
        add("ssm_ba.weight", &[WIDTH, 2 * HEADS], matrix(WIDTH));
        add("ssm_norm.weight", &[STATE], Fill::Same(1.0));
        add("ssm_out.weight", &[values, WIDTH], matrix(values));
    }

    fn of_rwkv(&mut self, block: &str) {
        let mut add = |name: &str, shape: &[u32], fill| {
            self.add(&format!("{block}{name}"), shape, fill);
        };
        add("attn_norm.bias", &[WIDTH], Fill::Normal(0.1));
        add("attn_norm_2.weight", &[WIDTH], Fill::Same(1.0));
        add("attn_norm_2.bias", &[WIDTH], Fill::Normal(0.1));
        for part in ["w", "a", "v"] {
            add(&format!("time_mix_{part}0.weight"), &[WIDTH], Fill::Normal(0.5));
        }
        for part in ["w", "a", "v", "g"] {
            add(&format!("time_mix_{part}1.weight"), &[WIDTH, RANK], matrix(WIDTH));
            add(&format!("time_mix_{part}2.weight"), &[RANK, WIDTH], matrix(RANK));
        }
        add("time_mix_lerp_fused.weight", &[WIDTH, 1, 1, 6], Fill::Between(0.0, 1.0));
        for part in ["k_k", "k_a", "r_k"] {
            add(&format!("time_mix_{part}.weight"), &[WIDTH], Fill::Between(0.2, 1.0));
        }
        for part in ["key", "value", "receptance", "output"] {
            add(&format!("time_mix_{part}.weight"), &[WIDTH, WIDTH], matrix(WIDTH));
        }
        add("time_mix_ln.weight", &[WIDTH], Fill::Same(1.0));
        add("time_mix_ln.bias", &[WIDTH], Fill::Normal(0.1));
        add("channel_mix_lerp_k.weight", &[WIDTH, 1, 1], Fill::Between(0.0, 1.0));
        add("channel_mix_key.weight", &[WIDTH, HIDDEN], matrix(WIDTH));
        add("channel_mix_value.weight", &[HIDDEN, WIDTH], matrix(HIDDEN));
    }
}
