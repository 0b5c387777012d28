//! Adds runs up, at the cost of a few look-ups for each: an overview adds a hundred thousand.

use std::collections::HashMap;

use crate::overview::{Part, RefusedLines, Sums, Totals, counts_of};
use crate::search::{IMPORTED, created_ms, day_of, name_text, names_of};

/// The facts of a run, or of runs that have all but the figures in common.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'f> {
    /// The place of the first of them in the order of creation.
    pub at: i64,
    /// The slug of their task.
    pub task: &'f str,
    /// The names of their models ([`names_text`](crate::search::names_text)).
    pub models: &'f str,
    /// True if they are over.
    pub is_over: bool,
    /// The status under which they are listed.
    pub status: &'f str,
    /// What ended them.
    pub outcome: &'f str,
    /// Their figures.
    pub sums: Sums,
}

/// How runs ended.
#[derive(Clone, Copy, PartialEq, Eq)]
enum End {
    /// They are open.
    None,
    /// By the number of the end.
    Known(usize),
    /// Elsewhere.
    Imported,
}

/// A part, with counts by the number of an end.
#[derive(Default)]
struct Tally {
    sums: Sums,
    imported: u64,
    open: u64,
    ends: Vec<u64>,
}

impl Tally {
    fn add(&mut self, sums: &Sums, end: End) {
        if end == End::Imported {
            self.imported += sums.runs;
            return;
        }
        self.sums.add(sums);
        match end {
            End::Imported => {}
            End::None => self.open += sums.runs,
            End::Known(end) => {
                if self.ends.len() <= end {
                    self.ends.resize(end + 1, 0);
                }
                self.ends[end] += sums.runs;
            }
        }
    }
}

/// A task with what refused its lines.
#[derive(Default)]
struct Task {
    tally: Tally,
    refused: Vec<(String, u64)>,
}

/// Runs that are added up.
pub struct Adder {
    /// How [`IMPORTED`] stands among models.
    imported: String,
    total: Tally,
    tasks: Named<Task>,
    models: Named<Tally>,
    /// Runs come in the order of their days, or nearly.
    days: Vec<(u64, Tally)>,
    /// Statuses with outcomes: few, so that looking through them is fast.
    ends: Vec<(String, String)>,
    first_at: Option<i64>,
}

/// Values by name. A name is copied only when it is new.
#[derive(Default)]
struct Named<V> {
    places: HashMap<String, usize>,
    values: Vec<V>,
}

impl<V: Default> Named<V> {
    fn of(&mut self, name: &str) -> &mut V {
        let known = self.places.get(name).copied();
        let place = known.unwrap_or_else(|| {
            self.places.insert(name.to_owned(), self.values.len());
            self.values.push(V::default());
            self.values.len() - 1
        });
        &mut self.values[place]
    }

    /// All of them, in the order of their names.
    fn sorted(self) -> Vec<(String, V)> {
        let mut names: Vec<(String, usize)> = self.places.into_iter().collect();
        names.sort_unstable_by_key(|(_, place)| *place);
        let mut all: Vec<(String, V)> =
            names.into_iter().zip(self.values).map(|((name, _), value)| (name, value)).collect();
        all.sort_unstable_by(|a, b| a.0.cmp(&b.0));
        all
    }
}

impl Default for Adder {
    fn default() -> Self {
        Self {
            imported: name_text(IMPORTED),
            total: Tally::default(),
            tasks: Named::default(),
            models: Named::default(),
            days: Vec::new(),
            ends: Vec::new(),
            first_at: None,
        }
    }
}

impl Adder {
    /// Adds runs. `refusals` is what refused their lines
    /// ([`counts_text`](crate::overview::counts_text)).
    pub fn add(&mut self, facts: &Facts<'_>, refusals: &str) {
        let Facts { at, task, models, is_over, status, outcome, sums } = facts;
        let is_imported = models.contains(&*self.imported);
        let end = match is_over {
            _ if is_imported => End::Imported,
            true => End::Known(self.end(status, outcome)),
            false => End::None,
        };
        self.first_at = Some(self.first_at.map_or(*at, |first| first.min(*at)));
        self.total.add(sums, end);
        self.day(day_of(*at)).add(sums, end);
        // By the text of all names, which is taken apart at the end.
        self.models.of(models).add(sums, end);

        let task = self.tasks.of(task);
        task.tally.add(sums, end);
        if is_imported {
            return;
        }
        for (constraint, lines) in counts_of(refusals) {
            match task.refused.iter_mut().find(|(known, _)| known == constraint) {
                Some((_, found)) => *found = found.saturating_add(lines),
                None => task.refused.push((constraint.to_owned(), lines)),
            }
        }
    }

    fn end(&mut self, status: &str, outcome: &str) -> usize {
        let known = self.ends.iter().position(|end| end.0 == status && end.1 == outcome);
        known.unwrap_or_else(|| {
            self.ends.push((status.to_owned(), outcome.to_owned()));
            self.ends.len() - 1
        })
    }

    fn day(&mut self, day: u64) -> &mut Tally {
        let known = self.days.iter().rposition(|(known, _)| *known == day);
        let place = known.unwrap_or_else(|| {
            self.days.push((day, Tally::default()));
            self.days.len() - 1
        });
        &mut self.days[place].1
    }

    /// What was added.
    pub fn totals(self) -> Totals {
        let Self { total, tasks, models, days, ends, first_at, .. } = self;
        let mut totals = Totals { first_ms: first_at.map(created_ms), ..Totals::default() };
        add_part(&mut totals.total, &total, &ends);
        for (day, tally) in days {
            add_part(totals.days.entry(day).or_default(), &tally, &ends);
        }
        let mut refused = Vec::new();
        for (task, Task { tally, refused: of_task }) in tasks.sorted() {
            add_part(totals.tasks.entry(task.clone()).or_default(), &tally, &ends);
            refused.extend(of_task.into_iter().map(|(constraint, lines)| RefusedLines {
                task: task.clone(),
                constraint,
                lines,
            }));
        }
        for (names, tally) in models.sorted() {
            for name in names_of(&names).into_iter().filter(|name| name != IMPORTED) {
                add_part(totals.models.entry(name).or_default(), &tally, &ends);
            }
        }

        refused.sort_by(|a, b| {
            b.lines
                .cmp(&a.lines)
                .then_with(|| (&a.task, &a.constraint).cmp(&(&b.task, &b.constraint)))
        });
        Totals { refused, ..totals }
    }
}

fn add_part(part: &mut Part, tally: &Tally, ends: &[(String, String)]) {
    part.sums.add(&tally.sums);
    part.imported += tally.imported;
    part.open += tally.open;
    for ((status, outcome), runs) in ends.iter().zip(&tally.ends).filter(|(_, runs)| **runs > 0) {
        *part.statuses.entry(status.clone()).or_default() += runs;
        *part.outcomes.entry(outcome.clone()).or_default() += runs;
    }
}
