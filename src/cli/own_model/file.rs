//! What is chosen for a GGUF file.

use std::path::{Path, absolute};

use anyhow::Context as _;

use prime_engine::gguf::read_adapter;

use super::idle_cores::idle_cores;
use super::{Chosen, NAME, set};
use crate::cli::model::facts::{ChatTemplateFacts, ModelFacts};
use crate::cli::output::count;
use prime_service::app::cores;

/// Tokens of a proposal under a grammar, which ends by itself.
const TOKENS_OF_ACTION: u32 = 256;
/// Tokens of the thinking before an action, where a model always thinks.
const TOKENS_OF_THINKING: u32 = 2048;
/// Milliseconds without progress: a large model on a CPU needs minutes for a long prompt.
const DEADLINE_MS: u32 = 600_000;
/// A model with fewer parameters is not shown the list of constraints: SmolLM2-135M takes no more
/// right steps with it, and reads twice as long (docs/real-models.md).
const PARAMETERS_MIN_FOR_CONSTRAINTS: u64 = 1_000_000_000;
/// Most threads that compute a prompt: more cores are seldom all free.
const PROMPT_THREADS_MAX: usize = 16;

/// Tokens of a line of reasoning and an action, as adapters for `compact` are trained to write.
const TOKENS_OF_LESSON: u32 = 1024;
/// The prompt of our own models' lessons, which the adapters of models/adapters are trained on.
const LESSON: &str = "compact";
/// The prompt of models that follow instructions.
const STEP: &str = "step";

/// The prompts that an adapter was trained on, by its file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Trained {
    Lesson,
    Step,
}

impl Trained {
    /// # Errors
    /// The file names a prompt that this version does not know.
    fn of(prompt: Option<&str>) -> anyhow::Result<Option<Self>> {
        match prompt {
            None => Ok(None),
            Some(LESSON) => Ok(Some(Self::Lesson)),
            Some(STEP) => Ok(Some(Self::Step)),
            Some(other) => anyhow::bail!(
                "its metadata `prime_agents.prompt` name the prompt `{}`, and this version knows \
                 `{LESSON}` and `{STEP}`: export the adapter again with the right --prompt, or \
                 configure model and adapter in a file given by --config",
                prime_printable::printable_line(other)
            ),
        }
    }
}

/// The options for a file, and for an adapter if it has one.
///
/// # Errors
/// When a file is not a model or not an adapter, the template cannot be rendered, or the model does
/// not fit into memory.
pub(super) fn chosen(path: &Path, adapter: Option<&Path>) -> anyhow::Result<Chosen> {
    let path = absolute(path).with_context(|| format!("--model {}", path.display()))?;
    let facts = ModelFacts::of(&path).context("--model")?;
    let adapter = adapter.map(read_adapter).transpose().context("--adapter")?;
    let trained = Trained::of(adapter.as_ref().and_then(|adapter| adapter.prompt.as_deref()));
    let trained = trained.context("--adapter")?;
    // Prompts are long, and nothing else works while a large model computes one.
    let prompt_threads = idle_cores(cores()).min(PROMPT_THREADS_MAX);
    of_facts(&path.to_string_lossy(), &facts, prompt_threads, trained)
}

fn of_facts(
    path: &str,
    facts: &ModelFacts,
    prompt_threads: usize,
    trained_on: Option<Trained>,
) -> anyhow::Result<Chosen> {
    let engine = |key: &str| format!("engines.{NAME}.{key}");
    let executor = |key: &str| format!("agents.executor.{key}");
    let context = facts.context_tokens;
    let mut sets = vec![
        set(&engine("model"), path),
        set(&engine("context_tokens"), context),
        set(&engine("batch_tokens"), context.min(512)),
        set(&engine("sequences_max"), context.min(u32::from(facts.sequences_max()))),
        set(&engine("prompt_threads"), prompt_threads),
        set(&engine("deadline_ms"), DEADLINE_MS),
        set(&engine("start_timeout_ms"), DEADLINE_MS),
        set(&executor("implementation"), "llama"),
        set(&executor("engine"), NAME),
        set(&executor("history"), "window"),
        set(&executor("feedback"), "explained"),
    ];

    let (how, prompt, thinks) = match &facts.chat_template {
        ChatTemplateFacts::Absent => {
            ("no chat template in the file, so it completes a text", "complete", false)
        }
        ChatTemplateFacts::Unusable(reason) => {
            anyhow::bail!(
                "--model {path}: {reason}; or set chat_template = false of the executor in a file \
                 given by --config, which makes the model complete a text"
            )
        }
        ChatTemplateFacts::Usable { variables, opens_thinking } => {
            sets.push(set(&executor("chat_template"), true));
            // Thinking takes most of the time: a model that can be told not to think is told.
            if variables.contains("enable_thinking") {
                sets.push(set(&executor("thinking"), "off"));
                ("its own chat template, thinking off", STEP, false)
            } else {
                ("its own chat template", STEP, *opens_thinking)
            }
        }
    };
    let (prompt, derive, tokens) = match trained_on {
        Some(Trained::Lesson) => (LESSON, "always", TOKENS_OF_LESSON),
        Some(Trained::Step) => (STEP, "never", TOKENS_OF_ACTION),
        None => (prompt, "never", TOKENS_OF_ACTION),
    };
    let is_small = facts.parameters() < PARAMETERS_MIN_FOR_CONSTRAINTS;
    // An adapter for this prompt was trained with the list.
    let is_listed = prompt != STEP || trained_on.is_some() || !is_small;
    if !is_listed {
        sets.push(set(&executor("constraints"), false));
    }
    let unlisted = if is_listed { "" } else { " without the list of constraints" };
    let max_tokens = tokens.min((context / 4).max(1));
    let budget = TOKENS_OF_THINKING.min((context / 4).max(1));
    let held = if thinks {
        sets.push(set(&executor("thinking"), budget));
        format!("lines held to the task's grammar after at most {budget} tokens of thinking")
    } else {
        "lines held to the task's grammar".to_owned()
    };
    sets.extend([
        set(&executor("prompt"), prompt),
        set(&executor("grammar"), true),
        set(&executor("derive"), derive),
        set(&executor("max_tokens"), max_tokens),
    ]);

    let trained = match facts.trained_context {
        Some(trained) if trained == u64::from(context) => "as trained".to_owned(),
        Some(trained) => format!("of {trained} trained, {}", facts.context_reason),
        None => "the file does not say what it was trained for".to_owned(),
    };
    let line = format!(
        "model {path}: {}, {how}, prompt `{prompt}`{}{unlisted}, {held}, at most {max_tokens} tokens a line, \
         context of {context} tokens ({trained}), prompts on {}; --set overrides each (engines.{NAME}, \
         agents.executor)",
        facts.architecture,
        if trained_on.is_some() { " as the adapter was trained" } else { "" },
        count(prompt_threads as u64, "core")
    );
    Ok(Chosen { sets, line })
}

#[cfg(test)]
mod tests {
    use prime_engine::gguf::Tensor;

    use super::*;

    fn facts(chat_template: ChatTemplateFacts, trained: Option<u64>, context: u32) -> ModelFacts {
        ModelFacts {
            architecture: "llama".to_owned(),
            chat_template,
            trained_context: trained,
            context_tokens: context,
            context_reason: "as much as fits into memory".to_owned(),
            ..ModelFacts::default()
        }
    }

    fn usable(variables: &[&str], opens_thinking: bool) -> ChatTemplateFacts {
        let variables = variables.iter().map(|name| (*name).to_owned()).collect();
        ChatTemplateFacts::Usable { variables, opens_thinking }
    }

    #[test]
    fn a_chat_model_gets_its_template_and_a_base_model_a_text_to_complete() {
        let chat =
            of_facts("/m.gguf", &facts(usable(&[], false), Some(8192), 8192), 2, None).unwrap();
        for expected in [
            "engines.model.model=\"/m.gguf\"",
            "engines.model.context_tokens=8192",
            "engines.model.prompt_threads=2",
            "agents.executor.chat_template=true",
            "agents.executor.prompt=\"step\"",
            "agents.executor.grammar=true",
            "agents.executor.max_tokens=256",
            "agents.executor.feedback=\"explained\"",
        ] {
            assert!(chat.sets.iter().any(|set| set == expected), "{expected}: {:?}", chat.sets);
        }
        assert!(
            chat.line.contains("context of 8192 tokens (as trained), prompts on 2 cores"),
            "{}",
            chat.line
        );
        assert!(!chat.line.contains('\n'));

        let base =
            of_facts("/m.gguf", &facts(ChatTemplateFacts::Absent, None, 2048), 1, None).unwrap();
        assert!(base.sets.iter().any(|set| set == "agents.executor.prompt=\"complete\""));
        assert!(!base.sets.iter().any(|set| set.contains("chat_template")), "{:?}", base.sets);
    }

    #[test]
    fn a_small_model_does_not_get_the_list_of_constraints() {
        let of_size = |elements: u64| {
            let mut facts = facts(usable(&[], false), Some(8192), 8192);
            facts.header.tensors =
                vec![Tensor { dimensions: vec![1_000, elements], ..Tensor::default() }];
            of_facts("/m.gguf", &facts, 1, None).unwrap()
        };
        let without = "agents.executor.constraints=false";

        let small = of_size(999_999);
        assert!(small.sets.iter().any(|set| set == without), "{:?}", small.sets);
        assert!(small.line.contains("`step` without the list of constraints,"), "{}", small.line);
        let large = of_size(1_000_000);
        assert!(!large.sets.iter().any(|set| set == without), "{:?}", large.sets);
        assert!(!large.line.contains("without the list"), "{}", large.line);
    }

    #[test]
    fn an_adapter_for_our_prompts_gets_them() {
        let facts = facts(usable(&[], false), Some(8192), 8192);
        let chosen = of_facts("/m.gguf", &facts, 1, Some(Trained::Lesson)).unwrap();
        for expected in [
            "agents.executor.chat_template=true",
            "agents.executor.prompt=\"compact\"",
            "agents.executor.derive=\"always\"",
            "agents.executor.max_tokens=1024",
        ] {
            assert!(chosen.sets.iter().any(|set| set == expected), "{expected}: {:?}", chosen.sets);
        }
        assert!(chosen.line.contains("prompt `compact` as the adapter"), "{}", chosen.line);

        let chosen = of_facts("/m.gguf", &facts, 1, Some(Trained::Step)).unwrap();
        assert!(chosen.line.contains("prompt `step` as the adapter"), "{}", chosen.line);

        let told = |prompt| Trained::of(prompt).unwrap();
        assert_eq!(told(None), None);
        assert_eq!(told(Some("compact")), Some(Trained::Lesson));
        assert_eq!(told(Some("step")), Some(Trained::Step));
        let unknown = Trained::of(Some("compakt")).unwrap_err().to_string();
        assert!(unknown.contains("`prime_agents.prompt` name the prompt `compakt`"), "{unknown}");
    }

    #[test]
    fn a_thinking_model_is_told_not_to_or_gets_a_budget() {
        let told =
            of_facts("/m", &facts(usable(&["enable_thinking"], false), Some(40960), 8192), 1, None);
        let told = told.unwrap();
        let off = "agents.executor.thinking=\"off\"";
        assert!(told.sets.iter().any(|set| set == off), "{:?}", told.sets);
        assert!(told.line.contains("of 40960 trained, as much as fits"), "{}", told.line);

        let free = of_facts("/m", &facts(usable(&[], true), Some(8192), 8192), 1, None).unwrap();
        for expected in [
            "agents.executor.grammar=true",
            "agents.executor.max_tokens=256",
            "agents.executor.thinking=2048",
        ] {
            assert!(free.sets.iter().any(|set| set == expected), "{expected}: {:?}", free.sets);
        }
    }

    #[test]
    fn a_template_that_cannot_be_rendered_is_refused_with_its_reason() {
        let reason = "it uses `render_tools`".to_owned();
        let refused =
            of_facts("/m", &facts(ChatTemplateFacts::Unusable(reason), None, 2048), 1, None);
        let said = refused.unwrap_err().to_string();
        assert!(said.contains("render_tools") && said.contains("chat_template = false"), "{said}");
    }
}
