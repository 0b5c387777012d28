//! The binary: hands its arguments to the library.

use std::process::ExitCode;

fn main() -> ExitCode {
    prime_agents::cli::main()
}
