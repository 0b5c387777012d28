//! Dependency SAT: choose packages that meet all dependencies without conflicts, then install them
//! in order.
//!
//! A step is one package chosen for a dependency, one choice taken back, the verdict that nothing
//! fits, or one package installed.

use super::packages::{PACKAGES_MAX, Packages};
pub use super::requirements::Instance;
use crate::output::value::exact;
use crate::tasks::pages::dependency_sat as page;
use crate::tasks::prelude::*;

/// The task `dependency-sat`.
pub struct DependencySat;

const DEPENDENCIES_MAX: usize = 1_000;

/// A state of the task; the page explains its fields.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Choices as (dependency, package) that have not been taken back, in order.
    pub choices_made: Vec<(usize, usize)>,
    /// Packages installed, in order.
    pub installed: Vec<usize>,
    /// Number of `choose` so far.
    pub choices: u64,
    /// Number of `back` so far.
    pub backtracks: u64,
    /// First dependency found without an allowed alternative; -1 before that.
    pub first_dead_end: i64,
    /// True after `fail`.
    pub failed: bool,
    /// The last action; none at the start.
    pub last: Last<Action>,
}

impl State {
    /// The packages that were asked for or chosen.
    pub fn selected(&self, instance: &Instance) -> Packages {
        instance
            .install
            .iter()
            .chain(self.choices_made.iter().map(|(_, package)| package))
            .collect()
    }

    /// The packages that are installed.
    pub fn installed(&self) -> Packages {
        self.installed.iter().collect()
    }

    /// The first allowed alternative of a dependency, of those that are left to try.
    fn first_allowed(&self, instance: &Instance, dependency: usize) -> Option<usize> {
        let (_, alternatives) = instance.depends.get(dependency)?;
        let tried = match self.last.0 {
            Some(Action::Back(latest, package)) if latest == dependency => {
                alternatives.iter().position(|other| *other == package)? + 1
            }
            _ => 0,
        };
        let forbidden = instance.forbidden(self.selected(instance));
        alternatives[tried..].iter().copied().find(|package| !forbidden.contains(*package))
    }

    /// Returns whether the next line may be this choice.
    fn may_choose(&self, instance: &Instance, dependency: usize, package: usize) -> bool {
        let goes_on = match self.last.0 {
            Some(Action::Back(latest, _)) => latest == dependency,
            _ => true,
        };
        let selected = self.selected(instance);
        let is_unmet = instance.depends.get(dependency).is_some_and(|(package, alternatives)| {
            selected.contains(*package)
                && !alternatives.iter().any(|other| selected.contains(*other))
        });
        goes_on && is_unmet && self.first_allowed(instance, dependency) == Some(package)
    }

    /// Returns whether some dependency that the choices have to meet has no allowed alternative.
    fn is_dead_end(&self, instance: &Instance) -> bool {
        if let Some(Action::Back(latest, _)) = self.last.0 {
            return self.first_allowed(instance, latest).is_none();
        }

        let selected = self.selected(instance);
        let forbidden = instance.forbidden(selected);
        let usable = |package: &usize| selected.contains(*package) || !forbidden.contains(*package);
        instance.depends.iter().any(|(package, alternatives)| {
            selected.contains(*package) && !alternatives.iter().any(usable)
        })
    }

    /// Records the lowest unmet dependency, if none is recorded.
    fn meet_dead_end(&mut self, instance: &Instance) {
        if self.first_dead_end == -1
            && let Some(unmet) = instance.unmet(self.selected(instance))
        {
            self.first_dead_end = i64::try_from(unmet).expect("invariant: few dependencies");
        }
    }
}

word_actions!(Action {
    /// `choose d p`: meets dependency d with package p.
    Choose(dependency, package) = "choose",
    /// `back d p`: takes the latest choice back.
    Back(dependency, package) = "back",
    /// The packages cannot be installed.
    Fail = "fail",
    /// `install p`: installs package p.
    Install(package) = "install",
});

/// Returns whether these are ascending, each once.
fn ascend<T: PartialOrd>(values: &[T]) -> bool {
    values.is_sorted_by(|a, b| a < b)
}

impl Task for DependencySat {
    task_items!(
        Instance,
        State,
        Action,
        Spec { decisive: &["installable", "order"], ..page::SPEC }
    );

    fn generate(difficulty: Difficulty, rng: &mut TaskRng) -> Instance {
        // Drawn first, so that rejection does not change the share of installable instances.
        let installable = rng.chance(3, 4);
        let (_, longest) = page::size::STEPS.range(difficulty);
        loop {
            let packages = page::size::PACKAGES.draw(difficulty, rng);
            let constraints = page::size::CONSTRAINTS.draw(difficulty, rng);
            let instance = Instance::random(packages, constraints, rng);

            if !instance.is_peaceful(instance.install.iter().collect()) {
                continue;
            }

            let Some((end, steps)) = reference_end::<Self>(&instance, longest.unsigned_abs())
            else {
                continue;
            };

            if end.failed != installable && page::size::STEPS.accepts(difficulty, steps) {
                return instance;
            }
        }
    }

    fn validate(instance: &Instance) -> Result<(), InvalidInput> {
        let n = instance.packages;
        InvalidInput::unless(
            (1..=PACKAGES_MAX).contains(&n),
            "packages",
            format!("is {n}; give 1 to {PACKAGES_MAX}"),
        )?;

        let install = &instance.install;
        let asked =
            !install.is_empty() && ascend(install) && install.iter().all(|package| *package < n);
        InvalidInput::unless(
            asked,
            "install",
            format!("must be packages below {n}, ascending, at least one"),
        )?;

        let depends = &instance.depends;
        let few = format!("are {}; give up to {DEPENDENCIES_MAX}", depends.len());
        InvalidInput::unless(depends.len() <= DEPENDENCIES_MAX, "depends", few)?;
        InvalidInput::unless(
            depends.is_sorted_by_key(|(package, _)| *package),
            "depends",
            "must be sorted by package",
        )?;
        // Without cycles, some package can always be installed.
        let forward = depends.iter().all(|(package, alternatives)| {
            let mut sorted = alternatives.clone();
            sorted.sort_unstable();
            !sorted.is_empty()
                && ascend(&sorted)
                && sorted.iter().all(|other| package < other && *other < n)
        });

        let numbers =
            format!("every package needs distinct alternatives with higher numbers, below {n}");
        InvalidInput::unless(forward, "depends", numbers)?;

        let conflicts = &instance.conflicts;
        let sorted = ascend(conflicts) && conflicts.iter().all(|(p, q)| p < q && *q < n);
        InvalidInput::unless(
            sorted,
            "conflicts",
            format!("must be sorted pairs [p, q], p < q, below {n}, each once"),
        )?;

        let peaceful = instance.is_peaceful(install.iter().collect());
        InvalidInput::unless(peaceful, "install", "asks for two packages that are in conflict")?;
        // Last, because the reference relies on the checks above.
        let longest = Self::steps_max(instance);
        let ends = reference_steps::<Self>(instance, longest).is_some();
        InvalidInput::unless(ends, "depends", format!("take more than {longest} steps"))
    }

    fn start(_: &Instance) -> State {
        State {
            choices_made: Vec::new(),
            installed: Vec::new(),
            choices: 0,
            backtracks: 0,
            first_dead_end: -1,
            failed: false,
            last: Last(None),
        }
    }

    fn check_state(instance: &Instance, state: &State) -> Result<(), InvalidInput> {
        let (packages, dependencies) = (instance.packages, instance.depends.len());
        limits::below(
            "choices_made",
            state.choices_made.iter().map(|(dependency, _)| *dependency),
            dependencies,
        )?;
        limits::below(
            "choices_made",
            state.choices_made.iter().map(|(_, package)| *package),
            packages,
        )?;
        limits::below("installed", state.installed.iter().copied(), packages)?;
        // The reference looks up the dependency of a choice that was taken back.
        match state.last.0 {
            Some(Action::Back(dependency, _)) => limits::below("last", [dependency], dependencies),
            _ => Ok(()),
        }
    }

    fn apply(instance: &Instance, state: &mut State, action: &Action) -> Result<(), Illegal> {
        if state.failed {
            return Err(Illegal("the search has failed"));
        }

        match *action {
            Action::Choose(dependency, package) => {
                let (_, alternatives) = instance
                    .depends
                    .get(dependency)
                    .ok_or(Illegal("there is no such dependency"))?;
                if !alternatives.contains(&package) {
                    return Err(Illegal("the package is not an alternative of the dependency"));
                }
                if state.selected(instance).contains(package) {
                    return Err(Illegal("the package is selected"));
                }
                state.choices_made.push((dependency, package));
                state.choices += 1;
            }
            Action::Back(dependency, package) => {
                if state.choices_made.last() != Some(&(dependency, package)) {
                    return Err(Illegal("this is not the latest choice"));
                }

                // Before the choice goes: the dead end belongs to all choices made.
                state.meet_dead_end(instance);
                state.choices_made.pop();
                state.backtracks += 1;
            }
            Action::Fail => {
                state.meet_dead_end(instance);
                state.failed = true;
            }
            Action::Install(package) => {
                if package >= instance.packages || !state.selected(instance).contains(package) {
                    return Err(Illegal("the package is not selected"));
                }
                if state.installed.contains(&package) {
                    return Err(Illegal("the package is installed"));
                }
                state.installed.push(package);
            }
        }

        Ok(())
    }

    fn reference(instance: &Instance, state: &State) -> Option<Action> {
        // After wrong lines the end may come with a choice taken back.
        if Self::ended(instance, state) {
            return None;
        }

        let selected = state.selected(instance);
        // After a choice is taken back, the alternatives after it are tried.
        let (dependency, untried) = match state.last.0 {
            Some(Action::Back(dependency, package)) => {
                let alternatives = &instance.depends[dependency].1;
                let tried = alternatives.iter().position(|other| *other == package)? + 1;
                (dependency, &alternatives[tried..])
            }
            _ => match instance.unmet(selected) {
                Some(dependency) => (dependency, &instance.depends[dependency].1[..]),
                None => {
                    return instance.installable(selected, state.installed()).map(Action::Install);
                }
            },
        };

        match untried.iter().find(|package| instance.is_allowed(**package, selected)) {
            // Only after a wrong line; to choose it again is illegal.
            Some(package) if selected.contains(*package) => None,
            Some(package) => Some(Action::Choose(dependency, *package)),
            None => Some(match state.choices_made.last() {
                Some((dependency, package)) => Action::Back(*dependency, *package),
                None => Action::Fail,
            }),
        }
    }

    fn violations(
        instance: &Instance,
        before: &State,
        action: &Action,
        after: &State,
        found: &mut Violations,
    ) {
        let selected = after.selected(instance);
        let ascends = match *after.choices_made {
            [.., (previous, _), (latest, _)] => previous < latest,
            _ => true,
        };
        found.require(page::ASCENDING_CHOICES, ascends);

        // The alternatives of a choice's dependency before it have been refuted together with the
        // choices before it: `first-allowed` skips only what is in conflict, and the choice that a
        // back line takes away is refuted too, because of a dead end or of all alternatives of the
        // next choice. So `fail`, without a choice left, refutes everything. An installation is
        // checked as it is: conflicts, dependencies and order.
        if let Action::Choose(dependency, package) = *action {
            found.require(page::FIRST_ALLOWED, before.may_choose(instance, dependency, package));
        }

        let installs = matches!(action, Action::Install(_));
        let met = || instance.meets_all(before.selected(instance));
        found.require(
            page::CHOICES_FIRST,
            if installs { met() } else { before.installed.is_empty() },
        );

        if matches!(action, Action::Back(..) | Action::Fail) {
            found.require(page::DEAD_END, before.is_dead_end(instance));
        }

        if let (Action::Install(_), [.., previous, latest]) = (action, &*after.installed)
            && latest < previous
        {
            found.require(
                page::INSTALL_ORDER,
                instance.depends.iter().any(|(package, alternatives)| {
                    package == latest && alternatives.contains(previous)
                }),
            );
        }

        found.require(page::NO_CONFLICT, instance.is_peaceful(selected));

        let supported = after.choices_made.iter().all(|(dependency, _)| {
            instance
                .depends
                .get(*dependency)
                .is_some_and(|(package, _)| selected.contains(*package))
        });
        found.require(page::SUPPORTED, supported);

        found.require(
            page::AFTER_DEPENDENCIES,
            instance.comes_after_needs(&after.installed, selected),
        );

        let balance =
            instance.install.len() as u64 + after.choices == selected.count() + after.backtracks;
        found.require(page::LEDGER, balance);

        if Self::ended(instance, after) {
            let complete = instance.unmet(selected).is_none()
                && selected.without(after.installed()).is_empty();
            found.require(
                page::COMPLETE,
                if after.failed { after.choices_made.is_empty() } else { complete },
            );
        }
    }

    fn ended(instance: &Instance, state: &State) -> bool {
        let selected = state.selected(instance);
        state.failed
            || (selected.without(state.installed()).is_empty()
                && instance.unmet(selected).is_none())
    }

    fn answer(_: &Instance, state: &State) -> Value {
        json!({
            "installable": !state.failed,
            "order": if state.failed { &[] } else { &state.installed[..] },
            "choices": state.choices,
            "backtracks": state.backtracks,
            "first_dead_end": state.first_dead_end,
        })
    }

    /// Any installation in any order that its dependencies allow is right.
    fn goal(instance: &Instance, answer: &Value) -> Option<bool> {
        #[derive(Deserialize)]
        struct Answer {
            installable: bool,
            order: Vec<usize>,
        }

        let Ok(given) = serde_json::from_value::<Answer>(exact(answer).into_owned()) else {
            return Some(false);
        };
        if given.installable {
            return Some(instance.is_installation(&given.order));
        }

        let (end, _) = reference_end::<Self>(instance, Self::steps_max(instance))?;
        Some(given.order.is_empty() && end.failed)
    }

    /// Inputs that take longer than the benchmark's longest traces are refused.
    fn steps_max(_: &Instance) -> u64 {
        let (_, longest) = page::size::STEPS.range(Difficulty::Hard);
        longest.unsigned_abs()
    }
}

#[cfg(test)]
mod tests {
    use super::{Action, DependencySat, Instance, Task};

    #[test]
    fn a_choice_taken_back_may_end_the_trace() {
        let depends = vec![(0, vec![1]), (2, vec![3])];
        let instance = Instance { packages: 4, install: vec![0], depends, conflicts: Vec::new() };
        let mut state = DependencySat::start(&instance);

        // Nothing asks for package 3.
        let lines = [
            Action::Choose(0, 1),
            Action::Choose(1, 3),
            Action::Install(1),
            Action::Install(0),
            Action::Back(1, 3),
        ];
        for action in lines {
            assert!(!DependencySat::ended(&instance, &state));
            DependencySat::step(&instance, &mut state, action).expect("legal");
        }
        assert!(DependencySat::ended(&instance, &state));
        assert_eq!(DependencySat::reference(&instance, &state), None);
    }
}
