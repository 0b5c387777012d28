//! The tokens of a server's answer: counted by the server, or estimated from the texts. A budget of
//! tokens has to end a run even if the server counts none. Pure.

use serde_json::Value;

use prime_protocol::Usage;

/// Estimated bytes per token of English text and code, for servers that do not count.
const BYTES_PER_TOKEN: u64 = 4;
/// No answer has this many tokens: a larger number is not a count.
const COUNT_MAX: u64 = 1 << 40;

/// The tokens that a response took, of a prompt with this many bytes.
pub(super) fn usage(answer: &Value, prompt_bytes: usize) -> Usage {
    let usage = &answer["usage"];
    let count = |places: &[&str]| {
        let counts = places.iter().filter_map(|place| whole(usage.pointer(place)?));
        counts.into_iter().find(|count| *count <= COUNT_MAX)
    };
    // A server that reports no tokens has not counted them: a text has some.
    let counted =
        |place: &str, estimate: u64| count(&[place]).filter(|count| *count > 0).unwrap_or(estimate);
    let prompt = counted("/prompt_tokens", of_bytes(prompt_bytes));
    let completion = counted("/completion_tokens", of_choice(answer));

    // A part cannot have more tokens than the whole.
    let cached = count(&["/prompt_tokens_details/cached_tokens", "/prompt_cache_hit_tokens"]);
    let reasoning = count(&["/completion_tokens_details/reasoning_tokens", "/reasoning_tokens"]);
    Usage {
        cached: cached.unwrap_or(0).min(prompt),
        reasoning: reasoning.unwrap_or(0).min(completion),
        ..Usage::new(prompt, completion)
    }
}

fn of_bytes(bytes: usize) -> u64 {
    (bytes as u64).div_ceil(BYTES_PER_TOKEN)
}

/// The tokens of the first choice: the length of a list that has an entry for each, or an estimate.
fn of_choice(answer: &Value) -> u64 {
    let Some(choice) = answer.pointer("/choices/0") else { return 0 };
    let lists = ["/token_ids", "/logprobs/content", "/logprobs/token_logprobs"];
    let listed = lists.iter().find_map(|place| choice.pointer(place)?.as_array());
    if let Some(list) = listed.filter(|list| !list.is_empty()) {
        return list.len() as u64;
    }

    let message = choice.get("message").unwrap_or(choice);
    let texts = ["content", "text", "reasoning_content", "reasoning", "refusal", "tool_calls"];
    let bytes = texts.iter().map(|name| match &message[*name] {
        Value::Null => 0,
        Value::String(text) => text.len(),
        parts => parts.to_string().len(),
    });
    of_bytes(bytes.sum())
}

/// A count: some servers write the integer 12 as `12.0`, which JSON does not tell apart.
pub(super) fn whole(value: &Value) -> Option<u64> {
    /// 2^53: from here on, a float may stand for several integers.
    const INEXACT_FROM: f64 = 9_007_199_254_740_992.0;

    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "it is exact")]
    let of_float = |float: f64| {
        let is_count = float.fract() == 0.0 && (0.0..INEXACT_FROM).contains(&float);
        is_count.then_some(float as u64)
    };
    value.as_u64().or_else(|| value.as_f64().and_then(of_float))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn counts_may_be_floats_without_a_fraction() {
        for count in [json!(12), json!(12.0), json!(1.2e1)] {
            let answer = json!({"usage": {"prompt_tokens": count, "completion_tokens": 3.0}});
            assert_eq!(usage(&answer, 40), Usage::new(12, 3), "{count}");
        }
        let none = json!({"usage": {"prompt_tokens": 0.0, "completion_tokens": 0}});
        assert_eq!(usage(&none, 0), Usage::new(0, 0));
    }

    #[test]
    fn what_is_no_count_is_estimated() {
        // 40 bytes of prompt are 10 tokens, 9 bytes of text are 3.
        let choice = json!({"message": {"content": "move 1 0!"}});
        for count in [
            json!(12.5),
            json!(-1),
            json!(-1.0),
            json!(null),
            json!("12"),
            json!(9_007_199_254_740_992.0),
            json!(u64::MAX),
            json!(0),
        ] {
            let answer = json!({
                "choices": [choice],
                "usage": {"prompt_tokens": count, "completion_tokens": count},
            });
            assert_eq!(usage(&answer, 40), Usage::new(10, 3), "{count}");
        }

        for (choice, completion) in [
            (json!({"text": "move 1 0!", "token_ids": [4, 5]}), 2),
            (json!({"text": "move", "logprobs": {"content": [{}, {}, {}, {}, {}]}}), 5),
            (json!({"message": {"content": "a", "reasoning": "hm hm hm"}}), 3),
            (json!({"message": {"content": ""}}), 0),
            (json!({"message": {"content": [{"text": "abc"}]}}), 4),
        ] {
            let answer = json!({"choices": [choice], "usage": "none"});
            assert_eq!(usage(&answer, 40), Usage::new(10, completion), "{choice}");
        }
        assert_eq!(usage(&json!({}), 0), Usage::default());
    }
}
