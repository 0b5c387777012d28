//! Strings and languages: a lesson a file.

mod ascii_art_parse;
mod cfg_derivation;
mod kmp_pattern;
mod regex_nfa;
mod translation_chain;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<kmp_pattern::KmpPatternLesson>(),
    AnyLesson::of::<regex_nfa::RegexNfaLesson>(),
    AnyLesson::of::<cfg_derivation::CfgDerivationLesson>(),
    AnyLesson::of::<translation_chain::TranslationChainLesson>(),
    AnyLesson::of::<ascii_art_parse::AsciiArtParseLesson>(),
];
