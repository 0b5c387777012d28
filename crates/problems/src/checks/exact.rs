//! Equality, order and membership of CEL's values. The library rounds an integer before it compares
//! it with a double, so that 9999999999999999 would be at least 1e16; CEL compares their values.

use std::cmp::Ordering;

use cel::common::ast::operators;
use cel::common::functions::Function;
use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelUInt, DYN_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError};

use crate::numbers::Number;

/// Replaces `in`. No source can contain these names.
pub const IN: &str = "@exactly_in";

/// The operators of CEL that are replaced, each with the function that is called instead.
const REPLACED: [(&str, &str, Function); 7] = [
    (operators::EQUALS, "@exactly_equal", |values| {
        binary(&values, |one, other| Ok(is_equal(one, other)))
    }),
    (operators::NOT_EQUALS, "@exactly_unequal", |values| {
        binary(&values, |one, other| Ok(!is_equal(one, other)))
    }),
    (operators::LESS, "@exactly_less", |values| ordered(operators::LESS, &values, Ordering::is_lt)),
    (operators::LESS_EQUALS, "@exactly_less_or_equal", |values| {
        ordered(operators::LESS_EQUALS, &values, Ordering::is_le)
    }),
    (operators::GREATER, "@exactly_greater", |values| {
        ordered(operators::GREATER, &values, Ordering::is_gt)
    }),
    (operators::GREATER_EQUALS, "@exactly_greater_or_equal", |values| {
        ordered(operators::GREATER_EQUALS, &values, Ordering::is_ge)
    }),
    (operators::IN, IN, |values| binary(&values, is_in)),
];

/// The function that replaces an operator, if one does.
pub fn replacement(operator: &str) -> Option<&'static str> {
    let found = REPLACED.iter().find(|(replaced, ..)| *replaced == operator);
    found.map(|(_, name, _)| *name)
}

/// Adds the functions that replace operators.
pub fn add_to(env: &mut Env) {
    for (_, name, function) in REPLACED {
        env.add_overload(name, name, vec![DYN_TYPE, DYN_TYPE], function)
            .expect("invariant: the names are new");
    }
}

fn binary<'b, 'v>(
    values: &[CowVal<'_, '_>],
    holds: impl FnOnce(&dyn Val, &dyn Val) -> Result<bool, ExecutionError>,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    match values {
        [one, other] => Ok(CowVal::owned(CelBool::from(holds(one.as_ref(), other.as_ref())?))),
        _ => Err(ExecutionError::invalid_argument_count(2, values.len())),
    }
}

fn ordered<'b, 'v>(
    operator: &str,
    values: &[CowVal<'_, '_>],
    holds: fn(Ordering) -> bool,
) -> Result<CowVal<'b, 'v>, ExecutionError> {
    binary(values, |one, other| order(operator, one, other).map(holds))
}

fn no_overload(operator: &str, one: &dyn Val, other: &dyn Val) -> ExecutionError {
    let types = [one, other].map(|value| value.get_type().name().to_owned());
    ExecutionError::no_such_overload(operator, types.to_vec())
}

/// The number that a value is, if it is one.
pub fn number(value: &dyn Val) -> Option<Number> {
    if let Some(whole) = value.downcast_ref::<CelInt>() {
        return Some(Number::Whole((*whole.inner()).into()));
    }
    if let Some(whole) = value.downcast_ref::<CelUInt>() {
        return Some(Number::Whole((*whole.inner()).into()));
    }
    value.downcast_ref::<CelDouble>().map(|double| Number::Double(*double.inner()))
}

fn is_equal(one: &dyn Val, other: &dyn Val) -> bool {
    if let (Some(one), Some(other)) = (number(one), number(other)) {
        return one.compare(other) == Some(Ordering::Equal);
    }

    if let (Some(one), Some(other)) =
        (one.downcast_ref::<CelList<'_>>(), other.downcast_ref::<CelList<'_>>())
    {
        let (one, other) = (one.inner(), other.inner());
        let mut pairs = one.iter().zip(other);
        return one.len() == other.len()
            && pairs.all(|(one, other)| is_equal(one.as_ref(), other.as_ref()));
    }

    if let (Some(one), Some(other)) =
        (one.downcast_ref::<CelMap<'_>>(), other.downcast_ref::<CelMap<'_>>())
    {
        let same = |(key, value)| {
            let (key, value): (&CelMapKey<'_>, &dyn Val) = (key, value);
            found(other, key).is_some_and(|found| is_equal(value, found))
        };
        let mut entries = one.inner().iter().map(|(key, value)| (key, value.as_ref()));
        return one.inner().len() == other.inner().len() && entries.all(same);
    }

    one.equals(other)
}

/// The value at a key; a number is one key, of whatever type it is.
fn found<'m>(map: &'m CelMap<'m>, key: &CelMapKey<'m>) -> Option<&'m dyn Val> {
    match number(key.inner()) {
        Some(number) => at_number(map, number),
        None => map.inner().get(key).map(AsRef::as_ref),
    }
}

fn at_number<'m>(map: &'m CelMap<'m>, number: Number) -> Option<&'m dyn Val> {
    let whole = number.whole()?;
    let int = i64::try_from(whole).ok().and_then(|key| map.inner().get(&CelMapKey::from(key)));
    let uint = || u64::try_from(whole).ok().and_then(|key| map.inner().get(&CelMapKey::from(key)));
    int.or_else(uint).map(AsRef::as_ref)
}

/// The order of two values; an error if they have none.
pub fn order(operator: &str, one: &dyn Val, other: &dyn Val) -> Result<Ordering, ExecutionError> {
    if let (Some(one), Some(other)) = (number(one), number(other)) {
        let unordered = || ExecutionError::function_error(operator, "NaN has no order");
        return one.compare(other).ok_or_else(unordered);
    }

    let compared = one.as_comparer().and_then(|comparer| comparer.compare(other).ok());
    compared.ok_or_else(|| no_overload(operator, one, other))
}

fn is_in(value: &dyn Val, container: &dyn Val) -> Result<bool, ExecutionError> {
    if let Some(list) = container.downcast_ref::<CelList<'_>>() {
        return Ok(list.inner().iter().any(|item| is_equal(item.as_ref(), value)));
    }
    if let (Some(map), Some(number)) = (container.downcast_ref::<CelMap<'_>>(), number(value)) {
        return Ok(at_number(map, number).is_some());
    }

    let contains = container.as_container().and_then(|container| container.contains(value).ok());
    contains.ok_or_else(|| no_overload(operators::IN, value, container))
}
