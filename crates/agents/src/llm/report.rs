//! The report of a verifying model (the paper's appendix, "Verifier Prompt Template"): grammar and
//! parser. Parsing is strict: a report that omits something, adds something or contradicts itself
//! is not a verdict.

use prime_protocol::Score;

/// A consistent report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Report {
    /// The failed constraints in order, by index, with the reasons.
    pub failed: Vec<(usize, String)>,
    /// V, from 0 to 1; 0 if nothing fails.
    pub score: Score,
}

/// The trimmed text after a prefix.
fn after<'a>(line: &'a str, prefix: &str) -> Result<&'a str, String> {
    line.strip_prefix(prefix)
        .map(str::trim)
        .ok_or_else(|| format!("the line {line:?} should begin with {prefix:?}"))
}

/// Parses `PASS - reason` or `FAIL - reason`; returns the reason of a FAIL.
fn finding(text: &str, constraint: usize) -> Result<Option<&str>, String> {
    let (word, reason) = text.split_once(" - ").unwrap_or((text, ""));
    let reason = reason.trim();
    if reason.is_empty() && matches!(word, "PASS" | "FAIL" | "PASS -" | "FAIL -") {
        return Err(format!("constraint {constraint} has no reason"));
    }
    match word {
        "PASS" => Ok(None),
        "FAIL" => Ok(Some(reason)),
        _ => Err(format!("constraint {constraint} is neither PASS nor FAIL")),
    }
}

/// Parses a decimal number from 0 to 1.
fn score(text: &str) -> Result<Score, String> {
    // `f64::from_str` would also accept a sign, an exponent, `inf` and `NaN`.
    let is_decimal = text.starts_with(|c: char| c.is_ascii_digit())
        && text.ends_with(|c: char| c.is_ascii_digit())
        && text.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');

    let value: Option<f64> = if is_decimal { text.parse().ok() } else { None };
    let value =
        value.ok_or_else(|| format!("the violation score {text:?} is not a decimal number"))?;
    Some(value)
        .filter(|value| *value <= 1.0)
        .and_then(Score::from_value)
        .ok_or_else(|| format!("the violation score {text} is above 1"))
}

/// Parses a report on the given number of constraints. Blank lines and surrounding whitespace are
/// ignored.
///
/// # Errors
/// What is missing, extra, misspelt, out of range or contradictory.
pub fn parse_report(text: &str, constraints: usize) -> Result<Report, String> {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let mut next = |what: &str| lines.next().ok_or_else(|| format!("it ends before {what}"));

    let mut failed = Vec::new();
    for index in 0..constraints {
        let number = index + 1;
        let line = next(&format!("constraint {number} of {constraints}"))?;
        if let Some(reason) = finding(after(line, &format!("Constraint {number}:"))?, number)? {
            failed.push((index, reason.to_owned()));
        }
    }

    let is_valid = match after(next("the line `Overall`")?, "Overall:")? {
        "VALID" => true,
        "INVALID" => false,
        other => return Err(format!("overall it is {other:?}, neither VALID nor INVALID")),
    };
    let score = score(after(next("the line `Violation Score`")?, "Violation Score:")?)?;

    if let Some(line) = lines.next() {
        return Err(format!("the line {line:?} comes after its end"));
    }

    // A model that contradicts itself has not understood the step, so neither half is believed.
    match (is_valid, failed.first(), score == Score::ZERO) {
        (true, Some((index, _)), _) => {
            Err(format!("it says VALID, but constraint {} fails", index + 1))
        }
        (true, None, false) => Err(format!("it says VALID, but the violation score is {score}")),
        (false, _, true) => Err("it says INVALID, but the violation score is 0".to_owned()),
        (false, None, false) if constraints > 0 => {
            Err("it says INVALID, but no constraint fails".to_owned())
        }
        (true, None, true) | (false, _, false) => Ok(Report { failed, score }),
    }
}

/// The grammar of consistent reports on the given number of constraints: after a FAIL only INVALID
/// with a score above 0 may follow. A reason is one line of at least one character.
pub fn report_grammar(constraints: usize) -> String {
    let mut rules = vec![
        if constraints == 0 { "root ::= clean | broken" } else { "root ::= clean1" }.to_owned(),
    ];

    for number in 1..=constraints {
        let (clean, broken) = if number == constraints {
            ("clean".to_owned(), "broken".to_owned())
        } else {
            (format!("clean{}", number + 1), format!("broken{}", number + 1))
        };

        let head = format!("\"Constraint {number}: \"");
        rules.push(format!(
            "clean{number} ::= {head} ( \"PASS\" reason {clean} | \"FAIL\" reason {broken} )"
        ));
        // Nothing can have failed before the first constraint.
        if number > 1 {
            rules
                .push(format!("broken{number} ::= {head} ( \"PASS\" | \"FAIL\" ) reason {broken}"));
        }
    }

    rules.push("clean ::= \"Overall: VALID\\nViolation Score: 0.0\"".to_owned());
    rules.push(
        "broken ::= \"Overall: INVALID\\nViolation Score: \" ( \"1.0\" | \"0.\" [0-9]? [1-9] )"
            .to_owned(),
    );

    if constraints > 0 {
        rules.push("reason ::= \" - \" [^ \\n] [^\\n]* \"\\n\"".to_owned());
    }

    rules.join("\n") + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLEAN: &str = "Constraint 1: PASS - kept\nConstraint 2: PASS - kept\n\
                         Overall: VALID\nViolation Score: 0.0";

    fn score(value: f64) -> Score {
        Score::from_value(value).expect("a score")
    }

    #[test]
    fn a_report_is_parsed_line_by_line() {
        assert_eq!(parse_report(CLEAN, 2), Ok(Report { failed: Vec::new(), score: Score::ZERO }));

        let spaced = CLEAN.replace('\n', "  \r\n\n  ");
        assert_eq!(parse_report(&spaced, 2), Ok(Report { failed: Vec::new(), score: Score::ZERO }));

        let broken = "Constraint 1: FAIL - übel - ja\nConstraint 2: PASS - ok\n\
                      Overall: INVALID\nViolation Score: 0.65\n";
        assert_eq!(
            parse_report(broken, 2),
            Ok(Report { failed: vec![(0, "übel - ja".to_owned())], score: score(0.65) })
        );

        let none = "Overall: INVALID\nViolation Score: 1";
        assert_eq!(parse_report(none, 0), Ok(Report { failed: Vec::new(), score: score(1.0) }));
    }

    #[test]
    fn invalid_reports_are_refused_with_the_reason() {
        let with = |from: &str, to: &str| CLEAN.replace(from, to);
        for (text, part) in [
            (String::new(), "ends before constraint 1 of 2"),
            ("🙂 \u{0} ñ".to_owned(), "should begin with \"Constraint 1:\""),
            (with("\nViolation Score: 0.0", ""), "ends before the line `Violation Score`"),
            (with("\nOverall: VALID\nViolation Score: 0.0", ""), "ends before the line `Overall`"),
            (with("Constraint 2: PASS - kept\n", ""), "should begin with \"Constraint 2:\""),
            (with("Constraint 2", "Constraint 1"), "should begin with \"Constraint 2:\""),
            (
                with(
                    "Constraint 2: PASS - kept",
                    "Constraint 2: PASS - kept\nConstraint 3: PASS - x",
                ),
                "begin with \"Overall:\"",
            ),
            (format!("Here it is:\n{CLEAN}"), "should begin with \"Constraint 1:\""),
            (format!("{CLEAN}\nThank you."), "comes after its end"),
            (with("PASS", "Pass"), "neither PASS nor FAIL"),
            (with("PASS - kept", "PASS"), "no reason"),
            (with("PASS - kept", "FAIL - "), "no reason"),
            (with("Overall", "overall"), "begin with \"Overall:\""),
            (with(": VALID", ": valid"), "neither VALID nor INVALID"),
            (with(": VALID", ": VALID."), "neither VALID nor INVALID"),
            (with("0.0", "1.01"), "above 1"),
            (with("0.0", "7"), "above 1"),
            (with("0.0", "-0.1"), "not a decimal number"),
            (with("0.0", "NaN"), "not a decimal number"),
            (with("0.0", "1e-3"), "not a decimal number"),
            (with("0.0", "0.0.1"), "not a decimal number"),
            (with("0.0", "0,5"), "not a decimal number"),
            (with("0.0", "50%"), "not a decimal number"),
            (with("0.0", "٠"), "not a decimal number"),
            (with("0.0", ""), "not a decimal number"),
            (with(": VALID", ": INVALID"), "INVALID, but the violation score is 0"),
            (with("0.0", "0.2"), "VALID, but the violation score is 0.2"),
            (with("1: PASS", "1: FAIL"), "VALID, but constraint 1 fails"),
            (
                with(": VALID", ": INVALID").replace("0.0", "0.5"),
                "INVALID, but no constraint fails",
            ),
        ] {
            let error = parse_report(&text, 2).expect_err(&text);
            assert!(error.contains(part), "{part:?} is missing in {error:?} of {text:?}");
        }
    }

    #[test]
    fn the_grammar_names_every_constraint_once_and_allows_no_contradiction() {
        let two = "root ::= clean1\n\
             clean1 ::= \"Constraint 1: \" ( \"PASS\" reason clean2 | \"FAIL\" reason broken2 )\n\
             clean2 ::= \"Constraint 2: \" ( \"PASS\" reason clean | \"FAIL\" reason broken )\n\
             broken2 ::= \"Constraint 2: \" ( \"PASS\" | \"FAIL\" ) reason broken\n\
             clean ::= \"Overall: VALID\\nViolation Score: 0.0\"\n\
             broken ::= \"Overall: INVALID\\nViolation Score: \" ( \"1.0\" | \"0.\" [0-9]? [1-9] )\n\
             reason ::= \" - \" [^ \\n] [^\\n]* \"\\n\"\n";
        assert_eq!(report_grammar(2), two);
        assert!(report_grammar(0).starts_with("root ::= clean | broken\n"));
    }
}
