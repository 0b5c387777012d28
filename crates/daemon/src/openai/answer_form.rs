//! The form in which a client wants the answer: a text, JSON of a schema, or a function call.

use prime_problems::{ProblemError, Schema};
use serde_json::{Map, Value, json};

use super::tools::Function;
use crate::error::ApiError;

/// A function that the answer may be a call of.
#[derive(Debug)]
struct Callable {
    name: String,
    description: String,
    parameters: Value,
    check: Schema,
}

#[derive(Debug)]
enum Form {
    Text,
    Json(Value, Box<Schema>),
    Call(Vec<Callable>),
}

/// The form of an answer.
#[derive(Debug)]
pub struct AnswerForm(Form);

/// An answer in its form.
#[derive(Debug, PartialEq, Eq)]
pub enum Formed {
    Text(String),
    /// A function's name and its arguments as JSON.
    Call {
        name: String,
        arguments: String,
    },
}

fn invalid(field: &str, error: &ProblemError) -> ApiError {
    ApiError::bad_field(field, format!("{}; {}", error.problem, error.remedy))
}

/// The schema with its references moved below `pointer`, where it will be part of another one.
fn rebased(schema: &Value, pointer: &str) -> Value {
    match schema {
        Value::Array(values) => values.iter().map(|value| rebased(value, pointer)).collect(),
        Value::Object(fields) => {
            let moved = fields.iter().map(|(name, value)| {
                match value.as_str().and_then(|to| to.strip_prefix('#')) {
                    Some(rest) if name == "$ref" => {
                        (name.clone(), Value::from(format!("#{pointer}{rest}")))
                    }
                    _ => (name.clone(), rebased(value, pointer)),
                }
            });
            Value::Object(moved.collect::<Map<_, _>>())
        }
        other => other.clone(),
    }
}

impl AnswerForm {
    pub const TEXT: Self = Self(Form::Text);

    /// JSON that follows a schema, which is in the request's `field`.
    ///
    /// # Errors
    /// 400: it is not a schema.
    pub fn json(field: &str, schema: Value) -> Result<Self, ApiError> {
        let check = Schema::read(field, &schema).map_err(|error| invalid(field, &error))?;
        Ok(Self(Form::Json(schema, Box::new(check))))
    }

    /// A call of one of these functions, each with its place in `tools`.
    ///
    /// # Errors
    /// 400: the parameters of one are not a schema.
    pub fn call(functions: &[(usize, &Function)]) -> Result<Self, ApiError> {
        let callable = |(place, function): &(usize, &Function)| {
            let field = format!("tools[{place}].function.parameters");
            let parameters = function
                .parameters
                .clone()
                .map_or_else(|| json!({"type": "object"}), Value::Object);

            let check =
                Schema::read(&field, &parameters).map_err(|error| invalid(&field, &error))?;
            let description = function.description.clone().unwrap_or_default();
            Ok(Callable { name: function.name.clone(), description, parameters, check })
        };

        functions
            .iter()
            .map(callable)
            .collect::<Result<_, _>>()
            .map(|functions| Self(Form::Call(functions)))
    }

    /// The JSON Schema of the line with the answer to a problem in words; `None` for any text.
    pub fn schema(&self) -> Option<Value> {
        match &self.0 {
            Form::Text => None,
            Form::Json(schema, _) => Some(schema.clone()),
            Form::Call(functions) if functions.len() == 1 => {
                functions.first().map(|only| only.parameters.clone())
            }
            Form::Call(functions) => {
                let calls = functions.iter().enumerate().map(|(place, function)| {
                    let arguments = rebased(
                        &function.parameters,
                        &format!("/anyOf/{place}/properties/arguments"),
                    );
                    json!({
                        "type": "object",
                        "properties": {"name": {"const": function.name}, "arguments": arguments},
                        "required": ["name", "arguments"],
                        "additionalProperties": false,
                    })
                });
                Some(json!({ "anyOf": calls.collect::<Vec<_>>() }))
            }
        }
    }

    /// What the statement of a problem in words needs in addition, so that its answer is a call.
    pub fn instructions(&self) -> Option<String> {
        let Form::Call(functions) = &self.0 else { return None };
        let described = functions.iter().map(|function| match function.description.as_str() {
            "" => format!("`{}`", function.name),
            description => format!("`{}`: {description}", function.name),
        });

        let described = described.collect::<Vec<_>>().join("\n");
        Some(if functions.len() == 1 {
            format!("The answer is the arguments of a call of this function, as JSON:\n{described}")
        } else {
            format!(
                "The answer is a call of one of these functions, as JSON with its `name` and its `arguments`:\n{described}"
            )
        })
    }

    /// Puts an answer into the form.
    ///
    /// # Errors
    /// Why it does not have the form.
    pub fn of(&self, answer: &Value) -> Result<Formed, String> {
        match &self.0 {
            Form::Text => Ok(Formed::Text(match answer {
                Value::String(text) => text.clone(),
                answer => answer.to_string(),
            })),
            Form::Json(_, check) => check.check(answer).map(|()| Formed::Text(answer.to_string())),
            Form::Call(functions) => {
                let call = |function: &Callable, arguments: &Value| {
                    function.check.check(arguments)?;
                    Ok(Formed::Call {
                        name: function.name.clone(),
                        arguments: arguments.to_string(),
                    })
                };
                // The answer to a problem in words names its function; the benchmark's tasks know
                // none.
                let named = functions
                    .iter()
                    .find(|function| functions.len() > 1 && answer["name"] == function.name);

                if let Some(called) =
                    named.and_then(|function| call(function, answer.get("arguments")?).ok())
                {
                    return Ok(called);
                }
                // An answer that names no function may be the arguments alone. If there are several
                // reasons, the last is reported.
                let mut refused = Err("there is no function".to_owned());
                for function in functions {
                    match call(function, answer) {
                        Err(reason) => refused = Err(format!("`{}`: {reason}", function.name)),
                        called => return called,
                    }
                }
                refused
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn functions() -> Vec<Function> {
        let with = |name, parameters: Value| json!({"name": name, "description": "does", "parameters": parameters});
        let leaf = json!({"type": "integer"});
        let sum = json!({
            "type": "object", "properties": {"sum": {"$ref": "#/$defs/n"}}, "required": ["sum"], "$defs": {"n": leaf},
        });

        let list =
            json!({"type": "object", "properties": {"of": {"type": "array"}}, "required": ["of"]});
        serde_json::from_value(json!([with("add", sum), with("list", list)])).unwrap()
    }

    fn call(functions: &[Function]) -> AnswerForm {
        AnswerForm::call(&functions.iter().enumerate().collect::<Vec<_>>()).unwrap()
    }

    fn called(name: &str, arguments: &str) -> Formed {
        Formed::Call { name: name.to_owned(), arguments: arguments.to_owned() }
    }

    #[test]
    fn a_text_is_plain_and_everything_else_is_json() {
        let text = |answer: Value| AnswerForm::TEXT.of(&answer).unwrap();
        assert_eq!(text(json!("a \"b\"")), Formed::Text("a \"b\"".to_owned()));
        assert_eq!(
            text(json!({"b": [1], "a": null})),
            Formed::Text(r#"{"b":[1],"a":null}"#.to_owned())
        );

        let form = AnswerForm::json("f", json!({"type": ["string", "integer"]})).unwrap();
        assert_eq!(
            form.of(&json!("x")),
            Ok(Formed::Text("\"x\"".to_owned())),
            "a client parses it"
        );
        assert!(form.of(&json!([])).unwrap_err().contains("[]"));
    }

    #[test]
    fn a_call_of_one_function_is_its_arguments() {
        let functions = functions();

        let form = call(&functions[..1]);
        assert_eq!(form.schema(), functions[0].parameters.clone().map(Value::Object));
        assert!(form.instructions().unwrap().contains("`add`: does"));
        assert_eq!(form.of(&json!({"sum": 4})), Ok(called("add", r#"{"sum":4}"#)));
        assert!(form.of(&json!({"sum": "4"})).unwrap_err().contains("`add`: at /sum"), "strict");
    }

    #[test]
    fn a_call_of_several_functions_says_which() {
        let form = call(&functions());
        let problem = json!({"statement": "2 + 2?", "input": {}, "steps": "single", "answer": {"schema": form.schema()}});

        assert!(prime_problems::Custom::read(&problem).is_ok(), "references still lead somewhere");

        let line = Schema::read("line", &form.schema().unwrap()).unwrap();
        assert!(line.check(&json!({"name": "add", "arguments": {"sum": 4}})).is_ok());
        assert!(line.check(&json!({"name": "add", "arguments": {"of": []}})).is_err());
        assert_eq!(
            form.of(&json!({"name": "add", "arguments": {"sum": 4}})),
            Ok(called("add", r#"{"sum":4}"#))
        );

        assert_eq!(
            form.of(&json!({"of": []})),
            Ok(called("list", r#"{"of":[]}"#)),
            "a task's own answer"
        );
        assert!(form.of(&json!({"name": "add", "arguments": {}})).is_err());
    }

    #[test]
    fn a_wrong_schema_names_its_field() {
        let wrong: Function =
            serde_json::from_value(json!({"name": "f", "parameters": {"type": "x"}})).unwrap();
        let error = AnswerForm::call(&[(3, &wrong)]).unwrap_err();
        assert_eq!(error.body().error.param.as_deref(), Some("tools[3].function.parameters"));
    }
}
