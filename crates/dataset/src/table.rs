//! Tables as Parquet: columns of texts, numbers and chat messages, some of which are fields of a
//! group.

use std::fmt::Write as _;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int32Type, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// A message of a conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    pub role: &'static str,
    pub content: String,
}

/// The values of a column, one for each row.
pub enum Values {
    Texts(Vec<String>),
    Small(Vec<i32>),
    Large(Vec<i64>),
    Numbers(Vec<f64>),
    /// Rows of at least one message.
    Conversations(Vec<Vec<Message>>),
}

/// A column. A name `group.field` makes it a field of a group; the fields of a group must be
/// adjacent.
pub struct Column {
    pub name: &'static str,
    pub values: Values,
}

impl Column {
    pub fn texts(name: &'static str, values: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self { name, values: Values::Texts(values.into_iter().map(Into::into).collect()) }
    }

    pub fn small(name: &'static str, values: impl IntoIterator<Item = i32>) -> Self {
        Self { name, values: Values::Small(values.into_iter().collect()) }
    }

    pub fn large(name: &'static str, values: impl IntoIterator<Item = i64>) -> Self {
        Self { name, values: Values::Large(values.into_iter().collect()) }
    }

    pub fn numbers(name: &'static str, values: impl IntoIterator<Item = f64>) -> Self {
        Self { name, values: Values::Numbers(values.into_iter().collect()) }
    }

    pub fn conversations(
        name: &'static str,
        values: impl IntoIterator<Item = Vec<Message>>,
    ) -> Self {
        Self { name, values: Values::Conversations(values.into_iter().collect()) }
    }

    /// The group, if it belongs to one, and the name within it.
    fn place(&self) -> (Option<&'static str>, &'static str) {
        self.name.split_once('.').map_or((None, self.name), |(group, field)| (Some(group), field))
    }

    fn field(&self) -> String {
        let (_, name) = self.place();
        match self.values {
            Values::Texts(_) => format!("required binary {name} (utf8);"),
            Values::Small(_) => format!("required int32 {name};"),
            Values::Large(_) => format!("required int64 {name};"),
            Values::Numbers(_) => format!("required double {name};"),
            Values::Conversations(_) => format!(
                "required group {name} (list) {{ repeated group list {{ required group element {{ \
                 required binary role (utf8); required binary content (utf8); }} }} }}"
            ),
        }
    }
}

fn schema(columns: &[Column]) -> String {
    let mut text = String::from("message row {");

    let mut open = None;
    for column in columns {
        let (group, _) = column.place();
        if group != open {
            text += if open.is_some() { " }" } else { "" };
            if let Some(group) = group {
                write!(text, " required group {group} {{")
                    .expect("invariant: writing to a string succeeds");
            }
            open = group;
        }

        text += " ";
        text += &column.field();
    }

    text += if open.is_some() { " } }" } else { " }" };
    text
}

type Group<'a, W> = SerializedRowGroupWriter<'a, W>;

fn write<T: DataType, W: Write + Send>(
    group: &mut Group<'_, W>,
    values: &[T::T],
    levels: Option<(&[i16], &[i16])>,
) -> parquet::errors::Result<()> {
    let mut column = group.next_column()?.expect("invariant: the schema has this column");
    column.typed::<T>().write_batch(
        values,
        levels.map(|(definition, _)| definition),
        levels.map(|(_, repetition)| repetition),
    )?;
    column.close()
}

fn write_column<W: Write + Send>(
    group: &mut Group<'_, W>,
    values: &Values,
) -> parquet::errors::Result<()> {
    let bytes =
        |texts: &[&str]| texts.iter().map(|text| ByteArray::from(*text)).collect::<Vec<_>>();

    match values {
        Values::Texts(texts) => {
            let texts: Vec<_> = texts.iter().map(String::as_str).collect();
            write::<ByteArrayType, W>(group, &bytes(&texts), None)
        }
        Values::Small(numbers) => write::<Int32Type, W>(group, numbers, None),
        Values::Large(numbers) => write::<Int64Type, W>(group, numbers, None),
        Values::Numbers(numbers) => write::<DoubleType, W>(group, numbers, None),
        Values::Conversations(rows) => {
            // Every message is defined at the level of the repeated group; the first one of a row
            // begins the row.
            let repetition: Vec<i16> = rows
                .iter()
                .flat_map(|row| (0..row.len()).map(|place| i16::from(place > 0)))
                .collect();
            let definition = vec![1; repetition.len()];

            let roles: Vec<_> = rows.iter().flatten().map(|message| message.role).collect();
            let contents: Vec<_> =
                rows.iter().flatten().map(|message| message.content.as_str()).collect();

            write::<ByteArrayType, W>(group, &bytes(&roles), Some((&definition, &repetition)))?;
            write::<ByteArrayType, W>(group, &bytes(&contents), Some((&definition, &repetition)))
        }
    }
}

/// Writes a table, as one row group.
///
/// # Errors
/// When `out` fails.
pub fn write_parquet(columns: &[Column], out: impl Write + Send) -> io::Result<()> {
    let written = || -> parquet::errors::Result<()> {
        let schema = Arc::new(parse_message_type(&schema(columns))?);

        let compression = Compression::ZSTD(ZstdLevel::try_new(3)?);
        let properties = WriterProperties::builder().set_compression(compression).build();
        let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;

        let mut group = writer.next_row_group()?;
        columns.iter().try_for_each(|column| write_column(&mut group, &column.values))?;
        group.close()?;
        writer.close().map(drop)
    };
    written().map_err(io::Error::other)
}

#[cfg(test)]
mod tests {
    use super::*;
    use parquet::file::reader::{FileReader as _, SerializedFileReader};

    #[test]
    fn a_reader_finds_groups_and_conversations() {
        let said = |role, content: &str| Message { role, content: content.to_owned() };
        let columns = [
            Column::conversations(
                "prompt",
                [vec![said("system", "a"), said("user", "b")], vec![said("user", "ü")]],
            ),
            Column::texts("made.by", ["x", "y"]),
            Column::small("made.at", [1, -2]),
            Column::large("seed", [i64::MAX, 0]),
        ];

        let mut file = Vec::new();
        write_parquet(&columns, &mut file).expect("written");

        let reader = SerializedFileReader::new(bytes::Bytes::from(file)).expect("Parquet");

        let rows: Vec<_> = reader
            .get_row_iter(None)
            .expect("rows")
            .map(|row| row.expect("a row").to_string())
            .collect();

        assert_eq!(
            rows,
            [
                r#"{prompt: [{role: "system", content: "a"}, {role: "user", content: "b"}], made: {by: "x", at: 1}, seed: 9223372036854775807}"#,
                r#"{prompt: [{role: "user", content: "ü"}], made: {by: "y", at: -2}, seed: 0}"#,
            ]
        );
    }
}
