//! Bounds of integers: without them, the document would allow numbers that no field can hold.

use serde_json::{Number, Value, json};

/// The least and greatest number of a format.
fn range(format: &str) -> Option<(Number, Number)> {
    match format {
        "u-int32" | "uint32" => Some((0_u32.into(), u32::MAX.into())),
        "u-int64" | "uint64" => Some((0_u32.into(), u64::MAX.into())),
        "int32" => Some((i32::MIN.into(), i32::MAX.into())),
        "int64" => Some((i64::MIN.into(), i64::MAX.into())),
        _ => None,
    }
}

/// Adds the bounds of each integer's format where it has none of its own.
pub fn add(document: &mut Value) {
    match document {
        Value::Object(fields) => {
            let format = fields.get("format").and_then(Value::as_str);
            if let Some((least, greatest)) = format.and_then(range) {
                // An exclusive bound is one already.
                if !fields.contains_key("exclusiveMinimum") {
                    fields.entry("minimum").or_insert_with(|| json!(least));
                }
                fields.entry("maximum").or_insert_with(|| json!(greatest));
            }
            fields.values_mut().for_each(add);
        }
        Value::Array(values) => values.iter_mut().for_each(add),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn integers_get_the_bounds_that_they_lack() {
        let mut document = json!({"properties": {
            "seq": {"type": "integer", "format": "u-int64", "minimum": 1},
            "seed": {"type": ["integer", "null"], "format": "int64"},
            "limit": {"type": "integer", "format": "u-int32", "maximum": 1000},
            "share": {"type": "number", "format": "double"},
        }});

        add(&mut document);
        let fields = &document["properties"];

        assert_eq!(
            (&fields["seq"]["minimum"], &fields["seq"]["maximum"]),
            (&json!(1), &json!(18_446_744_073_709_551_615_u64))
        );
        assert_eq!(fields["seed"]["minimum"], json!(-9_223_372_036_854_775_808_i64));
        assert_eq!(
            (&fields["limit"]["minimum"], &fields["limit"]["maximum"]),
            (&json!(0), &json!(1000))
        );
        assert_eq!(fields["share"], json!({"type": "number", "format": "double"}));
    }
}
