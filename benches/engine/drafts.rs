//! What drafts from a turn's own text are worth: the same turns with and without them, in
//! alternating rounds.

use prime_engine::{Engine, EngineSpec, Isolation, KvPool, Request, Speculation};

use super::{Bench, Spread, kinds, timed};

/// Tokens of an answer.
const ANSWER: usize = 96;
/// Numbers of a state, and steps that a prompt shows before the one that is asked for.
const NUMBERS: usize = 14;
const SHOWN: usize = 4;

/// A prompt of a run whose answers repeat the state: steps of a sort, each with the state after it.
fn states(seed: u64) -> String {
    let mut draw = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    let mut number = || {
        draw ^= draw << 13;
        draw ^= draw >> 7;
        draw ^= draw << 17;
        draw % 90 + 10
    };
    let mut state: Vec<u64> = (0..NUMBERS).map(|_| number()).collect();
    let shown = |state: &[u64]| {
        let numbers: Vec<_> = state.iter().map(u64::to_string).collect();
        format!("state: [{}]", numbers.join(", "))
    };

    let mut prompt = format!("Each step swaps two neighbours.\n{}\n", shown(&state));
    for step in 0..SHOWN {
        let at = usize::try_from(number()).expect("small") % (NUMBERS - 1);
        state.swap(at, at + 1);
        prompt += &format!("step {}: swap {at} {}\n{}\n", step + 1, at + 1, shown(&state));
    }
    let at = NUMBERS / 2;
    prompt + &format!("step {}: swap {at} {}\n", SHOWN + 1, at + 1)
}

/// A prompt that gives nothing to draft from, as far as the model does not repeat itself.
fn story(seed: u64) -> String {
    format!("Chapter {seed}. On the {seed}th morning the old keeper of the lighthouse ")
}

impl Bench {
    /// Prints a table.
    pub fn drafts(&self) {
        println!(
            "\nDrafts by n-grams of a turn's own text: all turns at once, likeliest tokens, \
             {ANSWER} tokens each:\n"
        );
        println!(
            "| prompts | turns | without, tokens/s | with, tokens/s | with, share of without | \
             drafted for a token | of them right |"
        );
        println!("|---|---:|---:|---:|---:|---:|---:|");
        let wanted = |turns: &usize| self.sequences.is_none_or(|only| only == *turns);
        let mut seed = 0;
        for (name, prompt) in [("states", states as fn(u64) -> String), ("stories", story)] {
            for turns in [1, 4, 16].into_iter().filter(wanted) {
                let spec = self.spec(KvPool::Shared, turns, 1024, Isolation::Process);
                let [plain, drafting] =
                    [Speculation::None, Speculation::Ngram].map(|speculation| {
                        Engine::start(EngineSpec { speculation, ..spec.clone() }).expect("started")
                    });
                let rate = |engine: &Engine, first: u64| {
                    let [greedy, ..] = kinds(ANSWER / self.divisor);
                    let requests = (0..turns as u64)
                        .map(|turn| Request { prompt: prompt(first + turn), ..greedy.clone() })
                        .collect();
                    (turns * ANSWER / self.divisor) as f64 / timed(engine, requests).wall
                };

                let pairs = (0..=self.rounds).map(|_| {
                    seed += turns as u64;
                    (rate(&plain, seed), rate(&drafting, seed))
                });
                // The first round warms the engines up.
                let (without, with): (Vec<_>, Vec<_>) = pairs.skip(1).unzip();
                let ratios = with.iter().zip(&without).map(|(with, without)| with / without);
                let counts = drafting.status().counts;
                let (drafted, right) = (counts.drafted_tokens, counts.accepted_tokens);
                println!(
                    "| {name} | {turns} | {} | {} | {} | {:.2} | {:.0} % |",
                    Spread::of(without.clone()).show(1),
                    Spread::of(with.clone()).show(1),
                    Spread::of(ratios.collect()).show(2),
                    drafted as f64 / counts.generated_tokens.max(1) as f64,
                    100.0 * right as f64 / drafted.max(1) as f64
                );
            }
        }
    }

    /// Prints a line of JSON for each number of turns: tokens per second of decodes, each round's.
    pub fn decode(&self, counts: &str) {
        let length = LENGTH / self.divisor;
        for turns in counts.split(',').map(|count| count.parse().expect("a number of turns")) {
            let spec = self.spec(KvPool::Shared, turns, super::PROMPT + length, Isolation::Process);
            let engine = Engine::start(spec).expect("started");
            let [greedy, ..] = kinds(length);
            // Warms the engine up.
            super::turns(&engine, turns, &greedy);
            let rates: Vec<String> = (0..self.rounds)
                .map(|_| (turns * length) as f64 / super::turns(&engine, turns, &greedy).wall)
                .map(|rate| format!("{rate:.1}"))
                .collect();
            println!(
                "{{\"what\": \"decode\", \"by\": \"prime-agents\", \"sequences\": {turns}, \
                 \"prompt\": {}, \"tokens\": {length}, \"tokens_per_second\": [{}]}}",
                super::PROMPT,
                rates.join(", ")
            );
        }
    }
}

/// Tokens of a text whose decoding is timed.
const LENGTH: usize = 128;
