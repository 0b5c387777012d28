//! Checks records and hash chains from what the HTTP interface shows, with an implementation of its
//! own.

use std::collections::BTreeMap;

use serde_json::Value;
use sha2::{Digest as _, Sha256};

use crate::daemon::Daemon;

/// The hash chain of a run, by event number. Fails unless the events are numbered without gaps.
pub fn chain(daemon: &Daemon, location: &str) -> BTreeMap<u64, String> {
    let text = daemon.text(&format!("{location}/trace?states=false"));
    let mut lines = text.lines();
    let head = lines.next().expect("a head");
    let (_, spec) = head.split_once(r#""spec":"#).expect("a spec");
    let mut hash = Sha256::digest(spec.strip_suffix('}').unwrap());
    let mut chain = BTreeMap::from([(0, hex(&hash))]);

    for (expected, line) in (1..).zip(lines) {
        let prefix = format!(r#"{{"seq":{expected},"#);
        let event = format!(
            "{{{}",
            line.strip_prefix(&prefix).unwrap_or_else(|| panic!("event {expected}: {line}"))
        );
        hash = Sha256::new().chain_update(hash).chain_update(event).finalize();
        chain.insert(expected, hex(&hash));
    }
    chain
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
}

/// The chain hashes seen so far, by run and number of events.
#[derive(Default)]
pub struct Remembered(BTreeMap<String, BTreeMap<u64, String>>);

impl Remembered {
    /// Remembers a record. Fails if it has fewer events than an earlier one, or another hash at the
    /// same event.
    pub fn see(&mut self, record: &Value) {
        let id = record["id"].as_str().expect("an id").to_owned();
        let events = record["events"].as_u64().expect("a number");
        let chain = record["chain"].as_str().expect("a chain");
        let seen = self.0.entry(id.clone()).or_default();
        let last = seen.last_key_value().map_or(0, |(last, _)| *last);

        assert!(events >= last, "{id} had {last} events, and has {events}");
        let before = seen.insert(events, chain.to_owned());
        assert!(before.is_none_or(|before| before == chain), "{id}: event {events} has changed");
    }

    /// Remembers the first page of the listing.
    pub fn see_all(&mut self, daemon: &Daemon) {
        let page = daemon.get("/v1/runs?limit=1000").body;
        page["runs"].as_array().expect("runs").iter().for_each(|record| self.see(record));
    }

    /// The number of remembered hashes.
    pub fn len(&self) -> usize {
        self.0.values().map(BTreeMap::len).sum()
    }

    /// Fails unless the run's chain has every remembered hash.
    pub fn check(&self, daemon: &Daemon, location: &str) {
        let chain = chain(daemon, location);
        let id = location.rsplit('/').next().expect("an id");
        for (events, seen) in self.0.get(id).into_iter().flatten() {
            assert_eq!(
                chain.get(events),
                Some(seen),
                "{id}: event {events} was committed and has changed"
            );
        }
    }
}
