//! What `split`, `sum`, `sort`, `distinct` and `range` make, and that they stay bounded.

use std::time::Duration;

use serde_json::json;
use tokio::time::Instant;

use super::tests::{ask, read};

#[test]
fn lists_are_split_added_sorted_and_made_distinct_exactly() {
    let input = json!({
        "n": 4,
        "list": [3, 1, 2, 3],
        "words": "b a c",
        "big": [9_007_199_254_740_993_i64, 1],
        "max": [u64::MAX, i64::MIN],
        "halves": [0.5, 1, 2.5],
    });

    for (source, expected) in [
        ("input.words.split(' ') == ['b', 'a', 'c']", true),
        ("split('a,,b', ',') == ['a', '', 'b'] && ''.split(',') == ['']", true),
        ("'aéb'.split('') == ['a', 'é', 'b'] && ''.split('') == []", true),
        ("input.words.split(' ').sort() == ['a', 'b', 'c']", true),
        ("'1 20 3'.split(' ').map(w, int(w)).sum() == 24", true),
        ("sum([]) == 0 && input.list.sum() == 9 && sum(input.halves) == 4.0", true),
        ("sum(input.big) == 9007199254740994", true),
        // In the order of the list, an intermediate sum would overflow.
        ("sum([9223372036854775807, 9223372036854775807, -9223372036854775807]) > 0", true),
        ("sum(input.max) == 9223372036854775807 && sum([1u, 2u]) + 1u == 4u", true),
        ("sort(input.list) == [1, 2, 3, 3] && [2, 1.5, 1u].sort() == [1, 1.5, 2]", true),
        ("sort(input.max)[1] == 18446744073709551615u", true),
        ("sort([]) == [] && [true, false].sort() == [false, true]", true),
        // 2^53 + 1 and 2^53 are two numbers, and 1, 1u and 1.0 are one.
        ("distinct([9007199254740993, 9007199254740992.0]).size() == 2", true),
        (
            "distinct([1, 1u, 1.0, '1', true, null, [1], [1.0], {'a': 1}, {'a': 1.0}]).size() == 6",
            true,
        ),
        (
            "distinct(['ab', 'a', 'b']).size() == 3 && distinct([['a', 'b'], ['ab']]).size() == 2",
            true,
        ),
        ("distinct([0.5, -0.5, 0.5]) == [0.5, -0.5] && [3, 1, 3].distinct() == [3, 1]", true),
        ("input.list.distinct().size() == input.list.size()", false),
        ("range(3) == [0, 1, 2] && range(-2, 1) == [-2, -1, 0]", true),
        ("range(0) == [] && range(3, 1) == []", true),
        ("range(input.n).all(i, input.list[i] > 0)", true),
        ("range(1, size(input.list)).all(i, input.list[i - 1] <= input.list[i])", false),
        ("range(9223372036854775806, 9223372036854775807) == [9223372036854775806]", true),
    ] {
        assert_eq!(ask(source, &input, &[], None), Ok(expected), "{source}");
    }

    for (source, part) in [
        ("split('a', 1) == []", "it takes a text"),
        ("sum(['a']) == 0", "a value of the type string is not a number"),
        ("sum(3) == 0", "it takes a list"),
        ("sum([18446744073709551615u, 1u]) > 0u", "outside of the integers"),
        ("sum([-9223372036854775808, -1]) < 0", "outside of the integers"),
        ("sum([9007199254740993, 0.5]) > 0.0", "reaches 2^53"),
        ("sum([9007199254740991, 2.0]) > 0.0", "reaches 2^53"),
        ("sum([9007199254740991.0, 2.0, -5.0]) > 0.0", "reaches 2^53"),
        ("sort([1, 'a']) == []", "no matching overload"),
        ("sort([[1], [2]]) == []", "no matching overload"),
        ("sort([0.0 / 0.0, 1.0]) == []", "NaN has no order"),
        ("distinct([int]) == []", "are not compared"),
        ("range(10001) == []", "it would have 10001 numbers; 10000 is the most"),
        ("range(-9223372036854775808, 9223372036854775807) == []", "10000 is the most"),
        ("range(1.5) == []", "one or two integers"),
        ("range(9223372036854775808u, 9223372036854775809u) == []", "outside of"),
    ] {
        let reason = ask(source, &input, &[], None).expect_err(source);
        assert!(reason.contains(part), "{source}: {reason}");
    }
}

#[test]
fn the_length_of_a_range_is_known_where_its_numbers_are() {
    let input = json!({"n": 9, "many": 5_000, "deep": {"n": 3}, "list": [1, 2, 3], "half": 0.5});

    for source in [
        "range(input.n).all(x, range(input.n).all(y, range(9).all(z, x + y + z >= 0)))",
        "range(size(input.list) * 2).all(x, range(input.deep.n + 4).all(y, x * y >= 0))",
        "range(4990, input.many).all(x, range(input.n).all(y, x > y))",
    ] {
        assert_eq!(ask(source, &input, &[], None), Ok(true), "{source}");
    }

    for source in [
        "range(input.many).all(x, range(input.many).all(y, x + y >= 0))",
        "range(answer).all(x, range(answer).all(y, x + y >= 0))",
        "range(input.half).all(x, range(input.n - answer).all(y, x + y >= 0))",
        // The loop's name hides the input's.
        "input.list.all(input, range(input.n).all(x, range(input.n).all(y, x + y >= 0)))",
        "range(10000).map(x, range(10000)).size() > 0",
        "range(10000).map(x, 'ab').map(x, x.split('')).map(x, [x, x, x, x]).sort() == []",
        "range(10000).map(x, range(40)).distinct().size() == 1",
        "range(10000).all(x, input.list.sort() == sort(range(100)))",
        "range(10000).all(x, 'abcdefghijklmnopqrstuvwxyz'.split('').distinct().size() == 26)",
        "range(10000).all(x, sum(range(100)) > 0)",
    ] {
        let start = Instant::now();
        let error = read(&input, &[source]).expect_err(source);
        assert!(error.problem.contains("units of work"), "{source}: {error}");
        assert!(start.elapsed() < Duration::from_secs(10), "{source}");
    }
}

#[test]
fn functions_are_known_by_their_number_of_arguments_and_internal_names_by_nobody() {
    for source in [
        "range() == []",
        "range(1, 2, 3) == []",
        "split('a') == []",
        "[1].sum(2) == 0",
        "min([1]) == 1",
    ] {
        let error = read(&json!(null), &[source]).expect_err(source);
        assert!(error.problem.contains("there is no function"), "{source}: {error}");
    }
    let error = read(&json!(null), &["@sum([1]) == 1"]).expect_err("an internal name");
    assert!(error.problem.contains("not a CEL expression"), "{error}");
}
