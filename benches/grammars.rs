//! The cost of a token under a grammar, mask and step, cold and warm: our automata, the crate
//! llguidance, llama.cpp's sampler. Run on an idle machine:
//! `cargo bench -p prime-benches --bench grammars`.
#![allow(clippy::disallowed_methods, clippy::cast_precision_loss, reason = "it measures")]

use std::collections::HashMap;
use std::hint::black_box;
use std::sync::Arc;
use std::time::{Duration, Instant};

use llguidance::api::TopLevelGrammar;
use llguidance::toktrie::{ApproximateTokEnv, TokEnv, TokRxInfo, TokTrie};
use llguidance::{Matcher, ParserFactory};
use prime_bench::tasks::{self, pattern};
use prime_engine::automaton::{Automaton, State, Vocabulary};
use prime_engine_testing::{END, GrammarSampler, TinyModel};
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

/// The grammar of bubble sort's action lines for llguidance.
const LARK: &str = r#"start: "cmp " NAT " " NAT | "swap " NAT " " NAT | "pass" | "done"
NAT: /0|[1-9][0-9]{0,15}/
"#;

const LINES: [&str; 6] = ["cmp 0 1", "swap 0 1", "cmp 17 18", "swap 1204 1205", "pass", "done"];

/// A way to constrain tokens.
trait Contender {
    /// Starts a line.
    fn start(&mut self);
    /// Computes the whole mask, and whether `token` is in it.
    fn mask(&mut self, token: u32) -> bool;
    fn accept(&mut self, token: u32);
}

struct Ours {
    automaton: Automaton,
    state: State,
}

impl Ours {
    fn new(grammar: &str, vocabulary: &Arc<Vocabulary>) -> Self {
        let automaton = Automaton::new(grammar, vocabulary).expect("a grammar");
        Self { state: automaton.start(), automaton }
    }
}

impl Contender for Ours {
    fn start(&mut self) {
        self.state = self.automaton.start();
    }

    fn mask(&mut self, token: u32) -> bool {
        self.automaton.permitted(&self.state).contains(token)
    }

    fn accept(&mut self, token: u32) {
        self.state = self.automaton.after(&self.state, token).expect("permitted");
    }
}

struct Guidance {
    fresh: Matcher,
    matcher: Matcher,
}

impl Guidance {
    fn new(factory: &ParserFactory) -> Self {
        let fresh =
            Matcher::new(factory.create_parser(TopLevelGrammar::from_lark(LARK.to_owned())));
        Self { matcher: fresh.clone(), fresh }
    }
}

impl Contender for Guidance {
    fn start(&mut self) {
        // Clones share what was computed.
        self.matcher = self.fresh.clone();
    }

    fn mask(&mut self, token: u32) -> bool {
        self.matcher.compute_mask().expect("a mask").is_allowed(token)
    }

    fn accept(&mut self, token: u32) {
        self.matcher.consume_token(token).expect("permitted");
    }
}

struct Llama {
    sampler: GrammarSampler,
    grammar: String,
}

impl Contender for Llama {
    fn start(&mut self) {
        self.sampler.start(&self.grammar).expect("a grammar");
    }

    fn mask(&mut self, token: u32) -> bool {
        self.sampler.mask().get(token as usize).is_some_and(|logit| logit.is_finite())
    }

    fn accept(&mut self, token: u32) {
        self.sampler.accept(token);
    }
}

/// Mean nanoseconds of a mask and of a step, over all tokens of all lines.
fn measure(contender: &mut dyn Contender, lines: &[Vec<u32>], rounds: u32) -> (f64, f64) {
    let (mut masks, mut steps, mut count) = (Duration::ZERO, Duration::ZERO, 0_u32);

    for tokens in (0..rounds).flat_map(|_| lines) {
        contender.start();
        for token in tokens {
            let started = Instant::now();
            let is_permitted = black_box(contender.mask(*token));
            let between = Instant::now();
            assert!(is_permitted, "token {token} of {tokens:?}");
            contender.accept(*token);

            steps += between.elapsed();
            masks += between - started;
            count += 1;
        }
    }

    let mean = |total: Duration| total.as_nanos() as f64 / f64::from(count);
    (mean(masks), mean(steps))
}

fn report(name: &str, lines: &[Vec<u32>], rounds: u32, make: impl FnOnce() -> Box<dyn Contender>) {
    let started = Instant::now();
    let mut contender = make();
    let made = started.elapsed();

    let cold = measure(&mut *contender, lines, 1);
    let warm = measure(&mut *contender, lines, rounds);

    println!(
        "  {name:<12} made in {made:>10.1?}; mask {:>10.0} ns cold {:>8.0} ns warm; step {:>8.0} ns cold {:>7.0} ns warm",
        cold.0, warm.0, cold.1, warm.1
    );
}

/// The bytes, the tiny model's control tokens, and random words.
fn pieces(words: usize) -> Vec<Vec<u8>> {
    let mut rng = ChaCha8Rng::seed_from_u64(3);
    let mut word =
        || (0..rng.random_range(1..=12)).map(|_| rng.random_range(b' '..=b'~')).collect();
    let random: Vec<Vec<u8>> = (0..words).map(|_| word()).collect();

    (0..=u8::MAX)
        .map(|byte| vec![byte])
        .chain([Vec::new(), Vec::new(), Vec::new()])
        .chain(random)
        .collect()
}

/// Tokenizes a line greedily, the longest token first.
fn tokens_of(line: &str, ids: &HashMap<&[u8], u32>) -> Vec<u32> {
    let mut rest = line.as_bytes();

    let mut tokens = Vec::new();
    while !rest.is_empty() {
        let (length, token) = (1..=rest.len())
            .rev()
            .find_map(|length| Some((length, *ids.get(&rest[..length])?)))
            .expect("each byte");
        tokens.push(token);
        rest = &rest[length..];
    }
    tokens
}

fn main() {
    // As a test it need only run.
    let rounds = if std::env::args().any(|argument| argument == "--bench") { 2000 } else { 2 };
    let task = tasks::find("bubble-sort").expect("a task");
    let grammar = format!("root ::= action\n{}", pattern::gbnf(task.spec().actions));

    for random in [0, 128_000] {
        let pieces = pieces(random);
        println!("{} tokens:", pieces.len());

        let ids: HashMap<&[u8], u32> =
            (0..).zip(&pieces).map(|(id, piece)| (&**piece, id)).collect();
        let lines: Vec<Vec<u32>> = LINES.iter().map(|line| tokens_of(line, &ids)).collect();
        let count = u32::try_from(pieces.len()).expect("small");

        // A model's vocabulary is prepared once, which is no cost of a grammar.
        let vocabulary = Arc::new(Vocabulary::new(pieces.clone(), vec![END]));
        let trie = TokTrie::from(&TokRxInfo::new(count, END), &pieces);
        let environment: TokEnv = Arc::new(ApproximateTokEnv::new(trie));
        let mut factory = ParserFactory::new_simple(&environment).expect("a factory");
        factory.quiet();

        report("ours", &lines, rounds, || Box::new(Ours::new(&grammar, &vocabulary)));
        report("llguidance", &lines, rounds, || Box::new(Guidance::new(&factory)));
        // llama.cpp takes the vocabulary from a model, and the tiny one has the bytes only.
        if random == 0 {
            let folder = tempfile::tempdir().expect("a temporary folder");
            let model = folder.path().join("tiny.gguf");
            TinyModel::default().write(&model).expect("model written");
            let sampler = GrammarSampler::new(&model).expect("loaded");
            report("llama.cpp", &lines, rounds, || {
                Box::new(Llama { sampler, grammar: grammar.clone() })
            });
        }
    }
}
