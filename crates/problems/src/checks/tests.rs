//! Results of checks, refusals at parse time, and bounds: no expression takes long or aborts the
//! process.

use std::time::Duration;

use proptest::prelude::*;
use serde_json::json;
use tokio::time::Instant;

use super::*;
use crate::limits::{EXPRESSION_BYTES_MAX, TREE_DEPTH_MAX};

/// Reading or evaluating one expression is meant to take 50 ms on an idle machine. An expression
/// that is not bounded takes minutes, so a busy machine is given time.
const PATIENCE: Duration = Duration::from_secs(10);

pub(super) fn read(input: &Value, sources: &[&str]) -> Result<Checks, ProblemError> {
    let sources: Vec<_> = sources.iter().copied().enumerate().collect();
    Checks::read(input, &sources, false, |place| format!("checks[{place}]"))
}

fn steps(lines: &[&str]) -> Steps {
    let mut steps = Steps::default();
    lines.iter().for_each(|line| steps.push(line, None));
    steps
}

/// The result of one check for these values: `Ok(false)` if it is false, the reason if it could not
/// be evaluated.
pub(super) fn ask(
    source: &str,
    input: &Value,
    lines: &[&str],
    answer: Option<&Value>,
) -> Result<bool, String> {
    let checks = read(input, &[source]).unwrap_or_else(|error| panic!("{source}: {error}"));
    let kind = checks.kind_of(0).expect("a check");

    match checks.broken(kind, &steps(lines), answer).as_slice() {
        [] => Ok(true),
        [Finding { constraint: 0, reason: None, .. }] => Ok(false),
        [Finding { constraint: 0, reason: Some(reason), .. }] => Err(reason.clone()),
        other => panic!("{source}: {other:?}"),
    }
}

#[test]
fn expressions_see_the_input_the_state_and_the_answer() {
    let input = json!({
        "n": 12,
        "names": ["ann", "bob"],
        "big": 18_446_744_073_709_551_615_u64,
        "half": 0.5,
        "no": null,
    });
    let answer = json!({"x": 3, "y": 4, "grid": [[1, 2], [2, 1]]});

    for (source, expected) in [
        ("answer.x * answer.y == input.n", true),
        ("answer.x > 3 || answer.y > 4", false),
        ("answer.grid.all(row, row.all(cell, row.exists_one(other, other == cell)))", true),
        ("state.answer == answer && state.steps == ['one', 'two']", true),
        ("state.steps.all(step, step.matches('^[a-z]+$')) && answer.x == 3", true),
        ("state.steps.exists(step, matches(step, 'w.$') && step.size() == 3)", true),
        ("state.steps[size(state.steps) - 1] == 'two'", true),
        ("state.steps.map(step, step + '!').filter(step, step.contains('o')).size() == 1", false),
        ("has(answer.x) && !has(answer.z)", true),
        ("input.names.exists(name, name.startsWith('b')) && input.names[0].endsWith('n')", true),
        ("input.big == 18446744073709551615u && input.half == 0.5 && input.no == null", true),
        (
            "type(input.n) == int && string(input.n) == '12' && int('7') == 7 && double(1) == 1.0",
            true,
        ),
        ("'n' in input && !('m' in input) && 'ann' in input.names", true),
        (
            "{'a': input.n}.a == 12 && [1, 2, 3][1] == 2 && (input.n > 3 ? 'big' : 'small') == 'big'",
            true,
        ),
        (
            "input.names.all(answer, answer != '') && input.names.all(input, input.size() == 3)",
            true,
        ),
    ] {
        assert_eq!(ask(source, &input, &["one", "two"], Some(&answer)), Ok(expected), "{source}");
    }
}

/// An integer and a double are compared by their values: 2^53 + 1 is not a double.
#[test]
fn numbers_of_different_types_are_compared_without_rounding() {
    let input = json!({
        "target": 9_007_199_254_740_993_i64,
        "l": [1, 9_007_199_254_740_993_i64],
        "deep": {"a": [{"b": 9_007_199_254_740_993_i64}]},
        "max": u64::MAX,
        "min": i64::MIN,
        "half": 0.5,
        "zero": 0.0,
    });
    // 2^53 as a double: none larger can be an answer, but an expression makes them.
    const D: &str = "9007199254740992.0";

    for (source, expected) in [
        ("answer >= 1e16", false),
        ("answer < 1e16", true),
        ("answer + 1 >= 1e16", true),
        ("answer + 1 <= 1e16 && answer + 1 == 1e16", true),
        ("answer == 1e16 || answer > 1e16", false),
        ("1e16 > answer && 1e16 != answer && !(1e16 <= answer)", true),
        ("input.target == D", false),
        ("input.target != D && D != input.target", true),
        ("input.target > D && D < input.target", true),
        ("input.target <= D || D >= input.target", false),
        ("uint(input.target) == D || D == uint(input.target)", false),
        ("uint(input.target) > D && uint(input.target) - 1u == D", true),
        // A conversion rounds, as CEL specifies, and its result is the double.
        ("input.target == double(input.target)", false),
        ("input.target - 1 == double(input.target)", true),
        ("D in input.l", false),
        ("input.target in [D]", false),
        ("(input.target - 1) in [1, D] && D in [1u, 9007199254740992u]", true),
        ("[D] in [input.l] || {'a': D} in [{'a': input.target}]", false),
        ("input.l == [1, D] || [1, D] == input.l", false),
        ("input.l != [1, D]", true),
        ("[1.0, 2.0] == [1, 2u] && {'a': [1.0]} == {'a': [1u]}", true),
        ("input.deep == {'a': [{'b': D}]}", false),
        ("input.deep == {'a': [{'b': input.target}]}", true),
        ("{1: 'a'} == {1u: 'a'} && 1.0 in {1: 'a'} && 1u in {1: 'a'} && 1 in {1u: 'a'}", true),
        ("1.5 in {1: 'a'} || 2.0 in {1: 'a'} || 'a' in {1: 'a'}", false),
        ("-9223372036854775808.0 in {-9223372036854775808: 1}", true),
        ("input.l.all(x, x == D || x == 1)", false),
        ("input.l.exists(x, x == D)", false),
        ("input.l.exists_one(x, x > D)", true),
        ("input.l.filter(x, x >= D).size() == 1 && input.l.filter(x, x == D) == []", true),
        ("input.l.map(x, x == D) == [false, false]", true),
        ("input.max == 18446744073709551616.0 || input.max >= 18446744073709551616.0", false),
        ("input.max < 18446744073709551616.0", true),
        ("input.min == -9223372036854775808.0 && input.min >= -9223372036854775808.0", true),
        ("input.half < 1 && input.half > 0u && 0.5 == input.half && 1 > input.half", true),
        ("input.zero == 0 && 0u == -input.zero", true),
        // NaN equals nothing, not even itself, and is in no list.
        ("0.0 / input.zero == 0.0 / input.zero || 0.0 / input.zero in [0.0 / input.zero]", false),
        ("0.0 / input.zero != 0.0 / input.zero && [0.0 / input.zero] != [0.0 / input.zero]", true),
        ("1.0 / input.zero > input.max && -1.0 / input.zero < input.min", true),
        ("'a' == 1 || 1 == '1' || null == 0 || true == 1 || [] == {}", false),
        ("'a' < 'b' && 'b' >= 'a' && false < true && b'a' <= b'b'", true),
    ] {
        let answer = json!(9_999_999_999_999_999_i64);
        let source = source.replace('D', D);
        assert_eq!(ask(&source, &input, &[], Some(&answer)), Ok(expected), "{source}");
    }

    for (source, part) in [
        ("0.0 / input.zero < 1", "NaN has no order"),
        ("[1] < [2]", "no matching overload"),
        ("1 in 2", "no matching overload"),
        ("[1] in {1: 1}", "no matching overload"),
    ] {
        let reason = ask(source, &input, &[], None).expect_err(source);
        assert!(reason.contains(part), "{source}: {reason}");
    }
}

#[test]
fn a_check_that_reads_the_input_alone_says_nothing_of_an_answer() {
    for (source, expected) in [
        ("input.a == 2", false),
        ("true", false),
        ("[1].all(answer, answer == input.a)", false),
        ("answer == 2", true),
        ("state.answer == 2", true),
        ("size(state.steps) < input.a", true),
        ("[1].all(x, x < answer)", true),
    ] {
        let checks = read(&json!({"a": 2}), &[source]).expect(source);
        assert_eq!(checks.that_read_work().next().is_some(), expected, "{source}");
    }
    assert_eq!(read(&json!(null), &[]).expect("none").that_read_work().count(), 0);
    let two = read(&json!(null), &["true", "answer == 1"]).expect("two");
    assert_eq!(two.that_read_work().collect::<Vec<_>>(), [1]);
}

#[test]
fn a_check_that_mentions_the_answer_waits_for_it() {
    let checks = read(
        &json!([1]),
        &["answer > 1", "size(state.steps) < 9", "input.all(answer, answer > 0)"],
    );
    let checks = checks.expect("valid");
    let kinds: Vec<_> = (0..4).map(|constraint| checks.kind_of(constraint)).collect();
    assert_eq!(kinds, [Some(Kind::Terminal), Some(Kind::Invariant), Some(Kind::Invariant), None]);

    let broken = checks.broken(Kind::Terminal, &Steps::default(), Some(&json!(1)));
    let values = Some("answer is 1".to_owned());
    assert_eq!(broken, [Finding { constraint: 0, reason: None, values }]);
    assert_eq!(checks.broken(Kind::Invariant, &Steps::default(), None), []);
}

#[test]
fn checks_that_cannot_be_evaluated_are_broken_with_the_reason() {
    let input = json!({
        "zero": 0,
        "max": i64::MAX,
        "min": i64::MIN,
        "list": [1],
        "text": "x".repeat(9_000),
    });

    for (source, part) in [
        ("1 / input.zero == 1", "Division by zero"),
        ("1 % input.zero == 1", "Remainder by zero"),
        ("input.max + 1 > 0", "Overflow"),
        ("input.max * input.max > 0", "Overflow"),
        ("input.min - 1 < 0", "Overflow"),
        ("-input.min > 0", "Overflow"),
        ("input.min / -1 > 0", "Overflow"),
        ("int(1e300) > 0", "overflow"),
        ("int('nine') > 0", "int"),
        ("input.none == 1", "No such key: none"),
        ("input.list[7] == 1", "Index out of bounds"),
        ("input.list['a'] == 1", "no matching overload"),
        ("input.text + 1 == ''", "Unsupported binary operator"),
        ("input.list + 1 == []", "Unsupported binary operator"),
        ("input.text < 3", "no matching overload"),
        ("input.text.all(c, c == 'x')", "iterable"),
        ("input.list.contains(1)", "no matching overload"),
        ("size(1) == 1", "no matching overload"),
        ("input.list.all(x, x.matches('a'))", "Unexpected type"),
        ("1 + 1", "the type int, and not true or false"),
        ("input", "the type map"),
        ("'true'", "the type string"),
        ("{1: 1, 1u: 2} == {}", "repeated key"),
    ] {
        let reason = ask(source, &input, &[], None).expect_err(source);
        assert!(reason.contains(part), "{source}: {reason}");
        assert!(reason.len() < 400, "{source}: {} bytes", reason.len());
    }
}

#[test]
fn expressions_that_cannot_work_are_refused_when_they_are_read() {
    let deep = |open: &str, close: &str| format!("{}1{}", open.repeat(90), close.repeat(90));
    let long = |link: &str| format!("1{} == 1", link.repeat(300));

    for (source, part) in [
        (String::new(), "is empty"),
        ("answer >".to_owned(), "not a CEL expression: line 1, column"),
        ("answer > 1 answer".to_owned(), "not a CEL expression"),
        ("é".to_owned(), "not a CEL expression"),
        ("\0".to_owned(), "not a CEL expression"),
        ("9223372036854775808 > 0".to_owned(), "not a CEL expression"),
        ("'\\ud800' == ''".to_owned(), "not a CEL expression"),
        ("result > 1".to_owned(), "unknown name `result`"),
        (".input == 1".to_owned(), "unknown name `.input`"),
        ("optional.of(1) == 1".to_owned(), "no function `of`"),
        ("input.?x == 1".to_owned(), "not a CEL expression"),
        ("[?input] == []".to_owned(), "not a CEL expression"),
        ("timestamp('2020-01-01T00:00:00Z') == input".to_owned(), "no function `timestamp`"),
        ("input.matches(input.pattern)".to_owned(), "the pattern of `matches` is not written out"),
        ("input.matches('a', 'b')".to_owned(), "the pattern of `matches` is not written out"),
        ("input.matches('(')".to_owned(), "not a regular expression"),
        ("input.matches('\\\\pL{999}')".to_owned(), "too large"),
        ("Message{field: 1} == input".to_owned(), "message types"),
        ("input.all(1, true)".to_owned(), "not a CEL expression"),
        ("input.all(x, true) && x".to_owned(), "unknown name `x`"),
        ("has(input)".to_owned(), "not a CEL expression"),
        (deep("(", ")"), "nested too deep"),
        (deep("[", "]"), "nested too deep"),
        (deep("{1: ", "}"), "nested too deep"),
        (deep("size(", ")"), "nested too deep"),
        (deep("input.all(x, ", ")"), "bytes"),
        ("(".repeat(EXPRESSION_BYTES_MAX), "nested too deep"),
        ("true ? ".repeat(100), "not a CEL expression"),
        (format!("{}true", "true ? true : ".repeat(60)), "nested too deep"),
        (long("+1"), "nested too deep"),
        (long("-1"), "nested too deep"),
        (format!("input{}", ".a".repeat(300)), "nested too deep"),
        (format!("input{}", "[0]".repeat(300)), "nested too deep"),
        (format!("{}true", "!".repeat(EXPRESSION_BYTES_MAX)), "bytes"),
    ] {
        let start = Instant::now();
        let error = read(&json!(null), &[&source]).expect_err(&source);

        assert!(start.elapsed() < PATIENCE, "{source}: {:?}", start.elapsed());
        assert!(error.problem.contains(part), "{source}: {error}");
        assert_eq!(error.path, "checks[0]");
    }
}

#[test]
fn loops_that_could_take_long_are_refused_when_they_are_read() {
    let input = json!({"list": (0..10_000).collect::<Vec<_>>(), "text": "ab".repeat(5_000)});
    let multiplied = |times: usize| {
        let list = (0..times)
            .fold("['a']".to_owned(), |list, _| format!("{list}.map(x, x + x + x + x + x + x)"));
        format!("{list}.size() == 1")
    };

    for source in [
        "input.list.all(x, input.list.all(y, x + y >= 0))",
        "input.list.map(x, input.list.map(y, x + y)).size() > 0",
        "input.list.all(x, input.list.exists(y, y == x))",
        "input.list.filter(x, x in input.list).size() > 0",
        "input.list.map(x, input.list).size() > 0",
        "input.list.exists(x, input.list[1.5] == x)",
        "input.list.all(x, input.text + 'a' != '')",
        "input.list.exists(x, x == input.text)",
        "[input.text, input.text].map(x, [x, x, x]).map(x, [x, x, x]).map(x, [x, x, x]).map(x, [x, x, x]).size() > 0",
        "input.text.matches('(a|b|ab){200}c')",
        "state.steps.all(x, state.steps.all(y, state.steps.all(z, x + y + z != '')))",
        "answer.all(a, answer.all(b, answer.all(c, answer.all(d, a + b + c + d > 0))))",
        &multiplied(12),
        "input.list.map(x, {'a': x, 'b': input.text}).size() > 0",
    ] {
        let start = Instant::now();
        let error = read(&input, &[source]).expect_err(source);

        assert!(start.elapsed() < PATIENCE, "{source}: {:?}", start.elapsed());
        assert!(error.problem.contains("units of work"), "{source}: {error}");
    }
}

#[test]
fn a_single_loop_over_ten_thousand_elements_is_answered_in_time() {
    let input = json!({"list": (0..10_000).collect::<Vec<_>>(), "text": "ab".repeat(5_000)});
    for (source, expected) in [
        ("input.list.all(x, x >= 0)", true),
        ("input.list.exists(x, x == 9999 / 2)", true),
        ("input.list.map(x, x)[9999] == 9999", true),
        ("input.list == input.list && 9999 in input.list", true),
        ("input.text.matches('^(ab)*$') && (input.text + input.text).size() == 20000", true),
        ("[1, 2, 3].all(x, [1, 2, 3].all(y, x * y < 9))", false),
    ] {
        let checks = read(&input, &[source]).expect(source);
        let start = Instant::now();

        let broken = checks.broken(Kind::Invariant, &Steps::default(), None);
        assert!(start.elapsed() < PATIENCE, "{source}: {:?}", start.elapsed());
        assert_eq!(broken.is_empty(), expected, "{source}: {broken:?}");
    }
}

#[test]
fn checks_too_expensive_for_the_values_are_broken_and_not_evaluated() {
    let source = "state.steps.all(x, state.steps.exists_one(y, x == y))";
    let checks = read(&json!(null), &[source, "size(state.steps) < 5"])
        .expect("expensive, but not for ordinary traces");

    let lines: Vec<String> = (0..2_000).map(|line| format!("step {line}")).collect();
    let lines: Vec<&str> = lines.iter().map(String::as_str).collect();

    assert_eq!(checks.broken(Kind::Invariant, &steps(&lines[..4]), None), []);

    let start = Instant::now();
    let broken = checks.broken(Kind::Invariant, &steps(&lines), None);
    assert!(start.elapsed() < PATIENCE, "{:?}", start.elapsed());

    assert!(
        broken[0].reason.as_deref().is_some_and(|reason| reason.starts_with("too expensive here")),
        "{broken:?}"
    );
    // The steps are many, so no value of them is told.
    let other = Finding { constraint: 1, reason: None, values: None };
    assert_eq!(broken[1], other, "the others are evaluated");
}

#[test]
fn checks_too_expensive_together_are_refused_naming_the_most_expensive() {
    let input = json!((0..3_000).collect::<Vec<_>>());
    let cheap = "input.all(x, x >= 0)";
    assert!(read(&input, &[cheap; 6]).is_ok());

    let mut all = vec![cheap; 30];
    all[7] = "input.all(x, x + x >= 0)";

    let error = read(&input, &all).expect_err("too expensive together");
    assert_eq!(error.path, "checks[7]");
}

/// The deepest trees that are admitted leave room on the stacks of the runtime's threads, which
/// have 2 MiB.
#[test]
fn the_deepest_expressions_fit_on_a_small_stack() {
    let sum = format!("1{} == 1", "+1".repeat(TREE_DEPTH_MAX - 2));
    let brackets =
        format!("{}1{} == 1", "[".repeat(TREE_DEPTH_MAX - 2), "]".repeat(TREE_DEPTH_MAX - 2));
    let select = format!("input{} == 1", ".a".repeat(TREE_DEPTH_MAX - 2));
    let loops = format!("{}true{}", "[1].all(x,".repeat(7), ")".repeat(7));

    for source in [sum, brackets, select, loops] {
        let checks =
            read(&json!(null), &[&source]).unwrap_or_else(|error| panic!("{source}: {error}"));

        let evaluation = std::thread::Builder::new()
            .stack_size(3 << 19)
            .spawn(move || checks.broken(Kind::Invariant, &Steps::default(), None).len());
        let broken = evaluation.expect("a thread").join().expect("no panic");
        assert!(broken <= 1, "{source}");
    }
}

#[test]
fn deep_values_fit_on_a_small_stack() {
    let mut input = json!(1);
    for level in 0..super::super::limits::JSON_DEPTH_MAX {
        input = if level % 2 == 0 { json!([input]) } else { json!({ "a": input }) };
    }

    let evaluation = std::thread::Builder::new().stack_size(1 << 20).spawn(move || {
        let checks =
            read(&input, &["[input] == [input]", "input == 1", "input < input"]).expect("valid");
        checks.broken(Kind::Invariant, &Steps::default(), None).len()
    });
    assert_eq!(evaluation.expect("a thread").join().expect("no panic"), 2);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Pieces of expressions in any order are refused or evaluated, in time and within the stack.
    #[test]
    fn random_expressions_never_abort_the_process(
        pieces in prop::collection::vec(0usize..40, 1..120)
    ) {
        const PIECES: [&str; 40] = [
            "input", "state", "answer", "input.list", "state.steps", "x", "y", "1", "-1",
            "9223372036854775807", "1u", "0.5", "1e308", "'a'", "b'\\377'", "null", "true", "(", ")",
            "[", "]", "{", "}", ".all(x,", ".map(y,", ".filter(x,", ".exists(x,", ".size()",
            ".matches('a+b')", " + ", " * ", " / ", " == ", " < ", " in ", " ? ", " : ", " && ", "!",
            ",",
        ];
        let source: String = pieces.iter().map(|piece| PIECES[*piece]).collect();

        let start = Instant::now();
        if let Ok(checks) = read(&json!({"list": [1, "a", [2.5], {"b": null}]}), &[&source]) {
            let kind = checks.kind_of(0).expect("a check");
            checks.broken(kind, &steps(&["a", "b"]), Some(&json!([[1], 2])));
        }

        prop_assert!(start.elapsed() < PATIENCE, "{}: {:?}", source, start.elapsed());
    }

    /// Trees of any form, which parse: what is admitted is evaluated in time.
    #[test]
    fn expressions_of_any_form_are_refused_or_answered_in_time(
        choices in prop::collection::vec(any::<u8>(), 1..60)
    ) {
        let mut choices = choices.into_iter();
        let source = expression(&mut choices, 0);
        let input = json!({"list": (0..500).collect::<Vec<_>>(), "text": "ab".repeat(500)});

        let start = Instant::now();
        if let Ok(checks) = read(&input, &[&source]) {
            let kind = checks.kind_of(0).expect("a check");
            checks.broken(kind, &steps(&["a", "b"]), Some(&json!([[1, 2], [3, 4]])));
        }

        prop_assert!(start.elapsed() < PATIENCE, "{}: {:?}", source, start.elapsed());
    }
}

/// The expression that these choices describe.
fn expression(choices: &mut impl Iterator<Item = u8>, depth: usize) -> String {
    const LEAVES: [&str; 8] =
        ["input.list", "input.text", "state.steps", "answer", "7", "'b'", "1.5", "input"];

    let choice = choices.next().unwrap_or(0);
    if depth > 8 || choice < 60 {
        return LEAVES[usize::from(choice) % LEAVES.len()].to_owned();
    }

    let mut below = || expression(choices, depth + 1);
    match choice % 14 {
        0 => format!("{}.all(v, {} == v)", below(), below()),
        1 => format!("{}.map(v, [v, {}])", below(), below()),
        2 => format!("{}.filter(v, v in {})", below(), below()),
        3 => format!("({} + {})", below(), below()),
        4 => format!("[{}, {}]", below(), below()),
        5 => format!("({} ? {} : {})", below(), below(), below()),
        6 => format!("{}.exists(v, {} || {} < v)", below(), below(), below()),
        7 => format!("string({}).matches('(a|b)+')", below()),
        8 => format!("string({}).split('a')", below()),
        9 => format!("sort({})", below()),
        10 => format!("{}.distinct()", below()),
        11 => format!("range(size({}))", below()),
        12 => format!("sum({})", below()),
        _ => format!("{{'k': {}}}.k", below()),
    }
}
