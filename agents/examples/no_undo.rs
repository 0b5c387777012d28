//! A custom coordinator: the threshold policy, except that a move must not be undone immediately.
//!
//! `cargo run --example no_undo` and `cargo test --example no_undo` run the conformance suite over
//! it.

use std::sync::Arc;

use prime_agent_set::{AgentReply, Coordinator, Ruling, ThresholdCoordinator, conformance};
use prime_protocol::{Decision, Score, Thresholds, Trajectory, Verdict};

struct NoUndo(ThresholdCoordinator);

/// Returns whether `move DISK FROM TO` follows `move DISK TO FROM`.
fn undoes(last: &str, line: &str) -> bool {
    let (last, line): (Vec<_>, Vec<_>) = (last.split(' ').collect(), line.split(' ').collect());
    matches!((&*last, &*line), (["move", disk, from, to], ["move", same, back, home])
        if disk == same && from == home && to == back)
}

impl Coordinator for NoUndo {
    fn decide<'a>(
        &'a self,
        trajectory: &'a Trajectory,
        line: &'a str,
        verdict: &'a Verdict,
    ) -> AgentReply<'a, Ruling> {
        match trajectory.stack.lines().last() {
            Some(last) if undoes(last, line) => AgentReply::now(Ok(Decision::Backtrack.into())),
            _ => self.0.decide(trajectory, line, verdict),
        }
    }
}

fn make() -> Arc<dyn Coordinator> {
    let thresholds =
        Thresholds { soft: Score::from_tenths(3), hard: Score::from_tenths(8), retries_max: 2 };
    Arc::new(NoUndo(ThresholdCoordinator(thresholds)))
}

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let findings = conformance::coordinator(make).await;
    findings.iter().for_each(|finding| println!("{finding}"));
    println!("{} findings", findings.len());
}

#[cfg(test)]
mod tests {
    use prime_bench::tasks::{self, Difficulty};
    use prime_protocol::trajectory::Limits;

    use super::*;

    #[tokio::test]
    async fn it_passes_the_conformance_suite() {
        assert_eq!(conformance::coordinator(make).await, []);
    }

    #[tokio::test]
    async fn a_move_is_not_undone() {
        let limits =
            Limits { attempts_max: 8, pops_max: 8, snapshot_every_frames: 8, ..Limits::DEFAULT };

        let start =
            tasks::find("tower-of-hanoi").expect("listed").generate(Difficulty::Easy, 1).start();
        let first = start.reference().expect("a first move");
        let [word, disk, from, to] = first.split(' ').collect::<Vec<_>>()[..] else {
            panic!("{first}")
        };

        let mut trajectory = Trajectory::new(start, &limits);
        trajectory.machine.propose(&first).expect("legal");
        trajectory.settle(&first, true, &Verdict::default(), Decision::Proceed, &limits);

        let decide = async |line: &str| {
            let ruling = make().decide(&trajectory, line, &Verdict::default()).await;
            ruling.expect("a ruling").decision
        };

        assert_eq!(decide(&format!("{word} {disk} {to} {from}")).await, Decision::Backtrack);
        let onwards = trajectory.machine.reference().expect("a second move");
        assert_eq!(decide(&onwards).await, Decision::Proceed);
    }
}
