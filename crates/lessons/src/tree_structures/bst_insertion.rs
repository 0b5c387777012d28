//! BST Insertion: compares the key with that of the node, or counts on to the next key.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::tree_structures::bst_insertion::{Action, BstInsertion, Instance, State};

use crate::Lesson;
use crate::numbers::{compared, incremented, low_first};

pub struct BstInsertionLesson;

/// Width of keys, and of the numbers of nodes that are counted.
const WIDTH: usize = 3;

impl Lesson for BstInsertionLesson {
    type Task = BstInsertion;

    fn view(instance: &Instance, state: &State) -> String {
        let keys = &instance.keys;
        match (state.k.get(), state.at.get()) {
            _ if state.last.0 == Some(Action::Done) => "-".to_owned(),
            (Some(k), Some(at)) => format!("{:0WIDTH$} at {at} {:0WIDTH$}", keys[k], keys[at]),
            (Some(k), None) => format!("after {} of {:0WIDTH$}", low_first(k, WIDTH), keys.len()),
            (None, _) => "start".to_owned(),
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        BstInsertion::reference(instance, state)?;
        let key = |node: usize| usize::try_from(instance.keys[node]).ok();

        Some(match (state.k.get(), state.at.get()) {
            (Some(k), Some(at)) => compared(key(k)?, key(at)?, WIDTH),
            (Some(k), None) => {
                format!("{} {}", incremented(k, WIDTH), compared(k + 1, instance.keys.len(), WIDTH))
            }
            (None, _) => String::new(),
        })
    }
}
