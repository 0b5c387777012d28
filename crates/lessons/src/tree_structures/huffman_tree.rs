//! Huffman Tree: the two lightest nodes in one pass, then the bits of a symbol from the root down.
// A node has a letter, with a plus in front from the 53rd on.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::tree_structures::huffman_tree::{Action, HuffmanTree, Instance, State};

use crate::Lesson;

pub struct Of;

/// Digits of each weight: those of the greatest.
fn width(state: &State) -> usize {
    let greatest = state.alive.iter().map(|node| state.weight[*node]).max();
    greatest.map_or(0, |weight| weight.to_string().len())
}

fn name(node: usize) -> String {
    let letter = |place: usize| ('A'..='Z').chain('a'..='z').nth(place);
    match (letter(node), node.checked_sub(52).and_then(letter)) {
        (Some(letter), _) => letter.to_string(),
        (_, Some(letter)) => format!("+{letter}"),
        _ => "~".to_owned(),
    }
}

/// Which child each node is from a symbol up to the root.
fn bits(instance: &Instance, state: &State, symbol: usize) -> Vec<char> {
    let mut node = symbol;
    let mut bits = Vec::new();
    for (place, pair) in state.merges.iter().enumerate() {
        if let Some(bit) = pair.iter().position(|child| *child == node) {
            bits.push(if bit == 0 { '0' } else { '1' });
            node = instance.freq.len() + place;
        }
    }
    bits
}

fn lettered<'a>(bits: impl Iterator<Item = (char, &'a char)>) -> String {
    bits.map(|(letter, bit)| format!("{letter}{bit}")).collect::<Vec<_>>().concat()
}

impl Lesson for Of {
    type Task = HuffmanTree;

    fn view(instance: &Instance, state: &State) -> String {
        let (count, next) = (instance.freq.len(), state.codes.len());
        if state.last.0 == Some(Action::Done) {
            return "-".to_owned();
        }
        if state.merges.len() + 1 < count {
            let width = width(state);
            let node = |node: &usize| format!("{}{:0width$}", name(*node), state.weight[*node]);
            return state.alive.iter().map(node).collect::<Vec<_>>().concat();
        }
        if next < count {
            return format!("code {next} up {}", lettered(('a'..).zip(&bits(instance, state, next))));
        }
        "end".to_owned()
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        match HuffmanTree::reference(instance, state)? {
            Action::Merge(..) => Some(lightest(state)),
            Action::Code(symbol, _) => {
                let bits: Vec<_> = bits(instance, state, symbol);
                let upwards: Vec<_> = ('a'..).zip(&bits).collect();
                Some(lettered(upwards.into_iter().rev()))
            }
            Action::Done => Some(String::new()),
        }
    }
}

/// One pass over the living nodes. Of each the digits of its weight up to the first that differs from the second lightest's and
/// a dot, or `<` where it is lighter; then those up to the first that differs from the lightest's, and `!` or `+` for a new lightest or
/// second. These two follow, the second with its weight.
fn lightest(state: &State) -> String {
    let width = width(state);
    let mut line = String::new();
    let mut lightest: Vec<usize> = Vec::new();
    for node in &state.alive {
        let weight = |node: usize| state.weight[node];
        let up_to_difference = |other: usize| {
            let [digits, others] = [*node, other].map(|node| format!("{:0width$}", weight(node)));
            let same = digits.bytes().zip(others.bytes()).take_while(|(digit, other)| digit == other).count();
            digits.chars().take(same + 1).collect::<String>()
        };
        line += &name(*node);
        if let Some(second) = lightest.get(1) {
            line += &up_to_difference(*second);
            if weight(*node) >= weight(*second) {
                line.push('.');
                continue;
            }
            line.push('<');
        }
        let first = lightest.first().copied();
        line += &first.map_or_else(String::new, up_to_difference);
        let is_first = first.is_none_or(|first| weight(*node) < weight(first));
        line.push(if is_first { '!' } else { '+' });
        lightest.insert(usize::from(!is_first), *node);
        lightest.truncate(2);
        if let [first, second] = lightest[..] {
            line += &format!("{}{}{:0width$} ", name(first), name(second), weight(second));
        }
    }
    line
}
