//! The exported file in llama.cpp, which loads it, splits texts into the same tokens and computes
//! the same logits.

use std::{num::NonZeroU32, path::Path, sync::OnceLock};

use llama_cpp_2::{
    context::params::{KvCacheType, LlamaContextParams},
    llama_backend::LlamaBackend,
    llama_batch::LlamaBatch,
    model::{LlamaModel, params::LlamaModelParams},
    token::LlamaToken,
};

use super::{
    Architecture, Precision, Sample, Samples,
    batch::Batch,
    gguf,
    layout::Layout,
    network::{Gradient, Network, Weights, Workspace},
    optimizer::{Moments, Updater},
    recipe::{Data, Optimizer, Words},
    sample::Encoded,
    tests::Toy,
    traces::Traces,
    vocabulary::{BOS, Vocabulary},
};

/// LLAMA_FLASH_ATTN_TYPE_DISABLED, which llama-cpp-2 takes but does not name.
const FLASH_ATTENTION_DISABLED: i32 = 0;

/// llama.cpp can be initialised once per process; an engine of another test may have done it.
fn backend() -> &'static LlamaBackend {
    static BACKEND: OnceLock<LlamaBackend> = OnceLock::new();
    BACKEND.get_or_init(|| LlamaBackend::init().unwrap_or(LlamaBackend {}))
}

/// Samples of each task; each has two texts, which makes 10^5 texts of fifty tasks.
const TEXTS_PER_TASK: usize = 1_000;
const TEXT: &str = "pegs A:321 B: , C:\nmove disk 1 \u{e9} -> B; state [0.5, -7]\n#~ 0123";

/// Logits of llama.cpp at every position of bos + `TEXT`, and the tokens.
fn llama_logits(path: &Path) -> (Vec<f32>, Vec<u16>) {
    let model = LlamaModel::load_from_file(
        backend(),
        path,
        &LlamaModelParams::default().with_n_gpu_layers(0),
    )
    .expect("llama.cpp loads the file");

    let tokens = model.vocab().tokenize(TEXT.as_bytes(), true, false);
    // A cache in f32 and no flash attention, to be as exact as the trainer's network.
    let params = LlamaContextParams::default()
        .with_n_ctx(NonZeroU32::new(128))
        .with_n_threads(1)
        .with_n_threads_batch(1)
        .with_flash_attention_policy(FLASH_ATTENTION_DISABLED)
        .with_type_k(KvCacheType::F32)
        .with_type_v(KvCacheType::F32);

    let mut context = model.new_context(backend(), params).expect("a context");
    let mut batch = LlamaBatch::new(128, 1);
    for (position, &token) in tokens.iter().enumerate() {
        batch.add(token, position as i32, &[0], true).expect("room in the batch");
    }

    context.decode(&mut batch).expect("llama.cpp decodes");
    let logits =
        (0..tokens.len()).flat_map(|index| context.get_logits_ith(index as i32).to_vec()).collect();
    (logits, tokens.iter().map(|&LlamaToken(id)| id as u16).collect())
}

/// The largest difference of logits, how often the most likely token is the same, and the number of
/// tokens.
fn compare(
    layout: &Layout,
    vocabulary: &Vocabulary,
    weights: &[f32],
    precision: Precision,
) -> (f32, usize, usize) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let path = folder.path().join("model.gguf");
    std::fs::write(&path, gguf::encode("test", layout, vocabulary, weights, precision))
        .expect("the file is written");

    let (theirs, tokens) = llama_logits(&path);
    let expected: Vec<u16> = std::iter::once(BOS).chain(vocabulary.encode(TEXT)).collect();
    assert_eq!(tokens, expected, "{:?}", vocabulary.words());

    let mut batch = Batch::default();

    // With an empty prompt every position is a target.
    let sample = Sample::written(0, "", TEXT);
    batch.push(&Encoded::new(&sample, vocabulary), layout.architecture.context).expect("fits");

    let mut ours = Vec::new();
    let weights: Weights<f32> = Weights::of(layout, weights);
    Network::new(layout).each_logits(&weights, &batch, &mut Workspace::default(), |_, row| {
        ours.extend_from_slice(row);
    });

    assert_eq!(ours.len(), theirs.len());

    let largest = ours.iter().zip(&theirs).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
    let best = |row: &[f32]| {
        row.iter().enumerate().max_by(|a, b| a.1.total_cmp(b.1)).map(|(index, _)| index)
    };

    let rows = ours.chunks(layout.tokens).zip(theirs.chunks(layout.tokens));
    let same = rows.filter(|(a, b)| best(a) == best(b)).count();
    (largest, same, tokens.len())
}

#[test]
fn llama_cpp_computes_the_same_logits() {
    for words in [&[][..], &["pegs ", "disk", "state ["]] {
        let words = words.iter().map(|word| (*word).to_owned()).collect();
        computes_the_same_logits(&Vocabulary::new(words).expect("a vocabulary"));
    }
}

fn computes_the_same_logits(vocabulary: &Vocabulary) {
    let layout = Layout::new(Architecture::default(), vocabulary.size());
    let mut weights = layout.initialize(9);
    for trained in [false, true] {
        if trained {
            briefly_train(&layout, &mut weights);
        }
        for (precision, tolerance) in
            [(Precision::F32, 1e-3), (Precision::F16, 0.1), (Precision::Q8_0, 0.5)]
        {
            let (difference, same, tokens) = compare(&layout, vocabulary, &weights, precision);
            println!(
                "trained {trained}, {precision:?}: largest difference {difference:e}, argmax {same} of {tokens}"
            );
            assert!(difference < tolerance, "trained {trained}, {precision:?}: {difference}");
        }
    }
}

#[test]
fn llama_cpp_cuts_prompts_and_completions_into_the_same_tokens() {
    use rand_chacha::rand_core::SeedableRng;

    let tasks: Vec<String> = prime_bench::tasks::all()
        .map(|task| task.spec().slug)
        .filter(|slug| prime_lessons::has_lesson(slug))
        .map(str::to_owned)
        .collect();
    let benchmark_inputs = vec!["tower-of-hanoi".to_owned()];
    let mut traces = Traces::new(&Data {
        tasks,
        benchmark_inputs,
        words: Words::Frequent(200),
        ..Data::default()
    })
    .expect("lessons");

    let vocabulary = traces.vocabulary().clone();
    assert!(vocabulary.words().len() > 100, "{:?}", vocabulary.words());

    let small = Architecture { d_model: 16, layers: 1, heads: 2, ff: 16, context: 512 };
    let layout = Layout::new(small, vocabulary.size());
    let file = tempfile::NamedTempFile::new().expect("a temporary file");
    let bytes = gguf::encode("test", &layout, &vocabulary, &layout.initialize(1), Precision::F16);
    std::fs::write(file.path(), bytes).expect("the file is written");

    let parameters = LlamaModelParams::default().with_n_gpu_layers(0);
    let model = LlamaModel::load_from_file(backend(), file.path(), &parameters)
        .expect("llama.cpp loads the file");

    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(3);
    for task in 0..traces.tasks().len() {
        for _ in 0..TEXTS_PER_TASK {
            let sample = traces.draw(task, false, &mut rng);
            let encoded = Encoded::new(&sample, &vocabulary);

            assert_eq!(
                encoded.completion,
                vocabulary.encode(&sample.completion),
                "values are cut with what is around"
            );

            for text in [sample.prompt, sample.completion] {
                let tokens = model.vocab().tokenize(text.as_bytes(), false, false);
                let tokens: Vec<u16> = tokens.iter().map(|&LlamaToken(id)| id as u16).collect();
                assert_eq!(tokens, vocabulary.encode(&text), "{text:?}");
            }
        }
    }
}

fn briefly_train(layout: &Layout, flat: &mut [f32]) {
    use rand_chacha::rand_core::SeedableRng;

    let mut rng = rand_chacha::ChaCha8Rng::seed_from_u64(2);
    let network = Network::new(layout);
    let moments = Moments { first: vec![0.0; layout.len], second: vec![0.0; layout.len] };
    let mut updater = Updater::<f32>::new(&Optimizer::default(), layout, moments, 0);
    let mut weights: Weights<f32> = Weights::of(layout, flat);
    let (mut workspace, mut sum) = (Workspace::default(), Gradient::new(layout));
    let mut gradient = vec![0.0; layout.len];

    let mut toy = Toy::new();
    for _ in 0..60 {
        let mut batch = Batch::default();
        for index in 0..40 {
            let sample = toy.draw(index % 2, false, &mut rng);
            batch
                .push(&Encoded::new(&sample, toy.vocabulary()), layout.architecture.context)
                .expect("fits");
        }

        network.learn(&weights, &batch, 1.0 / batch.targets.len() as f32, &mut workspace, &mut sum);
        sum.take(layout, &mut gradient);
        updater.update(flat, &mut gradient, 1.0, 3e-3);
        weights.prepare(layout, flat);
    }
}
