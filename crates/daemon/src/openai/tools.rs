//! Tools of a request: functions, one of which the client forces the answer to call.

use serde::Deserialize;
use serde_json::{Map, Value, json};
use utoipa::ToSchema;

use crate::error::ApiError;

/// Most functions among which a request may force a call.
const FUNCTIONS_MAX: usize = 128;

/// A tool. Only functions can be forced; others are ignored.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct Tool {
    /// `function`.
    #[serde(rename = "type")]
    pub kind: String,
    #[schema(required = false)]
    pub function: Option<Function>,
}

/// A function that a client offers.
#[derive(Clone, Debug, Deserialize, ToSchema)]
pub struct Function {
    pub name: String,
    /// Part of the problem, if the problem is in words.
    pub description: Option<String>,
    /// The JSON Schema of its arguments, an object; any object by default.
    #[schema(value_type = Option<Object>)]
    pub parameters: Option<Map<String, Value>>,
}

/// Whether the answer is a function call. Only for the OpenAPI document.
#[derive(ToSchema)]
#[serde(untagged)]
#[expect(dead_code, reason = "never constructed")]
pub enum ToolChoice {
    Mode(ToolMode),
    Function(NamedTool),
}

/// Whether the answer is a function call.
#[derive(ToSchema)]
#[serde(rename_all = "lowercase")]
#[expect(dead_code, reason = "never constructed")]
pub enum ToolMode {
    /// It is not.
    None,
    /// The same as `none`: the answer needs no tool.
    Auto,
    /// It is a call of one of `tools`.
    Required,
}

/// The function whose arguments the answer is.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never constructed")]
pub struct NamedTool {
    /// `function`.
    #[schema(rename = "type")]
    kind: String,
    function: FunctionName,
}

/// A function's name.
#[derive(ToSchema)]
#[expect(dead_code, reason = "never constructed")]
pub struct FunctionName {
    name: String,
}

/// The name in `{"type": "function", "function": {"name": …}}`.
fn named(choice: &Value) -> Option<&str> {
    (choice["type"] == "function").then(|| choice["function"]["name"].as_str()).flatten()
}

/// The functions that the answer must choose from, each with its index in `tools`; none where the
/// answer is a text.
///
/// # Errors
/// 400: the choice is not supported, or names no function of `tools`.
pub fn forced<'a>(
    tools: &'a [Tool],
    choice: Option<&Value>,
) -> Result<Vec<(usize, &'a Function)>, ApiError> {
    let refused = |message: String| Err(ApiError::bad_field("tool_choice", message));

    let functions = || {
        let functions = tools.iter().enumerate().filter(|(_, tool)| tool.kind == "function");
        functions.filter_map(|(place, tool)| Some((place, tool.function.as_ref()?)))
    };

    let chosen: Vec<_> = match choice {
        None | Some(Value::Null) => return Ok(Vec::new()),
        Some(Value::String(mode)) => match mode.as_str() {
            "none" | "auto" => return Ok(Vec::new()),
            "required" => functions().collect(),
            other => {
                return refused(format!(
                    "is {other:?}; give \"none\", \"auto\", \"required\" or a function"
                ));
            }
        },
        Some(choice) => {
            let Some(name) = named(choice) else {
                let example = json!({"type": "function", "function": {"name": "NAME"}});
                return refused(format!(
                    "is not supported; give \"none\", \"auto\", \"required\" or {example}"
                ));
            };

            let chosen: Vec<_> =
                functions().filter(|(_, function)| function.name == name).take(1).collect();
            if chosen.is_empty() {
                return refused(format!("names the function {name:?}, which is not in `tools`"));
            }
            chosen
        }
    };

    match chosen.len() {
        0 => refused("needs a function in `tools`".to_owned()),
        1..=FUNCTIONS_MAX => Ok(chosen),
        count => refused(format!("forces one of {count} functions; give at most {FUNCTIONS_MAX}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tools() -> Vec<Tool> {
        serde_json::from_value(json!([
            {"type": "web_search"},
            {"type": "function", "function": {"name": "f"}},
            {"type": "function", "function": {"name": "g", "parameters": {"type": "object"}}},
        ]))
        .unwrap()
    }

    #[test]
    fn a_forced_choice_selects_functions() {
        for (choice, expected) in [
            (None, vec![]),
            (Some(json!(null)), vec![]),
            (Some(json!("none")), vec![]),
            (Some(json!("auto")), vec![]),
            (Some(json!("required")), vec![(1, "f"), (2, "g")]),
            (Some(json!({"type": "function", "function": {"name": "g"}})), vec![(2, "g")]),
        ] {
            let tools = tools();
            let chosen = forced(&tools, choice.as_ref()).unwrap();
            let chosen: Vec<_> =
                chosen.iter().map(|(place, function)| (*place, function.name.as_str())).collect();
            assert_eq!(chosen, expected, "{choice:?}");
        }
    }

    #[test]
    fn a_choice_without_its_function_is_refused() {
        let tools = tools();
        for (tools, choice, part) in [
            (&tools[..], json!("always"), "\"required\""),
            (&tools[..], json!({"type": "allowed_tools"}), "NAME"),
            (&tools[..], json!({"type": "function", "function": {"name": "h"}}), "\"h\""),
            (&tools[..1], json!("required"), "`tools`"),
            (&[], json!("required"), "`tools`"),
        ] {
            let error = forced(tools, Some(&choice)).unwrap_err();
            assert_eq!(error.body().error.param.as_deref(), Some("tool_choice"));
            assert!(error.to_string().contains(part), "{part:?} is missing in {error}");
        }
    }
}
