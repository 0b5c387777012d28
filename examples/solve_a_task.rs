//! Solves an instance of the benchmark without a model: the reference executor proposes, the rules
//! verifier checks every step, and the runtime votes.
//!
//! `cargo run --example solve_a_task`

use prime_bench::tasks::{self, Difficulty};
use prime_service::app::App;
use prime_settings::Settings;

fn main() -> anyhow::Result<()> {
    // As `--set` on the command line, over the shipped defaults.
    let sets = ["agents.executor.implementation=reference".to_owned(), "run.fanout=4".to_owned()];
    let settings = Settings::load(&[], std::iter::empty(), &sets)?;
    let problem = tasks::find("tower-of-hanoi")?.generate(Difficulty::Easy, 42);

    let outcome = actix::System::new()
        .block_on(async { anyhow::Ok(App::start(settings)?.solve(problem).await?) })?;

    println!(
        "{} steps, {} proposals, verified: {}",
        outcome.steps,
        outcome.proposals,
        outcome.is_verified()
    );
    println!("answer: {}", outcome.answer.unwrap_or_default());
    Ok(())
}
