//! Grammars without some of their lines.

use std::collections::BTreeSet;

use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

use super::*;

const LETTERS: [u8; 3] = *b"abc";

/// All texts of a finite grammar over the letters and newlines, found byte by byte.
fn texts(grammar: &str) -> BTreeSet<Vec<u8>> {
    let mut plain = automaton(grammar);
    let mut todo = vec![(Vec::new(), plain.start())];

    let mut texts = BTreeSet::new();
    while let Some((text, state)) = todo.pop() {
        for byte in LETTERS.into_iter().chain([b'\n']) {
            if let Some(next) = plain.after(&state, u32::from(byte)) {
                todo.push(([&text[..], &[byte]].concat(), next));
            }
        }

        if plain.is_end(&state) {
            texts.insert(text);
        }
    }
    texts
}

fn last_line(text: &[u8]) -> &[u8] {
    text.rsplit(|byte| *byte == b'\n').next().expect("there is always one")
}

fn random_line(rng: &mut ChaCha8Rng, length_max: usize) -> String {
    let length = rng.random_range(0..=length_max);
    (0..length).map(|_| char::from(*LETTERS.choose(rng).unwrap())).collect()
}

/// Some lines that the texts end with (sometimes all of them), and some that they do not.
fn random_exclusions(rng: &mut ChaCha8Rng, texts: &BTreeSet<Vec<u8>>) -> Vec<String> {
    let share = *[0.2, 0.5, 0.9, 1.0].choose(rng).unwrap();

    let lines: BTreeSet<&[u8]> = texts.iter().map(|text| last_line(text)).collect();
    let mut lines: Vec<String> = lines
        .into_iter()
        .filter(|_| rng.random_bool(share))
        .map(|line| String::from_utf8(line.to_vec()).expect("ASCII"))
        .collect();

    lines.extend((0..rng.random_range(0..3)).map(|_| random_line(rng, 5)));
    lines.push("a\nb".to_owned());
    lines
}

/// Walks to every text that the masks permit, and compares each mask with the texts that continue
/// with one of its tokens.
fn compare(grammar: &str, excluded: &[String], words: &Arc<Vocabulary>, limits: Limits) -> usize {
    compare_prefixed(grammar, excluded, &[], words, limits)
}

/// Like [`compare`], where no last line may begin with one of `barred` either.
fn compare_prefixed(
    grammar: &str,
    excluded: &[String],
    barred: &[String],
    words: &Arc<Vocabulary>,
    limits: Limits,
) -> usize {
    let expected: BTreeSet<Vec<u8>> = texts(grammar)
        .into_iter()
        .filter(|text| excluded.iter().all(|line| line.as_bytes() != last_line(text)))
        .filter(|text| barred.iter().all(|prefix| !last_line(text).starts_with(prefix.as_bytes())))
        .collect();

    let prefixes: BTreeSet<&[u8]> = expected
        .iter()
        .flat_map(|text| (0..=text.len()).map(move |length| &text[..length]))
        .collect();

    let end = words.ends()[0];
    let mut automaton = Automaton::with_limits(grammar, words, limits).expect("a grammar");
    let mut exclusions =
        Exclusions::new(excluded.iter().map(String::as_str), barred.iter().map(String::as_str));
    let start = exclusions.start(&automaton);

    assert_eq!(
        exclusions.is_exhausted(&mut automaton, &start),
        expected.is_empty(),
        "{grammar:?} - {excluded:?} - {barred:?}"
    );

    let mut reached = BTreeSet::new();
    let mut seen = BTreeSet::from([Vec::new()]);
    let mut todo = vec![(Vec::new(), start)];
    let mut long_masks = 0;
    while let Some((text, at)) = todo.pop() {
        let place = format!("{grammar:?} - {excluded:?} - {barred:?} after {text:?}");
        let permitted = exclusions.permitted(&mut automaton, &at);
        long_masks += usize::from(permitted.few().is_none());

        for token in (0..).take(words.len()) {
            let longer = [&text[..], words.piece(token)].concat();
            let fits = if token == end {
                expected.contains(&text)
            } else {
                longer.len() > text.len() && prefixes.contains(&*longer)
            };
            assert_eq!(permitted.contains(token), fits, "{place}: {longer:?}");
        }

        assert_eq!(exclusions.is_end(&automaton, &at), permitted.contains(end), "{place}");

        for token in permitted.iter().filter(|token| *token != end) {
            let longer = [&text[..], words.piece(token)].concat();
            let next = exclusions.after(&mut automaton, &at, token).expect("permitted");
            assert!(!exclusions.is_exhausted(&mut automaton, &next), "{place}: {longer:?}");
            if seen.insert(longer.clone()) {
                todo.push((longer, next));
            }
        }

        let (bytes, forced) = exclusions.forced(&mut automaton, &at);
        let longer = [&text[..], &bytes].concat();
        assert!(expected.is_empty() || prefixes.contains(&*longer), "{place}: forced {bytes:?}");

        assert!(
            expected.is_empty() || !exclusions.is_exhausted(&mut automaton, &forced),
            "{place}"
        );

        if permitted.contains(end) {
            reached.insert(text);
        }
    }

    assert_eq!(reached, expected, "{grammar:?} - {excluded:?} - {barred:?}");
    long_masks
}

/// Every text of one to four letters or newlines is a token.
fn many_tokens() -> Arc<Vocabulary> {
    let mut pieces: Vec<Vec<u8>> = vec![Vec::new()];
    let mut last = pieces.clone();
    for _ in 0..4 {
        let longer =
            last.iter().flat_map(|piece| b"abc\n".map(|byte| [&piece[..], &[byte]].concat()));
        last = longer.collect();
        pieces.extend_from_slice(&last);
    }

    pieces.push(Vec::new());
    let end = u32::try_from(pieces.len() - 1).unwrap();
    Arc::new(Vocabulary::new(pieces, vec![end]))
}

fn random_action(rng: &mut ChaCha8Rng) -> String {
    let words: Vec<String> = (0..rng.random_range(1..6))
        .map(|_| match rng.random_range(0..5) {
            0 => format!("\"{}\" [ab]{{1,2}}", random_line(rng, 2)),
            1 => format!("\"{}\" [abc]? \"b\"", random_line(rng, 2)),
            _ => format!("\"{}\"", random_line(rng, 4)),
        })
        .collect();
    words.join(" | ")
}

#[test]
fn the_texts_are_those_of_the_grammar_less_the_excluded_ones() {
    let mut rng = ChaCha8Rng::seed_from_u64(16);
    let mut long_masks = 0;
    for round in 0..60 {
        let action = random_action(&mut rng);
        let grammar = match round % 3 {
            0 => format!("root ::= {action}"),
            1 => format!("root ::= ([abc]{{0,3}} \"\\n\")? action\naction ::= {action}"),
            _ => format!("root ::= ([ab]{{0,2}} \"\\n\"){{0,2}} action\naction ::= {action}"),
        };

        let excluded = random_exclusions(&mut rng, &texts(&grammar));
        compare(&grammar, &excluded, &bytes(), Limits::default());

        // The same lines, cut short, as prefixes.
        let mut barred = Vec::new();
        for line in excluded.iter().filter(|line| !line.is_empty()) {
            if rng.random_bool(0.5) {
                barred.push(line[..rng.random_range(1..=line.len().min(2))].to_owned());
            }
        }
        compare_prefixed(&grammar, &excluded, &barred, &bytes(), Limits::default());
        compare_prefixed(&grammar, &[], &barred, &many_tokens(), Limits::default());

        // Dropping the states of the automaton must not change those that are known to be live.
        let limits =
            Limits { bytes: if round % 2 == 0 { 0 } else { 1 << 20 }, ..Limits::default() };
        long_masks += compare(&grammar, &excluded, &many_tokens(), limits);
    }

    assert!(long_masks > 20, "masks that are not lists occur: {long_masks}");
}

/// What may follow a newline depends on the line before it: short masks are exact all the same.
#[test]
fn lines_that_depend_on_earlier_ones_have_no_dead_end_where_masks_are_short() {
    let mut rng = ChaCha8Rng::seed_from_u64(17);
    for _ in 0..60 {
        let texts_of = |rng: &mut ChaCha8Rng| -> String {
            let lines = rng.random_range(1..4);
            (0..lines)
                .map(|_| format!("({})", random_action(rng)))
                .collect::<Vec<_>>()
                .join(" \"\\n\" ")
        };
        let grammar = format!("root ::= {} | {}", texts_of(&mut rng), texts_of(&mut rng));

        let excluded = random_exclusions(&mut rng, &texts(&grammar));
        compare(&grammar, &excluded, &bytes(), Limits::default());
    }
}

#[test]
fn without_lines_nothing_changes() {
    let mut automaton = automaton("root ::= [ab]{0,3}");
    for lines in [Vec::new(), vec!["a\nb"]] {
        let mut none = Exclusions::new(lines, []);
        let at = none.start(&automaton);
        let permitted = none.permitted(&mut automaton, &at);
        assert_eq!(
            Arc::as_ptr(&permitted),
            std::ptr::from_ref(automaton.permitted(&automaton.start())),
            "it is shared"
        );

        assert!(!none.is_exhausted(&mut automaton, &at));
    }
}

/// An unlimited number of lines never runs out, and a derivation may quote what is excluded.
#[test]
fn a_derivation_is_free_and_numbers_go_on() {
    let mut automaton =
        automaton("root ::= ([^\\n]* \"\\n\")? \"cmp \" nat\nnat ::= \"0\" | [1-9] [0-9]{0,15}");
    let lines: Vec<String> = (0..20).map(|number| format!("cmp {number}")).collect();
    let mut exclusions = Exclusions::new(lines.iter().map(String::as_str), []);
    for (text, is_taken) in [
        ("cmp 1", false),
        ("cmp 19", false),
        ("cmp 20", true),
        ("cmp 190", true),
        ("cmp 7\ncmp 7", false),
        ("cmp 7\ncmp 77", true),
        ("cmp 77\ncmp 7", false),
        ("é\ncmp 20", true),
    ] {
        let start = exclusions.start(&automaton);
        let at = text.bytes().try_fold(start, |at, byte| {
            let permitted = exclusions.permitted(&mut automaton, &at);
            let next = exclusions.after(&mut automaton, &at, u32::from(byte))?;
            permitted.contains(u32::from(byte)).then_some(next)
        });

        let ends = at.map(|at| exclusions.permitted(&mut automaton, &at).contains(END));
        assert_eq!(ends.unwrap_or(false), is_taken, "{text:?}");
    }

    // `cmp 0` leaves nothing to follow, so the digit itself is barred after the derivation.
    let start = exclusions.start(&automaton);
    let at = "so\ncmp ".bytes().fold(start, |at, byte| {
        exclusions.after(&mut automaton, &at, u32::from(byte)).expect("the grammar's")
    });

    let digits: Vec<u32> = exclusions.permitted(&mut automaton, &at).iter().collect();
    assert_eq!(digits, (u32::from(b'1')..=u32::from(b'9')).collect::<Vec<_>>());
}

/// A model that always prefers the same tokens writes each line of a finite set once, and then
/// there is nothing left.
#[test]
fn a_stubborn_model_tries_every_line_once() {
    let mut rng = ChaCha8Rng::seed_from_u64(18);
    for round in 0..40 {
        let grammar = format!(
            "root ::= ([ab]{{0,2}} \"\\n\")? action\naction ::= {}",
            random_action(&mut rng)
        );
        let lines: BTreeSet<Vec<u8>> =
            texts(&grammar).iter().map(|text| last_line(text).to_vec()).collect();

        let mut automaton = automaton(&grammar);
        let mut preference: Vec<u32> = (0..=END).collect();
        preference.sort_by_cached_key(|_| rng.random::<u32>());
        // It writes a short derivation in every other round.
        preference.retain(|token| round % 2 == 0 || *token != u32::from(b'\n'));
        let mut excluded: Vec<String> = Vec::new();

        loop {
            let mut exclusions = Exclusions::new(excluded.iter().map(String::as_str), []);
            let mut at = exclusions.start(&automaton);
            if exclusions.is_exhausted(&mut automaton, &at) {
                break;
            }

            let mut text = Vec::new();
            loop {
                let permitted = exclusions.permitted(&mut automaton, &at);
                let preferred = preference.iter().copied().find(|token| permitted.contains(*token));
                let token = preferred.or_else(|| permitted.iter().next()).expect("no dead end");
                if token == END {
                    break;
                }
                text.push(u8::try_from(token).expect("a byte"));
                at = exclusions.after(&mut automaton, &at, token).expect("permitted");
            }

            let line = String::from_utf8(last_line(&text).to_vec()).expect("ASCII");
            assert!(!excluded.contains(&line), "{grammar:?}: {line:?} again");
            excluded.push(line);
        }

        assert_eq!(excluded.len(), lines.len(), "{grammar:?}");
    }
}
