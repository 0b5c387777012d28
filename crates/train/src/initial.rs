//! Initial weights and their vocabulary, read from a GGUF file that this trainer exported. Any
//! other file is refused with the reason: nothing is guessed.

use std::ops::Range;
use std::path::Path;

use prime_engine::gguf::{self, Header};

use super::{
    TrainError,
    element::Precision,
    gguf::{About, CONTEXT_KEY, TOKENS_KEY, TYPE_ARRAY, TYPE_STRING, metadata, places},
    layout::Layout,
    recipe::{Architecture, Recipe, Words},
    vocabulary::{BASE, Vocabulary},
};

/// The version of the format that this trainer writes.
const VERSION: u32 = 3;

/// Metadata that may differ between files: the name, and the precision, which each tensor states
/// itself.
const FREE_KEYS: [&str; 2] = ["general.name", "general.file_type"];

impl Recipe {
    /// Adopts the words of the initial model, unless the recipe has no such model or lists words
    /// itself.
    ///
    /// # Errors
    /// If the file cannot be read, or is not an export of this trainer.
    pub fn adopt_initial_words(&mut self) -> Result<(), TrainError> {
        if let (Some(path), Words::Frequent(_)) = (&self.init, &self.data.words) {
            let words = words(&read(path)?)
                .map_err(|reason| TrainError::Init { path: path.clone(), reason })?;
            self.data.words = Words::Listed(words);
        }
        Ok(())
    }

    /// The initial weights: those of the file `init`, or random ones. The file's model may have
    /// fewer words and another context.
    pub(crate) fn initial_weights(
        &self,
        layout: &Layout,
        vocabulary: &Vocabulary,
    ) -> Result<Vec<f32>, TrainError> {
        let Some(path) = &self.init else { return Ok(layout.initialize(self.seed)) };
        extended(&read(path)?, layout, vocabulary)
            .map_err(|reason| TrainError::Init { path: path.clone(), reason })
    }
}

/// The policy in a file: its layout, vocabulary and weights.
///
/// # Errors
/// If the file cannot be read, or is not an export of a model of this architecture by this trainer.
pub(crate) fn policy(
    path: &Path,
    model: Architecture,
) -> Result<(Layout, Vocabulary, Vec<f32>), TrainError> {
    policy_of(&read(path)?, model, |reason| TrainError::Init { path: path.to_owned(), reason })
}

/// The policy in the bytes of a file.
///
/// # Errors
/// If they are not an export of a model of this architecture by this trainer: `refuse` turns the
/// reason into an error.
pub(crate) fn policy_of(
    bytes: &[u8],
    model: Architecture,
    refuse: impl Fn(String) -> TrainError,
) -> Result<(Layout, Vocabulary, Vec<f32>), TrainError> {
    let vocabulary = Vocabulary::new(words(bytes).map_err(&refuse)?)?;
    let layout = Layout::new(model, vocabulary.size());
    let weights = weights(bytes, &layout, &vocabulary).map_err(&refuse)?;
    Ok((layout, vocabulary, weights))
}

fn read(path: &Path) -> Result<Vec<u8>, TrainError> {
    std::fs::read(path).map_err(|error| TrainError::Init {
        path: path.to_owned(),
        reason: format!(
            "{error}; train it first if it is a recipe's model (a relative path starts at the working directory)"
        ),
    })
}

/// The flat weights of a file.
///
/// # Errors
/// The reason why the file is not an export of a model of this architecture by this trainer.
pub(crate) fn weights(
    bytes: &[u8],
    layout: &Layout,
    vocabulary: &Vocabulary,
) -> Result<Vec<f32>, String> {
    let header = gguf::parse(bytes).map_err(|error| error.to_string())?;
    if header.version != VERSION {
        return Err(format!(
            "it has version {} of the format, only {VERSION} is supported",
            header.version
        ));
    }

    if let Some(difference) = difference(bytes, &header, layout, vocabulary) {
        return Err(difference);
    }

    let places = places(layout);
    if header.tensors.len() != places.len() {
        return Err(format!(
            "it has {} tensors, and this model has {}",
            header.tensors.len(),
            places.len()
        ));
    }

    let mut weights = vec![0.0; layout.len];
    for place in &places {
        let name = &place.name;
        let tensor = header.tensors.iter().find(|tensor| tensor.name == *name);
        let tensor = tensor.ok_or_else(|| format!("it has no tensor `{name}`"))?;

        if tensor.dimensions != place.dimensions() {
            return Err(format!("its tensor `{name}` has another shape"));
        }

        let precision = Precision::of_code(tensor.kind);
        let precision =
            precision.ok_or_else(|| format!("its tensor `{name}` is not f32, f16 or q8_0"))?;
        let data = precision
            .decode(slice(bytes, &(tensor.offset..tensor.offset.saturating_add(tensor.bytes))));

        if !data.iter().all(|weight| weight.is_finite()) {
            return Err(format!("its tensor `{name}` has a weight that is not finite"));
        }

        let target = &mut weights[place.span()];
        if data.len() != target.len() {
            return Err(format!(
                "its tensor `{name}` has {} weights instead of {}",
                data.len(),
                target.len()
            ));
        }
        target.copy_from_slice(&data);
    }
    Ok(weights)
}

/// The flat weights of a file for a model with more words. A new word begins as the mean of the
/// tokens that stood for it.
///
/// # Errors
/// The errors of [`weights`], except that the context may differ; also if a word of the file is
/// missing.
fn extended(bytes: &[u8], layout: &Layout, vocabulary: &Vocabulary) -> Result<Vec<f32>, String> {
    let header = gguf::parse(bytes).map_err(|error| error.to_string())?;
    let context = header.values.get(CONTEXT_KEY).and_then(|place| number(slice(bytes, place)));
    let context = context.map_or(layout.architecture.context, |context| context as usize);
    let architecture = Architecture { context, ..layout.architecture };

    let known = words(bytes).ok().and_then(|words| Vocabulary::new(words).ok());
    let Some(known) = known else {
        return weights(bytes, &Layout::new(architecture, vocabulary.size()), vocabulary);
    };

    if let Some(lost) = known.words().iter().find(|word| !vocabulary.words().contains(word)) {
        return Err(format!(
            "its vocabulary has the word {lost:?}, which data.words lacks: list all its words there, or leave the key out"
        ));
    }

    let own = Layout::new(architecture, known.size());
    let found = weights(bytes, &own, &known)?;
    let (embedding, rest) = found.split_at(own.embedding.end);

    let d_model = architecture.d_model;
    let (bases, rows) = embedding.split_at(BASE * d_model);
    let row = |token: usize| &embedding[token * d_model..][..d_model];
    let mut weights = bases.to_vec();

    for word in vocabulary.words() {
        match known.words().iter().position(|other| other == word) {
            Some(place) => weights.extend(&rows[place * d_model..][..d_model]),
            None => {
                let tokens = known.encode(word);
                let mean = |column| {
                    tokens.iter().map(|token| row(usize::from(*token))[column]).sum::<f32>()
                };
                weights.extend((0..d_model).map(|column| mean(column) / tokens.len() as f32));
            }
        }
    }

    weights.extend(rest);
    Ok(weights)
}

/// The words of a file's vocabulary, in the order of their tokens.
///
/// # Errors
/// The reason why the file is not an export of this trainer.
fn words(bytes: &[u8]) -> Result<Vec<String>, String> {
    let header = gguf::parse(bytes).map_err(|error| error.to_string())?;
    let place = header.values.get(TOKENS_KEY);

    let place = place.ok_or_else(|| {
        format!("it has no `{TOKENS_KEY}`: only a file that this trainer exported can be used")
    })?;

    let tokens = strings(slice(bytes, place));
    let words = tokens.as_ref().and_then(|tokens| tokens.get(BASE..));

    words
        .map(<[String]>::to_vec)
        .ok_or_else(|| format!("its `{TOKENS_KEY}` is not a vocabulary of this trainer"))
}

/// The strings of an array that [`Metadata::strings`] has written, with its types and length.
///
/// [`Metadata::strings`]: super::gguf::Metadata::strings
fn strings(value: &[u8]) -> Option<Vec<String>> {
    let types = [TYPE_ARRAY.to_le_bytes(), TYPE_STRING.to_le_bytes()].concat();
    let (count, mut rest) = value.strip_prefix(&types[..])?.split_first_chunk()?;

    let mut strings = Vec::new();
    for _ in 0..u64::from_le_bytes(*count) {
        let (len, after) = rest.split_first_chunk()?;
        let (text, after) =
            after.split_at_checked(usize::try_from(u64::from_le_bytes(*len)).ok()?)?;
        strings.push(std::str::from_utf8(text).ok()?.to_owned());
        rest = after;
    }

    Some(strings)
}

/// The bytes in a range; none if the file is too short.
fn slice<'b>(bytes: &'b [u8], range: &Range<u64>) -> &'b [u8] {
    let (start, end) = (usize::try_from(range.start), usize::try_from(range.end));
    start.ok().zip(end.ok()).and_then(|(start, end)| bytes.get(start..end)).unwrap_or_default()
}

/// Describes the first key whose value is not what this trainer would have written.
fn difference(
    bytes: &[u8],
    header: &Header,
    layout: &Layout,
    vocabulary: &Vocabulary,
) -> Option<String> {
    let expected = metadata(About::from(""), layout, vocabulary, Precision::F32);
    for (key, wanted) in expected.entries().iter().filter(|(key, _)| !FREE_KEYS.contains(key)) {
        let Some(place) = header.values.get(*key) else {
            return Some(format!(
                "it has no `{key}`: only a file that this trainer exported can be used"
            ));
        };

        let value = slice(bytes, place);
        if value != wanted {
            return Some(match (number(value), number(wanted)) {
                (Some(value), Some(wanted)) => {
                    format!("its `{key}` is {value}, and the recipe's model has {wanted}: the architectures must agree")
                }
                _ if *key == TOKENS_KEY => {
                    "its vocabulary differs from the recipe's data.words: list all its words there, or leave the key out"
                        .to_owned()
                }
                _ => format!("its `{key}` differs from what this trainer writes"),
            });
        }
    }
    None
}

/// The value of a key of type u32.
fn number(value: &[u8]) -> Option<u32> {
    let bytes = value.strip_prefix(&4u32.to_le_bytes())?;
    bytes.try_into().ok().map(u32::from_le_bytes)
}

#[cfg(test)]
mod tests {
    use super::super::gguf::encode;
    use super::super::recipe::Data;
    use super::*;

    const SMALL: Architecture =
        Architecture { d_model: 32, layers: 2, heads: 4, ff: 48, context: 128 };

    #[test]
    fn what_was_exported_is_read_back() {
        let (layout, vocabulary) = (Layout::new(SMALL, 259), Vocabulary::default());
        let written = layout.initialize(3);
        assert_eq!(
            weights(
                &encode("a", &layout, &vocabulary, &written, Precision::F32),
                &layout,
                &vocabulary
            )
            .as_ref(),
            Ok(&written)
        );

        let halves = weights(
            &encode("another", &layout, &vocabulary, &written, Precision::F16),
            &layout,
            &vocabulary,
        )
        .expect("an export");

        let largest = written.iter().zip(&halves).map(|(a, b)| (a - b).abs()).fold(0.0, f32::max);
        assert!(largest > 0.0 && largest < 1e-3, "{largest}");
    }

    #[test]
    fn a_model_gets_more_words_and_another_context() {
        let vocabulary = |words: &[&str]| {
            Vocabulary::new(words.iter().map(|word| (*word).to_owned()).collect())
                .expect("a vocabulary")
        };
        let (few, more) = (vocabulary(&["cmp ", "so"]), vocabulary(&["so", "new=", "cmp "]));
        let layout = Layout::new(SMALL, few.size());
        let before = layout.initialize(3);

        let file = encode("a", &layout, &few, &before, Precision::F32);
        let longer = Layout::new(Architecture { context: 256, ..SMALL }, more.size());
        let after = extended(&file, &longer, &more).expect("its words are there");

        assert_eq!(after.len(), longer.len);
        assert_eq!(after[longer.embedding.end..], before[layout.embedding.end..]);
        let row = |weights: &[f32], token: usize| weights[token * 32..][..32].to_vec();
        assert_eq!(after[..BASE * 32], before[..BASE * 32]);
        // In both vocabularies `cmp ` is the first of the longest, and `so` the last word.
        assert_eq!(
            [row(&after, BASE), row(&after, BASE + 2)],
            [row(&before, BASE), row(&before, BASE + 1)]
        );

        let letters: Vec<_> = "new=".bytes().map(|byte| row(&before, byte.into())).collect();
        for (column, weight) in row(&after, BASE + 1).into_iter().enumerate() {
            let mean = letters.iter().map(|letter| letter[column]).sum::<f32>() / 4.0;
            assert!((weight - mean).abs() < 1e-6, "column {column}");
        }

        let message =
            extended(&file, &longer, &vocabulary(&["so"])).expect_err("a word is missing");
        assert!(message.contains("list all its words"), "{message}");
    }

    #[test]
    fn the_verifiers_recipe_starts_from_the_shipped_executor() {
        let mut recipe =
            Recipe::from_toml(include_str!("../../../models/prime-tiny-verifier.toml"))
                .expect("a recipe");
        recipe.init =
            Some(concat!(env!("CARGO_MANIFEST_DIR"), "/../../models/prime-tiny.gguf").into());
        recipe.adopt_initial_words().expect("an export");
        let Words::Listed(words) = recipe.data.words.clone() else {
            panic!("no words were adopted")
        };

        let vocabulary = Vocabulary::new(words).expect("words");
        let layout = Layout::new(recipe.model, vocabulary.size());
        let weights = recipe.initial_weights(&layout, &vocabulary).expect("an export");
        assert!(weights.iter().any(|weight| weight.abs() > 0.1));

        let mut listed = Recipe {
            data: Data { words: Words::Listed(vec!["cmp ".to_owned()]), ..Data::default() },
            ..recipe
        };
        listed.adopt_initial_words().expect("it lists its words");
        assert_eq!(listed.data.words, Words::Listed(vec!["cmp ".to_owned()]));

        let other = Vocabulary::new(vec!["cmp ".to_owned()]).expect("a word");
        let refused = listed.initial_weights(&Layout::new(listed.model, other.size()), &other);
        assert!(
            refused.is_err_and(|error| error.to_string().contains("vocab")),
            "another vocabulary"
        );
    }

    #[test]
    fn anything_else_is_refused_with_the_reason() {
        let (layout, vocabulary) = (Layout::new(SMALL, 259), Vocabulary::default());
        let file = encode("a", &layout, &vocabulary, &layout.initialize(3), Precision::F16);

        let refused =
            |bytes: &[u8]| weights(bytes, &layout, &vocabulary).expect_err("not of this model");

        for foreign in [&b"PK\x03\x04"[..], b"", &file[..3]] {
            assert!(refused(foreign).starts_with("not a GGUF file"), "{}", refused(foreign));
        }

        for len in [30, 4_000, file.len() - 64] {
            assert!(
                refused(&file[..len]).starts_with("truncated or damaged"),
                "{len} bytes: {}",
                refused(&file[..len])
            );
        }

        for (architecture, part) in [
            (
                Architecture { layers: 3, ..SMALL },
                "its `llama.block_count` is 3, and the recipe's model has 2",
            ),
            (Architecture { ff: 64, ..SMALL }, "its `llama.feed_forward_length` is 64"),
            (Architecture { heads: 2, ..SMALL }, "its `llama.attention.head_count` is 2"),
        ] {
            let other = Layout::new(architecture, 259);
            let message =
                refused(&encode("a", &other, &vocabulary, &other.initialize(3), Precision::F16));
            assert!(message.contains(part), "{message}");
        }

        let at = file.windows(10).position(|window| window == b"token_embd").expect("named");
        let mut renamed = file.clone();
        renamed[at] = b'x';
        assert_eq!(refused(&renamed), "it has no tensor `token_embd.weight`");

        let mut endless = file.clone();
        endless[16..24].copy_from_slice(&u64::MAX.to_le_bytes());
        assert!(refused(&endless).starts_with("truncated or damaged"), "a count that no file has");

        let mut older = file.clone();
        older[4] = 2;
        assert_eq!(refused(&older), "it has version 2 of the format, only 3 is supported");
    }
}
