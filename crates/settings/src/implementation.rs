//! The implementations of the roles: one list per role, from which names, descriptions, schemas,
//! constructors and records are made.
//!
//! A new one is a line here; the compiler then lists the places that have to know it.

use prime_protocol::Role;

/// What an agent's answers come from, which decides what it needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Backing {
    /// A model in an engine of this process: the option `engine`.
    Engine,
    /// A model behind servers: the option `pool`.
    Pool,
    /// A program of the user's: the option `program`.
    Program,
    /// Other agents of the same role, which it combines.
    Members,
    /// Code of this program.
    Code,
}

impl Backing {
    /// Returns whether a model is asked with a prompt.
    pub fn is_model(self) -> bool {
        matches!(self, Self::Engine | Self::Pool)
    }
}

/// What is known of an implementation: a value of `agents.<role>.implementation`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImplementationInfo {
    /// The value of `implementation` that selects it.
    pub name: &'static str,
    /// Where its answers come from.
    pub backing: Backing,
    /// What it does, in a phrase; help texts and lists show it.
    pub about: &'static str,
    /// The options of its role's section that it uses; a definition may have no others.
    pub options: &'static [&'static str],
}

/// An implementation of one role.
pub trait Implementation: Copy + Eq + std::fmt::Debug + 'static {
    /// All of the role, in the order of the documentation.
    const ALL: &'static [Self];

    /// Its row in the table of the role.
    fn info(self) -> &'static ImplementationInfo;

    /// The value of `implementation` that selects it.
    fn name(self) -> &'static str {
        self.info().name
    }

    /// Where its answers come from.
    fn backing(self) -> Backing {
        self.info().backing
    }

    /// The implementation of this name; `None` if there is none, such as for a definition's name.
    fn find(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|known| known.name() == name)
    }
}

macro_rules! implementations {
    (
        $(#[$doc:meta])*
        $name:ident in $rows:ident {
            $($variant:ident = $text:literal, $backing:ident, $about:literal, $options:expr;)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[expect(missing_docs, reason = "the table describes them")]
        pub enum $name {
            $($variant),*
        }

        static $rows: &[ImplementationInfo] = &[
            $(ImplementationInfo {
                name: $text,
                backing: Backing::$backing,
                about: $about,
                options: $options,
            }),*
        ];

        impl Implementation for $name {
            const ALL: &'static [Self] = &[$(Self::$variant),*];

            fn info(self) -> &'static ImplementationInfo {
                &$rows[self as usize]
            }
        }
    };
}

/// Options of executors that ask a model.
const MODEL_EXECUTOR: &[&str] = &[
    "engine",
    "pool",
    "adapter",
    "adapter_scale",
    "adapters",
    "max_tokens",
    "prompt",
    "prompt_variants",
    "system",
    "history",
    "history_steps",
    "chat_template",
    "thinking",
    "grammar",
    "exclude_rejected",
    "derive",
    "derive_characters",
    "choices",
    "examples",
    "example_tokens",
    "view",
    "feedback",
    "temperature",
    "top_p",
];

/// Options of verifiers that ask a model.
const MODEL_VERIFIER: &[&str] = &[
    "engine",
    "pool",
    "adapter",
    "adapter_scale",
    "adapters",
    "verdict",
    "rating_max",
    "threshold",
    "confidence_min",
    "kinds",
    "max_tokens",
    "prompt",
    "system",
    "history",
    "history_steps",
    "chat_template",
    "thinking",
    "grammar",
    "card",
];

/// Options of coordinators that ask a model.
const MODEL_COORDINATOR: &[&str] = &[
    "engine",
    "pool",
    "adapter",
    "adapter_scale",
    "adapters",
    "prompt",
    "system",
    "history",
    "history_steps",
    "chat_template",
    "thinking",
    "ask_on_clean_steps",
];

implementations! {
    /// Known values of `agents.executor.implementation`.
    ExecutorImplementation in EXECUTORS {
        Llama = "llama", Engine, "a model in a local llama.cpp engine", MODEL_EXECUTOR;
        Openai = "openai", Pool,
            "a model behind servers: llama-server, vLLM, SGLang, Ollama, LM Studio or a hosted API",
            MODEL_EXECUTOR;
        Process = "process", Program, "your own program in any language, over JSON Lines",
            &["program"];
        Reference = "reference", Code,
            "the task's own algorithm; not a model, labelled as such in every output", &[];
        Scripted = "scripted", Code, "the algorithm with seeded errors; for tests",
            &["error_rate", "latency_ms"];
        Uniform = "uniform", Code,
            "draws uniformly among the state's valid choices: the baseline of a model that searches",
            &[];
        Replay = "replay", Code, "replays given or recorded proposals; for tests and debugging",
            &["lines", "recording"];
        Escalation = "escalation", Members,
            "a small executor first, a large one if its samples differ", &["escalation"];
    }
}

implementations! {
    /// Known values of `agents.verifier.implementation`.
    VerifierImplementation in VERIFIERS {
        Rules = "rules", Code,
            "the task's constraints of the chosen kinds (the paper's lightweight verifier)",
            &["kinds", "card"];
        Llama = "llama", Engine,
            "a model in a local llama.cpp engine: report, single token or likelihood",
            MODEL_VERIFIER;
        Openai = "openai", Pool,
            "a model behind OpenAI-compatible servers: report, single token, likelihood or rating",
            MODEL_VERIFIER;
        Reward = "reward", Pool,
            "a reward model behind vLLM's /score or /pooling: its score against a threshold",
            &["pool", "threshold", "prompt", "history", "history_steps", "card"];
        Process = "process", Program, "your own program in any language, over JSON Lines",
            &["program", "kinds", "card"];
        Ensemble = "ensemble", Members, "several verifiers in parallel: the median of their scores",
            &["ensemble", "card"];
        Reference = "reference", Code,
            "exact, by the task's algorithm; for training and evaluation only", &["card"];
        Scripted = "scripted", Code, "the exact one with seeded errors; for studies and tests",
            &["false_accepts", "false_rejects", "card"];
        None = "none", Code, "accepts everything; no answer then counts as verified", &["card"];
    }
}

implementations! {
    /// Known values of `agents.coordinator.implementation`.
    CoordinatorImplementation in COORDINATORS {
        Adaptive = "adaptive", Code, "thresholds that follow the observed rejection rate",
            &["adaptive"];
        Llama = "llama", Engine, "a model in a local llama.cpp engine that sees the verdict",
            MODEL_COORDINATOR;
        Openai = "openai", Pool,
            "a model behind OpenAI-compatible servers that sees the verdict", MODEL_COORDINATOR;
        Process = "process", Program, "your own program in any language, over JSON Lines",
            &["program"];
        Threshold = "threshold", Code,
            "compares the violation score with run.tau_soft and run.tau_hard (the paper's policy)",
            &[];
    }
}

/// The implementations of a role.
pub fn implementations(role: Role) -> &'static [ImplementationInfo] {
    match role {
        Role::Executor => EXECUTORS,
        Role::Verifier => VERIFIERS,
        Role::Coordinator => COORDINATORS,
    }
}

/// The implementation of a role by name; `None` if there is none.
pub fn implementation(role: Role, name: &str) -> Option<&'static ImplementationInfo> {
    implementations(role).iter().find(|known| known.name == name)
}
