//! The engine against llama.cpp's own server, on the same model, file, threads and texts, in
//! alternating rounds.

use std::sync::Mutex;
use std::time::{Duration, Instant};

use reqwest::blocking::{Client, ClientBuilder};
use serde_json::{Value, json};

use prime_engine::{Engine, Isolation, KvPool, Request};

use super::{Bench, Spread, kinds};

/// Words of a prompt without shared prefix, and tokens of its answer.
const WORDS: usize = 160;
const ANSWER: usize = 48;
/// The traffic of a run: trajectories in parallel, each with steps one after another. A prompt is
/// what all have in common, the lines so far and the state.
const TRAJECTORIES: usize = 8;
const STEPS: usize = 40;
const COMMON_WORDS: usize = 560;
const STATE_WORDS: usize = 40;
const LINE: usize = 12;

/// One round's tokens and its duration.
#[derive(Default)]
struct Round {
    prompt: u64,
    computed: u64,
    written: u64,
    time: Duration,
}

impl Round {
    fn written_per_second(&self) -> f64 {
        self.written as f64 / self.time.as_secs_f64()
    }
}

/// Words that differ from seed to seed from the first one on.
fn words(seed: u64, count: usize) -> String {
    const LIST: [&str; 16] = [
        "stone", "river", "count", "left", "move", "seven", "place", "graph", "node", "queue",
        "stack", "right", "value", "table", "state", "black",
    ];
    let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let word = |_| {
        // Xorshift: the texts only have to differ.
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        LIST[usize::try_from(state >> 60).expect("16 values")]
    };
    (0..count).map(word).collect::<Vec<_>>().join(" ")
}

/// What continues a prompt by a given number of tokens: text, prompt tokens, and how many of these
/// it computed.
trait Continues: Sync {
    fn ask(&self, prompt: &str, tokens: usize) -> (String, u64, u64);
}

struct Server {
    client: Client,
    url: String,
    caches: bool,
}

impl Continues for Server {
    fn ask(&self, prompt: &str, tokens: usize) -> (String, u64, u64) {
        let body = json!({
            "prompt": prompt, "n_predict": tokens, "temperature": 0, "ignore_eos": true,
            "cache_prompt": self.caches,
        });
        let request = self.client.post(format!("{}/completion", self.url)).body(body.to_string());
        let text = request.send().and_then(|answer| answer.text()).expect("the server answers");
        let answer: Value = serde_json::from_str(&text).expect("JSON");
        let count = |place: &str| answer.pointer(place).and_then(Value::as_u64).unwrap_or(0);
        assert_eq!(count("/tokens_predicted"), tokens as u64, "{answer}");

        let computed = count("/timings/prompt_n");
        let cached = count("/timings/cache_n");
        (answer["content"].as_str().unwrap_or_default().to_owned(), computed + cached, computed)
    }
}

struct Ours<'e>(&'e Engine);

impl Continues for Ours<'_> {
    fn ask(&self, prompt: &str, tokens: usize) -> (String, u64, u64) {
        let [greedy, ..] = kinds(tokens);
        let (sender, answer) = crossbeam_channel::bounded(1);
        let request = Request { prompt: prompt.to_owned(), ..greedy };
        self.0.submit(request, move |result| drop(sender.send(result)));
        let generation = answer.recv().expect("it answers").expect("generated");
        // The counts of the whole worker are read at the end of the round.
        (generation.text, 0, 0)
    }
}

/// One conversation after another in each of `threads` threads.
fn round(who: &dyn Continues, threads: usize, work: &(dyn Fn(&Asks<'_>, usize) + Sync)) -> Round {
    let total = Mutex::new(Round::default());
    let started = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let asks = Asks { who, total: &total };
            scope.spawn(move || work(&asks, thread));
        }
    });
    let mut total = total.into_inner().expect("no thread panicked");
    total.time = started.elapsed();
    total
}

struct Asks<'a> {
    who: &'a dyn Continues,
    total: &'a Mutex<Round>,
}

impl Asks<'_> {
    fn ask(&self, prompt: &str, tokens: usize) -> String {
        let (text, prompt, computed) = self.who.ask(prompt, tokens);
        let mut total = self.total.lock().expect("no thread panicked");
        total.prompt += prompt;
        total.computed += computed;
        total.written += tokens as u64;
        text
    }
}

/// Adds what the engine's worker counted meanwhile.
fn counted(engine: &Engine, round: impl FnOnce() -> Round) -> Round {
    let before = engine.status().counts;
    let round = round();
    let after = engine.status().counts;
    let prompt = after.prompt_tokens - before.prompt_tokens;
    let shared = after.shared_tokens - before.shared_tokens;
    Round { prompt, computed: prompt - shared, ..round }
}

impl Bench {
    fn engine(&self, sequences: usize, tokens: usize) -> Engine {
        let spec = self.spec(KvPool::Shared, sequences, tokens, Isolation::Process);
        Engine::start(spec).expect("started")
    }

    /// Prints two tables. `url` is a server of the same model with 16 slots.
    pub fn against_server(&self, url: &str) {
        let builder = ClientBuilder::from(prime_http_client::builder(false));
        let client = builder.timeout(None).build().expect("a client");
        let server = |caches| Server { client: client.clone(), url: url.to_owned(), caches };

        println!(
            "\nAgainst llama.cpp's server: all turns at once, prompts of {WORDS} words that share \
             nothing, {ANSWER} tokens each:\n"
        );
        println!("| turns | server, tokens/s | engine, tokens/s | engine, share of server |");
        println!("|---:|---:|---:|---:|");
        let plain = server(false);
        let mut seed = 0;
        for turns in [1, 4, 16] {
            let engine = self.engine(turns, 2 * WORDS + ANSWER);
            let mut one = |who: &dyn Continues| {
                seed += turns as u64;
                let first = seed;
                round(who, turns, &|asks, turn| {
                    drop(asks.ask(&words(first + turn as u64, WORDS), ANSWER));
                })
            };
            one(&Ours(&engine));
            let pairs = (0..self.rounds).map(|_| (one(&plain), one(&Ours(&engine))));
            let (theirs, ours): (Vec<_>, Vec<_>) = pairs.unzip();
            println!("| {turns} | {} |", speeds(&theirs, &ours));
        }

        println!(
            "\n{TRAJECTORIES} trajectories of {STEPS} steps, each prompt {COMMON_WORDS} words that \
             all share, the lines so far and {STATE_WORDS} words of state; {LINE} tokens a line:\n"
        );
        println!(
            "| tokens of a prompt | computed by the server | by the engine | server, tokens/s | \
             engine, tokens/s | engine, share of server |"
        );
        println!("|---:|---:|---:|---:|---:|---:|");
        let caching = server(true);
        let engine = self.engine(TRAJECTORIES, 4 * COMMON_WORDS);
        let mut number = 0;
        let mut one = |who: &dyn Continues| {
            number += 1;
            // Each round has its own texts, so that none profits from an earlier one.
            let (first, common) = (1_000 * number, words(number, COMMON_WORDS));
            round(who, TRAJECTORIES, &|asks, trajectory| {
                let mut lines = String::new();
                for step in 0..STEPS {
                    let state = words(first + (trajectory * STEPS + step) as u64, STATE_WORDS);
                    let prompt = format!("{common}\n{lines}State: {state}\nNext:");
                    let line = asks.ask(&prompt, LINE).replace(char::is_whitespace, " ");
                    lines += &format!("{}\n", line.trim());
                }
            })
        };
        let ours =
            |one: &mut dyn FnMut(&dyn Continues) -> Round| counted(&engine, || one(&Ours(&engine)));
        let rounds = self.rounds.min(3);
        let pairs = (0..rounds).map(|_| (one(&caching), ours(&mut one)));
        let (theirs, ours): (Vec<_>, Vec<_>) = pairs.unzip();
        let share = |rounds: &[Round]| {
            let shares =
                rounds.iter().map(|round| 100.0 * round.computed as f64 / round.prompt as f64);
            Spread::of(shares.collect()).show(1)
        };
        let prompts = (TRAJECTORIES * STEPS) as u64;
        println!(
            "| {} | {} % | {} % | {} |",
            ours[0].prompt / prompts,
            share(&theirs),
            share(&ours),
            speeds(&theirs, &ours)
        );
    }
}

fn speeds(theirs: &[Round], ours: &[Round]) -> String {
    let rates = |rounds: &[Round]| {
        Spread::of(rounds.iter().map(Round::written_per_second).collect()).show(1)
    };
    let ratios = theirs
        .iter()
        .zip(ours)
        .map(|(theirs, ours)| ours.written_per_second() / theirs.written_per_second());
    format!("{} | {} | {}", rates(theirs), rates(ours), Spread::of(ratios.collect()).show(2))
}
