//! Calls of elevators, and the order of turns: elevators act in order, tick by tick, if they have
//! calls.

use serde::{Deserialize, Serialize};

/// A call; written as `[time, from, to]`.
#[derive(Clone, Copy, Serialize, Deserialize)]
#[serde(from = "(usize, usize, usize)", into = "(usize, usize, usize)")]
pub struct Call {
    /// Tick in which the call is made.
    pub time: usize,
    /// Floor where the passenger waits.
    pub from: usize,
    /// Floor where the passenger leaves; not `from`.
    pub to: usize,
}

impl From<(usize, usize, usize)> for Call {
    fn from((time, from, to): (usize, usize, usize)) -> Self {
        Self { time, from, to }
    }
}

impl From<Call> for (usize, usize, usize) {
    fn from(Call { time, from, to }: Call) -> Self {
        (time, from, to)
    }
}

/// The first call after this tick.
pub fn first_after(calls: &[Call], tick: usize) -> usize {
    calls.partition_point(|call| call.time <= tick)
}

/// The elevator, by the floors of all, that a call from this floor goes to.
pub fn nearest(floors: &[usize], floor: usize) -> usize {
    let nearest = (0..floors.len()).min_by_key(|elevator| floors[*elevator].abs_diff(floor));
    nearest.expect("invariant: there is an elevator")
}

/// The next turn of an elevator that acts, and the events up to it: nothing moves meanwhile.
pub struct Turn {
    /// The elevator that acts, from 0.
    pub elevator: usize,
    /// Tick in which it acts.
    pub tick: usize,
    /// Calls assigned since the state, ascending, each with its elevator.
    pub assigned: Vec<(usize, usize)>,
    /// Elevators that had a turn without calls since the state.
    pub rested: Vec<bool>,
}

impl Turn {
    /// The next turn from that of `elevator` in this tick on, where the calls up to this tick are
    /// assigned; `busy` are the elevators with calls.
    pub fn next(
        calls: &[Call],
        floors: &[usize],
        mut busy: Vec<bool>,
        tick: usize,
        elevator: usize,
    ) -> Option<Self> {
        let elevators = floors.len();
        let mut call = first_after(calls, tick);
        let mut turn =
            Self { elevator, tick, assigned: Vec::new(), rested: vec![false; elevators] };

        loop {
            while turn.elevator < elevators {
                if busy[turn.elevator] {
                    return Some(turn);
                }
                turn.rested[turn.elevator] = true;
                turn.elevator += 1;
            }

            turn.elevator = 0;
            turn.tick += 1;

            if !busy.contains(&true) {
                // Ticks without any action are skipped, up to the next call.
                let next = calls.get(call)?.time;
                if next > turn.tick {
                    turn.rested.fill(true);
                    turn.tick = next;
                }
            }

            while calls.get(call).is_some_and(|next| next.time <= turn.tick) {
                let elevator = nearest(floors, calls[call].from);
                turn.assigned.push((call, elevator));
                busy[elevator] = true;
                call += 1;
            }
        }
    }
}
