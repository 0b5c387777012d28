//! Keywords of JSON Schema that compare numbers, without rounding them: the library's own `const`
//! and `multipleOf` compare doubles.

use jsonschema::paths::{LazyLocation, Location};
use jsonschema::{Keyword, ValidationError, ValidationOptions};
use serde_json::{Number, Value};

use super::error::quoted;
use super::numbers::{equal, is_multiple};

/// What a keyword demands of a value.
enum Asked {
    Const(Value),
    MultipleOf(Number),
}

/// A keyword, with its place in the schema.
struct Exact {
    asked: Asked,
    place: Location,
}

impl Keyword for Exact {
    fn validate<'i>(
        &self,
        instance: &'i Value,
        location: &LazyLocation,
    ) -> Result<(), ValidationError<'i>> {
        if self.is_valid(instance) {
            return Ok(());
        }
        let expected = match &self.asked {
            Asked::Const(value) => format!("{} was expected", quoted(value)),
            Asked::MultipleOf(of) => format!("{} is not a multiple of {of}", quoted(instance)),
        };
        Err(ValidationError::custom(self.place.clone(), location.into(), instance, expected))
    }

    fn is_valid(&self, instance: &Value) -> bool {
        match (&self.asked, instance) {
            (Asked::Const(value), _) => equal(value, instance),
            (Asked::MultipleOf(of), Value::Number(number)) => is_multiple(number, of),
            // It does not apply to other values.
            (Asked::MultipleOf(_), _) => true,
        }
    }
}

/// Options with these keywords. `enum`, `uniqueItems` and the limits of a range are exact already.
#[expect(clippy::result_large_err, reason = "the library asks for its error")]
pub fn exact(options: ValidationOptions) -> ValidationOptions {
    options
        .with_keyword("const", |_, value, place| {
            Ok(Box::new(Exact { asked: Asked::Const(value.clone()), place }))
        })
        .with_keyword("multipleOf", |_, value, place| match value {
            Value::Number(of) => {
                Ok(Box::new(Exact { asked: Asked::MultipleOf(of.clone()), place }))
            }
            _ => {
                let reason = "the value of `multipleOf` is not a number";
                Err(ValidationError::custom(place, Location::new(), value, reason))
            }
        })
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use crate::schema::Schema;

    /// The largest integers from which doubles are 1 and 2 apart are 2^53 and 2^54.
    #[test]
    fn numbers_are_compared_without_rounding() {
        for (schema, right, wrong) in [
            (
                json!({"const": 9_007_199_254_740_993_i64}),
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
            ),
            (json!({"const": u64::MAX}), json!(u64::MAX), json!(u64::MAX - 1)),
            (json!({"const": 0}), json!(-0.0), json!(1e-17)),
            (json!({"const": 1}), json!(1.0), json!(0.999_999_999_999_999_9)),
            (
                json!({"const": [{"a": 9_007_199_254_740_993_i64}]}),
                json!([{"a": 9_007_199_254_740_993_i64}]),
                json!([{"a": 9_007_199_254_740_992_i64}]),
            ),
            (
                json!({"not": {"const": 9_007_199_254_740_993_i64}}),
                json!(9_007_199_254_740_992_i64),
                json!(9_007_199_254_740_993_i64),
            ),
            (
                json!({"contains": {"const": 9_007_199_254_740_993_i64}}),
                json!([1, 9_007_199_254_740_993_i64]),
                json!([1, 9_007_199_254_740_992_i64]),
            ),
            (
                json!({"anyOf": [{"const": 1}, {"properties": {"n": {"const": u64::MAX}}}],
                    "type": "object"}),
                json!({"n": u64::MAX}),
                json!({"n": u64::MAX - 1}),
            ),
            (
                json!({"enum": [1, 9_007_199_254_740_993_i64]}),
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
            ),
            (
                json!({"enum": [9_007_199_254_740_993_i64]}),
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
            ),
            (
                json!({"type": "integer", "multipleOf": 2}),
                json!(9_007_199_254_740_992_i64),
                json!(9_007_199_254_740_993_i64),
            ),
            (
                json!({"type": "integer", "multipleOf": 10}),
                json!(1_000_000_000_000_000_010_i64),
                json!(1_000_000_000_000_000_001_i64),
            ),
            (
                json!({"type": "integer", "multipleOf": 3}),
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
            ),
            (json!({"multipleOf": 0.01}), json!(-19.99), json!(19.995)),
            (json!({"multipleOf": 2}), json!("3"), json!(3)),
            (
                json!({"minimum": 9_007_199_254_740_993_i64}),
                json!(9_007_199_254_740_993_i64),
                json!(9_007_199_254_740_992_i64),
            ),
            (
                json!({"maximum": 9_007_199_254_740_992_i64}),
                json!(9_007_199_254_740_992_i64),
                json!(9_007_199_254_740_993_i64),
            ),
            (
                json!({"minimum": 1e16}),
                json!(10_000_000_000_000_000_i64),
                json!(9_999_999_999_999_999_i64),
            ),
            (
                json!({"exclusiveMaximum": 1e16}),
                json!(9_999_999_999_999_999_i64),
                json!(10_000_000_000_000_000_i64),
            ),
            (json!({"exclusiveMinimum": 0}), json!(1e-300), json!(-0.0)),
            (
                json!({"uniqueItems": true}),
                json!([9_007_199_254_740_993_i64, 9_007_199_254_740_992_i64]),
                json!([9_007_199_254_740_992_i64, 9_007_199_254_740_992.0]),
            ),
        ] {
            let read = Schema::new(&schema).expect("valid");
            assert_eq!(read.check(&right), Ok(()), "{schema} {right}");
            assert!(read.check(&wrong).is_err(), "{schema} {wrong}");
        }
    }

    #[test]
    fn reasons_name_what_was_expected() {
        let schema = Schema::new(&json!({"items": {"const": 2}})).expect("valid");
        assert_eq!(schema.check(&json!([2, 3])), Err("at /1: 2 was expected".to_owned()));

        let schema = Schema::new(&json!({"multipleOf": 2})).expect("valid");
        assert_eq!(schema.check(&json!(3)), Err("3 is not a multiple of 2".to_owned()));

        for wrong in [json!({"multipleOf": "2"}), json!({"multipleOf": 0})] {
            let fault = Schema::new(&wrong).expect_err("no number, or zero");
            assert!(fault.problem.starts_with("not a JSON Schema"), "{fault:?}");
        }
    }
}
