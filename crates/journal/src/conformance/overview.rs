//! What runs add up to.

use std::collections::BTreeMap;

use super::fixtures::{Make, end, ids};
use super::search::{accept, entry, note};
use crate::journal::Retention;
use crate::overview::{Part, RefusedLines, Sums, Totals};
use crate::search::{IMPORTED, SearchEntry, SearchQuery};

const DAY_MS: u64 = 86_400_000;

fn refused(constraint: &str, lines: u64) -> RefusedLines {
    RefusedLines { task: "edit_distance".to_owned(), constraint: constraint.to_owned(), lines }
}

pub fn runs_add_up_by_what_is_noted(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    let totals = |query: &SearchQuery| journal.search().totals(query).unwrap();
    assert_eq!(totals(&SearchQuery::default()), Totals::default(), "nothing is noted");

    for (id, owner, created_ms) in
        [("a", "ada", 10), ("b", "bob", 20), ("c", "ada", DAY_MS + 5), ("d", "ada", DAY_MS + 6)]
    {
        accept(journal, id, owner, created_ms);
    }
    journal.commit(&[end("a", 1), end("b", 1), end("c", 1)]).unwrap();
    let finished = |id: &str, refusals: &[(&str, u64)]| SearchEntry {
        outcome: "agreed".to_owned(),
        models: vec!["m".to_owned(), "n o".to_owned()],
        labels: vec!["team".to_owned(), "team:red".to_owned()],
        steps: 3,
        proposals: 9,
        refused: 4,
        refusals: refusals.iter().map(|(name, lines)| ((*name).to_owned(), *lines)).collect(),
        tokens: 100,
        completion_tokens: 40,
        wall_ms: 1_000_000_000_000,
        cost_nanos: Some(3_000_000_000_000_000_000),
        ..entry(id, "")
    };
    note(
        journal,
        &[
            finished("a", &[("sorted", 3), ("größe \0", 1)]),
            finished("b", &[("sorted", 2)]),
            SearchEntry { outcome: "stuck".to_owned(), ..finished("c", &[("format", 4)]) },
            SearchEntry { status: "queued".to_owned(), ..entry("d", "") },
        ],
    );

    let sums = |runs| Sums {
        runs,
        steps: 3 * runs,
        proposals: 9 * runs,
        refused: 4 * runs,
        tokens: 100 * runs,
        completion_tokens: 40 * runs,
        wall_ms: 1_000_000_000_000 * runs,
        cost_nanos: (runs > 0).then_some(3_000_000_000_000_000_000 * runs),
    };
    let counts = |of: &[(&str, u64)]| -> BTreeMap<String, u64> {
        of.iter().map(|(name, runs)| ((*name).to_owned(), *runs)).collect()
    };
    let part = |over: u64, open: u64, outcomes: &[(&str, u64)]| Part {
        sums: Sums { runs: over + open, ..sums(over) },
        imported: 0,
        open,
        statuses: counts(&[("verified", over)]),
        outcomes: counts(outcomes),
    };
    let all = totals(&SearchQuery::default());
    let both = [("agreed", 2), ("stuck", 1)];
    assert_eq!(all.total, part(3, 1, &both));
    assert_eq!(all.tasks, BTreeMap::from([("edit_distance".to_owned(), part(3, 1, &both))]));
    let models = ["m", "n o"].map(|name| (name.to_owned(), part(3, 0, &both)));
    assert_eq!(all.models, BTreeMap::from(models));
    let days = [(0, part(2, 0, &both[..1])), (1, part(1, 1, &both[1..]))];
    assert_eq!(all.days, BTreeMap::from(days));
    let expected = [refused("sorted", 5), refused("format", 4), refused("größe \0", 1)];
    assert_eq!((all.refused, all.first_ms), (expected.to_vec(), Some(10)));

    let text = |value: &str| Some(value.to_owned());
    let any = SearchQuery::default;
    for (query, runs, lines) in [
        (SearchQuery { owner: text("ada"), ..any() }, 3, 8),
        (SearchQuery { owner: text("eve"), ..any() }, 0, 0),
        (SearchQuery { since_ms: Some(DAY_MS), ..any() }, 2, 4),
        (SearchQuery { before_ms: Some(20), ..any() }, 1, 4),
        (SearchQuery { model: text("n o"), ..any() }, 3, 10),
        (SearchQuery { label: text("team:red"), ..any() }, 3, 10),
        (SearchQuery { label: text("red"), ..any() }, 0, 0),
        (SearchQuery { constraint: text("sorted"), ..any() }, 2, 6),
        (SearchQuery { constraint: text("größe \0"), ..any() }, 1, 4),
        (SearchQuery { constraint: text("format"), owner: text("ada"), ..any() }, 1, 4),
        (SearchQuery { constraint: text("sort"), ..any() }, 0, 0),
        (SearchQuery { constraint: text("orted"), ..any() }, 0, 0),
        (SearchQuery { limit: 1, terms: vec!["x".to_owned()], ..any() }, 4, 10),
    ] {
        let found = totals(&query);
        let refused = found.refused.iter().map(|refused| refused.lines).sum::<u64>();
        assert_eq!((found.total.sums.runs, refused), (runs, lines), "{query:?}");
    }

    let by = SearchQuery { constraint: text("sorted"), limit: 9, ..any() };
    assert_eq!(ids(journal.search().find(&by).unwrap().rows), ["b", "a"]);

    // What another daemon has executed is counted, and adds nothing else.
    let models = vec!["m".to_owned(), IMPORTED.to_owned()];
    note(journal, &[SearchEntry { models, ..finished("c", &[("format", 4)]) }]);
    let all = totals(&SearchQuery::default());
    assert_eq!(all.total, Part { imported: 1, ..part(2, 1, &both[..1]) });
    assert_eq!(all.models["m"], Part { imported: 1, ..part(2, 0, &both[..1]) });
    assert_eq!((all.models.len(), all.days[&1].imported), (2, 1));
    assert!(all.refused.iter().all(|refused| refused.constraint != "format"));

    let old = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    while journal.collect(&old).unwrap().has_more {}
    let left = totals(&SearchQuery::default());
    assert_eq!((left.total.sums.runs, left.total.open, left.refused), (1, 1, Vec::new()));
}
