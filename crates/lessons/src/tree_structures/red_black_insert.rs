//! Red-Black Insert: the way of the key down from the root; the case by the colours and sides
//! around the new node.
// A node has a letter, by which its parent names it.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::tree_structures::red_black_insert::{
    Action, Instance, RedBlackInsert, State,
};
use prime_bench::tasks::tree_structures::red_black_tree::Node;

use crate::Lesson;
use crate::numbers::compared;

pub struct RedBlackInsertLesson;

/// Digits of a key.
const WIDTH: usize = 3;

/// A node by the order of insertion; trees of the benchmark have at most 50.
fn letter(place: Option<usize>) -> char {
    let Some(place) = place else { return '.' };
    ('A'..='Z').chain('a'..='z').nth(place).unwrap_or('~')
}

fn side(side: usize) -> &'static str {
    if side == 0 { "left" } else { "right" }
}

/// The relatives of z, if its parent is red.
fn family(state: &State) -> Option<String> {
    let tree = &state.nodes;
    let z = state.z?;
    let (p, inner) = tree.parent(tree.find(z)?).filter(|(p, _)| tree.nodes[*p].red)?;

    Some(match tree.parent(p) {
        Some((g, outer)) => {
            let uncle = match tree.nodes[g].children[1 - outer] {
                Some(uncle) if tree.nodes[uncle].red => "red",
                Some(_) => "black",
                None => "none",
            };
            format!("{z} {} of red {} of black uncle {uncle}", side(inner), side(outer))
        }
        None => format!("{z} {} of red root", side(inner)),
    })
}

impl Lesson for RedBlackInsertLesson {
    type Task = RedBlackInsert;

    fn view(instance: &Instance, state: &State) -> String {
        let tree = &state.nodes;
        if state.last.0 == Some(Action::Done) {
            return "-".to_owned();
        }

        if let Some(family) = family(state) {
            return family;
        }

        match (state.root, instance.keys.get(tree.nodes.len())) {
            (Some(root), _) if tree.is_red(tree.root) => format!("root {root} red"),
            (_, None) => "end".to_owned(),
            (None, Some(key)) => format!("insert {key:0WIDTH$} empty"),
            (Some(_), Some(key)) => {
                let node = |(place, node): (usize, &Node)| {
                    let [left, right] = node.children;
                    format!(
                        "{}{:0WIDTH$}{}{}",
                        letter(Some(place)),
                        node.key,
                        letter(left),
                        letter(right)
                    )
                };
                let nodes: String = tree.nodes.iter().enumerate().map(node).collect();
                format!("insert {key:0WIDTH$} root {} {nodes}", letter(tree.root))
            }
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = RedBlackInsert::reference(instance, state)?;
        let (Action::Left(key, _) | Action::Right(key, _)) = action else {
            return Some(String::new());
        };

        let tree = &state.nodes;
        let mut line = String::new();
        let mut at = tree.root;

        while let Some(place) = at {
            let node = &tree.nodes[place];
            line +=
                &format!("{}{:0WIDTH$}:{} ", letter(at), node.key, compared(key, node.key, WIDTH));
            at = node.children[usize::from(key > node.key)];
        }

        line.push('.');
        Some(line)
    }
}
