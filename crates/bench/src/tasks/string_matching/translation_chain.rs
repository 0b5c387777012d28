//! Translation Chain: pass a sentence through artificial languages, each with a dictionary and an
//! order of words.
//!
//! A step is one word of a language's output; its line is the word.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserializer, Serializer};

use crate::tasks::pages::translation_chain as page;
use crate::tasks::pattern::{self, Fields};
use crate::tasks::prelude::*;

/// The task `translation-chain`.
pub struct TranslationChain;

const WORDS_MAX: usize = 1_000;
const LANGUAGES_MAX: usize = 100;
const CONSONANTS: &[u8] = b"bdfgklmnprstvz";
const VOWELS: &[u8] = b"aeiou";

/// Four lower-case letters.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Word([u8; 4]);

impl Word {
    fn drawn(rng: &mut TaskRng) -> Self {
        Self([CONSONANTS, VOWELS, CONSONANTS, VOWELS].map(|letters| rng.one_of(letters)))
    }
}

impl fmt::Display for Word {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|letter| write!(f, "{}", char::from(*letter)))
    }
}

impl TryFrom<String> for Word {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let letters = text
            .as_bytes()
            .try_into()
            .ok()
            .filter(|letters: &[u8; 4]| letters.iter().all(u8::is_ascii_lowercase));
        letters
            .map(Self)
            .ok_or_else(|| format!("{text:?} is not a word of four lower-case letters"))
    }
}

impl From<Word> for String {
    fn from(word: Word) -> Self {
        word.to_string()
    }
}

/// The source of the word at each place of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Order {
    /// The same place.
    Keep,
    /// The place counted from the end.
    Reverse,
    /// This many places further on, past the end from the front again.
    Rotate(usize),
    /// The even places, from 0, then the odd ones.
    EvensFirst,
    /// The partner in the pair of places 2m and 2m+1; a last word without one stays.
    SwapPairs,
    /// The last place, then the others in order.
    LastFirst,
}

impl Order {
    fn drawn(words: usize, rng: &mut TaskRng) -> Self {
        match rng.index(6) {
            0 => Self::Keep,
            1 => Self::Reverse,
            2 => Self::Rotate(rng.size(1, words - 1)),
            3 => Self::EvensFirst,
            4 => Self::SwapPairs,
            _ => Self::LastFirst,
        }
    }

    /// The place, of `n`, that output place `i` reads.
    pub fn source(self, i: usize, n: usize) -> usize {
        let evens = n.div_ceil(2);
        match self {
            Self::Reverse => n - 1 - i,
            Self::Rotate(k) => (i + k) % n,
            Self::EvensFirst if i < evens => 2 * i,
            Self::EvensFirst => 2 * (i - evens) + 1,
            // The last of an odd number of words has no partner and stays.
            Self::SwapPairs if (i ^ 1) < n => i ^ 1,
            Self::LastFirst => (i + n - 1) % n,
            Self::Keep | Self::SwapPairs => i,
        }
    }

    /// The words of an output in the order in which they were read.
    fn undone(self, out: &[Word]) -> Vec<Word> {
        let mut words = out.to_vec();
        match self {
            Self::Keep => {}
            Self::Reverse => words.reverse(),
            Self::Rotate(k) => words.rotate_right(k % out.len().max(1)),
            Self::EvensFirst => {
                let (evens, odds) = out.split_at(out.len().div_ceil(2));
                evens.iter().enumerate().for_each(|(place, word)| words[2 * place] = *word);
                odds.iter().enumerate().for_each(|(place, word)| words[2 * place + 1] = *word);
            }
            Self::SwapPairs => words.chunks_exact_mut(2).for_each(|pair| pair.swap(0, 1)),
            Self::LastFirst => words.rotate_left(usize::from(!out.is_empty())),
        }
        words
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Keep => f.write_str("keep"),
            Self::Reverse => f.write_str("reverse"),
            Self::Rotate(k) => write!(f, "rotate {k}"),
            Self::EvensFirst => f.write_str("evens-first"),
            Self::SwapPairs => f.write_str("swap-pairs"),
            Self::LastFirst => f.write_str("last-first"),
        }
    }
}

impl TryFrom<String> for Order {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let rotation =
            || pattern::parse(&["rotate <nat>"], &text).and_then(|(_, fields)| fields.nat(0));
        let fixed = [Self::Keep, Self::Reverse, Self::EvensFirst, Self::SwapPairs, Self::LastFirst];
        fixed
            .into_iter()
            .find(|order| order.to_string() == text)
            .or_else(|| rotation().map(Self::Rotate))
            .ok_or_else(|| format!("{text:?} is not one of keep, reverse, rotate k, evens-first, swap-pairs, last-first"))
    }
}

impl From<Order> for String {
    fn from(order: Order) -> Self {
        order.to_string()
    }
}

/// A language of the chain: its words, and the order in which it puts them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Language {
    /// Name, such as `L1`.
    pub name: String,
    /// New word for each word of the language before, one to one.
    pub dictionary: BTreeMap<Word, Word>,
    /// Order of the output.
    pub order: Order,
}

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// The words of the source, in order.
    pub sentence: Vec<Word>,
    /// The languages, in the order of the chain.
    pub languages: Vec<Language>,
}

/// A language's whole output; one string in JSON.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stage(pub Vec<Word>);

impl<'de> Deserialize<'de> for Stage {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let words = String::deserialize(deserializer)?;
        let words: Result<Vec<Word>, String> =
            words.split(' ').map(|word| Word::try_from(word.to_owned())).collect();
        words.map(Self).map_err(serde::de::Error::custom)
    }
}

impl Serialize for Stage {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer
            .serialize_str(&self.0.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Complete outputs, one for each language so far.
    pub stages: Vec<Stage>,
    /// The words of the output in progress.
    pub out: Vec<Word>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The words that the current language reads.
    pub fn read<'s>(&'s self, instance: &'s Instance) -> &'s [Word] {
        self.stages.last().map_or(&instance.sentence, |stage| &stage.0)
    }
}

/// The next word of the output.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Action(pub Word);

impl TaskAction for Action {
    const FORMS: &'static [&'static str] = &["<[a-z]{4}>"];

    fn read(_: usize, fields: &Fields<'_>) -> Option<Self> {
        Word::try_from(fields.text(0)?.to_owned()).ok().map(Action)
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// Returns whether `part`, in any order, is contained in `whole`.
fn is_sub_multiset(part: &mut [Word], whole: &mut [Word]) -> bool {
    part.sort_unstable();
    whole.sort_unstable();
    let mut rest = whole.iter();
    part.iter().all(|word| rest.any(|other| other == word))
}

impl Task for TranslationChain {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let count = page::size::LANGUAGES.draw(difficulty, rng);
            let words = page::size::WORDS.draw(difficulty, rng);
            let size = page::size::VOCABULARY.draw(difficulty, rng);

            let mut used: Vec<Word> = Vec::with_capacity((count + 1) * size);
            while used.len() < (count + 1) * size {
                let word = Word::drawn(rng);
                if !used.contains(&word) {
                    used.push(word);
                }
            }

            // The words come in random order, so that pairing them by place is a uniform bijection.
            let vocabularies: Vec<&[Word]> = used.chunks(size).collect();
            let sentence = (0..words).map(|_| rng.one_of(vocabularies[0])).collect();
            let languages: Vec<Language> = (1..=count)
                .map(|number| {
                    let pairs = vocabularies[number - 1].iter().zip(vocabularies[number]);
                    let dictionary = pairs.map(|(old, new)| (*old, *new)).collect();
                    Language {
                        name: format!("L{number}"),
                        dictionary,
                        order: Order::drawn(words, rng),
                    }
                })
                .collect();

            if languages.iter().any(|language| language.order != Order::Keep) {
                return Instance { sentence, languages };
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let words = instance.sentence.len();
        let range = format!("has {words} words; give 1 to {WORDS_MAX}");
        InvalidInput::unless((1..=WORDS_MAX).contains(&words), "sentence", range)?;

        let count = instance.languages.len();
        let range = format!("has {count} languages; give 1 to {LANGUAGES_MAX}");
        InvalidInput::unless((1..=LANGUAGES_MAX).contains(&count), "languages", range)?;

        let mut read = instance.sentence.clone();
        for Language { name, dictionary, order } in &instance.languages {
            let small = dictionary.len() <= WORDS_MAX;
            InvalidInput::unless(
                small,
                "languages",
                format!("{name}: the dictionary has more than {WORDS_MAX} words"),
            )?;

            let known = read.iter().all(|word| dictionary.contains_key(word));
            InvalidInput::unless(
                known,
                "languages",
                format!("{name}: the dictionary lacks a word that it is to map"),
            )?;

            let mut values: Vec<Word> = dictionary.values().copied().collect();
            values.sort_unstable();
            values.dedup();
            let distinct = values.len() == dictionary.len();
            InvalidInput::unless(
                distinct,
                "languages",
                format!("{name}: two words have the same translation"),
            )?;

            let rotates = !matches!(order, Order::Rotate(k) if *k >= WORDS_MAX);
            InvalidInput::unless(
                rotates,
                "languages",
                format!("{name}: rotate by less than {WORDS_MAX}"),
            )?;
            // The next language can be given any of these words.
            read = values;
        }
        Ok(())
    }

    fn start(_: &Instance) -> State {
        State { stages: Vec::new(), out: Vec::new(), last: Last(None) }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let words = instance.sentence.len();
        limits::at_most("stages", state.stages.len(), instance.languages.len())?;

        let complete = state.stages.iter().all(|stage| stage.0.len() == words);
        InvalidInput::unless(complete, "stages", format!("must be sentences of {words} words"))?;
        limits::below("out", [state.out.len()], words)
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if state.stages.len() >= instance.languages.len() {
            return Err(Illegal("every language has its output"));
        }

        state.out.push(action.0);
        if state.out.len() == instance.sentence.len() {
            state.stages.push(Stage(std::mem::take(&mut state.out)));
        }
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let language = instance.languages.get(state.stages.len())?;
        let read = state.read(instance);

        // After a wrong word the dictionary may lack it: no action is prescribed then.
        let word =
            language.dictionary.get(&read[language.order.source(state.out.len(), read.len())])?;
        Some(Action(*word))
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let Some(language) = instance.languages.get(before.stages.len()) else { return };
        let is_value = language.dictionary.values().any(|word| *word == action.0);
        found.require(page::VOCABULARY, is_value);

        // The dictionary is one-to-one: instead of mapping the output back, the input is mapped
        // forwards.
        let read = before.read(instance);
        let mut mapped: Vec<Word> =
            read.iter().filter_map(|word| language.dictionary.get(word).copied()).collect();
        let mut out: Vec<Word> = before.out.iter().copied().chain([action.0]).collect();
        found.require(page::MULTISET, is_sub_multiset(&mut out, &mut mapped));

        if after.stages.len() > before.stages.len() {
            let undone = after
                .stages
                .last()
                .map(|stage| language.order.undone(&stage.0))
                .unwrap_or_default();
            let back = |(old, new): (&Word, &Word)| language.dictionary.get(old) == Some(new);
            found.require(
                page::ROUND_TRIP,
                undone.len() == read.len() && read.iter().zip(&undone).all(back),
            );
        }

        let words = instance.sentence.len();
        found.require(page::LENGTH, after.stages.iter().all(|stage| stage.0.len() == words));

        if Self::ended(instance, after) {
            let all = after.stages.len() == instance.languages.len();
            found.require(page::ALL_LANGUAGES, all && after.out.is_empty());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.stages.len() >= instance.languages.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        instance.languages.len() as u64 * instance.sentence.len() as u64
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({ "stages": state.stages, "result": state.stages.last() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn word(text: &str) -> Word {
        Word::try_from(text.to_owned()).expect("a word")
    }

    #[test]
    fn undoing_an_order_restores_the_words() {
        for n in 1..8 {
            let read: Vec<Word> =
                (0..n).map(|place| word(&format!("ab{}c", char::from(b'a' + place)))).collect();
            let n = read.len();
            for order in [
                Order::Keep,
                Order::Reverse,
                Order::Rotate(3),
                Order::EvensFirst,
                Order::SwapPairs,
                Order::LastFirst,
            ] {
                let out: Vec<Word> = (0..n).map(|place| read[order.source(place, n)]).collect();
                assert_eq!(order.undone(&out), read, "{order} of {n}");
            }
        }
    }

    #[test]
    fn exchanged_words_break_the_round_trip() {
        let input = serde_json::from_str(page::SPEC.page.example.input).expect("JSON");
        let instance: Instance = serde_json::from_value(input).expect("an instance");
        let broken = |lines: [&str; 3]| {
            let mut state = TranslationChain::start(&instance);
            let mut found = Violations::NONE;
            for line in lines {
                let before = state.clone();
                let action = Action(word(line));
                TranslationChain::step(&instance, &mut state, action).expect("legal");
                TranslationChain::violations(&instance, &before, &action, &state, &mut found);
            }
            found.iter(&TranslationChain::SPEC).map(|c| c.name).collect::<Vec<_>>()
        };

        assert_eq!(broken(["tula", "mibo", "mibo"]), [""; 0]);
        assert_eq!(broken(["mibo", "tula", "mibo"]), ["round-trip"]);
    }
}
