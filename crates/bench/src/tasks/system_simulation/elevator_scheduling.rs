//! Elevator Scheduling: elevators serve calls by LOOK (on in one direction to the last goal, then
//! back).
//!
//! A step is one open, up or down of one elevator; idle elevators take none.

use super::elevator_turn::{Call, Turn, first_after, nearest};
use crate::tasks::operation::validate_count;
use crate::tasks::optional_index::OptionalIndex;
use crate::tasks::pages::elevator_scheduling as page;
use crate::tasks::prelude::*;

/// The task `elevator-scheduling`.
pub struct ElevatorScheduling;

const FLOORS_MAX: usize = 10_000;
const ELEVATORS_MAX: usize = 100;
const TIME_MAX: usize = 1_000_000_000;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of floors, which are 0..floors.
    pub floors: usize,
    /// Floor of each elevator at the start.
    pub elevators: Vec<usize>,
    /// The calls, in order of time; each is for one passenger.
    pub calls: Vec<Call>,
}

/// The direction of an elevator; written as -1, 0 or 1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To lower floors.
    Down,
    /// The elevator has no goal.
    None,
    /// To higher floors.
    Up,
}

impl<'de> Deserialize<'de> for Direction {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        match i64::deserialize(deserializer)? {
            -1 => Ok(Self::Down),
            0 => Ok(Self::None),
            1 => Ok(Self::Up),
            other => {
                Err(serde::de::Error::custom(format!("{other} is not a direction: -1, 0 or 1")))
            }
        }
    }
}

impl Serialize for Direction {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(*self as i64 - 1)
    }
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Tick of the last action; 0 at the start.
    pub t: usize,
    /// Floor of each elevator.
    pub floors: Vec<usize>,
    /// Direction of each elevator.
    pub directions: Vec<Direction>,
    /// Calls assigned to each elevator and not yet boarded, ascending.
    pub waiting: Vec<Vec<usize>>,
    /// Calls on board each elevator, in order of boarding.
    pub riding: Vec<Vec<usize>>,
    /// Tick in which each call's passenger has left, -1 before that.
    pub delivered: Vec<OptionalIndex>,
    /// Floors that each elevator has moved.
    pub moved: Vec<usize>,
    /// How often each elevator has opened.
    pub doors: Vec<usize>,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

words!(
    /// What an elevator does in a tick.
    pub enum Act {
        /// Its doors open: passengers leave and board.
        Open = "open",
        /// It moves one floor up.
        Up = "up",
        /// It moves one floor down.
        Down = "down",
    }
);

line_actions! {
    /// An action line; the page explains its form.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub struct Action {
        /// The elevator, from 0.
        pub elevator: usize,
        /// What it does.
        pub act: Act,
    } = "<nat> <open|up|down>", "{elevator} {act}"
}

impl State {
    /// The next turn of an elevator that acts.
    pub fn turn(&self, instance: &Instance) -> Option<Turn> {
        let busy = self
            .waiting
            .iter()
            .zip(&self.riding)
            .map(|(waiting, riding)| !waiting.is_empty() || !riding.is_empty());

        let elevator = self.last.0.map_or(0, |last| last.elevator + 1);
        Turn::next(&instance.calls, &self.floors, busy.collect(), self.t, elevator)
    }

    /// The direction of the elevator at its turn.
    pub fn direction_at(&self, turn: &Turn) -> Direction {
        if turn.rested[turn.elevator] { Direction::None } else { self.directions[turn.elevator] }
    }

    /// The goals of the elevator at its turn: the floors of its waiting calls, and the destinations
    /// of its passengers.
    pub fn goals_at<'a>(
        &'a self,
        turn: &'a Turn,
        instance: &'a Instance,
    ) -> impl Iterator<Item = usize> + 'a {
        let assigned = turn
            .assigned
            .iter()
            .filter(|(_, elevator)| *elevator == turn.elevator)
            .map(|(call, _)| call);
        let waiting = self.waiting[turn.elevator]
            .iter()
            .chain(assigned)
            .map(|call| instance.calls[*call].from);
        waiting.chain(self.riding[turn.elevator].iter().map(|call| instance.calls[*call].to))
    }

    /// Lets passengers out and in at this floor.
    fn open(&mut self, instance: &Instance, elevator: usize, tick: usize) {
        let floor = self.floors[elevator];
        let delivered = &mut self.delivered;
        self.riding[elevator].retain(|call| {
            let arrived = instance.calls[*call].to == floor;
            if arrived {
                delivered[*call] = OptionalIndex::some(tick);
            }
            !arrived
        });

        let riding = &mut self.riding[elevator];
        self.waiting[elevator].retain(|call| {
            let boards = instance.calls[*call].from == floor;
            if boards {
                riding.push(*call);
            }
            !boards
        });

        self.doors[elevator] += 1;
    }

    /// Returns whether every call up to now is waiting, riding or delivered, exactly once, and no
    /// later call.
    fn is_conserved(&self, instance: &Instance) -> bool {
        let made = first_after(&instance.calls, self.t);
        let mut found: Vec<bool> = self.delivered.iter().map(|tick| tick.get().is_some()).collect();

        let once = self.waiting.iter().chain(&self.riding).flatten().all(|call| {
            let new = found.get(*call) == Some(&false);
            if new {
                found[*call] = true;
            }
            new
        });

        once && found.iter().enumerate().all(|(call, found)| *found == (call < made))
    }
}

impl Task for ElevatorScheduling {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        let elevators = page::size::ELEVATORS.draw(difficulty, rng);
        let floors = page::size::FLOORS.draw(difficulty, rng);
        let count = page::size::CALLS.draw(difficulty, rng);
        let elevators = (0..elevators).map(|_| rng.index(floors)).collect();

        let mut time = 0;
        let calls = (0..count).map(|call| {
            time += if call == 0 { 0 } else { rng.index(5) };
            let (from, to) = rng.pair(floors);
            Call { time, from, to }
        });
        Instance { floors, elevators, calls: calls.collect() }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let floors = instance.floors;
        let range = format!("is {floors}; give 2 to {FLOORS_MAX}");
        InvalidInput::unless((2..=FLOORS_MAX).contains(&floors), "floors", range)?;

        let counted = (1..=ELEVATORS_MAX).contains(&instance.elevators.len());
        let elevators = counted && instance.elevators.iter().all(|floor| *floor < floors);
        let reason = format!("must be 1 to {ELEVATORS_MAX} floors below {floors}");
        InvalidInput::unless(elevators, "elevators", reason)?;

        validate_count("calls", instance.calls.len())?;

        let way = |call: &Call| {
            call.from != call.to && call.from < floors && call.to < floors && call.time <= TIME_MAX
        };
        let reason = format!(
            "each must lead from one floor below {floors} to another, at a time up to {TIME_MAX}"
        );
        InvalidInput::unless(instance.calls.iter().all(way), "calls", reason)?;

        let ascending = instance.calls.is_sorted_by_key(|call| call.time);
        InvalidInput::unless(ascending, "calls", "times must ascend")
    }

    fn start(instance: &Instance) -> State {
        let elevators = instance.elevators.len();
        let mut state = State {
            t: 0,
            floors: instance.elevators.clone(),
            directions: vec![Direction::None; elevators],
            waiting: vec![Vec::new(); elevators],
            riding: vec![Vec::new(); elevators],
            delivered: vec![OptionalIndex::NONE; instance.calls.len()],
            moved: vec![0; elevators],
            doors: vec![0; elevators],
            last: Last(None),
        };

        for call in 0..first_after(&instance.calls, 0) {
            let elevator = nearest(&state.floors, instance.calls[call].from);
            state.waiting[elevator].push(call);
        }

        state
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let (elevators, calls) = (instance.elevators.len(), instance.calls.len());
        limits::counts("t", [state.t])?;

        let lengths = [
            ("floors", state.floors.len()),
            ("directions", state.directions.len()),
            ("waiting", state.waiting.len()),
            ("riding", state.riding.len()),
            ("moved", state.moved.len()),
            ("doors", state.doors.len()),
        ];
        lengths.into_iter().try_for_each(|(field, len)| limits::length(field, len, elevators))?;

        limits::below("floors", state.floors.iter().copied(), instance.floors)?;
        limits::below("waiting", state.waiting.iter().flatten().copied(), calls)?;
        limits::below("riding", state.riding.iter().flatten().copied(), calls)?;
        limits::length("delivered", state.delivered.len(), calls)?;
        limits::counts("delivered", state.delivered.iter().filter_map(|tick| tick.get()))?;

        let mut ticks = state.delivered.iter().zip(&instance.calls);
        let late = ticks.all(|(tick, call)| tick.get().is_none_or(|tick| tick >= call.time));
        InvalidInput::unless(late, "delivered", "must not come before the call")?;

        let mut under_way = state.waiting.iter().chain(&state.riding).flatten();
        let made = under_way.all(|call| instance.calls[*call].time <= state.t);
        InvalidInput::unless(made, "waiting", "and `riding` must hold calls that were made by `t`")
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let Action { elevator, act } = *action;
        let turn = state.turn(instance).ok_or(Illegal("every call is delivered"))?;
        if elevator != turn.elevator {
            return Err(Illegal("another elevator acts next"));
        }

        let floor = state.floors[elevator];
        if act == Act::Up && floor + 1 == instance.floors || act == Act::Down && floor == 0 {
            return Err(Illegal("the building ends here"));
        }

        // Events before this turn become part of the state.
        state.t = turn.tick;
        turn.assigned.iter().for_each(|(call, elevator)| state.waiting[*elevator].push(*call));
        for (direction, _) in
            state.directions.iter_mut().zip(&turn.rested).filter(|(_, rested)| **rested)
        {
            *direction = Direction::None;
        }

        match act {
            Act::Open => state.open(instance, elevator, turn.tick),
            Act::Up => {
                state.floors[elevator] = floor + 1;
                state.directions[elevator] = Direction::Up;
                state.moved[elevator] += 1;
            }
            Act::Down => {
                state.floors[elevator] = floor - 1;
                state.directions[elevator] = Direction::Down;
                state.moved[elevator] += 1;
            }
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        let turn = state.turn(instance)?;
        let (floor, direction) = (state.floors[turn.elevator], state.direction_at(&turn));
        let goals = || state.goals_at(&turn, instance);

        let upwards = match direction {
            // At equal distance the lower floor.
            Direction::None => goals().min_by_key(|goal| (goal.abs_diff(floor), *goal))? > floor,
            Direction::Up => goals().any(|goal| goal > floor),
            Direction::Down => !goals().any(|goal| goal < floor),
        };

        let act = match upwards {
            _ if goals().any(|goal| goal == floor) => Act::Open,
            true => Act::Up,
            false => Act::Down,
        };
        Some(Action { elevator: turn.elevator, act })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::IN_BUILDING, after.floors.iter().all(|floor| *floor < instance.floors));
        found.require(page::CONSERVATION, after.is_conserved(instance));

        if let Some(turn) = before.turn(instance) {
            let (floor, direction) = (before.floors[turn.elevator], before.direction_at(&turn));
            let mut goals = before.goals_at(&turn, instance);
            let needless = match (direction, action.act) {
                (Direction::Up, Act::Down) => goals.any(|goal| goal > floor),
                (Direction::Down, Act::Up) => goals.any(|goal| goal < floor),
                _ => false,
            };
            found.require(page::NO_NEEDLESS_TURN, !needless);

            let wanted = before.goals_at(&turn, instance).any(|goal| goal == floor);
            found.require(page::DOOR_REASON, wanted == (action.act == Act::Open));

            // These leave one line in each state: who acts is a matter of `format`, `door-reason`
            // says whether it opens. If not, and there is a direction, `no-needless-turn` and
            // `goal-ahead` allow one way, since an elevator that acts has goals; without one
            // `nearest-first` does. So a clean trace that ends is the algorithm's.
            let is_on_the_way = |goal: usize| match action.act {
                Act::Open => true,
                Act::Up => goal > floor,
                Act::Down => goal < floor,
            };
            let ahead = before.goals_at(&turn, instance).any(is_on_the_way);
            found.require(page::GOAL_AHEAD, ahead || action.act == Act::Open);

            let nearest = before
                .goals_at(&turn, instance)
                .min_by_key(|goal| (goal.abs_diff(floor), *goal))
                .filter(|_| direction == Direction::None);
            found.require(page::NEAREST_FIRST, nearest.is_none_or(is_on_the_way));
        }

        if Self::ended(instance, after) {
            found.require(
                page::ALL_DELIVERED,
                after.delivered.iter().all(|tick| tick.get().is_some()),
            );
        }
    }

    fn ended(_: &Instance, state: &State) -> bool {
        state.delivered.iter().all(|tick| tick.get().is_some())
    }

    fn steps_max(instance: &Instance) -> u64 {
        // A call waits while its elevator goes to the last goal ahead and back, and rides as long
        // again: at most 4 (floors - 1) moves. Every open lets someone in or out: at most twice the
        // calls. And each elevator acts once a tick up to the last call; what is left then takes it
        // again at most 4 (floors - 1) moves, and opens.
        let [floors, elevators, calls] =
            [instance.floors, instance.elevators.len(), instance.calls.len()];
        let last = instance.calls.last().map_or(0, |call| call.time);
        let by_calls = calls * 4 * (floors - 1);
        let by_time = elevators * (last + 1 + 4 * (floors - 1));
        (by_calls.min(by_time) + 2 * calls) as u64
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        let times = instance.calls.iter().zip(&state.delivered);
        let total: usize = times.filter_map(|(call, tick)| Some(tick.get()? - call.time)).sum();
        json!({
            "delivered": state.delivered,
            "moved": state.moved,
            "doors": state.doors,
            "floors": state.floors,
            "total_time": total,
        })
    }
}
