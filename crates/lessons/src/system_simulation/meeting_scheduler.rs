//! Meeting Scheduler: takes room by room. It checks if the room is large enough, counts the free
//! slots in a row at each of its slots until there are enough, and names the best offer so far:
//! none is large enough, none is free, or a start and a room.
// A room is a capital, a slot of the day a letter. A slot is written with its room, since those of
// all rooms look alike: `Bg.` is free, `Bg#` taken; `-` and `=` stand for the same in the last slot
// that the meeting may take.

use prime_bench::tasks::system_simulation::meeting_scheduler::{
    Instance, MeetingScheduler, Request, SLOTS, State, slots,
};

use crate::Lesson;
use crate::numbers::{letter, pairwise};

pub struct MeetingSchedulerLesson;

/// The letter of a room, of which the benchmark has few.
fn name(room: usize) -> String {
    let letter = ('A'..='Z').nth(room % 26).unwrap_or('~');
    "+".repeat(room / 26) + &letter.to_string()
}

/// The demand of a booking, and the number of digits of capacities.
struct Asked {
    start: usize,
    length: usize,
    width: usize,
    /// The slot after the last one that may be taken.
    end: usize,
}

impl Asked {
    fn of(instance: &Instance, (start, length, people): (usize, usize, usize)) -> Self {
        let greatest = instance.rooms.iter().copied().max().map_or(people, |room| room.max(people));
        let width = greatest.to_string().len().max(2);
        Self { start, length, width, end: (start + instance.max_shift + length).min(SLOTS) }
    }

    fn number(&self, number: usize) -> String {
        format!("{number:0width$}", width = self.width)
    }

    /// A slot of a room, marked as free or taken.
    fn slot(&self, room: usize, taken: u32, slot: usize) -> String {
        let mark = match (taken >> slot & 1 == 1, slot + 1 == self.end) {
            (false, false) => '.',
            (true, false) => '#',
            (false, true) => '-',
            (true, true) => '=',
        };
        format!("{}{}{mark}", name(room), letter(slot))
    }
}

/// The best offer of the rooms so far.
#[derive(Clone, Copy)]
enum Best {
    TooSmall,
    Busy,
    Free { start: usize, room: usize },
}

impl Best {
    fn shown(self, instance: &Instance, asked: &Asked) -> String {
        match self {
            Self::TooSmall => "c".to_owned(),
            Self::Busy => "b".to_owned(),
            Self::Free { start, room } => {
                format!("{}{}:{}", letter(start), name(room), asked.number(instance.rooms[room]))
            }
        }
    }
}

impl Lesson for MeetingSchedulerLesson {
    type Task = MeetingScheduler;

    fn view(instance: &Instance, state: &State) -> String {
        match instance.requests.get(state.done) {
            None => "-".to_owned(),
            Some(Request::Cancel(request)) => {
                let room = state.held(*request).map(|place| state.bookings[place].1);
                format!("cancel {}", room.map_or_else(|| "-".to_owned(), |room| room.to_string()))
            }
            Some(Request::Book(start, length, people)) => {
                let asked = Asked::of(instance, (*start, *length, *people));
                let calendar = |room: usize| {
                    let taken = taken(instance, state, room);
                    let day: String = (asked.start..asked.end)
                        .map(|slot| asked.slot(room, taken, slot))
                        .collect();
                    format!("{}:{}{day}", name(room), asked.number(instance.rooms[room]))
                };

                let rooms: Vec<_> = (0..instance.rooms.len()).map(calendar).collect();
                let last = name(instance.rooms.len().saturating_sub(1));
                let people = asked.number(*people);

                format!(
                    "book {} for {length} of {people} last {last} {}",
                    letter(*start),
                    rooms.join(" ")
                )
            }
        }
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let Request::Book(start, length, people) = *instance.requests.get(state.done)? else {
            return Some(String::new());
        };

        let asked = Asked::of(instance, (start, length, people));
        let mut best = Best::TooSmall;
        let mut rooms = Vec::new();

        for (room, size) in instance.rooms.iter().enumerate() {
            let mut line =
                format!("{}/{}", name(room), pairwise(&asked.number(*size), &asked.number(people)));

            if *size >= people {
                let (scanned, start) = scan(&asked, room, taken(instance, state, room));
                line += &scanned;
                best = match (start, best) {
                    (None, Best::TooSmall) => Best::Busy,
                    (None, best) => best,
                    (Some(start), Best::Free { start: other_start, room: other }) => {
                        let found = Best::Free { start, room };
                        let key = |start: usize, room: usize| {
                            format!("{}{}", letter(start), asked.number(instance.rooms[room]))
                        };
                        let (x, y) = (key(start, room), key(other_start, other));
                        line += &format!("+{} {}", found.shown(instance, &asked), pairwise(&x, &y));
                        if x < y { found } else { best }
                    }
                    (Some(start), _) => Best::Free { start, room },
                };
            }

            rooms.push(format!("{line}*{}", best.shown(instance, &asked)));
        }

        Some(rooms.join(" "))
    }
}

/// The slots of a room, each with how many are free in a row up to it, until there are enough,
/// which `!` says; and where those start.
fn scan(asked: &Asked, room: usize, taken: u32) -> (String, Option<usize>) {
    let mut line = String::new();
    let mut run = 0;

    for slot in asked.start..asked.end {
        run = if taken >> slot & 1 == 1 { 0 } else { run + 1 };
        line += &format!("{}{run}", asked.slot(room, taken, slot));
        if run == asked.length {
            return (line + "!", Some(slot + 1 - run));
        }
    }

    (line, None)
}

/// The slots that bookings take in a room, a bit each.
fn taken(instance: &Instance, state: &State, room: usize) -> u32 {
    let bookings = state.bookings.iter().filter(|booking| booking.1 == room);
    bookings.fold(0, |taken, booking| taken | slots(booking.2, instance.length(booking)))
}
