//! Refused grammars and their errors.

use super::*;

fn error(grammar: &str) -> GrammarError {
    match Automaton::new(grammar, &bytes()) {
        Ok(_) => panic!("{grammar:?} is taken"),
        Err(error) => error,
    }
}

#[test]
fn syntax_errors_have_a_line() {
    for (grammar, line, found) in [
        ("root = \"a\"", 1, "`= \"a\"`"),
        ("root ::= \"a\"\n::= x", 2, "`::= x`"),
        ("root ::= \"a\n\n", 3, "the end"),
        ("root ::= \"a\"\nb ::= [a", 2, "the end"),
        ("root ::= [a-", 1, "the end"),
        ("root ::= (\"a\"\n\n| \"b\"", 3, "the end"),
        ("root ::= \"a\")", 1, "`)`"),
        ("root ::= *", 1, "the end"),
        ("root ::= \"a\" | + \"b\"", 1, "` \"b\"`"),
        ("root ::= \"\\q\"", 1, "`\\q\"`"),
        ("root ::= \"\\x4\"", 1, "`\\x4\"`"),
        ("root ::= \"\\u+123\"", 1, "`\\u+123\"`"),
        ("root ::= \"a\"{}", 1, "`}`"),
        ("root ::= \"a\"{,2}", 1, "`,2}`"),
        ("root ::= \"a\"{1;2}", 1, "`;2}`"),
        ("root ::= \"a\"{1,2", 1, "the end"),
        // A continued line starts no rule.
        ("root ::= \"a\"\n  | \"b\"", 2, "`| \"b\"`"),
        ("root ::= \"a\"\n\"b\"", 2, "`\"b\"`"),
        ("root ::= a_b", 1, "`_b`"),
        ("root ::= (\"a\" b ::= \"c\")", 1, "`::= \"c\")`"),
    ] {
        match error(grammar) {
            GrammarError::Syntax { line: at, found: what, .. } => {
                assert_eq!((at, what.as_str()), (line, found), "{grammar:?}");
            }
            other => panic!("{grammar:?}: {other}"),
        }
    }

    let said = error("root ::= \"a\"\n  | \"b\"").to_string();
    assert_eq!(said, "line 2: expected the name of a rule (letters, digits, `-`), found `| \"b\"`");
}

#[test]
fn constructs_that_match_no_text_are_refused() {
    for (grammar, expected) in [
        ("root ::= <think>", GrammarError::Token { line: 1 }),
        ("root ::= !<[7]>", GrammarError::Token { line: 1 }),
        (r#"root ::= "\x00""#, GrammarError::NoCharacter { line: 1, code: 0 }),
        (r#"root ::= "\uD800""#, GrammarError::NoCharacter { line: 1, code: 0xD800 }),
        (r#"root ::= "\U00110000""#, GrammarError::NoCharacter { line: 1, code: 0x0011_0000 }),
        ("root ::= []", GrammarError::EmptyClass { line: 1, class: "`[]`".to_owned() }),
        ("root ::= [^]", GrammarError::EmptyClass { line: 1, class: "`[^]`".to_owned() }),
        (
            r"root ::= [\uD800-\uDFFF]",
            GrammarError::EmptyClass { line: 1, class: r"`[\uD800-\uDFFF]`".to_owned() },
        ),
        (
            "root ::= \"\"\nx ::= [az-b]",
            GrammarError::EmptyClass { line: 2, class: "`z-b`".to_owned() },
        ),
        ("root ::= \"a\"{3,2}", GrammarError::Reversed { line: 1, min: 3, max: 2 }),
    ] {
        assert_eq!(error(grammar), expected, "{grammar:?}");
    }
}

#[test]
fn undefined_rules_are_refused() {
    let undefined = |line, rule: &str| GrammarError::Undefined { line, rule: rule.to_owned() };
    assert_eq!(error(""), GrammarError::NoRoot);
    assert_eq!(error("# nothing\n"), GrammarError::NoRoot);
    assert_eq!(error("action ::= \"a\""), GrammarError::NoRoot);
    assert_eq!(error("x ::= root"), undefined(1, "root"));
    assert_eq!(error("root ::= \"a\"\nb ::= c\nd ::= c"), undefined(2, "c"));
}

#[test]
fn left_recursion_is_refused() {
    for (grammar, line, rule) in [
        ("root ::= root \"a\" | \"b\"", 1, "root"),
        ("root ::= \"a\" x\nx ::= x", 2, "x"),
        ("root ::= x\nx ::= \"a\" | y \"b\"\ny ::= x \"c\"", 2, "x"),
        // After something that can be empty: a repetition, a rule, a rule of rules.
        ("root ::= \"a\"* root", 1, "root"),
        ("root ::= e root \"b\" | \"c\"\ne ::= \"a\"?", 1, "root"),
        ("root ::= e root | \"c\"\ne ::= f f\nf ::= \"\" | \"a\"", 1, "root"),
        ("root ::= (\"a\" | (root))", 1, "root"),
        // Also in a rule that is not used.
        ("root ::= \"a\"\nunused ::= unused", 2, "unused"),
    ] {
        assert_eq!(
            error(grammar),
            GrammarError::LeftRecursion { line, rule: rule.to_owned() },
            "{grammar:?}"
        );
    }

    for grammar in
        ["root ::= e \"a\" root | \"b\"\ne ::= \"\"", "root ::= x x\nx ::= y y\ny ::= \"a\"?"]
    {
        automaton(grammar);
    }
}

#[test]
fn excessive_repetition_and_nesting_are_refused() {
    let many =
        |count: &str| GrammarError::Repetitions { line: 1, count: count.to_owned(), max: 2000 };

    automaton("root ::= [^\\n]{1,2000}");
    assert_eq!(error("root ::= \"a\"{2001}"), many("2001"));
    assert_eq!(error("root ::= \"a\"{1,99999999999999999999}"), many("99999999999999999999"));

    let nested = "root ::= ((\"a\"{2000}){2000})";
    assert_eq!(error(nested), GrammarError::TooLarge { line: 1, rule: "root".to_owned() });

    let deep = |open: usize| format!("root ::= {}\"a\"{}", "(".repeat(open), ")".repeat(open));
    automaton(&deep(120));

    let too_deep = GrammarError::Nesting { line: 1, max: 128 };
    assert_eq!(error(&deep(200)), too_deep);
    assert_eq!(error(&deep(100_000)), too_deep);
    assert_eq!(error(&format!("root ::= \"a\"{}", "*".repeat(100_000))), too_deep);
}

#[test]
fn long_chains_of_rules_do_not_overflow_the_stack() {
    const LENGTH: usize = 10_000;
    let rules: Vec<String> =
        (0..LENGTH).map(|place| format!("r{place} ::= r{} | \"x\" r{place}", place + 1)).collect();
    let grammar = format!("root ::= r0\n{}\nr{LENGTH} ::= \"a\"\n", rules.join("\n"));

    let mut chain = automaton(&grammar);
    assert!(takes(&mut chain, "a") && takes(&mut chain, "xxa") && !takes(&mut chain, "x"));
}
