//! Reads the GGUF file of a LoRA adapter, and checks that it fits a model.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::path::Path;

use super::finite::first_not_finite;
use super::reader::Reader;
use super::{EngineError, GgufError, Header, Tensor, open_regular, read};

const TOKENS: &str = "adapter.alora.invocation_tokens";
/// This program's key: the template of the prompts that it was trained on.
const PROMPT: &str = "prime_agents.prompt";
/// ggml's type of a list in metadata, and of an unsigned number of 32 bits.
const ARRAY: u32 = 9;
const U32: u32 = 4;

const A: &str = ".lora_a";
const B: &str = ".lora_b";
/// llama.cpp skips such tensors of an adapter.
const NORM: &str = "_norm.weight";
/// Its adapter is applied to rows of a table, so its matrices are transposed.
const EMBEDDING: &str = "token_embd.weight";

/// A LoRA adapter: the product of two narrow matrices for each matrix that it changes.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct AdapterFile {
    /// The architecture of its model, such as `llama`.
    pub architecture: String,
    /// Its name, if the file states one.
    pub name: Option<String>,
    /// The model that it was trained on, if the file states one.
    pub base: Option<String>,
    /// The template of the prompts that it was trained on, if the file states one, such as
    /// `compact`.
    pub prompt: Option<String>,
    /// The scale's numerator: the product is multiplied by it and divided by the rank. 0 leaves it
    /// as it is.
    pub alpha: f32,
    /// Tokens from which on it is applied, if it is an activated LoRA (aLoRA).
    pub invocation_tokens: Vec<u64>,
    /// The matrices that it changes, with the rank of each.
    pub ranks: BTreeMap<String, u64>,
    /// Size of its tensors, in bytes.
    pub bytes: u64,
    header: Header,
}

/// The halves of a matrix's adapter.
#[derive(Default)]
struct Pair<'t> {
    a: Option<&'t Tensor>,
    b: Option<&'t Tensor>,
}

/// Returns whether a file with this header says that it is an adapter.
pub(super) fn is_adapter(path: &Path, header: &Header) -> bool {
    let kind = || Values { file: open_regular(path).ok()?, header }.text("general.type").ok()?;
    kind().as_deref() == Some("adapter")
}

/// Reads an adapter's header, and checks that it is one and that its values are finite.
///
/// # Errors
/// [`EngineError::AdapterMissing`].
pub fn read_adapter(path: &Path) -> Result<AdapterFile, EngineError> {
    let missing = |detail: String| EngineError::AdapterMissing { path: path.to_owned(), detail };
    let header = read(path).map_err(|error| {
        missing(match error {
            EngineError::ModelMissing { detail, .. } => detail,
            EngineError::ModelForeign { found, .. } => {
                format!("it is not a GGUF file of version 2 or 3: found {found}")
            }
            EngineError::ModelTruncated { detail, .. } => {
                format!("it is truncated or damaged: {detail}")
            }
            error => error.to_string(),
        })
    })?;
    let file = open_regular(path).map_err(|error| missing(error.to_string()))?;
    let found = Values { file, header: &header }.adapter();
    let mut adapter = found.map_err(|error| missing(error.to_string()))?.map_err(missing)?;

    let ranks = pairs(&header).map_err(missing)?.into_iter().map(|(name, pair)| {
        let narrow = if name.ends_with(EMBEDDING) { pair.b.dimensions[0] } else { pair.rank() };
        (name, narrow)
    });
    adapter.ranks = ranks.collect();
    adapter.bytes = header.tensors.iter().fold(0, |all, tensor| all.saturating_add(tensor.bytes));
    let mut file = open_regular(path).map_err(|error| missing(error.to_string()))?;
    let damaged = first_not_finite(&mut file, &header.tensors);
    if let Some(tensor) = damaged.map_err(|error| missing(error.to_string()))? {
        return Err(missing(format!(
            "its tensor {} has a value that is infinite or not a number, with which a model writes \
             nothing: its training has diverged, train it again with a lower learning rate",
            tensor.name
        )));
    }
    adapter.header = header;
    Ok(adapter)
}

/// Both halves of a matrix's adapter.
struct Halves<'t> {
    a: &'t Tensor,
    b: &'t Tensor,
}

impl Halves<'_> {
    fn rank(&self) -> u64 {
        length(self.a, 1)
    }
}

/// The length of a tensor in a dimension; 1 beyond those that it has.
fn length(tensor: &Tensor, dimension: usize) -> u64 {
    tensor.dimensions.get(dimension).copied().unwrap_or(1)
}

/// The adapters of matrices, by the matrix's name.
fn pairs(header: &Header) -> Result<BTreeMap<String, Halves<'_>>, String> {
    let mut found: BTreeMap<String, Pair<'_>> = BTreeMap::new();
    for tensor in &header.tensors {
        let name = tensor.name.as_str();
        if let Some(of) = name.strip_suffix(A) {
            found.entry(of.to_owned()).or_default().a = Some(tensor);
        } else if let Some(of) = name.strip_suffix(B) {
            found.entry(of.to_owned()).or_default().b = Some(tensor);
        } else if !name.ends_with(NORM) {
            return Err(format!(
                "tensor {name} is not part of a LoRA adapter, whose tensors end in {A} and {B}; \
                 other kinds of adapters are not supported"
            ));
        }
    }
    if found.is_empty() {
        return Err("it has no tensors".to_owned());
    }

    let mut all = BTreeMap::new();
    for (name, pair) in found {
        let halves = match (pair.a, pair.b) {
            (Some(a), Some(b)) => Halves { a, b },
            (None, _) => return Err(format!("tensor {name}{A} is missing")),
            (_, None) => return Err(format!("tensor {name}{B} is missing")),
        };
        all.insert(name, halves);
    }
    Ok(all)
}

impl AdapterFile {
    /// The smallest and the largest rank.
    pub fn rank_range(&self) -> (u64, u64) {
        let ranks = || self.ranks.values().copied();
        (ranks().min().unwrap_or(0), ranks().max().unwrap_or(0))
    }

    /// Returns whether it fits a model.
    ///
    /// # Errors
    /// The first thing that does not, and what to do.
    pub fn check(&self, model: &Header) -> Result<(), String> {
        if self.architecture != model.architecture {
            return Err(format!(
                "it is for models of architecture `{}`, and this one is `{}`: use the model that \
                 it was trained on",
                self.architecture, model.architecture
            ));
        }

        let tensors: BTreeMap<&str, &Tensor> =
            model.tensors.iter().map(|tensor| (tensor.name.as_str(), tensor)).collect();
        for (name, Halves { a, b }) in pairs(&self.header)? {
            let Some(base) = tensors.get(name.as_str()) else {
                return Err(format!(
                    "it changes {name}, which the model does not have: use the model that it was \
                     trained on"
                ));
            };
            // Compared as llama.cpp does. Ranks and the number of experts, too: with wrong ones it
            // would abort in a decode.
            let (rows, columns, ranks) = if name.ends_with(EMBEDDING) {
                (length(b, 1), length(a, 1), (length(a, 0), length(b, 0)))
            } else {
                (length(a, 0), length(b, 1), (length(a, 1), length(b, 0)))
            };
            let fits = (rows, columns) == (length(base, 0), length(base, 1));
            if !fits {
                return Err(format!(
                    "it changes {name} as a matrix of {rows} x {columns}, and the model's has {} x \
                     {}: use the model that it was trained on",
                    length(base, 0),
                    length(base, 1)
                ));
            }
            if ranks.0 != ranks.1 {
                return Err(format!(
                    "the halves of its {name} have ranks {} and {}: convert the adapter again",
                    ranks.0, ranks.1
                ));
            }
            let experts = [a, b].map(|half| length(half, 2));
            if experts != [length(base, 2); 2] || [a, b].iter().any(|half| length(half, 3) != 1) {
                return Err(format!(
                    "its {name} is for {} experts, and the model has {}: use the model that it was \
                     trained on",
                    experts[0],
                    length(base, 2)
                ));
            }
        }
        Ok(())
    }
}

/// Metadata values of a file, read by key.
struct Values<'h> {
    file: File,
    header: &'h Header,
}

impl Values<'_> {
    /// What the metadata say; the inner error is a file that is not an adapter.
    fn adapter(&mut self) -> Result<Result<AdapterFile, String>, GgufError> {
        let kind = self.text("general.type")?;
        if kind.as_deref() != Some("adapter") {
            let found = kind.map_or("nothing".to_owned(), |kind| format!("`{kind}`"));
            return Ok(Err(format!(
                "it is not an adapter: its general.type says {found} instead of `adapter`; convert \
                 adapters with convert_lora_to_gguf.py of llama.cpp"
            )));
        }
        let kind = self.text("adapter.type")?;
        if kind.as_deref() != Some("lora") {
            let found = kind.map_or("nothing".to_owned(), |kind| format!("`{kind}`"));
            return Ok(Err(format!("its adapter.type says {found}, and only `lora` is supported")));
        }

        let alpha = match self.reader("adapter.lora.alpha")? {
            None => 0.0,
            Some(mut reader) => match reader.real_value()? {
                Some(alpha) if alpha.is_finite() => alpha,
                _ => {
                    return Ok(Err(
                        "its adapter.lora.alpha is not a finite 32-bit real number".to_owned()
                    ));
                }
            },
        };

        let types = match self.reader(TOKENS)? {
            None => None,
            Some(mut reader) => Some((reader.u32()?, reader.u32()?)),
        };
        // llama.cpp reads a list of any other type as one of this type.
        if types.is_some_and(|types| types != (ARRAY, U32)) {
            return Ok(Err(format!("its {TOKENS} is not a list of 32-bit numbers")));
        }
        let invocation_tokens = match self.reader(TOKENS)? {
            None => Vec::new(),
            Some(mut reader) => reader.number_list()?,
        };

        let prompt = self.text(PROMPT)?;
        if prompt.is_none() && self.header.values.contains_key(PROMPT) {
            return Ok(Err(format!("its {PROMPT} is not a text: export the adapter again")));
        }

        Ok(Ok(AdapterFile {
            architecture: self.header.architecture.clone(),
            name: self.text("general.name")?,
            base: self.text("general.base_model.0.name")?,
            prompt,
            alpha,
            invocation_tokens,
            ..AdapterFile::default()
        }))
    }

    fn text(&mut self, key: &str) -> Result<Option<String>, GgufError> {
        match self.reader(key)? {
            Some(mut reader) => reader.text_value(),
            None => Ok(None),
        }
    }

    /// A reader of the value of a key; none if there is no such key.
    fn reader(&mut self, key: &str) -> Result<Option<Reader<impl Read>>, GgufError> {
        let Some(range) = self.header.values.get(key) else { return Ok(None) };
        let damaged = |error: std::io::Error| GgufError::Damaged(error.to_string());
        self.file.seek(SeekFrom::Start(range.start)).map_err(damaged)?;
        let size = range.end - range.start;
        Ok(Some(Reader::new(BufReader::new((&self.file).take(size)), size)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor(name: &str, dimensions: &[u64]) -> Tensor {
        Tensor { name: name.to_owned(), dimensions: dimensions.to_vec(), ..Tensor::default() }
    }

    fn adapter(tensors: &[(&str, &[u64])]) -> AdapterFile {
        let tensors = tensors.iter().map(|(name, dimensions)| tensor(name, dimensions)).collect();
        let architecture = "llama".to_owned();
        AdapterFile {
            header: Header { tensors, ..Header::default() },
            architecture,
            ..AdapterFile::default()
        }
    }

    fn model() -> Header {
        Header {
            architecture: "llama".to_owned(),
            tensors: vec![
                tensor("q.weight", &[64, 32]),
                tensor("ffn_up_exps.weight", &[64, 96, 8]),
                tensor("token_embd.weight", &[64, 1000]),
            ],
            ..Header::default()
        }
    }

    #[test]
    fn shapes_are_those_of_the_model_with_a_rank_between() {
        for (tensors, wrong) in [
            (&[("q.weight.lora_a", &[64, 4][..]), ("q.weight.lora_b", &[4, 32])][..], None),
            // The table of embeddings is transposed.
            (
                &[("token_embd.weight.lora_a", &[4, 1000]), ("token_embd.weight.lora_b", &[4, 64])],
                None,
            ),
            (
                &[
                    ("ffn_up_exps.weight.lora_a", &[64, 4, 8]),
                    ("ffn_up_exps.weight.lora_b", &[4, 96, 8]),
                ],
                None,
            ),
            (
                &[
                    ("ffn_up_exps.weight.lora_a", &[64, 4, 7]),
                    ("ffn_up_exps.weight.lora_b", &[4, 96, 7]),
                ],
                Some("for 7 experts, and the model has 8"),
            ),
            (
                &[("q.weight.lora_a", &[64, 4]), ("q.weight.lora_b", &[5, 32])],
                Some("the halves of its q.weight have ranks 4 and 5"),
            ),
            (
                &[("q.weight.lora_a", &[63, 4]), ("q.weight.lora_b", &[4, 32])],
                Some("q.weight as a matrix of 63 x 32, and the model's has 64 x 32"),
            ),
            (&[("q.weight.lora_a", &[64, 4])], Some("tensor q.weight.lora_b is missing")),
            (&[("q.weight.lora_b", &[4, 32])], Some("tensor q.weight.lora_a is missing")),
            (&[("q.weight", &[64, 32])], Some("tensor q.weight is not part of a LoRA adapter")),
            (&[("q_norm.weight", &[64])], Some("it has no tensors")),
            (&[], Some("it has no tensors")),
            (
                &[("v.weight.lora_a", &[64, 4]), ("v.weight.lora_b", &[4, 32])],
                Some("it changes v.weight, which the model does not have"),
            ),
        ] {
            let found = adapter(tensors).check(&model());
            match wrong {
                None => assert_eq!(found, Ok(()), "{tensors:?}"),
                Some(wrong) => {
                    let found = found.expect_err("refused");
                    assert!(found.contains(wrong), "{found}");
                }
            }
        }
    }

    #[test]
    fn an_adapter_says_what_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.gguf");
        let tiny = prime_engine_testing::TinyModel::default();
        let written = prime_engine_testing::TinyAdapter::default();
        written.write(&tiny, &path).unwrap();

        let found = read_adapter(&path).unwrap();
        assert_eq!((found.architecture.as_str(), found.alpha), ("llama", 8.0));
        assert_eq!(found.name.as_deref(), Some("tiny random adapter"));
        // Query, value and down projections of two layers.
        assert_eq!((found.ranks.len(), found.rank_range()), (6, (4, 4)));
        // Width 64 and hidden width 128, with four bytes a value.
        assert_eq!(found.bytes, 2 * 4 * 4 * (4 * 64 + 64 + 128));
        assert!(found.invocation_tokens.is_empty() && found.prompt.is_none());

        let with_prompt = |prompt| {
            let prompt = Some(prompt);
            let adapter = prime_engine_testing::TinyAdapter { prompt, ..written.clone() };
            adapter.write(&tiny, &path).unwrap();
            read_adapter(&path)
        };
        let named = with_prompt(prime_engine_testing::Value::Text("step".to_owned())).unwrap();
        assert_eq!(named.prompt.as_deref(), Some("step"));
        let error = with_prompt(prime_engine_testing::Value::Real(1.0)).unwrap_err().to_string();
        assert!(error.contains("its prime_agents.prompt is not a text"), "{error}");

        let model = prime_engine_testing::TinyAdapter { kind: "model".to_owned(), ..written };
        model.write(&tiny, &path).unwrap();
        let error = read_adapter(&path).unwrap_err().to_string();
        assert!(error.contains("its general.type says `model` instead of `adapter`"), "{error}");
    }
}
