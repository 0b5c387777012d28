//! What runs add up to.

use super::fixtures::{Make, end};
use super::search::{accept, entry, note};
use crate::journal::Retention;
use crate::overview::{RefusedLines, RunGroup, Sums, Totals};
use crate::search::{SearchEntry, SearchQuery};

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
    let large = u64::MAX / 4;
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
        wall_ms: large,
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

    let over = |day, outcome: &str, runs| RunGroup {
        day,
        task: "edit_distance".to_owned(),
        models: vec!["m".to_owned(), "n o".to_owned()],
        is_over: true,
        status: "verified".to_owned(),
        outcome: outcome.to_owned(),
        sums: Sums {
            runs,
            steps: 3 * runs,
            proposals: 9 * runs,
            refused: 4 * runs,
            tokens: 100 * runs,
            completion_tokens: 40 * runs,
            wall_ms: large * runs,
        },
    };
    let open = RunGroup {
        day: 1,
        task: "edit_distance".to_owned(),
        status: "queued".to_owned(),
        sums: Sums { runs: 1, ..Sums::default() },
        ..RunGroup::default()
    };
    let all = totals(&SearchQuery::default());
    let mut groups = all.groups;
    groups.sort_by_key(|group| (group.day, group.is_over));
    assert_eq!(groups, [over(0, "agreed", 2), open.clone(), over(1, "stuck", 1)]);
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
        (SearchQuery { limit: 1, terms: vec!["x".to_owned()], ..any() }, 4, 10),
    ] {
        let found = totals(&query);
        let sum = |of: &[RunGroup]| of.iter().map(|group| group.sums.runs).sum::<u64>();
        let refused = found.refused.iter().map(|refused| refused.lines).sum::<u64>();
        assert_eq!((sum(&found.groups), refused), (runs, lines), "{query:?}");
    }

    let old = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    while journal.collect(&old).unwrap().has_more {}
    let left = totals(&SearchQuery::default());
    assert_eq!((left.groups, left.refused), (vec![open], Vec::new()));
}
