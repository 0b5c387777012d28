//! The environment in which `transformers` renders templates, and what differs between Jinja2 and
//! minijinja.

use std::sync::Arc;

use jiff::civil::Date;
use jiff::fmt::strtime;
use minijinja::value::{Kwargs, Value, ValueKind};
use minijinja::{Environment, Error, ErrorKind, State, UndefinedBehavior};
use minijinja_contrib::pycompat::unknown_method_callback;

use crate::python::{self, Json};

/// Steps of rendering, about as many as loop bodies and expressions. The longest known templates
/// take some thousands for a few messages.
const FUEL: u64 = 20_000_000;
/// Deepest recursion of macros.
const RECURSION_MAX: usize = 64;

/// How the message of a template's own refusal begins; what follows is the template's text.
pub(crate) const RAISED: &str = "the template refuses the messages: ";

/// An environment with Jinja2's behaviour, in which today is `date`.
pub(crate) fn environment(date: Date) -> Environment<'static> {
    let mut environment = Environment::new();
    // As in `transformers`: no escaping, and blocks leave no blank lines.
    environment.set_auto_escape_callback(|_| minijinja::AutoEscape::None);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.set_undefined_behavior(UndefinedBehavior::Lenient);
    environment.set_fuel(Some(FUEL));
    environment.set_recursion_limit(RECURSION_MAX);

    environment.set_unknown_method_callback(unknown_method_callback);
    environment
        .set_formatter(|out, _, value| out.write_str(&python::str(value)).map_err(Error::from));

    environment.add_function("raise_exception", |text: String| -> Result<Value, Error> {
        Err(Error::new(ErrorKind::InvalidOperation, format!("{RAISED}{text}")))
    });
    environment.add_function("strftime_now", move |format: String| {
        strtime::format(&format, date.at(0, 0, 0, 0)).map_err(|reason| {
            Error::new(ErrorKind::InvalidOperation, format!("strftime_now: {reason}"))
        })
    });

    environment.add_filter("tojson", to_json);
    environment.add_filter("string", |value: &Value| python::str(value));
    environment.add_test("sequence", |value: &Value| {
        matches!(value.kind(), ValueKind::Seq | ValueKind::Map | ValueKind::String)
    });
    environment.add_test("iterable", |value: &Value| {
        value.is_undefined()
            || value.kind() == ValueKind::String
            || value.try_iter().is_ok() && !value.is_none()
    });
    environment
}

#[expect(clippy::needless_pass_by_value, reason = "minijinja passes arguments by value")]
fn to_json(_: &State, value: &Value, kwargs: Kwargs) -> Result<Value, Error> {
    let indent = kwargs.get::<Option<usize>>("indent")?;
    let sort_keys = kwargs.get::<Option<bool>>("sort_keys")?.unwrap_or(false);
    let separators = kwargs.get::<Option<Vec<String>>>("separators")?;
    // Letters are never escaped, as `transformers` has it.
    kwargs.get::<Option<bool>>("ensure_ascii")?;
    kwargs.assert_all_used()?;

    let [item, key] = match separators.as_deref() {
        Some([item, key]) => [item.clone(), key.clone()],
        Some(_) => {
            return Err(Error::new(ErrorKind::InvalidOperation, "tojson: `separators` has two"));
        }
        // json.dumps has no blank before a line's end.
        None => [if indent.is_some() { "," } else { ", " }.to_owned(), ": ".to_owned()],
    };
    let json = Json {
        indent: indent.map(|n| n.min(16)),
        item_separator: item,
        key_separator: key,
        sort_keys,
    };
    let text = json.dumps(value);
    text.map(Value::from_safe_string)
        .map_err(|reason| Error::new(ErrorKind::InvalidOperation, reason))
}

/// A table whose keys stay in their order, as those of Python's dictionaries do.
#[derive(Debug)]
struct Ordered(serde_json::Map<String, serde_json::Value>);

impl minijinja::value::Object for Ordered {
    fn get_value(self: &Arc<Self>, key: &Value) -> Option<Value> {
        self.0.get(key.as_str()?).map(value_of)
    }

    fn enumerate(self: &Arc<Self>) -> minijinja::value::Enumerator {
        minijinja::value::Enumerator::Values(
            self.0.keys().map(|key| Value::from(key.as_str())).collect(),
        )
    }
}

/// A value of a template.
pub(crate) fn value_of(json: &serde_json::Value) -> Value {
    match json {
        serde_json::Value::Object(table) => Value::from_object(Ordered(table.clone())),
        serde_json::Value::Array(items) => items.iter().map(value_of).collect(),
        other => Value::from_serialize(other),
    }
}

/// The template without the tags that only training uses: `{% generation %}` marks what a model
/// wrote. They become conditions that hold, so that blanks and line ends are trimmed as around
/// other tags.
pub(crate) fn without_training_tags(source: &str) -> String {
    let mut out = String::with_capacity(source.len());
    let mut rest = source;
    while let Some(start) = rest.find("{%") {
        let (before, tag) = rest.split_at(start);
        out += before;
        let Some(end) = tag.find("%}") else { break };
        let (inner, after) = (&tag[2..end], &tag[end + 2..]);
        let name = inner.trim_matches(['-', '+']).trim();
        out += &match name {
            "generation" => tag[..end + 2].replace("generation", "if true"),
            "endgeneration" => tag[..end + 2].replace("endgeneration", "endif"),
            _ => tag[..end + 2].to_owned(),
        };
        rest = after;
    }
    out + rest
}
