//! The protocol's handler: names itself, lists the tools, and carries out their calls.

use std::sync::Arc;

use prime_agent_set::task_program::TaskPrograms;
use prime_bench::prompts::{Components, Style, view, visible, whole};
use prime_bench::tasks::{self, Category, Spec};
use rmcp::model::{
    CallToolRequestParams, CallToolResponse, CallToolResult, ContentBlock, CustomRequest,
    CustomResult, ErrorCode, Implementation, ListToolsResult, PaginatedRequestParams,
    ServerCapabilities, ServerConfig,
};
use rmcp::service::RequestContext;
use rmcp::{ErrorData, RoleServer, ServerHandler};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::backend::{Backend, ToolError, watch};
use super::tools::Tool;
use crate::catalog::{OWN, STARTED_WITHIN, declared};
use crate::guard::json as from_json;
use prime_service::requests::{Instance, RunRequest};

/// Methods with parameters, and what the parameters must be. rmcp mistakes a request whose
/// parameters it cannot read for one with an unknown method.
const PARAMETERS: [(&str, &str); 2] = [
    (
        "initialize",
        "`protocolVersion` (a string), `capabilities` (an object) and `clientInfo` (an object with `name` and `version`)",
    ),
    ("tools/call", "`name`, a string, and optionally `arguments`, an object"),
];

/// What a client may tell its model about all tools.
fn instructions() -> String {
    format!(
        "PRIME-Bench: {} algorithmic tasks that are solved one action line at a time, with a verifier for every line. To \
         solve an instance yourself: describe_task, make_instance, then judge_step for each line (pass the lines so far as \
         `actions`, or the last `state`) until it says `ended`, then check_answer. To have it solved: start_run, watch_run, \
         read_run.",
        tasks::all().count()
    )
}

/// The tools, carried out by a backend.
#[derive(Clone)]
pub struct Server {
    backend: Arc<dyn Backend>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ListTasks {
    category: Option<String>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct TaskName {
    task: String,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RunName {
    run: String,
}

/// Reads arguments as the bodies of the routes are read.
fn read<T: DeserializeOwned>(arguments: &Map<String, Value>) -> Result<T, ToolError> {
    let text = serde_json::to_vec(arguments).expect("invariant: JSON values serialise");
    Ok(from_json(&text)?)
}

/// An id that may stand in a path.
fn run_name(name: &str) -> Result<&str, ToolError> {
    let is_plain =
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
    if is_plain {
        Ok(name)
    } else {
        Err(ToolError(format!("field `run`: {name:?} is not the id of a run; list_runs has them")))
    }
}

/// The run and the number of an approval, and the decision: the other arguments.
fn approval(
    mut arguments: Map<String, Value>,
) -> Result<(String, u32, Map<String, Value>), ToolError> {
    let missing = |name: &str| ToolError(format!("field `{name}` is missing"));
    let run = arguments.remove("run").ok_or_else(|| missing("run"))?;
    let run = run.as_str().ok_or_else(|| ToolError("field `run` is not a string".to_owned()))?;
    let number = arguments.remove("number").ok_or_else(|| missing("number"))?;
    let counted = number.as_u64().and_then(|number| u32::try_from(number).ok());
    let number = counted.ok_or_else(|| {
        ToolError(format!(
            "field `number`: {number} is no number of an approval; list_approvals has them"
        ))
    })?;
    Ok((run.to_owned(), number, arguments))
}

/// Lists the tasks; those of programs have the category `own`. Blocks while programs start.
fn list_tasks(own: &TaskPrograms, arguments: &ListTasks) -> Result<Value, ToolError> {
    let is_own = arguments.category.as_deref() == Some(OWN);
    let named = arguments.category.as_deref().filter(|_| !is_own);
    let category = named.map(str::parse::<Category>).transpose();
    let category = category.map_err(|error| ToolError(format!("field `category`: {error}")))?;

    let chosen = tasks::all()
        .map(|task| task.spec())
        .filter(|spec| !is_own && category.is_none_or(|only| spec.category == only));

    let built_in = chosen.map(|spec| {
        let [easy, medium, hard] = spec.sizes;
        json!({
            "task": spec.slug, "title": spec.title, "category": spec.category.name(),
            "sizes": {"easy": easy, "medium": medium, "hard": hard},
        })
    });
    let own = match category {
        None => declared(own).map_err(|error| ToolError(error.to_string()))?,
        Some(_) => Vec::new(),
    };
    let own = own.into_iter().map(|spec| {
        json!({"task": spec.slug, "title": spec.title, "category": OWN, "input": example(spec)})
    });
    Ok(json!({ "tasks": built_in.chain(own).collect::<Vec<_>>() }))
}

/// An input to begin with, if the program has declared one.
fn example(spec: &Spec) -> Value {
    serde_json::from_str(spec.page.example.input).unwrap_or_default()
}

fn describe_task(own: &TaskPrograms, arguments: &TaskName) -> Result<Value, ToolError> {
    let own = own.get(&arguments.task).map_err(|error| ToolError(error.to_string()))?;
    if let Some(program) = own {
        let spec = program
            .spec(STARTED_WITHIN)
            .map_err(|error| ToolError(format!("field `task`: {error}")))?;
        let mut page =
            serde_json::to_value(view(spec)).map_err(|error| ToolError(error.to_string()))?;
        (page["category"], page["example"]) = (json!(OWN), json!({"input": example(spec)}));
        return Ok(page);
    }
    let task = tasks::find(&arguments.task)
        .map_err(|error| ToolError(format!("field `task`: {error}")))?;
    serde_json::to_value(view(task.spec())).map_err(|error| ToolError(error.to_string()))
}

/// An instance, as an executor may see it. May compute for milliseconds.
fn make_instance(
    own: &TaskPrograms,
    mut arguments: Map<String, Value>,
) -> Result<Value, ToolError> {
    let style = match arguments.remove("style") {
        None => Style::Structured(Components::ALL),
        Some(Value::String(name)) => {
            name.parse().map_err(|error| ToolError(format!("field `style`: {error}")))?
        }
        Some(other) => return Err(ToolError(format!("field `style`: {other} is not a string"))),
    };

    let request: RunRequest = read(&arguments)?;
    let Instance { name: id, problem, .. } = Instance::of(own, &request)?;
    let spec = problem.spec();

    if !style.suits(spec.category) {
        return Err(ToolError(format!(
            "field `style`: {style} is for sorting, and {} is not a sort",
            spec.slug
        )));
    }

    Ok(json!({
        "id": id, "task": spec.slug,
        "input": visible(spec, problem.input()),
        "state": problem.start().state(),
        "prompt": whole(problem.as_ref(), style),
    }))
}

impl Server {
    /// A handler that asks `backend` for whatever needs runs or the judge.
    pub fn new(backend: Arc<dyn Backend>) -> Self {
        Self { backend }
    }

    async fn call(&self, tool: Tool, arguments: Map<String, Value>) -> Result<Value, ToolError> {
        match tool {
            Tool::ListTasks | Tool::DescribeTask | Tool::MakeInstance => {
                let own = self.backend.own_tasks();
                // A program may have to answer first, and an instance may take milliseconds.
                let made = tokio::task::spawn_blocking(move || match tool {
                    Tool::ListTasks => list_tasks(&own, &read(&arguments)?),
                    Tool::DescribeTask => describe_task(&own, &read(&arguments)?),
                    _ => make_instance(&own, arguments),
                });
                made.await.map_err(|_| {
                    ToolError("the task could not answer: please report it".to_owned())
                })?
            }
            Tool::JudgeStep | Tool::CheckAnswer => {
                let field = if tool == Tool::JudgeStep { "action" } else { "answer" };
                if !arguments.contains_key(field) {
                    return Err(ToolError(format!("field `{field}` is missing")));
                }
                self.backend.verify(arguments).await
            }
            Tool::StartRun => self.backend.start(arguments).await,
            Tool::ListRuns => self.backend.list(arguments).await,
            Tool::ReadRun => self.backend.read(run_name(&read::<RunName>(&arguments)?.run)?).await,
            Tool::CancelRun => {
                self.backend.cancel(run_name(&read::<RunName>(&arguments)?.run)?).await
            }
            Tool::RetryRun => {
                let mut arguments = arguments;
                let run = Map::from_iter(arguments.remove_entry("run"));
                let RunName { run } = read(&run)?;
                self.backend.retry(run_name(&run)?, arguments).await
            }
            Tool::ListApprovals => self.backend.approvals(arguments).await,
            Tool::DecideApproval => {
                let (run, number, decision) = approval(arguments)?;
                self.backend.decide(run_name(&run)?, number, decision).await
            }
            Tool::WatchRun => {
                let wanted = read(&arguments)?;
                let watched = watch(&self.backend, &wanted).await?;
                serde_json::to_value(watched).map_err(|error| ToolError(error.to_string()))
            }
        }
    }
}

impl ServerHandler for Server {
    fn get_info(&self) -> ServerConfig {
        let program = Implementation::new("prime-agents", env!("CARGO_PKG_VERSION"));
        ServerConfig::new(ServerCapabilities::builder().enable_tools().build())
            .with_server_info(program)
            .with_instructions(instructions())
    }

    async fn list_tools(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListToolsResult, ErrorData> {
        let tools = Tool::ALL.iter().map(|tool| tool.page()).collect();
        Ok(ListToolsResult { tools, ..ListToolsResult::default() })
    }

    async fn call_tool(
        &self,
        request: CallToolRequestParams,
        _: RequestContext<RoleServer>,
    ) -> Result<CallToolResponse, ErrorData> {
        let Some(tool) = Tool::named(&request.name) else {
            let known: Vec<_> = Tool::ALL.iter().map(|tool| tool.name()).collect();
            let message =
                format!("there is no tool {:?}; there are {}", request.name, known.join(", "));
            return Err(ErrorData::invalid_params(message, None));
        };
        // A failed call is a result for the model, which may correct its arguments; only an unknown
        // tool is an error of the protocol.
        let result = match self.call(tool, request.arguments.unwrap_or_default()).await {
            Ok(value) => CallToolResult::structured(value),
            Err(error) => CallToolResult::error(vec![ContentBlock::text(error.to_string())]),
        };

        Ok(result.into())
    }

    async fn on_custom_request(
        &self,
        CustomRequest { method, .. }: CustomRequest,
        _: RequestContext<RoleServer>,
    ) -> Result<CustomResult, ErrorData> {
        match PARAMETERS.iter().find(|(known, _)| *known == method) {
            Some((_, expected)) => {
                let message = format!("the parameters of {method} must be: {expected}");
                Err(ErrorData::invalid_params(message, None))
            }
            None => Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, method, None)),
        }
    }
}
