//! Agents on their own threads, which they may block.

use crossbeam_channel::{Receiver, Sender, unbounded};

use super::*;

/// The second turn blocks until the first has reached the verifier.
struct Blocks {
    turns: AtomicU64,
    verified: Receiver<()>,
}

struct Tells(Sender<()>);

#[async_trait]
impl Before for Arc<Blocks> {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        if self.turns.fetch_add(1, Ordering::SeqCst) == 1 {
            self.verified.recv_timeout(PATIENCE / 2).expect("the first turn has moved on");
        }
        Ok(())
    }
}

#[async_trait]
impl Before for Tells {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        // Only the first message is received.
        let _ = self.0.send(());
        Ok(())
    }
}

#[test]
fn an_agent_that_blocks_does_not_hold_up_finished_turns() {
    let (verified, to_verify) = unbounded();
    let blocks = Arc::new(Blocks { turns: AtomicU64::new(0), verified: to_verify });
    let (agents, made) = agents(
        move |_| reference_after(Arc::clone(&blocks)),
        move |_| After(Tells(verified.clone()), rules()),
        |_| threshold(),
    );
    in_system(async {
        let runtime = Runtime::start(&runtime_plan(Placement::Own), agents);
        // Both turns travel in one message.
        let outcome =
            outcome_of(runtime.submit(submission(&problem("bubble-sort"), plan(2)))).await;
        assert!(outcome.is_verified(), "{outcome:?}");
    });
    assert_eq!(made.counts(), [1, 1, 1], "no agent has died");
}
