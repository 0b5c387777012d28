//! Turns the task pages (`src/tasks/*/tasks.toml`) into constants: identity, sizes, constraints and
//! texts of a task are written once, and a misspelt constraint is a compile error.

use std::error::Error;
use std::fmt::Write as _;
use std::path::PathBuf;
use std::{env, fs};

use toml::{Table, Value};

const LEVELS: [&str; 3] = ["easy", "medium", "hard"];

#[expect(
    clippy::disallowed_methods,
    reason = "cargo hands a build script its folders in the environment"
)]
fn main() -> Result<(), Box<dyn Error>> {
    let tasks = PathBuf::from(env::var("CARGO_MANIFEST_DIR")?).join("src/tasks");
    println!("cargo::rerun-if-changed={}", tasks.display());

    let mut pages: Vec<PathBuf> = fs::read_dir(&tasks)?
        .filter_map(|entry| Some(entry.ok()?.path().join("tasks.toml")))
        .filter(|path| path.is_file())
        .collect();
    // The order of a directory differs between file systems; that of the constants must not.
    pages.sort();

    let mut code = String::new();
    let mut slugs = Vec::new();
    for path in pages {
        let page: Table = fs::read_to_string(&path)?.parse()?;
        for list in ["task", "variant"] {
            for task in page.get(list).and_then(Value::as_array).into_iter().flatten() {
                module(task, &mut code).map_err(|error| format!("{}: {error}", path.display()))?;
                slugs.push(text(task, "slug")?.to_owned());
            }
        }
    }

    let out = PathBuf::from(env::var("OUT_DIR")?);
    fs::write(out.join("pages.rs"), code)?;
    fs::write(out.join("suite.rs"), suite(&slugs))?;
    Ok(())
}

/// The macro that declares the tests of all tasks, for `src/tasks/suite.rs`.
fn suite(slugs: &[String]) -> String {
    let mut modules = String::new();
    for slug in slugs {
        modules += &format!(
            "mod {} {{ $crate::tasks::suite::tests! {{ {slug:?} $($function)+ }} }}\n",
            module_name(slug)
        );
    }
    format!(
        "macro_rules! suite {{\n($($function:ident),+ $(,)?) => {{\n{modules}}};\n}}\nconst SLUGS: &[&str] = &{slugs:?};\n"
    )
}

fn field<'a>(table: &'a Value, key: &str) -> Result<&'a Value, String> {
    table
        .get(key)
        .ok_or_else(|| format!("`{key}` is missing in {}", table.get("slug").unwrap_or(table)))
}

fn text<'a>(table: &'a Value, key: &str) -> Result<&'a str, String> {
    field(table, key)?.as_str().ok_or_else(|| format!("`{key}` is not a text"))
}

fn number(table: &Value, key: &str) -> Result<i64, String> {
    field(table, key)?.as_integer().ok_or_else(|| format!("`{key}` is not an integer"))
}

fn list<'a>(table: &'a Value, key: &str) -> Result<&'a [Value], String> {
    Ok(field(table, key)?.as_array().ok_or_else(|| format!("`{key}` is not a list"))?)
}

/// `next-step` as `NEXT_STEP`, and `24-game` as `task_24_game`.
fn constant(name: &str) -> String {
    name.replace('-', "_").to_uppercase()
}

fn module_name(slug: &str) -> String {
    let name = slug.replace('-', "_");
    if name.starts_with(|c: char| c.is_ascii_digit()) { format!("task_{name}") } else { name }
}

/// `comparison-sorting` as `ComparisonSorting`.
fn camel(name: &str) -> String {
    let capital = |word: &str| word[..1].to_uppercase() + &word[1..];
    name.split('-').map(capital).collect()
}

fn texts(values: &[Value]) -> String {
    format!("&{:?}", values.iter().filter_map(Value::as_str).collect::<Vec<_>>())
}

fn meanings(task: &Value, key: &str) -> Result<String, String> {
    let table = field(task, key)?.as_table().ok_or_else(|| format!("`{key}` is not a table"))?;
    let pairs: Vec<_> =
        table.iter().map(|(name, meaning)| (name, meaning.as_str().unwrap_or_default())).collect();
    Ok(format!("&{pairs:?}"))
}

/// One size parameter at one level, as a value of `Size` and in words.
fn size(name: &str, value: &Value) -> Result<(String, String), String> {
    if let Some(of) = value.get("of").and_then(Value::as_array) {
        let numbers: Vec<_> = of.iter().filter_map(Value::as_integer).collect();
        let words = numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(" or ");
        return Ok((format!("Size::Of(&{numbers:?})"), format!("{name} = {words}")));
    }
    let (min, max) = (number(value, "min")?, number(value, "max")?);
    let words =
        if min == max { format!("{name} = {min}") } else { format!("{name} = {min} to {max}") };
    Ok((format!("Size::Between({min}, {max})"), words))
}

fn module(task: &Value, code: &mut String) -> Result<(), Box<dyn Error>> {
    let slug = text(task, "slug")?;
    let levels = field(task, "difficulty")?;
    let parameters = field(levels, LEVELS[0])?.as_table().ok_or("`easy` is not a table")?;
    let mut words = [const { Vec::new() }; 3];

    // One constant per size parameter, and the same sizes in words, level by level.
    let mut sizes = String::new();
    for name in parameters.keys() {
        let mut values = Vec::new();
        for (level, words) in LEVELS.iter().zip(&mut words) {
            let (value, word) = size(name, field(field(levels, level)?, name)?)?;
            values.push(value);
            words.push(word);
        }
        writeln!(sizes, "pub const {}: Sizes = Sizes([{}]);", constant(name), values.join(", "))?;
    }
    let words: Vec<_> = words.iter().map(|words| words.join(", ")).collect();

    writeln!(
        code,
        "#[allow(dead_code, reason = \"a task uses the names that it checks\")]\npub mod {} {{",
        module_name(slug)
    )?;
    writeln!(code, "use super::*;\npub mod size {{ use super::*;\n{sizes}}}")?;

    let mut constraints = String::new();
    for (index, constraint) in list(task, "constraints")?.iter().enumerate() {
        let (name, meaning) = (text(constraint, "name")?, text(constraint, "meaning")?);
        writeln!(
            code,
            "/// {}\npub const {}: usize = {index};",
            markdown(meaning),
            constant(name)
        )?;

        let (kind, severity) =
            (camel(text(constraint, "kind")?), camel(text(constraint, "severity")?));
        write!(
            constraints,
            "Constraint {{ name: {name:?}, kind: Kind::{kind}, severity: Severity::{severity}, meaning: {meaning:?} }}, "
        )?;
    }

    let mut actions = String::new();
    for action in list(task, "actions")? {
        let (line, effect, example) =
            (text(action, "line")?, text(action, "effect")?, text(action, "example")?);
        let regex = action.get("regex").and_then(Value::as_str);
        write!(
            actions,
            "ActionPage {{ line: {line:?}, effect: {effect:?}, example: {example:?}, regex: {regex:?} }}, "
        )?;
    }

    // If the page does not say, the kinds that do not run the algorithm are sound.
    let sound = match task.get("sound").map(Value::as_str) {
        None => "WITHOUT_TRANSITION",
        Some(Some("every transition")) => "ALL",
        Some(_) => return Err(format!("`sound` of {slug} is not \"every transition\"").into()),
    };

    let example = field(task, "example")?;
    let paper = field(task, "paper")?;
    writeln!(
        code,
        "pub const SPEC: Spec = Spec {{ id: {}, slug: {slug:?}, title: {:?}, category: Category::{}, sizes: [{}], \
         actions: &[], constraints: &[{constraints}], sound: Kinds::{sound}, decisive: &[], hidden: &[], \
         paper: PaperFigures {{ steps: {}, baseline: {}, prime: {} }}, page: &PAGE }};",
        number(task, "id")?,
        text(task, "title")?,
        camel(text(task, "category")?),
        words.iter().map(|words| format!("{words:?}")).collect::<Vec<_>>().join(", "),
        number(paper, "steps")?,
        decimal(paper, "baseline")?,
        decimal(paper, "prime")?,
    )?;

    writeln!(
        code,
        "static PAGE: Page = Page {{ generate: {:?}, problem: {:?}, algorithm: {:?}, step: {:?}, note: {:?}, actions: &[{actions}], \
         input: {}, answer: {}, state: {}, example: Example {{ input: {:?}, answer: {:?}, steps: {}, first: {}, last: {} }} }};\n}}",
        text(task, "generate")?,
        text(task, "problem")?,
        text(task, "algorithm")?,
        text(task, "step")?,
        task.get("note").and_then(Value::as_str).unwrap_or_default(),
        meanings(task, "input")?,
        meanings(task, "answer")?,
        meanings(task, "state")?,
        text(example, "input")?,
        text(example, "answer")?,
        number(example, "steps")?,
        texts(list(example, "first")?),
        texts(list(example, "last")?),
    )?;
    Ok(())
}

/// The text as Markdown: outside of backticks, brackets are not links.
fn markdown(text: &str) -> String {
    let mut out = String::new();
    let mut code = false;
    for c in text.chars() {
        code ^= c == '`';
        if !code && matches!(c, '[' | ']' | '<' | '>' | '*' | '_') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

fn decimal(table: &Value, key: &str) -> Result<String, String> {
    let value = field(table, key)?;

    value
        .as_float()
        .map(|value| format!("{value:?}"))
        .ok_or_else(|| format!("`{key}` is not a decimal number"))
}
