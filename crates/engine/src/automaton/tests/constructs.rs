//! The texts that each construct of GBNF accepts.

use super::*;

/// A grammar with texts that it accepts, and some that it does not.
type Case = (&'static str, &'static [&'static str], &'static [&'static str]);

fn check(cases: &[Case]) {
    for (grammar, taken, others) in cases {
        let mut automaton = automaton(grammar);
        for text in *taken {
            assert!(takes(&mut automaton, text), "{grammar:?} takes {text:?}");
        }
        for text in *others {
            assert!(!takes(&mut automaton, text), "{grammar:?} does not take {text:?}");
        }
    }
}

#[test]
fn literals_alternatives_groups_and_repetitions() {
    check(&[
        (r#"root ::= "ab""#, &["ab"], &["", "a", "abc", "b"]),
        (r#"root ::= """#, &[""], &["a", "\"\""]),
        (r#"root ::= "a" "b" | "c" |"d""#, &["ab", "c", "d"], &["a", "abc", "cd"]),
        (r#"root ::= "a" | "#, &["a", ""], &["b"]),
        (r#"root ::= ("a" | "b") "c""#, &["ac", "bc"], &["a", "c", "abc"]),
        (r#"root ::= "ab"*"#, &["", "ab", "abab"], &["a", "aba", "abb"]),
        (r#"root ::= "a"+ "b""#, &["ab", "aaab"], &["b", "a"]),
        (r#"root ::= "a"? "b""#, &["ab", "b"], &["aab"]),
        (r#"root ::= "a"{3}"#, &["aaa"], &["aa", "aaaa"]),
        (r#"root ::= "a"{2,}"#, &["aa", "aaaaa"], &["", "a"]),
        (r#"root ::= "a"{ 1 , 3 }"#, &["a", "aa", "aaa"], &["", "aaaa"]),
        (r#"root ::= "a"{0,2} "a""#, &["a", "aa", "aaa"], &["", "aaaa"]),
        (r#"root ::= "b" "a"{0}"#, &["b"], &["ba"]),
        (r#"root ::= ("a" "b"?){2}"#, &["aa", "aba", "abab", "aab"], &["a", "abb"]),
        (r#"root ::= ("a"* "b"?)* "c""#, &["c", "aabbac", "bc"], &["", "a"]),
        (r#"root ::= "a"+? "b""#, &["b", "aab"], &["a"]),
        (r#"root ::= "a"{2}{2}"#, &["aaaa"], &["aa", "aaa", "aaaaaa"]),
    ]);
}

#[test]
fn escapes_in_literals_and_classes() {
    check(&[
        (r#"root ::= "\n\t\r\\\"\[\]\-""#, &["\n\t\r\\\"[]-"], &["n"]),
        (r#"root ::= "\x41\u00e9\U0001F600""#, &["Aé😀"], &["A", "\u{e9}"]),
        (r"root ::= [\]\[\\\-\n]+", &["]", "[", "\\", "-", "\n"], &["n", "a"]),
        (r"root ::= [\x41-\x43]", &["A", "B", "C"], &["D", "x", "4"]),
        ("root ::= \"#|()\" # a comment \"b\"", &["#|()"], &["#|()b"]),
        ("root ::= \"a\nb\"", &["a\nb"], &["ab"]),
    ]);
}

#[test]
fn classes() {
    check(&[
        ("root ::= [a-cx]", &["a", "b", "c", "x"], &["d", "-", "ab", ""]),
        ("root ::= [-a]", &["-", "a"], &["b"]),
        ("root ::= [a-]", &["-", "a"], &["b"]),
        ("root ::= [+--]", &["+", ",", "-"], &[".", "*"]),
        ("root ::= [a-c-e]", &["a", "c", "-", "e"], &["d"]),
        ("root ::= [a^]", &["a", "^"], &["b"]),
        (r#"root ::= ["(]"#, &["\"", "("], &[")"]),
        ("root ::= [^a-c\\n]", &["d", "é", "😀", "\t", " "], &["a", "c", "\n", "", "dd", "\0"]),
        ("root ::= .", &["a", "\n", "é", "\u{FFFF}", "\u{10FFFF}"], &["", "ab", "\0"]),
    ]);
}

#[test]
fn multibyte_characters() {
    check(&[
        ("root ::= [é-ü]", &["é", "ö", "ü"], &["è", "ý", "e", "Ã"]),
        ("root ::= [äöü]+", &["ä", "öü"], &["ë"]),
        ("root ::= [a-\u{10FFFF}]", &["a", "z", "é", "日", "😀"], &["A", "ab"]),
        ("root ::= [^é]", &["e", "ê", "日", "Ã"], &["é"]),
        ("root ::= [\u{7FF}-\u{800}]", &["\u{7FF}", "\u{800}"], &["\u{7FE}", "\u{801}"]),
        ("root ::= [\u{FFFF}-\u{10000}]", &["\u{FFFF}", "\u{10000}"], &["\u{FFFE}", "\u{10001}"]),
        (r"root ::= [\uD000-\uF000]", &["\u{D7FF}", "\u{E000}"], &["\u{F001}", "\u{CFFF}"]),
    ]);

    // Only UTF-8: no lone continuation, no overlong form, no surrogate, nothing above U+10FFFF.
    let mut any = automaton("root ::= .*");
    let wrong: [&[u8]; 6] = [b"\x80", b"\xC0", b"\xE0\x80", b"\xED\xA0", b"\xF4\x90", b"\xC3a"];
    for bytes in wrong {
        assert_eq!(after(&mut any, bytes), None, "{bytes:?}");
    }

    let begun = after(&mut any, b"a\xC3").expect("a character may come in parts");
    assert!(!any.is_end(&begun));
    assert_eq!(any.permitted(&begun).iter().collect::<Vec<_>>(), (0x80..=0xBF).collect::<Vec<_>>());
}

#[test]
fn rules_and_lines() {
    check(&[
        ("root ::= a b-2\na ::= \"x\"\nb-2 ::= \"y\" a", &["xyx"], &["xy"]),
        ("\n\n# before\nroot ::=\n  \"a\" | # or\n\n  \"b\"\n\n", &["a", "b"], &["ab"]),
        ("root ::= (\n \"a\" # one\n \"b\"\n | \"c\"\n)\r\n", &["ab", "c"], &["a"]),
        ("root ::= x\rx ::= \"a\"\r\n", &["a"], &[""]),
        ("root\t::=\tx\nx::=\"a\"", &["a"], &[""]),
        // The last definition wins.
        ("root ::= x\nx ::= \"a\"\nx ::= \"b\"", &["b"], &["a"]),
        ("root ::= x x\nx ::= \"a\"?", &["", "a", "aa"], &["aaa"]),
    ]);
}

#[test]
fn recursion() {
    check(&[
        (
            "root ::= pair*\npair ::= \"(\" pair* \")\" | \"[\" pair* \"]\"",
            &["", "()", "([])[]", "((((()))))"],
            &["(", ")", "(]", "([)]", "())"],
        ),
        ("root ::= \"a\" root \"b\" | \"\"", &["", "ab", "aaabbb"], &["a", "aab", "abb", "ba"]),
        ("root ::= \"a\" root | \"b\"", &["b", "aaaaab"], &["a", "bb"]),
        ("root ::= x \"c\" | \"d\"\nx ::= \"a\" root", &["d", "adc", "aadcc"], &["ad", "dc"]),
    ]);

    let json = r#"root ::= value
value ::= object | array | string | number | "true" | "false" | "null"
object ::= "{" ws (pair ("," ws pair)*)? "}" ws
pair ::= string ":" ws value
array ::= "[" ws (value ("," ws value)*)? "]" ws
string ::= "\"" ([^"\\\x01-\x1F] | "\\" (["\\/bfnrt] | "u" [0-9a-fA-F]{4}))* "\"" ws
number ::= "-"? ("0" | [1-9] [0-9]*) ("." [0-9]+)? ([eE] [-+]? [0-9]+)? ws
ws ::= [ \t\n]*
"#;
    check(&[(
        json,
        &[
            "{}",
            "[1, -0.5e+3,\n\"\\u00e9 \u{e9}\"]",
            "{\"a\": {\"b\": [[], {}, null]}, \"c\": true} ",
            "0",
        ],
        &["{", "[1,]", "01", "{\"a\":}", "{a: 1}", "\"\n\"", "\"\\x\"", "[[]", "tru"],
    )]);
}

#[test]
fn too_deep_recursion_is_not_permitted() {
    let limits = Limits { depth: 3, ..Limits::default() };
    let mut automaton =
        Automaton::with_limits("root ::= \"(\" root \")\" | \"x\"", &bytes(), limits)
            .expect("a grammar");

    let deepest = after(&mut automaton, b"(((").expect("three are permitted");
    assert_eq!(automaton.permitted(&deepest).few(), Some(&[u32::from(b'x')][..]));
    assert!(takes(&mut automaton, "(((x)))") && !takes(&mut automaton, "((((x))))"));

    // Tail recursion adds no depth.
    let mut tail =
        Automaton::with_limits("root ::= \"a\" root | \"b\"", &bytes(), limits).expect("a grammar");
    assert!(takes(&mut tail, &format!("{}b", "a".repeat(5000))));
}

#[test]
fn excessive_ambiguity_is_not_permitted() {
    // After n times `a`, the grammar may be in 2^n positions.
    let grammar = "root ::= \"a\" root \"b\" | \"a\" root \"c\" | \"d\"";
    let limits = Limits { positions: 1000, ..Limits::default() };
    let mut automaton = Automaton::with_limits(grammar, &bytes(), limits).expect("a grammar");

    assert!(takes(&mut automaton, "aaaaadbcbcb"));
    let many = vec![b'a'; 20];
    assert_eq!(after(&mut automaton, &many), None);
}

#[test]
fn forced_bytes_run_to_the_next_choice_or_end() {
    let forced = |grammar: &str, text: &[u8]| {
        let mut automaton = automaton(grammar);
        let state = after(&mut automaton, text).expect("a beginning");
        let (bytes, end) = automaton.forced(&state);

        let walked =
            bytes.iter().try_fold(state.clone(), |at, byte| automaton.after(&at, u32::from(*byte)));

        assert_eq!(walked.as_ref(), Some(&end), "{grammar}");
        assert_eq!(
            automaton.forced(&state),
            (Arc::clone(&bytes), end),
            "the second time as the first"
        );
        String::from_utf8_lossy(&bytes).into_owned()
    };

    for (grammar, text, expected) in [
        (r#"root ::= "Proceed" | "Retry" | "Backtrack""#, "", ""),
        (r#"root ::= "Proceed" | "Retry" | "Backtrack""#, "B", "acktrack"),
        (r#"root ::= "cmp " [0-9] " to " [0-9]"#, "", "cmp "),
        (r#"root ::= "cmp " [0-9] " to " [0-9]"#, "cmp 4", " to "),
        (r#"root ::= "ab" "c"?"#, "", "ab"),
        (r#"root ::= "ab" "c"?"#, "ab", ""),
        (r#"root ::= "abx" | "aby""#, "", "ab"),
        (
            r#"root ::= x "é" x
x ::= "a""#,
            "",
            "aéa",
        ),
        ("root ::= [a]{3}", "", "aaa"),
    ] {
        assert_eq!(forced(grammar, text.as_bytes()), expected, "{grammar:?} after {text:?}");
    }

    assert_eq!(forced("root ::= \"a\" root", b"").len(), 1024, "an endless run has a bound");

    let mut both = automaton("root ::= [éè]");
    assert_eq!(&*both.forced(&both.start()).0, b"\xC3", "it may end inside a character");
}
