//! The engine's automata permit what llama.cpp's sampler permits.
//!
//! llama.cpp also permits bytes that are not UTF-8, the texts of control tokens, and an end inside
//! a character. Ours do not, so there they need only permit a subset.

use prime_bench::tasks::{self, pattern};
use prime_engine::automaton::Automaton;
use prime_engine_testing::{END, GrammarSampler, byte_vocabulary};
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::fixture;

const WALKS: usize = 6;
const TOKENS_MAX: usize = 60;

const GRAMMARS: [&str; 6] = [
    "root ::= ([^\\n]* \"\\n\")? (\"cmp \" [0-9]{1,3} | [a-f]+ \".\")",
    "root ::= v\nv ::= \"[\" (v (\",\" v)*)? \"]\" | \"\\\"\" [^\"]{0,5} \"\\\"\" | [0-9]+",
    "root ::= (\"é\" | [日月] | \"ab\"+ \"c\"?)* \"(\" root? \")\"",
    "root ::= \"a\" root \"b\" | . .? # any\n",
    "root ::= x{2,4} y{2} (\n\"u\" |\n \"v\" )+\nx ::= [\\x41-\\x43_-]\ny ::= x? \"-\"",
    "root ::= \"Proceed\" | \"Retry\" | \"Backtrack\"",
];

#[test]
fn automata_permit_what_llama_cpp_permits() {
    let fixture = fixture();
    let mut sampler = GrammarSampler::new(&fixture.model).expect("loaded");
    let words = byte_vocabulary();
    let actions =
        tasks::all().map(|task| format!("root ::= action\n{}", pattern::gbnf(task.spec().actions)));

    let mut rng = ChaCha8Rng::seed_from_u64(7);
    for grammar in GRAMMARS.into_iter().map(str::to_owned).chain(actions) {
        let mut automaton = Automaton::new(&grammar, &words).expect("a grammar");
        for _ in 0..WALKS {
            sampler.start(&grammar).expect("llama.cpp accepts it");
            let mut state = automaton.start();
            let mut text = Vec::new();

            for step in 0..TOKENS_MAX {
                let ours: Vec<u32> = automaton.permitted(&state).iter().collect();
                let theirs = sampler.permitted();
                let is_whole = std::str::from_utf8(&text).is_ok();
                let is_comparable = |token: &&u32| **token < 128 || **token == END && is_whole;
                assert!(
                    ours.iter().filter(is_comparable).eq(theirs.iter().filter(is_comparable)),
                    "{grammar}\nstep {step}: {ours:?} and {theirs:?}"
                );
                assert!(
                    ours.iter().all(|token| theirs.contains(token)),
                    "{grammar}\nstep {step}: {ours:?}"
                );

                let letters: Vec<u32> = ours.into_iter().filter(|token| *token != END).collect();
                // Mostly ASCII, and a character of several bytes now and then.
                let ascii = &letters[..letters.partition_point(|token| *token < 128)];
                let preferred = if rng.random_bool(0.9) { ascii } else { &letters[..] };
                let Some(token) = preferred.choose(&mut rng).or_else(|| letters.choose(&mut rng))
                else {
                    break;
                };

                text.extend_from_slice(words.piece(*token));
                state = automaton.after(&state, *token).expect("permitted");
                sampler.accept(*token);
            }
        }
    }
}

#[test]
fn what_llama_cpp_refuses_is_refused() {
    let fixture = fixture();
    let mut sampler = GrammarSampler::new(&fixture.model).expect("loaded");
    for grammar in [
        "",
        "a ::= \"x\"",
        "root ::= x",
        "root ::= root \"a\"",
        "root ::= x\nx ::= y \"a\"\ny ::= x",
        "root ::= \"a",
        "root ::= (\"a\"",
        "root ::= \"a\"\n | \"b\"",
        "root ::= \"\\q\"",
        "root ::= \"a\"{2001}",
        "root ::= \"a\"{,2}",
        "root ::= +",
    ] {
        assert!(Automaton::new(grammar, &byte_vocabulary()).is_err(), "{grammar:?}");
        assert!(sampler.start(grammar).is_err(), "{grammar:?}");
    }
}
