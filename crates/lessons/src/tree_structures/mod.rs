//! Tree algorithms: a lesson a file.

mod bst_inorder;
mod bst_insertion;
mod heap_operations;
mod huffman_tree;
mod red_black_insert;

use crate::AnyLesson;

pub(super) const LESSONS: &[AnyLesson] = &[
    AnyLesson::of::<bst_insertion::Of>(),
    AnyLesson::of::<bst_inorder::Of>(),
    AnyLesson::of::<red_black_insert::Of>(),
    AnyLesson::of::<huffman_tree::Of>(),
    AnyLesson::of::<heap_operations::Of>(),
];
