//! Requests waiting for capacity, served in order of arrival. Pure: knows neither backends nor
//! time.
//!
//! Waiters that avoid the same backend are interchangeable as far as capacity goes, so there is one
//! queue for each backend to avoid: when the first waiter of a queue cannot be served, none of the
//! others in it can.

use std::collections::BTreeMap;

/// What the pool needs to know about a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct RoutingHint {
    /// Equal for requests that share a prefix.
    pub affinity: u64,
    /// The backend where the last attempt failed.
    pub avoid: Option<usize>,
}

/// Identifies a waiter; tickets increase with the time of arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticket {
    avoid: Option<usize>,
    arrival: u64,
}

struct Waiter<T> {
    affinity: u64,
    value: T,
}

pub(super) struct WaitQueue<T> {
    queues: BTreeMap<Option<usize>, BTreeMap<u64, Waiter<T>>>,
    next_arrival: u64,
}

impl<T> WaitQueue<T> {
    pub fn new() -> Self {
        Self { queues: BTreeMap::new(), next_arrival: 0 }
    }

    pub fn len(&self) -> usize {
        self.queues.values().map(BTreeMap::len).sum()
    }

    pub fn push(&mut self, hint: RoutingHint, value: T) -> Ticket {
        let ticket = Ticket { avoid: hint.avoid, arrival: self.next_arrival };
        self.next_arrival += 1;
        let queue = self.queues.entry(ticket.avoid).or_default();
        queue.insert(ticket.arrival, Waiter { affinity: hint.affinity, value });
        ticket
    }

    /// Removes a waiter, if it is still waiting.
    pub fn remove(&mut self, ticket: Ticket) {
        if let Some(queue) = self.queues.get_mut(&ticket.avoid) {
            queue.remove(&ticket.arrival);
            if queue.is_empty() {
                self.queues.remove(&ticket.avoid);
            }
        }
    }

    /// Serves waiters in order of arrival until `serve` returns `None` for the first of every
    /// queue. Calls `serve` once for each waiter served and at most once more for each queue.
    pub fn serve<P>(&mut self, mut serve: impl FnMut(RoutingHint) -> Option<P>) -> Vec<(T, P)> {
        let mut served = Vec::new();
        let mut blocked: Vec<Option<usize>> = Vec::new();

        loop {
            let open = self.queues.iter().filter(|(avoid, _)| !blocked.contains(avoid));
            let first = open.filter_map(|(avoid, queue)| Some((queue.first_key_value()?, *avoid)));
            let Some(((arrival, waiter), avoid)) = first.min_by_key(|((arrival, _), _)| **arrival)
            else {
                return served;
            };

            let (ticket, hint) = (
                Ticket { avoid, arrival: *arrival },
                RoutingHint { affinity: waiter.affinity, avoid },
            );

            let Some(permit) = serve(hint) else {
                blocked.push(avoid);
                continue;
            };

            let waiter =
                self.queues.get_mut(&avoid).and_then(|queue| queue.remove(&ticket.arrival));
            served.extend(waiter.map(|waiter| (waiter.value, permit)));
            // Removes the queue if it is empty now.
            self.remove(ticket);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn hint(avoid: Option<usize>) -> RoutingHint {
        RoutingHint { affinity: 0, avoid }
    }

    #[test]
    fn waiters_are_served_by_arrival_and_a_blocked_queue_holds_up_no_other() {
        let mut queue = WaitQueue::new();
        let tickets =
            [None, Some(0), None, Some(1), Some(0)].map(|avoid| queue.push(hint(avoid), avoid));
        queue.remove(tickets[2]);
        queue.remove(tickets[2]);
        assert_eq!(queue.len(), 4);

        let served: Vec<_> =
            queue.serve(|hint| (hint.avoid != Some(0)).then_some(())).into_iter().collect();
        assert_eq!(served, [(None, ()), (Some(1), ())]);
        assert_eq!(queue.len(), 2);

        let mut budget = 1;

        let served = queue.serve(|_| {
            budget -= 1;
            (budget >= 0).then_some(budget)
        });
        assert_eq!((served, queue.len()), (vec![(Some(0), 0)], 1));
    }

    #[test]
    fn the_work_of_one_round_does_not_grow_with_the_number_of_waiters() {
        for waiters in [10, 10_000] {
            let mut queue = WaitQueue::new();
            for waiter in 0..waiters {
                queue.push(hint(Some(waiter % 3)), ());
            }
            let mut calls = 0;
            let served = queue.serve(|_| {
                calls += 1;
                (calls == 1).then_some(())
            });
            assert_eq!(
                (served.len(), calls),
                (1, 4),
                "one served, and one more look at each of three queues"
            );
        }
    }
}
