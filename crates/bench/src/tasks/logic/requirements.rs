//! Packages that are asked for, with their dependencies and conflicts.

use serde::{Deserialize, Serialize};

use super::packages::{PACKAGES_MAX, Packages};
use crate::tasks::TaskRng;

/// Packages that are asked for, with the dependencies and conflicts of all packages.
#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Instance {
    /// Number of packages, which are 0..packages.
    pub packages: usize,
    /// Packages asked for, ascending.
    pub install: Vec<usize>,
    /// Dependencies as (package, alternatives, the first tried first), sorted by package.
    pub depends: Vec<(usize, Vec<usize>)>,
    /// Pairs of packages that exclude each other, the lesser first; sorted.
    pub conflicts: Vec<(usize, usize)>,
}

impl Instance {
    /// Packages with this many dependencies and conflicts together, before rejection. Needs at least
    /// four packages.
    pub(super) fn random(packages: usize, constraints: usize, rng: &mut TaskRng) -> Self {
        let dependencies = constraints * rng.size(50, 70) / 100;
        let mut depends: Vec<(usize, Vec<usize>)> = (0..dependencies)
            .map(|_| {
                // At least three packages must follow: alternatives have higher numbers.
                let package = rng.index(packages - 3);
                let count = rng.one_of(&[1, 2, 2, 3]);
                (
                    package,
                    distinct(count, rng, |rng| {
                        rng.size(package + 1, (packages - 1).min(package + 15))
                    }),
                )
            })
            .collect();

        depends.sort_by_key(|(package, _)| *package);

        let mut conflicts = distinct(constraints - dependencies, rng, |rng| {
            let pair = distinct(2, rng, |rng| rng.index(packages));
            (pair[0].min(pair[1]), pair[0].max(pair[1]))
        });
        conflicts.sort_unstable();

        let count = rng.size(2, 4);
        let mut install = distinct(count, rng, |rng| rng.index(packages / 2));
        install.sort_unstable();

        Self { packages, install, depends, conflicts }
    }

    /// Returns whether the package is in conflict with no selected one.
    pub fn is_allowed(&self, package: usize, selected: Packages) -> bool {
        let clashes = |(p, q): &(usize, usize)| {
            (*p == package && selected.contains(*q)) || (*q == package && selected.contains(*p))
        };
        !self.conflicts.iter().any(clashes)
    }

    /// The packages that are in conflict with a selected one.
    pub fn forbidden(&self, selected: Packages) -> Packages {
        let mut forbidden = Packages::NONE;
        for (p, q) in &self.conflicts {
            if selected.contains(*p) {
                forbidden.extend([q]);
            }
            if selected.contains(*q) {
                forbidden.extend([p]);
            }
        }
        forbidden
    }

    /// Returns whether no two selected packages are in conflict.
    pub fn is_peaceful(&self, selected: Packages) -> bool {
        !self.conflicts.iter().any(|(p, q)| selected.contains(*p) && selected.contains(*q))
    }

    /// The lowest dependency of a selected package that no selected package meets.
    pub fn unmet(&self, selected: Packages) -> Option<usize> {
        self.depends.iter().position(|(package, alternatives)| {
            selected.contains(*package)
                && !alternatives.iter().any(|package| selected.contains(*package))
        })
    }

    /// Returns whether every dependency of a selected package is met by a selected package.
    pub fn meets_all(&self, selected: Packages) -> bool {
        let is_met = |(package, alternatives): &(usize, Vec<usize>)| {
            !selected.contains(*package)
                || alternatives.iter().any(|other| selected.contains(*other))
        };
        self.depends.iter().all(is_met)
    }

    /// The lowest selected package, not installed, whose dependencies name no other such package.
    pub fn installable(&self, selected: Packages, installed: Packages) -> Option<usize> {
        let waiting = selected.without(installed);
        let names_waiting = |(_, alternatives): &&(usize, Vec<usize>)| {
            alternatives.iter().collect::<Packages>().meets(waiting)
        };
        let blocked: Packages =
            self.depends.iter().filter(names_waiting).map(|(package, _)| package).collect();
        waiting.without(blocked).lowest()
    }

    /// Returns whether every package comes after all selected ones that its dependencies name.
    pub fn comes_after_needs(&self, order: &[usize], selected: Packages) -> bool {
        let mut before = Packages::NONE;
        let mut needs = [Packages::NONE; PACKAGES_MAX];
        for (package, alternatives) in &self.depends {
            needs[*package].extend(alternatives);
        }

        order.iter().all(|package| {
            let missing = needs[*package].without(before).meets(selected);
            before.extend([package]);
            !missing
        })
    }

    /// Returns whether these packages meet all that is asked for, without conflicts and in a right
    /// order.
    pub fn is_installation(&self, order: &[usize]) -> bool {
        if order.iter().any(|package| *package >= self.packages) {
            return false;
        }

        let selected: Packages = order.iter().collect();
        selected.count() == order.len() as u64
            && self.install.iter().all(|package| selected.contains(*package))
            && self.is_peaceful(selected)
            && self.meets_all(selected)
            && self.comes_after_needs(order, selected)
    }
}

/// This many distinct values, by redrawing duplicates.
fn distinct<T: PartialEq>(
    count: usize,
    rng: &mut TaskRng,
    mut value: impl FnMut(&mut TaskRng) -> T,
) -> Vec<T> {
    let mut values = Vec::with_capacity(count);
    while values.len() < count {
        let value = value(rng);
        if !values.contains(&value) {
            values.push(value);
        }
    }
    values
}
