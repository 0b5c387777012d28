//! Packet Routing: packets follow the routing tables, one after the other, until they arrive or are
//! dropped.
//!
//! A step is one hop, delivery or drop.

use crate::tasks::operation::validate_count;
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::packet_routing as page;
use crate::tasks::prelude::*;

/// The task `packet-routing`.
pub struct PacketRouting;

const ROUTERS_MAX: usize = 1_000;
const TTL_MAX: u64 = 10_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Next router, by router and destination; -1 for no route.
    pub tables: Vec<Vec<OptionalIndex>>,
    /// Source, destination, ttl.
    pub packets: Vec<(usize, usize, u64)>,
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Current packet, from 0.
    pub packet: usize,
    /// Its router; -1 after the last packet.
    pub at: OptionalIndex,
    /// Hops that are left to it; 0 after the last packet.
    pub ttl: u64,
    /// Fate of each finished packet: D delivered, T out of hops, N without a route.
    pub fates: String,
    /// Number of hops so far.
    pub hops: u64,
    /// Packets forwarded by each router.
    pub load: Vec<u64>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The current packet ends, and the next one enters at its source.
    fn finish(&mut self, instance: &Instance, fate: char) {
        self.fates.push(fate);
        self.packet += 1;
        self.enter(instance);
    }

    fn enter(&mut self, instance: &Instance) {
        let next = instance.packets.get(self.packet);
        self.at = next.map(|(source, ..)| *source).into();
        self.ttl = next.map_or(0, |(.., ttl)| *ttl);
    }
}

word_actions!(Action {
    /// `hop r`: the packet goes to router r.
    Hop(router) = "hop",
    /// The packet has reached its destination.
    Deliver = "deliver",
    /// The packet is dropped: no hop is left to it.
    DropTtl = "drop ttl",
    /// The packet is dropped: its router has no route for it.
    DropRoute = "drop route",
});

/// For each router its neighbours, ascending: a random tree and further links between random pairs.
fn network(routers: usize, rng: &mut TaskRng) -> Vec<Vec<usize>> {
    let mut linked = vec![vec![false; routers]; routers];
    let mut link = |(a, b): (usize, usize)| (linked[a][b], linked[b][a]) = (true, true);

    // A tree first, so that every router can be reached.
    for router in 1..routers {
        link((router, rng.index(router)));
    }

    for _ in 0..routers / 2 {
        link(rng.pair(routers));
    }
    linked.iter().map(|row| (0..routers).filter(|router| row[*router]).collect()).collect()
}

/// Hops from every router to this one in a connected network.
fn distances(neighbours: &[Vec<usize>], to: usize) -> Vec<usize> {
    let mut distance = vec![usize::MAX; neighbours.len()];
    distance[to] = 0;
    let mut reached = vec![to];
    let mut next = 0;

    // Breadth-first: the list of reached routers is the queue as well.
    while let Some(router) = reached.get(next).copied() {
        next += 1;

        for neighbour in &neighbours[router] {
            if distance[*neighbour] == usize::MAX {
                distance[*neighbour] = distance[router] + 1;
                reached.push(*neighbour);
            }
        }
    }

    distance
}

/// Tables of shortest paths, with some entries wrong and some missing.
fn faulty_tables(neighbours: &[Vec<usize>], rng: &mut TaskRng) -> Vec<Vec<OptionalIndex>> {
    let routers = 0..neighbours.len();
    let distances: Vec<_> = routers.clone().map(|to| distances(neighbours, to)).collect();

    let mut entry = |at: usize, to: usize| {
        if at == to {
            return OptionalIndex::NONE;
        }

        // A wrong entry: packets may circle until their ttl is spent.
        if rng.chance(1, 12) {
            return OptionalIndex::some(rng.one_of(&neighbours[at]));
        }
        let nearest =
            neighbours[at].iter().copied().min_by_key(|neighbour| distances[to][*neighbour]);
        nearest.filter(|_| !rng.chance(1, 40)).into()
    };

    routers.clone().map(|at| routers.clone().map(|to| entry(at, to)).collect()).collect()
}

impl Task for PacketRouting {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let routers = page::size::ROUTERS.draw(difficulty, rng);
            let count = page::size::PACKETS.draw(difficulty, rng);
            let tables = faulty_tables(&network(routers, rng), rng);
            let packets = (0..count).map(|_| {
                let (source, destination) = rng.pair(routers);
                (source, destination, 2 + rng.below(15))
            });

            let instance = Instance { tables, packets: packets.collect() };
            let Some((end, _)) = reference_end::<Self>(&instance, u64::MAX) else { continue };

            let fates = |fate: char| end.fates.matches(fate).count();
            if fates('T') > 0 && fates('N') > 0 && 2 * fates('D') > count {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let routers = instance.tables.len();
        let range = format!("has {routers} entries; give 1 to {ROUTERS_MAX}");
        InvalidInput::unless((1..=ROUTERS_MAX).contains(&routers), "tables", range)?;

        let known = |entry: &OptionalIndex| entry.get().is_none_or(|entry| entry < routers);
        let rows = instance.tables.iter().all(|row| row.len() == routers && row.iter().all(known));
        let reason =
            format!("every row needs {routers} entries, each -1 or a router below {routers}");
        InvalidInput::unless(rows, "tables", reason)?;

        validate_count("packets", instance.packets.len())?;

        let known = |(source, destination, ttl): &(usize, usize, u64)| {
            *source < routers && *destination < routers && *ttl <= TTL_MAX
        };
        let reason =
            format!("each must run between routers below {routers}, with a ttl up to {TTL_MAX}");
        InvalidInput::unless(instance.packets.iter().all(known), "packets", reason)
    }

    fn start(instance: &Instance) -> State {
        let load = vec![0; instance.tables.len()];
        let mut state = State {
            packet: 0,
            at: OptionalIndex::NONE,
            ttl: 0,
            fates: String::new(),
            hops: 0,
            load,
            last: Last(None),
        };

        state.enter(instance);
        state
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let routers = instance.tables.len();
        limits::below("at", [state.at], routers)?;
        limits::letters("fates", &state.fates, "DTN")?;
        limits::length("load", state.load.len(), routers)?;
        limits::counts("load", state.load.iter().copied())
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let at = state.at.get().ok_or(Illegal("every packet has its fate"))?;

        match *action {
            Action::Hop(router) => {
                if router >= instance.tables.len() {
                    return Err(Illegal("there is no such router"));
                }

                state.ttl =
                    state.ttl.checked_sub(1).ok_or(Illegal("the packet has no hop left"))?;
                state.load[at] += 1;
                state.hops += 1;
                state.at = OptionalIndex::some(router);
            }
            Action::Deliver => state.finish(instance, 'D'),
            Action::DropTtl => state.finish(instance, 'T'),
            Action::DropRoute => state.finish(instance, 'N'),
        }
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let (at, (_, destination, _)) = (state.at.get()?, *instance.packets.get(state.packet)?);
        Some(if at == destination {
            Action::Deliver
        } else if state.ttl == 0 {
            Action::DropTtl
        } else {
            instance.tables[at][destination].get().map_or(Action::DropRoute, Action::Hop)
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let ttl = match action {
            Action::Hop(_) => before.ttl.checked_sub(1),
            // Otherwise the next packet has entered with its own ttl.
            _ => Some(instance.packets.get(after.packet).map_or(0, |(.., ttl)| *ttl)),
        };
        found.require(page::TTL, ttl == Some(after.ttl));

        if let (Action::Hop(router), Some(at)) = (*action, before.at.get()) {
            let named = instance.tables[at].contains(&OptionalIndex::some(router));
            found.require(page::LINK, named);
        }

        if let (Some(at), Some((_, destination, _))) =
            (before.at.get(), instance.packets.get(before.packet))
        {
            found.require(page::DESTINATION, (*action == Action::Deliver) == (at == *destination));

            let cause = match action {
                Action::DropTtl => before.ttl == 0,
                Action::DropRoute => {
                    before.ttl > 0 && instance.tables[at][*destination] == OptionalIndex::NONE
                }
                _ => true,
            };
            found.require(page::DROP_CAUSE, cause);

            // These leave one line in each state: at its destination a packet is delivered, and
            // elsewhere not; there `drop-cause` tells the drops from a hop, and the table names
            // the router, if there is a hop. So a clean trace that ends is the algorithm's.
            let hop = match *action {
                Action::Hop(router) => {
                    instance.tables[at][*destination] == OptionalIndex::some(router)
                }
                _ => true,
            };
            found.require(page::NEXT_HOP, hop);
        }

        found.require(page::LOAD_SUM, after.load.iter().sum::<u64>() == after.hops);
        found.require(page::FATES, after.fates.len() == after.packet);

        if Self::ended(instance, after) {
            found.require(page::ALL_PACKETS, after.fates.len() == instance.packets.len());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.packet >= instance.packets.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A packet takes at most `ttl` hops, then its fate.
        instance.packets.iter().map(|(.., ttl)| ttl + 1).sum()
    }

    fn answer(_: &Instance, state: &State) -> Value {
        let fates = |fate: char| state.fates.matches(fate).count();
        json!({
            "fates": state.fates,
            "delivered": fates('D'),
            "dropped_ttl": fates('T'),
            "dropped_route": fates('N'),
            "hops": state.hops,
            "load": state.load,
        })
    }
}
