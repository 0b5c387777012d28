//! Routes that list the available tasks and agents.

use actix_web::{HttpResponse, web};
use serde::Serialize;
use utoipa::openapi::{RefOr, Schema, Type, schema::ObjectBuilder};
use utoipa::{PartialSchema, ToSchema};

use super::{State, method_not_allowed};
use crate::settings::{CoordinatorAgent, ExecutorAgent, RoleOptions, Settings, VerifierAgent};
use prime_bench::tasks::{self, AnyTask};

pub fn configure(config: &mut web::ServiceConfig) {
    config
        .service(
            web::resource("/v1/tasks")
                .route(web::get().to(list))
                .default_service(web::to(|| method_not_allowed("GET"))),
        )
        .service(
            web::resource("/v1/agents")
                .route(web::get().to(agents))
                .default_service(web::to(|| method_not_allowed("GET"))),
        );
}

/// The slug of a task; the OpenAPI document enumerates them.
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

/// Lists the tasks.
#[utoipa::path(
    get, path = "/v1/tasks", tag = "catalog", operation_id = "list_tasks",
    responses((status = 200, description = "All tasks", body = TaskList)),
)]
pub async fn list() -> HttpResponse {
    HttpResponse::Ok().json(TaskList { tasks: tasks::all().chain(tasks::variants()).map(info).collect() })
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
    /// Whether it is the configured one.
    pub default: bool,
    /// Whether a request may choose it.
    pub allowed: bool,
}

/// All implementations and definitions.
#[derive(Debug, Serialize, ToSchema)]
pub struct AgentList {
    pub agents: Vec<AgentInfo>,
}

/// Lists the implementations and definitions of the roles, and which of them a request may choose.
#[utoipa::path(
    get, path = "/v1/agents", tag = "catalog", operation_id = "list_agents",
    responses((status = 200, description = "All implementations and definitions", body = AgentList)),
)]
pub async fn agents(state: web::Data<State>) -> HttpResponse {
    let app = state.runs.app();
    let settings = app.settings();
    let server = &settings.server;
    let mut agents = Vec::new();
    list_role::<ExecutorAgent>(settings, &server.allow_executors, &mut agents);
    list_role::<VerifierAgent>(settings, &server.allow_verifiers, &mut agents);
    list_role::<CoordinatorAgent>(settings, &server.allow_coordinators, &mut agents);
    HttpResponse::Ok().json(AgentList { agents })
}

fn list_role<A: RoleOptions>(settings: &Settings, allowed: &[String], list: &mut Vec<AgentInfo>) {
    let default = A::section(settings).implementation();
    for listed in settings.agent_list::<A>() {
        list.push(AgentInfo {
            role: A::ROLE.name().to_owned(),
            default: listed.name == default,
            allowed: listed.name == default || allowed.contains(&listed.name),
            implementation: listed.implementation,
            description: listed.description,
            name: listed.name,
        });
    }
}
