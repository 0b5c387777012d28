//! A strict parser of the part of the OpenMetrics text format that this crate uses.

use std::collections::BTreeMap;

/// The labels of a sample, in their order.
pub type Labels = Vec<(String, String)>;

#[derive(Debug, Default)]
pub struct Family {
    pub kind: String,
    pub help: String,
    pub unit: Option<String>,
    /// Name, labels in their order, value.
    pub samples: Vec<(String, Labels, f64)>,
}

fn is_name(text: &str) -> bool {
    let first = |c: char| c.is_ascii_alphabetic() || c == '_';
    text.starts_with(first) && text.chars().all(|c| first(c) || c.is_ascii_digit())
}

/// Parses `{name="value",…}`; returns the rest.
fn labels(text: &str) -> (Labels, &str) {
    let Some(mut rest) = text.strip_prefix('{') else { return (Vec::new(), text) };
    let mut labels: Labels = Vec::new();
    loop {
        let (name, after) = rest.split_once("=\"").expect("a label");
        assert!(
            is_name(name) && labels.iter().all(|(other, _)| other != name),
            "label {name:?} in {text:?}"
        );

        let mut value = String::new();
        let mut chars = after.char_indices();
        let end = loop {
            match chars.next().expect("a closing quote") {
                (at, '"') => break at,
                (_, '\\') => value.push(match chars.next().expect("an escaped character").1 {
                    'n' => '\n',
                    c @ ('\\' | '"') => c,
                    c => panic!("\\{c} is not an escape, in {text:?}"),
                }),
                (_, c) => value.push(c),
            }
        };

        labels.push((name.to_owned(), value));
        rest = &after[end + 1..];
        match rest.strip_prefix(',') {
            Some(more) => rest = more,
            None => return (labels, rest.strip_prefix('}').expect("a closing brace")),
        }
    }
}

/// The suffixes of the samples of a type.
fn suffixes(kind: &str) -> &'static [&'static str] {
    match kind {
        "counter" => &["_total"],
        "gauge" => &[""],
        "histogram" => &["_bucket", "_sum", "_count"],
        "info" => &["_info"],
        kind => panic!("type {kind:?}"),
    }
}

/// The families of a text, by name. Panics where the text violates a rule.
pub fn read(text: &str) -> BTreeMap<String, Family> {
    let body = text.strip_suffix("# EOF\n").expect("the text ends with # EOF and a newline");
    let mut families: BTreeMap<String, Family> = BTreeMap::new();
    let mut current = String::new();
    for line in body.lines() {
        assert!(!line.trim().is_empty() && line.trim_end() == line, "line {line:?}");
        if let Some(comment) = line.strip_prefix("# ") {
            let (what, rest) = comment.split_once(' ').expect("a word");
            let (name, value) = rest.split_once(' ').expect("a name and a value");
            assert!(is_name(name), "name {name:?}");
            if what == "HELP" {
                assert!(
                    families.insert(name.to_owned(), Family::default()).is_none(),
                    "{name} twice"
                );
                name.clone_into(&mut current);
            }

            assert_eq!(name, current, "the lines of a family stand together");

            let family = families.get_mut(name).expect("HELP comes first");
            assert!(family.samples.is_empty(), "what describes {name} comes before its samples");

            match what {
                "HELP" => value.clone_into(&mut family.help),
                "TYPE" => value.clone_into(&mut family.kind),
                "UNIT" => family.unit = Some(value.to_owned()),
                what => panic!("# {what}"),
            }
            continue;
        }

        let family = families.get_mut(&current).expect("a description comes first");

        let end = line.find(['{', ' ']).expect("a value");
        let (name, rest) = line.split_at(end);
        let suffix = name.strip_prefix(&current).expect("a sample of the family above it");
        assert!(suffixes(&family.kind).contains(&suffix), "{name} in a {}", family.kind);
        let (labels, value) = labels(rest);
        let value: f64 = value.strip_prefix(' ').expect("one blank").parse().expect("a number");

        assert!(
            family.samples.iter().all(|(other, with, _)| (other.as_str(), with) != (name, &labels)),
            "{line:?} twice"
        );
        family.samples.push((name.to_owned(), labels, value));
    }
    families
}
