//! Dependency SAT: of the first unmet dependency each alternative with what forbids it; then what each package waits for.
// A dependency of a selected package stands with `+` if a selected package meets it; otherwise with its alternatives, and
// behind each the selected packages that conflict with it. After a choice was taken back, the alternatives up to it are named first:
// `.` behind those before it, `=` behind itself.

use prime_bench::tasks::Task as _;
use prime_bench::tasks::logic::dependency_sat::{Action, DependencySat, Instance, State};

use crate::Lesson;

pub struct Of;

/// An alternative, then the selected packages that conflict with it: `45!12!30`.
fn alternative(instance: &Instance, state: &State, package: usize) -> String {
    let selected = state.selected(instance);
    let mut line = format!("{package:02}");
    for (p, q) in &instance.conflicts {
        let other = if *p == package { *q } else { *p };
        if (*p == package || *q == package) && selected.contains(other) {
            line += &format!("!{other:02}");
        }
    }
    line
}

fn alternatives(instance: &Instance, state: &State, packages: &[usize]) -> String {
    let shown: Vec<_> = packages.iter().map(|package| alternative(instance, state, *package)).collect();
    shown.join(",")
}

/// The dependencies of the selected packages, each with whether it is met.
fn dependencies<'a>(instance: &'a Instance, state: &State) -> Vec<(usize, &'a [usize], bool)> {
    let selected = state.selected(instance);
    let of_selected = instance.depends.iter().enumerate().filter(|(_, (package, _))| selected.contains(*package));
    let met = |packages: &[usize]| packages.iter().any(|package| selected.contains(*package));
    of_selected.map(|(number, (_, packages))| (number, packages.as_slice(), met(packages))).collect()
}

/// The selected packages that are not installed, each with those of them that its dependencies name.
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
    (0..instance.packages).filter(|package| waits.contains(*package)).map(|package| (package, named(package))).collect()
}

impl Lesson for Of {
    type Task = DependencySat;

    fn view(instance: &Instance, state: &State) -> String {
        if DependencySat::ended(instance, state) {
            return "-".to_owned();
        }
        let latest = state.choices_made.last();
        let latest = latest.map_or_else(|| "-".to_owned(), |(number, package)| format!("{number:03} {package:02}"));
        if let Some(Action::Back(number, package)) = state.last.0 {
            let packages = alternatives(instance, state, &instance.depends[number].1);
            return format!("back {number:03} {package:02} of {packages} latest {latest}");
        }
        let dependencies = dependencies(instance, state);
        if dependencies.iter().any(|(.., met)| !met) {
            let dependency = |(number, packages, met): &(usize, &[usize], bool)| match met {
                true => format!("{number:03}+"),
                false => format!(" {number:03}:{} ", alternatives(instance, state, packages)),
            };
            let dependencies: String = dependencies.iter().map(dependency).collect();
            return format!("latest {latest} needs {}", dependencies.trim());
        }
        let package = |(package, named): &(usize, Vec<usize>)| {
            let named: Vec<_> = named.iter().map(|other| format!("{other:02}")).collect();
            format!("{package:02}:{}", if named.is_empty() { "-".to_owned() } else { named.join(",") })
        };
        format!("waiting {}", waiting(instance, state).iter().map(package).collect::<Vec<_>>().join(" "))
    }

    fn derivation(instance: &Instance, state: &State) -> Option<String> {
        let action = DependencySat::reference(instance, state)?;
        if let Action::Install(_) = action {
            let waiting = waiting(instance, state);
            let ready = waiting.iter().position(|(_, named)| named.is_empty())?;
            let passed =
                waiting[..ready].iter().map(|(package, named)| Some(format!("{package:02}:{:02} ", named.first()?)));
            return passed.collect();
        }
        let unmet = || dependencies(instance, state).into_iter().find(|(.., met)| !met);
        let (number, tried, untried) = match state.last.0 {
            Some(Action::Back(number, package)) => {
                let packages = instance.depends[number].1.as_slice();
                let tried = packages.iter().position(|other| *other == package)? + 1;
                (number, packages.get(..tried)?, packages.get(tried..)?)
            }
            _ => unmet().map(|(number, packages, _)| (number, &[][..], packages))?,
        };
        let mut line = format!("{number:03}:");
        if let Some((last, before)) = tried.split_last() {
            before.iter().for_each(|package| line += &format!(" {package:02}."));
            line += &format!(" {last:02}=");
        }
        for package in untried {
            let tried = alternative(instance, state, *package);
            // The first conflict is enough.
            line += &format!(" {}", tried.get(..5).unwrap_or(&tried));
            if !tried.contains('!') {
                return Some(line);
            }
        }
        Some(line + " none")
    }
}
