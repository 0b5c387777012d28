//! Translation Chain: the place that the order reads, reckoned digit by digit, and the word that
//! stands there.
// Places have their lowest digit first, so that a result is its place as it stands before the word.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::string_matching::translation_chain::{
    Instance, Order, State, TranslationChain,
};

use crate::Lesson;
use crate::numbers::{difference, low_first, pairwise, sum};

pub struct TranslationChainLesson;

/// Digits of a place.
const WIDTH: usize = 2;

fn place(number: usize) -> String {
    low_first(number, WIDTH)
}

impl Lesson for TranslationChainLesson {
    type Task = TranslationChain;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(language) = instance.languages.get(state.stages.len()) else {
            return "-".to_owned();
        };

        let read = state.read(instance);
        let words: Vec<_> =
            read.iter().enumerate().map(|(at, word)| format!("{}{word}", place(at))).collect();
        let dictionary: Vec<_> =
            language.dictionary.iter().map(|(old, new)| format!("{old}:{new}")).collect();

        let (at, count) = (state.out.len(), read.len());
        let (order, last) = (order_of(language.order), place(count.saturating_sub(1)));

        format!(
            "{} {} {order} {} of {} last {last}",
            dictionary.join(" "),
            words.concat(),
            place(at),
            place(count)
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let new = TranslationChain::reference(instance, state)?.0;
        let (read, order) =
            (state.read(instance), instance.languages.get(state.stages.len())?.order);
        let (at, count) = (state.out.len(), read.len());
        let from = order.source(at, count);

        // A place that is not less than the count wraps around; a borrow at the end shows that it
        // is less.
        let reckoned = match order {
            Order::Keep => String::new(),
            Order::Reverse => difference(count - 1, at, WIDTH) + " ",
            Order::Rotate(by) => round(at, by, count),
            // After the even places the odd ones continue from 1.
            Order::EvensFirst => round(at, at, count),
            Order::SwapPairs => pairwise(&place(at), &place(count - 1)) + " ",
            Order::LastFirst => difference(at, 1, WIDTH) + " ",
        };

        Some(format!("{reckoned}{}{}:{new}", place(from), read[from]))
    }
}

/// x + y, and this less the count.
fn round(x: usize, y: usize, count: usize) -> String {
    format!("{} {} ", sum(x, y, WIDTH), difference(x + y, count, WIDTH))
}

/// The number of a rotation as the places of words.
fn order_of(order: Order) -> String {
    match order {
        Order::Rotate(by) => format!("rotate {}", place(by)),
        order => order.to_string(),
    }
}
