//! Searches tasks for clean traces that end in a wrong answer, for authors of tasks:
//! `cargo run --release -p prime-bench --example soundness -- KINDS [WALKS [SEED [TASK…]]]`, with
//! KINDS such as `format,invariant,terminal`, or `sound` for those that the tasks declare.

#![allow(clippy::print_stdout, clippy::disallowed_methods, reason = "an example prints")]

use prime_bench::judge::soundness::{Attack, attack, exhaust, small_inputs};
use prime_bench::tasks::{self, Difficulty, Kinds};

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let names = arguments.first().map_or("sound", String::as_str);
    let number = |at: usize, default| {
        arguments.get(at).map_or(default, |text| text.parse().expect("a number"))
    };
    let (walks, seed) = (number(1, 2_000), number(2, 7));
    let only = arguments.get(3..).unwrap_or_default();

    for task in tasks::all() {
        let slug = task.spec().slug;
        if !only.is_empty() && !only.iter().any(|name| name == slug) {
            continue;
        }
        let kinds: Kinds = match names {
            "sound" => task.spec().sound,
            names => names.split(',').map(|name| name.parse().expect("a kind")).collect(),
        };

        let row = attack(task, &Attack { kinds, walks, lines_max: 1_500, seed });
        let (mut complete, mut partial, mut ends, mut fooled) = (0, 0, 0, None);
        // Larger ones: at least the algorithm's path, and the lines beside it.
        let easy = (0..2).map(|instance| task.generate(Difficulty::Easy, seed + instance));
        for problem in small_inputs(task, seed).into_iter().take(12).chain(easy) {
            let found = exhaust(&problem, kinds, 2_000_000);
            if found.is_complete {
                complete += 1;
            } else {
                partial += 1;
            }
            ends += found.ends;
            fooled = fooled.or(found.fooled);
        }

        let verdict = match row.shortest.or(fooled) {
            Some(fooled) => serde_json::to_string(&fooled).expect("it serialises"),
            None => "not fooled".to_owned(),
        };
        println!(
            "{slug}: {} walks, {} deviated, {} ended, {} wrong; \
             exhausted {complete}, partly {partial}, {ends} ends; {verdict}",
            row.walks, row.deviated, row.ended, row.wrong,
        );
    }
}
