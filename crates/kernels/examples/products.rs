//! Speed of the products of a small model's training, for each unit that the processor has and for
//! f32: `cargo run --release -p prime-kernels --example products`. The name of a unit, or `f32`, as
//! an argument selects that one alone.

use std::time::Instant;

use prime_kernels::{Bf16, Element, Left, Mode, Packed, Unit, rounded};

fn main() {
    let only = std::env::args().nth(1);
    let is_asked = |name: &str| only.as_ref().is_none_or(|only| only == name);
    for unit in Unit::available() {
        let name = format!("{unit:?}");
        if is_asked(&name) {
            measure::<Bf16>(&name, |left, right, columns, sum| {
                unit.multiply(left, right, columns, sum, columns, Mode::Add);
            });
        }
    }
    if is_asked("f32") {
        measure::<f32>("f32", |left, right, columns, sum| {
            f32::multiply(left, right, columns, sum, columns, Mode::Add);
        });
    }
}

fn measure<E: Element>(name: &str, multiply: impl Fn(Left<'_, E>, &Packed<E>, usize, &mut [f32])) {
    for (rows, inner, columns) in [
        (512, 128, 384),
        (512, 128, 768),
        (512, 384, 128),
        (128, 512, 768),
        (128, 1024, 768),
        (96, 32, 96),
    ] {
        let left: Vec<E> = rounded(&vec![0.5; rows * inner]);
        let mut right = Packed::default();
        right.pack(&rounded(&vec![0.25; inner * columns]), columns, inner, columns);
        let mut sum = vec![0.0; rows * columns];
        let product = Left { values: &left, stride: inner, rows, inner };

        // About the same number of operations for each shape.
        let times = 2_000_000_000 / (rows * inner * columns);
        #[expect(clippy::disallowed_methods, reason = "it measures")]
        let begin = Instant::now();
        for _ in 0..times {
            multiply(product, &right, columns, &mut sum);
        }

        let flops = 2.0 * (times * rows * inner * columns) as f64 / begin.elapsed().as_secs_f64();
        println!("{name} [{rows}, {inner}] x [{inner}, {columns}]: {:.0} GFLOP/s", flops / 1e9);
    }
}
