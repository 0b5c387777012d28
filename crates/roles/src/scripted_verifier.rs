//! Verifier `scripted`: the exact verifier with errors of given probabilities. It shows how good a
//! verifier has to be, because its rates of false accepts and false rejects are known.

use prime_bench::judge::is_right;
use prime_bench::tasks::{Kind, Kinds, Spec, TaskRng};
use prime_protocol::{Score, Trajectory, Verdict};

use super::{AgentReply, Basis, Verifier, reference_verifier};

/// Judges like [`ReferenceVerifier`](super::ReferenceVerifier), and then errs.
///
/// A line that the task refuses is always rejected: no verdict could commit it. The errors are
/// drawn from the trajectory's index, its committed lines, its proposals so far and the line, so a
/// turn that is repeated has the same verdict, and a second look at the same line has another one.
pub struct ScriptedVerifier {
    /// Probability that a wrong step is accepted, in millionths: β of the paper's theorem on the
    /// propagation of verification errors.
    false_accepts: u64,
    /// Probability that a right step is rejected, in millionths: α of the same theorem.
    false_rejects: u64,
}

impl ScriptedVerifier {
    /// Both probabilities between 0 and 1.
    pub fn new(false_accepts: f64, false_rejects: f64) -> Self {
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "between 0 and a million"
        )]
        let millionths = |rate: f64| (rate.clamp(0.0, 1.0) * 1e6).round() as u64;
        Self { false_accepts: millionths(false_accepts), false_rejects: millionths(false_rejects) }
    }
}

/// The seed of a verdict: FNV-1a over everything that distinguishes this turn.
fn seed(trajectory: &Trajectory, line: &str) -> u64 {
    let numbers =
        [u64::from(trajectory.index), trajectory.stack.digest(), trajectory.counts.proposals];
    let bytes = numbers.into_iter().flat_map(u64::to_le_bytes).chain(line.bytes());
    bytes.fold(0xcbf2_9ce4_8422_2325, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

/// The verdict that rejects a step without a fault.
fn mistaken() -> Verdict {
    Verdict {
        score: Score::from_tenths(10),
        violations: vec!["next-step".into()],
        feedback: Some("the step is wrong".to_owned()),
        ..Verdict::default()
    }
}

impl Verifier for ScriptedVerifier {
    /// An opinion on the form alone, because a verifier that errs proves nothing.
    fn basis(&self, _: &Spec) -> Basis {
        Basis::program(Kinds::from_iter([Kind::Format]))
    }

    fn needs_algorithm(&self) -> bool {
        true
    }

    fn judge<'a>(&'a self, trajectory: &'a Trajectory, line: &'a str) -> AgentReply<'a, Verdict> {
        let machine = trajectory.machine.as_ref();
        if !machine.problem().has_reference() {
            return AgentReply::now(Err(reference_verifier::without_reference("scripted")));
        }
        let refused = Verdict::by_rules(machine, Kinds::from_iter([Kind::Format]));
        if let Some(refused) = refused {
            return AgentReply::now(Ok(refused));
        }

        let is_right = is_right(machine, line);
        let rate = if is_right { self.false_rejects } else { self.false_accepts };
        let errs = TaskRng::new(seed(trajectory, line)).chance(rate, 1_000_000);
        let is_accepted = is_right != errs;
        AgentReply::now(Ok(if is_accepted {
            Verdict::default()
        } else {
            Verdict::by_rules(machine, Kinds::ALL).unwrap_or_else(mistaken)
        }))
    }
}

#[cfg(test)]
mod tests {
    use futures::executor::block_on;
    use prime_bench::tasks;
    use prime_protocol::Limits;
    use serde_json::json;

    use super::*;

    const LIMITS: Limits =
        Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };

    /// A trajectory of bubble-sort on 3 1 2, whose first step compares 0 and 1.
    fn trajectory() -> Trajectory {
        let task = tasks::find("bubble-sort").expect("listed");
        let problem = task.read_input(&json!({"a": [3, 1, 2]})).expect("valid");
        Trajectory::new(problem.start(), &LIMITS)
    }

    fn accepts(verifier: &ScriptedVerifier, trajectory: &mut Trajectory, line: &str) -> bool {
        let _ = trajectory.machine.propose(line);
        block_on(verifier.judge(trajectory, line)).expect("a verdict").score == Score::ZERO
    }

    #[test]
    fn it_is_exact_without_errors_and_the_opposite_with_nothing_else() {
        let trajectory = &mut trajectory();
        let right = trajectory.machine.reference().expect("a step");
        let wrong = "cmp 1 2";
        assert_ne!(right, wrong);

        let exact = ScriptedVerifier::new(0.0, 0.0);
        assert!(accepts(&exact, trajectory, &right) && !accepts(&exact, trajectory, wrong));

        let opposite = ScriptedVerifier::new(1.0, 1.0);
        assert!(!accepts(&opposite, trajectory, &right) && accepts(&opposite, trajectory, wrong));
        assert!(!accepts(&opposite, trajectory, "no action"), "it cannot be committed");
    }

    #[test]
    fn a_turn_has_one_verdict_and_the_turns_have_the_rate() {
        let trajectory = &mut trajectory();
        let verifier = ScriptedVerifier::new(0.25, 0.0);
        let mut accepted = 0;
        for proposals in 0..4_000 {
            trajectory.counts.proposals = proposals;
            let first = accepts(&verifier, trajectory, "cmp 1 2");
            assert_eq!(accepts(&verifier, trajectory, "cmp 1 2"), first);
            accepted += u32::from(first);
        }
        // 1,000 are expected, with a standard deviation of 27.
        assert!((890..1_110).contains(&accepted), "{accepted}");
    }
}
