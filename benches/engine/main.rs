//! The engine's speed relative to llama.cpp's own, and what caching saves: ratios of interleaved
//! runs, as Markdown tables.
//!
//! `cargo bench -p prime-benches --bench engine` on an idle machine. Options (after `--`):
//! `--model FILE` instead of the shipped model and a random one of 10 million parameters (on a GPU
//! also one of 300 million), `--device CUDA0` or `PRIME_TEST_DEVICE=CUDA0` for a GPU, `--rounds 3`
//! instead of 5, `--short` for a sixth of the tokens, `--sequences 32` for one row only, `--server
//! URL` for the comparison with a server of llama.cpp alone (`scripts/compare-llama-server`),
//! `--drafts` for speculation alone (`scripts/measure-drafts`), `--decode 1,16,64` for nothing but
//! tokens per second, as JSON lines (`scripts/gpu-real-model`).
#![allow(clippy::disallowed_methods, clippy::cast_precision_loss, reason = "it measures")]

mod drafts;
mod plain_loop;
mod server;

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, LazyLock};
use std::time::{Duration, Instant};

use crossbeam_channel::unbounded;
use prime_engine::{
    Device, Engine, EngineSpec, Finish, Format, Isolation, KvPool, Request, Sampling,
};
use prime_engine_testing::TinyModel;

use plain_loop::{PlainText, plain_loop, pool_times};

/// Tokens of a prompt, and of a generation by number of sequences: long where that is cheap, so
/// that ramp-up and tail, when decodes are not full, count little.
const PROMPT: usize = 32;
const LENGTHS: [(usize, usize); 4] = [(1, 480), (8, 480), (32, 240), (128, 60)];
/// The same for a fan-out: a long common prefix, and a short step.
const HEAD: usize = 512;
const FANOUT: usize = 32;
const STEP: usize = 24;

struct Bench {
    model: PathBuf,
    device: Device,
    worker: PathBuf,
    rounds: usize,
    /// Divides the lengths of generations.
    divisor: usize,
    /// If given, only the row with this number of sequences is measured.
    sequences: Option<usize>,
}

/// A duration or a moment, in seconds.
#[derive(Clone, Copy)]
struct Clocks {
    wall: f64,
    /// CPU time of this process and of the engine's worker, which other load on the machine hardly
    /// affects.
    cpu: f64,
}

impl Clocks {
    /// Since a fixed moment.
    fn now(worker: Option<u32>) -> Self {
        static START: LazyLock<Instant> = LazyLock::new(Instant::now);
        Self { wall: START.elapsed().as_secs_f64(), cpu: cpu_seconds(worker) }
    }

    fn since(self, earlier: Self) -> Self {
        Self { wall: self.wall - earlier.wall, cpu: self.cpu - earlier.cpu }
    }
}

/// CPU time of the threads of this process and of the worker.
fn cpu_seconds(worker: Option<u32>) -> f64 {
    let of = |process: String| -> f64 {
        let threads =
            std::fs::read_dir(format!("/proc/{process}/task")).expect("a process that runs");
        let nanos = threads.filter_map(|thread| {
            // A thread may have ended meanwhile.
            let text = std::fs::read_to_string(thread.ok()?.path().join("schedstat")).ok()?;
            text.split(' ').next()?.parse::<u64>().ok()
        });
        nanos.sum::<u64>() as f64 / 1e9
    };
    of("self".to_owned()) + worker.map_or(0.0, |pid| of(pid.to_string()))
}

/// The median of the rounds, and an interval around it.
struct Spread([f64; 3]);

impl Spread {
    /// With six rounds or more, the interval is the distribution-free 95 % confidence interval of
    /// the median: each round is above the true median as likely as below. With fewer, the smallest
    /// and the largest value.
    fn of(mut values: Vec<f64>) -> Self {
        values.sort_unstable_by(f64::total_cmp);
        let from = outside(values.len());
        Self([values[values.len() / 2], values[from], values[values.len() - 1 - from]])
    }

    fn show(&self, digits: usize) -> String {
        let Self([median, least, most]) = self;
        format!("{median:.digits$} ({least:.digits$}–{most:.digits$})")
    }
}

/// Number of the `rounds` sorted values below the 95 % confidence interval of their median: the 2.5
/// % tail of the binomial distribution.
fn outside(rounds: usize) -> usize {
    let mut probability = 0.5_f64.powi(i32::try_from(rounds).expect("few rounds"));
    let mut tail = probability;
    let mut below = 0;

    while tail <= 0.025 {
        below += 1;
        probability *= (rounds + 1 - below) as f64 / below as f64;
        tail += probability;
    }

    below.saturating_sub(1)
}

impl Bench {
    fn spec(
        &self,
        kv: KvPool,
        sequences: usize,
        sequence_tokens: usize,
        isolation: Isolation,
    ) -> EngineSpec {
        let count = u16::try_from(sequences).expect("at most 256");

        EngineSpec {
            model: self.model.clone(),
            device: self.device.clone().into(),
            isolation,
            context_tokens: u32::try_from(sequences * sequence_tokens.next_multiple_of(256))
                .expect("small")
                .max(512),
            sequences_max: count,
            kv,
            batch_tokens: 512,
            worker: Some(self.worker.clone()),
            ..EngineSpec::default()
        }
    }

    /// Alternating rounds of the plain loop and of `measured`, so that both see the same load on
    /// the machine.
    fn side_by_side(
        &self,
        spec: &EngineSpec,
        work: (usize, usize, usize),
        text: PlainText,
        mut measured: impl FnMut() -> Clocks,
    ) -> (Vec<Clocks>, Vec<Clocks>) {
        let (sequences, prompt, tokens) = work;
        let sequences = i32::try_from(sequences).expect("small");
        let plain = EngineSpec { isolation: Isolation::Thread, ..spec.clone() };

        let plain = || {
            let (before, after) =
                plain_loop(&plain, sequences, prompt, tokens, text, || Clocks::now(None))
                    .expect("the model loads");
            after.since(before)
        };
        // The first round warms the engine up and is not counted.
        measured();
        (0..self.rounds).map(|_| (plain(), measured())).unzip()
    }

    fn speed(&self) {
        println!(
            "\nTokens per second of the engine as shares of a plain loop's, by CPU time / by wall time; the loop writes"
        );
        println!(
            "the likeliest token (greedy), what llama.cpp's samplers draw, or drawn letters (grammar); prompts of {PROMPT} tokens, all different:\n"
        );
        println!(
            "| sequences | tokens | KV pool | plain loop, tokens/s | greedy, share | drawn + ln p, share | grammar + drawn + ln p, share | process, share of thread |"
        );
        println!("|---:|---:|---|---:|---:|---:|---:|---:|");

        let wanted =
            |(sequences, _): &(usize, usize)| self.sequences.is_none_or(|only| only == *sequences);

        for (sequences, length) in LENGTHS.into_iter().filter(wanted) {
            let length = length / self.divisor;
            for kv in [KvPool::Shared, KvPool::Split] {
                let spec = self.spec(kv, sequences, PROMPT + length, Isolation::Process);
                let engine = Engine::start(spec.clone()).expect("started");
                let mut row = String::new();
                let mut plain_rate = Vec::new();

                let tokens = (sequences * length) as f64;
                let texts = [PlainText::Likeliest, PlainText::Drawn, PlainText::Letters];
                for (request, text) in kinds(length).into_iter().zip(texts) {
                    let work = (sequences, PROMPT, length);
                    let (plain, ours) = self
                        .side_by_side(&spec, work, text, || turns(&engine, sequences, &request));
                    plain_rate.extend(plain.iter().map(|time| tokens / time.wall));
                    let _ = write!(row, " {} |", self.shares(&plain, &ours));
                }

                let inside = Engine::start(EngineSpec { isolation: Isolation::Thread, ..spec })
                    .expect("started");
                let [request, ..] = kinds(length);
                turns(&inside, sequences, &request);

                let pairs = (0..self.rounds).map(|_| {
                    (turns(&inside, sequences, &request), turns(&engine, sequences, &request))
                });
                let (inside, outside): (Vec<_>, Vec<_>) = pairs.unzip();

                let ratio = self.shares(&inside, &outside);

                println!(
                    "| {sequences} | {length} | {kv:?} | {} |{row} {ratio} |",
                    Spread::of(plain_rate).show(0)
                );
            }
        }
    }

    /// The measured speed as a share of the yardstick's: by CPU time / by wall time.
    fn shares(&self, yardstick: &[Clocks], measured: &[Clocks]) -> String {
        let ratios = |of: fn(&Clocks) -> f64| {
            let pairs = yardstick.iter().zip(measured);
            Spread::of(pairs.map(|(yardstick, measured)| of(yardstick) / of(measured)).collect())
                .show(2)
        };
        let wall = ratios(|clocks| clocks.wall);
        // On a GPU, CPU time says little.
        if self.device == Device::Cpu {
            format!("{} / {wall}", ratios(|clocks| clocks.cpu))
        } else {
            wall
        }
    }

    /// Memory bandwidth, which limits a GPU with a large model and one sequence: each token reads
    /// every weight.
    fn bandwidth(&self) {
        let [(one, length), ..] = LENGTHS;
        let spec = self.spec(KvPool::Shared, one, PROMPT + length, Isolation::Process);
        let engine = Engine::start(spec).expect("started");
        let bytes = std::fs::metadata(&self.model).expect("there").len() as f64;
        let [greedy, ..] = kinds(length);
        // Warms the engine up.
        turns(&engine, 1, &greedy);

        let rates =
            (0..self.rounds).map(|_| bytes * length as f64 / turns(&engine, 1, &greedy).wall / 1e9);
        let rate = Spread::of(rates.collect()).show(1);

        println!(
            "\nWeights read with one sequence, its prompt's time included: {rate} GB/s of {:.2} GB",
            bytes / 1e9
        );
    }

    fn fanout(&self) {
        println!(
            "\nA fan-out of {FANOUT} with a head of {HEAD} tokens (or what the model can read), {STEP} tokens each, against a plain loop that shares nothing:\n"
        );
        println!(
            "| KV pool | head | plain loop, ms | engine, ms | times faster | tokens of prompts computed, of those there are |"
        );
        println!("|---|---:|---:|---:|---:|---:|");

        for kv in [KvPool::Shared, KvPool::Split] {
            let spec = self.spec(kv, FANOUT, HEAD + STEP + 16, Isolation::Process);
            let engine = Engine::start(spec.clone()).expect("started");
            let mut round = 0;

            // A small model may have a shorter context.
            let longest = engine.status().turn_tokens_max as usize;
            let head_tokens = HEAD.min(longest - STEP - 1);

            let (plain, ours) =
                self.side_by_side(&spec, (FANOUT, head_tokens, STEP), PlainText::Likeliest, || {
                    round += 1;
                    // Each round has a head of its own, or it would find the last one's in the
                    // cache. Five tokens are left for the begin token and the turn's four digits.
                    let head: String = format!("{round} ")
                        .chars()
                        .chain(std::iter::repeat('h'))
                        .take(head_tokens - 5)
                        .collect();

                    let requests = (0..FANOUT).map(|turn| Request {
                        prompt: format!("{head}{turn:4}"),
                        ..plain_request(STEP)
                    });
                    timed(&engine, requests.collect())
                });

            let counts = engine.status().counts;
            let computed = counts.prompt_tokens - counts.shared_tokens;

            let faster = Spread::of(
                plain.iter().zip(&ours).map(|(plain, ours)| plain.wall / ours.wall).collect(),
            );

            let millis = |times: Vec<Clocks>| {
                Spread::of(times.into_iter().map(|time| time.wall * 1e3).collect()).show(0)
            };
            let share = counts.prompt_tokens as f64 / computed as f64;

            println!(
                "| {kv:?} | {head_tokens} | {} | {} | {} | 1/{share:.1} |",
                millis(plain),
                millis(ours),
                faster.show(1)
            );
        }
    }

    fn pool(&self) {
        println!(
            "\nFork and rollback of a sequence of {HEAD} tokens, medians of 200, each with the decode of one token after it:\n"
        );
        println!(
            "| KV pool | one token, ms | fork + one token, ms | rollback of 16 + one token, ms |"
        );
        println!("|---|---:|---:|---:|");
        for kv in [KvPool::Shared, KvPool::Split] {
            let spec = self.spec(kv, 8, HEAD + 64, Isolation::Thread);

            let times = pool_times(&spec, HEAD, 200).expect("the model loads");
            let millis = |time: Duration| time.as_secs_f64() * 1e3;
            let (decode, fork, rollback) =
                (millis(times.decode), millis(times.fork), millis(times.rollback));

            println!("| {kv:?} | {decode:.3} | {fork:.3} | {rollback:.3} |");
        }
    }
}

fn plain_request(tokens: usize) -> Request {
    Request {
        prompt: String::new(),
        format: Format::Raw,
        grammar: Some(letters()),
        excluded: Vec::new(),
        excluded_prefixes: Vec::new(),
        stop: None,
        newline_ends: false,
        thinking: prime_engine::Thinking::AsModel,
        sampling: Sampling::GREEDY,
        max_tokens: u32::try_from(tokens).expect("small"),
        logprobs: false,
        ignore_end: true,
        group: 0,
        space: 0,
    }
}

/// Too long to end, so that all texts have the same length.
fn letters() -> Arc<str> {
    "root ::= line line line line line line line line\nline ::= [a-z]{1000}".into()
}

fn kinds(tokens: usize) -> [Request; 3] {
    let drawn = Sampling { temperature: 1.0, top_p: 0.95, seed: 0 };
    let greedy = Request { grammar: None, ..plain_request(tokens) };
    let sampled = Request { sampling: drawn, logprobs: true, ..greedy.clone() };
    [greedy, sampled.clone(), Request { grammar: Some(letters()), ..sampled }]
}

/// The duration of one turn per sequence, all at once.
fn turns(engine: &Engine, sequences: usize, template: &Request) -> Clocks {
    static NEXT: std::sync::atomic::AtomicU64 = std::sync::atomic::AtomicU64::new(0);
    let requests = (0..sequences).map(|_| {
        let seed = NEXT.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        // Nothing in common but the begin token.
        let prompt: String = format!("{seed:x}")
            .chars()
            .rev()
            .chain(std::iter::repeat('p'))
            .take(PROMPT - 1)
            .collect();
        Request { prompt, sampling: Sampling { seed, ..template.sampling }, ..template.clone() }
    });
    timed(engine, requests.collect())
}

fn timed(engine: &Engine, requests: Vec<Request>) -> Clocks {
    let (sender, answers) = unbounded();
    let worker = engine.status().worker_pid;
    let started = Clocks::now(worker);

    for request in requests {
        let sender = sender.clone();
        engine.submit(request, move |result| drop(sender.send(result)));
    }
    // Once all answers are in, this closes the channel and ends the loop.
    drop(sender);

    for result in answers {
        assert_eq!(result.expect("generated").finish, Finish::Length);
    }

    Clocks::now(worker).since(started)
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    // The engines of this program start it again as their worker.
    if arguments.first().is_some_and(|command| command == "engine-worker") {
        std::process::exit(i32::from(
            prime_engine::worker_main() != std::process::ExitCode::SUCCESS,
        ));
    }

    let value =
        |name: &str| arguments.iter().position(|a| a == name).and_then(|at| arguments.get(at + 1));
    let named = std::env::var("PRIME_TEST_DEVICE").ok();
    let device = value("--device").cloned().or(named);
    let device: Device = device.map_or(Device::Cpu, |text| text.parse().expect("a device"));

    // This program is its engines' worker.
    let worker = std::env::current_exe().expect("the path of this program");
    let rounds = value("--rounds").map_or(5, |text| text.parse().expect("a number"));
    let sequences = value("--sequences").map(|text| text.parse().expect("a number"));
    let divisor = if arguments.iter().any(|argument| argument == "--short") { 6 } else { 1 };

    let folder = tempfile::tempdir().expect("a temporary folder");
    let random = folder.path().join("random-10m.gguf");
    TinyModel::TEN_MILLION.write(&random).expect("model written");
    let shipped = std::env::var_os("PRIME_TEST_MODEL").map(PathBuf::from);
    let shipped = shipped
        .unwrap_or_else(|| Path::new(env!("CARGO_MANIFEST_DIR")).join("../models/prime-tiny.gguf"));

    let mut models = vec![shipped, random];
    if device != Device::Cpu {
        let large = folder.path().join("random-300m.gguf");
        TinyModel::LARGE.write(&large).expect("model written");
        models.push(large);
    }

    if let Some(path) = value("--model") {
        models = vec![PathBuf::from(path)];
    }

    for model in models {
        let name =
            model.file_name().map_or_else(String::new, |name| name.to_string_lossy().into_owned());
        let decode = value("--decode");
        if decode.is_none() {
            println!("\n## {name}, {device}, one thread, {rounds} rounds: median (least–most)");
        }
        let bench = Bench {
            model,
            device: device.clone(),
            worker: worker.clone(),
            rounds,
            divisor,
            sequences,
        };

        if let Some(counts) = decode {
            bench.decode(counts);
            continue;
        }
        if arguments.iter().any(|argument| argument == "--drafts") {
            bench.drafts();
            continue;
        }
        if let Some(url) = value("--server") {
            bench.against_server(url);
            continue;
        }

        bench.speed();
        // One row was asked for, so the other tables are left out.
        if sequences.is_some() {
            continue;
        }

        bench.bandwidth();
        bench.fanout();
        bench.pool();
    }
}
