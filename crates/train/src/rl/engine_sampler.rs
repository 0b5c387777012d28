//! Rollouts by the engine that serves models: llama.cpp draws, and the trainer's network computes
//! the probability of each token at the temperature of the draw, which the objective needs.

use std::path::Path;
use std::sync::mpsc;

use prime_engine::{
    Engine, EngineError, EngineSpec, Finish, Format, Generation, Isolation, KvPool,
};
use rand_chacha::rand_core::RngCore;

use super::objective;
use crate::batch::Batch;
use crate::checkpoint::replace;
use crate::element::Precision;
use crate::layout::Layout;
use crate::network::{Network, Weights, Workspace};
use crate::sample::Encoded;
use crate::sampler::{Completion, Request, Sampler, Sampling};
use crate::vocabulary::{EOS, Vocabulary};
use crate::{TrainError, gguf};

/// Maximum number of completions drawn together.
const SEQUENCES: u16 = 64;

/// Maximum number of tokens of a decode.
const BATCH_TOKENS: u32 = 512;

/// Number of tokens that are scored together.
const PASS_TOKENS: usize = 4_096;

/// An engine with the policy's weights.
pub struct EngineSampler {
    engine: Engine,
    network: Network,
    weights: Weights<f32>,
    context: usize,
}

impl EngineSampler {
    /// Writes the weights to `path` and starts an engine with them, in this process.
    ///
    /// # Errors
    /// If the file cannot be written, or the engine does not start.
    pub fn start(
        path: &Path,
        layout: &Layout,
        vocabulary: &Vocabulary,
        flat: &[f32],
    ) -> Result<Self, TrainError> {
        replace(path, &gguf::encode("policy", layout, vocabulary, flat, Precision::F32))?;
        let context = layout.architecture.context;

        let spec = EngineSpec {
            name: "policy".to_owned(),
            model: path.to_owned(),
            isolation: Isolation::Thread,
            context_tokens: u32::from(SEQUENCES)
                * u32::try_from(context).unwrap_or(u32::MAX / u32::from(SEQUENCES)),
            kv: KvPool::Split,
            sequences_max: SEQUENCES,
            batch_tokens: BATCH_TOKENS,
            ..EngineSpec::default()
        };

        Ok(Self {
            engine: Engine::start(spec)?,
            network: Network::new(layout),
            weights: Weights::of(layout, flat),
            context,
        })
    }

    /// The sampler for prompts of this vocabulary.
    pub fn with<'a>(&'a self, vocabulary: &'a Vocabulary) -> impl Sampler + 'a {
        Drawing { engine: self, vocabulary }
    }

    /// Fills in ln π and entropy of the tokens drawn.
    fn score(
        &self,
        requests: &[Request<'_>],
        done: &mut [Vec<Completion>],
        temperature: f32,
    ) -> Result<(), TrainError> {
        let mut batch = Batch::default();
        let mut places = Vec::new();
        let mut workspace = Workspace::default();

        let count: usize = done.iter().map(Vec::len).sum();
        let all: Vec<(usize, usize)> = done
            .iter()
            .enumerate()
            .flat_map(|(request, group)| (0..group.len()).map(move |place| (request, place)))
            .collect();

        for (number, (request, place)) in all.into_iter().enumerate() {
            let tokens = done[request][place].tokens.clone();
            batch.push(
                &Encoded::drawn(0, requests[request].prompt.to_vec(), tokens),
                self.context,
            )?;

            places.push((request, place));
            // Wait until the pass is full, or these are the last ones.
            if batch.inputs.len() < PASS_TOKENS && number + 1 < count {
                continue;
            }

            let batch = std::mem::take(&mut batch);
            let mut terms = Vec::with_capacity(batch.targets.len());
            self.network.each_logits(&self.weights, &batch, &mut workspace, |target, row| {
                let logprob = objective::policy(row, temperature, batch.targets[target].token);
                terms.push((logprob, objective::entropy(row)));
            });

            for ((request, place), sequence) in places.drain(..).zip(&batch.sequences) {
                let completion = &mut done[request][place];
                // eos is the last target, which was not drawn if the completion became too long.
                let drawn = completion.tokens.len() + usize::from(completion.has_ended);
                for (logprob, entropy) in &terms[sequence.targets.clone()][..drawn] {
                    completion.logprobs.push(*logprob);
                    completion.entropies.push(*entropy);
                }
            }
        }

        Ok(())
    }
}

impl Drop for EngineSampler {
    fn drop(&mut self) {
        self.engine.shutdown();
    }
}

struct Drawing<'a> {
    engine: &'a EngineSampler,
    vocabulary: &'a Vocabulary,
}

impl Sampler for Drawing<'_> {
    fn complete(
        &self,
        requests: Vec<Request<'_>>,
        sampling: Sampling,
    ) -> Result<Vec<Vec<Completion>>, TrainError> {
        let mut done: Vec<Vec<Completion>> = requests
            .iter()
            .map(|request| vec![Completion::default(); request.streams.len()])
            .collect();

        let (sender, answers) = mpsc::channel::<(usize, usize, Result<Generation, EngineError>)>();
        for (index, request) in requests.iter().enumerate() {
            let prompt = self.vocabulary.decode(request.prompt);
            for (place, stream) in request.streams.iter().enumerate() {
                let asked = prime_engine::Request {
                    prompt: prompt.clone(),
                    format: Format::Raw,
                    grammar: None,
                    excluded: Vec::new(),
                    excluded_prefixes: Vec::new(),
                    stop: None,
                    newline_ends: false,
                    thinking: prime_engine::Thinking::AsModel,
                    sampling: prime_engine::Sampling {
                        temperature: sampling.temperature as f32,
                        top_p: 1.0,
                        seed: stream.clone().next_u64(),
                    },
                    max_tokens: u32::try_from(sampling.tokens_max).unwrap_or(u32::MAX),
                    logprobs: false,
                    ignore_end: false,
                    group: 0,
                    space: 0,
                };

                let sender = sender.clone();
                // Sending fails only after an error has ended the loop below.
                self.engine
                    .engine
                    .submit(asked, move |result| drop(sender.send((index, place, result))));
            }
        }

        // With the last sender gone, `answers` ends after the last answer.
        drop(sender);
        for (index, place, result) in answers {
            let generation = result?;
            let has_ended = generation.finish == Finish::EndOfText;
            let tokens = generation
                .tokens
                .into_iter()
                .map(|token| token as u16)
                .filter(|token| *token != EOS)
                .collect();
            done[index][place] = Completion { tokens, has_ended, ..Completion::default() };
        }

        let temperature =
            if sampling.temperature > 0.0 { sampling.temperature as f32 } else { 1.0 };
        self.engine.score(&requests, &mut done, temperature)?;
        Ok(done)
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use rand_chacha::ChaCha8Rng;
    use rand_chacha::rand_core::SeedableRng;

    use super::*;
    use crate::decoder::Decoder;
    use crate::initial;
    use crate::model_view::ModelView;
    use crate::recipe::Architecture;

    const SHIPPED: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/prime-tiny.gguf");

    /// The number of times that engine and decoder drew a completion, and the probability that each
    /// reports.
    #[derive(Default)]
    struct Seen {
        counts: [f64; 2],
        logprobs: [f32; 2],
    }

    #[test]
    fn engine_and_decoder_draw_from_the_same_distribution() {
        let architecture = Architecture::default();
        let (layout, vocabulary, flat) =
            initial::policy(Path::new(SHIPPED), architecture).expect("the shipped model");

        let folder = tempfile::tempdir().expect("a folder");
        let engine =
            EngineSampler::start(&folder.path().join("policy.gguf"), &layout, &vocabulary, &flat)
                .expect("an engine");

        let weights: Weights<f32> = Weights::of(&layout, &flat);
        let decoder = Decoder::new(ModelView::new(&layout, &weights));

        let task = prime_bench::tasks::find("n-queens").expect("a task");
        let instance = task.generate(prime_bench::tasks::Difficulty::Easy, 1_000_003);
        let prompt = vocabulary.encode(&prime_lessons::compact(instance.start().as_ref()));
        // Hot, so that the completions differ.

        let sampling = Sampling { temperature: 1.8, tokens_max: 3 };
        let draws = 3_000;
        let request = |from: u64| Request {
            prompt: &prompt,
            streams: (0..draws).map(|seed| ChaCha8Rng::seed_from_u64(from + seed)).collect(),
            values: None,
        };

        let by_engine = engine
            .with(&vocabulary)
            .complete(vec![request(0)], sampling)
            .expect("completions")
            .remove(0);
        let by_decoder = decoder.complete(vec![request(draws)], sampling).remove(0);

        let mut seen: BTreeMap<(Vec<u16>, bool), Seen> = BTreeMap::new();
        for (of, completions) in [by_engine, by_decoder].into_iter().enumerate() {
            for completion in completions {
                let entropy = completion.entropies.iter().sum::<f32>();
                assert!(entropy > 0.0, "{completion:?}");
                let seen = seen.entry((completion.tokens, completion.has_ended)).or_default();
                seen.counts[of] += 1.0;
                seen.logprobs[of] = completion.logprobs.iter().sum();
            }
        }
        assert!(seen.len() > 20, "{} different ones", seen.len());

        let mut both = 0;
        for (completion, Seen { counts: [engine, decoder], logprobs }) in seen {
            // Five standard deviations of the difference of two counts.
            assert!(
                (engine - decoder).abs() <= 5.0 * (engine + decoder).sqrt(),
                "{completion:?}: {engine}, {decoder}"
            );
            if engine > 0.0 && decoder > 0.0 {
                assert!((logprobs[0] - logprobs[1]).abs() < 1e-2, "{completion:?}: {logprobs:?}");
                both += 1;
            }
        }
        assert!(both > 10, "{both}");
    }
}
