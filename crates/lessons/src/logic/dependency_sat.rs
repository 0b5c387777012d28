//! Dependency SAT: marks each alternative of the first unmet dependency as allowed or forbidden;
//! then lists what each package waits for.
// A dependency of a selected package stands with `+` if a selected package meets it, else with `-`;
// the alternatives of the first unmet one are read, lettered, each with the selected packages that
// conflict with it. After a choice was taken back, the alternatives up to it are named first: `.`
// after those before it, `=` after itself. Numbers are written as in the action.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::logic::dependency_sat::{Action, DependencySat, Instance, State};

use crate::Lesson;
use crate::reads::looked_up;

pub struct DependencySatLesson;

/// A letter for each item of a list, by which it is found.
fn letter(place: usize) -> char {
    ('a'..='z').chain('A'..='Z').nth(place).unwrap_or('~')
}

/// The selected packages that conflict with this one.
fn conflicts(instance: &Instance, state: &State, package: usize) -> Vec<usize> {
    let selected = state.selected(instance);
    let pairs = instance.conflicts.iter().filter(|(p, q)| *p == package || *q == package);
    let others = pairs.map(|(p, q)| if *p == package { *q } else { *p });
    others.filter(|other| selected.contains(*other)).collect()
}

/// Alternatives, each with the selected packages that conflict with it: `a45!12!30,b7`.
fn alternatives(instance: &Instance, state: &State, packages: &[usize]) -> String {
    let alternative = |(place, package): (usize, &usize)| {
        let conflicts: Vec<_> =
            conflicts(instance, state, *package).iter().map(|other| format!("!{other}")).collect();
        format!("{}{package}{}", letter(place), conflicts.concat())
    };
    packages.iter().enumerate().map(alternative).collect::<Vec<_>>().join(",")
}

/// The dependencies of the selected packages, each marked as met or unmet.
fn dependencies<'a>(instance: &'a Instance, state: &State) -> Vec<(usize, &'a [usize], bool)> {
    let selected = state.selected(instance);
    let of_selected =
        instance.depends.iter().enumerate().filter(|(_, (package, _))| selected.contains(*package));
    let met = |packages: &[usize]| packages.iter().any(|package| selected.contains(*package));
    of_selected
        .map(|(number, (_, packages))| (number, packages.as_slice(), met(packages)))
        .collect()
}

/// The selected packages that are not installed, each with those of them that its dependencies
/// name.
fn waiting(instance: &Instance, state: &State) -> Vec<(usize, Vec<usize>)> {
    let waits = state.selected(instance).without(state.installed());

    let named = |package: usize| {
        let of_package = instance.depends.iter().filter(|(from, _)| *from == package);
        let mut named: Vec<_> = of_package.flat_map(|(_, packages)| packages).copied().collect();
        named.retain(|other| waits.contains(*other));
        named.sort_unstable();
        named.dedup();
        named
    };

    (0..instance.packages)
        .filter(|package| waits.contains(*package))
        .map(|package| (package, named(package)))
        .collect()
}

impl Lesson for DependencySatLesson {
    type Task = DependencySat;

    const READS_MAX: usize = 1;

    /// The alternatives of a dependency.
    fn read(instance: &Instance, state: &State, address: &str) -> Option<String> {
        let number =
            address.parse::<usize>().ok().filter(|number| number.to_string() == address)?;
        let (_, packages) = instance.depends.get(number)?;
        Some(alternatives(instance, state, packages))
    }

    fn view(instance: &Instance, state: &State) -> String {
        if DependencySat::ended(instance, state) {
            return "-".to_owned();
        }

        let latest = state.choices_made.last();
        let latest = latest
            .map_or_else(|| ".".to_owned(), |(number, package)| format!("{number} {package}"));

        if let Some(Action::Back(number, package)) = state.last.0 {
            let packages = alternatives(instance, state, &instance.depends[number].1);
            return format!("latest {latest} back {number} {package} of {packages}");
        }

        let dependencies = dependencies(instance, state);
        if dependencies.iter().any(|(.., met)| !met) {
            let dependency = |(number, _, met): &(usize, &[usize], bool)| {
                format!("{number}{}", if *met { '+' } else { '-' })
            };
            let dependencies: String = dependencies.iter().map(dependency).collect();
            return format!("latest {latest} needs {dependencies}");
        }

        let package = |(place, (package, named)): (usize, &(usize, Vec<usize>))| {
            let named: Vec<_> = named.iter().map(ToString::to_string).collect();
            let named = if named.is_empty() { "-".to_owned() } else { named.join(",") };
            format!(" {}{package}:{named}", letter(place))
        };

        format!(
            "waiting{}",
            waiting(instance, state).iter().enumerate().map(package).collect::<String>()
        )
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = DependencySat::reference(instance, state)?;

        // All is decided: the first package that waits for nothing is installed.
        if let Action::Install(_) = action {
            let mut line = String::new();
            for (place, (package, named)) in waiting(instance, state).iter().enumerate() {
                line += &format!("{}{package}:", letter(place));
                let Some(first) = named.first() else { return Some(line + "-") };
                line += &format!("{first} ");
            }
            return None;
        }

        let (mut line, packages, tried) = match state.last.0 {
            Some(Action::Back(number, package)) => {
                let packages = instance.depends[number].1.as_slice();
                (
                    format!("{number}:"),
                    packages,
                    packages.iter().position(|other| *other == package)? + 1,
                )
            }
            _ => {
                let (number, packages, _) =
                    dependencies(instance, state).into_iter().find(|(.., met)| !met)?;
                (
                    looked_up(&number.to_string(), &alternatives(instance, state, packages)),
                    packages,
                    0,
                )
            }
        };

        for (place, package) in packages.iter().enumerate() {
            line += &format!("{}{package}", letter(place));
            if place < tried {
                line += if place + 1 < tried { ". " } else { "= " };
                continue;
            }

            // The first conflict is enough.
            let Some(other) = conflicts(instance, state, *package).first().copied() else {
                return Some(line);
            };
            line += &format!("!{other} ");
        }

        Some(line + "none")
    }
}
