use serde_json::json;

use super::*;

/// What a false check had read.
fn values_of(source: &str, input: &Value, answer: &Value) -> Option<String> {
    let sources = [(0, source)];
    let checks = Checks::read(input, &sources, false, |_| String::new()).expect(source);
    let kind = checks.kind_of(0).expect("a kind");
    let broken = checks.broken(kind, &Steps::default(), Some(answer));
    let [Finding { reason: None, values, .. }] = broken.as_slice() else {
        panic!("{source}: {broken:?}")
    };
    values.clone()
}

#[test]
fn a_false_check_names_the_values_that_it_read() {
    let input = json!({"n": 3, "names": ["x", "y"]});
    let answer = json!({"a": 7, "text": "é".repeat(500), "list": vec![1; 200], "b\u{7}": 1});

    for (source, values) in [
        ("answer.a < input.n", "answer.a is 7, input.n is 3"),
        ("answer.a == 1 || answer.a == 2", "answer.a is 7"),
        ("answer.list[1] == input.n", "answer.list[1] is 1, input.n is 3"),
        ("answer['a'] > 9", "answer.a is 7"),
        ("has(answer.c)", "answer.c is missing"),
        // A loop's own name has many values; its list has one.
        ("input.names.all(name, name == answer.a)", "input.names is [\"x\",\"y\"], answer.a is 7"),
        ("input.names.exists(answer, answer == 'z')", "input.names is [\"x\",\"y\"]"),
    ] {
        assert_eq!(values_of(source, &input, &answer).as_deref(), Some(values), "{source}");
    }
    assert_eq!(
        values_of("answer == 1 || size(state.steps) > 5", &input, &json!(2)).as_deref(),
        Some("answer is 2")
    );

    // Long values are cut and say how long they are.
    let text = values_of("answer.text == 'a'", &input, &answer).unwrap();
    assert!(text.ends_with("…, 500 characters in all") && text.chars().count() < 110, "{text}");
    let list = values_of("size(answer.list) == 1", &input, &answer).unwrap();
    assert!(list.ends_with("…, 200 in all") && list.chars().count() < 110, "{list}");

    // Every variable has its value, up to six.
    let many: Vec<String> = (0..9).map(|at| format!("answer.list[{at}] == 2")).collect();
    let many = values_of(&many.join(" && "), &input, &answer).unwrap();
    assert_eq!(many.matches(" is 1").count(), 6, "{many}");

    // Nothing of it controls a terminal.
    let hostile = json!({"a": "\u{1b}[31m\u{202e}"});
    let hostile = values_of("answer.a == 'a'", &input, &hostile).unwrap();
    assert!(!hostile.contains(['\u{1b}', '\u{202e}']), "{hostile}");
}
