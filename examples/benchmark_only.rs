//! The benchmark without agents: generates an instance, walks its reference trace, and judges a
//! submission.
//!
//! `cargo run --example benchmark_only`

use prime_bench::judge::{judge, read_submission};
use prime_bench::tasks::{self, BASE_SEED, Difficulty, InstanceId, Kinds};
use serde_json::json;

fn main() -> anyhow::Result<()> {
    let instance = InstanceId::new(tasks::find("tower-of-hanoi")?, Difficulty::Easy, 0, BASE_SEED)?;
    let problem = instance.problem();
    println!("{instance}: {}", problem.input());

    let mut machine = problem.start();
    let mut actions = Vec::new();
    while let Some(action) = machine.reference() {
        machine.propose(&action)?;
        assert!(machine.violations(Kinds::ALL).is_empty(), "a reference violates nothing");
        machine.commit();
        println!("{action:<12} {}", machine.state());
        actions.push(action);
    }
    println!("answer: {}", machine.answer().unwrap_or_default());

    // A submission with one wrong step, as a line of `bench check`.
    actions.swap(1, 2);
    let line = json!({"id": instance.to_string(), "actions": actions, "answer": machine.answer()})
        .to_string();
    let verdict =
        judge(&read_submission(&line, BASE_SEED).map_err(anyhow::Error::msg)?, Kinds::ALL);
    println!("{}", serde_json::to_string_pretty(&verdict)?);
    Ok(())
}
