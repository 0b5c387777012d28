//! Shapes: abstract bounds on the sizes of the values that an expression may see or produce.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Value;

/// An upper bound on a value. Its `parts` bound the work of copying, comparing or formatting it.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A number, text, boolean or null. `fraction`: whether it may be a double.
    Atom { parts: u64, fraction: bool },
    /// Up to `len` elements, each of the shape `item`.
    List { len: u64, item: Arc<Shape>, parts: u64 },
    /// Up to `len` entries. `value` bounds every value; `fields` bounds some of them more closely,
    /// by name.
    Map {
        len: u64,
        fields: Arc<BTreeMap<String, Shape>>,
        value: Arc<Shape>,
        key_parts: u64,
        parts: u64,
    },
    /// Any value of at most this many parts.
    Any { parts: u64 },
}

/// Bytes of a text that count as one part.
const BYTES_A_PART: u64 = 16;

/// Fields of a map that are tracked by name; a larger map has only the common bound of its values.
const FIELDS_MAX: usize = 64;

/// Shapes in one shape, itself included: widening visits them all at every step.
const SHAPES_MAX: usize = 200;

impl Shape {
    /// A short value without a fraction.
    pub const SMALL: Self = Self::Atom { parts: 1, fraction: false };

    /// A text of at most this many bytes.
    pub fn text(bytes: u64) -> Self {
        Self::Atom { parts: 1 + bytes / BYTES_A_PART, fraction: false }
    }

    /// A list of at most `len` elements of this shape.
    pub fn list(len: u64, item: Self, parts: u64) -> Self {
        Self::List { len, item: Arc::new(item), parts }
    }

    /// A map with these entries.
    pub fn map(entries: impl IntoIterator<Item = (String, Self)>) -> Self {
        let (mut len, mut parts, mut key_parts) = (0_u64, 1_u64, 1);
        let mut fields = BTreeMap::new();
        let mut all = None::<Self>;

        for (key, shape) in entries {
            let of_key = Self::text(key.len() as u64).parts();
            len += 1;
            parts = parts.saturating_add(of_key).saturating_add(shape.parts());
            key_parts = key_parts.max(of_key);

            match &mut all {
                Some(all) => all.widen(&shape),
                None => all = Some(shape.clone()),
            }
            fields.insert(key, shape);
        }

        if fields.len() > FIELDS_MAX {
            fields.clear();
        }

        Self::Map {
            len,
            fields: Arc::new(fields),
            value: Arc::new(all.unwrap_or(Self::SMALL)),
            key_parts,
            parts,
        }
    }

    /// The shape of a value.
    pub fn of(value: &Value) -> Self {
        let shape = Self::exactly(value);
        if shape.count() > SHAPES_MAX { Self::Any { parts: shape.parts() } } else { shape }
    }

    /// Number of shapes in it, itself included.
    fn count(&self) -> usize {
        match self {
            Self::Atom { .. } | Self::Any { .. } => 1,
            Self::List { item, .. } => 1 + item.count(),
            Self::Map { fields, value, .. } => {
                1 + value.count() + fields.values().map(Self::count).sum::<usize>()
            }
        }
    }

    fn exactly(value: &Value) -> Self {
        match value {
            Value::Null | Value::Bool(_) => Self::SMALL,
            Value::Number(number) => Self::Atom { parts: 1, fraction: number.is_f64() },
            Value::String(text) => Self::text(text.len() as u64),
            Value::Array(values) => {
                let mut item = values.first().map_or(Self::SMALL, Self::exactly);

                let mut parts = 1 + item.parts();
                for value in values.iter().skip(1) {
                    let shape = Self::exactly(value);
                    parts += shape.parts();
                    item.widen(&shape);
                }

                Self::list(values.len() as u64, item, parts)
            }
            Value::Object(fields) => {
                Self::map(fields.iter().map(|(key, value)| (key.clone(), Self::exactly(value))))
            }
        }
    }

    /// Upper bound on the work of copying, comparing or formatting the value.
    pub fn parts(&self) -> u64 {
        match self {
            Self::Atom { parts, .. }
            | Self::List { parts, .. }
            | Self::Map { parts, .. }
            | Self::Any { parts } => *parts,
        }
    }

    /// Upper bound on the elements to iterate over.
    pub fn len(&self) -> u64 {
        match self {
            Self::Atom { .. } => 0,
            Self::List { len, .. } | Self::Map { len, .. } => *len,
            Self::Any { parts } => *parts,
        }
    }

    /// Upper bound on the bytes of the text that it may be.
    pub fn bytes(&self) -> u64 {
        match self {
            Self::Atom { parts, .. } | Self::Any { parts } => parts.saturating_mul(BYTES_A_PART),
            Self::List { .. } | Self::Map { .. } => 0,
        }
    }

    /// An element of an iteration, which for a map is a key.
    pub fn element(&self) -> Self {
        match self {
            Self::Atom { .. } => Self::SMALL,
            Self::List { item, .. } => item.as_ref().clone(),
            Self::Map { key_parts, .. } => Self::Atom { parts: *key_parts, fraction: false },
            Self::Any { .. } => self.clone(),
        }
    }

    /// The value of a key.
    pub fn field(&self, name: &str) -> Self {
        match self {
            Self::Map { fields, value, .. } => fields.get(name).unwrap_or(value).clone(),
            Self::Any { .. } => self.clone(),
            Self::Atom { .. } | Self::List { .. } => Self::SMALL,
        }
    }

    /// The value at an unknown index or key.
    pub fn indexed(&self) -> Self {
        match self {
            Self::Map { value, .. } => value.as_ref().clone(),
            other => other.element(),
        }
    }

    /// Returns whether it may be a double. A fractional index is an error, which quotes the whole
    /// list.
    pub fn is_fraction(&self) -> bool {
        matches!(self, Self::Atom { fraction: true, .. } | Self::Any { .. })
    }

    /// Widens it to include another shape.
    pub fn widen(&mut self, other: &Self) {
        match (&mut *self, other) {
            (Self::Atom { parts, fraction }, Self::Atom { parts: others, fraction: also }) => {
                *parts = (*parts).max(*others);
                *fraction |= *also;
            }
            (
                Self::List { len, item, parts },
                Self::List { len: length, item: element, parts: others },
            ) => {
                *len = (*len).max(*length);
                *parts = (*parts).max(*others);
                // The same shape needs no widening, and no copy of its own.
                if !Arc::ptr_eq(item, element) {
                    Arc::make_mut(item).widen(element);
                }
            }
            (
                Self::Map { len, fields, value, key_parts, parts },
                Self::Map {
                    len: length,
                    fields: more,
                    value: values,
                    key_parts: keys,
                    parts: others,
                },
            ) => {
                *len = (*len).max(*length);
                *parts = (*parts).max(*others);
                *key_parts = (*key_parts).max(*keys);
                if !Arc::ptr_eq(value, values) {
                    Arc::make_mut(value).widen(values);
                }
                if !Arc::ptr_eq(fields, more) {
                    // A field that one of them does not tell apart is in its `value`.
                    let mut common = BTreeMap::new();
                    for (name, shape) in fields.iter() {
                        if let Some(other) = more.get(name) {
                            let mut both = shape.clone();
                            both.widen(other);
                            common.insert(name.clone(), both);
                        }
                    }
                    *fields = Arc::new(common);
                }
            }
            // The forms differ: only the size is known.
            (one, other) => *one = Self::Any { parts: one.parts().max(other.parts()) },
        }
    }

    /// The result of combining both: a sum or a concatenation.
    pub fn joined(&self, other: &Self) -> Self {
        let parts = self.parts().saturating_add(other.parts());

        match (self, other) {
            (Self::Atom { .. }, Self::Atom { .. }) => {
                Self::Atom { parts, fraction: self.is_fraction() || other.is_fraction() }
            }
            (Self::List { .. }, Self::List { .. } | Self::Map { .. }) => {
                let mut item = self.element();
                item.widen(&other.element());
                Self::list(self.len().saturating_add(other.len()), item, parts)
            }
            _ => Self::Any { parts },
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_value_fits_into_its_shape() {
        let shape =
            Shape::of(&json!({"list": [[1, 2, 3], [4.5]], "text": "x".repeat(160), "n": 7}));
        assert_eq!(shape.field("n"), Shape::SMALL);
        assert_eq!(shape.field("text"), Shape::Atom { parts: 11, fraction: false });
        let list = shape.field("list");

        assert_eq!((list.len(), list.parts()), (2, 1 + 4 + 2));
        assert_eq!((list.element().len(), list.element().element().is_fraction()), (3, true));

        assert_eq!(
            (shape.len(), shape.element(), shape.field("none")),
            (3, Shape::SMALL, shape.indexed())
        );
        assert!(shape.indexed().parts() >= 11, "any of its values");
    }

    #[test]
    fn wider_shapes_hold_both() {
        let mut shape = Shape::of(&json!({"a": [1]}));
        shape.widen(&Shape::of(&json!({"a": ["x".repeat(64), 2], "b": {"c": 1}})));
        assert_eq!(shape.field("a").len(), 2);
        assert_eq!(shape.field("a").element().parts(), 5);
        assert!(matches!(shape.field("b"), Shape::Any { .. }), "only one of them has it");

        shape.widen(&Shape::SMALL);
        assert!(matches!(shape, Shape::Any { .. }));
    }

    #[test]
    fn large_maps_are_known_by_what_their_values_have_in_common() {
        let many = |count: usize| {
            Value::Object((0..count).map(|i| (format!("key {i}"), json!([i]))).collect())
        };
        let shape = Shape::of(&many(5_000));
        assert_eq!(
            (shape.len(), shape.field("key 4").len(), shape.field("key 4").parts()),
            (5_000, 1, 2)
        );

        let deep = Value::Object((0..9).map(|i| (format!("key {i}"), many(50))).collect());
        assert!(matches!(Shape::of(&deep), Shape::Any { .. }));
    }

    #[test]
    fn joined_shapes_grow_without_overflow() {
        let list = Shape::of(&json!([1, 2]));
        assert_eq!((list.joined(&list).len(), list.joined(&list).parts()), (4, 6));
        let huge = Shape::Any { parts: u64::MAX };
        assert_eq!(huge.joined(&huge).parts(), u64::MAX);
        assert!(Shape::SMALL.joined(&Shape::Atom { parts: 1, fraction: true }).is_fraction());
    }
}
