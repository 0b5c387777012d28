//! What models write, and who hears it.

use super::*;
use prime_protocol::{Role, TurnId};
use prime_roles::live::{self, Listener, Writing};

/// Writes before it answers, on a later poll.
struct Writes;

#[async_trait]
impl Before for Writes {
    async fn before(&self, _: u64, _: &Trajectory) -> Result<(), AgentError> {
        tokio::task::yield_now().await;
        if let Some(listener) = live::listener() {
            listener.writes(Writing { text: "cmp".to_owned(), prompt: None });
        }
        Ok(())
    }
}

type Heard = Arc<Mutex<Vec<(TurnId, Role, String)>>>;

#[derive(Clone, Default)]
struct Hears(Heard);

impl Observer for Hears {
    fn observe(&self, _: &Event<'_>) {}

    fn listener(&self, id: TurnId, role: Role) -> Option<Listener> {
        let heard = Arc::clone(&self.0);
        Some(Arc::new(move |Writing { text, .. }| heard.lock().unwrap().push((id, role, text))))
    }
}

#[test]
fn the_observer_of_a_run_hears_what_is_written_for_its_turns() {
    let heard = in_system(async {
        let hears = Hears::default();
        let (agents, _) =
            agents(|_| reference_after(Writes), |_| After(Writes, rules()), |_| threshold());
        let observer = Arc::new(hears.clone());
        let run = Submission { observer, ..submission(&problem("bubble-sort"), plan(1)) };
        assert!(outcome_of(shared(agents).submit(run)).await.is_verified());
        hears.0.lock().unwrap().clone()
    });

    let id = TurnId { round: 1, trajectory: 0 };
    let expected = [(id, Role::Executor, "cmp".to_owned()), (id, Role::Verifier, "cmp".to_owned())];
    assert_eq!(heard[..2], expected);
    assert!(heard.iter().all(|(turn, role, _)| *turn == id && *role != Role::Coordinator));
}
