//! What a file's tokenizer says about chats: the template, and the texts of its special tokens.

use std::fs::File;
use std::io::{BufReader, Read, Seek as _, SeekFrom};
use std::ops::Range;
use std::path::Path;

use super::reader::Reader;
use super::{EngineError, GgufError, Header, read};

/// ggml's types of tokens that are read as such only where special tokens are parsed.
const UNKNOWN: u64 = 2;
const CONTROL: u64 = 3;

/// The parts of a file's tokenizer that a chat needs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ChatTokenizer {
    /// The default chat template, Jinja.
    pub template: Option<String>,
    /// Text of the begin-of-text token; empty if there is none.
    pub bos: String,
    /// Text of the end-of-text token; empty if there is none.
    pub eos: String,
    /// Texts of the control tokens.
    pub control: Vec<String>,
}

/// Reads what a chat needs of a file's tokenizer.
///
/// # Errors
/// Those of [`read`].
pub fn read_chat_tokenizer(path: &Path) -> Result<ChatTokenizer, EngineError> {
    let header = read(path)?;
    let path = header.first_part(path);
    // The header was read a moment ago, so any fault now is in the file.
    let damaged = |detail: String| EngineError::ModelTruncated { path: path.to_owned(), detail };
    let file = File::open(path).map_err(|error| EngineError::ModelMissing {
        path: path.to_owned(),
        detail: error.to_string(),
    })?;
    Values { file, header: &header }.chat_tokenizer().map_err(|error| damaged(error.to_string()))
}

/// Metadata values of a file, read by key.
struct Values<'h> {
    file: File,
    header: &'h Header,
}

impl Values<'_> {
    fn chat_tokenizer(&mut self) -> Result<ChatTokenizer, GgufError> {
        let template = match self.reader("tokenizer.chat_template")? {
            Some(mut reader) => reader.text_value()?,
            None => None,
        };
        let kinds = match self.reader("tokenizer.ggml.token_type")? {
            Some(mut reader) => reader.number_list()?,
            None => Vec::new(),
        };
        let id = |values: &mut Self, key: &str| -> Result<Option<u64>, GgufError> {
            match values.reader(key)? {
                Some(mut reader) => reader.number_value(),
                None => Ok(None),
            }
        };
        let bos = id(self, "tokenizer.ggml.bos_token_id")?;
        let eos = id(self, "tokenizer.ggml.eos_token_id")?;

        let mut tokenizer = ChatTokenizer { template, ..ChatTokenizer::default() };
        if let Some(mut reader) = self.reader("tokenizer.ggml.tokens")? {
            let kind = |at: u64| usize::try_from(at).ok().and_then(|at| kinds.get(at).copied());
            reader.each_text(|at, text| {
                // A vocabulary is as long as its file says: only what is needed is kept.
                let is_control = matches!(kind(at), Some(UNKNOWN | CONTROL));
                if is_control || Some(at) == bos || Some(at) == eos {
                    let text = String::from_utf8_lossy(text).into_owned();
                    if Some(at) == bos {
                        tokenizer.bos.clone_from(&text);
                    }
                    if Some(at) == eos {
                        tokenizer.eos.clone_from(&text);
                    }
                    if is_control {
                        tokenizer.control.push(text);
                    }
                }
            })?;
        }
        Ok(tokenizer)
    }

    /// A reader of one value, which begins with its type.
    fn reader(&mut self, key: &str) -> Result<Option<Reader<impl Read>>, GgufError> {
        let Some(Range { start, end }) = self.header.values.get(key).cloned() else {
            return Ok(None);
        };
        let moved = self.file.seek(SeekFrom::Start(start));
        moved.map_err(|error| GgufError::Damaged(error.to_string()))?;
        let length = end.saturating_sub(start);
        Ok(Some(Reader::new(BufReader::new(&self.file).take(length), length)))
    }
}
