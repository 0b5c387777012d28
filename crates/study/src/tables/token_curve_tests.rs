//! Curves of accuracy against tokens.

use super::token_curve::{of_systems, token_curve};
use crate::results::Results;
use crate::testing::record;

#[test]
fn accuracy_at_a_budget_is_that_of_runs_ended_there() {
    let curve = |system: &str, index: u32, points: &[(u64, bool)]| {
        let mut run = record(system, "n-queens", index);
        run.input_digest = Some(index.to_string());
        run.set_curve(points.iter().copied());
        run
    };
    let records = [
        curve("votes", 0, &[(10, false), (30, true)]),
        curve("votes", 1, &[(20, true)]),
        curve("prime", 0, &[(30, true)]),
        curve("prime", 1, &[]),
        // Written by an earlier version.
        record("old", "n-queens", 0),
    ];

    let results = Results::new(&records, &[]).unwrap();
    let curves = of_systems(&results);
    let shown: Vec<(&str, Vec<(u64, f64)>)> = curves
        .iter()
        .map(|(system, curve)| {
            let at = curve.iter().map(|at| (at.tokens, at.accuracy.mean)).collect();
            (system.name.as_str(), at)
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("votes", vec![(10, 0.0), (20, 0.5), (30, 1.0)]),
            ("prime", vec![(10, 0.0), (20, 0.0), (30, 0.5)]),
        ]
    );
    assert!(curves[0].1.iter().all(|at| at.n == 2));
    assert_eq!(token_curve(&results).rows.len(), 6);

    let old = [record("old", "n-queens", 0)];
    assert!(token_curve(&Results::new(&old, &[]).unwrap()).rows.is_empty());
}
