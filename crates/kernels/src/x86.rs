//! Products on units of x86-64 processors.
#![expect(
    unsafe_code,
    reason = "tiles are registers that only assembler reaches; loads through pointers whose bounds callers checked"
)]

use std::arch::asm;
use std::arch::x86_64::{
    __cpuid, __cpuid_count, __m512, __m512bh, __m512i, _mm256_loadu_si256, _mm512_add_ps,
    _mm512_cvtepu16_epi32, _mm512_dpbf16_ps, _mm512_fmadd_ps, _mm512_loadu_ps, _mm512_loadu_si512,
    _mm512_or_si512, _mm512_set1_epi32, _mm512_set1_ps, _mm512_setzero_ps, _mm512_setzero_si512,
    _mm512_shuffle_i32x4, _mm512_slli_epi32, _mm512_storeu_ps, _mm512_storeu_si512,
    _mm512_unpackhi_epi32, _mm512_unpackhi_epi64, _mm512_unpacklo_epi32, _mm512_unpacklo_epi64,
};
use std::sync::LazyLock;

use crate::bf16::Bf16;
use crate::product::{Left, Mode, Packed, SIDE, TILE};

/// Bits of cpuid's leaf 7.
const AMX_BF16: u32 = 1 << 22;
const AMX_TILE: u32 = 1 << 24;

/// Linux lets a process use the tiles' registers only after it has asked for them (`arch_prctl`).
const REQUEST_PERMISSION: i64 = 0x1023;
const TILE_DATA: i64 = 18;

static TILES: LazyLock<bool> = LazyLock::new(|| {
    let features = if __cpuid(0).eax >= 7 { __cpuid_count(7, 0).edx } else { 0 };
    let has_tiles = features & (AMX_BF16 | AMX_TILE) == AMX_BF16 | AMX_TILE;

    // SAFETY: it takes two numbers and touches no memory; a kernel that does not know it answers
    // with an error.
    cfg!(target_os = "linux")
        && has_tiles
        && unsafe { libc::syscall(libc::SYS_arch_prctl, REQUEST_PERMISSION, TILE_DATA) } == 0
});

/// Returns whether the processor has tiles and the kernel lets this process use them.
pub fn may_use_tiles() -> bool {
    *TILES
}

/// Returns whether the processor multiplies pairs of bf16 values.
pub fn has_pairs() -> bool {
    is_x86_feature_detected!("avx512bf16") && is_x86_feature_detected!("avx512f")
}

/// The shape of eight tiles of 16 rows of 64 bytes.
#[repr(C, align(64))]
struct Configuration([u8; 64]);

static CONFIGURATION: Configuration = {
    let mut bytes = [0; 64];
    bytes[0] = 1; // the only palette

    // `for` cannot run in a constant.
    let mut tile = 0;
    while tile < 8 {
        // The width in bytes, and the height in rows.
        bytes[16 + 2 * tile] = 64;
        bytes[48 + tile] = 16;
        tile += 1;
    }

    Configuration(bytes)
};

/// Multiplies with blocks of 32 by 32 sums in four tiles. The caller has checked the dimensions.
pub fn multiply_by_tiles(
    left: Left<'_, Bf16>,
    right: &Packed<Bf16>,
    columns: usize,
    sum: &mut [f32],
    stride: usize,
    mode: Mode,
) {
    let tiles = right.inner() / (2 * SIDE);

    // SAFETY: the processor has tiles, or the caller would have chosen another unit. The
    // configuration is a constant.
    unsafe {
        asm!(
            "ldtilecfg [{}]",
            in(reg) &raw const CONFIGURATION,
            options(nostack, preserves_flags, readonly),
        );
    };

    for row in (0..left.rows).step_by(2 * SIDE) {
        for column in (0..columns).step_by(2 * SIDE) {
            let upper = left.values[row * left.stride..].as_ptr();
            let lower = left.values[(row + SIDE) * left.stride..].as_ptr();
            let first = right.cells[column / SIDE * tiles * TILE..].as_ptr();
            let second = right.cells[(column / SIDE + 1) * tiles * TILE..].as_ptr();
            let (above, below) = sum[row * stride + column..].split_at_mut(SIDE * stride);

            // SAFETY: the caller checked that rows `row` to `row + 31` of `left` have `inner`
            // values, that columns `column` to `column + 31` of `right` have `inner / 32` tiles of
            // 1 KiB each, and that the sum has 32 rows of 32 columns from here on.
            unsafe {
                asm!(
                    "test {adds:e}, {adds:e}",
                    "jz 3f",
                    "tileloadd tmm0, [{above} + {sum_bytes}]",
                    "tileloadd tmm1, [{above} + {sum_bytes} + 64]",
                    "tileloadd tmm2, [{below} + {sum_bytes}]",
                    "tileloadd tmm3, [{below} + {sum_bytes} + 64]",
                    "jmp 4f",
                    "3:",
                    "tilezero tmm0",
                    "tilezero tmm1",
                    "tilezero tmm2",
                    "tilezero tmm3",
                    "4:",
                    "test {steps}, {steps}",
                    "jz 5f",
                    "2:",
                    "tileloadd tmm4, [{upper} + {left_bytes}]",
                    "tileloadd tmm6, [{first} + {tile_bytes}]",
                    "tdpbf16ps tmm0, tmm4, tmm6",
                    "tileloadd tmm7, [{second} + {tile_bytes}]",
                    "tdpbf16ps tmm1, tmm4, tmm7",
                    "tileloadd tmm5, [{lower} + {left_bytes}]",
                    "tdpbf16ps tmm2, tmm5, tmm6",
                    "tdpbf16ps tmm3, tmm5, tmm7",
                    "add {upper}, 64",
                    "add {lower}, 64",
                    "add {first}, 1024",
                    "add {second}, 1024",
                    "dec {steps}",
                    "jnz 2b",
                    "5:",
                    "tilestored [{above} + {sum_bytes}], tmm0",
                    "tilestored [{above} + {sum_bytes} + 64], tmm1",
                    "tilestored [{below} + {sum_bytes}], tmm2",
                    "tilestored [{below} + {sum_bytes} + 64], tmm3",
                    adds = in(reg) u32::from(mode == Mode::Add),
                    above = in(reg) above.as_mut_ptr(),
                    below = in(reg) below.as_mut_ptr(),
                    sum_bytes = in(reg) stride * 4,
                    steps = inout(reg) left.inner / (2 * SIDE) => _,
                    upper = inout(reg) upper => _,
                    lower = inout(reg) lower => _,
                    first = inout(reg) first => _,
                    second = inout(reg) second => _,
                    left_bytes = in(reg) left.stride * 2,
                    tile_bytes = in(reg) 64usize,
                    out("tmm0") _, out("tmm1") _, out("tmm2") _, out("tmm3") _,
                    out("tmm4") _, out("tmm5") _, out("tmm6") _, out("tmm7") _,
                    options(nostack),
                );
            }
        }
    }

    // SAFETY: it takes nothing but the tiles, whose contents are stored.
    unsafe { asm!("tilerelease", options(nostack, preserves_flags, nomem)) };
}

/// Rows and columns (of 16) of a block of sums in registers.
pub const ROWS: usize = 8;
const COLUMNS: usize = 2;

/// Multiplies with blocks of sums in registers. The caller has checked the dimensions.
pub fn multiply_by_pairs(
    left: Left<'_, Bf16>,
    right: &Packed<Bf16>,
    columns: usize,
    sum: &mut [f32],
    stride: usize,
    mode: Mode,
) {
    // SAFETY: the processor has the features, or the caller would have chosen another unit.
    unsafe { pairs(left, right, columns, sum, stride, mode) };
}

#[target_feature(enable = "avx512f,avx512bf16")]
fn pairs(
    left: Left<'_, Bf16>,
    right: &Packed<Bf16>,
    columns: usize,
    sum: &mut [f32],
    stride: usize,
    mode: Mode,
) {
    let tiles = right.inner() / (2 * SIDE);
    for column in (0..columns).step_by(COLUMNS * SIDE) {
        let cells: [&[u32]; COLUMNS] = std::array::from_fn(|at| {
            &right.cells[(column / SIDE + at) * tiles * TILE..][..left.inner / 2 * SIDE]
        });

        for row in (0..left.rows).step_by(ROWS) {
            let values: [&[Bf16]; ROWS] =
                std::array::from_fn(|at| &left.values[(row + at) * left.stride..][..left.inner]);
            let mut lanes: [[__m512; COLUMNS]; ROWS] = [[_mm512_setzero_ps(); COLUMNS]; ROWS];

            if mode == Mode::Add {
                for (at, lanes) in lanes.iter_mut().enumerate() {
                    let sum = &sum[(row + at) * stride + column..][..COLUMNS * SIDE];
                    for (lane, sum) in lanes.iter_mut().zip(sum.chunks_exact(SIDE)) {
                        // SAFETY: the slice has 16 values.
                        *lane = unsafe { _mm512_loadu_ps(sum.as_ptr()) };
                    }
                }
            }

            for pair in 0..left.inner / 2 {
                let right: [__m512bh; COLUMNS] = std::array::from_fn(|at| {
                    // SAFETY: `cells` has 16 cells for each pair.
                    halves(unsafe {
                        _mm512_loadu_si512(cells[at].as_ptr().add(pair * SIDE).cast())
                    })
                });
                for (lanes, values) in lanes.iter_mut().zip(values) {
                    // SAFETY: `values` has a value at 2 * pair and one after it.
                    let left =
                        unsafe { values.as_ptr().add(2 * pair).cast::<i32>().read_unaligned() };
                    let left = halves(_mm512_set1_epi32(left));
                    for (lane, right) in lanes.iter_mut().zip(right) {
                        *lane = _mm512_dpbf16_ps(*lane, left, right);
                    }
                }
            }

            for (at, lanes) in lanes.iter().enumerate() {
                let sum = &mut sum[(row + at) * stride + column..][..COLUMNS * SIDE];
                for (lane, sum) in lanes.iter().zip(sum.chunks_exact_mut(SIDE)) {
                    // SAFETY: the slice has 16 values.
                    unsafe { _mm512_storeu_ps(sum.as_mut_ptr(), *lane) };
                }
            }
        }
    }
}

/// Multiplies f32 values with blocks of sums in registers. The caller has checked the dimensions.
pub fn multiply_by_panels(
    left: Left<'_, f32>,
    right: &Packed<f32>,
    columns: usize,
    sum: &mut [f32],
    stride: usize,
    mode: Mode,
) {
    // SAFETY: the processor has AVX-512, or the caller would have chosen the portable product.
    unsafe { panels(left, right, columns, sum, stride, mode) };
}

#[target_feature(enable = "avx512f")]
fn panels(
    left: Left<'_, f32>,
    right: &Packed<f32>,
    columns: usize,
    sum: &mut [f32],
    stride: usize,
    mode: Mode,
) {
    for column in (0..columns).step_by(COLUMNS * SIDE) {
        let panel =
            right.cells[column * right.inner()..][..left.inner * COLUMNS * SIDE].as_chunks().0;
        let sum = &mut sum[column..];
        // Eight rows at a time, then four, two and one, so that few rows need no padding.
        let row = panel_rows::<ROWS>(left, 0, panel, sum, stride, mode);
        let row = panel_rows::<{ ROWS / 2 }>(left, row, panel, sum, stride, mode);
        let row = panel_rows::<{ ROWS / 4 }>(left, row, panel, sum, stride, mode);
        panel_rows::<1>(left, row, panel, sum, stride, mode);
    }
}

/// Multiplies rows from `row` on with a panel, `COUNT` at a time, and returns the first row of a
/// remainder of fewer than `COUNT`.
#[target_feature(enable = "avx512f")]
fn panel_rows<const COUNT: usize>(
    left: Left<'_, f32>,
    mut row: usize,
    panel: &[[f32; COLUMNS * SIDE]],
    sum: &mut [f32],
    stride: usize,
    mode: Mode,
) -> usize {
    while row + COUNT <= left.rows {
        let values: [&[f32]; COUNT] =
            std::array::from_fn(|at| &left.values[(row + at) * left.stride..][..panel.len()]);
        let mut lanes: [[__m512; COLUMNS]; COUNT] = [[_mm512_setzero_ps(); COLUMNS]; COUNT];

        for (at, right) in panel.iter().enumerate() {
            let right: [__m512; COLUMNS] = std::array::from_fn(|lane| {
                // SAFETY: the array has 16 values from here on.
                unsafe { _mm512_loadu_ps(right.as_ptr().add(lane * SIDE)) }
            });
            for (lanes, values) in lanes.iter_mut().zip(values) {
                let value = _mm512_set1_ps(values[at]);
                for (lane, right) in lanes.iter_mut().zip(right) {
                    *lane = _mm512_fmadd_ps(value, right, *lane);
                }
            }
        }

        for (at, lanes) in lanes.iter().enumerate() {
            let sum = &mut sum[(row + at) * stride..][..COLUMNS * SIDE];
            for (lane, sum) in lanes.iter().zip(sum.chunks_exact_mut(SIDE)) {
                // SAFETY: the slice has 16 values.
                unsafe {
                    let before = if mode == Mode::Add {
                        _mm512_loadu_ps(sum.as_ptr())
                    } else {
                        _mm512_setzero_ps()
                    };
                    _mm512_storeu_ps(sum.as_mut_ptr(), _mm512_add_ps(before, *lane));
                }
            }
        }

        row += COUNT;
    }
    row
}

/// The same bits as pairs of bf16 values.
#[target_feature(enable = "avx512f,avx512bf16")]
fn halves(bits: __m512i) -> __m512bh {
    // SAFETY: both have 512 bits, of which each value is valid.
    unsafe { std::mem::transmute::<__m512i, __m512bh>(bits) }
}

/// Transposes 16 rows of 16 cells: 4 by 4 within the quarters of rows, then the quarters.
#[target_feature(enable = "avx512f")]
fn turned(rows: &[__m512i; SIDE]) -> [__m512i; SIDE] {
    let mut pairs = [_mm512_setzero_si512(); SIDE];
    for at in (0..SIDE).step_by(2) {
        pairs[at] = _mm512_unpacklo_epi32(rows[at], rows[at + 1]);
        pairs[at + 1] = _mm512_unpackhi_epi32(rows[at], rows[at + 1]);
    }

    // Quarter q of `quads[4 k + j]` is column 4 q + j of rows 4 k to 4 k + 3.
    let mut quads = [_mm512_setzero_si512(); SIDE];
    for at in (0..SIDE).step_by(4) {
        quads[at] = _mm512_unpacklo_epi64(pairs[at], pairs[at + 2]);
        quads[at + 1] = _mm512_unpackhi_epi64(pairs[at], pairs[at + 2]);
        quads[at + 2] = _mm512_unpacklo_epi64(pairs[at + 1], pairs[at + 3]);
        quads[at + 3] = _mm512_unpackhi_epi64(pairs[at + 1], pairs[at + 3]);
    }

    let mut columns = [_mm512_setzero_si512(); SIDE];
    for at in 0..4 {
        let [a, b, c, d] = [quads[at], quads[4 + at], quads[8 + at], quads[12 + at]];
        let (ab_even, cd_even) = (
            _mm512_shuffle_i32x4::<0b10_00_10_00>(a, b),
            _mm512_shuffle_i32x4::<0b10_00_10_00>(c, d),
        );
        let (ab_odd, cd_odd) = (
            _mm512_shuffle_i32x4::<0b11_01_11_01>(a, b),
            _mm512_shuffle_i32x4::<0b11_01_11_01>(c, d),
        );
        columns[at] = _mm512_shuffle_i32x4::<0b10_00_10_00>(ab_even, cd_even);
        columns[4 + at] = _mm512_shuffle_i32x4::<0b10_00_10_00>(ab_odd, cd_odd);
        columns[8 + at] = _mm512_shuffle_i32x4::<0b11_01_11_01>(ab_even, cd_even);
        columns[12 + at] = _mm512_shuffle_i32x4::<0b11_01_11_01>(ab_odd, cd_odd);
    }

    columns
}

/// Transposes blocks of 32 rows and 16 columns of `from`. The numbers of rows and columns are
/// multiples of these.
#[target_feature(enable = "avx512f")]
pub fn transpose_blocks(
    from: &[Bf16],
    stride: usize,
    rows: usize,
    columns: usize,
    to: &mut [Bf16],
    to_stride: usize,
) {
    for row in (0..rows).step_by(2 * SIDE) {
        for column in (0..columns).step_by(SIDE) {
            let values = |row: usize| {
                let values = &from[row * stride + column..][..SIDE];
                // SAFETY: the slice has 16 values.
                _mm512_cvtepu16_epi32(unsafe { _mm256_loadu_si256(values.as_ptr().cast()) })
            };

            let cells = std::array::from_fn(|pair| {
                let upper = values(row + 2 * pair);
                _mm512_or_si512(upper, _mm512_slli_epi32::<16>(values(row + 2 * pair + 1)))
            });

            for (at, cells) in turned(&cells).into_iter().enumerate() {
                let to = &mut to[(column + at) * to_stride + row..][..2 * SIDE];
                // SAFETY: the slice has 32 values.
                unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), cells) };
            }
        }
    }
}

/// Packs the transpose of one tile: `from` has 16 rows of 32 values, `stride` apart, each pair of
/// which becomes a cell.
#[target_feature(enable = "avx512f")]
pub fn pack_tile(from: &[Bf16], stride: usize, tile: &mut [u32]) {
    let rows = std::array::from_fn(|row| {
        let values = &from[row * stride..][..2 * SIDE];
        // SAFETY: the slice has 32 values.
        unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
    });

    for (cells, row) in turned(&rows).into_iter().zip(tile.chunks_exact_mut(SIDE)) {
        // SAFETY: a row of the tile has 16 cells.
        unsafe { _mm512_storeu_si512(row.as_mut_ptr().cast(), cells) };
    }
}

/// Writes the transpose of `from` [rows, columns] to `to` [columns, rows]. Both dimensions are
/// multiples of 16.
#[target_feature(enable = "avx512f")]
pub fn transpose_cells(
    from: &[f32],
    stride: usize,
    rows: usize,
    columns: usize,
    to: &mut [f32],
    to_stride: usize,
) {
    for row in (0..rows).step_by(SIDE) {
        for column in (0..columns).step_by(SIDE) {
            let cells = std::array::from_fn(|at| {
                let values = &from[(row + at) * stride + column..][..SIDE];
                // SAFETY: the slice has 16 values.
                unsafe { _mm512_loadu_si512(values.as_ptr().cast()) }
            });

            for (at, cells) in turned(&cells).into_iter().enumerate() {
                let to = &mut to[(column + at) * to_stride + row..][..SIDE];
                // SAFETY: the slice has 16 values.
                unsafe { _mm512_storeu_si512(to.as_mut_ptr().cast(), cells) };
            }
        }
    }
}
