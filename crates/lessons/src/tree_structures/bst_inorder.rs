//! BST Inorder: pushes the current node, or pops the top of the stack.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::tree_structures::bst_inorder::{Action, BstInorder, Instance, State};

use crate::Lesson;

pub struct BstInorderLesson;

impl Lesson for BstInorderLesson {
    type Task = BstInorder;

    fn view(_: &Instance, state: &State) -> String {
        if state.last.0 == Some(Action::Done) {
            return "-".to_owned();
        }
        let top = state.stack.last().map_or_else(|| "-".to_owned(), ToString::to_string);
        format!("cur {} top {top}", state.cur)
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        BstInorder::reference(instance, state).map(|_| String::new())
    }
}
