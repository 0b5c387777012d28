//! Routes that list the available tasks and agents, and those by which clients change their own
//! tasks.

use std::time::Duration;

use actix_web::{HttpRequest, HttpResponse, web};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use super::background::in_background;
use super::error::{ApiError, method_not_allowed};
use super::parameters::parse_query;
use super::request_context::owner_of;
use super::state::State;
use super::uploads::{UploadedModule, delete, modules_of, upload};
use prime_agent_set::task_program::TaskPrograms;
use prime_agent_set::{AgentError, RecordedAgent};
use prime_bench::tasks::{self, AnyTask, Spec};
use prime_service::app::App;
use prime_service::requests::TaskSlug;
use prime_settings::{CoordinatorAgent, ExecutorAgent, RoleOptions, VerifierAgent};

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/tasks")
                .route(web::get().to(list))
                .route(web::post().to(upload))
                .default_service(web::to(|| method_not_allowed("GET, POST"))),
        )
        .service(
            web::resource("/v1/tasks/{slug}")
                .route(web::get().to(show))
                .route(web::delete().to(delete))
                .default_service(web::to(|| method_not_allowed("DELETE, GET"))),
        )
        .service(
            web::resource("/v1/agents")
                .route(web::get().to(agents))
                .default_service(web::to(|| method_not_allowed("GET"))),
        );
}

/// A task of the benchmark, or one that the operator's program or an uploaded module computes.
#[derive(Debug, Serialize, ToSchema)]
pub struct TaskInfo {
    pub slug: String,
    pub title: String,
    /// `own` for a task that a program or a module computes: its runs need an `input`.
    pub category: String,
    /// The size of an easy, a medium and a hard instance.
    pub sizes: [String; 3],
    /// The forms of its action lines.
    pub actions: Vec<String>,
    pub constraints: Vec<ConstraintInfo>,
    /// Why the program of an own task cannot be asked at present, if it cannot.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unavailable: Option<String>,
    /// The module, if the task was uploaded with this key.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub module: Option<UploadedModule>,
}

/// A constraint of a task.
#[derive(Debug, Serialize, ToSchema)]
pub struct ConstraintInfo {
    pub name: String,
    /// `format`, `invariant`, `transition` or `terminal`.
    pub kind: String,
    /// The paper's weight: 1.0, 0.6 or 0.2.
    pub weight: f64,
    pub meaning: String,
}

/// All tasks.
#[derive(Debug, Serialize, ToSchema)]
pub struct TaskList {
    pub tasks: Vec<TaskInfo>,
}

fn info(spec: &Spec) -> TaskInfo {
    TaskInfo {
        slug: spec.slug.to_owned(),
        title: spec.title.to_owned(),
        category: spec.category.name().to_owned(),
        sizes: spec.sizes.map(str::to_owned),
        actions: spec.actions.iter().map(|action| (*action).to_owned()).collect(),
        constraints: spec
            .constraints
            .iter()
            .map(|constraint| ConstraintInfo {
                name: constraint.name.to_owned(),
                kind: constraint.kind.name().to_owned(),
                weight: constraint.severity.weight(),
                meaning: constraint.meaning.to_owned(),
            })
            .collect(),
        unavailable: None,
        module: None,
    }
}

/// Lists the tasks.
#[utoipa::path(
    get, path = "/v1/tasks", tag = "catalog", operation_id = "list_tasks",
    responses((status = 200, description = "All tasks", body = TaskList)),
)]
pub async fn list(state: web::Data<State>, request: HttpRequest) -> Result<HttpResponse, ApiError> {
    let owner = owner_of(&request);
    let app = state.runs.app();
    let tasks = app.tasks().of_owner(&owner);
    // Programs that have not been asked yet are started.
    let own = in_background(move || tasks.specs(DECLARED_WITHIN)).await?;
    let mut modules = modules_of(state.runs.task_versions(&owner).await?);
    let own = own.map_err(journal_unreadable)?.into_iter().map(|(name, spec)| {
        let module = modules.remove(&name).filter(|_| !app.tasks().is_configured(&name));
        let info = match spec {
            Ok(spec) => own_info(spec),
            Err(error) => unavailable(name, &error),
        };
        TaskInfo { module, ..info }
    });
    let built_in = tasks::all().chain(tasks::variants()).map(|task| info(task.spec()));
    Ok(HttpResponse::Ok().json(TaskList { tasks: built_in.chain(own).collect() }))
}

/// The error of a catalogue whose uploads cannot be read.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes it")]
fn journal_unreadable(error: AgentError) -> ApiError {
    ApiError::unavailable("journal_not_readable", error.to_string(), Duration::from_secs(1))
}

/// How long a list waits for programs that have not declared their tasks. Python takes less than a
/// second.
const DECLARED_WITHIN: Duration = Duration::from_secs(2);

/// How long a request for one task waits for its program.
pub const STARTED_WITHIN: Duration = Duration::from_mins(1);

/// The tasks that programs compute, except those whose program cannot be asked. Blocks while
/// programs start.
///
/// # Errors
/// The uploaded ones cannot be read.
pub fn declared(tasks: &TaskPrograms) -> Result<Vec<&'static Spec>, AgentError> {
    let all = tasks.specs(DECLARED_WITHIN)?.into_iter();
    let declared = all.filter_map(|(name, spec)| match spec {
        Ok(spec) => Some(spec),
        Err(error) => {
            tracing::warn!(task = name, %error, "a task of one's own is not listed");
            None
        }
    });
    Ok(declared.collect())
}

fn own_info(spec: &Spec) -> TaskInfo {
    TaskInfo { category: OWN.to_owned(), ..info(spec) }
}

/// A task whose program cannot be asked.
fn unavailable(name: String, error: &AgentError) -> TaskInfo {
    TaskInfo {
        title: name.clone(),
        slug: name,
        category: OWN.to_owned(),
        sizes: Default::default(),
        actions: Vec::new(),
        constraints: Vec::new(),
        unavailable: Some(error.to_string()),
        module: None,
    }
}

/// The page of a task that a program computes, which has no worked example.
fn own_page(spec: &Spec) -> TaskPage {
    let input = serde_json::from_str(spec.page.example.input).unwrap_or_default();
    let (start, answer) = (Value::Null, Value::Null);
    let example = ExampleInfo { input, start, steps: Vec::new(), steps_total: 0, answer };
    TaskPage { task: own_info(spec), ..page_of(spec, example) }
}

/// The category of tasks that programs compute.
pub const OWN: &str = "own";

/// Steps of a worked example that are shown.
const STEPS_SHOWN: usize = 40;

/// A field of an input, an answer or a state.
#[derive(Debug, Serialize, ToSchema)]
pub struct FieldInfo {
    pub name: String,
    pub meaning: String,
}

/// A form of action line.
#[derive(Debug, Serialize, ToSchema)]
pub struct ActionInfo {
    /// The form with named placeholders.
    pub line: String,
    pub effect: String,
    pub example: String,
}

/// A step of a worked example.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExampleStep {
    pub line: String,
    /// The state after it.
    #[schema(value_type = Value)]
    pub state: Value,
}

/// A small instance, solved by the task's own algorithm.
#[derive(Debug, Serialize, ToSchema)]
pub struct ExampleInfo {
    #[schema(value_type = Object)]
    pub input: Value,
    /// The state before the first step.
    #[schema(value_type = Value)]
    pub start: Value,
    /// The first 40 steps, or all if there are fewer.
    pub steps: Vec<ExampleStep>,
    /// The number of all steps.
    pub steps_total: u64,
    #[schema(value_type = Object)]
    pub answer: Value,
}

/// A task with everything that its page says.
#[derive(Debug, Serialize, ToSchema)]
pub struct TaskPage {
    #[serde(flatten)]
    pub task: TaskInfo,
    pub problem: String,
    pub algorithm: String,
    /// What one step is.
    pub step: String,
    /// How instances are drawn.
    pub instances: String,
    /// What was decided where the paper is silent or wrong; may be empty.
    pub note: String,
    pub input: Vec<FieldInfo>,
    pub answer: Vec<FieldInfo>,
    pub state: Vec<FieldInfo>,
    pub lines: Vec<ActionInfo>,
    pub example: ExampleInfo,
}

fn fields(list: &[(&str, &str)]) -> Vec<FieldInfo> {
    list.iter()
        .map(|(name, meaning)| FieldInfo {
            name: (*name).to_owned(),
            meaning: (*meaning).to_owned(),
        })
        .collect()
}

fn task_page(task: &dyn AnyTask) -> TaskPage {
    let tasks::WorkedExample { input, start, steps, steps_total, answer } =
        tasks::worked_example(task, STEPS_SHOWN);
    let steps = steps.into_iter().map(|(line, state)| ExampleStep { line, state }).collect();
    page_of(task.spec(), ExampleInfo { input, start, steps, steps_total, answer })
}

fn page_of(spec: &Spec, example: ExampleInfo) -> TaskPage {
    let page = spec.page;
    let text = |text: &str| text.trim().to_owned();
    TaskPage {
        task: info(spec),
        problem: text(page.problem),
        algorithm: text(page.algorithm),
        step: text(page.step),
        instances: text(page.generate),
        note: text(page.note),
        input: fields(page.input),
        answer: fields(page.answer),
        state: fields(page.state),
        lines: page
            .actions
            .iter()
            .map(|action| ActionInfo {
                line: action.line.to_owned(),
                effect: action.effect.to_owned(),
                example: action.example.to_owned(),
            })
            .collect(),
        example,
    }
}

/// Shows a task.
///
/// The problem and its algorithm, the fields of input, answer and state, the action lines, and a
/// worked example.
#[utoipa::path(
    get, path = "/v1/tasks/{slug}", tag = "catalog", operation_id = "show_task", params(("slug" = TaskSlug, description = "The task's `slug`")),
    responses((status = 200, description = "The task", body = TaskPage)),
)]
pub async fn show(
    slug: web::Path<String>,
    state: web::Data<State>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let owner = owner_of(&request);
    let own = {
        let (slug, tasks) = (slug.clone(), state.runs.app().tasks().of_owner(&owner));
        let spec = move || {
            let found = tasks.get(&slug)?;
            Ok(found.map(|own| (own.spec(STARTED_WITHIN), own.uploaded_digest().is_some())))
        };
        in_background(spec).await?.map_err(journal_unreadable)?
    };
    if let Some((spec, is_uploaded)) = own {
        let spec = spec.map_err(|error| ApiError::not_found("no_such_task", error.to_string()))?;
        let mut page = own_page(spec);
        if is_uploaded {
            page.task.module = modules_of(state.runs.task_versions(&owner).await?).remove(&*slug);
        }
        return Ok(HttpResponse::Ok().json(page));
    }
    let task = tasks::find(&slug)
        .map_err(|error| ApiError::not_found("no_such_task", error.to_string()))?;
    Ok(HttpResponse::Ok().json(task_page(task)))
}

/// An agent that can play a role.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentInfo {
    /// `executor`, `verifier` or `coordinator`.
    pub role: String,
    pub name: String,
    /// The implementation; differs from `name` for a definition.
    pub implementation: String,
    /// A description for people.
    pub description: String,
    /// The options that it uses, where a request chooses it.
    #[schema(value_type = Object)]
    pub options: Map<String, Value>,
    /// True if it is the configured one.
    pub default: bool,
    /// True if a request may choose it.
    pub allowed: bool,
    /// The models that it and its members ask: names of files, or those that servers know.
    pub models: Vec<String>,
    /// Why a run that chose it would be refused now, such as an engine that is not running; null if
    /// it would not be, and for agents that a request may not choose.
    pub refusal: Option<String>,
}

/// Which agents to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct AgentsQuery {
    /// A task: `models` has only those that are asked about it.
    pub task: Option<String>,
}

/// All implementations and definitions.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentList {
    pub agents: Vec<AgentInfo>,
}

/// Lists the implementations and definitions of the roles, and which of them a request may choose.
#[utoipa::path(
    get, path = "/v1/agents", tag = "catalog", operation_id = "list_agents",
    params(AgentsQuery),
    responses((status = 200, description = "All implementations and definitions", body = AgentList)),
)]
pub async fn agents(
    state: web::Data<State>,
    request: HttpRequest,
) -> Result<HttpResponse, ApiError> {
    let wanted: AgentsQuery = parse_query(&request)?;
    let app = state.runs.app();
    let mut agents = Vec::new();
    let task = wanted.task.as_deref();
    list_role::<ExecutorAgent>(&app, task, &mut agents);
    list_role::<VerifierAgent>(&app, task, &mut agents);
    list_role::<CoordinatorAgent>(&app, task, &mut agents);
    Ok(HttpResponse::Ok().json(AgentList { agents }))
}

fn list_role<A: RoleOptions>(app: &App, task: Option<&str>, list: &mut Vec<AgentInfo>) {
    let settings = app.settings();
    let default = A::section(settings).implementation_name();
    let (_, named) = settings.server.allowed(A::ROLE);
    for listed in settings.agent_list::<A>() {
        let allowed = listed.name == default || named.contains(&listed.name);
        let usable = if allowed { app.check_usable(A::ROLE, &listed.name) } else { Ok(()) };
        list.push(AgentInfo {
            role: A::ROLE.name().to_owned(),
            default: listed.name == default,
            allowed,
            models: settings.models_of::<A>(&listed.name, task),
            refusal: usable.err().map(|error| error.to_string()),
            options: settings
                .agent::<A>(&listed.name)
                .map(|agent| RecordedAgent::of(&agent).options)
                .unwrap_or_default(),
            implementation: listed.implementation,
            description: listed.description,
            name: listed.name,
        });
    }
}
