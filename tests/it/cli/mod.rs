//! The commands as users run them: the binary, its output and its exit codes.
#![allow(clippy::disallowed_methods, reason = "these tests wait for other processes, in real time")]

mod bench_agents;
mod bench_check;
mod bench_files;
mod bench_pages;
mod commands;
mod data;
mod handshakes;
mod hostile_text;
mod journal;
mod key;
mod mistakes;
mod output;
mod own_problems;
mod readme;
mod runs;
mod runs_client;
mod servers;
mod shell;
mod study;
mod study_merged;
mod study_served;
mod verifier_cards;
mod whole;
