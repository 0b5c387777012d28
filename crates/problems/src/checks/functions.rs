//! Functions that CEL's standard library lacks: `split`, `sum`, `sort`, `distinct` and `range`.
//! Like the comparisons, they are exact: equal numbers are one element whatever their types are,
//! and a sum is refused rather than rounded to another integer.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt::Write;

use cel::common::functions::Function;
use cel::common::types::{
    CelBool, CelBytes, CelDouble, CelInt, CelList, CelMap, CelNull, CelString, CelUInt, DYN_TYPE,
};
use cel::common::value::{CowVal, Val};
use cel::{Env, ExecutionError};

use super::exact::{number, order};
use crate::limits::RANGE_MAX;
use crate::numbers::{EXACT, Number};

pub const SPLIT: &str = "@split";
pub const SUM: &str = "@sum";
pub const SORT: &str = "@sort";
pub const DISTINCT: &str = "@distinct";
pub const RANGE: &str = "@range";

/// Name, number of arguments, the internal name, and what is called. No source can contain the
/// internal names.
const ALL: [(&str, usize, &str, Function); 6] = [
    ("split", 2, SPLIT, |values| split(&values)),
    ("sum", 1, SUM, |values| sum(&values)),
    ("sort", 1, SORT, |values| sort(&values)),
    ("distinct", 1, DISTINCT, |values| distinct(&values)),
    ("range", 1, RANGE, |values| range(&values)),
    ("range", 2, RANGE, |values| range(&values)),
];

/// The internal name of a function with this many arguments, the target of a method included.
pub fn internal(name: &str, arguments: usize) -> Option<&'static str> {
    let found = ALL.iter().find(|(known, count, ..)| *known == name && *count == arguments);
    found.map(|(.., internal, _)| *internal)
}

/// Returns whether this is the internal name of a function, which no source can contain.
pub fn is_internal(name: &str) -> bool {
    ALL.iter().any(|(.., internal, _)| *internal == name)
}

/// Adds the functions.
pub fn add_to(env: &mut Env) {
    for (_, arguments, name, function) in ALL {
        let types = (0..arguments).map(|_| DYN_TYPE).collect();
        env.add_overload(name, &format!("{name}_{arguments}"), types, function)
            .expect("invariant: the overloads are new");
    }
}

type Evaluated<'b, 'v> = Result<CowVal<'b, 'v>, ExecutionError>;

fn error(function: &str, reason: impl std::fmt::Display) -> ExecutionError {
    ExecutionError::function_error(function, reason)
}

fn elements<'a, 'v>(
    function: &str,
    values: &'a [CowVal<'_, 'v>],
) -> Result<&'a [Box<dyn Val + 'v>], ExecutionError> {
    let first = values.first().ok_or_else(ExecutionError::missing_argument_or_target)?;
    let list = first.downcast_ref::<CelList<'v>>();
    list.map(|list| list.inner()).ok_or_else(|| {
        let found = first.get_type().name().to_owned();
        error(function, format!("it takes a list, and not a value of the type {found}"))
    })
}

fn list<'b, 'v>(values: Vec<Box<dyn Val + 'v>>) -> CowVal<'b, 'v> {
    CowVal::owned(CelList::from(values))
}

/// The pieces of a text between the separators; its characters if the separator is empty.
fn split<'b, 'v>(values: &[CowVal<'_, 'v>]) -> Evaluated<'b, 'v> {
    let texts: Vec<&str> = values
        .iter()
        .filter_map(|value| value.downcast_ref::<CelString<'_>>().map(|text| text.inner()))
        .collect();
    let [text, separator] = texts.as_slice() else {
        return Err(error("split", "it takes a text and the text between its pieces"));
    };

    let boxed = |piece: String| -> Box<dyn Val + 'v> { Box::new(CelString::from(piece)) };
    Ok(list(if separator.is_empty() {
        text.chars().map(|c| boxed(c.to_string())).collect()
    } else {
        text.split(separator).map(|piece| boxed(piece.to_owned())).collect()
    }))
}

/// The sum of numbers; 0 for an empty list. Integers are added exactly, in any order.
fn sum<'b, 'v>(values: &[CowVal<'_, 'v>]) -> Evaluated<'b, 'v> {
    let numbers = elements("sum", values)?;
    let only_unsigned = !numbers.is_empty()
        && numbers.iter().all(|value| value.downcast_ref::<CelUInt>().is_some());

    // From 2^53 on, a sum of doubles may be a rounded integer.
    let small = |sum: f64| {
        let too_large = || error("sum", "a sum with doubles reaches 2^53, where it is rounded");
        (sum.abs() < EXACT).then_some(sum).ok_or_else(too_large)
    };
    let (mut whole, mut double) = (0_i128, None::<f64>);
    for value in numbers {
        match number(value.as_ref()) {
            // At most 2^64 each, and far fewer than 2^63 of them.
            Some(Number::Whole(more)) => whole += more,
            Some(Number::Double(more)) => double = Some(small(double.unwrap_or(0.0) + more)?),
            None => {
                let found = value.get_type().name().to_owned();
                return Err(error("sum", format!("a value of the type {found} is not a number")));
            }
        }
    }

    let overflow = || error("sum", "the sum is outside of the integers");
    let Some(double) = double else {
        return Ok(if only_unsigned {
            CowVal::owned(CelUInt::from(u64::try_from(whole).map_err(|_| overflow())?))
        } else if let Ok(signed) = i64::try_from(whole) {
            CowVal::owned(CelInt::from(signed))
        } else {
            CowVal::owned(CelUInt::from(u64::try_from(whole).map_err(|_| overflow())?))
        });
    };

    Ok(CowVal::owned(CelDouble::from(small(small(whole as f64)? + double)?)))
}

/// The list in ascending order: numbers by value, texts by code points.
fn sort<'b, 'v>(values: &[CowVal<'_, 'v>]) -> Evaluated<'b, 'v> {
    let items = elements("sort", values)?;
    let mut sorted: Vec<&dyn Val> = items.iter().map(AsRef::as_ref).collect();

    // Each is compared with the first before sorting, so that values without an order are refused.
    if let Some(first) = sorted.first() {
        for value in &sorted {
            order("sort", *first, *value)?;
        }
    }
    sorted.sort_by(|one, other| order("sort", *one, *other).unwrap_or(Ordering::Equal));
    Ok(list(sorted.into_iter().map(Val::clone_as_boxed).collect()))
}

/// Writes a key of a value: two values have the same key exactly if they are equal.
fn write_identity(value: &dyn Val, text: &mut String) -> Result<(), ExecutionError> {
    // Infallible: strings grow.
    let mut put = |arguments: std::fmt::Arguments<'_>| text.write_fmt(arguments).unwrap_or(());

    if let Some(number) = number(value) {
        match (number.whole(), number) {
            (Some(whole), _) | (None, Number::Whole(whole)) => put(format_args!("{whole};")),
            (None, Number::Double(double)) => put(format_args!("x{:x};", double.to_bits())),
        }
    } else if let Some(text) = value.downcast_ref::<CelString<'_>>() {
        put(format_args!("s{}:{}", text.inner().len(), text.inner()));
    } else if let Some(truth) = value.downcast_ref::<CelBool>() {
        put(format_args!("{};", truth.inner()));
    } else if value.downcast_ref::<CelNull>().is_some() {
        put(format_args!("null;"));
    } else if let Some(bytes) = value.downcast_ref::<CelBytes<'_>>() {
        put(format_args!("b{}:{:?}", bytes.inner().len(), bytes.inner()));
    } else if let Some(items) = value.downcast_ref::<CelList<'_>>() {
        put(format_args!("["));
        for item in items.inner() {
            write_identity(item.as_ref(), text)?;
        }
        text.push(']');
    } else if let Some(map) = value.downcast_ref::<CelMap<'_>>() {
        let entries = map.inner().iter().map(|(key, value)| {
            let mut entry = String::new();
            write_identity(key.inner(), &mut entry)?;
            write_identity(value.as_ref(), &mut entry)?;
            Ok(entry)
        });
        let mut entries = entries.collect::<Result<Vec<_>, ExecutionError>>()?;
        entries.sort();
        put(format_args!("{{{}}}", entries.concat()));
    } else {
        let found = value.get_type().name().to_owned();
        return Err(error("distinct", format!("values of the type {found} are not compared")));
    }
    Ok(())
}

/// The list without elements that equal an earlier one. NaN equals nothing.
fn distinct<'b, 'v>(values: &[CowVal<'_, 'v>]) -> Evaluated<'b, 'v> {
    let mut seen = HashSet::new();
    let mut kept: Vec<Box<dyn Val + 'v>> = Vec::new();

    for value in elements("distinct", values)? {
        let is_nan = matches!(number(value.as_ref()), Some(Number::Double(d)) if d.is_nan());
        let mut identity = String::new();
        write_identity(value.as_ref(), &mut identity)?;

        if seen.insert(identity) || is_nan {
            kept.push(value.clone_as_boxed());
        }
    }
    Ok(list(kept))
}

/// The integers from 0, or from the first argument, to below the last one.
fn range<'b, 'v>(values: &[CowVal<'_, 'v>]) -> Evaluated<'b, 'v> {
    let bounds: Option<Vec<i128>> = values
        .iter()
        .map(|value| match number(value.as_ref()) {
            Some(Number::Whole(whole)) => Some(whole),
            _ => None,
        })
        .collect();
    let (from, to) = match bounds.as_deref() {
        Some([to]) => (0, *to),
        Some([from, to]) => (*from, *to),
        _ => return Err(error("range", "it takes one or two integers")),
    };

    let count = (to - from).max(0);
    if count > i128::from(RANGE_MAX) {
        let problem = format!("it would have {count} numbers; {RANGE_MAX} is the most");
        return Err(error("range", problem));
    }
    let outside = || error("range", "it has numbers outside of −2^63 to 2^63−1");
    let items = (from..to).map(|whole| {
        let whole = i64::try_from(whole).map_err(|_| outside())?;
        Ok(Box::new(CelInt::from(whole)) as Box<dyn Val + 'v>)
    });
    Ok(list(items.collect::<Result<_, ExecutionError>>()?))
}
