//! Huffman Tree: the two lightest nodes in one pass, then the bits of a symbol from the root down.
// A node has a letter, with a plus in front from the 53rd on. A pass marks the nodes lighter than the two lightest so far,
// and then writes these two and the weight of the second.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::tree_structures::huffman_tree::{Action, HuffmanTree, Instance, State};

use crate::Lesson;

pub struct Of;

/// Digits of a weight.
const WIDTH: usize = 4;

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
            let node = |node: &usize| format!("{}{:0WIDTH$}", name(*node), state.weight[*node]);
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

/// One pass over the living nodes: `l` for a new lightest, `m` for a new second, `g` for others.
fn lightest(state: &State) -> String {
    let mut line = String::new();
    let mut lightest: Vec<usize> = Vec::new();
    for node in &state.alive {
        let lighter = |other: &usize| state.weight[*node] < state.weight[*other];
        let place = lightest.iter().position(lighter).unwrap_or(lightest.len());
        line += &name(*node);
        line.push(['l', 'm', 'g'][place]);
        if place < 2 {
            lightest.insert(place, *node);
            lightest.truncate(2);
            if let [first, second] = lightest[..] {
                line += &format!("{}{}{:0WIDTH$} ", name(first), name(second), state.weight[second]);
            }
        }
    }
    line
}
