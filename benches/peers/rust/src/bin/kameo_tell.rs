//! kameo, `tell` round the ring with bounded mailboxes, on a Tokio runtime of one thread
//! (`current`) or of one for each core (`multi`).

use std::sync::{Arc, OnceLock};

use kameo::Actor;
use kameo::actor::{ActorRef, Spawn as _};
use kameo::mailbox::bounded;
use kameo::message::{Context, Message};
use peers::{
    Coordinator, Kick, MAILBOX, Measured, Phase, Spec, drive, execute, report, runtime, verify,
};

#[derive(Actor)]
struct ExecutorActor(ActorRef<VerifierActor>);

#[derive(Actor)]
struct VerifierActor(ActorRef<CoordinatorActor>);

#[derive(Actor)]
struct CoordinatorActor(Arc<OnceLock<ActorRef<ExecutorActor>>>, Coordinator);

struct Request(peers::Request);
struct Action(peers::Action);
struct Verdict(peers::Verdict);

impl Message<Request> for ExecutorActor {
    type Reply = ();

    async fn handle(&mut self, message: Request, context: &mut Context<Self, ()>) {
        if self.0.tell(Action(execute(message.0))).await.is_err() {
            context.stop();
        }
    }
}

impl Message<Action> for VerifierActor {
    type Reply = ();

    async fn handle(&mut self, message: Action, context: &mut Context<Self, ()>) {
        if self.0.tell(Verdict(verify(message.0))).await.is_err() {
            context.stop();
        }
    }
}

impl Message<Verdict> for CoordinatorActor {
    type Reply = ();

    async fn handle(&mut self, message: Verdict, context: &mut Context<Self, ()>) {
        let executor = self.0.get().expect("invariant: set before the first request");
        if let Some(next) = self.1.decide(message.0)
            && executor.tell(Request(next)).await.is_err()
        {
            context.stop();
        }
    }
}

async fn ring(spec: Spec) -> Measured {
    let (phase, mut ended) = Phase::new(spec);
    let mut kicks: Vec<Kick> = Vec::new();
    for _ in 0..spec.trios() {
        // The ring is closed through a slot, since the executor is made last.
        let slot = Arc::new(OnceLock::new());
        let coordinator = CoordinatorActor(Arc::clone(&slot), Coordinator::new(&phase));
        let coordinator = CoordinatorActor::spawn_with_mailbox(coordinator, bounded(MAILBOX));

        let verifier =
            VerifierActor::spawn_with_mailbox(VerifierActor(coordinator.clone()), bounded(MAILBOX));
        let executor =
            ExecutorActor::spawn_with_mailbox(ExecutorActor(verifier.clone()), bounded(MAILBOX));

        slot.get_or_init(|| executor.clone());
        // No actor is still starting when the clock does.
        coordinator.wait_for_startup().await;
        verifier.wait_for_startup().await;
        executor.wait_for_startup().await;

        kicks.push(Box::new(move |request| {
            executor.tell(Request(request)).try_send().expect("there is room for every trajectory");
        }));
    }

    drive(&kicks, &phase, &mut ended).await
}

fn main() {
    report(|variant, spec| {
        let is_multi_thread = match variant {
            "current" => false,
            "multi" => true,
            other => return Err(format!("`{other}` is none of current, multi")),
        };
        let runtime = runtime(is_multi_thread);
        let measured = runtime.block_on(ring(spec));
        runtime.shutdown_background();
        Ok(Some(measured))
    });
}
