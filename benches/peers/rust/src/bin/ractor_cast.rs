//! ractor, `cast` round the ring, on a Tokio runtime of one thread (`current`) or of one for each
//! core (`multi`).

use std::sync::{Arc, OnceLock};

use peers::{
    Coordinator, Kick, Measured, Phase, Request, Spec, Verdict, drive, execute, report, runtime,
    verify,
};
use ractor::{Actor, ActorProcessingErr, ActorRef};

struct ExecutorActor;
struct VerifierActor;
struct CoordinatorActor;

struct Execute(Request);
struct Verify(peers::Action);
struct Decide(Verdict);

type Back = Arc<OnceLock<ActorRef<Execute>>>;

impl Actor for ExecutorActor {
    type Msg = Execute;
    type State = ActorRef<Verify>;
    type Arguments = ActorRef<Verify>;

    async fn pre_start(
        &self,
        _: ActorRef<Execute>,
        verifier: ActorRef<Verify>,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(verifier)
    }

    async fn handle(
        &self,
        _: ActorRef<Execute>,
        message: Execute,
        verifier: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(verifier.cast(Verify(execute(message.0)))?)
    }
}

impl Actor for VerifierActor {
    type Msg = Verify;
    type State = ActorRef<Decide>;
    type Arguments = ActorRef<Decide>;

    async fn pre_start(
        &self,
        _: ActorRef<Verify>,
        coordinator: ActorRef<Decide>,
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(coordinator)
    }

    async fn handle(
        &self,
        _: ActorRef<Verify>,
        message: Verify,
        coordinator: &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        Ok(coordinator.cast(Decide(verify(message.0)))?)
    }
}

impl Actor for CoordinatorActor {
    type Msg = Decide;
    type State = (Back, Coordinator);
    type Arguments = (Back, Coordinator);

    async fn pre_start(
        &self,
        _: ActorRef<Decide>,
        state: (Back, Coordinator),
    ) -> Result<Self::State, ActorProcessingErr> {
        Ok(state)
    }

    async fn handle(
        &self,
        _: ActorRef<Decide>,
        message: Decide,
        (back, coordinator): &mut Self::State,
    ) -> Result<(), ActorProcessingErr> {
        if let Some(next) = coordinator.decide(message.0) {
            back.get().expect("invariant: set before the first request").cast(Execute(next))?;
        }
        Ok(())
    }
}

async fn ring(spec: Spec) -> Result<Measured, ractor::SpawnErr> {
    let (phase, mut ended) = Phase::new(spec);
    let mut kicks: Vec<Kick> = Vec::new();
    for _ in 0..spec.trios() {
        // The ring is closed through a slot, since the executor is made last.
        let slot: Back = Arc::default();
        let (coordinator, _) =
            Actor::spawn(None, CoordinatorActor, (Arc::clone(&slot), Coordinator::new(&phase)))
                .await?;
        let (verifier, _) = Actor::spawn(None, VerifierActor, coordinator).await?;
        let (executor, _) = Actor::spawn(None, ExecutorActor, verifier).await?;

        slot.get_or_init(|| executor.clone());
        kicks.push(Box::new(move |request| {
            executor.cast(Execute(request)).expect("the executor lives")
        }));
    }

    Ok(drive(&kicks, &phase, &mut ended).await)
}

fn main() {
    report(|variant, spec| {
        let is_multi_thread = match variant {
            "current" => false,
            "multi" => true,
            other => return Err(format!("`{other}` is none of current, multi")),
        };
        let runtime = runtime(is_multi_thread);
        let measured = runtime
            .block_on(ring(spec))
            .map_err(|error| format!("an actor did not start: {error}"));
        runtime.shutdown_background();
        measured.map(Some)
    });
}
