//! Verifier cards: files that say how often a verifier is wrong, as `bench verifier` measured it,
//! and of which verifier.

mod identity;
#[cfg(test)]
mod tests;

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use prime_bench::interval::Proportion;
use prime_bench::judge::ErrorType;
use prime_bench::judge::labelled::Origin;
use prime_bench::tasks::Difficulty;
use prime_roles::CardQuote;

pub use identity::VerifierIdentity;

/// The version of the form of [`VerifierCard`].
pub const CARD_FORMAT: u32 = 1;
/// The version of this program, whose constraints a card was measured with.
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Longest card that is read, in bytes.
const BYTES_MAX: u64 = 64 << 20;

/// How often a verifier is wrong on labelled steps and traces.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct VerifierCard {
    /// [`CARD_FORMAT`].
    pub format: u32,
    /// The version of prime-agents that measured it.
    pub version: String,
    /// The verifier's name in the configuration.
    pub name: String,
    /// The verifier that was measured.
    pub verifier: VerifierIdentity,
    /// Slugs of the tasks on which it was measured.
    pub tasks: Vec<String>,
    /// Levels at which it was measured.
    pub difficulties: Vec<Difficulty>,
    /// Base seed of the instances, from which everything else is drawn.
    pub base_seed: u64,
    /// States per task and level at which single steps were judged.
    pub instances: u32,
    /// Traces per task, level and origin.
    pub traces: u32,
    /// All tasks and levels together, then each task and level.
    pub results: Vec<CardRow>,
}

/// The figures of a task and level, or of all.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct CardRow {
    /// Null: all tasks.
    pub task: Option<String>,
    /// Null: all levels.
    pub difficulty: Option<Difficulty>,
    /// Errors on single steps.
    pub steps: StepRates,
    /// Errors on whole runs.
    pub runs: RunRates,
    /// How well it locates the first error of a trace.
    pub first_error: FirstErrorScore,
    /// What its verdicts cost.
    pub cost: VerdictCost,
}

/// Errors on the single steps that got a verdict.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct StepRates {
    /// Right steps that were rejected (V > 0).
    pub false_rejects: Proportion,
    /// Wrong steps that can be carried out and were accepted (V = 0).
    pub false_accepts: Proportion,
    /// Lines that do not parse or cannot be carried out and were accepted.
    pub false_accepts_garbage: Proportion,
    /// Wrong steps by origin and type of error.
    pub by_error: Vec<ErrorRate>,
    /// Number of steps without a verdict.
    pub failed: u64,
    /// The first reason why a step has no verdict.
    pub failure: Option<String>,
    /// Mean probability, 0 to 1, with which verdicts call right steps right; null if they carry
    /// none.
    pub probability_right: Option<f64>,
    /// Mean probability, 0 to 1, with which verdicts call wrong steps right; null if they carry
    /// none.
    pub probability_wrong: Option<f64>,
}

/// Errors on whole runs: traces that are judged step by step until a step is rejected.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct RunRates {
    /// Right traces in which a step was rejected.
    pub false_rejects: Proportion,
    /// Traces that end in a wrong answer and in which every step was accepted.
    pub false_accepts: Proportion,
    /// Traces that end in a wrong answer, by origin and type of the first error.
    pub by_error: Vec<ErrorRate>,
    /// Number of traces without a verdict on one of their steps.
    pub failed: u64,
    /// The first reason why a step has no verdict.
    pub failure: Option<String>,
    /// Instances without traces, because theirs are longer than 200 lines.
    pub too_long: u64,
}

/// How many wrong steps or traces of one kind were accepted.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct ErrorRate {
    /// How the wrong steps or traces were made.
    pub origin: Origin,
    /// Type of the error.
    pub error: ErrorType,
    /// The share that was accepted, among all of this origin and type.
    pub false_accepts: Proportion,
}

/// How often the earliest wrong step of a trace is found, as ProcessBench measures it.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FirstErrorScore {
    /// Traces with a wrong step: the first rejected step is the first wrong one.
    pub erroneous: Proportion,
    /// Right traces: no step was rejected.
    pub correct: Proportion,
    /// The harmonic mean of the two shares, 0 to 1; null if there were no traces of one of them.
    pub f1: Option<f64>,
}

impl FirstErrorScore {
    /// The score of these two shares; F1 is computed from them.
    pub fn new(erroneous: Proportion, correct: Proportion) -> Self {
        let (found, kept) = (erroneous.value, correct.value);
        let is_measured = erroneous.of > 0 && correct.of > 0;
        let mean = if found + kept > 0.0 { 2.0 * found * kept / (found + kept) } else { 0.0 };
        Self { erroneous, correct, f1: is_measured.then_some(mean) }
    }
}

/// Means over all verdicts.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct VerdictCost {
    /// Prompt tokens per verdict.
    pub prompt_tokens: f64,
    /// Generated tokens per verdict.
    pub completion_tokens: f64,
    /// Wall time in microseconds; several steps are judged concurrently.
    pub micros_per_step: f64,
}

/// A card that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CardError {
    /// The file cannot be read.
    #[error("{path}: cannot be read: {reason}")]
    Unreadable {
        /// The file.
        path: String,
        /// The system's message.
        reason: String,
    },
    /// The file is not a card.
    #[error(
        "{path}: is not a verifier card ({reason}); `prime-agents bench verifier --card FILE` \
         writes one"
    )]
    NoCard {
        /// The file.
        path: String,
        /// Why it is not one.
        reason: String,
    },
    /// The card has another format, or was measured by another version of this program.
    #[error(
        "{path}: is a card of {found}, and this is {expected}; measure the verifier again: \
         prime-agents bench verifier {name} --card {path}"
    )]
    Version {
        /// The file.
        path: String,
        /// Version and format of the card.
        found: String,
        /// Version and format of this program.
        expected: String,
        /// The card's name of the verifier, to measure it again.
        name: String,
    },
    /// The card describes another verifier than the configured one.
    #[error(
        "{path}: is a card of `{name}` ({of}), and the verifier is `{configured}` ({is}); measure \
         it: prime-agents bench verifier {configured} --card FILE"
    )]
    OtherVerifier {
        /// The file.
        path: String,
        /// The card's name of its verifier.
        name: String,
        /// Identity of the card's verifier, in words.
        of: String,
        /// Name of the configured verifier.
        configured: String,
        /// Identity of the configured verifier, in words.
        is: String,
    },
}

/// The parts that tell cards of other versions from files that are not cards.
#[derive(Deserialize)]
struct Head {
    format: u32,
    version: String,
    name: String,
}

impl VerifierCard {
    /// A card in the present format and version. The pair is [`Self::instances`] and
    /// [`Self::traces`].
    pub fn new(
        name: &str,
        verifier: VerifierIdentity,
        tasks: Vec<String>,
        difficulties: Vec<Difficulty>,
        base_seed: u64,
        (instances, traces): (u32, u32),
        results: Vec<CardRow>,
    ) -> Self {
        Self {
            format: CARD_FORMAT,
            version: VERSION.to_owned(),
            name: name.to_owned(),
            verifier,
            tasks,
            difficulties,
            base_seed,
            instances,
            traces,
            results,
        }
    }

    /// The card as the text of its file.
    pub fn to_json(&self) -> String {
        serde_json::to_string_pretty(self).expect("invariant: cards serialise") + "\n"
    }

    /// Reads a card, and the SHA-256 of its file in hex.
    ///
    /// # Errors
    /// The file cannot be read, is not a card, or is one of another format or version.
    pub fn load(path: &Path) -> Result<(Self, String), CardError> {
        let place = path.display().to_string();
        let unreadable = |error: std::io::Error| CardError::Unreadable {
            path: place.clone(),
            reason: error.to_string(),
        };
        let mut bytes = Vec::new();
        // A device may never end.
        let file = File::open(path).map_err(unreadable)?;
        file.take(BYTES_MAX + 1).read_to_end(&mut bytes).map_err(unreadable)?;

        let no_card = |reason: String| CardError::NoCard { path: place.clone(), reason };
        if bytes.len() as u64 > BYTES_MAX {
            return Err(no_card(format!("longer than {} MiB", BYTES_MAX >> 20)));
        }
        let value: Value =
            serde_json::from_slice(&bytes).map_err(|error| no_card(error.to_string()))?;
        let head = Head::deserialize(&value).map_err(|error| no_card(error.to_string()))?;

        if head.format != CARD_FORMAT || head.version != VERSION {
            let what = |version: &str, format| format!("prime-agents {version}, format {format}");
            return Err(CardError::Version {
                path: place,
                found: what(&head.version, head.format),
                expected: what(VERSION, CARD_FORMAT),
                name: head.name,
            });
        }
        let card: Self =
            serde_json::from_value(value).map_err(|error| no_card(error.to_string()))?;
        if card.overall().is_none() {
            return Err(no_card("it has no results".to_owned()));
        }
        Ok((card, format!("{:x}", Sha256::digest(&bytes))))
    }

    /// The figures of all tasks and levels together.
    pub fn overall(&self) -> Option<&CardRow> {
        self.results.iter().find(|row| row.task.is_none() && row.difficulty.is_none())
    }

    /// The quotation of the card for results, if the card describes this verifier.
    ///
    /// # Errors
    /// The card cannot be read, or is one of another verifier or version.
    pub fn quoted(
        path: &Path,
        name: &str,
        verifier: &VerifierIdentity,
    ) -> Result<CardQuote, CardError> {
        let (card, digest) = Self::load(path)?;
        if card.verifier != *verifier {
            return Err(CardError::OtherVerifier {
                path: path.display().to_string(),
                name: card.name,
                of: card.verifier.to_string(),
                configured: name.to_owned(),
                is: verifier.to_string(),
            });
        }

        let all = card.overall().expect("invariant: `load` refuses cards without results");
        Ok(CardQuote {
            file: path.display().to_string(),
            sha256: digest,
            tasks: u32::try_from(card.tasks.len()).unwrap_or(u32::MAX),
            step_false_accepts: all.steps.false_accepts,
            run_false_accepts: all.runs.false_accepts,
        })
    }
}
