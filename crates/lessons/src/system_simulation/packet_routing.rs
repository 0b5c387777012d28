//! Packet Routing: nothing to derive; the view shows if the packet has arrived, has hops left, and
//! has a route.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::packet_routing::{Instance, PacketRouting, State};

use crate::Lesson;
use crate::numbers::interleaved;

pub struct PacketRoutingLesson;

impl Lesson for PacketRoutingLesson {
    type Task = PacketRouting;

    fn view(instance: &Instance, state: &State) -> String {
        let (Some(at), Some((_, destination, _))) =
            (state.at.get(), instance.packets.get(state.packet))
        else {
            return "-".to_owned();
        };

        let next = instance.tables[at][*destination];
        format!("{} ttl {:02} next {next}", interleaved(at, *destination, 2), state.ttl)
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        PacketRouting::reference(instance, state).map(|_| String::new())
    }
}
