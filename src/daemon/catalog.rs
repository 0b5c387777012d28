//! What can be asked for: tasks and agents.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::openapi::{RefOr, Schema, Type, schema::ObjectBuilder};
use utoipa::{PartialSchema, ToSchema};

use super::{State, no_such_method};
use crate::settings::{COORDINATORS, EXECUTORS, VERIFIERS};
use crate::tasks::{self, AnyTask};

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/tasks").route(web::get().to(list)).default_service(web::to(|| no_such_method("GET"))),
        )
        .service(
            web::resource("/v1/agents").route(web::get().to(agents)).default_service(web::to(|| no_such_method("GET"))),
        );
}

/// The slug of a task, as the document lists them.
pub struct TaskSlug;

impl PartialSchema for TaskSlug {
    fn schema() -> RefOr<Schema> {
        let slugs = tasks::all().chain(tasks::variants()).map(|task| task.spec().slug);
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(slugs)).into()
    }
}

impl ToSchema for TaskSlug {}

/// A task of the benchmark.
#[derive(Debug, Serialize, ToSchema)]
pub struct TaskInfo {
    pub slug: String,
    pub title: String,
    pub category: String,
    /// The size of an easy, a medium and a hard instance.
    pub sizes: [String; 3],
    /// The forms of its action lines.
    pub actions: Vec<String>,
    pub constraints: Vec<ConstraintInfo>,
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

fn info(task: &dyn AnyTask) -> TaskInfo {
    let spec = task.spec();
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
    }
}

/// The tasks that runs can be of.
#[utoipa::path(
    get, path = "/v1/tasks", tag = "catalog", operation_id = "list_tasks",
    responses((status = 200, description = "All tasks", body = TaskList)),
)]
pub async fn list() -> HttpResponse {
    HttpResponse::Ok().json(TaskList { tasks: tasks::all().chain(tasks::variants()).map(info).collect() })
}

/// An implementation of a role.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentInfo {
    /// `executor`, `verifier` or `coordinator`.
    pub role: String,
    pub name: String,
    /// It is the configured one.
    pub default: bool,
    /// A request may choose it.
    pub allowed: bool,
}

/// All implementations.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentList {
    pub agents: Vec<AgentInfo>,
}

/// The implementations of the roles, and which of them a request may choose.
#[utoipa::path(
    get, path = "/v1/agents", tag = "catalog", operation_id = "list_agents",
    responses((status = 200, description = "All implementations", body = AgentList)),
)]
pub async fn agents(state: web::Data<State>) -> HttpResponse {
    let app = state.runs.app();
    let settings = app.settings();
    let (agents, server) = (&settings.agents, &settings.server);
    let roles: [(&str, &[&str], &str, &[String]); 3] = [
        ("executor", &EXECUTORS, &agents.executor.implementation, &server.allow_executors),
        ("verifier", &VERIFIERS, &agents.verifier.implementation, &server.allow_verifiers),
        ("coordinator", &COORDINATORS, &agents.coordinator.implementation, &server.allow_coordinators),
    ];
    let info = |(role, names, default, allowed): (&str, &[&str], &str, &[String])| {
        let info = |name: &&str| AgentInfo {
            role: role.to_owned(),
            name: (*name).to_owned(),
            default: *name == default,
            allowed: *name == default || allowed.iter().any(|allowed| allowed == name),
        };
        names.iter().map(info).collect::<Vec<_>>()
    };
    HttpResponse::Ok().json(AgentList { agents: roles.into_iter().flat_map(info).collect() })
}
