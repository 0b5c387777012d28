//! Looks at a module before it is taken as a task: whether it is one, what it declares, and whether
//! it keeps to the protocol on the example that it declares.

use serde_json::{Value, json};

use super::answer::{Asked, Outcome, Rules, read};
use super::declaration::{Glance, is_built_in};
use super::limits::UPLOADED_DECLARATION_BYTES_MAX;
use super::module::{Compiled, Fault};
use super::uploaded::UploadedLimits;
use crate::Failure;

/// The name under which a module is asked for the one that it declares.
const NO_NAME: &str = "task";

/// Checks a module that a client wants to upload, with the limits that its answers will have, and
/// returns the name that it declares. If it declares an example, it is asked for its start and, if
/// that has choices, for the step of the first one, each twice. Nothing of the module is kept.
/// Blocks for as long as the fuel of five answers lasts.
///
/// # Errors
/// What is wrong with it, as a clause whose subject is the module.
pub fn probe_module(bytes: &[u8], limits: &UploadedLimits) -> Result<String, String> {
    probe(bytes, limits).map_err(|fault| fault.reason)
}

fn refused(reason: impl Into<String>) -> Fault {
    Fault::new(Failure::Refused, reason)
}

fn probe(bytes: &[u8], limits: &UploadedLimits) -> Result<String, Fault> {
    let module = Compiled::new(bytes, limits.of_module())?;
    let declared = module.declared(NO_NAME)?;
    let length = declared.to_string().len();
    if length > UPLOADED_DECLARATION_BYTES_MAX {
        return Err(refused(format!(
            "its declaration has {length} bytes; an uploaded one has at most \
             {UPLOADED_DECLARATION_BYTES_MAX}"
        )));
    }
    let wrong = |fault: String| refused(format!("what it declares of its task is wrong: {fault}"));
    let glance = Glance::of(&declared).map_err(wrong)?;
    let rules = |name: &str| glance.rule(name);

    if let Some(input) = &glance.example {
        let state = ask(&module, &rules, &json!({"id": 1, "input": input}), Asked::Start)
            .map_err(|fault| at("the start of its example", fault))?;
        let Outcome::State(start) = state else {
            return Err(refused("it refuses the input of its own example"));
        };
        if let Some(line) = start.choices.iter().flatten().next() {
            let step = json!({"id": 1, "input": input, "state": start.value, "line": line});
            let what =
                format!("the step `{}` of its example", prime_printable::printable_line(line));
            match ask(&module, &rules, &step, Asked::Step).map_err(|fault| at(&what, fault))? {
                Outcome::State(_) => {}
                Outcome::Refused(reason) => {
                    return Err(refused(format!(
                        "it refuses {what}, which it lists among the choices: {reason}"
                    )));
                }
            }
        }
    }
    Ok(glance.name)
}

fn at(what: &str, mut fault: Fault) -> Fault {
    fault.reason = format!("asked for {what}, {}", fault.reason);
    fault
}

/// The module's answer, which must be the same twice.
fn ask(
    module: &Compiled,
    rules: &Rules<'_>,
    request: &Value,
    asked: Asked,
) -> Result<Outcome, Fault> {
    let mut line = request.to_string();
    line.push('\n');
    let answer = || {
        read(&module.answer(line.as_bytes())?, asked, rules)
            .map_err(|bad| Fault::new(bad.failure, bad.reason))
    };
    let (first, again) = (answer()?, answer()?);
    if first.digest == again.digest {
        Ok(first.outcome)
    } else {
        Err(Fault::new(Failure::Inconsistent, "it answered differently when it was asked again"))
    }
}

/// Why a task may not have this name; `None` if it may.
pub fn name_fault(name: &str) -> Option<String> {
    if !prime_settings::is_name(name) {
        Some(format!(
            "{name:?} is not a name: write up to 64 lower-case letters, digits, `-` and `_`"
        ))
    } else if is_built_in(name) {
        Some(format!("`{name}` is the name of a built-in task: give the task another one"))
    } else {
        None
    }
}
