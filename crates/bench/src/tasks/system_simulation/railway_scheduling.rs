//! Railway Scheduling: trains of both directions share the segments of a single line; first ready
//! is first served.
//!
//! A step is one segment of one train.

use crate::tasks::pages::railway_scheduling as page;
use crate::tasks::pattern::NUMBER_LIMIT;
use crate::tasks::prelude::*;

/// The task `railway-scheduling`.
pub struct RailwayScheduling;

/// The most trains and the most segments that a user may give: every step copies all occupations.
const SIZE_MAX: usize = 100;
/// The largest length, pace, headway and dwell: times stay far below 2^53.
const TIME_MAX: u64 = 10_000;
const DEPARTS_MAX: u64 = 1_000_000_000;
/// Entries of all segments in a state that a client submits: each is compared with those before it.
const OCCUPATIONS_MAX: usize = 10_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Length of each segment; segment s joins stations s and s+1.
    pub segments: Vec<u64>,
    /// Least time between a train's leaving a segment and the next one's entering.
    pub headway: u64,
    /// Time that a train stays in each station on its way.
    pub dwell: u64,
    /// The trains, numbered from 0.
    pub trains: Vec<Train>,
}

/// A train, from one station to another.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Train {
    /// First station.
    pub from: usize,
    /// Destination; not `from`.
    pub to: usize,
    /// Time at which it is ready in its first station.
    pub departs: u64,
    /// Time that it needs for a length of 1.
    pub pace: u64,
}

impl Train {
    /// The segment from a station towards the destination.
    pub fn next_segment(&self, station: usize) -> usize {
        if station < self.to { station } else { station - 1 }
    }
}

impl Instance {
    /// Ticks from one end of the segment to the other.
    pub fn running_time(&self, train: usize, segment: usize) -> u64 {
        self.segments[segment] * self.trains[train].pace
    }
}

/// Train, enter, leave.
type Occupation = (usize, u64, u64);

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Current station of each train.
    pub station: Vec<usize>,
    /// Time at which each train is ready to leave; its arrival once at its destination.
    pub ready: Vec<u64>,
    /// Negative after lines that enter too early.
    pub delays: Vec<i64>,
    /// Time from which each segment can be entered.
    pub free: Vec<u64>,
    /// For each segment its occupations as (train, enter, leave), in order.
    pub occupancy: Vec<Vec<Occupation>>,
    /// The last action; none at the start.
    pub last: Last<Action>,
    /// True if two occupations of a segment collide: none is ever taken back.
    #[serde(skip)]
    pub collided: bool,
    /// The greatest leave of each train.
    #[serde(skip)]
    pub left: Vec<Option<u64>>,
    /// The time at which the train in `last` was ready to enter, by its departure and its earlier
    /// occupations.
    #[serde(skip)]
    pub served_ready: u64,
}

line_actions! {
    /// An action line; the page explains its form.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action {
        /// The train, from 0.
        pub train: usize,
        /// The segment that it takes, from 0.
        pub segment: usize,
        /// Time at which it enters the segment.
        pub enter: u64,
        /// Time at which it leaves the segment.
        pub leave: u64,
    } = "<nat> <nat> <nat> <nat>", "{train} {segment} {enter} {leave}"
}

impl Task for RailwayScheduling {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let trains = page::size::TRAINS.draw(difficulty, rng);
            let stations = page::size::STATIONS.draw(difficulty, rng);
            let mut time = |min: u64, max: u64| min + rng.below(max - min + 1);
            let segments = (1..stations).map(|_| time(2, 9)).collect();
            let (headway, dwell) = (time(1, 3), time(1, 3));

            let trains = (0..trains).map(|_| {
                let (from, to) = rng.pair(stations);
                Train { from, to, departs: rng.below(61), pace: 1 + rng.below(3) }
            });

            let instance = Instance { segments, headway, dwell, trains: trains.collect() };
            let end = reference_end::<Self>(&instance, u64::MAX);
            if end.is_some_and(|(state, _)| {
                state.delays.iter().filter(|delay| **delay > 0).count() >= 2
            }) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let positive = |time: u64| (1..=TIME_MAX).contains(&time);
        let stations = instance.segments.len() + 1;
        let segments = (2..=SIZE_MAX + 1).contains(&stations)
            && instance.segments.iter().all(|time| positive(*time));
        let reason = format!("must be 1 to {SIZE_MAX} lengths, each 1 to {TIME_MAX}");
        InvalidInput::unless(segments, "segments", reason)?;

        let range = format!("must not exceed {TIME_MAX}");
        InvalidInput::unless(instance.headway <= TIME_MAX, "headway", range.clone())?;
        InvalidInput::unless(instance.dwell <= TIME_MAX, "dwell", range)?;

        let count = instance.trains.len();
        let counted = (1..=SIZE_MAX).contains(&count);
        InvalidInput::unless(
            counted,
            "trains",
            format!("has {count} entries; give 1 to {SIZE_MAX}"),
        )?;

        let route =
            |train: &Train| train.from != train.to && train.from < stations && train.to < stations;
        let reason = format!("each must run between two different stations below {stations}");
        InvalidInput::unless(instance.trains.iter().all(route), "trains", reason)?;

        let times = instance
            .trains
            .iter()
            .all(|train| positive(train.pace) && train.departs <= DEPARTS_MAX);
        let reason =
            format!("each pace must be 1 to {TIME_MAX}, each departure at most {DEPARTS_MAX}");
        InvalidInput::unless(times, "trains", reason)
    }

    fn start(instance: &Instance) -> State {
        State {
            station: instance.trains.iter().map(|train| train.from).collect(),
            ready: instance.trains.iter().map(|train| train.departs).collect(),
            delays: vec![0; instance.trains.len()],
            free: vec![0; instance.segments.len()],
            occupancy: vec![Vec::new(); instance.segments.len()],
            last: Last(None),
            collided: false,
            left: vec![None; instance.trains.len()],
            served_ready: 0,
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let (segments, trains) = (instance.segments.len(), instance.trains.len());
        limits::length("station", state.station.len(), trains)?;
        limits::below("station", state.station.iter().copied(), segments + 1)?;
        limits::length("ready", state.ready.len(), trains)?;
        limits::length("delays", state.delays.len(), trains)?;
        limits::length("free", state.free.len(), segments)?;
        limits::length("occupancy", state.occupancy.len(), segments)?;

        limits::at_most("occupancy", state.occupancy.iter().map(Vec::len).sum(), OCCUPATIONS_MAX)?;
        limits::below(
            "occupancy",
            state.occupancy.iter().flatten().map(|(train, ..)| *train),
            trains,
        )?;

        if let Some(Action { train, segment, enter, leave }) = state.last.0 {
            let latest = state.occupancy.get(segment).and_then(|occupations| occupations.last());
            InvalidInput::unless(
                latest == Some(&(train, enter, leave)),
                "last",
                "must be the last entry of its segment",
            )?;
        }
        Ok(())
    }

    fn complete(instance: &Instance, state: &mut State) {
        let headway = instance.headway;
        // Two occupations need the headway between them, whichever comes first.
        let collide = |(_, enter, leave): &Occupation,
                       (_, other_enter, other_leave): &Occupation| {
            *enter < other_leave + headway && *other_enter < leave + headway
        };

        state.collided = state.occupancy.iter().any(|occupations| {
            occupations
                .iter()
                .enumerate()
                .any(|(place, one)| occupations[..place].iter().any(|other| collide(one, other)))
        });

        let latest = |train: usize, of: &[Occupation]| {
            of.iter().filter(|(other, ..)| *other == train).map(|(.., leave)| *leave).max()
        };
        let left = |train: usize| {
            state.occupancy.iter().filter_map(|occupations| latest(train, occupations)).max()
        };

        state.left = (0..instance.trains.len()).map(left).collect();

        let Some(last) = state.last.0 else { return };
        // The train that was served last had left its other segments before.
        let before = state.occupancy.iter().enumerate().filter_map(|(segment, occupations)| {
            let count = occupations.len() - usize::from(segment == last.segment);
            latest(last.train, &occupations[..count])
        });
        let departs = instance.trains[last.train].departs;
        state.served_ready = before.max().map_or(departs, |left| left + instance.dwell);
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action { train, segment, enter, leave } = *action;
        let Train { to, departs, .. } =
            *instance.trains.get(train).ok_or(Illegal("there is no such train"))?;
        let occupations =
            state.occupancy.get_mut(segment).ok_or(Illegal("there is no such segment"))?;

        let station = state.station[train];
        if station == to {
            return Err(Illegal("the train has arrived"));
        }

        state.station[train] = match (station == segment, station == segment + 1) {
            (true, _) => segment + 1,
            (_, true) => segment,
            _ => return Err(Illegal("the segment does not touch the train's station")),
        };

        state.collided |= occupations.iter().any(|(_, other_enter, other_leave)| {
            enter < other_leave + instance.headway && *other_enter < leave + instance.headway
        });
        occupations.push((train, enter, leave));

        let signed = |time: u64| i64::try_from(time).expect("invariant: times are below 2^54");
        // Wrong times may be as large as a line allows, again and again.
        state.delays[train] =
            state.delays[train].saturating_add(signed(enter) - signed(state.ready[train]));
        state.ready[train] =
            if state.station[train] == to { leave } else { leave + instance.dwell };
        state.free[segment] = leave + instance.headway;
        // Before `left` counts this occupation.
        state.served_ready = state.left[train].map_or(departs, |left| left + instance.dwell);
        state.left[train] = state.left[train].max(Some(leave));

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let under_way = (0..instance.trains.len())
            .filter(|train| state.station[*train] != instance.trains[*train].to);
        // If several trains are ready at the same time, the lowest goes first.
        let train = under_way.min_by_key(|train| state.ready[*train])?;

        let segment = instance.trains[train].next_segment(state.station[train]);
        let enter = state.ready[train].max(state.free[segment]);
        let leave = enter + instance.running_time(train, segment);

        // Only wrong times lead to one that no line can name.
        (leave < NUMBER_LIMIT).then_some(Action { train, segment, enter, leave })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let Action { train, segment, enter, leave } = *action;
        found.require(page::NO_COLLISION, !after.collided);

        let towards = instance.trains[train].next_segment(before.station[train]);
        found.require(page::ROUTE, segment == towards);

        let running = leave == enter + instance.running_time(train, segment);
        found.require(page::RUNNING_TIME, running && enter >= before.ready[train]);
        found.require(page::READY_ORDER, before.ready[train] >= before.served_ready);

        // These leave one line in each state: `first-ready` names the train, `route` its segment,
        // `entry` and `running-time` the times. So a clean trace that ends is the algorithm's.
        found.require(page::ENTRY, enter == before.ready[train].max(before.free[segment]));
        let first = (0..instance.trains.len())
            .filter(|other| before.station[*other] != instance.trains[*other].to)
            .all(|other| (before.ready[train], train) <= (before.ready[other], other));
        found.require(page::FIRST_READY, first);

        if Self::ended(instance, after) {
            let arrived = after
                .station
                .iter()
                .zip(&instance.trains)
                .all(|(station, train)| *station == train.to);
            found.require(page::ARRIVED, arrived);
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.station.iter().zip(&instance.trains).all(|(station, train)| *station == train.to)
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A train takes every segment of its way once.
        instance.trains.iter().map(|train| train.from.abs_diff(train.to) as u64).sum()
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "arrivals": state.ready,
            "delays": state.delays,
            "makespan": state.ready.iter().max(),
            "occupancy": state.occupancy,
        })
    }
}
