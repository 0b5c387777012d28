//! Messages that wait for their delivery. The clocks of stores differ, so leases and pauses are
//! either 0 or longer than any test takes.

use super::fixtures::{Make, accept, end, refused};
use crate::copy::copy;
use crate::journal::{Journal, Retention, Write};
use crate::outbox::{
    AttemptFailure, Claimed, LISTED_BODY_CHARS, ListedMessage, Message, OutboxCount, OutboxQuery,
    Settlement,
};

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

fn retry(after_ms: u64) -> Settlement {
    Settlement::Retry { after_ms, reason: "status 503: \0 \u{1f980}".to_owned() }
}

fn given_up() -> Settlement {
    Settlement::GivenUp { reason: "status 410".to_owned() }
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

    let both = [(first[0].clone(), Settlement::Delivered), (first[1].clone(), given_up())];
    assert_eq!(journal.outbox().settle(&both, NOW_MS).unwrap(), 2);
    let second = claim(journal, "hook", LONG_MS);
    assert_eq!(ids(&second), ["r2", "s2"]);

    // One that fails holds up those of its own run.
    assert!(settle(journal, &second[0], retry(LONG_MS)));
    assert!(settle(journal, &second[1], retry(0)));
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
    for settlement in [Settlement::Delivered, given_up(), retry(0)] {
        assert!(!settle(journal, &late[0], settlement.clone()), "{settlement:?}");
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
    assert!(settle(journal, &first[0], given_up()));
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
    assert!(settle(journal, &first[0], given_up()));

    for _ in 0..2 {
        copy(from.journal(), to.journal()).unwrap();
        assert_eq!(to.journal().outbox().waiting("r").unwrap(), [message("hook", "m2")]);
    }
}

/// A page of those that wait or were given up.
fn listed(journal: &dyn Journal, is_given_up: bool, after: u64) -> Vec<ListedMessage> {
    let query = OutboxQuery { endpoint: "hook".to_owned(), is_given_up, after, limit: 2 };
    journal.outbox().listed(&query).unwrap()
}

fn listed_ids(listed: &[ListedMessage]) -> Vec<&str> {
    listed.iter().map(|message| message.id.as_str()).collect()
}

fn reason(failure: Option<&AttemptFailure>) -> Option<&str> {
    failure.map(|failure| failure.reason.as_str())
}

pub fn messages_that_were_given_up_are_listed_and_sent_again(make: Make<'_>) {
    let mut store = make();
    let journal = store.journal();
    assert_eq!((listed(journal, true, 0), listed(journal, false, 0)), (Vec::new(), Vec::new()));
    assert_eq!(journal.outbox().last_failure("hook").unwrap(), None);
    assert_eq!(journal.outbox().resend("hook", None).unwrap(), 0);

    let runs = ["r", "s", "t"];
    let all: Vec<Write> = runs.iter().map(|run| accept(run)).collect();
    journal.commit(&all).unwrap();
    for run in runs {
        let (first, second) = (format!("{run}1"), format!("{run}2"));
        journal.commit(&[enqueue(run, &[("hook", &first), ("hook", &second)])]).unwrap();
    }
    journal.commit(&[enqueue("r", &[("other", "r1")])]).unwrap();
    let long = Message { body: "\u{1f980}".repeat(1_000), ..message("hook", "t3") };
    journal.commit(&[Write::Enqueue { id: "t".to_owned(), messages: vec![long] }]).unwrap();

    // What waits is paged in the order in which it was written.
    let page = listed(journal, false, 0);
    assert_eq!((listed_ids(&page), page[0].failed), (vec!["r1", "r2"], 0));
    assert_eq!((page[0].run.as_str(), &page[0].failure), ("r", &None));
    // Bodies are JSON, which has no NUL: a store may end the text there.
    assert!(page[0].body.starts_with("{\"to\":\"hook\",\"of\":\"r1 \u{1f980}"), "{page:?}");
    let rest = listed(journal, false, listed(journal, false, page[1].number)[1].number);
    assert_eq!(listed_ids(&rest), ["t1", "t2"]);
    let last = &listed(journal, false, rest[1].number)[0];
    assert_eq!(last.body.chars().count(), LISTED_BODY_CHARS as usize);

    let claimed = claim(journal, "hook", LONG_MS);
    assert!(settle(journal, &claimed[0], given_up()));
    assert!(settle(journal, &claimed[1], retry(LONG_MS)));
    assert!(settle(journal, &claimed[2], given_up()));

    store.reopen();
    let journal = store.journal();
    let page = listed(journal, true, 0);
    assert_eq!((listed_ids(&page), page[0].failed), (vec!["r1", "t1"], 1));
    let failure = page[0].failure.as_ref();
    assert_eq!(reason(failure), Some("status 410"));
    assert!(failure.unwrap().failed_ms > 0);
    let waits = listed(journal, false, page[0].number);
    assert_eq!(listed_ids(&waits), ["r2", "s1"]);
    assert_eq!(reason(waits[1].failure.as_ref()), Some("status 503: \0 \u{1f980}"));
    assert!(journal.outbox().last_failure("hook").unwrap().is_some());
    assert_eq!(journal.outbox().last_failure("other").unwrap(), None);

    // Those that are named, of this receiver, if they were given up.
    let named = ["t1", "s1", "none"].map(str::to_owned);
    assert_eq!(journal.outbox().resend("other", Some(&named)).unwrap(), 0);
    assert_eq!(journal.outbox().resend("hook", Some(&named)).unwrap(), 1);
    assert_eq!(listed_ids(&listed(journal, true, 0)), ["r1"]);
    let again = claim(journal, "hook", LONG_MS);
    let t1 = again.iter().find(|claimed| claimed.message.id == "t1").unwrap();
    assert_eq!((t1.failed, ids(&again).contains(&"t2")), (0, false), "those after it wait again");
    assert!(settle(journal, t1, Settlement::Delivered));

    assert_eq!(journal.outbox().resend("hook", None).unwrap(), 1);
    assert_eq!(journal.outbox().resend("hook", None).unwrap(), 0);
    assert_eq!(listed(journal, true, 0), []);
    assert_eq!(journal.outbox().counts().unwrap()[0], count("hook", 6, 0));
}
