//! Speed of the products of a small model's training, for each unit that the processor has: `cargo run --release -p prime-kernels
//! --example products`; with the name of a unit, of this one alone.

use std::time::Instant;

use prime_kernels::{Left, Mode, Packed, Unit, narrow};

fn main() {
    let only = std::env::args().nth(1);
    for unit in
        Unit::available().into_iter().filter(|unit| only.as_ref().is_none_or(|only| *only == format!("{unit:?}")))
    {
        for (rows, inner, columns) in
            [(512, 128, 384), (512, 128, 768), (512, 384, 128), (128, 512, 768), (128, 1024, 768), (96, 32, 96)]
        {
            let left = narrow(&vec![0.5; rows * inner]);
            let mut right = Packed::default();
            right.pack(&narrow(&vec![0.25; inner * columns]), columns, inner, columns);
            let mut sum = vec![0.0; rows * columns];
            let product = Left { values: &left, stride: inner, rows, inner };
            let times = 2_000_000_000 / (rows * inner * columns);
            #[expect(clippy::disallowed_methods, reason = "it measures")]
            let begin = Instant::now();
            for _ in 0..times {
                unit.multiply(product, &right, columns, &mut sum, columns, Mode::Add);
            }
            let flops = 2.0 * (times * rows * inner * columns) as f64 / begin.elapsed().as_secs_f64();
            println!("{unit:?} [{rows}, {inner}] x [{inner}, {columns}]: {:.0} GFLOP/s", flops / 1e9);
        }
    }
}
