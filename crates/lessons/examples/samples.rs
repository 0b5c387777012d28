//! Prints what a model is shown and taught of a task:
//! `cargo run -p prime-lessons --example samples -- heap-sort 5`.

use prime_bench::tasks::sampling::state_on_trace;
use prime_bench::tasks::{Difficulty, TaskRng, find};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let slug = arguments.next().ok_or("which task?")?;
    let count: u32 = arguments.next().map_or(Ok(3), |count| count.parse())?;
    let task = find(&slug)?;
    let mut rng = TaskRng::new(1);

    for difficulty in Difficulty::ALL {
        for _ in 0..count {
            let machine = state_on_trace(task, difficulty, 1, &mut rng);
            let completion = prime_lessons::completion(machine.as_ref());
            let completion =
                completion.as_deref().unwrap_or("(the lesson is too long for this step)");

            println!("{}{completion}\n", prime_lessons::compact(machine.as_ref()));
        }
    }
    Ok(())
}
