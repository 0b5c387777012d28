//! Elevator Scheduling: whose turn it is, who takes the calls made meanwhile, then where the elevator is wanted, before the new calls and with them.
// A shaft shows a floor's lit button as `o`, with the cabin in brackets.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::elevator_scheduling::{Direction, ElevatorScheduling, Instance, State};
use prime_bench::tasks::system_simulation::elevator_turn::{Turn, first_after};

use crate::Lesson;
use crate::numbers::{compared, incremented};

pub struct Of;

/// Digits of a tick and of a floor.
const TICK: usize = 3;
const FLOOR: usize = 2;
/// Calls that are shown: more than ever come in one tick.
const WINDOW: usize = 6;

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

impl Lesson for Of {
    type Task = ElevatorScheduling;

    fn view(instance: &Instance, state: &State) -> String {
        let elevator = |elevator: usize| {
            let (goals, at) = (goals(instance, state, elevator), state.floors[elevator]);
            let floor = |floor: usize| {
                let lit = if goals.contains(&floor) { 'o' } else { '.' };
                if floor == at { format!("[{lit}]") } else { lit.to_string() }
            };
            let shaft: String = (0..instance.floors).map(floor).collect();
            let listed = if state.directions[elevator] == Direction::None {
                goals.iter().map(|goal| format!(" {goal:0FLOOR$}")).collect::<Vec<_>>().concat()
            } else {
                String::new()
            };
            format!("{elevator} {at:0FLOOR$} {} {shaft}{listed}", direction(state.directions[elevator]))
        };
        let elevators: Vec<_> = (0..state.floors.len()).map(elevator).collect();
        let calls = instance.calls.iter().skip(first_after(&instance.calls, state.t)).take(WINDOW);
        let calls: String =
            calls.map(|call| format!(" {:0TICK$} {:0FLOOR$}", call.time, call.from)).collect::<Vec<_>>().concat();
        let last = state.last.0.map_or_else(|| "-".to_owned(), |last| last.elevator.to_string());
        format!("{} last {last} tick {:0TICK$} calls{calls}", elevators.join(" "), state.t)
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        ElevatorScheduling::reference(instance, state)?;
        let turn = state.turn(instance)?;
        let elevator = turn.elevator;
        let mut line = course(instance, state, &turn);
        let (floor, direction_now) = (state.floors[elevator], state.direction_at(&turn));
        let goals: Vec<_> = state.goals_at(&turn, instance).collect();
        // As in the view: what is copied next stands behind it there.
        line += &format!(";{elevator} {floor:0FLOOR$} {}", direction(direction_now));
        if direction_now == Direction::None && !goals.contains(&floor) {
            let mut least = None;
            for goal in &goals {
                let distance = goal.abs_diff(floor);
                line += &format!(" {}", apart(*goal, floor));
                if least.is_none_or(|least| (distance, *goal) < least) {
                    least = Some((distance, *goal));
                    line.push('!');
                }
            }
        }
        line += &wanted(&self::goals(instance, state, elevator), floor);
        let assigned: Vec<_> = turn.assigned.iter().filter(|(_, other)| *other == elevator).collect();
        for (call, _) in &assigned {
            line += &format!(" {}", compared(instance.calls[*call].from, floor, FLOOR));
        }
        Some(if assigned.is_empty() { line } else { line + &wanted(&goals, floor) })
    }
}

/// Whether there are goals below a floor, at it, and above it.
fn wanted(goals: &[usize], floor: usize) -> String {
    let flag = |wanted: bool| if wanted { 'o' } else { '.' };
    let below = flag(goals.iter().any(|goal| *goal < floor));
    let above = flag(goals.iter().any(|goal| *goal > floor));
    format!(" {below}[{}]{above}", flag(goals.contains(&floor)))
}

/// The elevators that are passed over up to the turn, and the calls on the way.
fn course(instance: &Instance, state: &State, turn: &Turn) -> String {
    let count = state.floors.len();
    let mut busy: Vec<_> =
        (0..count).map(|elevator| !state.waiting[elevator].is_empty() || !state.riding[elevator].is_empty()).collect();
    let mut line = String::new();
    let pass = |from: usize, busy: &[bool], line: &mut String| {
        for (elevator, busy) in busy.iter().enumerate().skip(from) {
            line.push_str(&format!("{elevator}{}", if *busy { '+' } else { '-' }));
            if *busy {
                return true;
            }
        }
        false
    };
    if pass(state.last.0.map_or(0, |last| last.elevator + 1), &busy, &mut line) {
        return line;
    }
    if busy.contains(&true) {
        line += &format!(" {}", incremented(state.t, TICK));
    } else {
        line += &format!(" none {:0TICK$}", turn.tick);
    }
    for call in &instance.calls[first_after(&instance.calls, state.t)..] {
        line += &format!(";{:0TICK$}{} ", call.time, if call.time == turn.tick { '=' } else { '>' });
        if call.time != turn.tick {
            break;
        }
        let mut nearest: Option<(usize, usize)> = None;
        for (elevator, floor) in state.floors.iter().enumerate() {
            let distance = call.from.abs_diff(*floor);
            line += &format!("{elevator}:{}", apart(call.from, *floor));
            if nearest.is_none_or(|(least, _)| distance < least) {
                nearest = Some((distance, elevator));
                line.push('!');
            }
            line.push(' ');
        }
        if let Some((_, elevator)) = nearest {
            busy[elevator] = true;
            line += &format!("{elevator}");
        }
    }
    line.push(';');
    pass(0, &busy, &mut line);
    line
}

/// How two floors lie, and how far apart: `07<12 05`.
fn apart(floor: usize, other: usize) -> String {
    let sign = compared(floor, other, FLOOR).pop().unwrap_or('=');
    format!("{floor:0FLOOR$}{sign}{other:0FLOOR$} {:0FLOOR$}", floor.abs_diff(other))
}
