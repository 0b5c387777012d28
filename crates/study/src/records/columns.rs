//! Columns of a record: names, types and meanings, from which the Parquet schema and the
//! documentation are made.

/// Type of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Text in UTF-8.
    Text,
    /// Unsigned integer of 64 bits.
    Count,
    /// IEEE double.
    Float,
    /// True or false.
    Flag,
}

/// One column.
#[derive(Clone, Copy, Debug)]
pub struct Column {
    /// Name, which never changes within a schema version.
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// True if it may be absent (`null`).
    pub is_optional: bool,
    /// Meaning, with the unit.
    pub meaning: &'static str,
}

impl Column {
    /// The column's line of a Parquet schema.
    pub(super) fn declaration(&self) -> String {
        let repetition = if self.is_optional { "optional" } else { "required" };

        let kind = match self.kind {
            Kind::Text => "binary",
            Kind::Count => "int64",
            Kind::Float => "double",
            Kind::Flag => "boolean",
        };
        let logical = match self.kind {
            Kind::Text => " (utf8)",
            Kind::Count => " (integer(64, false))",
            Kind::Float | Kind::Flag => "",
        };

        format!("    {repetition} {kind} {}{logical};", self.name)
    }
}

/// The columns as a Markdown table, for the documentation.
pub fn markdown(columns: &[Column]) -> String {
    let header = "| column | type | may be null | meaning |\n| --- | --- | --- | --- |\n";

    let line = |column: &Column| {
        let kind = match column.kind {
            Kind::Text => "text",
            Kind::Count => "unsigned integer",
            Kind::Float => "number",
            Kind::Flag => "true or false",
        };

        let optional = if column.is_optional { "yes" } else { "" };
        let meaning = column.meaning.split_whitespace().collect::<Vec<_>>().join(" ");
        // Our own text, in Markdown: only the cell must not end.
        let meaning = meaning.replace('|', "\\|");

        format!("| `{}` | {kind} | {optional} | {meaning} |\n", column.name)
    };
    header.to_owned() + &columns.iter().map(line).collect::<String>()
}

/// Values of one column, in the order of the rows.
#[derive(Debug)]
pub(super) enum Values {
    Text(Vec<Option<String>>),
    Count(Vec<Option<u64>>),
    Float(Vec<Option<f64>>),
    Flag(Vec<Option<bool>>),
}

impl Values {
    pub fn new(kind: Kind) -> Self {
        match kind {
            Kind::Text => Self::Text(Vec::new()),
            Kind::Count => Self::Count(Vec::new()),
            Kind::Float => Self::Float(Vec::new()),
            Kind::Flag => Self::Flag(Vec::new()),
        }
    }
}

/// A value of a record's field.
pub(super) trait Field {
    const KIND: Kind;
    const IS_OPTIONAL: bool = false;

    /// Appends the value to its column.
    fn push(&self, values: &mut Values);
}

macro_rules! field {
    ($type:ty, $kind:ident, $value:ident => $converted:expr) => {
        impl Field for $type {
            const KIND: Kind = Kind::$kind;

            fn push(&self, values: &mut Values) {
                let Values::$kind(values) = values else {
                    unreachable!("a column has the kind of its field")
                };
                let $value = self;
                values.push(Some($converted));
            }
        }
    };
}

pub(super) use field;

field!(String, Text, value => value.clone());
field!(u64, Count, value => *value);
field!(u32, Count, value => u64::from(*value));
field!(f64, Float, value => *value);
field!(bool, Flag, value => *value);

impl<T: Field> Field for Option<T> {
    const KIND: Kind = T::KIND;
    const IS_OPTIONAL: bool = true;

    fn push(&self, values: &mut Values) {
        if let Some(value) = self {
            return value.push(values);
        }

        match values {
            Values::Text(values) => values.push(None),
            Values::Count(values) => values.push(None),
            Values::Float(values) => values.push(None),
            Values::Flag(values) => values.push(None),
        }
    }
}
