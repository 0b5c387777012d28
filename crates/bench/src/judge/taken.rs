//! Extracts the parts that are judged from a submission.

use std::borrow::Cow;

use serde_json::Value;

use super::actions::ActionList;
use super::submission::Body;
use crate::output::line::action_line;
use crate::output::value::exact;
use crate::output::{Found, Output, lines, read};
use crate::tasks::{Spec, pattern};

pub(super) fn is_action(spec: &Spec, line: &str) -> bool {
    pattern::parse(spec.actions, line).is_some()
}

/// Takes actions and answer out of a model's free text.
pub fn read_output(text: &str, spec: &Spec) -> Output {
    read(text, |line| is_action(spec, line))
}

/// A submission in the form in which it is judged.
#[derive(Default)]
pub(super) struct Taken<'b> {
    pub actions: Option<Cow<'b, ActionList>>,
    pub answer: Found<Value>,
    pub unreadable: Option<String>,
}

/// A submitted list in the form that lines of a text have.
fn plain<'b>(list: &'b ActionList, spec: &Spec) -> Cow<'b, ActionList> {
    // Lists are nearly always clean, and may have millions of lines.
    if list.iter().all(|line| is_action(spec, line)) {
        return Cow::Borrowed(list);
    }
    let mut plain = ActionList::default();
    for line in list.iter() {
        plain.push(&action_line(line, |line| is_action(spec, line)).0);
    }
    Cow::Owned(plain)
}

pub(super) fn taken<'b>(body: &'b Body, spec: &Spec) -> Taken<'b> {
    let mut taken = match body {
        Body::Text(text) => {
            let output = read_output(text, spec);
            let actions = match output.actions {
                Found::Absent => None,
                // Its lines are judged, to name the place and the kind of the error.
                Found::Unreadable(block) => Some(lines(&block, |line| is_action(spec, line)).0),
                Found::Read(list) => Some(list),
            };
            Taken { actions: actions.map(Cow::Owned), answer: output.answer, unreadable: None }
        }
        Body::Structured { actions, answer } => Taken {
            actions: actions.as_ref().map(|list| plain(list, spec)),
            answer: match answer {
                // A null answer counts as none: that of the trace is taken.
                None | Some(Value::Null) => Found::Absent,
                Some(answer) if answer.is_object() => Found::Read(answer.clone()),
                Some(other) => Found::Unreadable(other.to_string()),
            },
            unreadable: None,
        },
        Body::Unreadable(reason) => Taken { unreadable: Some(reason.clone()), ..Taken::default() },
    };

    if let Found::Read(answer) = &mut taken.answer
        && let Cow::Owned(exact) = exact(answer)
    {
        *answer = exact;
    }
    taken
}
