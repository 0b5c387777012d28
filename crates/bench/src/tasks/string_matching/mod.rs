//! The string and language tasks of PRIME-Bench, one file each.

mod ascii_art_parse;
mod cfg_derivation;
mod drawing;
mod kmp_pattern;
mod regex;
mod regex_nfa;
mod thompson;
mod translation_chain;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<kmp_pattern::KmpPattern>::new(),
    &Of::<regex_nfa::RegexNfa>::new(),
    &Of::<cfg_derivation::CfgDerivation>::new(),
    &Of::<translation_chain::TranslationChain>::new(),
    &Of::<ascii_art_parse::AsciiArtParse>::new(),
];
