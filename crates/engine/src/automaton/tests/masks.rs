//! Token masks.

use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::*;

#[test]
fn masks_are_those_of_the_tokens_that_fit() {
    let words = vocabulary(&["a", "ab", "abc", "b", "c", "bc", "", "ab", "x", "cab"]);
    let mut automaton = Automaton::new("root ::= \"ab\" [cd]* \"!\"?", &words).expect("a grammar");

    let start = automaton.start();
    let permitted = automaton.permitted(&start);
    assert_eq!(
        permitted.few(),
        Some(&[0, 1, 2, 7][..]),
        "the end is far, and a token without text is never permitted"
    );
    assert_eq!((permitted.len(), permitted.only(), permitted.is_empty()), (4, None, false));
    assert!(
        permitted.contains(2)
            && !permitted.contains(6)
            && !permitted.contains(64)
            && !permitted.contains(u32::MAX)
    );

    let a = automaton.after(&start, 0).expect("permitted");
    assert_eq!(automaton.permitted(&a).few(), Some(&[3, 5][..]));

    let ab = automaton.after(&a, 3).expect("permitted");
    assert_eq!(Some(&ab), automaton.after(&start, 7).as_ref(), "one state for one text");

    assert_eq!(automaton.permitted(&ab).few(), Some(&[4, 10][..]), "here it may end");
    assert_eq!(automaton.after(&ab, 10), None, "nothing comes after the end");
    assert_eq!(
        (automaton.after(&ab, 6), automaton.after(&ab, 11), automaton.after(&ab, 0)),
        (None, None, None)
    );
}

#[test]
fn without_a_fitting_token_the_mask_is_empty() {
    let words = vocabulary(&["a", "b"]);
    let mut automaton = Automaton::new("root ::= \"a\" \"!\"", &words).expect("a grammar");
    let start = automaton.start();

    assert_eq!(automaton.permitted(&start).only(), Some(0));
    let a = automaton.after(&start, 0).expect("permitted");
    assert!(automaton.permitted(&a).is_empty() && automaton.permitted(&a).iter().next().is_none());
}

#[test]
fn the_texts_of_end_tokens_are_ignored() {
    let pieces = ["a", "b", "<end>", ""].map(|piece| piece.as_bytes().to_vec()).to_vec();
    let words = Arc::new(Vocabulary::new(pieces, vec![3, 2, 2, 9]));
    assert_eq!(
        (words.len(), words.ends(), words.piece(0), words.piece(2)),
        (4, &[2, 3][..], &b"a"[..], &b""[..])
    );

    let mut automaton = Automaton::new("root ::= \"a\" | \"<end>\"", &words).expect("a grammar");
    let start = automaton.start();
    assert_eq!(automaton.permitted(&start).few(), Some(&[0][..]));

    let a = automaton.after(&start, 0).expect("permitted");
    assert_eq!(automaton.permitted(&a).few(), Some(&[2, 3][..]));
}

#[test]
fn an_empty_vocabulary_permits_nothing() {
    let mut automaton =
        Automaton::new("root ::= \"a\"", &Arc::new(Vocabulary::new(Vec::new(), Vec::new())))
            .unwrap();
    assert!(automaton.permitted(&automaton.start()).is_empty());
}

/// Random tokens over the characters of the grammars below, including parts of characters.
fn random_vocabulary(rng: &mut ChaCha8Rng, count: usize) -> (Vec<Vec<u8>>, Arc<Vocabulary>) {
    let alphabet = "ab(){}[]\",:0123456789 \n-é日😀truefalsnull".as_bytes();
    let mut pieces: Vec<Vec<u8>> = (0..=u8::MAX).map(|byte| vec![byte]).collect();
    pieces.extend(
        (0..count).map(|_| {
            (0..rng.random_range(0..=8)).map(|_| *alphabet.choose(rng).unwrap()).collect()
        }),
    );

    let end = u32::try_from(pieces.len()).unwrap();
    let all = pieces.iter().cloned().chain([Vec::new()]).collect();
    (pieces, Arc::new(Vocabulary::new(all, vec![end])))
}

const GRAMMARS: [&str; 5] = [
    "root ::= ([^\\n]* \"\\n\")? action\naction ::= \"a\" \" \" nat | nat \"/\" nat\n\
     nat ::= \"0\" | [1-9] [0-9]{0,15}",
    "root ::= [^\\n]{1,9} \"\\n\" .*",
    "root ::= v\nv ::= \"[\" (v (\",\" v)*)? \"]\" | \"{\" (s \":\" v)* \"}\" | s | \
     [0-9]+ | \"true\"\ns ::= \"\\\"\" [^\"]* \"\\\"\"",
    "root ::= ([é日] | \"a\" | \"ab\")* \"(\" root \")\" | \"b\"",
    "root ::= \"a\"* \"b\"? [0-9 ]{2,4} [a-z]*",
];

/// The mask, computed token by token: each by its bytes after the text, in an automaton over single
/// bytes.
fn brute_force(pieces: &[Vec<u8>], plain: &mut Automaton, text: &[u8]) -> Vec<u32> {
    let here = after(plain, text).expect("the text was permitted");
    let mut fits = |piece: &Vec<u8>| {
        let end =
            piece.iter().try_fold(here.clone(), |at, byte| plain.after(&at, u32::from(*byte)));
        !piece.is_empty() && end.is_some()
    };

    let mut permitted: Vec<u32> =
        (0..).zip(pieces).filter(|(_, piece)| fits(piece)).map(|(id, _)| id).collect();

    if plain.is_end(&here) {
        permitted.push(u32::try_from(pieces.len()).unwrap());
    }
    permitted
}

/// Compares the masks along random walks through a grammar.
fn compare(grammar: &str, limits: Limits, seed: u64) {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let (pieces, words) = random_vocabulary(&mut rng, 700);
    let mut automaton = Automaton::with_limits(grammar, &words, limits).expect("a grammar");
    let mut plain = self::automaton(grammar);

    for _ in 0..6 {
        let mut state = automaton.start();
        let mut text = Vec::new();
        for _ in 0..8 {
            let expected = brute_force(&pieces, &mut plain, &text);
            let permitted = automaton.permitted(&state);
            assert_eq!(
                permitted.iter().collect::<Vec<_>>(),
                expected,
                "{grammar:?} after {text:?}"
            );

            assert_eq!(permitted.len(), expected.len());
            assert_eq!(permitted.few(), (expected.len() <= 64).then_some(&*expected));

            let Some(token) = expected.choose(&mut rng) else { break };
            match automaton.after(&state, *token) {
                Some(next) => state = next,
                None => break,
            }
            text.extend_from_slice(&pieces[*token as usize]);
        }
    }
}

#[test]
fn masks_equal_those_of_brute_force() {
    for (seed, grammar) in (1..).zip(GRAMMARS) {
        compare(grammar, Limits::default(), seed);
    }
}

#[test]
fn masks_stay_correct_when_memory_is_short() {
    for (seed, grammar) in (11..).zip(GRAMMARS) {
        compare(grammar, Limits { bytes: 0, ..Limits::default() }, seed);
    }
}
