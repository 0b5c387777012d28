//! When a failed message is sent again. Pure: chance is an argument.

use std::time::Duration;

/// The pause after an attempt that failed; `None` if it was the last one. `failed` attempts failed
/// before it. `chance` from 0 to 1 makes the pause up to a fifth longer, so that the messages of an
/// outage do not come back all at once.
pub fn pause(pauses_ms: &[u64], failed: u32, chance: f64) -> Option<Duration> {
    let pause = pauses_ms.get(failed as usize)?;
    Some(Duration::from_millis(*pause).mul_f64(1.0 + chance.clamp(0.0, 1.0) / 5.0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_settings::Webhook;

    #[test]
    fn pauses_grow_as_standard_webhooks_says_and_end() {
        let pauses = Webhook::default().retry_ms;
        let seconds = |chance| -> Vec<u64> {
            (0..7).map(|failed| pause(&pauses, failed, chance).unwrap().as_secs()).collect()
        };
        assert_eq!(seconds(0.0), [5, 300, 1_800, 7_200, 18_000, 36_000, 36_000]);
        assert_eq!(seconds(1.0), [6, 360, 2_160, 8_640, 21_600, 43_200, 43_200]);
        assert_eq!(pause(&pauses, 7, 0.5), None);
        assert_eq!(pause(&pauses, u32::MAX, 0.5), None);
        assert_eq!(pause(&[], 0, 0.5), None);
    }
}
