//! One hop from mailbox to mailbox: what is left of a ring step when the actors do nothing.

use actix::{Actor, Addr, Arbiter, ArbiterHandle, Context, Handler, Message, Recipient};
use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use tokio::sync::oneshot;

/// What goes back and forth; boxed, like the body of a turn.
struct Ball {
    hops_left: u64,
    done: Option<oneshot::Sender<()>>,
}

/// As large as a message of the ring: a box, and the way home.
#[derive(Message)]
#[rtype(result = "()")]
struct Hop(Box<Ball>, Addr<Player>);

#[derive(Message)]
#[rtype(result = "()")]
struct Meet(Recipient<Hop>);

#[derive(Default)]
struct Player {
    partner: Option<Recipient<Hop>>,
}

impl Actor for Player {
    type Context = Context<Self>;
}

impl Handler<Meet> for Player {
    type Result = ();

    fn handle(&mut self, Meet(partner): Meet, _: &mut Self::Context) {
        self.partner = Some(partner);
    }
}

impl Handler<Hop> for Player {
    type Result = ();

    fn handle(&mut self, Hop(mut ball, home): Hop, _: &mut Self::Context) {
        ball.hops_left -= 1;
        match (ball.hops_left, ball.done.take()) {
            (0, Some(done)) => done.send(()).expect("somebody waits"),
            (_, done) => {
                ball.done = done;
                self.partner.as_ref().expect("they have met").do_send(Hop(ball, home));
            }
        }
    }
}

/// Two players who know each other.
fn players(arbiters: [&ArbiterHandle; 2]) -> Addr<Player> {
    let [first, second] =
        arbiters.map(|arbiter| Player::start_in_arbiter(arbiter, |_| Player::default()));

    first.do_send(Meet(second.clone().recipient()));
    second.do_send(Meet(first.clone().recipient()));
    first
}

async fn play(first: &Addr<Player>, hops: u64) {
    let (done, over) = oneshot::channel();
    first.do_send(Hop(Box::new(Ball { hops_left: hops, done: Some(done) }), first.clone()));
    over.await.expect("the players live");
}

fn mailbox_hop(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("mailbox hop");
    group.sample_size(10);

    for (name, arbiters, hops) in [("one arbiter", 1, 100_000), ("two arbiters", 2, 10_000)] {
        group.throughput(Throughput::Elements(hops));
        group.bench_function(BenchmarkId::from_parameter(name), |bencher| {
            let system = actix::System::new();
            let arbiters: Vec<Arbiter> =
                system.block_on(async { (0..arbiters).map(|_| Arbiter::new()).collect() });
            let handles: Vec<ArbiterHandle> = arbiters.iter().map(Arbiter::handle).collect();

            let first = players([&handles[0], &handles[handles.len() - 1]]);

            bencher.iter(|| system.block_on(play(&first, hops)));
            // The next measurement begins without these threads.
            for arbiter in arbiters {
                arbiter.stop();
                arbiter.join().expect("no player panics");
            }
        });
    }

    group.finish();
}

criterion_group!(benches, mailbox_hop);
