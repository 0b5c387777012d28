//! A checked study: every name is known, and every system can be compared.

use std::collections::BTreeSet;

use prime_bench::tasks::{AnyTask, Category, Difficulty, INSTANCES, Kind, Kinds, all, find};

use super::file::{AskSection, BudgetSection, StudyFile};
use super::matched::{Matched, Prompts, check_ends, check_matched, matched, prompts};
use super::system::{Source, System, options, system};
use crate::nearest::did_you_mean;
use crate::report::Choice;
use crate::tables::check_items;

const REPEATS_MAX: u32 = 1_000;

/// What every system is asked.
#[derive(Clone)]
pub struct Ask {
    /// Tasks, each once, in the paper's order; after them those of [`Study::give`].
    pub tasks: Vec<&'static dyn AnyTask>,
    /// Names of the user's own tasks, which the caller adds with [`Study::give`].
    pub own: Vec<String>,
    /// Levels, ascending, each once. A task with given inputs has none and is asked once.
    pub difficulties: Vec<Difficulty>,
    /// Instances of each task, level and base seed.
    pub instances: u32,
    /// Base seeds of the benchmark's instances, each once, in the file's order.
    pub base_seeds: Vec<u64>,
    /// Runs of each instance by each system, 1 to 1,000.
    pub repeats: u32,
    /// Seed from which the sampling seed of each run is derived.
    pub sampling_seed: u64,
}

/// A study that can be run.
#[derive(Clone)]
pub struct Study {
    /// Lower-case letters, digits and hyphens: the name of the file of records.
    pub name: String,
    /// What the study is for; may be empty.
    pub description: String,
    /// Kinds of constraints that verifiers may see.
    pub kinds: Kinds,
    /// Options over the configuration for all systems, in the form of `--set`.
    pub sets: Vec<String>,
    /// What every system is asked.
    pub ask: Ask,
    /// Systems in the file's order; the null executor, if it is added, comes last.
    pub systems: Vec<System>,
    /// Limits of each run, as the file gives them.
    pub budget: BudgetSection,
    /// How spending is made equal; `None` without `budget.match`.
    pub matched: Option<Matched>,
    /// Prompt tokens that count as spent.
    pub prompts: Prompts,
    /// What the report shows, with the systems in the file's order.
    pub choice: Choice,
}

impl Study {
    /// Checks a study file. `configured` are the names of tasks that the user defines besides those
    /// that the study itself sets.
    ///
    /// # Errors
    /// All that is wrong with it, a line each.
    pub fn new(file: &StudyFile, configured: &[String]) -> Result<Self, Vec<String>> {
        let mut problems = Vec::new();
        let own = own_names(file, configured);
        let name = &file.study.name;
        let is_plain = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-';
        if name.is_empty()
            || name.len() > 64
            || name.starts_with('-')
            || !name.chars().all(is_plain)
        {
            problems.push(format!(
                "study.name: `{name}` must be 1 to 64 lower-case letters, digits and hyphens, as in `n-queens`"
            ));
        }

        let systems = systems(file, &mut problems);
        let matched = matched(&file.budget, &systems, &mut problems);
        check_ends(&systems, file.budget.matched.is_some(), &mut problems);
        let prompts = prompts(&file.budget, &mut problems);
        check_matched(&systems, matched.as_ref(), prompts, &mut problems);

        let mut study = Self {
            name: name.clone(),
            description: file.study.description.clone(),
            kinds: kinds(&file.study.kinds, &mut problems),
            sets: options(&file.study.set).collect(),
            ask: ask(&file.ask, &own, &mut problems),
            systems,
            budget: file.budget.clone(),
            matched,
            prompts,
            choice: choice(file, &mut problems),
        };

        for (key, limit) in [
            ("wall_ms", study.budget.wall_ms),
            ("tokens", study.budget.tokens),
            ("steps", study.budget.steps),
        ] {
            if limit == Some(0) {
                problems.push(format!(
                    "budget.{key}: 0 would end every run at once; leave it out for no other limit"
                ));
            }
        }
        if file.study.null {
            study.add_null();
        }
        // All problems at once, so that a file can be fixed in one go.
        if problems.is_empty() { Ok(study) } else { Err(problems) }
    }

    /// Adds a task that the user defines, with its inputs.
    pub fn give(&mut self, task: &'static dyn AnyTask) {
        self.ask.own.retain(|name| name != task.spec().slug);
        self.ask.tasks.push(task);
    }
}

/// The names of tasks that users define: those of the configuration, and of the study's `set`.
fn own_names(file: &StudyFile, configured: &[String]) -> BTreeSet<String> {
    let set = file.study.set.keys().filter_map(|key| {
        let (name, _) = key.strip_prefix("tasks.")?.split_once('.')?;
        Some(name.to_owned())
    });
    set.chain(configured.iter().cloned()).collect()
}

fn unknown(what: &str, name: &str, known: &[&str]) -> String {
    format!(
        "{what}: unknown name `{name}`{}: use one of {}",
        did_you_mean(name, known.iter().copied()),
        known.join(", ")
    )
}

fn kinds(names: &[String], problems: &mut Vec<String>) -> Kinds {
    let known = Kind::ALL.map(Kind::name);
    let kind = |name: &String| {
        let kind = Kind::ALL.into_iter().find(|kind| kind.name() == name);
        if kind.is_none() {
            problems.push(unknown("study.kinds", name, &known));
        }
        kind
    };
    names.iter().filter_map(kind).collect()
}

/// The tasks to ask: the named ones without the excluded ones.
fn tasks(
    ask: &AskSection,
    own: &BTreeSet<String>,
    problems: &mut Vec<String>,
) -> (Vec<&'static dyn AnyTask>, Vec<String>) {
    let mut tasks = named(ask, own, problems);
    let mut asked_own: Vec<String> = Vec::new();
    for name in ask.tasks.iter().filter(|name| own.contains(*name)) {
        if !asked_own.contains(name) {
            asked_own.push(name.clone());
        }
    }

    let before = problems.len();
    for name in &ask.exclude {
        if let Some(at) = asked_own.iter().position(|asked| asked == name) {
            asked_own.remove(at);
            continue;
        }
        let at = tasks.iter().position(|task| task.spec().slug == name);
        match (at, find(name)) {
            (Some(at), _) => drop(tasks.remove(at)),
            (None, Ok(_)) => {
                problems.push(format!(
                    "ask.exclude: `{name}` is not one of the tasks that are asked; leave it out"
                ));
            }
            (None, Err(error)) => problems.push(format!("ask.exclude: {error}")),
        }
    }
    // If other problems are the reason why no task is left, this message would only distract.
    let is_nothing = tasks.is_empty() && asked_own.is_empty();
    if is_nothing && !ask.exclude.is_empty() && problems.len() == before {
        problems.push("ask.exclude: leaves no task to ask".to_owned());
    }

    (tasks, asked_own)
}

/// The benchmark tasks that the section names, directly or by category.
fn named(
    ask: &AskSection,
    own: &BTreeSet<String>,
    problems: &mut Vec<String>,
) -> Vec<&'static dyn AnyTask> {
    if ask.tasks.is_empty() && ask.categories.is_empty() {
        return all().collect();
    }

    let mut chosen: Vec<&'static dyn AnyTask> = Vec::new();
    for name in ask.tasks.iter().filter(|name| !own.contains(*name)) {
        match find(name) {
            Ok(task) => chosen.push(task),
            Err(error) => problems.push(format!(
                "ask.tasks: {error}; a task of your own needs `tasks.{name}` in the configuration \
                 or in `study.set`"
            )),
        }
    }

    for name in &ask.categories {
        match name.parse::<Category>() {
            Ok(category) => chosen.extend(all().filter(|task| task.spec().category == category)),
            Err(_) => {
                problems.push(unknown("ask.categories", name, &Category::ALL.map(Category::name)));
            }
        }
    }
    // A task that is named may be in a named category too: it is asked once.
    chosen.sort_by_key(|task| (task.spec().id, task.spec().slug));
    chosen.dedup_by_key(|task| task.spec().slug);
    chosen
}

fn ask(section: &AskSection, own: &BTreeSet<String>, problems: &mut Vec<String>) -> Ask {
    let (tasks, own) = tasks(section, own, problems);

    let mut difficulties = BTreeSet::new();
    for name in &section.difficulties {
        match name.parse::<Difficulty>() {
            Ok(level) => drop(difficulties.insert(level)),
            Err(_) => problems.push(unknown(
                "ask.difficulties",
                name,
                &Difficulty::ALL.map(Difficulty::name),
            )),
        }
    }

    if section.difficulties.is_empty() {
        problems.push("ask.difficulties: name one at least, or leave it out for all".to_owned());
    }

    if !(1..=INSTANCES).contains(&section.instances) {
        problems.push(format!(
            "ask.instances: {} is not between 1 and {INSTANCES}; more base seeds give more instances",
            section.instances
        ));
    }

    if !(1..=REPEATS_MAX).contains(&section.repeats) {
        problems
            .push(format!("ask.repeats: {} is not between 1 and {REPEATS_MAX}", section.repeats));
    }

    if section.base_seeds.is_empty() {
        problems.push("ask.base_seeds: name one at least, or leave it out".to_owned());
    }

    let mut seeds = BTreeSet::new();
    for seed in &section.base_seeds {
        if !seeds.insert(*seed) {
            problems.push(format!(
                "ask.base_seeds: {seed} is there twice; for more runs of an instance use `repeats`"
            ));
        }
    }

    Ask {
        tasks,
        own,
        difficulties: difficulties.into_iter().collect(),
        instances: section.instances,
        base_seeds: section.base_seeds.clone(),
        repeats: section.repeats,
        sampling_seed: section.sampling_seed,
    }
}

fn systems(file: &StudyFile, problems: &mut Vec<String>) -> Vec<System> {
    if file.systems.is_empty() {
        problems.push("no system: add [[system]] with a `name`".to_owned());
    }

    let systems: Vec<System> = file
        .systems
        .iter()
        .zip(1..)
        .map(|(section, place)| system(section, place, problems))
        .collect();

    let has_answers = |system: &System| matches!(system.source, Source::Answers(_));
    if let Some(system) =
        systems.iter().find(|system| has_answers(system)).filter(|_| file.ask.base_seeds.len() > 1)
    {
        problems.push(format!(
            "system `{}`: answers need one base seed, because their ids do not say it",
            system.name
        ));
    }

    let mut names = BTreeSet::new();
    for system in systems.iter().filter(|system| !system.name.is_empty()) {
        if !names.insert(system.name.as_str()) {
            problems.push(format!(
                "two systems are called `{}`; results are kept by name",
                system.name
            ));
        }
    }

    systems
}

fn choice(file: &StudyFile, problems: &mut Vec<String>) -> Choice {
    let known: Vec<&str> = file.systems.iter().map(|system| system.name.as_str()).collect();
    for [left, right] in &file.report.pairs {
        for name in [left, right] {
            if !known.contains(&name.as_str()) {
                problems.push(unknown("report.pairs", name, &known));
            }
        }
        if left == right {
            problems.push(format!("report.pairs: `{left}` cannot be paired with itself"));
        }
    }

    if let Err(error) = check_items(&file.report.show) {
        problems.push(error.to_string());
    }

    let mut pairs: Vec<_> =
        file.report.pairs.iter().map(|[left, right]| (left.clone(), right.clone())).collect();
    if let (true, [first, others @ ..]) = (pairs.is_empty(), &file.systems[..]) {
        // Records alone do not say which system came first in the file.
        pairs = others.iter().map(|other| (first.name.clone(), other.name.clone())).collect();
    }
    let order = known.iter().map(|name| (*name).to_owned()).collect();
    Choice { order, pairs, show: file.report.show.clone(), ..Choice::default() }
}
