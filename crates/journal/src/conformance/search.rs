//! What runs are found by.

use super::fixtures::{Make, end, row};
use crate::journal::{Journal, Retention, Write};
use crate::records::RunRow;
use crate::search::{Noted, SearchEntry, SearchQuery, SortKey};

/// Accepts a run of an owner, created at this time.
pub(super) fn accept(journal: &dyn Journal, id: &str, owner: &str, created_ms: u64) {
    let row = RunRow { owner: owner.to_owned(), created_ms, ..row(id) };
    journal.commit(&[Write::Accept { row, key: None }]).unwrap();
}

pub(super) fn entry(run: &str, text: &str) -> SearchEntry {
    SearchEntry {
        run: run.to_owned(),
        status: "verified".to_owned(),
        text: text.to_owned(),
        ..SearchEntry::default()
    }
}

pub(super) fn note(journal: &dyn Journal, entries: &[SearchEntry]) {
    journal.search().note(entries).unwrap();
}

fn found(journal: &dyn Journal, query: &SearchQuery) -> Vec<String> {
    let page = journal.search().find(&SearchQuery { limit: 100, ..query.clone() }).unwrap();
    assert!(page.damaged.is_empty());
    page.rows.into_iter().map(|row| row.id).collect()
}

fn by_terms(journal: &dyn Journal, terms: &[&str]) -> Vec<String> {
    let terms = terms.iter().map(|term| (*term).to_owned()).collect();
    found(journal, &SearchQuery { terms, ..SearchQuery::default() })
}

pub fn runs_are_found_by_what_is_noted(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    assert!(found(journal, &SearchQuery::default()).is_empty(), "nothing is noted");

    accept(journal, "a", "ada", 10);
    accept(journal, "b", "bob", 20);
    accept(journal, "c", "ada", 30);
    journal.commit(&[end("a", 40)]).unwrap();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>();
    note(
        journal,
        &[
            SearchEntry {
                outcome: "agreed".to_owned(),
                agents: names(&["llama", "rules"]),
                models: names(&["a \"b\""]),
                labels: names(&["first", "x"]),
                steps: 5,
                tokens: 100,
                ..entry("a", "")
            },
            SearchEntry { agents: names(&["lla"]), is_flagged: true, ..entry("b", "") },
            SearchEntry { steps: 7, tokens: 50, ..entry("c", "") },
            entry("there is no such run", ""),
        ],
    );

    let text = |value: &str| Some(value.to_owned());
    let any = SearchQuery::default;
    for (query, expected) in [
        (any(), &["c", "b", "a"][..]),
        (SearchQuery { owner: text("ada"), ..any() }, &["c", "a"]),
        (SearchQuery { owner: text("ad"), ..any() }, &[]),
        (SearchQuery { task: text("edit_distance"), ..any() }, &["c", "b", "a"]),
        (SearchQuery { task: text("edit"), ..any() }, &[]),
        (SearchQuery { outcome: text("agreed"), ..any() }, &["a"]),
        // A run that is over has the status in its entry, an open one that in its row.
        (SearchQuery { status: text("verified"), ..any() }, &["a"]),
        (SearchQuery { status: text("queued"), ..any() }, &["c", "b"]),
        (SearchQuery { status: text("succeeded"), ..any() }, &[]),
        (SearchQuery { agent: text("llama"), ..any() }, &["a"]),
        (SearchQuery { agent: text("lla"), ..any() }, &["b"]),
        (SearchQuery { model: text("a \"b\""), ..any() }, &["a"]),
        (SearchQuery { model: text("b"), ..any() }, &[]),
        (SearchQuery { label: text("x"), ..any() }, &["a"]),
        (SearchQuery { is_flagged: Some(true), ..any() }, &["b"]),
        (SearchQuery { is_flagged: Some(false), ..any() }, &["c", "a"]),
        (SearchQuery { needs_review: true, ..any() }, &[]),
        (SearchQuery { since_ms: Some(20), ..any() }, &["c", "b"]),
        (SearchQuery { before_ms: Some(20), ..any() }, &["a"]),
        (SearchQuery { since_ms: Some(u64::MAX), ..any() }, &[]),
        (SearchQuery { steps_min: Some(5), steps_max: Some(6), ..any() }, &["a"]),
        (SearchQuery { tokens_max: Some(50), ..any() }, &["c", "b"]),
        (SearchQuery { tokens_min: Some(51), tokens_max: Some(u64::MAX), ..any() }, &["a"]),
    ] {
        assert_eq!(found(journal, &query), expected, "{query:?}");
    }
}

pub fn terms_are_texts_and_no_patterns(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    let texts = [
        r#"{"a":[3,418,2]} cmp 0 1"#,
        "100% of a_b, or 'x' \"quoted\" \\ back",
        "größe \u{1f600} 日本語の文",
        "near: and or not * ^ (a b) -c",
    ];
    for (place, text) in (0_u64..).zip(texts) {
        let id = format!("{place}");
        accept(journal, &id, "ada", place);
        note(journal, &[entry(&id, text)]);
    }

    for (terms, expected) in [
        (&["418"][..], &["0"][..]),
        (&["[3,418"], &["0"]),
        (&["cmp 0 1", "418"], &["0"]),
        (&["cmp 0 1", "419"], &[]),
        (&["4"], &["0"]),
        (&["0%"], &["1"]),
        (&["a_b"], &["1"]),
        (&["axb"], &[]),
        (&["% of"], &["1"]),
        (&["\"quoted\""], &["1"]),
        (&["' \""], &["1"]),
        (&["\\ b"], &["1"]),
        (&["ß"], &["2"]),
        (&["größe", "日本語"], &["2"]),
        (&["\u{1f600} 日"], &["2"]),
        (&["and or not * ^ ("], &["3"]),
        (&["a\0b"], &[]),
        (&["or"], &["3", "1"]),
        (&[""], &["3", "2", "1", "0"]),
    ] {
        assert_eq!(by_terms(journal, terms), expected, "{terms:?}");
    }
}

pub fn what_a_query_looked_at_comes_with_its_runs(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    accept(journal, "a", "ada", 10);
    accept(journal, "b", "ada", 20);
    let text = "an id\nlines \0 of größe";
    let refusals = vec![("sorted".to_owned(), 3), ("größe \0".to_owned(), 1)];
    note(journal, &[SearchEntry { refusals, ..entry("a", text) }, entry("b", "another")]);

    let noted = |terms: &[&str], constraint: Option<&str>| {
        let terms = terms.iter().map(|term| (*term).to_owned()).collect();
        let constraint = constraint.map(str::to_owned);
        let query = SearchQuery { terms, constraint, limit: 9, ..SearchQuery::default() };
        let mut noted = journal.search().find(&query).unwrap().noted;
        noted.sort_by(|one, other| one.run.cmp(&other.run));
        noted
    };
    let of = |run: &str, text: &str, refused| {
        let (run, text) = (run.to_owned(), text.to_owned());
        Noted { run, text, refused }
    };
    assert_eq!(noted(&[], None), []);
    assert_eq!(noted(&["an"], None), [of("a", text, None), of("b", "another", None)]);
    assert_eq!(noted(&["größe"], Some("sorted")), [of("a", text, Some(3))]);
    assert_eq!(noted(&[], Some("größe \0")), [of("a", "", Some(1))]);
    assert_eq!(noted(&[], Some("sort")), []);
}

pub fn found_runs_are_ordered_and_paged(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    for place in 0..30_u64 {
        let id = format!("{place:02}");
        // Three runs of each millisecond.
        accept(journal, &id, "ada", 1_700_000_000_000 + place / 3);
        let steps = place * 7 % 10;
        let text = if place % 2 == 0 { "an even one" } else { "an odd one" };
        let entry = SearchEntry { steps, wall_ms: 100 - place, ..entry(&id, text) };
        note(journal, &[entry]);
    }

    for sort in [SortKey::Created, SortKey::Steps, SortKey::Duration] {
        for (ascending, terms) in
            [(false, &[][..]), (true, &[]), (false, &["even"]), (true, &["even"]), (false, &["e"])]
        {
            let terms: Vec<String> = terms.iter().map(|term| (*term).to_owned()).collect();
            let query = SearchQuery { sort, ascending, terms, limit: 4, ..SearchQuery::default() };
            let whole = found(journal, &query);

            let (mut ids, mut after) = (Vec::new(), None);
            loop {
                let page = SearchQuery { after, ..query.clone() };
                let page = journal.search().find(&page).unwrap();
                assert!(page.rows.len() <= 4);
                ids.extend(page.rows.into_iter().map(|row| row.id));
                after = page.next;
                if after.is_none() {
                    break;
                }
            }
            assert_eq!(ids, whole, "{query:?}");

            let mut expected: Vec<u64> = (0..30).collect();
            if query.terms.iter().any(|term| term == "even") {
                expected.retain(|place| place % 2 == 0);
            }
            expected.sort_by_key(|place| match sort {
                SortKey::Steps => (place * 7 % 10, *place),
                SortKey::Duration => (100 - place, *place),
                SortKey::Created | SortKey::Tokens => (*place, 0),
            });
            if !ascending {
                expected.reverse();
            }
            let expected: Vec<String> =
                expected.into_iter().map(|place| format!("{place:02}")).collect();
            assert_eq!(whole, expected, "{query:?}");
        }
    }
}

pub fn runs_are_noted_once_and_go_with_their_entry(make: Make<'_>) {
    let mut store = make();
    for (place, id) in ["a", "b", "c"].into_iter().enumerate() {
        accept(store.journal(), id, "ada", place as u64);
    }
    let unnoted = |journal: &dyn Journal| {
        let (mut ids, mut after) = (Vec::new(), None);
        loop {
            let found = journal.search().unnoted(after, 2).unwrap();
            ids.extend(found.ids);
            after = found.next;
            if after.is_none() {
                return ids;
            }
        }
    };
    assert_eq!(unnoted(store.journal()), ["c", "b", "a"]);
    note(store.journal(), &[entry("a", "its first text"), entry("b", "another")]);
    assert_eq!(unnoted(store.journal()), ["c"]);
    // It was noted while it was open.
    store.journal().commit(&[end("a", 10)]).unwrap();
    assert_eq!(unnoted(store.journal()), ["c", "a"]);

    note(store.journal(), &[entry("a", "its last text"), entry("c", "its first text")]);
    store.reopen();
    let journal = store.journal();
    assert!(unnoted(journal).is_empty());
    assert_eq!(by_terms(journal, &["first"]), ["c"]);
    assert_eq!(by_terms(journal, &["last"]), ["a"]);

    // Labels are durable before they are noted: who gave them may have ended in between. `a` is over,
    // `b` is open.
    for run in ["a", "b"] {
        let sums = || journal.search().totals(&SearchQuery::default()).unwrap();
        let before = sums();
        journal.labels().relabel(run, r#"{"team":"red"}"#).unwrap();
        assert_eq!(unnoted(journal), [run]);
        assert_eq!(sums(), before, "labels change no figures");
        note(journal, &[entry(run, "its last text")]);
        assert!(unnoted(journal).is_empty());
    }

    let all = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    while journal.collect(&all).unwrap().has_more {}
    assert_eq!(by_terms(journal, &["last"]), ["b"]);
    assert_eq!(found(journal, &SearchQuery::default()), ["c", "b"]);
}
