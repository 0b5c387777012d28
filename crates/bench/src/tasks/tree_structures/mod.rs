//! The tree algorithms of PRIME-Bench, one file each.

mod binary_tree;
pub mod bst_inorder;
pub mod bst_insertion;
pub mod heap_operations;
pub mod huffman_tree;
pub mod red_black_insert;
pub mod red_black_tree;
#[cfg(test)]
mod tests;

use super::AnyTask;
use super::machine::Erased;

/// The tasks of the category, in the order of their ids.
pub static TASKS: &[&dyn AnyTask] = &[
    &Erased::<bst_insertion::BstInsertion>::new(),
    &Erased::<bst_inorder::BstInorder>::new(),
    &Erased::<red_black_insert::RedBlackInsert>::new(),
    &Erased::<huffman_tree::HuffmanTree>::new(),
    &Erased::<heap_operations::HeapOperations>::new(),
];
