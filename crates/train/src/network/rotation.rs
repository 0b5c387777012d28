//! Rotary position embedding on interleaved pairs.

use std::sync::Arc;

/// The angles of a context's positions.
#[derive(Debug, Clone)]
pub struct Rotation {
    /// Per position, per pair: cosine, sine.
    table: Arc<[[f32; 2]]>,
    head_dim: usize,
}

impl Rotation {
    pub fn new(context: usize, head_dim: usize) -> Self {
        let half = head_dim / 2;
        let angle = move |position: usize, pair: usize| {
            position as f64 * 10_000f64.powf(-(pair as f64) / half as f64)
        };
        let table = (0..context * half)
            .map(|cell| angle(cell / half, cell % half))
            .map(|angle| [angle.cos() as f32, angle.sin() as f32])
            .collect();

        Self { table, head_dim }
    }

    /// Cosine and sine of each pair of a head at a position.
    pub fn angles(&self, position: usize) -> &[[f32; 2]] {
        let half = self.head_dim / 2;
        &self.table[position * half..(position + 1) * half]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pair_turns_slower_than_the_one_before_it() {
        let rotation = Rotation::new(8, 4);
        for position in [0u8, 1, 7] {
            let position_angle = f32::from(position);
            let angles = rotation.angles(usize::from(position));
            assert_eq!(angles.len(), 2);
            for (found, angle) in angles.iter().zip([position_angle, 0.01 * position_angle]) {
                assert!(
                    (found[0] - angle.cos()).abs() < 1e-6 && (found[1] - angle.sin()).abs() < 1e-6,
                    "{found:?}"
                );
            }
        }
    }
}
