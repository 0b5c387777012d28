//! The tree algorithms of PRIME-Bench, one file each.

mod binary_tree;
mod bst_inorder;
mod bst_insertion;
mod heap_operations;
mod huffman_tree;
mod red_black_insert;
mod red_black_tree;

use super::AnyTask;
use super::machine::Of;

pub const TASKS: &[&dyn AnyTask] = &[
    &Of::<bst_insertion::BstInsertion>::new(),
    &Of::<bst_inorder::BstInorder>::new(),
    &Of::<red_black_insert::RedBlackInsert>::new(),
    &Of::<huffman_tree::HuffmanTree>::new(),
    &Of::<heap_operations::HeapOperations>::new(),
];
