//! Tree algorithms: a lesson a file.

mod bst_inorder;
mod bst_insertion;
mod heap_operations;
mod huffman_tree;
mod red_black_insert;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<bst_insertion::BstInsertionLesson>(),
    AnyLesson::of::<bst_inorder::BstInorderLesson>(),
    AnyLesson::of::<red_black_insert::RedBlackInsertLesson>(),
    AnyLesson::of::<huffman_tree::HuffmanTreeLesson>(),
    AnyLesson::of::<heap_operations::HeapOperationsLesson>(),
];
