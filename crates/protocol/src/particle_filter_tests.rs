//! Particle filtering in a simulator without a runtime, with results that are known.

use super::batch::{Sample, Step};
use super::particle_filter::Particles;
use super::properties::{plan, queens, simulate, simulate_with};
use super::*;
use prime_bench::tasks::{self, TaskRng};

fn filter(particles: u32, resample_below: f64) -> ParticleFilter {
    ParticleFilter { particles, resample_below }
}

/// One round of a particle filter on a tower of four discs: fifteen steps. Slot 0 is right, the
/// others write no action.
fn one_is_right(resample_below: f64) -> Outcome {
    let input = serde_json::json!({"n": 4, "from": 0, "to": 2});
    let hanoi = tasks::find("tower-of-hanoi").expect("listed").read_input(&input).expect("valid");
    let strategy = Strategy::ParticleFilter(filter(4, resample_below));

    let plan = RunPlan { strategy, max_rounds: 1, ..plan(4, 6) };
    simulate_with(&hanoi, plan, &mut TaskRng::new(1), |id, trajectory, _| {
        let right = trajectory.machine.reference().expect("an open trace");
        (if id.trajectory == 0 { right } else { "I think that".to_owned() }, None)
    })
}

#[test]
fn systematic_resampling_copies_by_weight() {
    for (weights, uniform, copies) in [
        (&[1.0, 1.0, 1.0, 1.0], 0.5, [1, 1, 1, 1]),
        (&[3.0, 1.0, 0.0, 0.0], 0.5, [3, 1, 0, 0]),
        // Points at 0.125, 0.375, 0.625 and 0.875 of one.
        (&[0.5, 0.25, 0.25, 0.0], 0.5, [2, 1, 1, 0]),
        // Points at 0.1, 1.1, 2.1 and 3.1 of four.
        (&[0.0, 1.05, 0.05, 2.9], 0.1, [0, 1, 0, 3]),
        (&[0.0, 0.0, 0.0, 0.1], 0.999_999, [0, 0, 0, 4]),
    ] {
        assert_eq!(Particles::offspring(weights, uniform), copies, "{weights:?} {uniform}");
    }

    // Never more than one away from n times the share.
    let mut rng = TaskRng::new(5);
    for _ in 0..200 {
        let weights: Vec<f64> = (0..9).map(|_| rng.below(50) as f64 + 0.01).collect();
        let copies = Particles::offspring(&weights, rng.below(1000) as f64 / 1000.0);
        assert_eq!(copies.iter().sum::<usize>(), 9);
        let sum: f64 = weights.iter().sum();
        for (weight, copies) in weights.iter().zip(copies) {
            assert!((9.0 * weight / sum - copies as f64).abs() < 1.0, "{weights:?}");
        }
    }
}

#[test]
fn particles_that_die_are_replaced_by_copies_when_few_are_left() {
    // Resampled after each step: all four are asked each time, and three die each time.
    let outcome = one_is_right(1.0);
    assert!(outcome.is_verified() && outcome.ending == Ending::Agreed, "{outcome:?}");
    assert_eq!((outcome.steps, outcome.proposals, outcome.trajectories), (15, 60, 4));
    let counts = outcome.search.expect("a filter counts");
    assert_eq!((counts.resamplings, counts.deaths), (15, 45));

    // Never resampled: three die at once, and are not asked again.
    let outcome = one_is_right(0.0);
    assert!(outcome.is_verified());
    assert_eq!((outcome.steps, outcome.proposals), (15, 3 + 15));
    let counts = outcome.search.expect("a filter counts");
    assert_eq!((counts.resamplings, counts.deaths), (0, 3));
}

#[test]
fn a_filter_whose_proposals_are_all_rejected_asks_again_without_them() {
    let problem = queens(5);
    let strategy = Strategy::ParticleFilter(filter(2, 0.5));
    let garbage = ["x", "y", "z"];
    let propose = |trajectory: &Trajectory, _: &mut TaskRng| {
        let other = garbage.iter().find(|line| !trajectory.excludes(line));
        match other {
            Some(line) => (*line).to_owned(),
            None => trajectory.machine.reference().expect("an open trace"),
        }
    };

    // Three batches fail before each of five steps: one more than three attempts allow.
    let solved = |attempts_max| {
        let plan = RunPlan { strategy, max_rounds: 1, ..plan(2, attempts_max) };
        simulate(&problem, plan, &mut TaskRng::new(1), propose)
    };
    let outcome = solved(4);
    assert!(outcome.is_verified(), "{outcome:?}");
    assert_eq!((outcome.proposals, outcome.search.expect("counts").deaths), (2 * 4 * 5, 0));

    let outcome = solved(3);
    assert_eq!((outcome.answer, outcome.ending), (None, Ending::RoundsSpent));
    assert_eq!(outcome.proposals, 6);
}

/// The answer of three particles that complete a board of four: two the first solution with this V,
/// one the second, clean.
fn elected(tenths: u32) -> serde_json::Value {
    let problem = queens(4);
    let sample = |slot: u32, columns: [u32; 4], score: Score| {
        let mut trajectory = Trajectory::new(problem.start(), &Limits::DEFAULT);
        let line = |row: usize| format!("place {row} {}", columns[row]);
        for row in 0..3 {
            trajectory.machine.replay(&line(row)).expect("legal");
            trajectory.push(&line(row), Score::ZERO, Basis::NONE);
        }
        Sample {
            id: TurnId { round: 1, trajectory: slot },
            trajectory: Box::new(trajectory),
            line: line(3),
            applicable: true,
            passes: true,
            score,
            basis: Basis::NONE,
            logprob: None,
            characters: 0,
            feedback: None,
            exhausted: false,
            failure: None,
        }
    };

    let filter = filter(3, 0.0);
    let samples = vec![
        sample(0, [1, 3, 0, 2], Score::from_tenths(tenths)),
        sample(1, [1, 3, 0, 2], Score::from_tenths(tenths)),
        sample(2, [2, 0, 3, 1], Score::ZERO),
    ];
    match Particles::new(&filter).advance(&filter, samples, 1) {
        Step::Ended(_, _, End::Answered(answer)) => answer["queens"].clone(),
        _ => panic!("every particle has an answer"),
    }
}

#[test]
fn the_answer_of_most_weight_wins() {
    // Two times 1 / 1.9 against 1, then two times 1 / 2.1.
    assert_eq!(elected(9), serde_json::json!([1, 3, 0, 2]));
    assert_eq!(elected(11), serde_json::json!([2, 0, 3, 1]));
}
