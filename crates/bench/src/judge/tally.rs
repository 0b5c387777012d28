//! Aggregates judgements: a row per task and level, per category, and overall.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::judgement::{Judgement, Stage, StageResult};
use super::taxonomy::ErrorType;
use crate::interval::Proportion;
use crate::tasks::{Difficulty, Severity};

/// Running mean and standard deviation.
#[derive(Clone, Copy, Debug, Default)]
struct Moments {
    count: u64,
    sum: f64,
    squares: f64,
}

impl Moments {
    fn add(&mut self, value: Option<f64>) {
        if let Some(value) = value {
            self.count += 1;
            self.sum += value;
            self.squares += value * value;
        }
    }

    fn merge(&mut self, other: &Self) {
        self.count += other.count;
        self.sum += other.sum;
        self.squares += other.squares;
    }

    fn mean(&self) -> Option<f64> {
        (self.count > 0).then(|| self.sum / self.count as f64)
    }

    fn deviation(&self) -> Option<f64> {
        let mean = self.mean()?;
        // Rounding can make the variance of equal values slightly negative.
        Some((self.squares / self.count as f64 - mean * mean).max(0.0).sqrt())
    }
}

/// Sums over judgements.
#[derive(Clone, Debug, Default)]
pub struct Tally {
    submissions: u64,
    traces: u64,
    lines: u64,
    /// Submissions that passed this stage and all earlier ones that were judged.
    passed: [u64; 4],
    correct: u64,
    /// Digests of the inputs.
    inputs: BTreeSet<u64>,
    partial_credit: Moments,
    efficiency: Moments,
    first_error: Moments,
    faithful: Moments,
    violations: BTreeMap<&'static str, u64>,
    severities: [u64; 3],
    errors: [u64; 9],
    /// Wrong answers without a trace: their first error cannot be located.
    unlocated: u64,
    /// Submissions of which nothing could be read. They are wrong.
    unreadable: u64,
}

impl Tally {
    /// Adds a judgement.
    pub fn add(&mut self, judgement: &Judgement) {
        self.submissions += 1;
        self.traces += u64::from(judgement.steps.is_some());
        self.lines += judgement.steps.unwrap_or_default();
        self.correct += u64::from(judgement.correct());
        self.inputs.insert(judgement.input);
        self.unreadable += u64::from(judgement.unreadable.is_some());

        for (stage, passed) in Stage::ALL.into_iter().zip(&mut self.passed) {
            // A stage counts only after all that come before it.
            if judgement.stage(stage) == StageResult::Failed {
                break;
            }
            *passed += 1;
        }

        self.partial_credit.add(judgement.partial_credit);
        self.efficiency.add(judgement.efficiency);
        self.first_error.add(judgement.first_error.as_ref().map(|error| error.percentile));
        self.faithful.add(judgement.faithful.map(|faithful| f64::from(u8::from(faithful))));

        for broken in &judgement.violations {
            *self.violations.entry(broken.constraint).or_default() += broken.times;
            self.severities[broken.severity as usize] += broken.times;
        }

        match &judgement.first_error {
            Some(error) => self.errors[error.error as usize] += 1,
            None if judgement.format == StageResult::Failed => {
                self.errors[ErrorType::Format as usize] += 1;
            }
            None => self.unlocated += u64::from(!judgement.correct()),
        }
    }

    fn merge(&mut self, other: &Self) {
        self.submissions += other.submissions;
        self.traces += other.traces;
        self.lines += other.lines;
        self.correct += other.correct;
        self.inputs.extend(&other.inputs);
        self.unlocated += other.unlocated;
        self.unreadable += other.unreadable;

        let pairs = self.passed.iter_mut().zip(&other.passed);
        pairs.chain(self.errors.iter_mut().zip(&other.errors)).for_each(|(sum, more)| *sum += more);
        self.severities.iter_mut().zip(&other.severities).for_each(|(sum, more)| *sum += more);

        self.partial_credit.merge(&other.partial_credit);
        self.efficiency.merge(&other.efficiency);
        self.first_error.merge(&other.first_error);
        self.faithful.merge(&other.faithful);

        for (constraint, times) in &other.violations {
            *self.violations.entry(constraint).or_default() += times;
        }
    }

    fn row(&self, name: String) -> Row {
        let share = |count: u64| count as f64 / self.submissions.max(1) as f64;
        let stages = Stage::ALL
            .into_iter()
            .zip(self.passed)
            .map(|(stage, passed)| (stage.name(), share(passed)));

        let severity = |severity: Severity| self.severities[severity as usize];
        let inputs = self.inputs.len() as u64;
        let accuracy = Proportion::over_inputs(self.correct, self.submissions, inputs);

        Row {
            name,
            submissions: self.submissions,
            traces: self.traces,
            lines: self.lines,
            stages: stages.collect(),
            correct: self.correct,
            accuracy: share(self.correct),
            inputs,
            low: accuracy.low,
            high: accuracy.high,
            partial_credit: self.partial_credit.mean(),
            efficiency: self.efficiency.mean(),
            first_error_mean: self.first_error.mean(),
            first_error_deviation: self.first_error.deviation(),
            faithfulness: self.faithful.mean(),
            violations: self.violations.clone(),
            critical: severity(Severity::Critical),
            major: severity(Severity::Major),
            minor: severity(Severity::Minor),
            errors: ErrorType::ALL
                .into_iter()
                .map(|error| (error.name(), self.errors[error as usize]))
                .filter(|(_, count)| *count > 0)
                .collect(),
            unlocated: self.unlocated,
            unreadable: self.unreadable,
        }
    }
}

/// The figures of a task and level, a category, or all.
#[derive(Clone, Debug, Serialize)]
pub struct Row {
    /// The task and level, the task, the category or the level, or `all`.
    pub name: String,
    /// Number of submissions that count.
    pub submissions: u64,
    /// Submissions with a trace.
    pub traces: u64,
    /// Lines of these traces.
    pub lines: u64,
    /// Share that passed the stage and all before it, 0 to 1. A submission without a trace is not
    /// held back by the semantic stage.
    pub stages: BTreeMap<&'static str, f64>,
    /// Number of right answers.
    pub correct: u64,
    /// Right answers over submissions.
    pub accuracy: f64,
    /// Different inputs of the submissions' instances.
    pub inputs: u64,
    /// Ends of the accuracy's 95 % Wilson interval, for which an input counts once.
    pub low: f64,
    /// Upper end of that interval.
    pub high: f64,
    /// Mean share of right states, over traces.
    pub partial_credit: Option<f64>,
    /// Mean of steps over reference steps, over traces.
    pub efficiency: Option<f64>,
    /// Mean position of the first error, per cent of the reference trace, over traces that have
    /// one.
    pub first_error_mean: Option<f64>,
    /// Standard deviation of these positions.
    pub first_error_deviation: Option<f64>,
    /// For sorts: share of answers that hold the values of the input.
    pub faithfulness: Option<f64>,
    /// The number of times that each constraint was broken.
    pub violations: BTreeMap<&'static str, u64>,
    /// Number of broken constraints of severity critical.
    pub critical: u64,
    /// Number of broken constraints of severity major.
    pub major: u64,
    /// Number of broken constraints of severity minor.
    pub minor: u64,
    /// First errors by type.
    pub errors: BTreeMap<&'static str, u64>,
    /// Wrong answers without a trace.
    pub unlocated: u64,
    /// Submissions of which nothing could be read. They are among the wrong ones.
    pub unreadable: u64,
}

/// The sums of a whole file.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    /// All submissions together.
    pub overall: Row,
    /// Mean accuracy of the tasks, each counted once, as in the paper's tables.
    pub accuracy_of_tasks: f64,
    /// A row for each category, in benchmark order.
    pub categories: Vec<Row>,
    /// A row for each task, in benchmark order.
    pub tasks: Vec<Row>,
    /// A row for each level.
    pub levels: Vec<Row>,
}

impl Report {
    /// Sums judgements by task, category and level, in benchmark order.
    pub fn of<'v>(
        judgements: impl IntoIterator<
            Item = (&'v (u16, Difficulty), &'v (Tally, &'static crate::tasks::Spec)),
        >,
    ) -> Self {
        let mut overall = Tally::default();
        // Ordered maps: the rows of a report come in benchmark order.
        let mut categories: BTreeMap<usize, (&str, Tally)> = BTreeMap::new();
        let mut tasks: BTreeMap<(u16, &str), Tally> = BTreeMap::new();
        let mut levels: BTreeMap<Difficulty, Tally> = BTreeMap::new();

        for ((id, difficulty), (tally, spec)) in judgements {
            overall.merge(tally);

            let category = spec.category;
            categories
                .entry(category as usize)
                .or_insert((category.name(), Tally::default()))
                .1
                .merge(tally);
            tasks.entry((*id, spec.slug)).or_default().merge(tally);
            levels.entry(*difficulty).or_default().merge(tally);
        }

        let tasks: Vec<Row> =
            tasks.into_iter().map(|((_, slug), tally)| tally.row(slug.to_owned())).collect();

        Self {
            overall: overall.row("all".to_owned()),
            // The sum of no floats is -0.
            accuracy_of_tasks: tasks.iter().fold(0.0, |sum, row| sum + row.accuracy)
                / tasks.len().max(1) as f64,
            categories: categories
                .into_values()
                .map(|(name, tally)| tally.row(name.to_owned()))
                .collect(),
            levels: levels
                .into_iter()
                .map(|(level, tally)| tally.row(level.name().to_owned()))
                .collect(),
            tasks,
        }
    }
}
