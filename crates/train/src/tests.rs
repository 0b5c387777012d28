//! Tests across the files of the crate: independence of samples in a batch, learning, resuming.

use std::{path::Path, sync::atomic::AtomicBool};

use rand_chacha::{
    ChaCha8Rng,
    rand_core::{RngCore, SeedableRng},
};

use super::{
    Architecture, Attempted, CorrectionPlan, Policy, Recipe, Sample, Samples, Session, Summary,
    Traces, TrainError, Vocabulary,
    batch::Batch,
    checkpoint::Checkpoint,
    layout::Layout,
    network::{Network, Weights, Workspace},
    sample::Encoded,
    sft,
};

/// Two small tasks: copy digits, and copy them backwards.
#[derive(Clone)]
pub struct Toy {
    tasks: Vec<String>,
    vocabulary: Vocabulary,
}

impl Toy {
    pub fn new() -> Self {
        Self {
            tasks: vec!["copy".to_owned(), "reverse".to_owned()],
            vocabulary: Vocabulary::default(),
        }
    }
}

impl Samples for Toy {
    fn fork(&self) -> Option<Box<dyn Samples + Send>> {
        Some(Box::new(self.clone()))
    }

    fn tasks(&self) -> &[String] {
        &self.tasks
    }

    fn vocabulary(&self) -> &Vocabulary {
        &self.vocabulary
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        // The last digit tells the two sets of instances apart.
        let mut digits: Vec<char> =
            (0..2).map(|_| char::from(b'0' + (rng.next_u32() % 10) as u8)).collect();

        let last = if held_out { 8 + rng.next_u32() % 2 } else { rng.next_u32() % 10 };
        digits.push(char::from(b'0' + last as u8));

        let prompt =
            format!("{}{}=", if task == 0 { 'c' } else { 'r' }, digits.iter().collect::<String>());
        if task == 1 {
            digits.reverse();
        }
        Sample::written(task, prompt, digits.into_iter().collect::<String>())
    }
}

const SMALL: Architecture = Architecture { d_model: 64, layers: 2, heads: 2, ff: 96, context: 128 };

fn text(length: usize, rng: &mut ChaCha8Rng) -> String {
    (0..length).map(|_| char::from(b'a' + (rng.next_u32() % 26) as u8)).collect()
}

fn samples(lengths: &[(usize, usize)], rng: &mut ChaCha8Rng) -> Vec<Sample> {
    lengths.iter().map(|&(p, c)| Sample::written(0, text(p, rng), text(c, rng))).collect()
}

fn batch_of(samples: &[Sample], context: usize) -> Batch {
    let mut batch = Batch::default();
    for sample in samples {
        batch
            .push(&Encoded::new(sample, &Vocabulary::default()), context)
            .expect("the sample fits");
    }
    batch
}

#[test]
fn samples_in_a_batch_do_not_see_each_other() {
    let mut rng = ChaCha8Rng::seed_from_u64(4);
    let layout = Layout::new(SMALL, 259);
    let network = Network::new(&layout);
    let weights: Weights<f32> = Weights::of(&layout, &layout.initialize(6));
    let mut workspace = Workspace::default();
    let samples = samples(&[(70, 20), (5, 1), (20, 40), (0, 3)], &mut rng);
    let mut losses = |samples: &[Sample]| {
        network.score(&weights, &batch_of(samples, SMALL.context), &mut workspace).losses
    };

    let together = losses(&samples);
    let apart: Vec<f32> = samples.chunks(1).flat_map(losses).collect();

    assert_eq!(together.len(), apart.len());
    for (together, apart) in together.iter().zip(&apart) {
        assert!((together - apart).abs() < 1e-4, "{together} together, {apart} apart");
    }
}

fn train(extra: &str, out: &Path, resume: bool) -> Summary {
    let recipe = Recipe::from_toml(&format!(
        "name = 'toy'\nseed = 1\n{extra}\n\
         model = {{ d_model = 64, layers = 2, heads = 2, ff = 128, context = 32 }}\n"
    ))
    .expect("a valid recipe");
    let stop = AtomicBool::new(false);
    sft(&recipe, &mut Toy::new(), out, &Session { resume, stop: &stop }).expect("training works")
}

const LEARNING: &str = "batch = { tokens = 512 }\noptimizer = { learning_rate = 5e-3 }\n\
                        evaluation = { every_s = 1e9, final_samples = 100 }";

#[test]
fn learns_a_toy_task() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let summary = train(
        &format!("budget = {{ steps = 500 }}\n{LEARNING}"),
        &folder.path().join("toy.gguf"),
        false,
    );

    assert!(summary.finished);
    for accuracy in &summary.accuracy {
        assert!(accuracy.rate() > 0.97 && accuracy.mistakes.is_none(), "{accuracy:?}");
    }

    // A run that starts from trained weights is accurate from the first step.
    let init =
        format!("budget = {{ steps = 1 }}\ninit = '{}'\n{LEARNING}", summary.model.display());
    let continued = train(&init, &folder.path().join("continued.gguf"), false);

    for accuracy in &continued.accuracy {
        assert!(accuracy.rate() > 0.9, "{accuracy:?}");
    }
}

#[test]
fn muon_learns_it_in_half_of_the_steps() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let muon = LEARNING.replace("learning_rate = 5e-3", "learning_rate = 5e-3, matrices = 'muon'");
    let summary = train(
        &format!("budget = {{ steps = 250 }}\n{muon}"),
        &folder.path().join("toy.gguf"),
        false,
    );

    for accuracy in &summary.accuracy {
        assert!(accuracy.rate() > 0.97, "{accuracy:?}");
    }
}

#[test]
fn weights_of_another_model_are_refused_with_their_path() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let other = train("budget = { steps = 1 }", &folder.path().join("other.gguf"), false).model;

    let recipe = Recipe::from_toml(&format!(
        "name = 'toy'\nseed = 1\nbudget = {{ steps = 1 }}\ninit = '{}'\n\
         model = {{ d_model = 64, layers = 3, heads = 2, ff = 128, context = 32 }}\n",
        other.display()
    ))
    .expect("a valid recipe");

    let stop = AtomicBool::new(false);
    let out = folder.path().join("toy.gguf");
    let refused = sft(&recipe, &mut Toy::new(), &out, &Session { resume: false, stop: &stop });
    let message = refused.expect_err("two layers are not three").to_string();

    for part in ["other.gguf", "`llama.block_count` is 2", "model has 3"] {
        assert!(message.contains(part), "{part:?} is missing in {message}");
    }
    assert!(!out.exists());
}

#[test]
fn a_resumed_run_equals_an_uninterrupted_one() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let tasks = Toy::new().tasks;

    let recipe = |threads: usize, matrices: &str, compute: &str| {
        Recipe::from_toml(&format!(
            "name = 'toy'\nseed = 1\nbudget = {{ steps = 12 }}\n\
             optimizer = {{ matrices = '{matrices}', average = 0.8 }}\n\
             model = {{ d_model = 32, layers = 1, heads = 1, ff = 32, context = 32 }}\n\
             batch = {{ tokens = 128, threads = {threads}, compute = '{compute}' }}\n\
             evaluation = {{ every_s = 1e9, samples = 4, final_samples = 4 }}"
        ))
        .expect("a valid recipe")
    };
    for (threads, matrices, compute) in [
        (1, "adamw", "f32"),
        (2, "adamw", "f32"),
        (1, "muon", "f32"),
        (2, "muon", "bf16"),
        (1, "adamw", "bf16"),
    ] {
        let recipe = recipe(threads, matrices, compute);
        let weights = |out: &Path| {
            let mut path = out.as_os_str().to_owned();
            path.push(".checkpoint");
            let state = Checkpoint::load(
                Path::new(&path),
                recipe.model,
                recipe.seed,
                &tasks,
                &Vocabulary::default(),
            )
            .expect("a checkpoint");
            assert_eq!(state.step, 12);
            assert_ne!(state.weights, state.average);
            (state.weights, state.average)
        };

        let go = |out: &Path, resume: bool, stop_at: Option<u32>| {
            let stop = AtomicBool::new(false);
            let mut samples = Stopping { inner: Toy::new(), left: stop_at, stop: &stop };
            sft(&recipe, &mut samples, out, &Session { resume, stop: &stop })
                .expect("training works")
        };

        let whole = folder.path().join(format!("whole-{threads}-{matrices}-{compute}.gguf"));
        let parts = folder.path().join(format!("parts-{threads}-{matrices}-{compute}.gguf"));
        assert!(go(&whole, false, None).finished);

        let first = go(&parts, false, Some(70));
        assert!(!first.finished && first.steps > 0 && first.steps < 12, "{first:?}");
        assert!(go(&parts, true, None).finished);

        assert_eq!(weights(&whole), weights(&parts));
    }
}

/// Counts the training samples that are drawn of each task.
struct Counting {
    inner: Toy,
    drawn: [u32; 2],
}

impl Samples for Counting {
    fn tasks(&self) -> &[String] {
        self.inner.tasks()
    }

    fn vocabulary(&self) -> &Vocabulary {
        self.inner.vocabulary()
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        self.drawn[task] += u32::from(!held_out);
        self.inner.draw(task, held_out, rng)
    }
}

#[test]
fn a_task_with_a_greater_share_is_drawn_more_often() {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recipe = Recipe::from_toml(
        "name = 'toy'\nseed = 1\nbudget = { steps = 16 }\n\
         model = { d_model = 32, layers = 1, heads = 1, ff = 32, context = 32 }\n\
         data = { tasks = ['copy', 'reverse'], shares = { copy = 9.0 } }\n\
         batch = { tokens = 256 }\n\
         evaluation = { every_s = 1e9, samples = 4, final_samples = 4 }",
    )
    .expect("a valid recipe");

    let mut samples = Counting { inner: Toy::new(), drawn: [0; 2] };
    let session = Session { resume: false, stop: &AtomicBool::new(false) };
    sft(&recipe, &mut samples, &folder.path().join("toy.gguf"), &session).expect("training works");

    let [copies, reverses] = samples.drawn;
    assert!(
        reverses > 0 && copies > 6 * reverses && copies < 13 * reverses,
        "{copies}, {reverses}"
    );

    let other = "name = 'toy'\nseed = 1\nbudget = { steps = 1 }\ndata = { tasks = ['copy'], shares = { revers = 2 } }";
    let message = Recipe::from_toml(other).expect_err("no such task").to_string();
    assert!(message.contains("data.shares"), "{message}");
}

/// The checkpoints of a run with these corrections, once uninterrupted and once resumed, and the
/// records of the resumed one.
fn corrected(corrections: &str) -> (Checkpoint, Checkpoint, String) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let recipe = Recipe::from_toml(&format!(
        "name = 'bst'\nseed = 1\nbudget = {{ steps = 24 }}\n\
         model = {{ d_model = 32, layers = 1, heads = 1, ff = 32 }}\n\
         data = {{ tasks = ['bst-inorder', 'introsort'], difficulty_mix = [1, 0, 0] }}\n\
         batch = {{ tokens = 256 }}\n\
         corrections = {{ share = 0.5, {corrections} }}\n\
         evaluation = {{ every_s = 1e9, samples = 4, final_samples = 4 }}",
    ))
    .expect("a valid recipe");

    let go = |out: &Path, resume: bool, left: Option<u32>| {
        let stop = AtomicBool::new(false);
        let inner = Traces::new(&recipe.data).expect("known tasks");
        let mut samples = Stopping { inner, left, stop: &stop };
        sft(&recipe, &mut samples, out, &Session { resume, stop: &stop }).expect("training works")
    };

    let state = |summary: &Summary| {
        let words = Vocabulary::default();
        Checkpoint::load(&summary.checkpoint, recipe.model, recipe.seed, &recipe.data.tasks, &words)
            .expect("a checkpoint")
    };

    let whole = go(&folder.path().join("whole.gguf"), false, None);
    let parts = folder.path().join("parts.gguf");
    assert!(!go(&parts, false, Some(40)).finished);
    let parts = go(&parts, true, None);

    let records =
        std::fs::read_to_string(folder.path().join("parts.gguf.records.jsonl")).expect("records");
    (state(&whole), state(&parts), records)
}

/// For each of the two tasks, true if it has corrections; their prompts begin with the task's name.
fn has_corrections(state: &Checkpoint) -> [bool; 2] {
    let mut rng = ChaCha8Rng::seed_from_u64(1);
    ["bst-inorder ", "introsort "].map(|name| {
        let task =
            state.tasks.iter().position(|task| *task == name.trim()).expect("a task of the recipe");
        state.corrections.draw(task, 1.0, &mut rng).is_some_and(|correction| {
            assert!(
                Vocabulary::default().decode(&correction.prompt).starts_with(name),
                "{correction:?}"
            );
            true
        })
    })
}

#[test]
fn a_model_is_corrected_where_it_goes_wrong_and_a_resumed_run_makes_the_same_attempts() {
    let (whole, parts, records) = corrected("from = 0.0, every = 8, attempts = 4, proposals = 3");
    assert_eq!((&whole.weights, &whole.corrections), (&parts.weights, &parts.corrections));
    assert_eq!(has_corrections(&parts), [true, true]);
    assert_eq!(records.matches("\"attempts\"").count(), 3, "{records}");
    assert!(records.contains("{\"prompt\":\"introsort "), "{records}");
}

#[test]
fn training_samples_that_were_missed_become_corrections_also_of_a_resumed_run() {
    let (whole, parts, records) = corrected("from = 1.0, misses_from = 0.3");
    assert_eq!((&whole.weights, &whole.corrections), (&parts.weights, &parts.corrections));
    assert_eq!(has_corrections(&parts), [true, true]);
    assert_eq!(records.matches("\"attempts\"").count(), 0, "{records}");
}

/// A toy with samples and corrections that may not fit a context.
struct Lengths {
    toy: Toy,
    /// Length of the prompt of each correction in bytes; 0 for no attempts.
    correction: usize,
    /// Every `long_every`-th draw gives a sample of more than 100 tokens; 0 for none.
    long_every: usize,
    draws: usize,
}

impl Lengths {
    /// Trains on it for some steps with a context of 32 tokens.
    fn train(correction: usize, long_every: usize) -> Result<Checkpoint, TrainError> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let recipe = Recipe::from_toml(
            "name = 'toy'\nseed = 1\nbudget = { steps = 8 }\n\
             model = { d_model = 32, layers = 1, heads = 1, ff = 32, context = 32 }\n\
             batch = { tokens = 128 }\ncorrections = { share = 0.5, from = 0.0, every = 8 }\n\
             evaluation = { every_s = 1e9, samples = 4, final_samples = 4 }",
        )
        .expect("a valid recipe");

        let stop = AtomicBool::new(false);
        let mut samples = Self { toy: Toy::new(), correction, long_every, draws: 0 };
        let session = Session { resume: false, stop: &stop };
        let summary = sft(&recipe, &mut samples, &folder.path().join("toy.gguf"), &session)?;

        Checkpoint::load(
            &summary.checkpoint,
            recipe.model,
            recipe.seed,
            samples.tasks(),
            samples.vocabulary(),
        )
    }
}

impl Samples for Lengths {
    fn tasks(&self) -> &[String] {
        self.toy.tasks()
    }

    fn vocabulary(&self) -> &Vocabulary {
        self.toy.vocabulary()
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        self.draws += 1;
        if self.long_every > 0 && self.draws.is_multiple_of(self.long_every) {
            return Sample::written(task, "p".repeat(100), "c");
        }
        self.toy.draw(task, held_out, rng)
    }

    fn attempt(
        &mut self,
        task: usize,
        _policy: &Policy<'_>,
        _plan: &CorrectionPlan,
        _rng: &mut ChaCha8Rng,
    ) -> Option<(Attempted, Vec<Sample>)> {
        let correction = Sample::written(task, "p".repeat(self.correction), "c");
        (self.correction > 0).then(|| {
            (Attempted { task, states: 1, wrong: 1, mistakes: Vec::new() }, vec![correction])
        })
    }
}

#[test]
fn a_correction_that_does_not_fit_the_context_is_left_out() {
    // bos, prompt, completion and eos.
    for (length, kept) in [(29, true), (30, false)] {
        let state = Lengths::train(length, 0).expect("training works");
        let correction = state.corrections.draw(0, 1.0, &mut ChaCha8Rng::seed_from_u64(1));
        assert_eq!(correction.is_some(), kept, "{length}");
    }
}

#[test]
fn a_sample_that_does_not_fit_the_context_is_drawn_again() {
    Lengths::train(0, 2).expect("every second sample fits");
    let error = Lengths::train(0, 1).err().map(|error| error.to_string()).expect("none fits");
    assert!(
        error.contains("samples of copy")
            && error.contains("context of 32 tokens (the last has 103)"),
        "{error}"
    );
}

/// Raises the stop flag after some training samples, as Ctrl-C would.
struct Stopping<'a, S> {
    inner: S,
    left: Option<u32>,
    stop: &'a AtomicBool,
}

impl<S: Samples> Samples for Stopping<'_, S> {
    fn begin_pool(&mut self) {
        self.inner.begin_pool();
    }

    fn tasks(&self) -> &[String] {
        self.inner.tasks()
    }

    fn vocabulary(&self) -> &Vocabulary {
        self.inner.vocabulary()
    }

    fn draw(&mut self, task: usize, held_out: bool, rng: &mut ChaCha8Rng) -> Sample {
        if let Some(left) = self.left.as_mut().filter(|_| !held_out) {
            *left = left.saturating_sub(1);
            if *left == 0 {
                self.stop.store(true, std::sync::atomic::Ordering::Relaxed);
            }
        }
        self.inner.draw(task, held_out, rng)
    }

    fn attempt(
        &mut self,
        task: usize,
        policy: &Policy<'_>,
        plan: &CorrectionPlan,
        rng: &mut ChaCha8Rng,
    ) -> Option<(Attempted, Vec<Sample>)> {
        self.inner.attempt(task, policy, plan, rng)
    }
}
