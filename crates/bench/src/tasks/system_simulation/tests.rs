//! Lines and traces that the constraints of this category find wrong.

use crate::tasks::fooled::{Fooling, assert_found};
use crate::tasks::wrong_lines::assert_broken;

#[test]
fn wrong_lines_break_the_constraint_that_names_the_error() {
    assert_broken(&[
        ("file-system", 0, "err perm", "root-rights"),
        ("file-system", 0, "err isdir", "codes"),
        ("file-system", 1, "err noent", "codes"),
        ("blockchain-ledger", 0, "reject nonce", "nonce-match"),
        ("blockchain-ledger", 0, "reject funds", "costs"),
        ("blockchain-ledger", 3, "accept 5", "nonce-match"),
        ("packet-routing", 0, "drop ttl", "drop-cause"),
        ("packet-routing", 0, "drop route", "drop-cause"),
        ("packet-routing", 1, "deliver", "destination"),
        ("packet-routing", 2, "hop 1", "destination"),
        ("file-system", 0, "err exists", "cause"),
        ("file-system", 2, "err noent", "cause"),
        ("file-system", 2, "ok", "permitted"),
        ("file-system", 9, "ok 41", "content"),
        ("file-system", 10, "ok", "permitted"),
        ("file-system", 10, "err busy", "cause"),
        ("blockchain-ledger", 0, "accept 71", "hash"),
        ("blockchain-ledger", 2, "seal 2235", "hash"),
        ("railway-scheduling", 0, "1 1 3 9", "first-ready"),
        ("railway-scheduling", 0, "0 0 1 5", "entry"),
        ("railway-scheduling", 2, "0 1 11 14", "entry"),
        ("meeting-scheduler", 0, "reject capacity", "capacity"),
        ("meeting-scheduler", 0, "reject busy", "busy"),
        ("meeting-scheduler", 0, "room 1 at 4", "earliest"),
        ("meeting-scheduler", 0, "room 0 at 3", "smallest-room"),
        ("meeting-scheduler", 3, "reject busy", "capacity"),
        ("meeting-scheduler", 4, "none", "cancel"),
        ("elevator-scheduling", 11, "0 up", "goal-ahead"),
        ("packet-routing", 1, "hop 0", "next-hop"),
        ("packet-routing", 5, "hop 1", "next-hop"),
        ("assembly-line", 3, "-", "repairs"),
        ("assembly-line", 5, "AC", "repairs"),
        ("assembly-line", 8, "BC", "scraps"),
        ("chemical-reaction", 0, "fire 0", "draw"),
        ("chemical-reaction", 2, "fire 1", "draw"),
    ]);
}

#[test]
fn results_of_commands_and_ledgers_are_found_without_the_algorithm() {
    assert_found(&[
        Fooling {
            task: "file-system",
            input: r#"{"commands":["mkdir a","su alice","touch aub","cd /a","su root",
                "chmod 77 .","su alice","write b 42","rmdir /a","rm ../c"]}"#,
            lines: &[
                "ok",
                "ok",
                "ok",
                "err noent",
                "ok",
                "ok",
                "ok",
                "err notdir",
                "ok",
                "err noent",
            ],
            at: 3,
            constraint: "cause",
        },
        // Alice may not write into root's directory.
        Fooling {
            task: "file-system",
            input: "",
            lines: &[
                "ok",
                "ok",
                "ok",
                "ok",
                "ok",
                "ok",
                "ok",
                "ok",
                "ok",
                "ok 42",
                "err notempty",
                "err noent",
            ],
            at: 2,
            constraint: "permitted",
        },
        Fooling {
            task: "blockchain-ledger",
            input: r#"{"balances":[50,20,30,30],"reward":3,"block_size":3,"miners":[3],
                "transactions":[[0,1,30,2,0],[1,2,60,1,0],[0,2,10,0,0]]}"#,
            lines: &["accept 72", "reject funds", "reject nonce", "seal 1"],
            at: 3,
            constraint: "hash",
        },
        // A wrong running hash, from which the block hashes follow.
        Fooling {
            task: "blockchain-ledger",
            input: "",
            lines: &["accept 73", "reject funds", "seal 2265", "reject nonce", "seal 176721"],
            at: 0,
            constraint: "hash",
        },
    ]);
}

#[test]
fn schedules_are_found_without_the_algorithm() {
    assert_found(&[
        // A train that waits for nothing.
        Fooling {
            task: "railway-scheduling",
            input: r#"{"segments":[4,3],"headway":1,"dwell":3,"trains":[
                {"from":0,"to":2,"departs":0,"pace":1},{"from":2,"to":0,"departs":0,"pace":2}]}"#,
            lines: &["0 0 1 5", "1 1 0 6", "0 1 8 11", "1 0 9 17"],
            at: 0,
            constraint: "entry",
        },
        Fooling {
            task: "railway-scheduling",
            input: r#"{"segments":[1,3],"headway":0,"dwell":3,"trains":[
                {"from":0,"to":2,"departs":0,"pace":1},{"from":2,"to":0,"departs":3,"pace":2}]}"#,
            lines: &["0 0 0 1", "1 1 3 9", "0 1 9 12", "1 0 13 15"],
            at: 3,
            constraint: "entry",
        },
        // Both are ready at the same time: the lower number goes first.
        Fooling {
            task: "railway-scheduling",
            input: r#"{"segments":[2],"headway":1,"dwell":0,"trains":[
                {"from":0,"to":1,"departs":0,"pace":1},{"from":1,"to":0,"departs":0,"pace":1}]}"#,
            lines: &["1 0 0 2", "0 0 3 5"],
            at: 0,
            constraint: "first-ready",
        },
        Fooling {
            task: "meeting-scheduler",
            input: r#"{"rooms":[2,0],"max_shift":2,
                "requests":["book 4 2 9","cancel 1","book 4 2 9"]}"#,
            lines: &["reject capacity", "none", "reject busy"],
            at: 2,
            constraint: "capacity",
        },
        Fooling {
            task: "meeting-scheduler",
            input: "",
            lines: &[
                "reject busy",
                "room 0 at 3",
                "room 0 at 5",
                "reject capacity",
                "free 0",
                "reject busy",
            ],
            at: 0,
            constraint: "busy",
        },
        Fooling {
            task: "meeting-scheduler",
            input: "",
            lines: &[
                "room 1 at 4",
                "room 0 at 3",
                "room 0 at 5",
                "reject capacity",
                "free 0",
                "reject busy",
            ],
            at: 0,
            constraint: "earliest",
        },
        Fooling {
            task: "meeting-scheduler",
            input: "",
            lines: &[
                "room 0 at 3",
                "reject busy",
                "room 0 at 5",
                "reject capacity",
                "none",
                "reject busy",
            ],
            at: 0,
            constraint: "smallest-room",
        },
        // The first of equally large rooms.
        Fooling {
            task: "meeting-scheduler",
            input: r#"{"rooms":[5,5],"max_shift":0,"requests":["book 0 1 5"]}"#,
            lines: &["room 1 at 0"],
            at: 0,
            constraint: "smallest-room",
        },
        Fooling {
            task: "meeting-scheduler",
            input: "",
            lines: &[
                "room 1 at 3",
                "room 0 at 3",
                "room 0 at 5",
                "reject capacity",
                "none",
                "reject busy",
            ],
            at: 4,
            constraint: "cancel",
        },
    ]);
}

#[test]
fn movements_are_found_without_the_algorithm() {
    assert_found(&[
        // Further down, where nobody waits.
        Fooling {
            task: "elevator-scheduling",
            input: r#"{"floors":6,"elevators":[2],"calls":[[1,3,5],[1,1,3]]}"#,
            lines: &[
                "0 down", "0 open", "0 down", "0 up", "0 up", "0 up", "0 open", "0 up", "0 up",
                "0 open",
            ],
            at: 2,
            constraint: "goal-ahead",
        },
        Fooling {
            task: "elevator-scheduling",
            input: r#"{"floors":4,"elevators":[1],"calls":[[0,3,0],[0,0,3]]}"#,
            lines: &[
                "0 up", "0 up", "0 open", "0 down", "0 down", "0 down", "0 open", "0 up", "0 up",
                "0 up", "0 open",
            ],
            at: 0,
            constraint: "nearest-first",
        },
        // The lower of two goals that are equally near.
        Fooling {
            task: "elevator-scheduling",
            input: r#"{"floors":3,"elevators":[1],"calls":[[0,2,0],[0,0,2]]}"#,
            lines: &["0 up", "0 open", "0 down", "0 down", "0 open", "0 up", "0 up", "0 open"],
            at: 0,
            constraint: "nearest-first",
        },
        // The table has no route.
        Fooling {
            task: "packet-routing",
            input: r#"{"tables":[[-1,1,1],[-1,-1,2],[1,-1,-1]],"packets":[[2,1,3]]}"#,
            lines: &["hop 1", "deliver"],
            at: 0,
            constraint: "next-hop",
        },
        // The router of another destination.
        Fooling {
            task: "packet-routing",
            input: r#"{"tables":[[0,0,2],[-1,1,1],[1,-1,-1]],"packets":[[0,2,1],[2,1,3]]}"#,
            lines: &["hop 0", "drop ttl", "drop route"],
            at: 0,
            constraint: "next-hop",
        },
        Fooling {
            task: "assembly-line",
            input: r#"{"units":3,"stages":[
                {"adds":"B","from":2,"to":2,"spreads":"AC","repairs":"","scraps":""},
                {"adds":"A","from":1,"to":2,"spreads":"","repairs":"","scraps":""}]}"#,
            lines: &["-", "-", "-", "-", "B", "AB"],
            at: 3,
            constraint: "repairs",
        },
        Fooling {
            task: "assembly-line",
            input: "",
            lines: &["-", "-", "-", "A", "AC", "AC", "A", "ABC", "BC scrap"],
            at: 5,
            constraint: "repairs",
        },
        Fooling {
            task: "assembly-line",
            input: "",
            lines: &["-", "-", "-", "A", "AC", "C", "A", "ABC", "BC"],
            at: 8,
            constraint: "scraps",
        },
        Fooling {
            task: "chemical-reaction",
            input: "",
            lines: &["fire 0", "fire 1", "fire 0", "fire 0"],
            at: 0,
            constraint: "draw",
        },
        // The draw lies on the border, which belongs to the later reaction.
        Fooling {
            task: "chemical-reaction",
            input: r#"{"masses":[1,1,1],"counts":[1,1,0],"reactions":[
                {"in":[[0,1]],"out":[[2,1]],"rate":1},{"in":[[1,1]],"out":[[2,1]],"rate":1}],
                "draws":[500]}"#,
            lines: &["fire 0"],
            at: 0,
            constraint: "draw",
        },
        Fooling {
            task: "chemical-reaction",
            input: r#"{"masses":[1,1,1],"counts":[1,1,0],"reactions":[
                {"in":[[0,1]],"out":[[2,1]],"rate":1},{"in":[[1,1]],"out":[[2,1]],"rate":1}],
                "draws":[499]}"#,
            lines: &["fire 1"],
            at: 0,
            constraint: "draw",
        },
    ]);
}
