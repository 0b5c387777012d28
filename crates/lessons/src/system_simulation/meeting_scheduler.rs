//! Meeting Scheduler: the rooms that are large enough, their slots at each start in turn and whether all are free, the smallest
//! free room.
// A slot of the day is a letter, a capital where it is taken; `|` is the end of the day.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::system_simulation::meeting_scheduler::{
    Action, Instance, MeetingScheduler, Request, SLOTS, State, slots,
};

use crate::Lesson;
use crate::numbers::{compared, running_minimum};

pub struct Of;

/// Digits of a capacity.
const WIDTH: usize = 2;

impl Lesson for Of {
    type Task = MeetingScheduler;

    fn view(instance: &Instance, state: &State) -> String {
        match instance.requests.get(state.done) {
            None => "-".to_owned(),
            Some(Request::Cancel(request)) => {
                let room = state.held(*request).map(|place| state.bookings[place].1);
                format!("cancel {}", room.map_or_else(|| "-".to_owned(), |room| room.to_string()))
            }
            Some(Request::Book(start, length, people)) => {
                let (shift, end) = (instance.max_shift, start + instance.max_shift + length);
                let calendar = |room: usize| {
                    format!(
                        "{room}:{:0WIDTH$} {}",
                        instance.rooms[room],
                        day(taken(instance, state, room), *start, end)
                    )
                };
                let rooms: Vec<_> = (0..instance.rooms.len()).map(calendar).collect();
                format!("book {start} length {length} people {people:0WIDTH$} shift {shift} {}", rooms.join(" "))
            }
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = MeetingScheduler::reference(instance, state)?;
        let Request::Book(start, length, people) = *instance.requests.get(state.done)? else {
            return Some(String::new());
        };
        let size = |room: usize| format!("{room}:{}", compared(instance.rooms[room], people, WIDTH));
        let sizes: Vec<_> = (0..instance.rooms.len()).map(size).collect();
        let mut line = sizes.join(" ");
        if action == Action::RejectCapacity {
            return Some(line);
        }
        let large: Vec<_> = (0..instance.rooms.len()).filter(|room| instance.rooms[*room] >= people).collect();
        for (shift, at) in (start..=start + instance.max_shift).enumerate() {
            line += &format!(";{shift}");
            if at + length > SLOTS {
                return Some(line + &day(0, at, at + length));
            }
            let taken = |room: usize| taken(instance, state, room);
            let is_free = |room: usize| taken(room) & slots(at, length) == 0;
            for room in &large {
                let mark = if is_free(*room) { '+' } else { '-' };
                line += &format!(" {room}{}{mark}", day(taken(*room), at, at + length));
            }
            let free = large.iter().filter(|room| is_free(**room));
            let free: Vec<_> = free.map(|room| (*room, instance.rooms[*room])).collect();
            if !free.is_empty() {
                return Some(format!("{line};{}", running_minimum(free, WIDTH)));
            }
        }
        Some(line + ";end")
    }
}

/// The slots that bookings take in a room, a bit each.
fn taken(instance: &Instance, state: &State, room: usize) -> u32 {
    let bookings = state.bookings.iter().filter(|booking| booking.1 == room);
    bookings.fold(0, |taken, booking| taken | slots(booking.2, instance.length(booking)))
}

/// The slots from one to another, up to the end of the day.
fn day(taken: u32, from: usize, to: usize) -> String {
    let letter = |slot: usize| match u8::try_from(slot) {
        Ok(number) if slot < SLOTS => char::from(if taken >> slot & 1 == 1 { b'A' + number } else { b'a' + number }),
        _ => '|',
    };
    (from..to.min(SLOTS + 1)).map(letter).collect()
}
