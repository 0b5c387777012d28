//! Elevator Scheduling: whose turn it is, who takes the calls made meanwhile, then where the
//! elevator is wanted, before the new calls and with them.
// Elevators have capitals, calls small letters. A shaft is shown as its lit floors, from the lowest
// up, with the cabin in its place: `A up 02 05[08.]13`; `o` stands for the dot if the cabin's own
// floor is lit. `o[.]o` shows if there are any below, here and above.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::elevator_scheduling::{
    Direction, ElevatorScheduling, Instance, State,
};
use prime_bench::tasks::system_simulation::elevator_turn::{Call, first_after};

use crate::Lesson;
use crate::numbers::{self, difference, incremented};

pub struct ElevatorSchedulingLesson;

/// Digits of a tick and of a floor.
const TICK: usize = 3;
const FLOOR: usize = 2;
/// Calls that are shown: more than ever come in one tick.
const WINDOW: usize = 6;

fn name(elevator: usize) -> String {
    let letter = ('A'..='Z').nth(elevator % 26).unwrap_or('~');
    "+".repeat(elevator / 26) + &letter.to_string()
}

/// The letter of a call, counted from the first one that is still to come.
fn call_letter(place: usize) -> char {
    ('a'..='z').nth(place).unwrap_or('~')
}

/// The goals of an elevator, as things stand.
fn goals(instance: &Instance, state: &State, elevator: usize) -> Vec<usize> {
    let waiting = state.waiting[elevator].iter().map(|call| instance.calls[*call].from);
    waiting.chain(state.riding[elevator].iter().map(|call| instance.calls[*call].to)).collect()
}

fn direction(direction: Direction) -> &'static str {
    match direction {
        Direction::Down => "down",
        Direction::None => "rest",
        Direction::Up => "up",
    }
}

/// A floor, as wide as those of the building need.
fn floor_of(instance: &Instance, floor: usize) -> String {
    let width = instance.floors.saturating_sub(1).to_string().len().max(FLOOR);
    format!("{floor:0width$}")
}

/// The lit floors below, the cabin's, and those above.
fn shaft(instance: &Instance, state: &State, elevator: usize) -> String {
    let mut goals = goals(instance, state, elevator);
    goals.sort_unstable();
    goals.dedup();

    let at = state.floors[elevator];
    let listed = |side: &dyn Fn(usize) -> bool| -> Vec<String> {
        goals.iter().filter(|goal| side(**goal)).map(|goal| floor_of(instance, *goal)).collect()
    };

    let (below, above) = (listed(&|goal| goal < at).join(" "), listed(&|goal| goal > at).join(" "));
    format!("{below}[{}{}]{above}", floor_of(instance, at), lit(goals.contains(&at)))
}

fn lit(wanted: bool) -> char {
    if wanted { 'o' } else { '.' }
}

impl Lesson for ElevatorSchedulingLesson {
    type Task = ElevatorScheduling;

    fn view(instance: &Instance, state: &State) -> String {
        let elevator = |elevator: usize| {
            let shaft = shaft(instance, state, elevator);
            format!("{} {} {shaft}", name(elevator), direction(state.directions[elevator]))
        };
        let elevators: Vec<_> = (0..state.floors.len()).map(elevator).collect();

        let calls = instance
            .calls
            .iter()
            .skip(first_after(&instance.calls, state.t))
            .take(WINDOW)
            .enumerate();
        let call = |(place, call): (usize, &Call)| {
            format!(" {}{:0TICK$}:{}", call_letter(place), call.time, floor_of(instance, call.from))
        };

        let calls: String = calls.map(call).collect();

        let last = state.last.0.map_or_else(|| "-".to_owned(), |last| name(last.elevator));
        let end = name(state.floors.len().saturating_sub(1));

        format!(
            "{} last {last} end {end} tick {:0TICK$} calls{calls}",
            elevators.join(" "),
            state.t
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        ElevatorScheduling::reference(instance, state)?;
        let turn = state.turn(instance)?;
        let elevator = turn.elevator;
        let mut line = course(instance, state);

        let (floor, direction_now) = (state.floors[elevator], state.direction_at(&turn));
        let at = floor_of(instance, floor);
        let flags = Wanted::of(&goals(instance, state, elevator), floor);
        line += &format!(";{} {} {}", name(elevator), direction(direction_now), flags.shown(&at));

        let first = first_after(&instance.calls, state.t);
        for (place, (call, other)) in turn.assigned.iter().enumerate() {
            let sign = sign(instance.calls[*call].from, state.floors[*other]);
            let space = if place == 0 { " " } else { "" };
            line += &format!("{space}{}{}{sign}", call_letter(call - first), name(*other));
        }

        let all: Vec<_> = state.goals_at(&turn, instance).collect();
        if turn.assigned.iter().any(|(_, other)| *other == elevator) {
            line += &format!(" {}", Wanted::of(&all, floor).shown(""));
        }
        // With no direction to keep, the nearest goal decides.
        if direction_now == Direction::None && !all.contains(&floor) {
            let mut sorted = all;
            sorted.sort_unstable();
            sorted.dedup();

            let mut nearest = Nearest::default();
            for goal in sorted {
                line += &format!(" {}", nearest.meets(instance, goal, floor, goal));
            }
        }

        Some(line)
    }
}

/// Flags for goals below a floor, at it, and above it.
struct Wanted {
    below: bool,
    here: bool,
    above: bool,
}

impl Wanted {
    fn of(goals: &[usize], floor: usize) -> Self {
        Self {
            below: goals.iter().any(|goal| *goal < floor),
            here: goals.contains(&floor),
            above: goals.iter().any(|goal| *goal > floor),
        }
    }

    fn shown(&self, floor: &str) -> String {
        format!("{}[{floor}{}]{}", lit(self.below), lit(self.here), lit(self.above))
    }
}

/// The least distance so far, its goal, and the direction of that goal.
#[derive(Default)]
struct Nearest(Option<(usize, usize, char)>);

impl Nearest {
    /// Two floors, digit beside digit, and which is higher; their distance from the lowest digit
    /// on, with its borrows; and its digits, the highest first, up to one that differs from the
    /// least distance so far: `!` if it is less.
    fn meets(&mut self, instance: &Instance, floor: usize, other: usize, of: usize) -> String {
        let [x, y] = [floor, other].map(|floor| floor_of(instance, floor));
        let pairs: String = x.chars().zip(y.chars()).flat_map(|(x, y)| [x, y]).collect();

        let sign = sign(floor, other);
        let distance = floor.abs_diff(other);

        let spelled = difference(floor.max(other), floor.min(other), x.len());
        // The two digits of each group stand in the pairs already.
        let spelled = spelled.as_bytes().chunks(4).flat_map(|group| group.iter().skip(2));
        // The greater floor comes first, so the last borrow is none.
        let spelled: String = spelled.map(|byte| char::from(*byte)).take(2 * x.len() - 1).collect();

        let digits = floor_of(instance, distance);
        let compared = match self.0 {
            Some((least, ..)) if least <= distance => {
                let least = floor_of(instance, least);
                let same = digits.bytes().zip(least.bytes()).take_while(|(x, y)| x == y).count();
                digits[..digits.len().min(same + 1)].to_owned()
            }
            _ => {
                self.0 = Some((distance, of, sign));
                format!("{digits}!")
            }
        };

        format!("{pairs}{sign}{spelled}{compared}")
    }
}

/// The position of a floor relative to another one.
fn sign(floor: usize, other: usize) -> char {
    numbers::sign(floor.cmp(&other), '<', '=', '>')
}

/// The elevators that are passed over up to the turn, and the calls on the way.
fn course(instance: &Instance, state: &State) -> String {
    let count = state.floors.len();
    let goals = |elevator: usize| goals(instance, state, elevator);
    let mut busy: Vec<_> = (0..count).map(|elevator| !goals(elevator).is_empty()).collect();

    let met = |elevator: usize, mark: char| {
        format!(
            "{}{}{mark}",
            name(elevator),
            Wanted::of(&goals(elevator), state.floors[elevator]).shown("")
        )
    };

    let mut line = String::new();
    let from = state.last.0.map_or(0, |last| last.elevator + 1);

    for (elevator, busy) in busy.iter().enumerate().skip(from) {
        line += &met(elevator, if *busy { '+' } else { '-' });
        if *busy {
            return line;
        }
    }

    // If no other elevator has goals, ticks may be skipped.
    line.push('|');
    for (elevator, busy) in busy.iter().enumerate().take(from) {
        line += &met(elevator, if *busy { '*' } else { ':' });
        if *busy {
            break;
        }
    }

    let mut tick = state.t + 1;
    line += &format!(" {}", incremented(state.t, TICK));
    let calls = &instance.calls[first_after(&instance.calls, state.t)..];
    // If no elevator has a goal, time jumps to the next call.
    if let (false, Some(call)) = (busy.contains(&true), calls.first()) {
        line += &format!(" none;{}{}", call_letter(0), time(call.time, tick));
        if call.time > tick {
            tick = call.time;
            line += &format!(" {tick:0TICK$}");
        }
    }

    for (place, call) in calls.iter().enumerate() {
        line += &format!(";{}{}", call_letter(place), time(call.time, tick));
        if call.time > tick {
            break;
        }

        line += &floor_of(instance, call.from);
        let mut nearest = Nearest::default();
        for (elevator, floor) in state.floors.iter().enumerate() {
            line += &format!(
                "{}{}",
                name(elevator),
                nearest.meets(instance, call.from, *floor, elevator)
            );
        }

        if let Some((_, elevator, sign)) = nearest.0 {
            busy[elevator] = true;
            line += &format!(" {}{}{sign}", call_letter(place), name(elevator));
        }
    }

    if calls.last().is_none_or(|call| call.time <= tick) {
        line += ";-";
    }
    // With the new calls assigned, the first elevator that has a goal takes the turn.
    line.push(';');
    for (elevator, busy) in busy.iter().enumerate() {
        line += &met(elevator, if *busy { '+' } else { '-' });
        if *busy {
            break;
        }
    }

    line
}

/// The digits of a call's time up to the first that differs from the tick's, and whether it is that
/// tick or later.
fn time(time: usize, tick: usize) -> String {
    let width = time.to_string().len().max(TICK);
    let (digits, other) = (format!("{time:0width$}"), format!("{tick:0width$}"));
    let same = digits.bytes().zip(other.bytes()).take_while(|(x, y)| x == y).count();
    format!("{}{}", &digits[..digits.len().min(same + 1)], if time > tick { '>' } else { '=' })
}
