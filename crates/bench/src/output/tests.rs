use serde_json::json;

use super::*;

fn found(text: &str) -> Output {
    read(text, |line| line.starts_with("cmp ") || line == "done" || line == "4 17")
}

fn trace(lines: &[&str]) -> Found<ActionList> {
    Found::Read(lines.iter().copied().collect())
}

#[test]
fn marks_are_read_and_the_last_ones_count() {
    let text = "Let me see.\n<actions>\ncmp 9 9\n</actions>\nNo:\n<actions>\n1. cmp 0 1\n- `done`\n4 17\n\n</actions>\n\
                <answer>{\"a\": 1}</answer> or rather <answer>\n```json\n{\"a\": [2]}\n```\n</answer>.";
    assert_eq!(found(text).actions, trace(&["cmp 0 1", "done", "4 17"]));
    assert_eq!(found(text).answer, Found::Read(json!({"a": [2]})));

    assert_eq!(found("<answer>{\"a\":1}").answer, Found::Read(json!({"a": 1})), "cut off");
    let marked = found("<answer>none</answer> {\"a\":1}").answer;
    assert_eq!(marked, Found::Unreadable("none".to_owned()), "what is marked counts");
}

#[test]
fn without_marks_fences_and_objects_are_read() {
    let both = found("```\ncmp 0 1\ndone\n```\nso\n```json\n{\"a\": 3}\n```");
    assert_eq!(
        both,
        Output { actions: trace(&["cmp 0 1", "done"]), answer: Found::Read(json!({"a": 3})) }
    );

    let answer = |text| found(text).answer;
    assert_eq!(answer("It is {\"a\": {\"b\": 1}} I think."), Found::Read(json!({"a": {"b": 1}})));
    assert_eq!(answer("It is {1,2}, so {\"a\": 1}"), Found::Read(json!({"a": 1})));
    assert_eq!(answer("I do not know"), Found::Absent);
    assert_eq!(answer("[1, 2]"), Found::Absent, "an answer is an object");
}

#[test]
fn hostile_text_never_panics() {
    let pieces = [
        "{",
        "}",
        "{}",
        "```",
        "{\"a\":",
        "{\"a\":[1,",
        "{\"a\":1,",
        "[",
        "<answer>",
        "</answer>",
        "<actions>",
        "<actions>cmp 0 1",
        "<think>",
        "</think>",
        "<|channel|>",
        "<|channel|>final",
        "<|end|>",
        "`<think>`",
        "\\boxed{",
        "**",
        "1. ",
        "\"",
        "\\",
        "\u{feff}\0",
        "{'a':'",
        "<",
        "analysis",
        "assistantfinal",
        "Step 1: ",
        "````",
        "here is my ",
    ];
    for piece in pieces {
        let text = piece.repeat(30_000);
        found(&text);
        found(&format!("<answer>{text}"));
        found(&format!("<actions>\n{text}\n</actions>"));
    }
}
