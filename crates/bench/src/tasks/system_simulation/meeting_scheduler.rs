//! Meeting Scheduler: requests book the smallest room that is large enough and free, or cancel an
//! earlier booking.
//!
//! A step is one request; its line is the result.

use crate::tasks::operation::{VALUE_MAX, as_text, validate_count};
use crate::tasks::pages::meeting_scheduler as page;
use crate::tasks::prelude::*;

/// The task `meeting-scheduler`.
pub struct MeetingScheduler;

/// The slots of the day.
pub const SLOTS: usize = 20;
const ROOMS_MAX: usize = 100;

/// An input of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Capacity of each room, in people.
    pub rooms: Vec<usize>,
    /// Most slots by which a booking may start later than asked for.
    pub max_shift: usize,
    /// The requests, in order.
    pub requests: Vec<Request>,
}

word_actions!(
    /// A request of the input; the page explains its forms.
    Request {
        /// `book s l n`: a room for n people, for l slots, from slot s or later.
        Book(start, length, people) = "book",
        /// `cancel k`: gives up the booking of request k.
        Cancel(request) = "cancel",
    }
);
as_text!(Request);

/// Request, room, start.
type Booking = (usize, usize, usize);

impl Instance {
    /// The number of slots that a booking takes.
    pub fn length(&self, booking: &Booking) -> usize {
        match self.requests[booking.0] {
            Request::Book(_, length, _) => length,
            Request::Cancel(_) => 0,
        }
    }

    /// Returns whether the booking has what its request asks for.
    fn suits(&self, (request, room, at): &Booking) -> bool {
        let Request::Book(start, length, people) = self.requests[*request] else { return false };
        let shifts = start..=start + self.max_shift;
        self.rooms[*room] >= people && at + length <= SLOTS && shifts.contains(at)
    }

    /// The first time and the smallest room free then, by the slots taken in each room.
    fn place(
        &self,
        taken: &[u32],
        start: usize,
        length: usize,
        people: usize,
    ) -> Option<(usize, usize)> {
        let times = (start..=start + self.max_shift).take_while(|at| at + length <= SLOTS);
        times.into_iter().find_map(|at| {
            let slots = slots(at, length);
            let free = (0..self.rooms.len())
                .filter(|room| self.rooms[*room] >= people && taken[*room] & slots == 0);
            // The first of equally large rooms.
            free.min_by_key(|room| self.rooms[*room]).map(|room| (room, at))
        })
    }
}

/// The slots of the day that a meeting takes, a bit each.
pub fn slots(at: usize, length: usize) -> u32 {
    (at..at.saturating_add(length))
        .take_while(|slot| *slot < SLOTS)
        .fold(0, |set, slot| set | 1 << slot)
}

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Number of requests finished.
    pub done: usize,
    /// The bookings held, as (request, room, start), in order of request.
    pub bookings: Vec<Booking>,
    /// Requests rejected so far for want of a free room.
    pub rejected_busy: usize,
    /// Requests rejected so far for want of a room that is large enough.
    pub rejected_capacity: usize,
    /// Bookings cancelled so far.
    pub cancelled: usize,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The place of the booking that a request holds.
    pub fn held(&self, request: usize) -> Option<usize> {
        self.bookings.iter().position(|booking| booking.0 == request)
    }

    /// The slots taken in each room, a bit each.
    fn taken(&self, instance: &Instance) -> Vec<u32> {
        let mut taken = vec![0; instance.rooms.len()];
        for booking in &self.bookings {
            taken[booking.1] |= slots(booking.2, instance.length(booking));
        }
        taken
    }

    fn is_disjoint(&self, instance: &Instance) -> bool {
        let end = |booking: &Booking| (booking.1, booking.2 + instance.length(booking));
        let mut bookings: Vec<_> =
            self.bookings.iter().map(|booking| ((booking.1, booking.2), end(booking))).collect();

        bookings.sort_unstable();
        // By rooms and times: two bookings that overlap have neighbours between them that do.
        bookings.is_sorted_by(|(_, end), (start, _)| end <= start)
    }
}

line_actions! {
    /// An action line; the page explains its forms.
    #[derive(Clone, Copy, Debug, PartialEq, Eq)]
    pub enum Action {
        /// A room and a start.
        Booked(room: usize, start: usize) = "room <nat> at <nat>", "room {room} at {start}";
        /// No room is large enough.
        RejectCapacity = "reject capacity", "reject capacity";
        /// No room that is large enough is free in time.
        RejectBusy = "reject busy", "reject busy";
        /// The booking to cancel was in this room.
        Freed(room: usize) = "free <nat>", "free {room}";
        /// There is no booking to cancel.
        Nothing = "none", "none";
    }
}

impl Task for MeetingScheduler {
    task_items!(Instance, State, Action, page::SPEC);

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        loop {
            let rooms = page::size::ROOMS.draw(difficulty, rng);
            let count = page::size::REQUESTS.draw(difficulty, rng);
            let rooms = (0..rooms).map(|_| rng.size(4, 30)).collect();
            let max_shift = rng.size(0, 3);

            let mut booked = Vec::new();
            let requests = (0..count).map(|request| {
                // Only an earlier booking can be cancelled.
                if rng.chance(1, 5) && !booked.is_empty() {
                    return Request::Cancel(rng.one_of(&booked));
                }
                booked.push(request);
                let length = rng.size(1, 4);
                Request::Book(rng.size(0, SLOTS - length), length, rng.size(1, 32))
            });

            let requests = requests.collect();
            let instance = Instance { rooms, max_shift, requests };

            let Some((end, _)) = reference_end::<Self>(&instance, u64::MAX) else { continue };
            if end.rejected_busy > 0 && end.cancelled > 0 && end.bookings.len() >= 3 {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let rooms = instance.rooms.len();
        let range = format!("has {rooms} entries; give 1 to {ROOMS_MAX}");
        InvalidInput::unless((1..=ROOMS_MAX).contains(&rooms), "rooms", range)?;

        let capacities = instance.rooms.iter().all(|capacity| *capacity <= VALUE_MAX);
        InvalidInput::unless(
            capacities,
            "rooms",
            format!("capacities must not exceed {VALUE_MAX}"),
        )?;

        InvalidInput::unless(
            instance.max_shift <= SLOTS,
            "max_shift",
            format!("must not exceed {SLOTS}"),
        )?;
        validate_count("requests", instance.requests.len())?;

        let within = |request: &Request| match *request {
            Request::Book(start, length, _) => start < SLOTS && (1..=SLOTS).contains(&length),
            Request::Cancel(_) => true,
        };
        let reason =
            format!("each booking must start before slot {SLOTS} and take 1 to {SLOTS} slots");
        InvalidInput::unless(instance.requests.iter().all(within), "requests", reason)
    }

    fn start(_: &Instance) -> State {
        State {
            done: 0,
            bookings: Vec::new(),
            rejected_busy: 0,
            rejected_capacity: 0,
            cancelled: 0,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let requests = instance.requests.len();
        limits::at_most("done", state.done, requests)?;
        limits::below("bookings", state.bookings.iter().map(|(request, ..)| *request), requests)?;
        limits::below(
            "bookings",
            state.bookings.iter().map(|(_, room, _)| *room),
            instance.rooms.len(),
        )
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        let request = *instance.requests.get(state.done).ok_or(Illegal("every request is done"))?;

        if let Action::Booked(room, _) | Action::Freed(room) = *action
            && room >= instance.rooms.len()
        {
            return Err(Illegal("there is no such room"));
        }

        match (*action, request) {
            // Requests come in order: the last booking is that of the latest request.
            (Action::Booked(room, at), Request::Book(..)) => {
                state.bookings.push((state.done, room, at));
            }
            (Action::RejectCapacity, Request::Book(..)) => state.rejected_capacity += 1,
            (Action::RejectBusy, Request::Book(..)) => state.rejected_busy += 1,
            (Action::Freed(room), Request::Cancel(cancelled)) => {
                let place = state.held(cancelled).filter(|place| state.bookings[*place].1 == room);
                state
                    .bookings
                    .remove(place.ok_or(Illegal("the request holds no booking in this room"))?);
                state.cancelled += 1;
            }
            (Action::Nothing, Request::Cancel(_)) => {}
            _ => return Err(Illegal("the request has no such result")),
        }

        state.done += 1;
        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        Some(match *instance.requests.get(state.done)? {
            Request::Book(_, _, people)
                if instance.rooms.iter().all(|capacity| *capacity < people) =>
            {
                Action::RejectCapacity
            }
            Request::Book(start, length, people) => {
                let place = instance.place(&state.taken(instance), start, length, people);
                place.map_or(Action::RejectBusy, |(room, at)| Action::Booked(room, at))
            }
            Request::Cancel(request) => state
                .held(request)
                .map_or(Action::Nothing, |place| Action::Freed(state.bookings[place].1)),
        })
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        found.require(page::NO_OVERLAP, after.is_disjoint(instance));
        found.require(page::FITS, after.bookings.iter().all(|booking| instance.suits(booking)));

        let concerned = match instance.requests.get(before.done) {
            Some(Request::Cancel(request)) => *request,
            _ => before.done,
        };

        let old = before.bookings.iter().filter(|booking| booking.0 != concerned);
        let new = after.bookings.iter().filter(|booking| booking.0 != concerned);
        found.require(page::OTHERS_STAY, old.eq(new));

        let asked = instance.requests[..after.done]
            .iter()
            .filter(|request| matches!(request, Request::Book(..)));
        let settled =
            after.bookings.len() + after.rejected_busy + after.rejected_capacity + after.cancelled;
        found.require(page::LEDGER, settled == asked.count());

        // These leave one result in each state: `capacity` and `busy` say when a book is rejected,
        // and as what, `earliest` and `smallest-room` name the one booking. Which booking a cancel
        // frees is a matter of `format`. So a clean trace that ends is the algorithm's.
        match instance.requests.get(before.done) {
            Some(Request::Book(start, length, people)) => {
                let suffices = instance.rooms.iter().any(|capacity| capacity >= people);
                found.require(page::CAPACITY, suffices || *action != Action::RejectBusy);
                found.require(page::CAPACITY, !suffices || *action != Action::RejectCapacity);

                let place = instance.place(&before.taken(instance), *start, *length, *people);
                found.require(page::BUSY, place.is_none() || *action != Action::RejectBusy);
                if let Action::Booked(room, at) = *action {
                    let earliest = place.filter(|(_, earliest)| *earliest == at);
                    found.require(page::EARLIEST, earliest.is_some());
                    let smallest = earliest.is_none_or(|(smallest, _)| smallest == room);
                    found.require(page::SMALLEST_ROOM, smallest);
                }
            }
            Some(Request::Cancel(request)) => {
                let nothing = *action == Action::Nothing;
                found.require(page::CANCEL, !nothing || before.held(*request).is_none());
            }
            None => {}
        }

        if Self::ended(instance, after) {
            found.require(page::ALL_DONE, after.done == instance.requests.len());
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        state.done >= instance.requests.len()
    }

    fn steps_max(instance: &Instance) -> u64 {
        // One step a request.
        instance.requests.len() as u64
    }

    fn answer(instance: &Instance, state: &State) -> Value {
        let mut used = vec![0; instance.rooms.len()];
        for booking in &state.bookings {
            used[booking.1] += instance.length(booking);
        }

        json!({
            "bookings": state.bookings,
            "used": used,
            "rejected_busy": state.rejected_busy,
            "rejected_capacity": state.rejected_capacity,
            "cancelled": state.cancelled,
        })
    }
}
