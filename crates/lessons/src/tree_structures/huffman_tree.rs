//! Huffman Tree: the two lightest nodes in one pass, then the bits of a symbol, lettered from the
//! root down.
// A node has a letter, with a plus in front from the 53rd on. A dot stands between symbols and
// merged nodes.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::tree_structures::huffman_tree::{Action, HuffmanTree, Instance, State};

use crate::Lesson;

pub struct HuffmanTreeLesson;

/// Digits of each weight: those of the greatest.
fn width(state: &State) -> usize {
    let greatest = state.alive.iter().map(|node| state.weight[*node]).max();
    greatest.map_or(0, |weight| weight.to_string().len())
}

/// Nodes with their weights.
fn weighed(state: &State, nodes: &[usize]) -> String {
    let width = width(state);
    nodes
        .iter()
        .map(|node| format!("{}{:0width$}", name(*node), state.weight[*node]))
        .collect::<Vec<_>>()
        .concat()
}

fn name(node: usize) -> String {
    let letter = |place: usize| ('A'..='Z').chain('a'..='z').nth(place);
    match (letter(node), node.checked_sub(52).and_then(letter)) {
        (Some(letter), _) => letter.to_string(),
        (_, Some(letter)) => format!("+{letter}"),
        _ => "~".to_owned(),
    }
}

/// The side of each node, from a symbol up to the root.
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

/// Bits, each after the letter of its height.
fn lettered(bits: &[char]) -> String {
    ('a'..).zip(bits).map(|(letter, bit)| format!("{letter}{bit}")).collect::<Vec<_>>().concat()
}

impl Lesson for HuffmanTreeLesson {
    type Task = HuffmanTree;

    fn view(instance: &Instance, state: &State) -> String {
        let (count, next) = (instance.freq.len(), state.codes.len());
        if state.last.0 == Some(Action::Done) {
            return "-".to_owned();
        }

        if state.merges.len() + 1 < count {
            let (symbols, merged) =
                state.alive.split_at(state.alive.partition_point(|node| *node < count));
            return format!("{}.{}", weighed(state, symbols), weighed(state, merged));
        }

        if next < count {
            return format!("code {next} up {}", lettered(&bits(instance, state, next)));
        }

        "end".to_owned()
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        match HuffmanTree::reference(instance, state)? {
            Action::Merge(..) => Some(lightest(instance, state)),
            Action::Code(symbol, _) => {
                let bits: Vec<_> = bits(instance, state, symbol);

                let upwards: Vec<_> = ('a'..).zip(&bits).collect();
                // Each bit after its letter from below and the one from above: the latter finds it
                // for the code.
                let downwards = upwards.into_iter().rev().zip('A'..);

                Some(
                    downwards
                        .map(|((below, bit), above)| format!("{below}{above}{bit}"))
                        .collect::<Vec<_>>()
                        .concat(),
                )
            }
            Action::Done => Some(String::new()),
        }
    }
}

/// A number's digits, each beside the other's, up to the first that differs, and `<` where it is
/// less; `=` if none differs.
fn against(x: u64, other: u64, width: usize) -> String {
    let (digits, others) = (format!("{x:0width$}"), format!("{other:0width$}"));
    let mut line = String::new();

    for (ours, theirs) in digits.chars().zip(others.chars()) {
        line.extend([ours, theirs]);
        if ours != theirs {
            line.extend(Some('<').filter(|_| ours < theirs));
            return line;
        }
    }

    line + "="
}

/// One pass over the living nodes. The weight of each is compared with the second lightest's, and
/// if it is less, with the lightest's; where it takes one of the two places, both follow, the
/// second with its weight. Merged nodes ascend, so that the first that is not less ends the pass.
/// The two are named again at the end.
fn lightest(instance: &Instance, state: &State) -> String {
    let width = width(state);
    let weight = |node: usize| state.weight[node];
    let mut line = String::new();
    let mut lightest: Vec<usize> = Vec::new();

    for (place, node) in state.alive.iter().enumerate() {
        line += &name(*node);
        if let Some(second) = lightest.get(1) {
            line += &against(weight(*node), weight(*second), width);
            if weight(*node) >= weight(*second) {
                // After wrong merges the weights may not ascend.
                let ascend = || state.alive[place..].is_sorted_by_key(|node| weight(*node));
                if *node >= instance.freq.len() && ascend() {
                    break;
                }
                continue;
            }
        }

        let first = lightest.first().copied();
        line +=
            &first.map_or_else(String::new, |first| against(weight(*node), weight(first), width));
        let is_first = first.is_none_or(|first| weight(*node) < weight(first));
        lightest.insert(usize::from(!is_first), *node);
        lightest.truncate(2);

        if let [first, second] = lightest[..] {
            line += &format!("{}{}", name(first), weighed(state, &[second]));
        }
    }

    let names: String = lightest.into_iter().map(name).collect();
    format!("{line};{names}")
}
