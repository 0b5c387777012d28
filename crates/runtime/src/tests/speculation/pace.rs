//! Speculation makes runs faster.

use super::*;

/// Steps per second of virtual time. Executor and verifier take `millis` each; 95 % of the steps
/// are accepted.
fn pace(speculate: bool, fanout: u32, millis: (usize, usize)) -> f64 {
    let moody = Moody { millis: (millis.1, millis.1), tolerable: 5, intolerable: 0 };
    let (executor, _) = erring(0.0, (millis.0, millis.0));

    let plan = RunPlan { speculate, early_stop: false, confidence: 1.0, ..plan(fanout) };
    let (traced, outcome) =
        traced(stopped(executor, move || moody).0, &problem("bubble-sort"), plan, 3);

    assert!(outcome.is_verified());
    let committed = outcome.proposals - outcome.retries;
    assert!(
        committed > 50 * u64::from(fanout) && outcome.retries > u64::from(fanout),
        "{outcome:?}"
    );
    committed as f64 * 1e3 / traced.elapsed_ms as f64
}

#[test]
fn a_proposal_that_takes_as_long_as_its_verdict_is_hidden_behind_it() {
    for fanout in [1, 8] {
        let gain = pace(true, fanout, (10, 10)) / pace(false, fanout, (10, 10));
        // At best 20 ms a step become 10; a rejected one costs the time of a proposal.
        assert!((1.7..2.0).contains(&gain), "{fanout}: {gain}");
    }
}

#[test]
fn the_gain_is_that_of_the_shorter_of_the_two() {
    for millis in [(50, 200), (200, 50)] {
        // At best 250 ms a step become 200.
        let gain = pace(true, 1, millis) / pace(false, 1, millis);
        assert!((1.15..1.26).contains(&gain), "{millis:?}: {gain}");
    }
}
