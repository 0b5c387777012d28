//! Records as one Parquet file, for pandas, polars and DuckDB.

use std::io::Write;
use std::sync::Arc;

use parquet::basic::{Compression, ZstdLevel};
use parquet::column::writer::ColumnWriterImpl;
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

use super::columns::Values;
use super::record::{COLUMNS, Record, columns_of};

/// Why a Parquet file cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("records as Parquet: {0}")]
pub struct ParquetError(#[from] parquet::errors::ParquetError);

/// Maximum rows of a row group, the unit in which readers decompress.
const GROUP_ROWS: usize = 50_000;

fn schema() -> String {
    let columns: Vec<String> = COLUMNS.iter().map(super::columns::Column::declaration).collect();
    format!("message record {{\n{}\n}}", columns.join("\n"))
}

/// Definition levels of an optional column (0 if absent), and the values that are present.
fn split<T, V>(values: Vec<Option<T>>, convert: impl Fn(T) -> V) -> (Vec<i16>, Vec<V>) {
    let levels = values.iter().map(|value| i16::from(value.is_some())).collect();
    (levels, values.into_iter().flatten().map(convert).collect())
}

fn write_column<T: DataType>(
    writer: &mut ColumnWriterImpl<'_, T>,
    (levels, values): (Vec<i16>, Vec<T::T>),
    is_optional: bool,
) -> parquet::errors::Result<()> {
    writer.write_batch(&values, is_optional.then_some(&levels[..]), None).map(drop)
}

fn write_group<W: Write + Send>(
    group: &mut SerializedRowGroupWriter<'_, W>,
    records: &[Record],
) -> parquet::errors::Result<()> {
    for (column, values) in COLUMNS.iter().zip(columns_of(records)) {
        let mut writer = group.next_column()?.expect("invariant: the schema has this column");
        let is_optional = column.is_optional;
        match values {
            Values::Text(values) => {
                let split = split(values, |text: String| ByteArray::from(text.into_bytes()));
                write_column(writer.typed::<ByteArrayType>(), split, is_optional)?;
            }
            Values::Count(values) => {
                write_column(
                    writer.typed::<Int64Type>(),
                    split(values, u64::cast_signed),
                    is_optional,
                )?;
            }
            Values::Float(values) => {
                write_column(
                    writer.typed::<DoubleType>(),
                    split(values, |value| value),
                    is_optional,
                )?;
            }
            Values::Flag(values) => {
                write_column(
                    writer.typed::<BoolType>(),
                    split(values, |value| value),
                    is_optional,
                )?;
            }
        }

        writer.close()?;
    }
    Ok(())
}

/// Writes records as Parquet, compressed with zstd.
///
/// # Errors
/// If the output cannot be written.
pub fn write_parquet(records: &[Record], out: impl Write + Send) -> Result<(), ParquetError> {
    let schema = Arc::new(parse_message_type(&schema())?);
    let properties = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::try_new(3)?))
        .build();

    let mut writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
    for records in records.chunks(GROUP_ROWS) {
        let mut group = writer.next_row_group()?;
        write_group(&mut group, records)?;
        group.close()?;
    }

    writer.close()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use parquet::file::reader::{FileReader as _, SerializedFileReader};
    use parquet::record::Field;

    use super::*;
    use crate::testing::record;

    #[test]
    fn all_columns_are_read_back() {
        let mut records =
            vec![record("prime", "n-queens", 0), record("single pass", "bubble-sort", 1)];
        records[0].base_seed = u64::MAX;
        records[1].agreement = None;

        let mut file = tempfile::tempfile().unwrap();
        write_parquet(&records, &mut file).unwrap();

        let reader = SerializedFileReader::new(file).unwrap();
        let rows: Vec<_> = reader.get_row_iter(None).unwrap().map(Result::unwrap).collect();
        assert_eq!(rows.len(), 2);

        for (row, record) in rows.iter().zip(&records) {
            let values: std::collections::BTreeMap<_, _> = row.get_column_iter().collect();
            assert_eq!(values.len(), COLUMNS.len());
            let get = |name: &str| *values.iter().find(|(column, _)| **column == name).unwrap().1;

            assert_eq!(get("system"), &Field::Str(record.system.clone()));
            assert_eq!(get("base_seed"), &Field::ULong(record.base_seed));
            assert_eq!(get("wall_ms"), &Field::Double(record.wall_ms));
            assert_eq!(get("right"), &Field::Bool(record.right));
            assert_eq!(get("status"), &Field::Str("measured".to_owned()));
            assert_eq!(get("agreement"), &record.agreement.map_or(Field::Null, Field::Double));
        }
    }

    #[test]
    fn no_records_are_an_empty_file() {
        let mut file = tempfile::tempfile().unwrap();
        write_parquet(&[], &mut file).unwrap();
        assert_eq!(SerializedFileReader::new(file).unwrap().get_row_iter(None).unwrap().count(), 0);
    }
}
