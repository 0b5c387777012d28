//! Alphabet, accepting states and word of the automata that read a word.

use crate::tasks::TaskRng;
use crate::tasks::task::InvalidInput;

/// The longest word that a user may give.
pub const LENGTH_MAX: usize = 1_000_000;

/// Each state accepts with probability `numerator / denominator`.
pub fn draw_accepting(
    states: usize,
    numerator: u64,
    denominator: u64,
    rng: &mut TaskRng,
) -> Vec<usize> {
    (0..states).filter(|_| rng.chance(numerator, denominator)).collect()
}

/// Returns whether some states accept and some do not.
pub fn separates(accept: &[usize], states: usize) -> bool {
    (1..states).contains(&accept.len())
}

/// `length` uniform letters of an ASCII alphabet.
pub fn draw_word(alphabet: &str, length: usize, rng: &mut TaskRng) -> String {
    (0..length).map(|_| char::from(rng.one_of(alphabet.as_bytes()))).collect()
}

/// Checks that the alphabet is a list of distinct printable ASCII characters.
///
/// # Errors
/// Names the field.
pub fn validate_alphabet(field: &'static str, alphabet: &str) -> Result<(), InvalidInput> {
    let letters = alphabet.as_bytes();
    let distinct = letters.iter().enumerate().all(|(place, c)| !letters[..place].contains(c));
    let plain = !letters.is_empty() && letters.iter().all(u8::is_ascii_graphic);
    InvalidInput::unless(plain && distinct, field, "must be distinct ASCII letters")
}

/// Checks that start and accepting states exist.
///
/// # Errors
/// Names the field.
pub fn validate_states(states: usize, start: usize, accept: &[usize]) -> Result<(), InvalidInput> {
    InvalidInput::unless(start < states, "start", format!("must be below {states}"))?;
    let ascending = accept.is_sorted_by(|a, b| a < b) && accept.iter().all(|q| *q < states);
    InvalidInput::unless(ascending, "accept", "must be states in ascending order, each once")
}

/// Checks that the word has 1 to [`LENGTH_MAX`] letters, all of the alphabet.
///
/// # Errors
/// Names the field.
pub fn validate_word(word: &str, alphabet: &str) -> Result<(), InvalidInput> {
    let known = word.bytes().all(|c| alphabet.as_bytes().contains(&c));
    InvalidInput::unless(known, "word", "every letter must be in the alphabet")?;

    // Known letters are ASCII, so the bytes count the letters.
    let length = word.len();
    InvalidInput::unless(
        (1..=LENGTH_MAX).contains(&length),
        "word",
        format!("has {length} letters; give 1 to {LENGTH_MAX}"),
    )
}
