//! Translation Chain: the place that the order reads, and the word that stands there.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::string_matching::translation_chain::{Instance, Order, State, TranslationChain};

use crate::Lesson;

pub struct Of;

impl Lesson for Of {
    type Task = TranslationChain;

    fn view(instance: &Instance, state: &State) -> String {
        let Some(language) = instance.languages.get(state.stages.len()) else { return "-".to_owned() };
        let read = state.read(instance);
        let words: String =
            (0..).zip(read).fold(String::new(), |words, (place, word): (u32, _)| format!("{words}{place:02}{word}"));
        let dictionary: Vec<_> = language.dictionary.iter().map(|(old, new)| format!("{old}{new}")).collect();
        let (order, last) = (order_of(language.order), read.len().saturating_sub(1));
        format!("{} {words} {order} {:02} of {last:02}", dictionary.join(" "), state.out.len())
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        TranslationChain::reference(instance, state)?;
        let (read, order) = (state.read(instance), instance.languages.get(state.stages.len())?.order);
        let (at, count) = (state.out.len(), read.len());
        let place = order.source(at, count);
        let reckoned = match order {
            Order::Reverse => format!("{:02}-{at:02}=", count - 1),
            Order::Rotate(by) if by < count && at + by >= count => {
                format!("{at:02}+{by:02}={:02}-{count:02}=", at + by)
            }
            Order::Rotate(by) => format!("{at:02}+{by:02}="),
            Order::EvensFirst => {
                let evens = count.div_ceil(2);
                match at.checked_sub(evens) {
                    None => format!("{evens:02}>{at:02}*2="),
                    Some(odd) => format!("{evens:02}<{at:02}={odd:02}*2+1="),
                }
            }
            Order::Keep | Order::SwapPairs | Order::LastFirst => String::new(),
        };
        Some(format!("{reckoned}{place:02}{}", read[place]))
    }
}

/// Two-digit numbers as in the words' places.
fn order_of(order: Order) -> String {
    match order {
        Order::Rotate(by) => format!("rotate {by:02}"),
        order => order.to_string(),
    }
}
