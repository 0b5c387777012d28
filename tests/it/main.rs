//! The one integration test binary; a file for each part.
#![allow(
    clippy::unwrap_used,
    reason = "also in the helpers of tests, which clippy does not take for tests"
)]

mod action_lines;
#[cfg(feature = "llama")]
mod adapters;
mod approvals;
mod attest;
mod bases;
mod binary;
mod chaos;
mod chaos_approvals;
#[cfg(feature = "llama")]
mod chaos_engine;
mod choosable;
mod cli;
mod clock;
mod cost;
mod crowds;
mod daemon;
mod disk;
mod document;
mod durable;
mod earlier_versions;
mod ended_turns;
#[cfg(feature = "llama")]
mod engine;
mod figures;
mod golden;
mod instructions;
mod journal;
mod kept_agents;
mod limits;
mod loadtest;
mod loadtest_http;
mod locate;
mod malformed;
mod mcp;
mod metrics;
mod model_tasks;
mod notify;
mod openai;
mod openai_forms;
mod openai_streams;
mod overload;
mod overview;
mod own_modules;
mod own_tasks;
mod owners;
mod problems;
mod programs;
mod queues;
mod raw;
mod recompute;
mod records;
mod refused_writes;
mod reload;
mod resends;
mod retries;
mod review_queue;
mod reviews;
mod schemas;
mod search;
mod serve;
mod settings;
#[cfg(feature = "llama")]
mod shipped;
mod shipping;
mod slow_clients;
mod split;
mod standstills;
mod stuck;
mod studio;
mod swaps;
mod telemetry;
#[cfg(feature = "llama")]
mod training_trace;
mod transcripts;
mod transfer;
mod unsafe_code;
mod uploads;
mod verify;
mod webhooks;
