//! Prints how many traces are taught as a whole, and the bytes of prompts and completions with
//! their values: `cargo run -p prime-lessons --example whole_traces -- 40 a-star timsort`.

use prime_bench::tasks::{Difficulty, find};

const BASE_SEED: u64 = 5_000_000;

#[derive(Default)]
struct Lengths {
    sum: usize,
    greatest: usize,
}

impl Lengths {
    fn add(&mut self, text: &str) {
        self.sum += text.len();
        self.greatest = self.greatest.max(text.len());
    }

    fn line(&self, count: usize) -> String {
        format!("{}/{}", self.sum / count.max(1), self.greatest)
    }
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let mut arguments = std::env::args().skip(1);
    let count: u32 = arguments.next().ok_or("how many traces a level?")?.parse()?;
    println!(
        "of {count} traces a level: taught as a whole; steps that are too long; mean/greatest bytes of prompt, completion"
    );

    for slug in arguments {
        let task = find(&slug)?;
        for difficulty in Difficulty::ALL {
            let (mut whole, mut taught, mut too_long) = (0, 0, 0);
            let (mut prompts, mut completions) = (Lengths::default(), Lengths::default());

            for index in 0..count {
                let seed = task.spec().seed(BASE_SEED, difficulty, index);
                let mut machine = task.generate(difficulty, seed).start();

                let before = too_long;
                while machine.reference().is_some() {
                    match prime_lessons::completion(machine.as_ref()) {
                        None => too_long += 1,
                        Some(completion) => {
                            taught += 1;
                            prompts.add(&prime_lessons::compact(machine.as_ref()));
                            completions.add(&completion);
                        }
                    }
                    machine.follow_reference();
                }

                whole += u32::from(before == too_long);
            }

            let percent =
                100.0 * f64::from(too_long) / f64::from((u32::try_from(taught)? + too_long).max(1));

            let (prompt, completion) = (prompts.line(taught), completions.line(taught));
            println!(
                "{slug:21} {difficulty:6} {whole:4} {percent:6.2} % {prompt:>8} {completion:>8}"
            );
        }
    }

    Ok(())
}
