//! What a GGUF file says about itself, and what of it fits here.

use std::collections::BTreeSet;
use std::path::Path;

use prime_engine::gguf::{ChatTokenizer, Header, read_chat_tokenizer, read_model};
use prime_engine::{
    Chat, EngineError, EngineSpec, Fit, TemplateVariables, Thinking, check_chat, check_fit,
    sequence_state_bytes,
};
use serde_json::json;

/// Longest context in tokens that is chosen: longer ones take memory that few runs use.
const CONTEXT_MAX: u32 = 32_768;
/// The context of a file that does not say what it was trained for, in tokens.
const CONTEXT_UNKNOWN: u32 = 4096;
/// Shortest context that an engine takes, in tokens.
const CONTEXT_MIN: u32 = 64;

/// Most and fewest sequences that are chosen automatically.
const SEQUENCES_MAX: u16 = 64;
const SEQUENCES_MIN: u16 = 4;

/// Most memory for the states of all sequences when their number is chosen, in bytes.
const STATES_BYTES_MAX: u64 = 1 << 30;

/// The chat template of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChatTemplateFacts {
    #[default]
    Absent,
    /// It cannot be rendered, for this reason.
    Unusable(String),
    Usable {
        /// The variables that it reads.
        variables: BTreeSet<String>,
        /// True if its text ends inside the model's thinking.
        opens_thinking: bool,
    },
}

/// What is known of a model without loading it.
#[derive(Clone, Debug, Default)]
pub struct ModelFacts {
    pub architecture: String,
    pub header: Header,
    pub tokenizer: ChatTokenizer,
    pub chat_template: ChatTemplateFacts,
    /// In tokens.
    pub trained_context: Option<u64>,
    /// The context that is chosen, in tokens.
    pub context_tokens: u32,
    /// Why it is not the trained one.
    pub context_reason: String,
    /// The memory of an engine with this context, where it fits.
    pub fit: Option<Fit>,
}

impl ModelFacts {
    /// Reads a file, renders its template once in a child process, and looks for the largest
    /// context that fits.
    ///
    /// # Errors
    /// When it is not a model, or fits with no context.
    pub fn of(path: &Path) -> Result<Self, EngineError> {
        let mut facts = Self::without_fit(path)?;
        let fit = facts.find_fit(path)?;
        facts.fit = Some(fit);
        Ok(facts)
    }

    /// Like [`ModelFacts::of`], without the memory.
    pub fn without_fit(path: &Path) -> Result<Self, EngineError> {
        let header = read_model(path)?;
        let tokenizer = read_chat_tokenizer(path)?;
        let chat_template = match &tokenizer.template {
            None => ChatTemplateFacts::Absent,
            Some(_) => template_facts(path),
        };
        let (trained_context, architecture) =
            (header.context_length(), header.architecture.clone());
        Ok(Self {
            architecture,
            header,
            tokenizer,
            chat_template,
            trained_context,
            ..Self::default()
        })
    }

    /// Number of parameters.
    pub fn parameters(&self) -> u64 {
        let elements = |dimensions: &[u64]| dimensions.iter().product::<u64>();
        self.header.tensors.iter().map(|tensor| elements(&tensor.dimensions)).sum()
    }

    /// How many sequences are decoded at once by default. Each takes a state of its own in the
    /// recurrent layers of a model, if it has any.
    pub fn sequences_max(&self) -> u16 {
        let state = sequence_state_bytes(&self.header);
        let most = STATES_BYTES_MAX.checked_div(state).unwrap_or(u64::MAX);
        u16::try_from(most).unwrap_or(u16::MAX).clamp(SEQUENCES_MIN, SEQUENCES_MAX)
    }

    /// Chooses the context.
    fn find_fit(&mut self, path: &Path) -> Result<Fit, EngineError> {
        let trained = self.trained_context.and_then(|trained| u32::try_from(trained).ok());
        let wanted = match trained {
            Some(trained) => trained.clamp(CONTEXT_MIN, CONTEXT_MAX),
            None if self.trained_context.is_some() => CONTEXT_MAX,
            None => CONTEXT_UNKNOWN,
        };
        let sequences_max = self.sequences_max();
        "the most that is chosen automatically".clone_into(&mut self.context_reason);
        let spec = |context_tokens: u32| EngineSpec {
            model: path.to_owned(),
            context_tokens,
            batch_tokens: context_tokens.min(512),
            sequences_max: sequences_max.min(u16::try_from(context_tokens).unwrap_or(u16::MAX)),
            ..EngineSpec::default()
        };

        self.context_tokens = wanted;
        match check_fit(&spec(wanted)) {
            Err(EngineError::WontFit(shortage)) if shortage.context_tokens_max >= CONTEXT_MIN => {
                self.context_tokens = shortage.context_tokens_max;
                "as much as fits into memory".clone_into(&mut self.context_reason);
                check_fit(&spec(self.context_tokens))
            }
            answer => answer,
        }
    }

    /// What a user should know and would not look for.
    pub fn odd(&self) -> Vec<String> {
        let mut odd = Vec::new();
        match &self.chat_template {
            ChatTemplateFacts::Absent => odd.push(
                "it has no chat template: it is a base model, which continues texts and follows \
                 few instructions"
                    .to_owned(),
            ),
            ChatTemplateFacts::Unusable(reason) => odd.push(reason.clone()),
            ChatTemplateFacts::Usable { opens_thinking: true, .. } => {
                odd.push("its template begins the model's thinking: give it room".to_owned());
            }
            ChatTemplateFacts::Usable { .. } => {}
        }
        let others = self.header.values.keys();
        let others: Vec<_> =
            others.filter_map(|key| key.strip_prefix("tokenizer.chat_template.")).collect();
        if !others.is_empty() {
            odd.push(format!(
                "it has further templates, which are not used: {}",
                others.join(", ")
            ));
        }
        if self.tokenizer.eos.is_empty() {
            odd.push("it has no end-of-text token: answers end with max_tokens only".to_owned());
        }
        if self.trained_context.is_none() {
            odd.push("it does not say for which context it was trained".to_owned());
        }
        if self.fit.as_ref().is_some_and(|fit| fit.estimate.state_bytes > 0) {
            odd.push(
                "it has recurrent layers: a prompt that diverges from an earlier one continues \
                 from a saved state (checkpoint_mib)"
                    .to_owned(),
            );
        }
        odd
    }
}

fn template_facts(path: &Path) -> ChatTemplateFacts {
    let unusable = |error: EngineError| ChatTemplateFacts::Unusable(error.to_string());
    let spec = EngineSpec { model: path.to_owned(), ..EngineSpec::default() };
    // In a child process first: afterwards rendering is known to be harmless.
    if let Err(error) = check_chat(&spec) {
        return unusable(error);
    }
    let chat = match Chat::of_file(path, &TemplateVariables::new()) {
        Ok(chat) => chat,
        Err(error) => return unusable(error),
    };
    let sample = json!([{"role": "user", "content": "What is 2 + 3?"}]);
    match chat.text(&sample, None, Thinking::AsModel) {
        Ok(text) => {
            let opens_thinking = chat.form().is_some_and(|form| form.is_opened_by(&text));
            ChatTemplateFacts::Usable {
                variables: chat.template().variables_read(),
                opens_thinking,
            }
        }
        Err(error) => unusable(error),
    }
}

#[cfg(test)]
mod tests {
    use prime_engine::gguf::Tensor;

    use super::*;

    #[test]
    fn models_with_large_states_decode_fewer_sequences_at_once() {
        assert_eq!(ModelFacts::default().sequences_max(), 64);

        // A layer remembers 4 * (3 * (8,192 + 2 * 128) + 128 * 8,192) = 4,295,680 bytes: 32 layers
        // take a seventh of a GiB for each sequence, and 512 take two.
        let of_layers = |layers: u64| {
            let numbers = [
                ("block_count", layers),
                ("ssm.conv_kernel", 4),
                ("ssm.inner_size", 8192),
                ("ssm.state_size", 128),
                ("ssm.group_count", 1),
            ];
            let tensor =
                |layer| Tensor { name: format!("blk.{layer}.ssm_in.weight"), ..Tensor::default() };
            let header = Header {
                architecture: "mamba2".to_owned(),
                numbers: numbers
                    .into_iter()
                    .map(|(key, value)| (format!("mamba2.{key}"), vec![value]))
                    .collect(),
                tensors: (0..layers).map(tensor).collect(),
                ..Header::default()
            };
            ModelFacts { header, ..ModelFacts::default() }.sequences_max()
        };
        assert_eq!([1, 32, 512].map(of_layers), [64, 7, 4]);
    }
}
