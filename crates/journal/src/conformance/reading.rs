//! Reads: segments, listings, and what a reader sees of concurrent commits.

use super::fixtures::{Make, accept, append, end, events, ids, random, row, save};
use crate::error::JournalError;
use crate::journal::{Query, Write};
use crate::records::{RunRow, Segment};

pub fn segments_are_read_from_any_event(make: Make<'_>) {
    let store = make();
    let first = events(row("r").head, 3);
    let second = events(first.head(), 1);
    let third = events(second.head(), 4);
    let other = events(row("s").head, 9);
    let all = [first, second, third];
    store.journal().commit(&[accept("q"), accept("r"), accept("s"), append("s", &other)]).unwrap();
    store
        .journal()
        .commit(&all.iter().map(|segment| append("r", segment)).collect::<Vec<_>>())
        .unwrap();

    for (after, from) in
        [(0, 0), (1, 0), (2, 0), (3, 1), (4, 2), (5, 2), (7, 2), (8, 3), (9, 3), (u64::MAX, 3)]
    {
        assert_eq!(
            store.journal().segments("r", after, 1 << 20).unwrap(),
            all[from..],
            "after {after}"
        );
    }

    for id in ["q", "nowhere"] {
        assert_eq!(store.journal().segments(id, 0, 1 << 20).unwrap(), [], "{id}");
    }
}

pub fn reads_are_bounded_by_bytes(make: Make<'_>) {
    let store = make();
    let mut head = row("r").head;
    let mut all = Vec::new();

    // Four bodies of 10 bytes.
    for _ in 0..4 {
        all.push(Segment::following(head, ["123456789"]));
        head = all[all.len() - 1].head();
    }

    store.journal().commit(&[accept("r")]).unwrap();
    store
        .journal()
        .commit(&all.iter().map(|segment| append("r", segment)).collect::<Vec<_>>())
        .unwrap();

    for (bytes, expected) in
        [(0, 1), (1, 1), (10, 1), (11, 2), (20, 2), (21, 3), (40, 4), (usize::MAX, 4)]
    {
        assert_eq!(store.journal().segments("r", 0, bytes).unwrap(), all[..expected], "{bytes}");
    }
}

pub fn lists_are_paged_newest_first(make: Make<'_>) {
    let store = make();
    let run = |id: &str, created_ms, owner: &str, status: &str, task: &str| {
        let (owner, status, task) = (owner.to_owned(), status.to_owned(), task.to_owned());
        Write::Accept { row: RunRow { owner, created_ms, task, status, ..row(id) }, key: None }
    };

    let runs = [
        run("b", 1, "ada", "queued", "x"),
        run("a", 2, "ada", "running", "y"),
        run("c", 2, "bob", "queued", "x"),
        run("B", 2, "ada", "queued", "x"),
        run("d", 9, "bob", "running", "x"),
    ];

    store.journal().commit(&runs).unwrap();
    let text = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
    let list = |owner, status, task, after, limit| {
        let (owner, status, task, after) = (text(owner), text(status), text(task), text(after));
        let query = Query { owner, status, task, after, limit, ..Query::default() };
        store.journal().list(&query).map(|page| ids(page.rows))
    };

    type Case<'a> = (&'a str, &'a str, &'a str, &'a str, u32, &'a [&'a str]);
    let cases: [Case<'_>; 14] = [
        ("", "", "", "", 9, &["d", "c", "a", "B", "b"]),
        ("", "", "", "", 2, &["d", "c"]),
        ("", "", "", "c", 2, &["a", "B"]),
        ("", "", "", "B", 2, &["b"]),
        ("", "", "", "b", 2, &[]),
        ("", "", "", "", 0, &[]),
        ("ada", "", "", "", 9, &["a", "B", "b"]),
        ("ada", "", "", "a", 9, &["B", "b"]),
        ("", "queued", "", "", 9, &["c", "B", "b"]),
        ("", "", "x", "", 9, &["d", "c", "B", "b"]),
        ("ada", "queued", "", "a", 1, &["B"]),
        ("bob", "queued", "x", "", 9, &["c"]),
        ("bob", "queued", "y", "", 9, &[]),
        ("eve", "", "", "", 9, &[]),
    ];

    for (owner, status, task, after, limit, expected) in cases {
        let found = list(owner, status, task, after, limit).unwrap();
        assert_eq!(
            found, expected,
            "owner {owner:?} status {status:?} task {task:?} after {after:?} limit {limit}"
        );
    }

    let error = list("", "", "", "nowhere", 9).unwrap_err();
    assert!(matches!(&error, JournalError::NoSuchRun { id } if id == "nowhere"), "{error}");
}

pub fn open_runs_come_oldest_first(make: Make<'_>) {
    let mut store = make();
    let run =
        |id: &str, created_ms| Write::Accept { row: RunRow { created_ms, ..row(id) }, key: None };
    store.journal().commit(&[run("c", 1), run("b", 3), run("a", 3), run("d", 2)]).unwrap();
    let first = events(row("b").head, 2);
    store.journal().commit(&[end("d", 4), append("b", &first)]).unwrap();

    for _ in 0..2 {
        let open = store.journal().open_runs().unwrap().rows;
        assert_eq!(open[2].head, first.head());
        assert_eq!(ids(open), ["c", "a", "b"]);
        store.reopen();
    }
}

pub fn bodies_of_any_size_come_back(make: Make<'_>) {
    let mut store = make();
    let mut head = row("r").head;
    let mut all = Vec::new();
    store.journal().commit(&[accept("r")]).unwrap();

    for length in [0, 1, 510, 511, 512, 4_001, 5_000, 70_001, 1 << 20] {
        let mut line = if length % 2 == 0 { vec![b'a'; length] } else { random(3, length) };
        line.retain(|byte| *byte != b'\n');
        let segment = Segment::following(head, [line]);
        head = segment.head();

        store
            .journal()
            .commit(&[append("r", &segment), save("r", head.seq, &segment.body)])
            .unwrap();

        assert_eq!(store.journal().snapshot("r").unwrap().unwrap().body, segment.body);
        all.push(segment);
    }

    store.reopen();
    assert!(store.journal().segments("r", 0, usize::MAX).unwrap() == all, "a body has changed");
}

/// Reads concurrent with a writer see a run with all of a batch or none of it, and never go back.
pub fn readers_see_whole_batches(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    journal.commit(&[accept("r")]).unwrap();
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let (mut seen, mut steps) = (0, 0);
            while seen < 40 {
                let row = journal.run("r").unwrap().unwrap();
                assert!(
                    row.head.seq.is_multiple_of(4) && row.head.seq >= seen,
                    "{} after {seen}",
                    row.head.seq
                );
                assert_eq!(row.updated_ms, 1_000 + row.head.seq);
                seen = row.head.seq;
                steps += 1;
            }
            steps
        });

        let mut head = row("r").head;

        for _ in 0..10 {
            let (first, second) = (events(head, 1), events(events(head, 1).head(), 3));
            head = second.head();
            let (status, summary) = ("running".to_owned(), String::new());
            let updated_ms = 1_000 + head.seq;
            let update = Write::Update {
                id: "r".into(),
                updated_ms,
                status,
                is_over: false,
                resumed: 0,
                summary,
            };

            journal.commit(&[append("r", &first), append("r", &second), update]).unwrap();
        }

        assert!(reader.join().unwrap() > 0);
    });
}
