//! Assigns runs to the sides of the comparison `agents.split`.

use serde_json::json;
use sha2::{Digest as _, Sha256};

use super::overrides::Overrides;
use prime_bench::tasks::Problem;
use prime_report::Arm;
use prime_settings::Split;

/// Assigns a run to a side, and chooses the other agent if it is on that side. `None` without a
/// comparison, or if the role's agent is already chosen.
///
/// The side depends only on the comparison, the seed and the instance: a run is on side B if the
/// SHA-256 of the JSON list of role, other agent, seed, task, instance and input, its first eight
/// bytes read as a fraction, lies below the share. The same request with the same seed is always on
/// the same side, and a larger share only moves runs to the other agent.
pub fn assign(
    split: &Split,
    agents: &mut Overrides,
    seed: u64,
    instance: &str,
    problem: &dyn Problem,
) -> Option<Arm> {
    if split.other.is_empty() || agents.agent(split.role).is_some() {
        return None;
    }

    let drawn =
        json!([split.role, split.other, seed, problem.spec().slug, instance, problem.input()]);
    let arm = if fraction(&drawn.to_string()) < split.share { Arm::B } else { Arm::A };

    if arm == Arm::B {
        agents.choose(split.role, &split.other);
    }
    Some(arm)
}

/// A hash of the text in [0, 1).
#[expect(clippy::cast_precision_loss, reason = "53 bits fit into a float")]
fn fraction(text: &str) -> f64 {
    let digest = Sha256::digest(text.as_bytes());
    let bits = digest.iter().take(8).fold(0_u64, |all, byte| all << 8 | u64::from(*byte));
    // A float has 53 bits of precision: more would round up to 1.
    (bits >> 11) as f64 / (1_u64 << 53) as f64
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_bench::tasks::{self, Difficulty};
    use prime_protocol::Role;

    fn split(share: f64) -> Split {
        Split { role: Role::Verifier, other: "strict".to_owned(), share }
    }

    fn side(split: &Split, agents: &Overrides, seed: u64) -> (Option<Arm>, Overrides) {
        let problem = tasks::find("bubble-sort").unwrap().generate(Difficulty::Easy, 7);
        let mut agents = agents.clone();
        (assign(split, &mut agents, seed, "input", problem.as_ref()), agents)
    }

    #[test]
    fn fractions_are_the_first_bytes_of_the_hash() {
        // printf abc | sha256sum gives ba7816bf8f01cfea…, and 0xba78 / 0x10000 is 0.7284…
        assert!((fraction("abc") - 0.728_394_910).abs() < 1e-9);
    }

    #[test]
    fn sides_are_stable_and_a_larger_share_only_adds_runs() {
        let none = Overrides::default();
        let mut before = 0;
        for share in [0.0, 0.2, 0.5, 0.9, 1.0] {
            let others: Vec<u64> = (0..500)
                .filter(|seed| side(&split(share), &none, *seed).0 == Some(Arm::B))
                .collect();

            let expected = share * 500.0;
            assert!(
                (others.len() as f64 - expected).abs() < 50.0,
                "{} of 500 for {share}",
                others.len()
            );
            assert!(others.len() >= before);

            for seed in others.iter().take(5) {
                let (again, agents) = side(&split(1.0_f64.min(share + 0.1)), &none, *seed);
                assert_eq!((again, agents.agent(Role::Verifier)), (Some(Arm::B), Some("strict")));
            }
            before = others.len();
        }

        assert_eq!(side(&split(0.0), &none, 1), (Some(Arm::A), Overrides::default()));
    }

    #[test]
    fn a_chosen_agent_takes_no_part_in_the_comparison() {
        let mut agents = Overrides::default();
        agents.choose(Role::Executor, "scripted");
        assert_eq!(side(&split(1.0), &agents, 1).0, Some(Arm::B), "another role");
        agents.choose(Role::Verifier, "rules");
        assert_eq!(side(&split(1.0), &agents, 1), (None, agents.clone()));

        let off = Split { other: String::new(), ..split(1.0) };
        assert_eq!(side(&off, &Overrides::default(), 1), (None, Overrides::default()));
    }
}
