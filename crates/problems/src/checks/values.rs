//! JSON as values of CEL.

use std::collections::HashMap;

use cel::common::types::{
    CelBool, CelDouble, CelInt, CelList, CelMap, CelMapKey, CelNull, CelString, CelUInt,
};
use cel::common::value::Val;
use serde_json::Value;

use crate::steps::Read;

fn key(name: String) -> CelMapKey<'static> {
    CelMapKey::String(CelString::from(name))
}

/// A JSON value. Integers become `int`, or `uint` from 2^63 on; other numbers become `double`.
pub fn of_json(value: &Value) -> Box<dyn Val> {
    match value {
        Value::Null => Box::new(CelNull),
        Value::Bool(truth) => Box::new(CelBool::from(*truth)),
        Value::Number(number) => match (number.as_i64(), number.as_u64()) {
            (Some(whole), _) => Box::new(CelInt::from(whole)),
            (None, Some(whole)) => Box::new(CelUInt::from(whole)),
            (None, None) => Box::new(CelDouble::from(number.as_f64().unwrap_or(f64::NAN))),
        },
        Value::String(text) => Box::new(CelString::from(text.clone())),
        Value::Array(values) => {
            Box::new(CelList::from(values.iter().map(of_json).collect::<Vec<_>>()))
        }
        Value::Object(fields) => {
            let entries = fields.iter().map(|(name, value)| (key(name.clone()), of_json(value)));
            Box::new(CelMap::from(entries.collect::<HashMap<_, _>>()))
        }
    }
}

/// A step: what it was read as, or the line itself.
pub fn of_step<'a>(line: &'a str, read: Option<&Read>) -> Box<dyn Val + 'a> {
    match read {
        Some(read) => of_json(&read.value),
        None => Box::new(CelString::from(line)),
    }
}

/// `{"steps": …, "answer": …}`, with borrowed lines.
pub fn of_state<'a>(steps: &[&'a str], answer: Option<&Value>) -> Box<dyn Val + 'a> {
    let lines = steps.iter().map(|line| Box::new(CelString::from(*line)) as Box<dyn Val + 'a>);
    let lines: Box<dyn Val + 'a> = Box::new(CelList::from(lines.collect::<Vec<_>>()));
    let answer: Box<dyn Val + 'a> =
        answer.map_or_else(|| Box::new(CelNull) as Box<dyn Val>, of_json);

    Box::new(CelMap::from(HashMap::from([
        (key("steps".to_owned()), lines),
        (key("answer".to_owned()), answer),
    ])))
}
