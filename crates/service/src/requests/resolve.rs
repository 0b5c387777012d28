//! From a checked request and its agents to the spec of a run, which fixes everything that
//! determines what the run does.

use std::sync::Arc;

use super::checked::CheckedRequest;
use super::chosen_settings::check_overrides;
use super::error::{Reason, RequestError};
use super::instance::Instance;
use super::run_request::RunRequest;
use crate::app::{App, Overrides, check_learnt, run_plan, run_sampling};
use crate::runs::{ApprovalPolicy, RunError, RunSpec};
use prime_agent_set::task_program::TaskPrograms;
use prime_agent_set::{AgentSet, Agents as _, Names, RecordedAgents};
use prime_bench::tasks::Problem;
use prime_protocol::{Role, RunPlan};
use prime_runtime::RunSampling;
use prime_settings::{ModelPrice, Settings};

/// A request after its resolution.
pub struct ResolvedRun {
    /// Everything that determines what the run does.
    pub spec: RunSpec,
    /// The problem to solve.
    pub problem: Arc<dyn Problem>,
}

/// Resolves a request with the agents of a process, and with the tasks of the client. May compute
/// for milliseconds; must be called within an actix system.
///
/// # Errors
/// The first invalid field.
pub fn resolve(
    app: &App,
    tasks: &TaskPrograms,
    request: &RunRequest,
    traceparent: Option<String>,
) -> Result<ResolvedRun, RequestError> {
    let checked = CheckedRequest::of(app.settings(), tasks, request)?;
    let agents = app
        .agents_with(&checked.overrides)
        .map_err(|error| RequestError::field("agents.executor", error))?;

    checked.check_learnt()?;
    checked.with_agents(app, &agents, traceparent)
}

impl CheckedRequest {
    /// The run of a request, with the agents that were built from its `overrides`.
    ///
    /// # Errors
    /// When these agents cannot work on its problem.
    pub fn with_agents(
        self,
        app: &App,
        agents: &AgentSet,
        traceparent: Option<String>,
    ) -> Result<ResolvedRun, RequestError> {
        let beyond = self.beyond_learnt();
        let Self { overrides, split, settings, instance, labels, queueing, .. } = self;
        let Instance { name, problem, module, program } = instance;

        check_agents(agents, problem.as_ref())?;
        let plan = run_plan(&settings, agents.basis(problem.as_ref()), problem.as_ref());

        let mut notes = agents.notes().to_vec();
        notes.extend(beyond.map(|beyond| beyond.to_string()));
        notes.extend(never_verified(problem.as_ref()).map(str::to_owned));
        let recorded = app.record_for(agents, problem.spec().slug);
        notes.extend(uncounted(&plan, recorded.as_deref(), &settings));

        let spec = RunSpec {
            task: problem.spec().slug.to_owned(),
            instance: name,
            input: problem.input(),
            is_of_program: problem.is_asked(),
            module,
            program,
            plan,
            approval: ApprovalPolicy::of(&settings.run),
            sampling: run_sampling(&settings),
            overrides,
            agents: agents.names().clone(),
            recorded,
            notes,
            config_hash: settings.hash(),
            split,
            forked_from: None,
            retry_of: None,
            labels,
            queueing,
            traceparent,
        };
        Ok(ResolvedRun { spec, problem })
    }
}

/// The spec of a run with some other agents; the rest are taken by their names from the present
/// configuration. Of an imported run (`is_foreign`) nothing is taken but what was asked for: its
/// agents may be anything, and its budget may be more than this daemon allows. May compute for
/// milliseconds; must be called within an actix system.
///
/// # Errors
/// The first agent that may not be chosen, or cannot work on the problem.
pub fn spec_with_agents(
    app: &App,
    tasks: &TaskPrograms,
    parent: RunSpec,
    chosen: &Overrides,
    is_foreign: bool,
) -> Result<RunSpec, RequestError> {
    check_overrides(app.settings(), chosen)?;
    let mut overrides =
        if is_foreign { Overrides::default() } else { Overrides::from(&parent.agents) };
    for role in Role::ALL {
        if let Some(name) = chosen.agent(role) {
            overrides.choose(role, name);
        }
    }

    let settings = overrides.apply(app.settings());
    let problem = parent.problem(tasks).map_err(RunError::from)?;
    let agents =
        app.agents_with(&overrides).map_err(|error| RequestError::field("agents", error))?;
    if problem.has_reference() {
        check_learnt(&settings, problem.spec())
            .map_err(|error| RequestError::field("agents", Reason::ChosenHasNotLearnt(error)))?;
    }
    // The problem is the parent's, so if agents and problem do not match, the agents are at fault.
    check_agents(&agents, problem.as_ref()).map_err(|error| error.moved_to("agents"))?;

    let mut notes = agents.notes().to_vec();
    let Names { executor, verifier, coordinator, .. } = &parent.agents;
    notes.push(format!(
        "forked: the events before are by the agents {executor}, {verifier}, {coordinator}"
    ));

    let basis = agents.basis(problem.as_ref());
    let (budget, sampling) = if is_foreign {
        let of_here = run_plan(&settings, basis, problem.as_ref()).budget;
        (of_here, RunSampling { seed: parent.sampling.seed, ..run_sampling(&settings) })
    } else {
        (parent.plan.budget, parent.sampling)
    };
    Ok(RunSpec {
        // Earlier steps keep the basis on which they were judged.
        plan: RunPlan { basis, locates: agents.names().locator.is_some(), budget, ..parent.plan },
        sampling,
        recorded: app.record_for(&agents, &parent.task),
        agents: agents.names().clone(),
        overrides,
        notes,
        config_hash: settings.hash(),
        // A chosen agent takes no part in the comparison.
        split: None,
        ..parent
    })
}

/// Which models a budget of money does not limit, because they have no price.
fn uncounted(
    plan: &RunPlan,
    recorded: Option<&RecordedAgents>,
    settings: &Settings,
) -> Option<String> {
    let recorded = recorded.filter(|_| !plan.budget.cost.is_zero())?;
    let has_price = |price: Option<Option<ModelPrice>>| price.flatten().is_some();
    let engines = recorded
        .engines
        .keys()
        .filter(|name| !has_price(settings.engines.get(*name).map(|engine| engine.price)));
    let pools = recorded
        .pools
        .keys()
        .filter(|name| !has_price(settings.pools.get(*name).map(|pool| pool.price)));
    let names: Vec<_> = engines
        .map(|name| format!("engine `{name}`"))
        .chain(pools.map(|name| format!("pool `{name}`")))
        .collect();
    (!names.is_empty())
        .then(|| format!("`budget.cost` does not limit what has no price: {}", names.join(", ")))
}

/// Why no answer to a client's problem can be verified; `None` if one can.
pub fn never_verified(problem: &dyn Problem) -> Option<&'static str> {
    if problem.has_reference() || problem.is_asked() {
        None
    } else if problem.needs_reader() {
        Some(
            "the problem has constraints in words, on which a model has an opinion: no answer to it \
             is verified",
        )
    } else if !problem.has_checks() {
        Some(
            "the problem has no constraint with a `check` of the answer or the steps, so that no \
             answer to it can be verified: add one that reads `answer`",
        )
    } else {
        None
    }
}

/// Checks that agents can work on a problem.
///
/// # Errors
/// The agent that cannot.
pub fn check_agents(agents: &AgentSet, problem: &dyn Problem) -> Result<(), RequestError> {
    let executor = || agents.names().executor.clone();
    if agents.judge().needs_algorithm() && !problem.has_reference() {
        let reason = Reason::JudgesByAlgorithm { verifier: agents.names().verifier.clone() };
        let field = if problem.is_asked() { "task" } else { "problem" };
        return Err(RequestError::field(field, reason));
    }
    if problem.is_asked() {
        return can_propose(agents, problem).map_err(|why| {
            let task = problem.spec().slug;
            RequestError::field("task", Reason::CannotPropose { executor: executor(), task, why })
        });
    }
    if agents.needs_algorithm() && !problem.has_reference() {
        let reason = Reason::NoAlgorithm { executor: executor() };
        return Err(RequestError::field("problem", reason));
    }
    if !agents.reads_prose() && !problem.has_reference() {
        let reason = Reason::ReadsNoProse { executor: executor() };
        return Err(RequestError::field("problem", reason));
    }
    reads_all(problem, agents)
}

/// Returns whether the executor can propose lines of a task that is a program.
///
/// # Errors
/// Why it cannot.
fn can_propose(agents: &AgentSet, problem: &dyn Problem) -> Result<(), &'static str> {
    let start = problem.start();
    if agents.needs_algorithm() {
        let no_hint = "it follows a task's algorithm, and this task gives no `hint`";
        return start.reference().map(drop).ok_or(no_hint);
    }
    if agents.draws_choices() {
        let no_choices = "it draws among the `choices` of a state, and this task lists none";
        return start.choices().map(drop).ok_or(no_choices);
    }
    if agents.reads_prose() {
        return Ok(());
    }
    Err("it is a model for the built-in tasks (`agents.executor.prompt` is `compact`)")
}

/// Checks that the verifier reads the problem's constraints in prose, if it has any.
///
/// # Errors
/// When the problem has such constraints and the verifier does not read them.
fn reads_all(problem: &dyn Problem, agents: &AgentSet) -> Result<(), RequestError> {
    if !problem.needs_reader() || agents.verifier().reads_words() {
        return Ok(());
    }

    let first = problem.rules().into_iter().find(|rule| rule.kind.is_none());
    let reason = Reason::UnreadableConstraint {
        constraint: first.map(|rule| rule.name.to_string()).unwrap_or_default(),
        verifier: agents.names().verifier.clone(),
    };
    Err(RequestError::field("problem.constraints", reason))
}
