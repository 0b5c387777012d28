//! The binary: hands its arguments to the library.

use std::process::ExitCode;

use prime_allocator::Counting;

/// Counts nothing until a load test asks.
#[global_allocator]
static ALLOCATOR: Counting = Counting;

fn main() -> ExitCode {
    prime_agents::cli::main()
}
