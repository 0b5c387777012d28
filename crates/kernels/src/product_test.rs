//! Products of every unit and of f32, compared with exact sums and with each other.

use crate::{BLOCK, Bf16, Element, Left, Mode, Packed, Unit, rounded};

fn random<E: Element>(count: usize, seed: u32) -> Vec<E> {
    let mut state = seed;
    let values: Vec<f32> = (0..count)
        .map(|_| {
            state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (state >> 8) as f32 / 8_388_608.0 - 1.0
        })
        .collect();
    rounded(&values)
}

/// Compares with sums in f64, for operands that are larger than the product; the padding of the
/// sum's rows must not change.
fn multiplies<E: Element>(
    name: &str,
    multiply: impl Fn(Left<'_, E>, &Packed<E>, usize, &mut [f32], usize, Mode),
) {
    for (rows, inner, columns) in
        [(32, 32, 32), (64, 128, 384), (96, 352, 64), (64, 640, 256), (32, 0, 32)]
    {
        let (left_stride, stride, right_inner, right_columns) =
            (inner + 8, columns + 5, inner + 32, columns + 32);

        let left: Vec<E> = random(rows * left_stride, 1);
        let right: Vec<E> = random(right_inner * right_columns, 2);
        let mut packed = Packed::default();
        packed.pack(&right, right_columns, right_inner, right_columns);

        let exact = |row: usize, column: usize| -> f64 {
            (0..inner)
                .map(|at| {
                    f64::from(left[row * left_stride + at].to_f32())
                        * f64::from(right[at * right_columns + column].to_f32())
                })
                .sum()
        };

        for (mode, before) in [(Mode::Replace, 0.0), (Mode::Add, 3.0)] {
            let mut sum = vec![3.0; rows * stride];
            let operand = Left { values: &left, stride: left_stride, rows, inner };
            multiply(operand, &packed, columns, &mut sum, stride, mode);

            for row in 0..rows {
                for column in 0..columns {
                    let (found, wanted) =
                        (f64::from(sum[row * stride + column]), exact(row, column) + before);
                    assert!(
                        (found - wanted).abs() < 2e-5 * (inner + 1) as f64,
                        "{name} {row} {column}: {found}, not {wanted}"
                    );
                }

                assert!(
                    sum[row * stride + columns..(row + 1) * stride]
                        .iter()
                        .all(|value| *value == 3.0)
                );
            }
        }
    }
}

#[test]
fn every_unit_multiplies() {
    for unit in Unit::available() {
        multiplies::<Bf16>(&format!("{unit:?}"), |left, right, columns, sum, stride, mode| {
            unit.multiply(left, right, columns, sum, stride, mode);
        });
    }
    multiplies::<f32>("f32", f32::multiply);
}

/// A product of few rows, as a decoder has, equals the same rows of a larger product.
fn few_rows<E: Element>(
    name: &str,
    padded_rows: impl Fn(usize) -> usize,
    multiply: impl Fn(Left<'_, E>, &Packed<E>, usize, &mut [f32], usize, Mode),
) {
    let (inner, columns) = (64, 32);
    let left: Vec<E> = random(BLOCK * inner, 1);
    let mut right = Packed::default();
    right.pack(&random(inner * columns, 2), columns, inner, columns);
    let product = |rows: usize| {
        let mut sum = vec![0.0; rows * columns];
        let left = Left { values: &left, stride: inner, rows, inner };
        multiply(left, &right, columns, &mut sum, columns, Mode::Replace);
        sum
    };
    let whole = product(BLOCK);
    for rows in [1, 8, 9, 25, 31] {
        let rows = padded_rows(rows);
        assert!(product(rows) == whole[..rows * columns], "{name}: {rows} rows");
    }
}

#[test]
fn few_rows_are_multiplied_alike() {
    for unit in Unit::available() {
        few_rows::<Bf16>(
            &format!("{unit:?}"),
            |rows| unit.padded_rows(rows),
            |left, right, columns, sum, stride, mode| {
                unit.multiply(left, right, columns, sum, stride, mode);
            },
        );
    }
    few_rows::<f32>("f32", f32::padded_rows, f32::multiply);
}

#[test]
#[should_panic(expected = "the left operand is too short")]
fn an_operand_that_is_too_short_is_refused() {
    let mut packed = Packed::default();
    packed.pack(&[Bf16::default(); 1024], 32, 32, 32);
    let left = Left { values: &[Bf16::default(); 1023], stride: 32, rows: 32, inner: 32 };
    Bf16::multiply(left, &packed, 32, &mut [0.0; 1024], 32, Mode::Replace);
}
