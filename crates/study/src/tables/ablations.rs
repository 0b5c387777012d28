//! Systems without some components, against the same system with all of them (Tables 6, 58 and 59).

use super::comparison::{adjusted, p_value, significance};
use super::summary::accuracy_cells;
use super::table::{Cell, Column, Table};
use crate::records::Record;
use crate::results::{PairResults, Results, SystemResults, over_instances, pair};
use crate::statistics::{Computed, Estimate, LeftOut, clustered, mean, tango};

/// The factor that names what was removed.
pub(crate) const WITHOUT: &str = "without";

/// A system, what it lacks, and how it compares with the one that lacks nothing.
pub(crate) struct Ablation<'s, 'r> {
    pub system: &'s SystemResults<'r>,
    /// Names of what it lacks, joined by `+`; empty for the complete system.
    pub without: String,
    /// Comparison of the complete system with this one; `None` for the complete system itself.
    pub pair: Option<PairResults>,
}

/// Complete systems, each followed by the systems that lack something and are otherwise the same.
pub(crate) fn ablations<'s, 'r>(results: &'s Results<'r>) -> Vec<Ablation<'s, 'r>> {
    let mut all = Vec::new();
    for full in results.systems.iter().filter(|system| system.parts(WITHOUT).is_empty()) {
        let is_same = |system: &&SystemResults<'_>| {
            !system.parts(WITHOUT).is_empty()
                && system.evidence.is_comparable(full.evidence)
                && system.other_factors(WITHOUT) == full.other_factors(WITHOUT)
        };

        let without: Vec<&SystemResults<'_>> = results.systems.iter().filter(is_same).collect();

        if without.is_empty() {
            continue;
        }

        all.push(Ablation { system: full, without: String::new(), pair: None });
        all.extend(without.into_iter().filter_map(|system| {
            let without = system.parts(WITHOUT).into_iter().collect::<Vec<_>>().join(" + ");
            Some(Ablation { system, without, pair: Some(pair(full, system)?) })
        }));
    }
    all
}

/// Share in per cent of the runs whose first error has one of these types.
fn errors(system: &SystemResults<'_>, types: &[&str]) -> Cell {
    let is_such = |run: &&&Record| {
        run.first_error_type.as_deref().is_some_and(|found| types.contains(&found))
    };

    Cell::share(system.runs.iter().filter(is_such).count(), system.runs.len())
}

/// Mean difference in accuracy over instances, with its interval: Tango's for one task, otherwise
/// clustered by task.
pub(super) fn change(pair: &PairResults) -> [Cell; 2] {
    let differences: Vec<Vec<f64>> =
        pair.tasks.iter().map(crate::results::PairedTask::differences).collect();

    let interval = match &pair.tasks[..] {
        [task] if task.is_counted => tango(task.only_right, task.only_left, task.left.len() as u64),
        _ => clustered(&differences).map(|estimate| estimate.interval),
    };

    let all: Vec<f64> = differences.into_iter().flatten().collect();
    let change = if all.is_empty() { Cell::Empty } else { Cell::number(100.0 * mean(&all), 1) };
    [change, Cell::percent_interval(&interval)]
}

pub(super) fn ablation(results: &Results<'_>) -> Table {
    let all = ablations(results);
    // Adjusted together: only the rows with a pair have a test.
    let p: Vec<Computed<f64>> = all.iter().filter_map(|it| it.pair.as_ref()).map(p_value).collect();
    let mut tests = p.iter().zip(adjusted(&p));

    let mut rows = Vec::new();

    for Ablation { system, without, pair } in &all {
        let accuracy = over_instances(&system.values(|_, _| true));

        let sum = |figure: fn(&Record) -> u64| {
            system.runs.iter().map(|run| figure(run)).sum::<u64>() as f64
        };
        let steps = sum(|run| run.steps) / system.runs.len() as f64;

        let name = if without.is_empty() { "nothing" } else { without };
        let mut row = vec![
            Cell::Text(system.label.clone()),
            Cell::Text(name.to_owned()),
            Cell::instances(accuracy.n, accuracy.inputs),
        ];
        row.extend(accuracy_cells(&accuracy));

        match (pair, pair.as_ref().and_then(|_| tests.next())) {
            (Some(pair), Some((p, adjusted))) => {
                row.extend(change(pair));
                row.extend([
                    Cell::computed(p.as_ref(), |p| Cell::P(*p)),
                    Cell::computed(adjusted.as_ref(), |p| Cell::P(*p)),
                ]);
                row.push(significance(&adjusted));
            }
            _ => row.extend([const { Cell::Empty }; 5]),
        }

        row.extend([
            errors(system, &["carryover", "reset"]),
            errors(system, &["boundary", "invariant"]),
            Cell::number(steps, 1),
            Cell::number(100.0 * sum(|run| run.retries) / sum(|run| run.proposals), 2),
        ]);
        rows.push(row);
    }

    Table {
        id: "ablation".to_owned(),
        paper: "Tables 6, 58 and 73",
        title: "Components removed".to_owned(),
        caption:
            "Each system without some components, and its change against the same system with all of them, on the \
                  same instances, in percentage points (pp). 95 % intervals and tests as for pairs of systems; p \
                  adjusted by Holm over the rows of this table. State errors: first errors of the types carryover and \
                  reset; constraint errors: boundary and invariant; in per cent of runs. Steps: mean of the answer's \
                  trajectory. Retries: in per cent of proposals."
                .to_owned(),
        columns: vec![
            Column::text("system"),
            Column::text("without"),
            Column::number("n"),
            Column::number("accuracy, %"),
            Column::interval("95 %"),
            Column::number("change, pp"),
            Column::interval("95 %, change"),
            Column::number("p"),
            Column::number("p, Holm"),
            Column::text("significant"),
            Column::number("state errors, %"),
            Column::number("constraint errors, %"),
            Column::number("steps"),
            Column::number("retries, %"),
        ],
        rows,
    }
}

/// What removing several components costs beyond the sum of what each costs alone, over instances
/// on which all systems were measured.
fn interaction(
    full: &SystemResults<'_>,
    alone: &[&SystemResults<'_>],
    both: &SystemResults<'_>,
) -> Computed<Estimate> {
    let of = |system: &SystemResults<'_>, slug: &str| {
        system
            .tasks
            .iter()
            .find(|task| task.spec.slug == slug)
            .map(|task| task.instances.clone())
            .unwrap_or_default()
    };

    let task = |task: &crate::results::TaskResults<'_>| -> Vec<f64> {
        let slug = task.spec.slug;
        let (alone, both): (Vec<_>, _) =
            (alone.iter().map(|system| of(system, slug)).collect(), of(both, slug));

        let value = |(instance, full): (&crate::results::Instance, &f64)| {
            let drops = alone
                .iter()
                .map(|values| Some(full - values.get(instance)?))
                .sum::<Option<f64>>()?;
            Some((full - both.get(instance)?) - drops)
        };
        task.instances.iter().filter_map(value).collect()
    };

    let values: Vec<Vec<f64>> =
        full.tasks.iter().map(task).filter(|values| !values.is_empty()).collect();

    match &values[..] {
        [] => Err(LeftOut::TooFew {
            what: "instances that all systems were measured on",
            need: 1,
            have: 0,
        }),
        // One task: the instances are the clusters.
        [values] => clustered(&values.iter().map(|value| vec![*value]).collect::<Vec<_>>()),
        values => clustered(values),
    }
}

pub(super) fn interactions(results: &Results<'_>) -> Table {
    let all = ablations(results);

    let mut rows = Vec::new();
    let mut full = None;
    // `ablations` lists each complete system before those that lack something.
    for ablation in &all {
        let Some(pair) = &ablation.pair else {
            full = Some(ablation);
            continue;
        };

        let parts = ablation.system.parts(WITHOUT);
        let Some(full) = full.filter(|_| parts.len() > 1) else { continue };

        let single = |part: &&str| {
            let is_it = |other: &&Ablation<'_, '_>| {
                other.without == **part
                    && other.system.evidence.is_comparable(full.system.evidence)
                    && other.system.other_factors(WITHOUT) == full.system.other_factors(WITHOUT)
            };
            all.iter().find(is_it)
        };

        let Some(singles) = parts.iter().map(single).collect::<Option<Vec<_>>>() else { continue };

        let drop = |pair: &PairResults| -> f64 {
            mean(
                &pair
                    .tasks
                    .iter()
                    .flat_map(crate::results::PairedTask::differences)
                    .collect::<Vec<_>>(),
            )
        };

        let sum: f64 = singles.iter().filter_map(|single| single.pair.as_ref()).map(drop).sum();
        let alone: Vec<&SystemResults<'_>> = singles.iter().map(|single| single.system).collect();
        let interaction = interaction(full.system, &alone, ablation.system);

        rows.push(vec![
            Cell::Text(ablation.without.clone()),
            Cell::count(pair.n()),
            Cell::number(100.0 * sum, 1),
            Cell::number(100.0 * drop(pair), 1),
            // Drops are positive in the estimate, changes negative in the table.
            Cell::computed(interaction.as_ref(), |estimate| {
                Cell::number(-100.0 * estimate.mean, 1)
            }),
            Cell::computed(interaction.as_ref(), |estimate| {
                Cell::interval(estimate.interval.scaled(-100.0).ordered(), 1)
            }),
        ]);
    }

    Table {
        id: "interactions".to_owned(),
        paper: "Table 59",
        title: "Interaction of components".to_owned(),
        caption: "Change in accuracy without several components, against the sum of the changes without each, in \
                  percentage points (pp). Below zero: together they are worth more than the sum. 95 % interval of \
                  the difference: clustered by task (over instances, if there is one task)."
            .to_owned(),
        columns: vec![
            Column::text("without"),
            Column::number("pairs"),
            Column::number("sum, pp"),
            Column::number("together, pp"),
            Column::number("difference, pp"),
            Column::interval("95 %"),
        ],
        rows,
    }
}
