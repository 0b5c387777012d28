//! What the runs in the journal add up to: by task, model and day, and what refused their lines.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::RunReader;
use crate::runs::error::RunError;
use crate::runs::record::{Status, timestamp};
use prime_journal::{Part, RefusedLines, SearchQuery, Totals};
use prime_protocol::Cost;

/// Most entries of each list.
const ENTRIES_MAX: usize = 1_000;
const DAY_MS: u64 = 86_400_000;
const HOUR_MS: f64 = 3_600_000.0;
/// Rates over less say nothing.
const PERIOD_MS_MIN: u64 = 60_000;

/// Figures of runs. Those of open runs are 0, except `runs` and `open`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Figures {
    /// Runs that this daemon accepted in the period.
    pub runs: u64,
    /// Imported runs that other daemons accepted in the period: no other figure counts them.
    #[serde(default)]
    pub imported: u64,
    /// Runs that are not over.
    pub open: u64,
    /// Runs whose answer is verified.
    pub verified: u64,
    /// Runs whose answer no check refuted.
    pub unrefuted: u64,
    /// Runs whose answer nothing checked.
    pub unverified: u64,
    /// Runs that ended without an answer.
    pub failed: u64,
    /// Runs that were cancelled.
    pub cancelled: u64,
    /// Verified runs over those that are over, 0 to 1; null if none is.
    #[schema(required)]
    pub verified_share: Option<f64>,
    /// Runs by what ended them.
    pub outcomes: BTreeMap<String, u64>,
    /// Committed steps, as each run's `steps`.
    pub steps: u64,
    /// Lines that executors proposed.
    pub proposals: u64,
    /// Proposals that were rejected or had to be tried again.
    pub refused: u64,
    /// Tokens of prompts, cached ones included.
    pub prompt_tokens: u64,
    /// Tokens that models wrote.
    pub completion_tokens: u64,
    /// What the tokens cost, in the currency of the prices; left out if none has a price.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<f64>, minimum = 0.0)]
    pub cost: Option<Cost>,
    /// Milliseconds of run time of all runs, side by side ones included.
    pub wall_ms: u64,
    /// Runs over the hours of the period.
    pub runs_per_hour: f64,
    /// Committed steps over the hours of the period.
    pub steps_per_hour: f64,
}

/// The figures of the runs of one task, model or day.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct NamedFigures {
    /// A task's slug, a model's name, or a day in UTC as `2026-02-03`.
    pub name: String,
    /// Its figures.
    #[serde(flatten)]
    pub figures: Figures,
}

/// Lines that a constraint of a task refused.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct RefusedBy {
    /// The task's slug.
    pub task: String,
    /// Empty for lines that were refused without the name of a constraint.
    pub constraint: String,
    /// Lines that violated it and were rejected or tried again. A line that violates several counts
    /// for each.
    pub lines: u64,
}

/// What runs add up to.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, ToSchema)]
pub struct Overview {
    /// The key whose runs these are, as the parameter `key` of lists takes it: `*` for all. Left
    /// out where there are no keys.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub key: Option<String>,
    /// The beginning of the period: as asked for, or when the first run was accepted.
    #[schema(format = DateTime)]
    pub since: String,
    /// The end of the period: as asked for, or now.
    #[schema(format = DateTime)]
    pub before: String,
    /// All runs of the period.
    pub total: Figures,
    /// By task, most runs first; at most 1,000.
    pub tasks: Vec<NamedFigures>,
    /// By model, most runs first; at most 1,000. A run that asks several counts for each.
    pub models: Vec<NamedFigures>,
    /// By day of acceptance, newest first; at most 1,000.
    pub days: Vec<NamedFigures>,
    /// What refused lines, most lines first; at most 1,000. Counts the first 16 MiB of events of a
    /// run, and the 32 constraints that refused most.
    pub constraints: Vec<RefusedBy>,
    /// True while the daemon still looks through a journal of an earlier version.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub incomplete: bool,
}

/// A time from its first to before its last millisecond since 1970.
#[derive(Clone, Copy)]
struct Period {
    since_ms: u64,
    before_ms: u64,
}

impl Period {
    /// The part of it that is on this day.
    fn on(self, day: u64) -> Self {
        let begin = day.saturating_mul(DAY_MS);
        let since_ms = self.since_ms.max(begin);
        Self { since_ms, before_ms: self.before_ms.min(begin.saturating_add(DAY_MS)).max(since_ms) }
    }

    #[expect(clippy::cast_precision_loss, reason = "a rate for display")]
    fn rate(self, count: u64) -> f64 {
        let ms = self.before_ms.saturating_sub(self.since_ms).max(PERIOD_MS_MIN);
        count as f64 / (ms as f64 / HOUR_MS)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a share for display")]
fn figures(part: Part, period: Period) -> Figures {
    let Part { sums, imported, open, statuses, mut outcomes } = part;
    let of = |status: Status| statuses.get(status.name()).copied().unwrap_or_default();
    let (over, verified) = (sums.runs - open, of(Status::Verified));
    // A run of another version does not say what ended it.
    outcomes.remove("");
    Figures {
        runs: sums.runs,
        imported,
        open,
        verified,
        unrefuted: of(Status::Unrefuted),
        unverified: of(Status::Unverified),
        failed: of(Status::Failed),
        cancelled: of(Status::Cancelled),
        verified_share: (over > 0).then(|| verified as f64 / over as f64),
        outcomes,
        steps: sums.steps,
        proposals: sums.proposals,
        refused: sums.refused,
        prompt_tokens: sums.tokens.saturating_sub(sums.completion_tokens),
        completion_tokens: sums.completion_tokens,
        cost: sums.cost_nanos.map(Cost::from_nanos),
        wall_ms: sums.wall_ms,
        runs_per_hour: period.rate(sums.runs),
        steps_per_hour: period.rate(sums.steps),
    }
}

/// A day in UTC, such as `2026-02-03`.
fn day_name(day: u64) -> String {
    timestamp(day.saturating_mul(DAY_MS)).chars().take("2026-02-03".len()).collect()
}

/// The entries with most runs first.
fn by_runs(all: BTreeMap<String, Part>, period: Period) -> Vec<NamedFigures> {
    let named =
        |(name, part): (String, Part)| NamedFigures { name, figures: figures(part, period) };
    let mut all: Vec<NamedFigures> = all.into_iter().map(named).collect();
    all.sort_by_key(|entry| Reverse(entry.figures.runs));
    all.truncate(ENTRIES_MAX);
    all
}

impl Overview {
    fn of(totals: Totals, period: Period) -> Self {
        let Totals { total, tasks, models, days, refused, .. } = totals;
        let day = |(day, part): (u64, Part)| NamedFigures {
            name: day_name(day),
            figures: figures(part, period.on(day)),
        };
        let refused_by =
            |RefusedLines { task, constraint, lines }| RefusedBy { task, constraint, lines };
        Self {
            key: None,
            since: timestamp(period.since_ms),
            before: timestamp(period.before_ms),
            total: figures(total, period),
            tasks: by_runs(tasks, period),
            models: by_runs(models, period),
            days: days.into_iter().rev().take(ENTRIES_MAX).map(day).collect(),
            constraints: refused.into_iter().take(ENTRIES_MAX).map(refused_by).collect(),
            incomplete: false,
        }
    }
}

impl RunReader {
    /// What the runs of a query add up to. What has changed in the last moments may be missing.
    ///
    /// # Errors
    /// When the journal cannot be read.
    pub async fn overview(&self, query: SearchQuery) -> Result<Overview, RunError> {
        let (since_ms, before_ms) = (query.since_ms, query.before_ms);
        let totals = self.store.read(move |journal| journal.search().totals(&query)).await?;
        let now_ms = self.store.now_ms();
        let before_ms = before_ms.map_or(now_ms, |before| before.min(now_ms));
        let since_ms = since_ms.or(totals.first_ms).unwrap_or(before_ms).min(before_ms);
        let incomplete = !self.indexed.is_complete();
        Ok(Overview { incomplete, ..Overview::of(totals, Period { since_ms, before_ms }) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use prime_journal::Sums;

    fn part(verified: u64, failed: u64, open: u64) -> Part {
        let runs = verified + failed + open;
        let counts = |of: &[(&str, u64)]| -> BTreeMap<String, u64> {
            of.iter().map(|(name, runs)| ((*name).to_owned(), *runs)).collect()
        };
        Part {
            sums: Sums {
                runs,
                steps: 10 * runs,
                tokens: 7 * runs,
                completion_tokens: 2 * runs,
                cost_nanos: Some(1_500_000 * runs),
                ..Sums::default()
            },
            imported: 4,
            open,
            statuses: counts(&[("verified", verified), ("failed", failed)]),
            outcomes: counts(&[("agreed", verified), ("", failed)]),
        }
    }

    #[test]
    fn parts_become_figures_with_rates_of_their_period() {
        let named = |parts: [(&str, Part); 2]| {
            BTreeMap::from(parts.map(|(name, part)| (name.to_owned(), part)))
        };
        let totals = Totals {
            total: part(3, 1, 2),
            tasks: named([("sort", part(3, 1, 0)), ("queens", part(0, 0, 2))]),
            models: named([("n", part(0, 1, 0)), ("m", part(3, 1, 0))]),
            days: BTreeMap::from([(0, part(3, 0, 0)), (1, part(0, 1, 2))]),
            refused: vec![RefusedLines {
                task: "sort".to_owned(),
                constraint: "order".to_owned(),
                lines: 4,
            }],
            first_ms: None,
        };
        // From six hours before the first midnight to twelve hours after it.
        let period = Period { since_ms: DAY_MS * 3 / 4, before_ms: DAY_MS * 3 / 2 };
        let overview = Overview::of(totals, period);

        let total = &overview.total;
        assert_eq!((total.runs, total.open, total.verified, total.failed), (6, 2, 3, 1));
        assert_eq!(total.imported, 4);
        assert_eq!(total.verified_share, Some(0.75), "of the four that are over");
        assert_eq!(total.outcomes, BTreeMap::from([("agreed".to_owned(), 3)]));
        assert_eq!((total.prompt_tokens, total.completion_tokens), (30, 12));
        assert_eq!(total.cost, Some(Cost::from_nanos(9_000_000)));
        assert_eq!((total.runs_per_hour, total.steps_per_hour), (6.0 / 18.0, 60.0 / 18.0));

        let of = |list: &[NamedFigures]| -> Vec<(String, u64, f64)> {
            let entry =
                |of: &NamedFigures| (of.name.clone(), of.figures.runs, of.figures.runs_per_hour);
            list.iter().map(entry).collect()
        };
        let named = |name: &str, runs, rate| (name.to_owned(), runs, rate);
        let tasks = [named("sort", 4, 4.0 / 18.0), named("queens", 2, 2.0 / 18.0)];
        assert_eq!(of(&overview.tasks), tasks);
        let models = [named("m", 4, 4.0 / 18.0), named("n", 1, 1.0 / 18.0)];
        assert_eq!(of(&overview.models), models);
        // A day's rate is over the hours of the period on it.
        let days = [named("1970-01-02", 3, 3.0 / 12.0), named("1970-01-01", 3, 3.0 / 6.0)];
        assert_eq!(of(&overview.days), days);
        assert_eq!(overview.tasks[1].figures.verified_share, None, "none is over");
        assert_eq!(overview.constraints[0].lines, 4);
    }

    #[test]
    fn rates_are_over_a_minute_at_least() {
        let period = Period { since_ms: 5, before_ms: 5 };
        assert!((period.rate(2) - 120.0).abs() < 1e-9);
    }
}
