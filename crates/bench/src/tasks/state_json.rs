//! Submitted states as JSON: limits that hold for all tasks, and the first difference of two
//! states.

use serde_json::Value;

use crate::output::value::equal;

/// Bound on the absolute value of numbers in a state, so that a step can add to them without
/// overflow.
const NUMBER_MAX: u64 = 1 << 62;

/// Bound on the number of values in a state.
const VALUES_MAX: usize = 1 << 20;

/// Checks the number of values in a state and their magnitude.
///
/// # Errors
/// Names the field and the limit.
pub fn check_limits(state: &Value) -> Result<(), String> {
    let fields = state.as_object().ok_or("the state must be an object")?;
    let mut values = 0;

    for (field, value) in fields {
        let mut rest = vec![value];
        while let Some(value) = rest.pop() {
            values += 1;
            // Values that wait count too, so that the stack stays within the bound.
            if values + rest.len() > VALUES_MAX {
                return Err(format!("the state has more than {VALUES_MAX} values"));
            }

            match value {
                Value::Array(entries) => rest.extend(entries),
                Value::Object(entries) => rest.extend(entries.values()),
                Value::Number(number) => {
                    let size = number.as_u64().or_else(|| number.as_i64().map(i64::unsigned_abs));
                    if size.is_some_and(|size| size > NUMBER_MAX) {
                        return Err(format!(
                            "state field `{field}`: numbers must lie between -2^62 and 2^62"
                        ));
                    }
                }
                _ => {}
            }
        }
    }
    Ok(())
}

/// The first field in which two states differ.
pub fn first_difference<'s>(state: &'s Value, other: &'s Value) -> Option<&'s str> {
    let fields = state.as_object()?;
    let others = other.as_object()?;
    // Looked up by name: clients may give the fields in another order.
    let is_changed =
        |field: &String, value: &Value| !others.get(field).is_some_and(|other| equal(value, other));
    let changed = fields.iter().find(|(field, value)| is_changed(field, value));
    let missing = || others.keys().find(|field| !fields.contains_key(*field));
    changed.map(|(field, _)| field.as_str()).or_else(|| missing().map(String::as_str))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{check_limits, first_difference};

    #[test]
    fn great_numbers_and_other_shapes_are_refused() {
        let greatest = 1_u64 << 62;
        assert_eq!(check_limits(&json!({ "a": [greatest], "b": { "c": -(1_i64 << 62) } })), Ok(()));
        assert!(
            check_limits(&json!({ "a": [1, [greatest + 1]] }))
                .is_err_and(|error| error.contains("`a`"))
        );
        assert!(
            check_limits(&json!({ "b": { "c": -(1_i64 << 62) - 1 } }))
                .is_err_and(|error| error.contains("`b`"))
        );
        assert!(check_limits(&json!({ "a": vec![0; (1 << 20) + 1] })).is_err());
        for other in [json!(1), json!([]), json!(null), json!("x")] {
            assert!(check_limits(&other).is_err());
        }
    }

    #[test]
    fn differences_are_found_whatever_the_order_of_fields() {
        assert_eq!(first_difference(&json!({ "a": 1, "b": 2 }), &json!({ "b": 2, "a": 1 })), None);
        assert_eq!(first_difference(&json!({ "a": [1, 2.0] }), &json!({ "a": [1, 2] })), None);
        assert_eq!(
            first_difference(&json!({ "a": 1, "b": 2 }), &json!({ "a": 1, "b": 3 })),
            Some("b")
        );
        assert_eq!(first_difference(&json!({ "a": 1, "x": 2 }), &json!({ "a": 1 })), Some("x"));
        assert_eq!(first_difference(&json!({ "a": 1 }), &json!({ "a": 1, "y": 2 })), Some("y"));
    }
}
