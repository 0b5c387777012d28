//! The labels that replace those of specs.

use std::collections::BTreeMap;

use super::fixtures::{Make, accept, end};
use crate::journal::{Journal, Retention};

fn of(journal: &dyn Journal, runs: &[&str]) -> BTreeMap<String, String> {
    let runs: Vec<String> = runs.iter().map(|run| (*run).to_owned()).collect();
    journal.labels().relabelled(&runs).unwrap()
}

pub fn labels_are_replaced_and_go_with_their_run(make: Make<'_>) {
    let mut store = make();
    let journal = store.journal();
    assert!(of(journal, &["r"]).is_empty());
    assert!(journal.labels().relabel("r", "{}").unwrap_err().to_string().contains("\"r\""));

    journal.commit(&[accept("r"), accept("s"), end("r", 1)]).unwrap();
    assert!(of(journal, &["r", "s"]).is_empty(), "these are in their specs");
    for labels in [r#"{"a":"\u0000"}"#, "{\"größe\":\"\0\u{1}\"}"] {
        store.journal().labels().relabel("r", labels).unwrap();
        let expected = BTreeMap::from([("r".to_owned(), labels.to_owned())]);
        assert_eq!(of(store.journal(), &["s", "r", "none"]), expected);
        store.reopen();
        assert_eq!(of(store.journal(), &["r"]), expected);
        assert!(of(store.journal(), &["s"]).is_empty() && of(store.journal(), &[]).is_empty());
    }

    let all = Retention { updated_before_ms: Some(u64::MAX), ..Retention::default() };
    let journal = store.journal();
    while journal.collect(&all).unwrap().has_more {}
    assert!(of(journal, &["r"]).is_empty());
    journal.commit(&[accept("r")]).unwrap();
    assert!(of(journal, &["r"]).is_empty(), "it is another run");
}

pub fn labels_are_replaced_only_if_they_are_still_the_same(make: Make<'_>) {
    let store = make();
    let journal = store.journal();
    let replace = |before: Option<&str>, labels: &str| {
        journal.labels().relabel_if("r", before, labels).unwrap()
    };
    let is = |labels: &str| {
        assert_eq!(of(journal, &["r"]), BTreeMap::from([("r".to_owned(), labels.to_owned())]));
    };
    assert!(!replace(None, "{}"), "there is no such run");

    journal.commit(&[accept("r"), end("r", 1)]).unwrap();
    assert!(!replace(Some("{}"), r#"{"a":"0"}"#), "it has those of its spec");
    assert!(of(journal, &["r"]).is_empty());
    assert!(replace(None, r#"{"a":"1"}"#));
    is(r#"{"a":"1"}"#);
    assert!(!replace(None, r#"{"a":"2"}"#) && !replace(Some("{}"), r#"{"a":"3"}"#));
    is(r#"{"a":"1"}"#);
    assert!(replace(Some(r#"{"a":"1"}"#), "{\"a\":\"\0\"}"));
    assert!(replace(Some("{\"a\":\"\0\"}"), "{}"));
    is("{}");
}
