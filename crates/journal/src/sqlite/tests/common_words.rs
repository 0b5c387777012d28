//! Words that most runs have, for which a search follows its order; tables of another version.

use super::*;
use crate::search::{SearchEntry, SearchQuery, SortKey};

/// More runs than a word needs to be common.
const RUNS: u64 = 6_000;

/// The tokens of a run: each number once, in an order of its own.
fn tokens(number: u64) -> u64 {
    number * 7_919 % RUNS
}

fn found(journal: &SqliteJournal, query: &SearchQuery) -> Vec<String> {
    let page = journal.find(query).unwrap();
    page.rows.into_iter().map(|row| row.id).collect()
}

fn noted() -> (TempDir, SqliteJournal) {
    let folder = tempfile::tempdir().unwrap();
    let journal = open(&folder, 0);
    let id = |number: u64| format!("{number:05}");
    let accepted: Vec<Write> = (0..RUNS).map(|number| accept(&id(number))).collect();
    journal.commit(&accepted).unwrap();
    let entry = |number: u64| SearchEntry {
        run: id(number),
        tokens: tokens(number),
        text: format!("common {}", if tokens(number) < 3 { "seldom" } else { "" }),
        ..SearchEntry::default()
    };
    journal.note(&(0..RUNS).map(entry).collect::<Vec<_>>()).unwrap();
    (folder, journal)
}

#[test]
fn a_common_word_is_found_in_every_order() {
    let (_folder, journal) = noted();
    let mut by_tokens: Vec<u64> = (0..RUNS).collect();
    by_tokens.sort_by_key(|number| tokens(*number));
    let ids = |numbers: &[u64]| -> Vec<String> {
        numbers.iter().map(|number| format!("{number:05}")).collect()
    };

    let query = |terms: &[&str], ascending| SearchQuery {
        terms: terms.iter().map(|term| (*term).to_owned()).collect(),
        sort: SortKey::Tokens,
        ascending,
        limit: 40,
        ..SearchQuery::default()
    };
    let first = journal.find(&query(&["common"], true)).unwrap();
    assert_eq!(found(&journal, &query(&["common"], true)), ids(&by_tokens[..40]));
    let after = SearchQuery { after: first.next, ..query(&["common"], true) };
    assert_eq!(found(&journal, &after), ids(&by_tokens[40..80]));
    // The few that have both words come last.
    assert_eq!(found(&journal, &query(&["common", "seldom"], true)), ids(&by_tokens[..3]));
    let mut last = ids(&by_tokens[..3]);
    last.reverse();
    assert_eq!(found(&journal, &query(&["common", "seldom"], false)), last);
    assert_eq!(found(&journal, &query(&["common", "absent"], false)), [""; 0]);
}

#[test]
fn an_index_of_another_version_is_made_again() {
    let (folder, journal) = noted();
    drop(journal);
    let file = Connection::open(folder.path().join("runs.db")).unwrap();
    file.execute_batch(
        "DELETE FROM meta WHERE name = 'search'; ALTER TABLE run_facts DROP COLUMN refusals;",
    )
    .unwrap();
    drop(file);

    let journal = open(&folder, 0);
    let any = SearchQuery { limit: 9, ..SearchQuery::default() };
    assert_eq!(found(&journal, &any), [""; 0]);
    assert_eq!(journal.unnoted(None, 10).unwrap().ids.len(), 10, "all have to be noted again");
    let entry = SearchEntry { run: "00007".to_owned(), ..SearchEntry::default() };
    journal.note(&[entry]).unwrap();
    assert_eq!(found(&journal, &any), ["00007"]);
}
