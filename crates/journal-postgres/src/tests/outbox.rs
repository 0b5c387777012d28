//! Messages that several nodes send.

use std::collections::BTreeSet;

use super::open;
use super::server::Schema;
use prime_journal::conformance::{accept, end};
use prime_journal::{Journal, Message, Outbox as _, Settlement, Write};

const LONG_MS: u64 = 3_600_000;

#[test]
fn each_message_is_claimed_by_one_node() {
    const RUNS: usize = 60;
    let schema = Schema::new();
    let nodes = [open(&schema), open(&schema), open(&schema)];
    for run in 0..RUNS {
        let id = format!("r{run}");
        let message = |place| Message {
            id: format!("{id}-{place}"),
            endpoint: "hook".to_owned(),
            body: "{}".to_owned(),
        };
        let messages = vec![message(1), message(2)];
        let enqueue = Write::Enqueue { id: id.clone(), messages };
        nodes[0].commit(&[accept(&id), end(&id, 5), enqueue]).unwrap();
    }

    // All nodes at once, until nothing is left for them; what is claimed is settled at once.
    let sent: Vec<String> = std::thread::scope(|scope| {
        let all = nodes.each_ref().map(|node| {
            scope.spawn(move || {
                let mut sent = Vec::new();
                while node.outbox().counts().unwrap().iter().any(|count| count.waiting > 0) {
                    let claimed = node.claim("hook", 7, LONG_MS, 0).unwrap().claimed;
                    sent.extend(claimed.iter().map(|claimed| claimed.message.id.clone()));
                    let settled: Vec<_> = claimed
                        .into_iter()
                        .map(|claimed| (claimed, Settlement::Delivered))
                        .collect();
                    assert_eq!(node.settle(&settled, 0).unwrap(), settled.len());
                }
                sent
            })
        });
        all.into_iter().flat_map(|node| node.join().unwrap()).collect()
    });
    assert_eq!(sent.len(), 2 * RUNS, "none is sent twice");
    assert_eq!(sent.iter().collect::<BTreeSet<_>>().len(), 2 * RUNS);
}
