//! The string and language tasks of PRIME-Bench, one file each.

pub mod ascii_art_parse;
pub mod cfg_derivation;
pub mod drawing;
pub mod kmp_pattern;
pub mod regex;
pub mod regex_nfa;
#[cfg(test)]
mod tests;
mod thompson;
pub mod translation_chain;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<kmp_pattern::KmpPattern>::new(),
    &Erased::<regex_nfa::RegexNfa>::new(),
    &Erased::<cfg_derivation::CfgDerivation>::new(),
    &Erased::<translation_chain::TranslationChain>::new(),
    &Erased::<ascii_art_parse::AsciiArtParse>::new(),
];
