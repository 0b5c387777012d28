//! Packages that are asked for, with their dependencies and conflicts.

use serde::{Deserialize, Serialize};

use super::packages::{PACKAGES_MAX, Packages};

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
