//! Lines that the constraints of this category find wrong.

use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("dfa-simulation", 0, "q2", "successor"),
        ("markov-chain", 0, "s0", "draw-below"),
        ("markov-chain", 1, "s2", "possible-draw"),
    ]);
}
