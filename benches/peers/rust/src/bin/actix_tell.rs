//! actix, `do_send` round the ring. Variants say where the actors are: `one` (all on one arbiter),
//! `core` (an arbiter for each core, the three actors of a trio together), `own` (an arbiter for
//! each of the three roles).

use std::sync::{Arc, OnceLock};

use actix::{Actor, Addr, Arbiter, ArbiterHandle, Context, Handler, Message, System};
use peers::{Coordinator, Kick, MAILBOX, Measured, Phase, Spec, drive, execute, report, verify};

#[derive(Message)]
#[rtype(result = "()")]
struct Request(peers::Request);

#[derive(Message)]
#[rtype(result = "()")]
struct Action(peers::Action);

#[derive(Message)]
#[rtype(result = "()")]
struct Verdict(peers::Verdict);

struct ExecutorActor(Addr<VerifierActor>);
struct VerifierActor(Addr<CoordinatorActor>);
struct CoordinatorActor(Arc<OnceLock<Addr<ExecutorActor>>>, Coordinator);

impl Actor for ExecutorActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Actor for VerifierActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Actor for CoordinatorActor {
    type Context = Context<Self>;

    fn started(&mut self, context: &mut Self::Context) {
        context.set_mailbox_capacity(MAILBOX);
    }
}

impl Handler<Request> for ExecutorActor {
    type Result = ();

    fn handle(&mut self, message: Request, _: &mut Self::Context) {
        self.0.do_send(Action(execute(message.0)));
    }
}

impl Handler<Action> for VerifierActor {
    type Result = ();

    fn handle(&mut self, message: Action, _: &mut Self::Context) {
        self.0.do_send(Verdict(verify(message.0)));
    }
}

impl Handler<Verdict> for CoordinatorActor {
    type Result = ();

    fn handle(&mut self, message: Verdict, _: &mut Self::Context) {
        if let Some(next) = self.1.decide(message.0) {
            self.0.get().expect("invariant: set before the first request").do_send(Request(next));
        }
    }
}

fn arbiters(placement: &str) -> Result<Vec<ArbiterHandle>, String> {
    let several = |count| (0..count).map(|_| Arbiter::new().handle()).collect();
    match placement {
        "one" => Ok(vec![Arbiter::current()]),
        "core" => {
            Ok(several(std::thread::available_parallelism().map_or(1, std::num::NonZero::get)))
        }
        "own" => Ok(several(3)),
        other => Err(format!("`{other}` is none of one, core, own")),
    }
}

async fn ring(spec: Spec, placement: &str) -> Result<Measured, String> {
    let (phase, mut ended) = Phase::new(spec);
    let arbiters = arbiters(placement)?;

    let mut kicks: Vec<Kick> = Vec::new();
    for trio in 0..spec.trios() {
        let at =
            |role: usize| &arbiters[if placement == "own" { role } else { trio % arbiters.len() }];
        // The ring is closed through a slot, since the executor is made last.
        let slot = Arc::new(OnceLock::new());
        let (back, coordinator) = (Arc::clone(&slot), Coordinator::new(&phase));

        let coordinator =
            CoordinatorActor::start_in_arbiter(at(2), move |_| CoordinatorActor(back, coordinator));
        let verifier = VerifierActor::start_in_arbiter(at(1), move |_| VerifierActor(coordinator));
        let executor = ExecutorActor::start_in_arbiter(at(0), move |_| ExecutorActor(verifier));

        slot.get_or_init(|| executor.clone());
        kicks.push(Box::new(move |request| executor.do_send(Request(request))));
    }

    Ok(drive(&kicks, &phase, &mut ended).await)
}

fn main() {
    report(|variant, spec| System::new().block_on(ring(spec, variant)).map(Some));
}
