//! What coordination costs without a model, in wall time: ring, mailboxes, state stack, votes,
//! journal, tasks. `cargo bench --bench coordination`; instruction counts of the same things are in
//! `benches/instructions.rs`.
#![allow(missing_docs, reason = "criterion's macros make public items")]

mod journal;
mod mailbox;
mod ring;
mod stack;
mod tasks;
mod votes;

#[path = "../support/mod.rs"]
mod support;

criterion::criterion_main!(
    ring::benches,
    mailbox::benches,
    stack::benches,
    votes::benches,
    journal::benches,
    tasks::benches
);
