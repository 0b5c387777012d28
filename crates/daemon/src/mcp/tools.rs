//! The tools: their names, what they are for, and the schemas of their arguments.

use std::sync::Arc;

use prime_bench::prompts::Style;
use prime_bench::tasks::{BASE_SEED, Category, Difficulty, INDEX_LIMIT};
use prime_protocol::ApprovalVerdict;
use rmcp::model::{JsonObject, ToolAnnotations};
use serde_json::{Map, Value, json};

use super::backend::{EVENTS_MAX, WAIT_MAX};
use crate::openapi::json_schema;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tool {
    ListTasks,
    DescribeTask,
    MakeInstance,
    JudgeStep,
    CheckAnswer,
    StartRun,
    ListRuns,
    ReadRun,
    WatchRun,
    CancelRun,
    RetryRun,
    ListApprovals,
    DecideApproval,
}

/// An object's schema, with these properties and no others.
fn object(properties: &Value, required: &[&str]) -> Value {
    json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false})
}

/// The properties that name an instance of the benchmark, or hold an input.
fn instance() -> Map<String, Value> {
    let levels: Vec<_> = Difficulty::ALL.iter().map(|level| level.name()).collect();
    let properties = json!({
        "task": {"type": "string", "description": "Slug of the task, such as bubble-sort; list_tasks has them"},
        "difficulty": {"enum": levels},
        "index": {"type": "integer", "minimum": 0, "maximum": INDEX_LIMIT - 1, "description": "Number of the instance"},
        "base_seed": {
            "type": "integer", "minimum": 0,
            "description": format!("{BASE_SEED}, the default, is the benchmark; any other gives fresh instances"),
        },
        "input": {"type": "object", "description": "The task's own input, instead of difficulty, index and base_seed"},
    });
    let Value::Object(properties) = properties else { return Map::new() };
    properties
}

fn with(mut properties: Map<String, Value>, more: Value, required: &[&str]) -> Value {
    if let Value::Object(more) = more {
        properties.extend(more);
    }
    object(&Value::Object(properties), required)
}

impl Tool {
    pub const ALL: [Self; 13] = [
        Self::ListTasks,
        Self::DescribeTask,
        Self::MakeInstance,
        Self::JudgeStep,
        Self::CheckAnswer,
        Self::StartRun,
        Self::ListRuns,
        Self::ReadRun,
        Self::WatchRun,
        Self::CancelRun,
        Self::RetryRun,
        Self::ListApprovals,
        Self::DecideApproval,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Self::ListTasks => "list_tasks",
            Self::DescribeTask => "describe_task",
            Self::MakeInstance => "make_instance",
            Self::JudgeStep => "judge_step",
            Self::CheckAnswer => "check_answer",
            Self::StartRun => "start_run",
            Self::ListRuns => "list_runs",
            Self::ReadRun => "read_run",
            Self::WatchRun => "watch_run",
            Self::CancelRun => "cancel_run",
            Self::RetryRun => "retry_run",
            Self::ListApprovals => "list_approvals",
            Self::DecideApproval => "decide_approval",
        }
    }

    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|tool| tool.name() == name)
    }

    fn description(self) -> &'static str {
        match self {
            Self::ListTasks => "List the tasks of PRIME-Bench: slug, title, category, sizes.",
            Self::DescribeTask => {
                "Describe a task: the problem, its algorithm, the forms of its action lines, the constraints that every \
                 step must satisfy, the fields of input, answer and state, a worked example."
            }
            Self::MakeInstance => {
                "Make an instance: its input, its first state and a prompt that asks for the whole solution."
            }
            Self::JudgeStep => {
                "Propose one action line in a state of an instance and have it judged. Returns whether it applies, the \
                 constraints that it breaks (`score` 0: none), the state after it, and at the end of the trace the answer. \
                 Without `state` and `actions` it is the first step."
            }
            Self::CheckAnswer => "Check a final answer to an instance: `right` is true or false.",
            Self::StartRun => {
                "Start a run, in which the configured agents solve an instance or a problem of your own, every step \
                 verified. Returns its record at once; follow it with watch_run."
            }
            Self::ListRuns => "List runs, newest first.",
            Self::ReadRun => {
                "Read a run's record: status, answer, whether it is verified, steps, tokens."
            }
            Self::WatchRun => {
                "Wait for events of a run (steps with verdicts, ends of trajectories, votes), and return them with its \
                 record. Call it again with the returned `after` until run.status says that it is over."
            }
            Self::CancelRun => "End a run with what is committed.",
            Self::RetryRun => {
                "Try a run again that is over and not verified: a new run of the same request with another seed, without \
                 the lines that were rejected. Returns its record at once; follow it with watch_run."
            }
            Self::ListApprovals => {
                "List the steps that wait for approval: the run, the number of the approval, the proposed line, its score, \
                 what happens at the deadline."
            }
            Self::DecideApproval => {
                "Decide about a step that waits: accept commits the line, reject refuses it with a reason for the executor, \
                 edit puts another line in its place, which is verified, end ends the run. The first decision stands."
            }
        }
    }

    fn schema(self) -> Value {
        let run = json!({"type": "string", "description": "The run's id"});
        match self {
            Self::ListTasks => {
                let categories: Vec<_> =
                    Category::ALL.iter().map(|category| category.name()).collect();
                object(&json!({"category": {"enum": categories}}), &[])
            }
            Self::DescribeTask => {
                let mut task = instance();
                task.retain(|name, _| name == "task");
                with(task, json!({}), &["task"])
            }
            Self::MakeInstance => {
                with(instance(), json!({"style": {"enum": Style::NAMES}}), &["task"])
            }
            Self::JudgeStep => {
                let more = json!({
                    "state": {"description": "The state before the line, as judge_step or make_instance returned it"},
                    "actions": {
                        "type": "array", "items": {"type": "string"},
                        "description": "All lines before it, instead of `state`; they are carried out, not judged",
                    },
                    "action": {"type": "string", "description": "The line to judge"},
                    "kinds": {
                        "type": "array", "minItems": 1,
                        "items": {"enum": ["format", "invariant", "transition", "terminal"]},
                        "description": "Kinds of constraints; all but `transition` by default, which knows the algorithm's next step",
                    },
                });
                with(instance(), more, &["task", "action"])
            }
            Self::CheckAnswer => {
                let more =
                    json!({"answer": {"type": "object", "description": "The answer's fields"}});
                with(instance(), more, &["task", "answer"])
            }
            Self::StartRun => json_schema("RunRequest"),
            Self::ListRuns => {
                let statuses = json_schema("Status")["enum"].clone();
                let properties = json!({
                    "status": {"enum": statuses},
                    "task": {"type": "string"},
                    "needs_review": {"type": "boolean"},
                    "label": {"type": "string", "description": "The name of a label, or NAME:VALUE"},
                    "key": {"type": "string", "description": "Runs of this key, `*` of all; of others for an admin's key only"},
                    "after": {"type": "string", "description": "`next` of the previous page"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
                });
                object(&properties, &[])
            }
            Self::ReadRun | Self::CancelRun => object(&json!({ "run": run }), &["run"]),
            Self::RetryRun => {
                let properties = json!({
                    "run": run,
                    "seed": {"type": "integer", "minimum": 0, "description": "Seed of the new run; random by default"},
                    "exclude": {"type": "boolean", "description": "false: leave out nothing of what was rejected"},
                    "force": {"type": "boolean", "description": "true: try again what is verified"},
                });
                object(&properties, &["run"])
            }
            Self::ListApprovals => {
                let properties = json!({
                    "key": {"type": "string", "description": "Those of this key's runs, `*` of all; of others for an admin's key only"},
                    "after": {"type": "integer", "minimum": 0, "description": "`next` of the previous page"},
                    "limit": {"type": "integer", "minimum": 1, "maximum": 1000},
                });
                object(&properties, &[])
            }
            Self::DecideApproval => {
                let properties = json!({
                    "run": run,
                    "number": {"type": "integer", "minimum": 1, "description": "The number of the approval in its run"},
                    "verdict": {"enum": ApprovalVerdict::ALL.map(ApprovalVerdict::name)},
                    "reason": {"type": "string", "description": "For the record; with reject also for the executor"},
                    "line": {"type": "string", "description": "With edit: the line that takes the place of the other"},
                });
                object(&properties, &["run", "number", "verdict"])
            }
            Self::WatchRun => {
                let properties = json!({
                    "run": run,
                    "after": {"type": "integer", "minimum": 0, "description": "Only events after this number"},
                    "wait_ms": {
                        "type": "integer", "minimum": 0, "maximum": u64::try_from(WAIT_MAX.as_millis()).unwrap_or(u64::MAX),
                        "description": format!("Longest wait for the next event; up to {EVENTS_MAX} are returned"),
                    },
                });
                object(&properties, &["run"])
            }
        }
    }

    /// What a client is told about the tool.
    pub fn page(self) -> rmcp::model::Tool {
        let schema = match self.schema() {
            Value::Object(schema) => schema,
            _ => JsonObject::new(),
        };

        let reads = !matches!(
            self,
            Self::StartRun | Self::CancelRun | Self::RetryRun | Self::DecideApproval
        );
        let hints = ToolAnnotations::new()
            .read_only(reads)
            .destructive(matches!(self, Self::CancelRun | Self::DecideApproval))
            .open_world(false);

        rmcp::model::Tool::new(self.name(), self.description(), Arc::new(schema))
            .with_annotations(hints)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_tool_has_a_name_of_its_own_and_a_schema_that_is_whole() {
        for tool in Tool::ALL {
            assert_eq!(Tool::named(tool.name()), Some(tool));
            let schema = tool.schema();
            assert_eq!(schema["type"], "object", "{}", tool.name());
            for required in schema["required"].as_array().into_iter().flatten() {
                assert!(
                    schema["properties"][required.as_str().unwrap()].is_object(),
                    "{}: {required}",
                    tool.name()
                );
            }
            assert!(jsonschema::validator_for(&schema).is_ok(), "{}: {schema}", tool.name());
        }
    }

    #[test]
    fn arguments_of_a_run_are_those_of_the_route() {
        let schema = jsonschema::validator_for(&Tool::StartRun.schema()).unwrap();
        assert!(
            schema.is_valid(
                &json!({"task": "n-queens", "difficulty": "easy", "budget": {"steps": 5}})
            )
        );
        assert!(schema.is_valid(
            &json!({"problem": {"statement": "x", "input": {}, "answer": {"schema": {}}}})
        ));

        assert!(!schema.is_valid(&json!({"task": 3})));
        assert!(!schema.is_valid(&json!({"task": "n-queens", "budget": {"steps": 0}})));
    }
}
