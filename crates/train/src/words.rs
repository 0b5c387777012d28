//! Chooses the words of the samples that become tokens: those that save the most bytes. Knows no
//! tasks.

use std::collections::BTreeMap;

use rand_chacha::{ChaCha8Rng, rand_core::SeedableRng};

use super::{Samples, TrainError, recipe::Words, vocabulary::Vocabulary};

/// Number of samples per task whose words are counted.
const SAMPLES: usize = 400;

/// Minimum count of a word of the notation. A rarer run of letters is data, such as a spelled path
/// or a word to be read.
const FREQUENT: usize = 3;

/// The vocabulary for these samples, always the same for one recipe.
///
/// # Errors
/// If listed words cannot be tokens.
pub fn vocabulary(samples: &mut dyn Samples, words: &Words) -> Result<Vocabulary, TrainError> {
    let count = match words {
        Words::Listed(words) => return Vocabulary::new(words.clone()),
        Words::Frequent(0) => return Ok(Vocabulary::default()),
        Words::Frequent(count) => *count,
    };

    let mut texts = Vec::new();
    for task in 0..samples.tasks().len() {
        let mut rng = ChaCha8Rng::seed_from_u64(0);
        rng.set_stream(task as u64);
        // A task's words depend on its own stream alone.
        samples.begin_pool();
        for _ in 0..SAMPLES {
            let sample = samples.draw(task, false, &mut rng);
            texts.push(sample.prompt + &sample.completion);
        }
    }

    // Training must not continue with the traces of these draws.
    samples.begin_pool();
    Vocabulary::new(frequent_words(&texts, count))
}

/// At most `count` words of the texts. A word is a run of letters, hyphens between them included,
/// with the space, `=` or `:` after it. Words that also occur inside rarer runs are taken for data,
/// whose letters stay tokens of their own.
pub fn frequent_words(texts: &[String], count: usize) -> Vec<String> {
    let mut words: BTreeMap<&str, usize> = BTreeMap::new();
    for run in texts.iter().flat_map(|text| runs(text)) {
        *words.entry(run).or_default() += 1;
    }

    let (mut frequent, rare): (Vec<_>, Vec<_>) =
        words.into_iter().partition(|(_, times)| *times >= FREQUENT);
    frequent.retain(|(word, _)| !rare.iter().any(|(other, _)| other.contains(letters(word))));
    // Words that save the most bytes come first.
    frequent.sort_by_key(|(word, times)| std::cmp::Reverse((word.len() - 1) * times));

    let mut chosen: Vec<String> = Vec::new();
    for (word, _) in frequent {
        if chosen.len() == count {
            break;
        }
        chosen.push(word.to_owned());
        // Words of one length that overlap have no defined order and are refused.
        if Vocabulary::new(chosen.clone()).is_err() {
            chosen.pop();
        }
    }

    chosen
}

fn letters(word: &str) -> &str {
    word.trim_end_matches([' ', '=', ':'])
}

/// Runs of two or more letters.
fn runs(text: &str) -> impl Iterator<Item = &str> {
    let bytes = text.as_bytes();
    let mut start = 0;
    std::iter::from_fn(move || {
        while start < bytes.len() {
            let is_part = |at: usize| {
                bytes[at].is_ascii_alphabetic()
                    || (bytes[at] == b'-'
                        && at > start
                        && bytes[at - 1].is_ascii_alphabetic()
                        && bytes.get(at + 1).is_some_and(u8::is_ascii_alphabetic))
            };
            let mut end = start;
            while end < bytes.len() && is_part(end) {
                end += 1;
            }

            if end - start < 2 {
                start = end.max(start + 1);
                continue;
            }

            if bytes.get(end).is_some_and(|byte| matches!(byte, b' ' | b'=' | b':')) {
                end += 1;
            }

            let run = &text[start..end];
            start = end;
            return Some(run);
        }
        None
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_takes_the_separator_behind_it() {
        let found: Vec<_> = runs("comb-sort n=012 cmp 03 -0012 lt\ncmp b -x é swapped=1").collect();
        assert_eq!(found, ["comb-sort ", "cmp ", "lt", "cmp ", "swapped="]);
    }

    #[test]
    fn what_saves_most_is_chosen_and_data_is_not() {
        let mut texts: Vec<String> =
            (0..1_000).map(|index| format!("tree-sort cmp {index} up path LR\n")).collect();
        texts.extend(["LRRL", "RLR"].map(str::to_owned));
        assert_eq!(frequent_words(&texts, 3), ["tree-sort ", "path ", "cmp "]);
        assert!(!frequent_words(&texts, 10).iter().any(|word| word.starts_with("LR")));
    }
}
