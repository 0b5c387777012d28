//! Figures of a study: which chart shows which rows, with a caption that names n, intervals and
//! tests.

mod by_category;
mod by_size;
mod by_system;
mod by_task;
mod pareto;
mod token_curve;

use prime_page::number::trimmed;

use crate::plots::Series;
use crate::results::Results;
use crate::tables::{slug, wanted};

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
    /// The drawings, each of which stands alone, in the colours of a light page.
    pub panels: Vec<Panel>,
    /// Identifier of the table that has its rows.
    pub table: String,
}

/// A drawing of a figure.
#[derive(Clone, Debug)]
pub struct Panel {
    /// What it shows of the figure; empty if it is the only one.
    pub name: String,
    /// The drawing.
    pub svg: String,
}

impl Panel {
    /// The only drawing of a figure.
    pub(crate) fn only(svg: String) -> Vec<Self> {
        vec![Self { name: String::new(), svg }]
    }
}

impl Figure {
    /// The names of the drawings' files, without the extension, and the drawings.
    pub fn files(&self) -> impl Iterator<Item = (String, &str)> {
        self.panels.iter().map(|panel| match panel.name.as_str() {
            "" => (self.id.clone(), panel.svg.as_str()),
            name => (format!("{}-{}", self.id, slug(name)), panel.svg.as_str()),
        })
    }
}

/// Figures, and sentences about those that would show nothing.
#[derive(Clone, Debug, Default)]
pub struct Figures {
    /// What is drawn.
    pub drawn: Vec<Figure>,
    /// Why the others are not, a sentence each.
    pub left_out: Vec<String>,
}

/// A figure, or the sentence that stands in its place.
type Drawn = Result<Figure, String>;

/// The sentence in place of a figure.
fn not_drawn(title: &str, reason: &str) -> Drawn {
    Err(format!("{title}: {reason}."))
}

/// The value that all have, in per cent, as a reason for which a figure shows nothing.
fn same_everywhere(values: impl IntoIterator<Item = f64>) -> Option<String> {
    let mut values = values.into_iter();
    let first = values.next()?;
    values
        .all(|value| (value - first).abs() < 1e-9)
        .then(|| format!("every value is {} %", trimmed(first, 1)))
}

impl Extend<Drawn> for Figures {
    fn extend<I: IntoIterator<Item = Drawn>>(&mut self, all: I) {
        for drawn in all {
            match drawn {
                Ok(figure) => self.drawn.push(figure),
                Err(reason) => self.left_out.push(reason),
            }
        }
    }
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

/// Names and slots of the systems that are drawn.
fn system_series(results: &Results<'_>) -> Vec<Series> {
    let systems = results.systems.iter().take(SYSTEMS_MAX);
    systems.map(|system| (system.label.clone(), system.slot)).collect()
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

/// The figures that a list of the paper's numbers asks for; all without a list. Those without data
/// are not mentioned; in place of those whose values are all the same there is a sentence.
pub fn all_figures(results: &Results<'_>, numbers: &[String]) -> Figures {
    let mut asked = wanted(numbers, 'F');
    // The paper has these only as tables.
    asked.extend(
        wanted(numbers, 'T')
            .into_iter()
            .filter(|id| ["difficulty", "sweeps", "transfer"].contains(id)),
    );

    let mut figures = Figures::default();
    type Make = fn(&Results<'_>) -> Vec<Drawn>;
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
