//! The `prime-agents` binary: the library's command line with the counting allocator.

use std::process::ExitCode;

use prime_allocator::Counting;

/// Counts only while a load test runs.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    prime_agents::cli::main()
}
