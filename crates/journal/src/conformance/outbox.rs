//! Messages that wait for their delivery. The clocks of stores differ, so leases and pauses are
//! either 0 or longer than any test takes.

use super::fixtures::{Make, accept, end, refused};
use crate::copy::copy;
use crate::journal::{Journal, Retention, Write};
use crate::outbox::{Claimed, Message, OutboxCount, Settlement};

/// The time of the caller's clock.
const NOW_MS: u64 = 1_000_000;
const LONG_MS: u64 = 3_600_000;

fn message(endpoint: &str, id: &str) -> Message {
    let body = format!("{{\"to\":\"{endpoint}\",\"of\":\"{id} \u{1f980} \0\"}}");
    Message { id: id.to_owned(), endpoint: endpoint.to_owned(), body }
}

fn enqueue(run: &str, messages: &[(&str, &str)]) -> Write {
    let messages = messages.iter().map(|(endpoint, id)| message(endpoint, id)).collect();
    Write::Enqueue { id: run.to_owned(), messages }
}

fn claim(journal: &dyn Journal, endpoint: &str, lease_ms: u64) -> Vec<Claimed> {
    journal.outbox().claim(endpoint, 10, lease_ms, NOW_MS).unwrap().claimed
}

fn settle(journal: &dyn Journal, claimed: &Claimed, settlement: Settlement) -> bool {
    journal.outbox().settle(&[(claimed.clone(), settlement)], NOW_MS).unwrap() == 1
}

fn ids(claimed: &[Claimed]) -> Vec<&str> {
    claimed.iter().map(|claimed| claimed.message.id.as_str()).collect()
}

fn count(endpoint: &str, waiting: u64, given_up: u64) -> OutboxCount {
    OutboxCount { endpoint: endpoint.to_owned(), waiting, given_up }
}

pub fn messages_share_the_commit_of_their_event(make: Make<'_>) {
    let mut store = make();
    let journal = store.journal();
    assert_eq!(claim(journal, "hook", LONG_MS), []);
    assert_eq!(journal.outbox().counts().unwrap(), []);

    // A refused write takes the message with it.
    journal.commit(&[accept("r")]).unwrap();
    let twice = [end("r", 5), enqueue("r", &[("hook", "m1")]), accept("r")];
    refused(journal, &twice, &["exists already"]);
    assert_eq!(journal.outbox().waiting("r").unwrap(), []);
    refused(journal, &[enqueue("none", &[("hook", "m1")])], &["no run \"none\""]);

    journal.commit(&[end("r", 5), enqueue("r", &[("hook", "m1"), ("other", "m1")])]).unwrap();
    // A repetition changes nothing.
    journal.commit(&[enqueue("r", &[("hook", "m1")])]).unwrap();

    store.reopen();
    let journal = store.journal();
    let waiting = [message("hook", "m1"), message("other", "m1")];
    assert_eq!(journal.outbox().waiting("r").unwrap(), waiting);
    assert_eq!(journal.outbox().counts().unwrap(), [count("hook", 1, 0), count("other", 1, 0)]);

    let claimed = claim(journal, "hook", LONG_MS);
    assert_eq!((claimed[0].run.as_str(), claimed[0].failed), ("r", 0));
    assert_eq!((claimed.len(), &claimed[0].message), (1, &waiting[0]));
    assert!(settle(journal, &claimed[0], Settlement::Delivered));
    assert!(!settle(journal, &claimed[0], Settlement::Delivered), "it is gone");
    assert_eq!(journal.outbox().counts().unwrap(), [count("other", 1, 0)]);
}

pub fn messages_come_in_order(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    journal.commit(&[accept("r"), accept("s"), accept("t")]).unwrap();
    journal.commit(&[enqueue("r", &[("hook", "r1"), ("hook", "r2"), ("other", "r1")])]).unwrap();
    journal.commit(&[enqueue("s", &[("hook", "s1"), ("hook", "s2")])]).unwrap();
    journal.commit(&[enqueue("r", &[("hook", "r3")]), enqueue("t", &[("hook", "t1")])]).unwrap();

    // The first of each run; those after it wait, and so does no other receiver.
    let first = claim(journal, "hook", LONG_MS);
    assert_eq!(ids(&first), ["r1", "s1", "t1"]);
    assert_eq!(claim(journal, "hook", LONG_MS), []);
    assert_eq!(ids(&claim(journal, "other", LONG_MS)), ["r1"]);

    let both = [(first[0].clone(), Settlement::Delivered), (first[1].clone(), Settlement::GivenUp)];
    assert_eq!(journal.outbox().settle(&both, NOW_MS).unwrap(), 2);
    let second = claim(journal, "hook", LONG_MS);
    assert_eq!(ids(&second), ["r2", "s2"]);

    // One that fails holds up those of its own run.
    assert!(settle(journal, &second[0], Settlement::Retry { after_ms: LONG_MS }));
    assert!(settle(journal, &second[1], Settlement::Retry { after_ms: 0 }));
    let third = claim(journal, "hook", LONG_MS);
    assert_eq!((ids(&third), third[0].failed), (vec!["s2"], 1));
    assert!(settle(journal, &third[0], Settlement::Delivered));
    assert_eq!(claim(journal, "hook", LONG_MS), []);
    let next_ms = journal.outbox().claim("hook", 10, LONG_MS, NOW_MS).unwrap().next_ms.unwrap();
    assert!((LONG_MS / 2..=LONG_MS).contains(&next_ms), "{next_ms}");
    assert_eq!(journal.outbox().counts().unwrap(), [count("hook", 3, 1), count("other", 1, 0)]);
    let waiting = journal.outbox().waiting("r").unwrap();
    assert_eq!(waiting, [message("hook", "r2"), message("other", "r1"), message("hook", "r3")]);

    // No more than asked for.
    journal.commit(&[enqueue("s", &[("many", "1")]), enqueue("t", &[("many", "2")])]).unwrap();
    let one = journal.outbox().claim("many", 1, LONG_MS, NOW_MS).unwrap();
    assert_eq!(ids(&one.claimed), ["1"]);
}

pub fn a_message_is_claimed_once_until_its_lease_ends(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    journal.commit(&[accept("r"), enqueue("r", &[("hook", "m1"), ("hook", "m2")])]).unwrap();

    let late = claim(journal, "hook", 0);
    assert_eq!(ids(&late), ["m1"]);
    // The lease is over: the message is sent again, and what the former claim says counts no more.
    let again = claim(journal, "hook", LONG_MS);
    assert_eq!(ids(&again), ["m1"]);
    for settlement in
        [Settlement::Delivered, Settlement::GivenUp, Settlement::Retry { after_ms: 0 }]
    {
        assert!(!settle(journal, &late[0], settlement), "{settlement:?}");
    }
    assert_eq!(claim(journal, "hook", LONG_MS), []);
    assert!(settle(journal, &again[0], Settlement::Delivered));
    assert_eq!(ids(&claim(journal, "hook", LONG_MS)), ["m2"]);
}

pub fn messages_go_with_their_run(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    journal.commit(&[accept("r"), accept("open")]).unwrap();
    journal.commit(&[enqueue("r", &[("hook", "m1"), ("hook", "m2")]), end("r", 5)]).unwrap();
    journal.commit(&[enqueue("open", &[("hook", "m3")])]).unwrap();

    let first = claim(journal, "hook", LONG_MS);
    assert_eq!(ids(&first), ["m1", "m3"]);
    assert!(settle(journal, &first[0], Settlement::GivenUp));
    assert_eq!(journal.outbox().counts().unwrap(), [count("hook", 2, 1)]);

    let all = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    while journal.collect(&all).unwrap().has_more {}
    assert_eq!(journal.outbox().counts().unwrap(), [count("hook", 1, 0)]);
    assert!(settle(journal, &first[1], Settlement::Delivered));
}

pub fn messages_are_copied(make: Make<'_>) {
    let (from, to) = (make(), make());
    let journal = from.journal();
    journal.commit(&[accept("r"), enqueue("r", &[("hook", "m1"), ("hook", "m2")])]).unwrap();
    journal.commit(&[end("r", 5)]).unwrap();
    let first = claim(journal, "hook", LONG_MS);
    assert!(settle(journal, &first[0], Settlement::GivenUp));

    for _ in 0..2 {
        copy(from.journal(), to.journal()).unwrap();
        assert_eq!(to.journal().outbox().waiting("r").unwrap(), [message("hook", "m2")]);
    }
}
