//! Figures of a study: which chart shows which rows, with a caption that names n, intervals and
//! tests.

mod by_category;
mod by_size;
mod by_system;
mod by_task;
mod pareto;
mod token_curve;

use crate::results::Results;
use crate::tables::wanted;

/// A figure.
#[derive(Clone, Debug)]
pub struct Figure {
    /// Name of its file, and its anchor on the page.
    pub id: String,
    /// What it corresponds to in the paper: `Figure 12`.
    pub paper: &'static str,
    /// Heading of the figure.
    pub title: String,
    /// What is shown, with n and intervals.
    pub caption: String,
    /// The drawing, which stands alone, in the colours of a light page.
    pub svg: String,
    /// Identifier of the table that has its rows.
    pub table: String,
}

/// Maximum number of systems in one drawing; the tables have all.
const SYSTEMS_MAX: usize = 6;

/// A sentence that says how many systems are not drawn; empty if all are.
fn more_systems(results: &Results<'_>) -> String {
    match results.systems.len().saturating_sub(SYSTEMS_MAX) {
        0 => String::new(),
        more => format!(" {more} more systems are in the table only."),
    }
}

/// Names of the systems that are drawn.
fn system_names(results: &Results<'_>) -> Vec<String> {
    results.systems.iter().take(SYSTEMS_MAX).map(|system| system.label.clone()).collect()
}

/// The table that has the rows of a figure, by the figure's identifier.
pub(crate) fn rows_of(figure: &str) -> &'static str {
    match figure {
        "categories" | "radar" => "categories",
        "difficulty" => "difficulty",
        "top-gains" | "scatter" | "gains" => "task-pairs",
        "pareto" => "latency",
        "sizes" | "heat-map" => "sizes",
        "profile" => "size-laws",
        "systems" => "summary",
        "pairs" => "comparison",
        "sweep" => "sweeps",
        "scaling" => "scaling",
        "transfer" => "transfer",
        "token-curve" => "token-curve",
        _ => "tasks",
    }
}

/// The figures that a list of the paper's numbers asks for; all without a list. Figures without
/// data are left out.
pub fn all_figures(results: &Results<'_>, numbers: &[String]) -> Vec<Figure> {
    let mut asked = wanted(numbers, 'F');
    // The paper has these only as tables.
    asked.extend(
        wanted(numbers, 'T')
            .into_iter()
            .filter(|id| ["difficulty", "sweeps", "transfer"].contains(id)),
    );

    let mut figures = Vec::new();
    type Make = fn(&Results<'_>) -> Vec<Figure>;
    let makers: [(&str, Make); 17] = [
        ("categories", by_category::bars),
        ("radar", by_category::radar),
        ("boxes", by_category::boxes),
        ("difficulty", by_category::difficulty),
        ("tasks", by_task::tasks),
        ("top-gains", by_task::top_gains),
        ("scatter", by_task::scatter),
        ("gains", by_task::gains),
        ("pareto", pareto::pareto),
        ("systems", by_system::systems),
        ("pairs", by_system::pairs),
        ("sizes", by_size::lines),
        ("heat-map", by_size::heat_maps),
        ("profile", by_size::profiles),
        ("sweeps", by_system::sweep_lines),
        ("scaling", by_system::scaling),
        ("transfer", by_system::transfer),
    ];

    for (_, make) in makers.into_iter().filter(|(id, _)| asked.contains(id)) {
        figures.extend(make(results));
    }
    // The paper has no such figure.
    figures.extend(token_curve::token_curve(results));

    figures
}
