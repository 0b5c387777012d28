//! Runs found by what they say, through `GET /v1/runs` and `runs list`.

use std::collections::{BTreeMap, BTreeSet};

use reqwest::header::{AUTHORIZATION, ETAG, IF_NONE_MATCH};
use serde_json::{Value, json};

use crate::binary::done;
use crate::daemon::{Answer, Daemon};
use crate::owners::Keyed;

const REFERENCE: &str = "agents.executor.implementation=reference";

fn ids(page: &Value) -> Vec<String> {
    let runs = page["runs"].as_array().expect("a list").iter();
    runs.map(|run| run["id"].as_str().expect("an id").to_owned()).collect()
}

/// Submits sorts of lists of these lengths that begin with these numbers; returns their ids when
/// all are found.
fn sorts(daemon: &Daemon, lists: &[(u64, usize)]) -> Vec<String> {
    let submit = |(first, length): &(u64, usize)| {
        let numbers: Vec<u64> = (0..*length as u64).map(|place| first + place).collect();
        let run = json!({"task": "bubble-sort", "input": {"a": numbers}, "fanout": 1});
        let location = daemon.submitted(&run);
        let record = daemon.finished(&location);
        record["id"].as_str().expect("an id").to_owned()
    };
    let submitted: Vec<String> = lists.iter().map(submit).collect();
    // An answer is noted when a run has ended.
    let count = submitted.len();
    daemon.until("/v1/runs?q=sorted&steps_min=1", |page| ids(page).len() == count);
    submitted
}

#[test]
fn runs_are_found_by_words_and_facts_and_paged_in_any_order() {
    let daemon = Daemon::start(&[REFERENCE]);
    let all = sorts(&daemon, &[(418_000, 4), (500_000, 6), (418_100, 5)]);
    let [first, second, third] = &all[..] else { panic!("three runs") };
    let found = |query: &str| ids(&daemon.get(&format!("/v1/runs?{query}")).body);

    // The input, the id, the lines in quotes, large letters.
    assert_eq!(found("q=418000"), std::slice::from_ref(first));
    assert_eq!(found("q=418"), [third.clone(), first.clone()]);
    assert_eq!(found(&format!("q={second}")), std::slice::from_ref(second));
    assert_eq!(found("q=%22cmp+4+5%22"), std::slice::from_ref(second));
    assert_eq!(found("q=CMP+500000"), std::slice::from_ref(second));
    assert_eq!(found("q=nothing+like+it"), [""; 0]);

    let reversed = |mut ids: Vec<String>| {
        ids.reverse();
        ids
    };
    assert_eq!(found("sort=created"), all);
    assert_eq!(found("sort=-created&outcome=agreed"), reversed(all.clone()));
    let by_steps = vec![second.clone(), third.clone(), first.clone()];
    assert_eq!(found("sort=-steps"), by_steps);
    assert_eq!(found("sort=steps&agent=reference"), reversed(by_steps.clone()));
    assert_eq!(found("sort=steps&agent=other"), [""; 0]);
    assert_eq!(found("status=verified&q=418&flagged=false"), [third.clone(), first.clone()]);
    assert_eq!(found("status=failed&q=418"), [""; 0]);
    assert_eq!(found("since=2020-01-01T00:00:00Z&tokens_max=0").len(), 3);
    assert_eq!(found("before=2020-01-01T00:00:00Z"), [""; 0]);

    // Pages of one run each come to the same.
    let (mut paged, mut after) = (Vec::new(), String::new());
    loop {
        let page = daemon.get(&format!("/v1/runs?sort=-steps&limit=1{after}")).body;
        paged.extend(ids(&page));
        let Some(next) = page["next"].as_str() else { break };
        after = format!("&after={next}");
    }
    assert_eq!(paged, by_steps);

    let small = daemon.get("/v1/runs?q=500000&fields=id,steps").body;
    let fields: BTreeSet<&String> = small["runs"][0].as_object().expect("a run").keys().collect();
    assert_eq!(fields.into_iter().collect::<Vec<_>>(), ["id", "steps"]);
    let plain = daemon.get("/v1/runs?fields=status").body;
    assert_eq!(plain["runs"][0], json!({"status": "verified"}));
    // All fields that records have can be named.
    let record = daemon.get(&format!("/v1/runs/{first}")).body;
    let names: Vec<&str> =
        record.as_object().expect("a record").keys().map(String::as_str).collect();
    let named = daemon.get(&format!("/v1/runs?q={first}&fields={}", names.join(","))).body;
    assert_eq!(named["runs"][0], record);

    for (query, field, part) in [
        ("q=a+b+c+d+e+f+g+h+i", "q", "has 9 words"),
        ("sort=size", "sort", "-duration"),
        ("since=yesterday", "since", "must be a time such as"),
        ("q=x&after=run_1", "after", "it is not the `next` of a page"),
        ("fields=ids", "fields", "\"ids\" is not a field of a run"),
        ("steps_min=-1", "steps_min", "give a whole number"),
    ] {
        daemon.get(&format!("/v1/runs?{query}")).refused(400, Some(field), &[part]);
    }

    let list = |words: &[&str]| {
        done(&[&["runs", "list", "--url", &daemon.url(""), "--output", "json"], words].concat())
    };
    assert_eq!(
        ids(&list(&["-q", "418", "--sort", "-steps"]).json(0)),
        [third.clone(), first.clone()]
    );
    let steps = daemon.get(&format!("/v1/runs/{second}")).body["steps"].to_string();
    assert_eq!(ids(&list(&["--steps-min", &steps, "--all"]).json(0)), std::slice::from_ref(second));
    let refused = list(&["--since", "yesterday"]);
    assert!(refused.code != 0 && refused.stderr.contains("must be a time such as"));
}

#[test]
fn a_search_says_where_its_words_stand() {
    let daemon = Daemon::start(&[REFERENCE]);
    let all = sorts(&daemon, &[(418_000, 4), (500_000, 6)]);
    let found = |query: &str| daemon.get(&format!("/v1/runs?{query}")).body["runs"][0].clone();
    let whole = |part: &str, text: &str| {
        let pieces = json!([{"text": text, "is_match": true}]);
        json!({"excerpts": [{"part": part, "pieces": pieces}]})
    };

    assert_eq!(found("q=%22CMP+4+5%22")["found"], whole("line", "cmp 4 5"));
    assert_eq!(found("q=Bubble-SORT")["found"], whole("task", "bubble-sort"));
    assert_eq!(found(&format!("q={}", all[0]))["found"], whole("id", &all[0]));
    // Words that no text has together: the fewest excerpts that show each.
    let both = &found("q=cmp+500000&fields=found,id")["found"]["excerpts"];
    let parts: Vec<&Value> =
        both.as_array().expect("a list").iter().map(|one| &one["part"]).collect();
    assert_eq!(parts, ["answer", "line"]);
    let pieces = both[0]["pieces"].as_array().expect("a list");
    let matches = pieces.iter().filter(|piece| piece["is_match"] == true);
    assert_eq!(matches.map(|piece| &piece["text"]).collect::<Vec<_>>(), ["500000"]);

    assert_eq!(found("")["found"], Value::Null);
    assert_eq!(found("sort=steps")["found"], Value::Null);
    assert_eq!(found("q=418&fields=id"), json!({"id": all[0]}));
}

#[test]
fn runs_of_a_constraint_come_with_the_lines_that_it_refused() {
    let daemon = Daemon::start(&[
        "agents.executor.implementation=scripted",
        "agents.executor.error_rate=0.35",
        "run.tau_soft=0.25",
    ]);
    let run = json!({"task": "bubble-sort", "index": 3, "fanout": 1, "max_rounds": 1, "seed": 5});
    let location = daemon.submitted(&run);
    daemon.finished(&location);

    // The steps themselves say which constraints refused them.
    let steps = daemon.get(&format!("{location}/steps?trajectory=1.0&limit=1000")).body;
    let mut refused: BTreeMap<&str, u64> = BTreeMap::new();
    for step in steps["steps"].as_array().expect("steps") {
        if step["decision"] != "proceed" {
            for name in step["violations"].as_array().expect("names") {
                *refused.entry(name.as_str().expect("a name")).or_default() += 1;
            }
        }
    }
    assert!(!refused.is_empty(), "{steps}");
    daemon.until("/v1/runs?steps_min=1", |page| ids(page).len() == 1);
    for (name, lines) in refused {
        let page = daemon.get(&format!("/v1/runs?constraint={name}")).body;
        assert_eq!(page["runs"][0]["found"], json!({"refused": lines}), "{name}");
    }
}

#[test]
fn a_run_of_an_own_input_is_titled_by_it() {
    let daemon = Daemon::start(&[REFERENCE]);
    let title = |run: &Value| {
        let location = daemon.submitted(run);
        let open = daemon.get(&location).body["title"].clone();
        let over = daemon.finished(&location)["title"].clone();
        assert_eq!(open, over, "the title does not change");
        over
    };
    let sort = json!({"task": "bubble-sort", "input": {"a": [3, 1, 2]}, "fanout": 1});
    assert_eq!(title(&sort), r#"{"a":[3,1,2]}"#);
    let instance = json!({"task": "bubble-sort", "index": 3, "fanout": 1});
    assert_eq!(title(&instance), "bubble-sort/easy/003");
    let titles = daemon.get("/v1/runs?fields=title").body["runs"].clone();
    assert_eq!(titles, json!([{"title": "bubble-sort/easy/003"}, {"title": r#"{"a":[3,1,2]}"#}]));
}

#[test]
fn a_list_that_has_not_changed_is_not_sent_again() {
    let daemon = Daemon::start(&[REFERENCE]);
    let id = sorts(&daemon, &[(1, 3)]).remove(0);
    let ask = |tag: &str| {
        let request = daemon.client.get(daemon.url("/v1/runs?sort=-steps"));
        request.header(IF_NONE_MATCH, tag).send().expect("an answer")
    };
    let tag = ask("none").headers()[ETAG].to_str().expect("a tag").to_owned();
    let known = ask(&tag);
    assert_eq!((known.status().as_u16(), known.text().expect("text").as_str()), (304, ""));
    assert!(!id.is_empty());
}

#[test]
fn a_search_sees_what_its_key_may_see() {
    let Keyed { daemon } = Keyed::start(&[("ada", ""), ("bob", "")], &[REFERENCE]);
    let get = |key: &str, path: &str| -> Answer {
        let request = daemon.client.get(daemon.url(path));
        request.header(AUTHORIZATION, format!("Bearer {key}")).send().expect("an answer").into()
    };
    let run = json!({"task": "bubble-sort", "input": {"a": [918_273, 2]}}).to_string();
    let request = daemon.client.post(daemon.url("/v1/runs")).body(run);
    let accepted: Answer =
        request.header(AUTHORIZATION, "Bearer ada").send().expect("an answer").into();
    assert_eq!(accepted.status, 202);

    while ids(&get("ada", "/v1/runs?q=918273").body).is_empty() {}
    for query in ["q=918273", "sort=-steps", "agent=reference", "q=sort&steps_min=0"] {
        let page = get("bob", &format!("/v1/runs?{query}")).body;
        assert_eq!((ids(&page).len(), &page["next"]), (0, &Value::Null), "{query}");
    }
}
