//! CFG Derivation: the production of the leftmost nonterminal that begins with the word's next
//! letter.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::string_matching::cfg_derivation::{
    CfgDerivation, Instance, Production, State,
};

use crate::Lesson;

pub struct CfgDerivationLesson;

impl Lesson for CfgDerivationLesson {
    type Task = CfgDerivation;

    fn view(instance: &Instance, state: &State) -> String {
        let leftmost = state.rest.chars().next();
        let letter =
            instance.word.as_bytes().get(state.matched).map_or('-', |letter| char::from(*letter));

        let own = instance
            .productions
            .iter()
            .enumerate()
            .filter(|(_, Production(left, _))| Some(*left) == leftmost);
        let begins: Vec<_> = own
            .map(|(number, Production(_, right))| {
                format!("{}{number}", right.chars().next().unwrap_or('-'))
            })
            .collect();

        format!("{letter} of {}", if begins.is_empty() { "-".to_owned() } else { begins.join(" ") })
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let production = CfgDerivation::reference(instance, state)?;
        let letter = instance.word.as_bytes().get(state.matched)?;
        Some(format!("{}{}", char::from(*letter), production.to_string().trim_start_matches('p')))
    }
}
