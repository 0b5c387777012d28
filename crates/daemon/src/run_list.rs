//! Pages of runs: listed, or found by what they say.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::openapi::schema::{AnyOfBuilder, ObjectBuilder};
use utoipa::openapi::{Ref, RefOr, Schema, Type};
use utoipa::{IntoParams, PartialSchema, ToSchema};

use super::error::ApiError;
use super::guard::{Owner, Rights};
use super::parameters::{millis, page_limit, wanted_label};
use super::request_context::{ALL_KEYS, MYSELF, assigned, listed_owner};
use super::state::State;
use prime_journal::search::TERMS_MAX;
use prime_journal::{Position, Query, SearchQuery, SortKey};
use prime_service::runs::{RunPage, RunRecord, Status, WhyFound, searched_text};

/// Most bytes of a text to search for.
const TEXT_BYTES_MAX: usize = 400;

/// Which runs to list.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub struct ListQuery {
    /// Words that all occur in the run's id, task, input, answer or committed lines; words in
    /// double quotes are one text. Case does not matter. Up to 8 words, 400 bytes.
    #[param(max_length = 400)]
    pub q: Option<String>,
    /// The status of the runs.
    pub status: Option<Status>,
    /// A task's slug, or `problem`.
    pub task: Option<String>,
    /// What ended the runs, as in `outcome`.
    pub outcome: Option<String>,
    /// The name of an agent in any role.
    pub agent: Option<String>,
    /// One of `models`.
    pub model: Option<String>,
    /// The name of a label, or `NAME:VALUE`.
    pub label: Option<String>,
    /// Only runs of the key with this name; `*` stands for all keys. Only an admin's key may ask
    /// for other keys than its own.
    pub key: Option<String>,
    /// Whether a step was flagged for review.
    pub flagged: Option<bool>,
    /// `true`: only runs with a step that needs review and has none.
    pub needs_review: Option<bool>,
    /// Only runs with a step that this name is to review; `me` is the key that asks, or `local`
    /// without keys, and for an admin's key it finds the runs of all keys; `none`: with a step that
    /// needs review and is assigned to nobody. Goes with `status`, `task`, `key` and `needs_review`
    /// alone.
    pub assignee: Option<String>,
    /// Only runs in which this constraint refused a line.
    pub constraint: Option<String>,
    /// Only runs accepted at this time or later, as `2026-02-03T04:05:06Z`.
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Only runs accepted before this time.
    #[param(format = DateTime)]
    pub before: Option<String>,
    /// Fewest `steps`.
    pub steps_min: Option<u64>,
    /// Most `steps`.
    pub steps_max: Option<u64>,
    /// Fewest tokens, of prompts and completions together.
    pub tokens_min: Option<u64>,
    /// Most tokens.
    pub tokens_max: Option<u64>,
    /// What to sort by; a `-` before it reverses the order; `-created` by default. `duration` is
    /// `wall_ms`.
    #[param(inline)]
    pub sort: Option<Sort>,
    /// Fields of the runs, with commas between them; without it, all.
    #[param(example = "id,status,task")]
    pub fields: Option<String>,
    /// `next` of the previous page.
    #[param(min_length = 1)]
    pub after: Option<String>,
    /// Runs per page, 1 to 1,000; 100 by default.
    #[param(minimum = 1, maximum = 1_000)]
    pub limit: Option<u32>,
}

/// The order of a list.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
pub enum Sort {
    #[serde(rename = "created")]
    Created,
    #[serde(rename = "-created")]
    CreatedDown,
    #[serde(rename = "steps")]
    Steps,
    #[serde(rename = "-steps")]
    StepsDown,
    #[serde(rename = "tokens")]
    Tokens,
    #[serde(rename = "-tokens")]
    TokensDown,
    #[serde(rename = "duration")]
    Duration,
    #[serde(rename = "-duration")]
    DurationDown,
}

/// A run of a list: its record, or the fields of it that were asked for. `found` says why a search
/// with `q` or `constraint` found it.
pub struct ListedRun;

impl PartialSchema for ListedRun {
    fn schema() -> RefOr<Schema> {
        let part = ObjectBuilder::new()
            .schema_type(Type::Object)
            .description(Some("The fields of a record that `fields` names."))
            .property("found", Ref::from_schema_name("WhyFound"));
        let whole = Ref::from_schema_name("RunRecord");
        AnyOfBuilder::new().item(whole).item(part).into()
    }
}

impl ToSchema for ListedRun {}

/// A page of runs.
#[derive(Debug, Serialize, ToSchema)]
pub struct RunList {
    /// With `fields`, they have those alone.
    #[schema(value_type = Vec<ListedRun>)]
    pub runs: Vec<Value>,
    /// Runs of this page whose rows are damaged, or were written by another version and cannot be
    /// read by this one. They are not in `runs`. Left out if there are none.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub unreadable: Vec<String>,
    /// `after` of the next page; null at the end. A page of a search may have fewer runs than
    /// `limit`, or none: one request looks at a limited number of texts.
    pub next: Option<String>,
    /// True while the daemon still looks through a journal for what searches need. Left out
    /// otherwise.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    #[schema(required = false)]
    pub incomplete: bool,
}

/// The fields of records that can be asked for.
const FIELDS: &[&str] = &[
    "agents",
    "agreement",
    "answer",
    "approvals",
    "assurance",
    "backtracks",
    "chain",
    "checked_kinds",
    "config_hash",
    "correct",
    "created_at",
    "engines",
    "events",
    "failure",
    "forked_from",
    "found",
    "id",
    "imported",
    "instance",
    "labels",
    "last_rejection",
    "mean_reward",
    "models",
    "notes",
    "outcome",
    "pops",
    "proposals",
    "resumed",
    "retries",
    "retry_of",
    "reviews",
    "rounds",
    "seed",
    "speculations",
    "split",
    "status",
    "step_votes",
    "steps",
    "strategy",
    "stuck_at",
    "task",
    "title",
    "tokens",
    "trajectories",
    "updated_at",
    "verification",
    "verified",
    "verifier",
    "votes",
    "waiting_for",
    "wall_ms",
];

/// The fields that a list names.
fn fields_of(list: &str) -> Result<Vec<&str>, ApiError> {
    let fields: Vec<&str> = list.split(',').map(str::trim).collect();
    match fields.iter().find(|field| !FIELDS.contains(field)) {
        None => Ok(fields),
        Some(unknown) => Err(ApiError::bad_field(
            "fields",
            format!("{unknown:?} is not a field of a run; there are {}", FIELDS.join(", ")),
        )),
    }
}

/// A run of a list, as it is written.
#[derive(Serialize)]
struct Listed<'l> {
    #[serde(flatten)]
    record: &'l RunRecord,
    #[serde(skip_serializing_if = "Option::is_none")]
    found: Option<&'l WhyFound>,
}

/// A run with these fields, or all.
fn shown(run: &Listed<'_>, fields: Option<&[&str]>) -> Result<Value, ApiError> {
    let value = serde_json::to_value(run);
    let value = value.map_err(|error| ApiError::internal(error.to_string()))?;
    Ok(match (value, fields) {
        (Value::Object(all), Some(fields)) => {
            let kept = all.into_iter().filter(|(name, _)| fields.contains(&name.as_str()));
            Value::Object(kept.collect::<Map<_, _>>())
        }
        (value, _) => value,
    })
}

/// The words of a text, and the texts in quotes; a quote that is not closed goes to the end.
fn terms_of(text: &str) -> Result<Vec<String>, ApiError> {
    if text.len() > TEXT_BYTES_MAX {
        let length = text.len();
        let message = format!("has {length} bytes; give at most {TEXT_BYTES_MAX}");
        return Err(ApiError::bad_field("q", message));
    }

    let text = searched_text(text);
    let mut terms = Vec::new();
    for (place, part) in text.split('"').enumerate() {
        if place % 2 == 1 {
            terms.push(part.to_owned());
        } else {
            terms.extend(part.split_whitespace().map(str::to_owned));
        }
    }
    terms.retain(|term| !term.is_empty());
    if terms.len() > TERMS_MAX {
        let count = terms.len();
        let message = format!("has {count} words; give at most {TERMS_MAX}, or put them in quotes");
        return Err(ApiError::bad_field("q", message));
    }
    Ok(terms)
}

impl Sort {
    /// The name in a query.
    fn name(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::CreatedDown => "-created",
            Self::Steps => "steps",
            Self::StepsDown => "-steps",
            Self::Tokens => "tokens",
            Self::TokensDown => "-tokens",
            Self::Duration => "duration",
            Self::DurationDown => "-duration",
        }
    }

    /// Reads the `next` of a page in this order.
    fn position(self, next: &str) -> Result<Position, ApiError> {
        let (order, place) = next.split_once(':').unwrap_or(("", next));
        let place = place.parse();
        let place = place.map_err(|error| ApiError::bad_field("after", format!("{error}")))?;
        if order != self.name() {
            let message = format!(
                "it is the `next` of a list with sort={order}: give that `sort`, or leave `after` out"
            );
            return Err(ApiError::bad_field("after", message));
        }
        Ok(place)
    }

    /// What to sort by, and true if ascending.
    fn key(self) -> (SortKey, bool) {
        match self {
            Self::Created => (SortKey::Created, true),
            Self::CreatedDown => (SortKey::Created, false),
            Self::Steps => (SortKey::Steps, true),
            Self::StepsDown => (SortKey::Steps, false),
            Self::Tokens => (SortKey::Tokens, true),
            Self::TokensDown => (SortKey::Tokens, false),
            Self::Duration => (SortKey::Duration, true),
            Self::DurationDown => (SortKey::Duration, false),
        }
    }
}

impl ListQuery {
    /// True if the rows of runs alone suffice to select them.
    fn is_plain(&self) -> bool {
        let Self { q, outcome, agent, model, label, constraint, flagged, since, before, .. } = self;
        let texts = [q, outcome, agent, model, label, constraint, since, before];
        let bounds = [self.steps_min, self.steps_max, self.tokens_min, self.tokens_max];
        let is_newest_first = self.sort.is_none_or(|sort| matches!(sort, Sort::CreatedDown));
        texts.into_iter().all(Option::is_none)
            && bounds.into_iter().all(|bound| bound.is_none())
            && flagged.is_none()
            && is_newest_first
    }

    pub(super) fn search(self, owner: Option<String>) -> Result<SearchQuery, ApiError> {
        let time = |name: &str, time: Option<&str>| time.map(|time| millis(name, time)).transpose();
        let order = self.sort.unwrap_or(Sort::CreatedDown);
        let after = self.after.as_deref().map(|after| order.position(after));
        let (sort, ascending) = order.key();
        Ok(SearchQuery {
            owner,
            terms: self.q.as_deref().map(terms_of).transpose()?.unwrap_or_default(),
            status: self.status.map(Status::name).map(str::to_owned),
            since_ms: time("since", self.since.as_deref())?,
            before_ms: time("before", self.before.as_deref())?,
            after: after.transpose()?,
            limit: page_limit(self.limit)?,
            task: self.task,
            outcome: self.outcome,
            agent: self.agent,
            model: self.model,
            label: self.label.map(wanted_label).transpose()?,
            constraint: self.constraint,
            is_flagged: self.flagged,
            needs_review: self.needs_review.unwrap_or(false),
            steps_min: self.steps_min,
            steps_max: self.steps_max,
            tokens_min: self.tokens_min,
            tokens_max: self.tokens_max,
            sort,
            ascending,
        })
    }

    fn plain(self, owner: Option<String>, asking: &Owner) -> Result<Query, ApiError> {
        Ok(Query {
            owner,
            status: self.status.map(Status::name).map(str::to_owned),
            task: self.task,
            needs_review: self.needs_review.unwrap_or(false),
            assigned: self.assignee.map(|name| assigned(name, asking)),
            after: self.after,
            limit: page_limit(self.limit)?,
            ..Query::default()
        })
    }
}

/// A page of the runs of the key that asks, or of those that an admin asks for.
pub(super) async fn list_runs(
    state: &State,
    asking: &Owner,
    mut wanted: ListQuery,
) -> Result<RunList, ApiError> {
    // What is left to an admin may be in the runs of any key.
    let is_own_queue = wanted.assignee.as_deref() == Some(MYSELF) && asking.rights == Rights::Admin;
    let all = is_own_queue.then_some(ALL_KEYS);
    let owner = listed_owner(asking, wanted.key.as_deref().or(all))?;
    let names = wanted.fields.take();
    let fields = names.as_deref().map(fields_of).transpose()?;

    let reader = state.runs.reader();
    let RunPage { runs, unreadable, next, found, is_incomplete } = if wanted.is_plain() {
        reader.list(wanted.plain(owner, asking)?).await?
    } else if wanted.assignee.is_some() {
        let message = "goes with status, task, key and needs_review alone: leave the others out";
        return Err(ApiError::bad_field("assignee", message));
    } else {
        let order = wanted.sort.unwrap_or(Sort::CreatedDown);
        let page = reader.find(wanted.search(owner)?).await?;
        RunPage { next: page.next.map(|next| format!("{}:{next}", order.name())), ..page }
    };
    let runs = runs.iter().map(|record| {
        let listed = Listed { record, found: found.get(&record.id) };
        shown(&listed, fields.as_deref())
    });
    let runs = runs.collect::<Result<_, _>>()?;
    Ok(RunList { runs, unreadable, next, incomplete: is_incomplete })
}

#[cfg(test)]
mod tests {
    use prime_journal::RunRow;

    use super::*;

    #[test]
    fn a_text_is_words_and_quoted_texts() {
        let of = |text: &str| terms_of(text).expect("terms");
        assert_eq!(of(" CMP  0 1 "), ["cmp", "0", "1"]);
        assert_eq!(of("a \"cmp 0 1\" b"), ["a", "cmp 0 1", "b"]);
        assert_eq!(of("\"no end"), ["no end"]);
        assert_eq!(of("\"\" \t"), [""; 0]);
        assert_eq!(of("tab\there"), ["tab", "here"]);
        assert!(terms_of(&"x".repeat(401)).is_err());
        assert!(terms_of("1 2 3 4 5 6 7 8 9").is_err());
    }

    #[test]
    fn what_rows_alone_say_is_listed_and_the_rest_is_searched() {
        let any = ListQuery::default;
        assert!(any().is_plain());
        assert!(ListQuery { task: Some("x".into()), limit: Some(3), ..any() }.is_plain());
        assert!(ListQuery { sort: Some(Sort::CreatedDown), ..any() }.is_plain());
        for query in [
            ListQuery { q: Some(String::new()), ..any() },
            ListQuery { sort: Some(Sort::Created), ..any() },
            ListQuery { steps_min: Some(0), ..any() },
            ListQuery { flagged: Some(false), ..any() },
            ListQuery { before: Some("2026-02-03T04:05:06Z".into()), ..any() },
        ] {
            assert!(!query.is_plain(), "{query:?}");
        }

        let after = Some("-steps:7.9".to_owned());
        let query = ListQuery { sort: Some(Sort::StepsDown), after: after.clone(), ..any() };
        let query = query.search(None).expect("a query");
        assert_eq!(query.after, Some(Position { value: 7, at: 9 }));
        let query = ListQuery { sort: Some(Sort::Tokens), after, ..any() };
        let error = query.search(None).expect_err("refused").body().error.message;
        assert!(error.contains("of a list with sort=-steps"), "{error}");
        let query = ListQuery { q: Some("x".into()), after: Some("run_1".into()), ..any() };
        let error = query.search(None).expect_err("refused").body().error.message;
        assert!(error.contains("it is not the `next` of a page"), "{error}");
    }

    #[test]
    fn records_are_cut_to_the_fields_that_are_named() {
        assert!(fields_of("id,status, task").is_ok());
        for list in ["", "id,", "ids"] {
            let error = fields_of(list).expect_err("refused").body().error.message;
            assert!(error.contains("is not a field of a run; there are agents,"), "{error}");
        }

        let (row, _) = RunRow::probe("a".to_owned());
        assert!(RunRecord::of_row(&row).is_err(), "a probe has no spec");
    }
}
