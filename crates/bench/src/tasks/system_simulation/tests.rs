//! Lines that the constraints of this category find wrong.

use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("file-system", 0, "err perm", "root-rights"),
        ("file-system", 0, "err isdir", "codes"),
        ("file-system", 1, "err noent", "codes"),
        ("blockchain-ledger", 0, "reject nonce", "nonce-match"),
        ("blockchain-ledger", 0, "reject funds", "costs"),
        ("blockchain-ledger", 3, "accept 5", "nonce-match"),
        ("packet-routing", 0, "drop ttl", "drop-cause"),
        ("packet-routing", 0, "drop route", "drop-cause"),
        ("packet-routing", 1, "deliver", "destination"),
        ("packet-routing", 2, "hop 1", "destination"),
        ("chemical-reaction", 2, "fire 1", "draw-quarter"),
    ]);
}
