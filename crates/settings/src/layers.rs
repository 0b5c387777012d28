//! One layer of configuration: reads a file, the environment or a `--set` argument into values with
//! their origin. Does not merge or validate.

use std::fs::File;
use std::io::Read as _;
use std::path::Path;

use config::{Map, Source, Value, ValueKind};
use serde_json::Value as Json;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::environment;
use super::error::SettingsError;
use super::schema_value::{child, kind_of};
use prime_models::BuiltInModel;

/// Longest configuration file, in bytes.
const FILE_BYTES_MAX: u64 = 16 << 20;

/// A table of values at one level of precedence.
#[derive(Clone, Debug, Default)]
pub(super) struct Layer(pub Map<String, Value>);

impl Source for Layer {
    fn clone_into_box(&self) -> Box<dyn Source + Send + Sync> {
        Box::new(self.clone())
    }

    fn collect(&self) -> Result<Map<String, Value>, config::ConfigError> {
        Ok(self.0.clone())
    }
}

impl Layer {
    /// A file given by `--config`. Relative model paths are resolved against its folder.
    pub(super) fn file(path: &Path) -> Result<Self, SettingsError> {
        let unreadable = |cause| SettingsError::Unreadable { path: path.to_owned(), cause };

        let mut text = String::new();
        // A device such as `/dev/zero` never ends.
        let mut file = File::open(path).map_err(unreadable)?.take(FILE_BYTES_MAX + 1);
        file.read_to_string(&mut text).map_err(unreadable)?;

        if text.len() as u64 > FILE_BYTES_MAX {
            return Err(SettingsError::TooLong {
                path: path.to_owned(),
                mib_max: FILE_BYTES_MAX >> 20,
            });
        }

        let mut layer = Self::text(&text, &path.display().to_string())?;
        if let Some(folder) = path.parent() {
            layer.resolve_models(folder);
        }

        Ok(layer)
    }

    /// TOML text; `name` is its origin in messages.
    pub(super) fn text(text: &str, name: &str) -> Result<Self, SettingsError> {
        let line =
            |offset: usize| 1 + text.bytes().take(offset).filter(|byte| *byte == b'\n').count();
        let place = |offset: usize| format!("{name}:{}", line(offset));

        let table = DeTable::parse(text).map_err(|error| SettingsError::NotToml {
            origin: place(error.span().map_or(0, |span| span.start)),
            message: error.message().to_owned(),
        })?;

        Ok(Self(convert_table(table.get_ref(), &place)))
    }

    /// The variables that begin with `PRIME__`: `PRIME__RUN__FANOUT=4` sets `run.fanout`. Case does
    /// not matter. `schema` is the configuration's.
    pub(super) fn environment(
        variables: impl Iterator<Item = (String, String)>,
        schema: &Json,
    ) -> Self {
        let mut mine: Vec<_> = variables
            .filter_map(|(name, value)| {
                let key = environment::key(&name)?.to_ascii_lowercase().replace("__", ".");
                Some((key, value, format!("environment variable {name}")))
            })
            .collect();
        // The environment has no order of its own: of two spellings of one key the same one must
        // win each time.
        mine.sort();

        let mut layer = Self::default();
        for (key, value, origin) in mine {
            layer.assign(&key, &value, &origin, schema);
        }
        layer
    }

    /// One `--set` argument, `section.key=value`. `schema` is the configuration's.
    pub(super) fn set(argument: &str, schema: &Json) -> Result<Self, SettingsError> {
        // Messages quote the argument, which may hold a secret.
        let shown = match argument.split_once('=') {
            Some((key, _)) if key.trim_start().starts_with("webhooks") => format!("{key}=…"),
            _ => argument.to_owned(),
        };
        let refuse = || SettingsError::NotAssignment { argument: shown.clone() };
        let (key, value) = argument.split_once('=').ok_or_else(refuse)?;
        let key = key.trim();
        if key.is_empty() || key.split('.').any(str::is_empty) {
            return Err(refuse());
        }

        let mut layer = Self::default();
        layer.assign(key, value.trim(), &format!("--set {shown}"), schema);
        Ok(layer)
    }

    /// Sets a dotted key. A value that is not TOML is taken as a string, so that `log.level=debug`
    /// needs no quotes; so is what would be a number, a boolean or a date where the key is a
    /// string, as a folder may be called `2024`.
    fn assign(&mut self, key: &str, value: &str, origin: &str, schema: &Json) {
        let place = |_| origin.to_owned();
        let line = format!("value = {value}");
        // A value with a newline could otherwise add keys of its own.
        let parsed = DeTable::parse(&line).ok().filter(|table| table.get_ref().len() == 1);

        let of_key = key.split('.').try_fold(schema, |schema, part| child(schema, part));
        let is_string = of_key.and_then(kind_of) == Some("string");
        let is_scalar = |parsed: &DeValue<'_>| {
            !matches!(parsed, DeValue::String(_) | DeValue::Array(_) | DeValue::Table(_))
        };

        let parsed = parsed.as_ref().and_then(|table| table.get_ref().get("value"));
        let value = match parsed.filter(|parsed| !(is_string && is_scalar(parsed.get_ref()))) {
            Some(parsed) => convert(parsed, &place),
            None => Value::new(Some(&origin.to_owned()), ValueKind::String(value.to_owned())),
        };

        let mut parts: Vec<&str> = key.split('.').collect();
        let last = parts.pop().unwrap_or_default();
        let mut table = &mut self.0;
        for part in parts {
            let below = table.entry(part.to_owned()).or_insert_with(|| {
                Value::new(Some(&origin.to_owned()), Map::<String, Value>::new())
            });
            // `PRIME__A=1` beside `PRIME__A__B=2`: the more specific one wins.
            if !matches!(below.kind, ValueKind::Table(_)) {
                below.kind = ValueKind::Table(Map::new());
            }
            let ValueKind::Table(inner) = &mut below.kind else { return };
            table = inner;
        }

        table.insert(last.to_owned(), value);
    }

    fn resolve_models(&mut self, folder: &Path) {
        let Some(ValueKind::Table(engines)) =
            self.0.get_mut("engines").map(|value| &mut value.kind)
        else {
            return;
        };
        #[expect(clippy::iter_over_hash_type, reason = "entries are independent")]
        for engine in engines.values_mut() {
            let ValueKind::Table(engine) = &mut engine.kind else { continue };
            if let Some(ValueKind::String(model)) =
                engine.get_mut("model").map(|value| &mut value.kind)
                && !model.is_empty()
                && BuiltInModel::find(Path::new(model.as_str())).is_none()
            {
                // `join` keeps an absolute path.
                *model = folder.join(&*model).to_string_lossy().into_owned();
            }
        }
    }
}

/// Converts values without an origin: those of settings that were changed in code.
pub(super) fn from_json(value: serde_json::Value) -> Value {
    let kind = match value {
        serde_json::Value::Null => ValueKind::Nil,
        serde_json::Value::Bool(flag) => ValueKind::Boolean(flag),
        serde_json::Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(number), _) => ValueKind::I64(number),
            (None, Some(number)) => ValueKind::U64(number),
            (None, None) => ValueKind::Float(number.as_f64().unwrap_or(f64::NAN)),
        },
        serde_json::Value::String(text) => ValueKind::String(text),
        serde_json::Value::Array(items) => {
            ValueKind::Array(items.into_iter().map(from_json).collect())
        }
        serde_json::Value::Object(fields) => ValueKind::Table(
            fields.into_iter().map(|(key, value)| (key, from_json(value))).collect(),
        ),
    };
    Value::new(None, kind)
}

fn convert_table(table: &DeTable<'_>, place: &dyn Fn(usize) -> String) -> Map<String, Value> {
    let entry = |(key, value): (&Spanned<_>, &Spanned<DeValue<'_>>)| {
        let key: &std::borrow::Cow<'_, str> = key.get_ref();
        (key.to_string(), convert(value, place))
    };
    table.iter().map(entry).collect()
}

fn convert(value: &Spanned<DeValue<'_>>, place: &dyn Fn(usize) -> String) -> Value {
    let kind = match value.get_ref() {
        DeValue::String(text) => ValueKind::String(text.to_string()),
        DeValue::Integer(number) => match i64::from_str_radix(number.as_str(), number.radix()) {
            Ok(number) => ValueKind::I64(number),
            // Beyond 64 bits a number is out of range for every option.
            Err(_) => ValueKind::I128(if number.as_str().starts_with('-') {
                i128::MIN
            } else {
                i128::MAX
            }),
        },
        DeValue::Float(number) => ValueKind::Float(number.as_str().parse().unwrap_or(f64::NAN)),
        DeValue::Boolean(flag) => ValueKind::Boolean(*flag),
        DeValue::Datetime(date) => ValueKind::String(date.to_string()),
        DeValue::Array(items) => {
            ValueKind::Array(items.iter().map(|item| convert(item, place)).collect())
        }
        DeValue::Table(table) => ValueKind::Table(convert_table(table, place)),
    };
    Value::new(Some(&place(value.span().start)), kind)
}
